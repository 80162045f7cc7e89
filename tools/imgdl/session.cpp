#include "session.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <poll.h>
#include <system_error>
#include <unistd.h>

#include "descriptors.hpp"
#include "shown-address.hpp"
#include "signals.hpp"
#include "text.hpp"

using std::chrono::milliseconds;

static std::system_error from_errno(const std::string &what)
{
    return std::system_error(errno, std::generic_category(), what);
}

Session::Session(const Arguments &arguments)
    : arguments_(arguments), jobs_(arguments.concurrency), list_(arguments.addresses, arguments.list), output_(arguments),
      progress_(!arguments.quiet && arguments.show == Show::nothing), downloader_(config())
{
    if (arguments.journal)
        journal_.emplace(*arguments.journal);
    limit_jobs();
    if (arguments.show != Show::nothing) {
        viewer_.emplace(arguments);
        decode_ = viewer_->decode_options();
    }
    if (arguments.wants_thumbnails()) {
        decode_.target_width = arguments.width;
        decode_.target_height = arguments.height;
        decode_.colour = IMGDL_COLOUR_SRGB;
    }
    decode_.max_decode_ms = arguments.max_decode_ms;
    // Judged here, before any address is taken: what is wrong is the command line.
    for (const auto &[name, value] : arguments.headers)
        downloader_.set_header(name, value);
}

// More would be connections that no descriptor is left for.
void Session::limit_jobs()
{
    const std::uint32_t fit = jobs_that_fit();
    if (fit >= jobs_)
        return;
    if (!arguments_.quiet)
        progress_.say("imgdl: " + std::to_string(fit) + (fit == 1 ? " transfer" : " transfers") + " at a time, not " +
                      std::to_string(jobs_) + ": this process may have no more descriptors (ulimit -n)");
    jobs_ = fit;
    downloader_.set_max_concurrent(jobs_);
}

imgdl::Config Session::config()
{
    imgdl::Config config;
    config.max_concurrent = jobs_;
    config.max_per_host = arguments_.per_host;
    config.executor = executor_;
    config.user_agent = arguments_.user_agent;
    config.ca_file = arguments_.ca_file;
    config.crl_file = arguments_.crl_file;
    config.dns_servers = arguments_.dns_servers;
    config.proxy = arguments_.proxy;
    if (arguments_.basic_over_http)
        config.flags |= IMGDL_CONFIG_BASIC_OVER_HTTP;
    if (arguments_.deny_private)
        config.flags |= IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES;
    if (arguments_.require_tls_1_3)
        config.flags |= IMGDL_CONFIG_REQUIRE_TLS_1_3;
    if (arguments_.cache) {
        imgdl::CacheConfig cache;
        cache.directory = arguments_.cache;
        config.cache = imgdl::Cache(cache, [this](const imgdl_cache_event &event) {
            const std::lock_guard<std::mutex> guard(cache_lock_);
            cache_problem_ = event.message;
        });
        config.cache_mode = IMGDL_CACHE_USE;
        config.max_stale = arguments_.max_stale;
    }
    return config;
}

imgdl::Request Session::request_for(const Download &download) const
{
    imgdl::Request request;
    request.url = download.address.url;
    request.event_mask = IMGDL_EVENT_RESPONSE;
    if (progress_.has_bars())
        request.event_mask |= IMGDL_EVENT_PROGRESS;
    if (viewer_ && viewer_->shows_partial())
        request.event_mask |= IMGDL_EVENT_PARTIAL;
    request.partial_interval = milliseconds(200); // a terminal takes its time for each
    // The picture's own bytes are saved, unless it is to be another one.
    if (output_.is_wanted() && !arguments_.wants_thumbnails())
        request.flags |= IMGDL_REQUEST_BODY;
    if (arguments_.verify || arguments_.wants_thumbnails() || viewer_)
        request.flags |= IMGDL_REQUEST_DECODE;
    if (arguments_.full_urls)
        request.flags |= IMGDL_REQUEST_FULL_URLS;
    // A downloader has each header once.
    for (const auto &[name, value] : arguments_.headers)
        request.headers.push_back({name, value});
    request.decode = decode_;
    request.max_body_bytes = arguments_.max_bytes;
    request.total_timeout = arguments_.timeout;
    request.retry_count = arguments_.retries > 0 ? arguments_.retries : IMGDL_RETRY_NONE;
    return request;
}

// ---- The run

