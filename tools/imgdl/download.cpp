#include "download.hpp"

#include <cstdio>

#include "output-naming.hpp"
#include "text.hpp"

static const char *outcome_name(imgdl_cache_outcome outcome)
{
    static const char *const names[] = {"network", "hit", "validated", "stale", "resumed"};
    return outcome < 5 ? names[outcome] : "network";
}

std::string Download::name() const
{
    const std::string said = disposition ? name_in_disposition(*disposition).value_or("") : "";
    return safe_name(said.empty() ? name_in_address(address.url) : said);
}

std::string line_about(const Download &download, bool is_verbose)
{
    if (download.ending == Ending::failed || download.ending == Ending::cancelled) {
        const std::string place = download.address.place.empty() ? "" : download.address.place + ": ";
        return "imgdl: " + place + printable(download.message);
    }
    std::string line = printable(download.path.empty() ? download.shown : download.path);
    if (download.ending == Ending::skipped)
        return line + "  done before" + (is_verbose && !download.path.empty() ? "  " + download.shown : "");
    line += "  " + amount_of(download.bytes);
    if (download.width > 0)
        line += "  " + std::to_string(download.width) + "x" + std::to_string(download.height);
    if (download.format != IMGDL_FORMAT_UNKNOWN)
        line += "  " + std::string(format_name(download.format));
    if (is_verbose) {
        char text[64];
        std::snprintf(text, sizeof text, "  %.0f ms  ", static_cast<double>(download.total_ns) / 1e6);
        line += text + std::string(outcome_name(download.cache_outcome)) + "  " + download.shown;
    }
    return line;
}

std::string json_about(const Download &download)
{
    static const char *const endings[] = {"done", "failed", "skipped", "cancelled"};
    std::string json = "{\"number\":" + std::to_string(download.number);
    const auto text = [&](const char *name, const std::string &value) {
        if (!value.empty())
            json += std::string(",\"") + name + "\":" + json_string(value);
    };
    const auto number = [&](const char *name, std::int64_t value) {
        json += std::string(",\"") + name + "\":" + std::to_string(value);
    };
    text("place", download.address.place);
    text("url", download.shown);
    text("result", endings[static_cast<int>(download.ending)]);
    if (download.ending == Ending::failed || download.ending == Ending::cancelled) {
        text("error", download.address.problem.empty()
                          ? download.class_name.substr(0, download.class_name.find(' '))
                          : imgdl_error_name(IMGDL_ERROR_INVALID_URL));
        text("message", download.message);
    }
    if (download.http_status > 0)
        number("status", download.http_status);
    text("content_type", download.content_type);
    if (download.ending == Ending::done || download.ending == Ending::skipped)
        text("path", download.path);
    if (download.ending == Ending::done) {
        number("bytes", download.bytes);
        text("format", std::string(format_name(download.format)));
        if (download.width > 0) {
            number("width", download.width);
            number("height", download.height);
        }
        text("from", outcome_name(download.cache_outcome));
    }
    if (download.total_ns > 0)
        number("milliseconds", download.total_ns / 1000000);
    return json + "}";
}
