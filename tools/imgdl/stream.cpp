#include "stream.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "signals.hpp"
#include "text.hpp"
#include "write-all.hpp"

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

// Opened anew, the other side of a terminal would be that of another one.
bool is_master(int descriptor)
{
    unsigned number;
    return ioctl(descriptor, TIOCGPTN, &number) == 0;
}

// A terminal that takes a byte may not take the next one, and write() would wait for that: not where it is opened anew, which
// leaves what other programs have of it as it is.
class StreamDescriptor {
  public:
    explicit StreamDescriptor(int descriptor) : given_(descriptor)
    {
        const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
        if (isatty(descriptor) && !is_master(descriptor))
            own_ = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    StreamDescriptor(const StreamDescriptor &) = delete;
    StreamDescriptor &operator=(const StreamDescriptor &) = delete;
    ~StreamDescriptor()
    {
        if (own_ >= 0)
            close(own_);
    }
    int number() const { return own_ < 0 ? given_ : own_; }

  private:
    int given_, own_ = -1;
};

} // namespace

void write_to_stream(int descriptor, imgdl::Bytes bytes, const std::string &name)
{
    struct stat status;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
        return write_all(descriptor, bytes, name);
    const StreamDescriptor stream(descriptor);
    const bool is_late = time_left() == 0;
    std::size_t written = 0;
    while (written < bytes.size()) {
        if (!is_late && time_left() == 0)
            fail(EINTR, name);
        await_reader(stream.number(), name);
        // So much a pipe takes without waiting once it takes anything. Within write() a signal that comes a moment before it
        // would be missed.
        const std::size_t size = std::min<std::size_t>(bytes.size() - written, PIPE_BUF);
        const ssize_t count = write(stream.number(), bytes.data() + written, size);
        if (count < 0 && errno != EINTR && errno != EAGAIN)
            fail(errno, name);
        if (count < 0 && errno == EAGAIN) {
            // A terminal has room for half of a line's end, which poll takes for room.
            if (time_left() == 0)
                fail(EINTR, name);
            poll(nullptr, 0, 10);
        }
        written += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
}
