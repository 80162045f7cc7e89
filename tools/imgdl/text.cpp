#include "text.hpp"

#include <algorithm>
#include <cstdio>
#include <cwchar>
#include <iterator>
#include <utility>

Character first_character(std::string_view text)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80)
        return {first, 1, true};
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < length)
        return {first, 1, false};
    char32_t value = first & (0xFFu >> (length + 1));
    for (std::size_t i = 1; i < length; i++) {
        if ((byte(i) & 0xC0) != 0x80)
            return {first, 1, false};
        value = value << 6 | (byte(i) & 0x3Fu);
    }
    static const char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_valid = value >= least[length] && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
    return is_valid ? Character{value, length, true} : Character{first, 1, false};
}

bool is_control(char32_t value)
{
    // Unicode 16: the general categories Cc, Zl and Zp, Cf but for the signs that are drawn, and Default_Ignorable_Code_Point.
    // A braille cell without dots is as blank.
    static constexpr std::pair<char32_t, char32_t> ranges[] = {
        {0x00, 0x1F}, {0x7F, 0x9F}, {0xAD, 0xAD}, {0x034F, 0x034F}, {0x061C, 0x061C}, {0x115F, 0x1160}, {0x17B4, 0x17B5},
        {0x180B, 0x180F}, {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F}, {0x2800, 0x2800}, {0x3164, 0x3164},
        {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},
        {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};
    return std::any_of(std::begin(ranges), std::end(ranges),
                       [value](const auto &range) { return value >= range.first && value <= range.second; });
}

std::string printable(std::string_view text)
{
    std::string result;
    while (!text.empty()) {
        const Character character = first_character(text);
        char escape[16];
        if (character.is_valid && !is_control(character.value)) {
            result += text.substr(0, character.length);
        } else {
            const bool is_short = !character.is_valid || character.value < 0x80;
            std::snprintf(escape, sizeof escape, is_short ? "\\x%02x" : "\\u%04x",
                          static_cast<unsigned>(character.value));
            result += escape;
        }
        text.remove_prefix(character.length);
    }
    return result;
}

static std::size_t width_of(char32_t value)
{
    const int width = wcwidth(static_cast<wchar_t>(value));
    return width < 0 ? 1 : static_cast<std::size_t>(width);
}

std::size_t columns_of(std::string_view text)
{
    std::size_t columns = 0;
    while (!text.empty()) {
        const Character character = first_character(text);
        columns += width_of(character.value);
        text.remove_prefix(character.length);
    }
    return columns;
}

std::string cut_to(std::string_view text, std::size_t columns)
{
    if (columns_of(text) <= columns)
        return std::string(text);
    std::string result;
    std::size_t used = 1;
    while (columns > 0 && !text.empty()) {
        const Character character = first_character(text);
        used += width_of(character.value);
        if (used > columns)
            break;
        result += text.substr(0, character.length);
        text.remove_prefix(character.length);
    }
    return columns > 0 ? result + "…" : result;
}

std::string amount_of(std::int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double amount = static_cast<double>(bytes);
    unsigned unit = 0;
    for (; amount >= 1024 && unit < 4; unit++)
        amount /= 1024;
    char text[32];
    std::snprintf(text, sizeof text, amount < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", amount, units[unit]);
    return text;
}

std::string json_string(std::string_view text)
{
    std::string result = "\"";
    while (!text.empty()) {
        const Character character = first_character(text);
        char escape[16];
        if (!character.is_valid) {
            result += "\xEF\xBF\xBD";
        } else if (character.value == '"' || character.value == '\\') {
            result += '\\';
            result += static_cast<char>(character.value);
        } else if (is_control(character.value)) {
            // What lies above U+FFFF is two of UTF-16.
            const unsigned above = static_cast<unsigned>(character.value) - 0x10000u;
            if (character.value < 0x10000)
                std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(character.value));
            else
                std::snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xD800u + (above >> 10), 0xDC00u + (above & 0x3FFu));
            result += escape;
        } else {
            result += text.substr(0, character.length);
        }
        text.remove_prefix(character.length);
    }
    return result + '"';
}
