#include "arguments.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <limits>
#include <strings.h>
#include <unistd.h>

#include "imgdl.hpp"
#include "text.hpp"

namespace {

const char usage[] =
    "usage: imgdl [OPTION]... ADDRESS...\n"
    "       imgdl [OPTION]... -i LIST\n"
    "\n"
    "Downloads pictures, many at a time.\n"
    "\n"
    "  -i, --input=LIST        addresses, one a line, from a file or standard input (-)\n"
    "  -o, --output=WHERE      a file, a folder, or standard output (-); without it, this folder\n"
    "      --show[=HOW]        draws pictures as they arrive: auto, kitty, blocks, blocks256\n"
    "      --background=RRGGBB what transparent pixels are drawn over\n"
    "      --json              one JSON line for each address on standard output\n"
    "      --full-urls         shows addresses with the values of their queries\n"
    "      --journal=FILE      notes what is done, and continues where it stopped\n"
    "  -j, --jobs=N            transfers at a time (8)\n"
    "      --per-host=N        of these, to one host (as many as -j)\n"
    "      --retries=N         how often transient failures are retried (2)\n"
    "      --timeout=SECONDS   for each address, retries included (none; 15 s without a byte end a transfer)\n"
    "      --max-size=BYTES    of a body; K, M and G may follow\n"
    "      --max-decode=SECONDS  of CPU time for each picture (10)\n"
    "  -H, --header=LINE       'Name: value' to send\n"
    "  -A, --user-agent=TEXT\n"
    "      --cacert=FILE       PEM certificates to trust\n"
    "      --crlfile=FILE      PEM revocation lists, of all authorities that servers have\n"
    "      --tlsv1.3           TLS 1.3 at least, in place of 1.2\n"
    "      --proxy=URL         in place of the environment's; empty: none\n"
    "      --dns-servers=LIST  asks these for names: 192.0.2.1,[2001:db8::1]:5353\n"
    "      --deny-private      refuses private addresses, this machine's own among them\n"
    "      --basic-over-http   sends a URL's password over http as Basic, too: readable on the way\n"
    "      --cache=FOLDER      keeps answers there, and uses them; continues what broke off\n"
    "      --max-stale=SECONDS of these, how long after their freshness they may be used; 0: not at all\n"
    "      --verify            decodes each picture: what is none, or broken, has failed (without it everything that\n"
    "                          comes is saved)\n"
    "      --width=N, --height=N  saves a PNG that fits into this box in its place\n"
    "  -q, --quiet             says nothing but errors\n"
    "  -v, --verbose           says more\n"
    "  -h, --help\n"
    "      --version\n"
    "\n"
    "Status: 0 all is well, 1 something failed, 2 wrong usage, 3 this machine (list, output, journal),\n"
    "        4 all that failed did so in the network, 5 by the server's answer, 6 as no usable picture.\n";

enum { show_option = 256, background_option, json_option, full_urls_option, journal_option, per_host_option, retries_option,
       timeout_option, max_size_option, cacert_option, basic_over_http_option, cache_option, max_stale_option, verify_option,
       width_option, height_option, crlfile_option, tls_1_3_option, proxy_option, dns_servers_option, deny_private_option,
       max_decode_option, version_option };

const option long_options[] = {
    {"input", required_argument, nullptr, 'i'},
    {"output", required_argument, nullptr, 'o'},
    {"show", optional_argument, nullptr, show_option},
    {"background", required_argument, nullptr, background_option},
    {"json", no_argument, nullptr, json_option},
    {"full-urls", no_argument, nullptr, full_urls_option},
    {"journal", required_argument, nullptr, journal_option},
    {"jobs", required_argument, nullptr, 'j'},
    {"per-host", required_argument, nullptr, per_host_option},
    {"retries", required_argument, nullptr, retries_option},
    {"timeout", required_argument, nullptr, timeout_option},
    {"max-size", required_argument, nullptr, max_size_option},
    {"header", required_argument, nullptr, 'H'},
    {"user-agent", required_argument, nullptr, 'A'},
    {"cacert", required_argument, nullptr, cacert_option},
    {"crlfile", required_argument, nullptr, crlfile_option},
    {"tlsv1.3", no_argument, nullptr, tls_1_3_option},
    {"proxy", required_argument, nullptr, proxy_option},
    {"dns-servers", required_argument, nullptr, dns_servers_option},
    {"deny-private", no_argument, nullptr, deny_private_option},
    {"max-decode", required_argument, nullptr, max_decode_option},
    {"basic-over-http", no_argument, nullptr, basic_over_http_option},
    {"cache", required_argument, nullptr, cache_option},
    {"max-stale", required_argument, nullptr, max_stale_option},
    {"verify", no_argument, nullptr, verify_option},
    {"width", required_argument, nullptr, width_option},
    {"height", required_argument, nullptr, height_option},
    {"quiet", no_argument, nullptr, 'q'},
    {"verbose", no_argument, nullptr, 'v'},
    {"help", no_argument, nullptr, 'h'},
    {"version", no_argument, nullptr, version_option},
    {nullptr, 0, nullptr, 0},
};

[[noreturn]] void refuse(const char *option, const std::string &why)
{
    throw UsageError(std::string(option) + ": " + why);
}

std::uint64_t number(const char *option, const char *text, std::uint64_t least, std::uint64_t most)
{
    char *end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value < least || value > most)
        refuse(option, "'" + printable(text) + "' is not a number from " + std::to_string(least) + " to " +
                           std::to_string(most));
    return value;
}

