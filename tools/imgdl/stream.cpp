#include "stream.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <optional>
#include <poll.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "output.hpp"
#include "signals.hpp"
#include "text.hpp"

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(int code, const std::string &name)
{
    throw std::system_error(code, std::generic_category(), printable(name));
}

// In milliseconds, for poll: any without a signal.
int time_left()
{
    static std::optional<Clock::time_point> end;
    if (!signal_that_came())
        return -1;
    if (!end)
        end = Clock::now() + std::chrono::milliseconds(500);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now());
    return std::max(0, static_cast<int>(left.count()));
}

// A signal that comes a moment before poll ends it, too: its descriptor stays readable.
void await_reader(int descriptor, const std::string &name)
{
    for (;;) {
        const int timeout = time_left();
        pollfd waiting[] = {{descriptor, POLLOUT, 0}, {timeout < 0 ? signal_descriptor() : -1, POLLIN, 0}};
        const int count = poll(waiting, 2, timeout);
        if (count < 0 && errno != EINTR)
            fail(errno, name);
        if (count > 0 && waiting[0].revents)
            return;
        if (timeout == 0)
            fail(EINTR, name);
    }
}

} // namespace

void write_to_stream(int descriptor, imgdl::Bytes bytes, const std::string &name)
{
    struct stat status;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
        return write_all(descriptor, bytes, name);
    const bool is_late = time_left() == 0;
    std::size_t written = 0;
    while (written < bytes.size()) {
        if (!is_late && time_left() == 0)
            fail(EINTR, name);
        await_reader(descriptor, name);
        // So much a pipe takes without waiting once it takes anything. Within write() a signal that comes a moment before it
        // would be missed.
        const std::size_t size = std::min<std::size_t>(bytes.size() - written, PIPE_BUF);
        const ssize_t count = write(descriptor, bytes.data() + written, size);
        if (count < 0 && errno != EINTR && errno != EAGAIN)
            fail(errno, name);
        written += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
}
