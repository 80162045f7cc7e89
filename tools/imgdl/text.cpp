#include "text.hpp"

#include <cstdio>
#include <cwchar>

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
    return value < 0x20 || (value >= 0x7F && value < 0xA0) || value == 0x061C || value == 0x200E || value == 0x200F ||
           (value >= 0x2028 && value <= 0x202E) || (value >= 0x2066 && value <= 0x2069) || value == 0xFEFF;
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

std::string shown_address(std::string_view url, bool is_whole)
{
    url = url.substr(0, url.find('#'));
    const std::size_t question = url.find('?');
    std::string_view query = question == url.npos ? std::string_view() : url.substr(question + 1);
    std::string shown(url.substr(0, question));
    const std::size_t scheme = shown.find("://");
    // data: URLs and the like are their own content; "http:/user:password@host" is no address, and a secret all the same.
    if (scheme == shown.npos)
        return cut_to(printable(shown.substr(shown.rfind('@') + 1)), 60);
    const std::size_t authority = scheme + 3;
    const std::size_t path = shown.find_first_of("/\\", authority);
    const std::size_t at = std::string_view(shown).substr(0, path).rfind('@');
    if (at != shown.npos && at >= authority)
        shown.erase(authority, at + 1 - authority);
    if (is_whole && question != url.npos)
        return printable(shown + std::string(url.substr(question)));
    for (char separator = '?'; question != url.npos; separator = '&') {
        const std::string_view item = query.substr(0, query.find('&'));
        shown += separator;
        // An item without a value may be a secret as a whole.
        const std::size_t equals = item.find('=');
        shown += equals == item.npos ? "" : std::string(item.substr(0, equals + 1));
        shown += item.empty() || equals + 1 == item.size() ? "" : "…";
        if (item.size() == query.size())
            break;
        query.remove_prefix(item.size() + 1);
    }
    return printable(shown);
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
        char escape[8];
        if (!character.is_valid) {
            result += "\xEF\xBF\xBD";
        } else if (character.value == '"' || character.value == '\\') {
            result += '\\';
            result += static_cast<char>(character.value);
        } else if (is_control(character.value)) { // all of them lie below U+10000
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(character.value));
            result += escape;
        } else {
            result += text.substr(0, character.length);
        }
        text.remove_prefix(character.length);
    }
    return result + '"';
}