std::uint64_t size_in_bytes(const char *option, std::string text)
{
    unsigned shift = 0;
    const std::size_t unit = text.empty() ? std::string::npos : std::string("KMG").find(text.back());
    if (unit != std::string::npos) {
        shift = 10 * (static_cast<unsigned>(unit) + 1);
        text.pop_back();
    }
    return number(option, text.c_str(), 1, std::numeric_limits<std::int64_t>::max() >> shift) << shift;
}

std::chrono::milliseconds seconds(const char *option, const char *text, double least = 0.001)
{
    char *end = nullptr;
    const double value = std::strtod(text, &end);
    if (std::strspn(text, "0123456789.") != std::strlen(text) || end == text || *end || value < least || value > 4e6)
        refuse(option, "'" + printable(text) + "' is not a number of seconds from " + (least > 0 ? "0.001" : "0") +
                           " to 4000000");
    return std::chrono::milliseconds(static_cast<std::int64_t>(value * 1000 + 0.5));
}

Colour colour(const char *option, const char *text)
{
    const char *digits = text[0] == '#' ? text + 1 : text;
    if (std::strlen(digits) != 6 || std::strspn(digits, "0123456789abcdefABCDEF") != 6)
        refuse(option, "'" + printable(text) + "' is not a colour such as 20252b");
    const unsigned long value = std::strtoul(digits, nullptr, 16);
    return {static_cast<std::uint8_t>(value >> 16), static_cast<std::uint8_t>(value >> 8),
            static_cast<std::uint8_t>(value)};
}

Show show_as(const char *option, const char *how)
{
    static const std::pair<const char *, Show> known[] = {{"auto", Show::automatic}, {"kitty", Show::kitty},
                                                          {"blocks", Show::blocks}, {"blocks256", Show::blocks_of_256}};
    for (const auto &[name, show] : known)
        if (!std::strcmp(name, how ? how : "auto"))
            return show;
    refuse(option, "'" + printable(how) + "' is none of auto, kitty, blocks, blocks256");
}

// The line is not repeated: it may be a password.
std::pair<std::string, std::string> header(const char *option, const std::string &line)
{
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon == 0)
        refuse(option, "'Name: value' is wanted");
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    return {line.substr(0, colon), value == std::string::npos ? "" : line.substr(value)};
}

const char *not_empty(const char *option, const char *text)
{
    if (!*text)
        refuse(option, "it is empty");
    return text;
}

// Of which there is one: a second one would be passed over without a word.
void give(std::optional<std::string> &place, const char *option, const char *text)
{
    if (place)
        refuse(option, "it is given twice");
    place = not_empty(option, text);
}

// What getopt_long refused. optopt is the letter that is none, the value of an option that was given a value and takes
// none, or 0.
UsageError unknown(const char *argument)
{
    const std::string given(argument, std::strcspn(argument, "="));
    std::size_t beginning = 0;
    for (const option &known : long_options) {
        if (known.name && optopt && known.val == optopt)
            return UsageError("--" + std::string(known.name) + " takes no value");
        beginning += known.name && given.size() > 2 && std::string(known.name).rfind(given.substr(2), 0) == 0;
    }
    if (optopt)
        return UsageError(printable("-" + std::string(1, static_cast<char>(optopt))) + " is no option");
    return UsageError(printable(given) + (beginning > 1 ? " begins several options" : " is no option"));
}

void check(const Arguments &arguments)
{
    if (arguments.addresses.empty() && !arguments.list)
        throw UsageError("no address is given");
    if (arguments.has_many() && arguments.output == "-")
        refuse("-o", "standard output takes one address alone");
    if (arguments.output == "-" && isatty(STDOUT_FILENO))
        refuse("-o", "standard output is a terminal: --show draws there");
    if (arguments.json && arguments.output == "-")
        refuse("--json", "standard output cannot have the picture, too");
    if (arguments.json && arguments.show != Show::nothing)
        refuse("--json", "standard output cannot have drawn pictures, too");
    if (arguments.show != Show::nothing && arguments.output == "-")
        refuse("--show", "standard output cannot have the picture's file, too");
    if (arguments.show != Show::nothing && arguments.wants_thumbnails())
        refuse("--show", "it has a size of its own, and takes no --width or --height");
    if (arguments.max_stale && !arguments.cache)
        refuse("--max-stale", "it is about --cache, which is not given");
    if (arguments.deny_private && arguments.proxy && !arguments.proxy->empty())
        refuse("--deny-private", "not behind a proxy, which --proxy names");
    const auto is_host = [](const auto &header) { return !strcasecmp(header.first.c_str(), "Host"); };
    if (std::count_if(arguments.headers.begin(), arguments.headers.end(), is_host) > 1)
        refuse("-H", "a request has one Host");
    if (arguments.verbose && arguments.quiet)
        refuse("-q", "not together with -v");
}

} // namespace