int Session::run()
{
    while (true) {
        take_addresses();
        if (running_ == 0 && (is_stopping_ || list_.has_ended()))
            break;
        wait_for_news();
        draw_pictures();
        draw_bars();
    }
    draw_pictures();
    progress_.clear();
    if (!problem_.empty())
        progress_.say("imgdl: " + problem_);
    const std::lock_guard<std::mutex> guard(cache_lock_);
    if (!cache_problem_.empty() && !arguments_.quiet)
        progress_.say("imgdl: the cache: " + printable(cache_problem_));
    if (!arguments_.quiet && (arguments_.has_many() || signal_that_came()))
        for (const std::string &line : summary_.lines())
            progress_.say(line);
    if (const int number = signal_that_came())
        return 128 + number;
    if (is_output_over_)
        return 128 + SIGPIPE;
    return static_cast<int>(problem_.empty() ? summary_.exit_code() : ExitCode::machine);
}

// As many are taken as can be running, and as many again, so that no place is empty; more would only be held here.
void Session::take_addresses()
{
    while (!is_stopping_ && downloads_.size() < 2 * static_cast<std::size_t>(jobs_)) {
        if (signal_that_came())
            return stop();
        if (std::optional<Address> address = list_.next()) {
            begin(std::move(*address));
            continue;
        }
        pollfd waiting = {list_.descriptor(), POLLIN, 0};
        if (list_.has_ended() || (list_.descriptor() >= 0 && poll(&waiting, 1, 0) <= 0))
            return;
        if (list_.descriptor() < 0)
            continue; // a last line
        try {
            list_.read();
        } catch (const std::system_error &error) {
            problem_ = error.what();
            return stop();
        }
    }
}

void Session::begin(Address address)
{
    auto owned = std::make_unique<Download>();
    Download &download = *owned;
    download.number = ++taken_;
    download.address = std::move(address);
    download.is_nonsense = !download.address.problem.empty();
    download.shown = download.is_nonsense ? shown_nonsense(download.address.url)
                                          : shown_address(download.address.url, arguments_.full_urls);
    downloads_.emplace(download.number, std::move(owned));
    running_++;
    if (!download.address.problem.empty()) {
        fail(download, "bad line", ExitCode::some_failed, download.address.problem);
        end(download);
    } else if (!is_for_another(download)) {
        start(download);
    }
}

Wanted Session::wanted(const Download &download) const { return {download.address.url, arguments_.kind_of_file()}; }

// What was seen to be a picture is as good for who does not ask for that.
bool Session::is_done(Download &download)
{
    const Wanted wanted = this->wanted(download);
    return is_done(download, wanted) || (wanted.kind.empty() && is_done(download, {wanted.url, Arguments::verified}));
}

// What a run has put in place, and was killed before it could say so, is done; and nothing is that is not there any more.
bool Session::is_done(Download &download, const Wanted &wanted)
{
    const std::optional<SavedFile> saved = journal_->saved(wanted);
    if (!saved)
        return false;
    if (journal_->is_done(wanted)) {
        const Output::Found found = output_.find(*saved);
        if (found == Output::Found::nothing || (found == Output::Found::changed && journal_->is_replaced(wanted)))
            return false;
    } else if (output_.holds(*saved)) {
        journal_->note_done(wanted);
    } else {
        return false;
    }
    download.path = output_.path_of(*saved);
    return true;
}

// With a journal an address is one file: what is done is left out, and what is on its way is waited for.
bool Session::is_for_another(Download &download)
{
    if (!journal_ || !output_.is_of_files())
        return false;
    try {
        if (!is_done(download)) {
            const auto [place, is_first] = waiting_.try_emplace(download.address.url);
            if (!is_first)
                place->second.push_back(download.number);
            return !is_first;
        }
        download.ending = Ending::skipped;
    } catch (const std::system_error &error) {
        fail_here(download, error);
    }
    end(download);
    return true;
}

void Session::start(Download &download)
{
    try {
        download.token = downloader_.download(
            request_for(download), [this, &download](const imgdl::Event &event) { on_event(download, event); });
    } catch (const imgdl::Error &error) {
        fail_to_start(download, error);
        end(download);
    }
}

void Session::wait_for_news()
{
    const bool wants_more = !is_stopping_ && downloads_.size() < 2 * static_cast<std::size_t>(jobs_);
    pollfd waiting[] = {{executor_.fd(), POLLIN, 0},
                        {is_stopping_ ? -1 : signal_descriptor(), POLLIN, 0},
                        {wants_more ? list_.descriptor() : -1, POLLIN, 0}};
    const int timeout = progress_.has_bars() && has_news_ ? static_cast<int>(redraw_interval.count()) : -1;
    if (poll(waiting, 3, timeout) < 0 && errno != EINTR)
        throw from_errno("poll");
    if (signal_that_came() && !is_stopping_)
        stop();
    executor_.dispatch();
}

// What runs is cancelled and ends at once; what is in the list stays there.
void Session::stop()
{
    is_stopping_ = true;
    downloader_.cancel_all();
}
