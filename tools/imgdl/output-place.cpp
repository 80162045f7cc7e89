#include "output-place.hpp"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <linux/magic.h>
#include <optional>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "draft.hpp"
#include "signals.hpp"
#include "text.hpp"

namespace {

[[noreturn]] void fail(const std::string &path)
{
    const int code = errno;
    throw std::system_error(code, std::generic_category(), printable(path));
}

const int max_links = 40;

// Where a link leads; nothing for what is none.
std::optional<std::string> path_behind_link(const std::string &path)
{
    char target[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), target, sizeof target);
    if (length <= 0)
        return std::nullopt;
    const std::string next(target, static_cast<std::size_t>(length));
    return next[0] == '/' ? next : folder_of(path) + "/" + next;
}

// Where the path, through links, names something below /proc: what is there are ways to something else.
std::optional<std::string> path_below_proc(std::string path)
{
    for (int link = 0; link < max_links; link++) {
        struct statfs system;
        if (statfs(folder_of(path).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC)
            return path;
        std::optional<std::string> next = path_behind_link(path);
        if (!next)
            return std::nullopt;
        path = std::move(*next);
    }
    return std::nullopt;
}

// A descriptor of this process. Opened anew, a file behind it would be written from its beginning.
std::optional<int> own_descriptor(const std::string &path)
{
    const std::optional<std::string> below = path_below_proc(path);
    struct stat folder, own;
    if (!below || stat(folder_of(*below).c_str(), &folder) != 0 || stat("/proc/self/fd", &own) != 0 ||
        folder.st_dev != own.st_dev || folder.st_ino != own.st_ino)
        return std::nullopt;
    const std::string number = below->substr(below->rfind('/') + 1);
    const bool is_number = !number.empty() && number.size() < 10 &&
                           number.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? std::optional(std::atoi(number.c_str())) : std::nullopt;
}

} // namespace

std::string path_behind_links(std::string path)
{
    for (int link = 0; link < max_links; link++) {
        std::optional<std::string> next = path_behind_link(path);
        if (!next)
            break;
        path = std::move(*next);
    }
    return path;
}

OutputPlace output_place(const std::string &path)
{
    struct stat status;
    const bool is_there = stat(path.c_str(), &status) == 0;
    if (is_there && S_ISDIR(status.st_mode))
        return OutputPlace::folder;
    if ((is_there && !S_ISREG(status.st_mode)) || path_below_proc(path))
        return OutputPlace::stream;
    return is_there ? OutputPlace::file : OutputPlace::nothing;
}

int open_stream(const std::string &path)
{
    if (const std::optional<int> number = own_descriptor(path)) {
        const int copy = fcntl(*number, F_DUPFD_CLOEXEC, 0);
        return copy < 0 ? (fail(path), -1) : copy;
    }
    struct stat status;
    const bool is_pipe = stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
    for (;;) {
        // Waiting within open() a signal that comes a moment before it would be missed.
        const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | (is_pipe ? O_NONBLOCK : 0));
        if (descriptor >= 0) {
            if (is_pipe)
                fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
            return descriptor;
        }
        if (!is_pipe || errno != ENXIO)
            fail(path);
        pollfd waiting = {signal_descriptor(), POLLIN, 0};
        poll(&waiting, 1, 50);
        errno = EINTR;
        if (signal_that_came())
            fail(path);
    }
}
