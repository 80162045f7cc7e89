// Text that comes from elsewhere, made fit for a terminal, a JSON line, a given width.
#ifndef TEXT_HPP
#define TEXT_HPP

#include <cstdint>
#include <string>
#include <string_view>

/// What a terminal would obey, and what is no UTF-8, as escapes such as \x1b and \u202e: nothing from a server or a
/// list can move the cursor, change a title, turn the direction of text around or hide in it.
std::string printable(std::string_view text);

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
