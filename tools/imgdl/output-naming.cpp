#include "output-naming.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <initializer_list>
#include <strings.h>
#include <utility>

#include "shown-address.hpp"
#include "text.hpp"

namespace {

const std::size_t max_name = 200;

struct Kind {
    imgdl_format format;
    std::string_view name;
    std::initializer_list<std::string_view> extensions; // the first one is ours
};

const Kind kinds[] = {
    {IMGDL_FORMAT_JPEG, "jpeg", {"jpg", "jpeg", "jpe", "jfif"}},
    {IMGDL_FORMAT_PNG, "png", {"png", "apng"}},
    {IMGDL_FORMAT_WEBP, "webp", {"webp"}},
    {IMGDL_FORMAT_GIF, "gif", {"gif"}},
};

bool is_same(std::string_view one, std::string_view other)
{
    return one.size() == other.size() && strncasecmp(one.data(), other.data(), one.size()) == 0;
}

int digit(char byte)
{
    return byte >= '0' && byte <= '9' ? byte - '0'
           : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
           : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

std::string percent_decoded(std::string_view text)
{
    std::string result;
    for (std::size_t i = 0; i < text.size(); i++) {
        if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
            result += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
            i += 2;
        } else {
            result += text[i];
        }
    }
    return result;
}

std::string_view trimmed(std::string_view text)
{
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

// A token, or what stands between quotes; text goes on behind it.
std::string parameter_value(std::string_view &text)
{
    std::string value;
    if (text.empty() || text.front() != '"') {
        const std::size_t end = std::min(text.find(';'), text.size());
        value = trimmed(text.substr(0, end));
        text.remove_prefix(end);
        return value;
    }
    text.remove_prefix(1);
    while (!text.empty() && text.front() != '"') {
        if (text.front() == '\\' && text.size() > 1)
            text.remove_prefix(1);
        value += text.front();
        text.remove_prefix(1);
    }
    text.remove_prefix(std::min(text.find(';'), text.size()));
    return value;
}

// Where the extension's dot is; npos where there is none.
std::size_t extension_of(std::string_view name)
{
    const std::size_t dot = name.rfind('.');
    return dot == 0 || dot == name.npos || name.size() - dot > 6 ? name.npos : dot;
}

// Not within a character.
void shorten(std::string &name, std::size_t size)
{
    if (name.size() <= size)
        return;
    while (size > 0 && (static_cast<unsigned char>(name[size]) & 0xC0) == 0x80)
        size--;
    name.resize(size);
}

// As long as a name may be with its ending, which stays whole.
std::string joined(std::string stem, std::string_view ending)
{
    shorten(stem, max_name - ending.size());
    return stem.append(ending);
}

// A blank or a dot that nobody sees at the end.
void trim_end(std::string &name)
{
    while (!name.empty() && (name.back() == '.' || name.back() == ' '))
        name.pop_back();
}

bool is_plain(const Character &character)
{
    return character.is_valid && !is_control(character.value) &&
           !(character.value < 0x80 && std::strchr("/\\:*?\"<>|", static_cast<int>(character.value)));
}

} // namespace

imgdl_format format_of(imgdl::Bytes bytes)
{
    const std::string_view text = bytes.text();
    if (text.substr(0, 3) == "\xFF\xD8\xFF")
        return IMGDL_FORMAT_JPEG;
    if (text.substr(0, 8) == "\x89PNG\r\n\x1A\n")
        return IMGDL_FORMAT_PNG;
    if (text.substr(0, 6) == "GIF87a" || text.substr(0, 6) == "GIF89a")
        return IMGDL_FORMAT_GIF;
    if (text.size() >= 12 && text.substr(0, 4) == "RIFF" && text.substr(8, 4) == "WEBP")
        return IMGDL_FORMAT_WEBP;
    return IMGDL_FORMAT_UNKNOWN;
}

std::string_view format_name(imgdl_format format)
{
    for (const Kind &kind : kinds)
        if (kind.format == format)
            return kind.name;
    return "";
}

std::optional<std::string> name_in_disposition(std::string_view value)
{
    std::optional<std::string> plain, extended;
    value.remove_prefix(std::min(value.find(';'), value.size()));
    while (!value.empty()) {
        value.remove_prefix(1); // the semicolon
        const std::size_t equals = value.find('=');
        if (equals == value.npos)
            break;
        const std::string_view name = trimmed(value.substr(0, equals));
        value = value.substr(equals + 1);
        while (!value.empty() && (value.front() == ' ' || value.front() == '\t'))
            value.remove_prefix(1);
        const std::string text = parameter_value(value);
        if (is_same(name, "filename")) {
            plain = text;
        } else if (is_same(name, "filename*")) {
            const std::size_t language = text.find('\''), start = text.find('\'', language + 1);
            if (language != text.npos && start != text.npos && is_same(text.substr(0, language), "utf-8"))
                extended = percent_decoded(text.substr(start + 1));
        }
    }
    return extended ? extended : plain;
}

std::string name_in_address(std::string_view address)
{
    const std::string bare = address_without_user(address);
    const std::string_view url = std::string_view(bare).substr(0, bare.find_first_of("?#"));
    const std::size_t scheme = url.find("://");
    if (scheme == url.npos)
        return "";
    const std::size_t path = url.find('/', scheme + 3);
    return path == url.npos ? "" : percent_decoded(url.substr(url.rfind('/') + 1));
}

std::string safe_name(std::string_view name)
{
    name = name.substr(name.find_last_of("/\\") + 1);
    std::string result;
    while (!name.empty()) {
        const Character character = first_character(name);
        result += is_plain(character) ? name.substr(0, character.length) : std::string_view("_");
        name.remove_prefix(character.length);
    }
    trim_end(result);
    while (!result.empty() && result.front() == ' ')
        result.erase(0, 1);
    // Neither hidden, nor an option of the next program that is given it.
    if (!result.empty() && (result.front() == '.' || result.front() == '-'))
        result.front() = '_';
    if (result.size() > max_name) {
        const std::size_t dot = std::min(extension_of(result), result.size());
        result = joined(result.substr(0, dot), result.substr(dot));
        trim_end(result); // where it was cut
    }
    return result.empty() ? "picture" : result;
}

bool is_safe_name(std::string_view name)
{
    if (name.empty() || name.size() > NAME_MAX || std::strchr(" .-", name.front()))
        return false;
    while (!name.empty()) {
        const Character character = first_character(name);
        if (!is_plain(character))
            return false;
        name.remove_prefix(character.length);
    }
    return true;
}

std::string with_extension(std::string name, imgdl_format format)
{
    const std::size_t dot = extension_of(name);
    const std::string_view extension = dot == name.npos ? std::string_view() : std::string_view(name).substr(dot + 1);
    const Kind *wanted = nullptr;
    bool is_of_another = false;
    for (const Kind &kind : kinds) {
        const bool is_named = std::any_of(kind.extensions.begin(), kind.extensions.end(),
                                          [&](std::string_view known) { return is_same(known, extension); });
        if (kind.format == format && is_named)
            return name;
        if (kind.format == format)
            wanted = &kind;
        is_of_another = is_of_another || is_named;
    }
    if (!wanted)
        return name;
    if (is_of_another)
        name.resize(dot);
    return joined(std::move(name), "." + std::string(*wanted->extensions.begin()));
}

std::string_view format_named_by(std::string_view name)
{
    const std::size_t dot = extension_of(name);
    const std::string_view extension = dot == name.npos ? std::string_view() : name.substr(dot + 1);
    for (const Kind &kind : kinds)
        for (const std::string_view known : kind.extensions)
            if (is_same(known, extension))
                return kind.name;
    return "";
}

std::string numbered(const std::string &name, unsigned number)
{
    if (number == 0)
        return name;
    const std::size_t dot = std::min(extension_of(name), name.size());
    return joined(name.substr(0, dot), "-" + std::to_string(number) + name.substr(dot));
}
