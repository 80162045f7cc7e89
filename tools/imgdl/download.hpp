// One address, from its line to its report.
#ifndef DOWNLOAD_HPP
#define DOWNLOAD_HPP

#include <cstdint>
#include <optional>
#include <string>

#include "address-list.hpp"
#include "imgdl.hpp"
#include "summary.hpp"

enum class Ending { done, failed, skipped, cancelled };

struct Download {
    std::uint64_t number; ///< among the addresses, from 1
    Address address;
    bool is_nonsense = false; ///< its line is no address: where a password ends in it nobody knows
    std::string shown; ///< the address as this run shows it
    imgdl::Token token;
    std::int64_t received = 0, expected = -1;
    std::optional<std::string> disposition;
    imgdl_cache_outcome cache_outcome = IMGDL_CACHE_OUTCOME_NETWORK;
    imgdl::Image image; ///< the newest one, where pictures are drawn
    bool has_news = false; ///< an image that is not drawn

    bool has_ended = false;
    Ending ending = Ending::failed;
    ExitCode failure = ExitCode::ok;
    std::string class_name; ///< of the failure
    std::string message;    ///< begins with the address, as the library's own do
    std::string path; ///< of its file, also where that was done before; "" without one
    std::int32_t http_status = 0;
    std::int64_t bytes = 0, total_ns = 0;
    std::uint32_t width = 0, height = 0;
    imgdl_format format = IMGDL_FORMAT_UNKNOWN;
    std::string content_type;

    /// A safe name for its file, by what the server says, else by its address.
    std::string name() const;
};

/// A line about its end, for a person.
std::string line_about(const Download &download, bool is_verbose);
/// The same as JSON, without the end of the line.
std::string json_about(const Download &download);

#endif
