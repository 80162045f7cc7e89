#include "summary.hpp"

#include <algorithm>
#include <cstdio>

#include "text.hpp"

ExitCode kind_of(imgdl_status code, bool has_body)
{
    switch (code) {
    case IMGDL_ERROR_INVALID_STATUS:
    case IMGDL_ERROR_INVALID_RESPONSE:
    case IMGDL_ERROR_INVALID_CONTENT_TYPE:
    case IMGDL_ERROR_NOT_MODIFIED:
    case IMGDL_ERROR_TOO_MANY_REDIRECTS:
    case IMGDL_ERROR_REDIRECT_REFUSED:
    case IMGDL_ERROR_CONTENT_ENCODING:
    case IMGDL_ERROR_HEADER_LIMIT:
        return ExitCode::server;
    case IMGDL_ERROR_BAD_IMAGE_DATA:
        return ExitCode::picture;
    case IMGDL_ERROR_FLOOD:
        return ExitCode::network;
    case IMGDL_ERROR_TRUNCATED:
        return has_body ? ExitCode::picture : ExitCode::network;
    case IMGDL_ERROR_OUT_OF_MEMORY:
        return ExitCode::machine;
    default:
        break;
    }
    // The header's families: 2200 the network, 2300 limits, of pictures but for those above. The others, such as an invalid address, have no kind.
    return code >= 2200 && code < 2300 ? ExitCode::network : code >= 2300 && code < 2400 ? ExitCode::picture
                                                                                        : ExitCode::some_failed;
}

void Summary::count_failed(const std::string &class_name, ExitCode kind)
{
    failed_++;
    classes_[class_name]++;
    kinds_[kind]++;
}

std::string Summary::counts() const
{
    std::string text = std::to_string(done_) + " done (" + amount_of(bytes_) + ")";
    const auto add = [&](std::uint64_t count, const char *what) {
        text += count > 0 ? ", " + std::to_string(count) + what : "";
    };
    add(failed_, " failed");
    add(skipped_, " done before");
    add(cancelled_, " cancelled");
    return text;
}

std::vector<std::string> Summary::lines() const
{
    std::vector<std::pair<std::string, std::uint64_t>> classes(classes_.begin(), classes_.end());
    std::stable_sort(classes.begin(), classes.end(),
                     [](const auto &one, const auto &other) { return one.second > other.second; });
    const char *const what = ended() == 1 ? " address: " : " addresses: ";
    std::vector<std::string> lines = {std::to_string(ended()) + what + counts()};
    for (const auto &[name, count] : classes) {
        char text[32];
        std::snprintf(text, sizeof text, "%8llu  ", static_cast<unsigned long long>(count));
        lines.push_back(text + name);
    }
    return lines;
}

ExitCode Summary::exit_code() const
{
    if (kinds_.empty())
        return ExitCode::ok;
    if (kinds_.count(ExitCode::machine))
        return ExitCode::machine;
    return kinds_.size() == 1 ? kinds_.begin()->first : ExitCode::some_failed;
}
