#include "descriptors.hpp"

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

static const std::uint64_t reserve = 16;

// Where nobody tells, as many as this program has without any transfer, and some more.
static std::uint64_t open_descriptors()
{
    DIR *const folder = opendir("/proc/self/fd");
    if (!folder)
        return 24;
    std::uint64_t count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

std::uint32_t jobs_that_fit()
{
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT32_MAX;
    const std::uint64_t taken = open_descriptors() + reserve;
    const std::uint64_t left = limit.rlim_cur > taken ? limit.rlim_cur - taken : 1;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(left, UINT32_MAX));
}

// Looks for as many as a connection takes at most while it begins, which has been given back by now.
bool is_without_descriptors()
{
    int taken[4];
    bool is_without = false;
    for (int &descriptor : taken) {
        descriptor = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
        is_without = is_without || descriptor < 0;
    }
    for (const int descriptor : taken)
        if (descriptor >= 0)
            close(descriptor);
    return is_without;
}

void SpareDescriptors::hold()
{
    for (int &descriptor : held_)
        if (descriptor < 0)
            descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void SpareDescriptors::give()
{
    waited_ = 0;
    for (int &descriptor : held_)
        if (descriptor >= 0)
            close(std::exchange(descriptor, -1));
}

bool SpareDescriptors::awaits_another()
{
    poll(nullptr, 0, 10);
    return ++waited_ <= 100;
}