std::string Arguments::kind_of_file() const
{
    if (wants_thumbnails())
        return std::to_string(width) + "x" + std::to_string(height);
    return verify ? verified : "";
}

std::optional<Arguments> parse_arguments(int argc, char **argv)
{
    Arguments arguments;
    opterr = 0;
    int index = 0;
    for (int letter; (letter = getopt_long(argc, argv, ":i:o:j:H:A:qvh", long_options, &index)) != -1;) {
        // A short option leaves index as it was.
        std::string name = "-" + std::string(1, static_cast<char>(letter));
        for (const option &known : long_options)
            if (known.name && known.val == letter)
                name = letter < 256 ? name : std::string("--") + known.name;
        const char *const option = name.c_str();
        switch (letter) {
        case 'i': give(arguments.list, option, optarg); break;
        case 'o': give(arguments.output, option, optarg); break;
        case 'j': arguments.concurrency = static_cast<std::uint32_t>(number(option, optarg, 1, 1000)); break;
        case 'H': arguments.headers.push_back(header(option, optarg)); break;
        case 'A': arguments.user_agent = optarg; break;
        case 'q': arguments.quiet = true; break;
        case 'v': arguments.verbose = true; break;
        case show_option: arguments.show = show_as(option, optarg); break;
        case background_option: arguments.background = colour(option, optarg); break;
        case json_option: arguments.json = true; break;
        case full_urls_option: arguments.full_urls = true; break;
        case journal_option: give(arguments.journal, option, optarg); break;
        case per_host_option: arguments.per_host = static_cast<std::uint32_t>(number(option, optarg, 1, 1000)); break;
        case retries_option: arguments.retries = static_cast<std::uint32_t>(number(option, optarg, 0, 1000)); break;
        case timeout_option: arguments.timeout = seconds(option, optarg); break;
        case max_size_option: arguments.max_bytes = size_in_bytes(option, optarg); break;
        case cacert_option: arguments.ca_file = not_empty(option, optarg); break;
        case crlfile_option: arguments.crl_file = not_empty(option, optarg); break;
        case tls_1_3_option: arguments.require_tls_1_3 = true; break;
        case proxy_option: arguments.proxy = optarg; break;
        case dns_servers_option: arguments.dns_servers = not_empty(option, optarg); break;
        case deny_private_option: arguments.deny_private = true; break;
        case max_decode_option:
            arguments.max_decode_ms = static_cast<std::uint32_t>(seconds(option, optarg).count());
            break;
        case basic_over_http_option: arguments.basic_over_http = true; break;
        case cache_option: arguments.cache = not_empty(option, optarg); break;
        case max_stale_option: arguments.max_stale = seconds(option, optarg, 0); break;
        case verify_option: arguments.verify = true; break;
        case width_option: arguments.width = static_cast<std::uint32_t>(number(option, optarg, 1, 65535)); break;
        case height_option: arguments.height = static_cast<std::uint32_t>(number(option, optarg, 1, 65535)); break;
        case 'h': std::fputs(usage, stdout); return std::nullopt;
        case version_option: std::printf("imgdl %s\n", imgdl_version_string()); return std::nullopt;
        case ':': throw UsageError(printable(argv[optind - 1]) + " needs a value");
        default: throw unknown(argv[optind - 1]);
        }
    }
    arguments.addresses.assign(argv + optind, argv + argc);
    check(arguments);
    return arguments;
}

std::string in_terms_of_options(std::string sentence)
{
    // Sentences about a configuration begin with its field. Elsewhere such a word may be a part of an address.
    static constexpr std::pair<std::string_view, std::string_view> fields[] = {
        {"ca_file", "--cacert"}, {"crl_file", "--crlfile"}, {"dns_servers", "--dns-servers"}};
    for (const auto &[field, option] : fields)
        if (sentence.compare(0, field.size(), field) == 0)
            return sentence.replace(0, field.size(), option);
    constexpr std::string_view flag = "with BASIC_OVER_HTTP alone";
    if (sentence.size() > flag.size() && sentence.compare(sentence.size() - flag.size(), flag.size(), flag) == 0)
        sentence.replace(sentence.size() - flag.size(), flag.size(), "with --basic-over-http alone");
    return sentence;
}
