// Addresses as they may be shown and noted, also those that the library never takes.
#ifndef SHOWN_ADDRESS_HPP
#define SHOWN_ADDRESS_HPP

#include <string>
#include <string_view>

/// An address without user, password and fragment, and, unless it is shown in full, with … for the values of its query, as in
/// the library's messages.
std::string shown_address(std::string_view url, bool is_full = false);
/// What is no address, as far as it can be shown: where it does not parse nobody knows where a password ends, and nothing
/// before the last @ is shown, or after a ?. One that is encoded, %40, is as good.
std::string shown_nonsense(std::string_view text);
/// An address without user and password, also without those of an address in its path; a name of a file must not have them
/// either.
std::string address_without_user(std::string_view url);

#endif
