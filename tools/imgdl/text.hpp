// Text that comes from elsewhere, made fit for a terminal, a JSON line, a given width.
#ifndef TEXT_HPP
#define TEXT_HPP

#include <cstdint>
#include <string>
#include <string_view>

/// What a terminal would obey, and what is no UTF-8, as escapes such as \x1b and \u202e: nothing from a server or a
/// list can move the cursor, change a title, turn the direction of text around or hide in it.
std::string printable(std::string_view text);

/// An address without user, password and fragment, and, unless it is shown in full, with … for the values of its query, as in
/// the library's messages.
std::string shown_address(std::string_view url, bool is_full = false);
/// What is no address, as far as it can be shown: where it does not parse nobody knows where a password ends, and nothing
/// before the last @ is shown, or after a ?. One that is encoded, %40, is as good.
std::string shown_nonsense(std::string_view text);
/// Where what stands behind the last @ begins, whole or encoded; 0 where there is none.
std::size_t end_of_user(std::string_view text);
/// An address without user and password, which a name of a file must not have either.
std::string address_without_user(std::string_view url);
/// As http://http://user:password@host/ does: it parses, with a host "http", and the password is a part of its path.
bool has_scheme_twice(std::string_view url);

/// The columns that printable text takes.
std::size_t columns_of(std::string_view text);
/// Its beginning, in so many columns at most; the last one is a … where something is left out.
std::string cut_to(std::string_view text, std::size_t columns);

/// "172 KiB".
std::string amount_of(std::int64_t bytes);

/// With its quotes. What is no UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

/// One character at the beginning of text that is not empty; length 1 where it is no UTF-8.
struct Character {
    char32_t value;
    std::size_t length;
    bool is_valid;
};
Character first_character(std::string_view text);
/// Control characters, those that change the direction of text or end its line, and those that nobody sees.
bool is_control(char32_t character);

#endif
