#include "shown-address.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include <strings.h>

#include "text.hpp"

namespace {

// With @, :, / and \ as plain characters where they are encoded, and where each of them begins in the address.
struct Plain {
    std::string text;
    std::vector<std::size_t> places;

    explicit Plain(std::string_view url)
    {
        for (std::size_t i = 0; i < url.size();) {
            const char character = decoded(url.substr(i, 3));
            places.push_back(i);
            text += character == 0 ? url[i] : character;
            i += character == 0 ? 1 : 3;
        }
        places.push_back(url.size());
    }

    // 0: it stands for itself.
    static char decoded(std::string_view code)
    {
        static const char *const codes[] = {"%40@", "%3A:", "%2F/", "%5C\\"};
        for (const char *known : codes)
            if (code.size() == 3 && strncasecmp(code.data(), known, 3) == 0)
                return known[3];
        return 0;
    }
};

// What stands in front of a piece between slashes.
enum class Front { name, two_slashes, scheme, two_schemes };

} // namespace

static bool is_of_web(std::string_view name)
{
    static const char *const schemes[] = {"http", "https", "ftp", "ftps"};
    return std::any_of(std::begin(schemes), std::end(schemes), [&](std::string_view scheme) {
        return name.size() == scheme.size() && strncasecmp(name.data(), scheme.data(), scheme.size()) == 0;
    });
}

static bool is_scheme(std::string_view name)
{
    const char *const characters = "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return !name.empty() && name.find_first_not_of(characters) == name.npos && name != "file";
}

// What a piece is to the one behind it.
static Front front_of(std::string_view piece, std::size_t slashes, bool is_first, bool is_host)
{
    const bool has_colon = !piece.empty() && piece.back() == ':';
    const std::string_view name = piece.substr(0, piece.size() - has_colon);
    if (is_of_web(name) && is_host)
        return Front::two_schemes;
    if (is_of_web(name) && (has_colon || slashes > 1))
        return Front::scheme;
    if (slashes < 2)
        return Front::name;
    return (is_first && piece.empty()) || (has_colon && is_scheme(name)) ? Front::scheme : Front::two_slashes;
}

// Without a port behind its colon it goes on behind the slash that ends it, or the question mark.
static bool has_password(std::string_view piece)
{
    const std::size_t colon = piece.find(':');
    return colon != piece.npos && piece[0] != '[' && piece.find_first_not_of("0123456789", colon + 1) != piece.npos;
}

// Of "http:user" the scheme and its colon, which no slash follows.
static std::size_t scheme_ahead(std::string_view piece)
{
    const std::size_t colon = piece.find(':');
    return colon != piece.npos && colon + 1 < piece.size() && is_of_web(piece.substr(0, colon)) ? colon + 1 : 0;
}

// The library's rule, for what it never parsed: behind a scheme, and two slashes at the beginning, all up to the last @ is a user;
// behind two slashes in a path only where a colon stands ahead of the @; behind two schemes nobody knows where a password ends.
std::string address_without_user(std::string_view url)
{
    const Plain plain(url);
    const std::string_view text = plain.text;
    const std::size_t last = text.rfind('@') + 1, end = std::min(text.find_first_of("?#"), text.size());
    if (last == 0 || strncasecmp(plain.text.c_str(), "data:", 5) == 0)
        return std::string(url);
    std::string shown;
    std::size_t shown_end = 0;
    const auto leave_out = [&](std::size_t from, std::size_t to) {
        shown += url.substr(plain.places[shown_end], plain.places[from] - plain.places[shown_end]);
        shown_end = to;
    };
    const bool is_of_network = is_of_web(text.substr(0, text.find(':')));
    Front front = Front::scheme;
    for (std::size_t start = 0, next = 0, number = 0; start < end; start = next, number++) {
        const std::size_t slash = std::min(text.find_first_of("/\\", start), end);
        next = std::min(text.find_first_not_of("/\\", slash), end);
        if (const std::size_t ahead = scheme_ahead(text.substr(start, slash - start))) {
            start += ahead;
            front = std::max(front, Front::scheme);
        }
        std::string_view piece = text.substr(start, slash - start);
        const std::size_t at = piece.rfind('@');
        const bool goes_on = front == Front::scheme && at == piece.npos && has_password(piece);
        if (last > start && (front == Front::two_schemes || goes_on)) {
            leave_out(start, last);
            break;
        }
        if (at != piece.npos && (front == Front::scheme || (front == Front::two_slashes && piece.find(':') < at))) {
            leave_out(start, start + at + 1);
            piece.remove_prefix(at + 1);
        }
        front = front_of(piece, next - slash, number == 0, number == 1 && is_of_network);
    }
    leave_out(text.size(), text.size());
    return shown;
}

// Whoever reads an address of the web may take a backslash for a slash, and any number of either for two.
static bool has_authority(std::string_view url)
{
    const std::size_t colon = std::min(url.find(':'), url.size());
    return is_of_web(url.substr(0, colon)) || url.compare(colon, 3, "://") == 0;
}

// Where what stands behind the last @ begins, whole or encoded; 0 where there is none.
static std::size_t end_of_user(std::string_view text)
{
    const std::size_t at = text.rfind('@'), encoded = text.rfind("%40");
    return std::max(at == text.npos ? 0 : at + 1, encoded == text.npos ? 0 : encoded + 3);
}

std::string shown_nonsense(std::string_view text)
{
    const std::string_view rest = text.substr(end_of_user(text));
    const std::string shown = cut_to(printable(rest.substr(0, rest.find_first_of("?#"))), 60);
    return shown.empty() && !text.empty() ? "…" : shown;
}

std::string shown_address(std::string_view url, bool is_full)
{
    if (!has_authority(url)) // data: URLs and the like are their own content
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
