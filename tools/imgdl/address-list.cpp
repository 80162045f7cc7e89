#include "address-list.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "standard-descriptors.hpp"
#include "text.hpp"

static const std::size_t max_line = 65536;

AddressList::AddressList(const std::vector<std::string> &addresses, const std::optional<std::string> &list)
    : given_(addresses.begin(), addresses.end())
{
    if (!list)
        return;
    name_ = *list == "-" ? "standard input" : printable(*list);
    if (*list == "-" && !has_standard_input())
        throw std::system_error(EBADF, std::generic_category(), name_);
    // A pipe with a name may have nobody yet who writes to it: that is waited for with everything else.
    struct stat status;
    const bool is_pipe = *list != "-" && stat(list->c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
    descriptor_ = *list == "-" ? STDIN_FILENO : open(list->c_str(), O_RDONLY | O_CLOEXEC | (is_pipe ? O_NONBLOCK : 0));
    if (descriptor_ < 0)
        throw std::system_error(errno, std::generic_category(), name_);
}

AddressList::~AddressList()
{
    if (descriptor_ > STDERR_FILENO)
        close(descriptor_);
}

void AddressList::read()
{
    buffer_.erase(0, used_);
    used_ = 0;
    char bytes[65536];
    const ssize_t count = ::read(descriptor_, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (count < 0)
        throw std::system_error(errno, std::generic_category(), name_);
    buffer_.append(bytes, static_cast<std::size_t>(count));
    if (count > 0)
        return;
    if (descriptor_ > STDERR_FILENO)
        close(descriptor_);
    descriptor_ = -1;
}

std::optional<Address> AddressList::next()
{
    if (!given_.empty()) {
        Address address{given_.front(), "", ""};
        given_.pop_front();
        return address;
    }
    while (used_ < buffer_.size()) {
        const std::size_t end = buffer_.find('\n', used_);
        if (end == std::string::npos && descriptor_ >= 0) {
            if (buffer_.size() - used_ <= max_line && !is_too_long_)
                return std::nullopt;
            used_ = buffer_.size(); // only that it is too long is kept of it
            is_too_long_ = true;
            return std::nullopt;
        }
        std::string line = buffer_.substr(used_, end == std::string::npos ? end : end - used_);
        used_ = end == std::string::npos ? buffer_.size() : end + 1;
        line_++;
        if (std::optional<Address> address = address_in(std::move(line)))
            return address;
    }
    if (descriptor_ < 0 && is_too_long_) {
        line_++;
        return address_in("");
    }
    return std::nullopt;
}

std::optional<Address> AddressList::address_in(std::string line)
{
    if (line_ == 1 && line.compare(0, 3, "\xEF\xBB\xBF") == 0)
        line.erase(0, 3);
    const char *const blanks = " \t\r\f\v";
    line.erase(0, line.find_first_not_of(blanks));
    line.erase(line.find_last_not_of(blanks) + 1);
    const bool is_too_long = is_too_long_ || line.size() > max_line;
    is_too_long_ = false;
    if (!is_too_long && (line.empty() || line[0] == '#'))
        return std::nullopt;
    Address address{std::move(line), name_ + ":" + std::to_string(line_), ""};
    if (is_too_long)
        address = {"", address.place, "a line of more than " + std::to_string(max_line) + " bytes"};
    else if (address.url.find_first_of(std::string_view("\0\r", 2)) != std::string::npos)
        address.problem = "a NUL or a carriage return within a line";
    return address;
}
