// What a run says while it goes on: lines, JSON, pictures, bars.
#include <cerrno>
#include <system_error>
#include <unistd.h>

#include "session.hpp"
#include "stream.hpp"
#include "text.hpp"

void Session::report(const Download &download)
{
    switch (download.ending) {
    case Ending::done: summary_.count_done(download.bytes); break;
    case Ending::failed: summary_.count_failed(download.class_name, download.failure); break;
    case Ending::skipped: summary_.count_skipped(); break;
    case Ending::cancelled: summary_.count_cancelled(); break;
    }
    if (arguments_.json)
        return write_line(json_about(download));
    // Of many, the summary counts those that were done before.
    const bool is_news = download.ending == Ending::done ||
                         (download.ending == Ending::skipped && (arguments_.verbose || !arguments_.has_many()));
    // Whoever has left knows it.
    if ((download.ending == Ending::failed && !is_output_over_) || (is_news && !arguments_.quiet))
        progress_.say(line_about(download, arguments_.verbose));
}

void Session::write_line(const std::string &line)
{
    progress_.clear(); // it may be the same terminal
    try {
        const std::string whole = line + "\n";
        if (!is_output_over_)
            write_to_stream(STDOUT_FILENO, imgdl::Bytes(whole), "standard output");
    } catch (const std::system_error &error) {
        // A line that a signal cut short is none, and no other may stand behind it.
        is_output_over_ = is_output_over_ || error.code().value() == EPIPE || error.code().value() == EINTR;
        if (!is_output_over_ && problem_.empty())
            problem_ = error.what();
        stop();
    }
}

void Session::draw_pictures()
{
    while (viewer_ && !downloads_.empty()) {
        Download &first = *downloads_.begin()->second;
        try {
            if (first.has_news && !is_output_over_)
                viewer_->draw(first.image);
            first.has_news = false;
            if (!first.has_ended)
                return;
            viewer_->end_picture();
        } catch (const std::system_error &error) {
            is_output_over_ = true;
            if (!is_stopping_)
                stop();
            if (!first.has_ended)
                return;
        }
        report(first);
        downloads_.erase(downloads_.begin());
    }
}

void Session::draw_bars()
{
    const Clock::time_point now = Clock::now();
    if (!progress_.has_bars() || !has_news_ || now - drawn_ < redraw_interval)
        return;
    drawn_ = now;
    has_news_ = false;
    std::vector<Bar> bars;
    std::int64_t bytes = summary_.bytes();
    for (const auto &[number, download] : downloads_) {
        bytes += download->received;
        if (download->received > 0)
            bars.push_back({download->name(), download->received, download->expected});
    }
    const double seconds = std::chrono::duration<double>(now - began_).count();
    const auto rate = static_cast<std::int64_t>(static_cast<double>(bytes) / (seconds > 0.1 ? seconds : 0.1));
    progress_.draw(bars, summary_.counts() + ", " + std::to_string(running_) + " running, " + amount_of(rate) + "/s");
}
