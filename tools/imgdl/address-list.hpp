// Addresses, from the command line and from a list, one at a time: the list may be longer than memory, and may come
// from somebody who is still writing it.
#ifndef ADDRESS_LIST_HPP
#define ADDRESS_LIST_HPP

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

struct Address {
    std::string url;
    std::string place;   ///< such as "list.txt:17"; empty for one of the command line
    std::string problem; ///< why the line is none; empty where it is one
};

class AddressList {
  public:
    /// Throws std::system_error where the list cannot be opened.
    AddressList(const std::vector<std::string> &addresses, const std::optional<std::string> &list);
    ~AddressList();
    AddressList(const AddressList &) = delete;
    AddressList &operator=(const AddressList &) = delete;

    /// The next one of what has been read.
    std::optional<Address> next();
    /// Nothing comes any more, whatever is read.
    bool has_ended() const { return given_.empty() && descriptor_ < 0 && buffer_.size() == used_ && !is_too_long_; }
    /// To be watched while next() has nothing; -1 where nothing will come.
    int descriptor() const { return descriptor_; }
    /// Reads what is there, waiting where nothing is. Throws std::system_error.
    void read();

  private:
    std::optional<Address> address_in(std::string line);

    std::deque<std::string> given_;
    std::string name_;
    int descriptor_ = -1;
    std::string buffer_;    // what has been read, lines before used_ are done
    std::size_t used_ = 0;
    bool is_too_long_ = false; // the rest of that line is passed over
    std::size_t line_ = 0;
};

#endif
