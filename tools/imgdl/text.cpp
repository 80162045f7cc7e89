#include "text.hpp"

#include <algorithm>
#include <cstdio>
#include <cwchar>
#include <iterator>
#include <utility>

#include <strings.h>

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

// Where the authority of an http or https address may begin: whoever reads it may take a backslash for a slash, and any
// number of either for two. npos where there is none.
static std::size_t authority_of(std::string_view url)
{
    const std::size_t colon = std::min(url.find(':'), url.size());
    const auto is = [&](std::string_view scheme) {
        return colon == scheme.size() && strncasecmp(url.data(), scheme.data(), colon) == 0;
    };
    if (is("http") || is("https"))
        return std::min(url.find_first_not_of("/\\", colon + 1), url.size());
    return url.compare(colon, 3, "://") == 0 ? colon + 3 : url.npos;
}

std::size_t end_of_user(std::string_view text)
{
    const std::size_t at = text.rfind('@'), encoded = text.rfind("%40");
    return std::max(at == text.npos ? 0 : at + 1, encoded == text.npos ? 0 : encoded + 3);
}

// Behind the user, from the host on.
static std::string_view address_from_host(std::string_view url, std::size_t authority)
{
    const std::size_t end = std::min(url.find_first_of("/\\?#", authority), url.size());
    const std::size_t at = url.substr(0, end).rfind('@');
    return url.substr(at == url.npos || at < authority ? authority : at + 1);
}

// The port that is empty is the colon of a scheme.
static bool begins_with_scheme(std::string_view address)
{
    const std::size_t end = std::min(address.find_first_of("/\\?#"), address.size());
    const std::size_t slashes = std::min(address.find_first_not_of("/\\", end), address.size()) - end;
    const std::string host(address.substr(0, std::min(address.find(':'), end)));
    const bool has_colon = host.size() + 1 == end;
    if (host.empty() || (!has_colon && host.size() != end))
        return false;
    static const char *const schemes[] = {"http", "https", "ftp", "ftps"};
    const bool is_known = std::any_of(std::begin(schemes), std::end(schemes),
                                      [&](const char *scheme) { return strcasecmp(host.c_str(), scheme) == 0; });
    return (slashes > 1 && (has_colon || is_known)) || (slashes == 1 && has_colon && is_known);
}

bool has_scheme_twice(std::string_view url)
{
    const std::size_t authority = authority_of(url);
    return authority != url.npos && begins_with_scheme(address_from_host(url, authority));
}

// Behind a second scheme nobody knows where a password ends.
std::string address_without_user(std::string_view url)
{
    const std::size_t authority = authority_of(url);
    if (authority == url.npos)
        return std::string(url);
    std::string_view rest = address_from_host(url, authority);
    if (begins_with_scheme(rest))
        rest = rest.substr(end_of_user(rest));
    return std::string(url.substr(0, authority)).append(rest);
}

std::string shown_nonsense(std::string_view text)
{
    const std::string_view rest = text.substr(end_of_user(text));
    const std::string shown = cut_to(printable(rest.substr(0, rest.find_first_of("?#"))), 60);
    return shown.empty() && !text.empty() ? "…" : shown;
}

std::string shown_address(std::string_view url, bool is_full)
{
    if (authority_of(url) == url.npos) // data: URLs and the like are their own content
        return shown_nonsense(url);
    const std::string whole = address_without_user(url), bare = whole.substr(0, whole.find('#'));
    const std::size_t question = bare.find('?');
    if (is_full || question == bare.npos)
        return printable(bare);
    std::string_view query = std::string_view(bare).substr(question + 1);
    std::string shown(bare, 0, question);
    for (char separator = '?';; separator = '&') {
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
