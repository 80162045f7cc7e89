// What comes of one download.
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <system_error>

#include "descriptors.hpp"
#include "output-naming.hpp"
#include "png-file.hpp"
#include "session.hpp"
#include "shown-address.hpp"
#include "signals.hpp"

void Session::on_event(Download &download, const imgdl::Event &event)
{
    has_news_ = true;
    switch (event.kind()) {
    case IMGDL_EVENT_RESPONSE:
        download.cache_outcome = event.response().cache_outcome();
        if (const auto value = event.response().header("Content-Disposition"))
            download.disposition = std::string(*value);
        break;
    case IMGDL_EVENT_PROGRESS:
        download.received = event.received();
        download.expected = event.expected();
        break;
    case IMGDL_EVENT_PARTIAL:
        download.image = event.image();
        download.has_news = true;
        break;
    case IMGDL_EVENT_TERMINAL:
        on_terminal(download, event);
        break;
    default:
        break; // kinds that a newer library has
    }
}

void Session::on_terminal(Download &download, const imgdl::Event &event)
{
    download.http_status = event.http_status();
    download.content_type = event.content_type();
    download.total_ns = event.metrics() ? event.metrics()->total_ns : 0;
    if (event.code() == IMGDL_OK) {
        save(download, event);
    } else if (event.code() == IMGDL_ERROR_CANCELLED && is_stopping_) {
        download.ending = Ending::cancelled;
        download.class_name = imgdl_error_name(event.code());
        download.message = event.message();
    } else if (kind_of(event.code()) == ExitCode::network && is_without_descriptors()) {
        // The library sees a connection that did not come about, and not why.
        fail(download, imgdl_error_name(IMGDL_ERROR_OUT_OF_MEMORY), ExitCode::machine,
             download.shown + ": " + imgdl_error_message(IMGDL_ERROR_OUT_OF_MEMORY) +
                 ", or of descriptors (ulimit -n)");
    } else {
        std::string class_name = imgdl_error_name(event.code());
        if (event.code() == IMGDL_ERROR_INVALID_STATUS)
            class_name += " " + std::to_string(event.http_status());
        const bool has_body = event.expected() >= 0 && event.received() == event.expected();
        fail(download, class_name, kind_of(event.code(), has_body), in_terms_of_options(std::string(event.message())));
    }
    end(download);
}

void Session::save(Download &download, const imgdl::Event &event)
{
    try {
        const imgdl::Image image = event.image();
        const imgdl::Data data = event.data();
        if (image && !viewer_) { // what is drawn has the terminal's size
            download.width = image.width();
            download.height = image.height();
        }
        download.format = image.format();
        imgdl::Bytes bytes = data.bytes();
        std::string thumbnail;
        if (arguments_.wants_thumbnails()) {
            thumbnail = png_file(image);
            bytes = imgdl::Bytes(thumbnail);
        }
        if (output_.is_wanted()) {
            download.format = format_of(bytes);
            const std::string name = with_extension(download.name(), download.format);
            Output::BeforePlacing before_placing;
            if (journal_)
                before_placing = [&](const SavedFile &file) { journal_->note_saving(wanted(download), file); };
            download.path = output_.save(name, bytes, before_placing);
        }
        download.bytes = output_.is_wanted() ? static_cast<std::int64_t>(bytes.size()) : event.received();
        if (viewer_) {
            download.image = image;
            download.has_news = true;
        }
        if (journal_ && output_.is_of_files())
            journal_->note_done(wanted(download));
        download.ending = Ending::done;
    } catch (const std::system_error &error) {
        fail_here(download, error);
    } catch (const std::bad_alloc &error) {
        fail(download, imgdl_error_name(IMGDL_ERROR_OUT_OF_MEMORY), ExitCode::machine, download.shown + ": " + error.what());
    } catch (const std::exception &error) {
        fail(download, imgdl_error_name(IMGDL_ERROR_INTERNAL), ExitCode::machine, download.shown + ": " + error.what());
    }
}

static imgdl_status status_of(int code)
{
    switch (code) {
    case ENOSPC:
    case EDQUOT:
        return IMGDL_ERROR_DISK_FULL;
    case EROFS:
    case EACCES:
    case EPERM:
        return IMGDL_ERROR_READ_ONLY;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return IMGDL_ERROR_OUT_OF_MEMORY;
    default:
        return IMGDL_ERROR_DISK_FAILED;
    }
}

