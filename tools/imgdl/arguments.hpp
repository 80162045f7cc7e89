// What the command line says.
#ifndef ARGUMENTS_HPP
#define ARGUMENTS_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// How pictures are drawn.
enum class Show { nothing, automatic, kitty, blocks, blocks_of_256 };

struct Colour {
    std::uint8_t red, green, blue;
};

struct Arguments {
    std::vector<std::string> addresses;
    std::optional<std::string> list;   ///< "-" is standard input
    std::optional<std::string> output; ///< "-" is standard output
    std::optional<std::string> journal, cache, user_agent, ca_file, crl_file, dns_servers, proxy;
    std::vector<std::pair<std::string, std::string>> headers;
    Show show = Show::nothing;
    std::optional<Colour> background;
    std::uint32_t concurrency = 8, per_host = 0, retries = 2;
    std::chrono::milliseconds timeout{0};
    std::optional<std::chrono::milliseconds> max_stale;
    std::uint64_t max_bytes = 0;
    std::uint32_t width = 0, height = 0, max_decode_ms = 0;
    bool basic_over_http = false, deny_private = false, require_tls_1_3 = false, verify = false, json = false, full_urls = false, quiet = false, verbose = false;

    bool wants_thumbnails() const { return width > 0 || height > 0; }
    bool has_many() const { return list || addresses.size() > 1; }
    /// What a saved file depends on beside its address: its size, and whether it was seen to be a picture, which one of a
    /// certain size is anyway. "" without any of it.
    std::string kind_of_file() const;
    static constexpr const char *verified = "verified";
};

struct UsageError : std::runtime_error {
    using runtime_error::runtime_error;
};

/// Nothing where --help or --version was all that was wanted, which has been printed. Throws UsageError.
std::optional<Arguments> parse_arguments(int argc, char **argv);

/// A sentence of the library's, with the options of this program in place of what a program in C would set.
std::string in_terms_of_options(std::string sentence);

#endif
