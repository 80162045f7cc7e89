#include "write-all.hpp"

#include <cerrno>
#include <system_error>
#include <unistd.h>

#include "text.hpp"

void write_all(int descriptor, imgdl::Bytes bytes, const std::string &name)
{
    std::size_t written = 0;
    while (written < bytes.size()) {
        const ssize_t count = write(descriptor, bytes.data() + written, bytes.size() - written);
        if (count < 0 && errno != EINTR)
            throw std::system_error(errno, std::generic_category(), printable(name));
        written += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
}