// Where nothing can be written any more, going on would only waste what is downloaded: all but what is about one name, one
// size, or a moment.
void Session::fail_here(Download &download, const std::system_error &error)
{
    const int code = error.code().value();
    if (code == EINTR && signal_that_came()) {
        // A picture that its reader has not taken when a signal ended the run.
        cancel(download);
        return stop();
    }
    if (code == EPIPE)
        is_output_over_ = true;
    fail(download, imgdl_error_name(status_of(code)), ExitCode::machine, download.shown + ": " + error.what());
    const int passing[] = {ENAMETOOLONG, EILSEQ, EINVAL, EFBIG, EMFILE, ENFILE, ENOMEM};
    if (std::find(std::begin(passing), std::end(passing), code) == std::end(passing) && !is_stopping_)
        stop();
}

// example.org/a.jpg and localhost:8080/a.jpg, as a browser takes them; "http://a/" and <http://a/>, as text has them.
static bool is_without_scheme(const std::string &text)
{
    if (text.compare(0, 5, "data:") == 0)
        return false;
    const std::size_t end = text.find("://");
    if (end == 0 || end >= text.find_first_of("/?#"))
        return true;
    const char *const letters = "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return text.find_first_not_of(letters) < end || text.find_first_of("+-.0123456789") == 0;
}

void Session::fail_to_start(Download &download, const imgdl::Error &error)
{
    download.is_nonsense = error.code() == IMGDL_ERROR_INVALID_URL || error.code() == IMGDL_ERROR_UNSUPPORTED_SCHEME;
    std::string sentence = error.what();
    if (download.is_nonsense) {
        download.shown = shown_nonsense(download.address.url);
        if (is_without_scheme(download.address.url))
            sentence = "this is no address, which begins with http:// or https://";
        else if (error.code() == IMGDL_ERROR_UNSUPPORTED_SCHEME)
            sentence += ": an address begins with http:// or https://";
    }
    fail(download, error.name(), kind_of(error.code()), download.shown + ": " + sentence);
}

// The journal stays when the run is over: values of a query never stand in it, however this run shows addresses.
void Session::fail(Download &download, const std::string &class_name, ExitCode kind, const std::string &message)
{
    download.ending = Ending::failed;
    download.failure = kind;
    download.class_name = class_name;
    download.message = message;
    if (!journal_ || kind == ExitCode::machine || !download.address.problem.empty())
        return;
    try {
        const std::string shown = download.is_nonsense ? download.shown : shown_address(download.address.url);
        journal_->note_failed(wanted(download), class_name, shown);
    } catch (const std::system_error &error) {
        progress_.say("imgdl: " + std::string(error.what()));
    }
}

void Session::cancel(Download &download)
{
    download.ending = Ending::cancelled;
    download.class_name = imgdl_error_name(IMGDL_ERROR_CANCELLED);
    download.message = download.shown + ": " + imgdl_error_message(IMGDL_ERROR_CANCELLED);
}

// Drawn pictures come in the order of their addresses; everything else is reported as it ends.
void Session::end(Download &download)
{
    download.has_ended = true;
    running_--;
    has_news_ = true;
    const auto same = waiting_.extract(download.address.url);
    if (!same.empty())
        end_with(download, same.mapped());
    if (viewer_)
        return;
    report(download);
    downloads_.erase(download.number);
}

// Ends the others, which have the same address. What this machine did to the first, such as a moment without descriptors, is
// none of theirs: the next one goes for itself, and the rest wait for that. Where it ended the run they are cancelled, as what
// runs.
void Session::end_with(const Download &first, const std::vector<std::uint64_t> &others)
{
    const bool is_its_own = first.ending == Ending::failed && first.failure == ExitCode::machine;
    if (is_its_own && !is_stopping_ && !others.empty()) {
        waiting_.emplace(first.address.url, std::vector<std::uint64_t>(others.begin() + 1, others.end()));
        return start(*downloads_.at(others.front()));
    }
    for (const std::uint64_t number : others) {
        Download &other = *downloads_.at(number);
        other.shown = first.shown;
        if (is_its_own) {
            cancel(other);
            end(other);
            continue;
        }
        other.ending = first.ending == Ending::done ? Ending::skipped : first.ending;
        other.path = first.path;
        other.failure = first.failure;
        other.class_name = first.class_name;
        other.message = first.message;
        other.http_status = first.http_status;
        end(other);
    }
}
