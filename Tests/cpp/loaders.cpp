// Loaders of the host's, written in C++: what they load, how they fail, how they wait, and what they are told.
#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <thread>

#include "harness.hpp"
#include "origin.hpp"

using namespace std::chrono_literals;

namespace {

const std::string url_of_app = "app://pictures/1";

imgdl::Request body_request()
{
    imgdl::Request request;
    request.url = url_of_app;
    request.flags = IMGDL_REQUEST_BODY;
    return request;
}

// Gives each transfer that begins to the test.
class Handed {
  public:
    explicit Handed(imgdl::Downloader &downloader)
    {
        downloader.register_transport("app", [this](const imgdl_outgoing &, imgdl::Transfer transfer) {
            transfers_.back().set_value(std::move(transfer));
        });
    }
    imgdl::Transfer begin(imgdl::Downloader &downloader, imgdl::Token &token,
                          const imgdl::Request &request = body_request())
    {
        transfers_.emplace_back();
        token = downloader.download(request);
        return transfers_.back().get_future().get();
    }

  private:
    std::vector<std::promise<imgdl::Transfer>> transfers_ = {};
};

// Paused, so that 1 MiB is taken and no more.
void pause(imgdl::Downloader &downloader)
{
    downloader.enter_background(0ms);
    while (downloader.stats().paused != 1)
        std::this_thread::yield();
}

const std::string piece(256 << 10, 'p');

// How many pieces were taken.
std::size_t fill(imgdl::Transfer &transfer)
{
    std::size_t count = 0;
    while (transfer.try_send(imgdl::Bytes(piece)))
        count++;
    return count;
}

imgdl_status code_of_sending(imgdl::Transfer &transfer)
{
    try {
        transfer.send(imgdl::Bytes(piece));
    } catch (const imgdl::Error &error) {
        return error.code();
    }
    return IMGDL_OK;
}

} // namespace

TEST("a loader streams a scheme of its own, until it is taken out")
{
    imgdl::Downloader downloader;
    CHECK_CODE(downloader.try_get(url_of_app).code(), IMGDL_ERROR_UNSUPPORTED_SCHEME);
    const auto picture = std::make_shared<const std::string>(origin::read_picture("opaque.png"));
    std::thread thread;
    std::string asked;
    downloader.register_transport("app", [&, picture, only = std::make_unique<int>(7)](const imgdl_outgoing &request,
                                                                                      imgdl::Transfer transfer) {
        asked = std::string(request.method) + " " + request.url;
        thread = std::thread([picture, transfer = std::move(transfer)]() mutable {
            transfer.respond(200, {{"Content-Type", "image/png"}, {"Content-Length", std::to_string(picture->size())}});
            for (std::size_t at = 0; at < picture->size(); at += 1000)
                transfer.send(imgdl::Bytes(std::string_view(*picture).substr(at, 1000)));
            transfer.end();
        });
    });
    const imgdl::Response response = downloader.get(url_of_app);
    thread.join();
    CHECK(asked == "GET " + url_of_app && response.content_type() == "image/png" && response.image().is_complete());
    CHECK(picture.use_count() == 2);
    downloader.unregister_transport("app");
    CHECK(picture.use_count() == 1);
    CHECK_CODE(downloader.try_get(url_of_app).code(), IMGDL_ERROR_UNSUPPORTED_SCHEME);
}

TEST("a loader that throws fails its transfer, and says why")
{
    imgdl::Downloader downloader;
    imgdl::Transfer kept;
    const std::string long_text(3000, 'l');
    downloader.register_transport("app", [&](const imgdl_outgoing &request, imgdl::Transfer transfer) {
        const std::string what = std::string(request.url).substr(8);
        if (what == "error")
            throw imgdl::Error(IMGDL_ERROR_CONNECT_FAILED, "nobody is there");
        if (what == "after-head")
            transfer.respond(200);
        if (what == "memory")
            throw std::bad_alloc();
        if (what == "number")
            throw 7;
        if (what == "long")
            throw std::runtime_error(long_text);
        if (what == "fail")
            transfer.fail(IMGDL_ERROR_CONNECT_FAILED, "likewise");
        else if (what == "moved")
            kept = std::move(transfer);
        else if (what == "dropped")
            return;
        else if (what == "ended") {
            transfer.respond(404);
            transfer.end();
        }
        throw std::runtime_error("it is broken");
    });
    const struct {
        const char *what, *code, *text;
    } cases[] = {{"error", "IMGDL_ERROR_CONNECT_FAILED", "nobody is there"},
                 {"after-head", "IMGDL_ERROR_INVALID_OPERATION", "it is broken"},
                 {"memory", "IMGDL_ERROR_OUT_OF_MEMORY", ""},
                 {"number", "IMGDL_ERROR_INVALID_OPERATION", ""},
                 {"long", "IMGDL_ERROR_INVALID_OPERATION", "llll"},
                 {"fail", "IMGDL_ERROR_CONNECT_FAILED", "likewise"},
                 {"dropped", "IMGDL_ERROR_CONNECTION_LOST", ""},
                 {"ended", "IMGDL_ERROR_INVALID_STATUS", "404"}};
    for (const auto &each : cases) {
        const imgdl::Response response = downloader.try_get(std::string("app://p/") + each.what);
        CHECK(std::string(imgdl_error_name(response.code())) == each.code);
        CHECK(response.message().find(each.text) != std::string_view::npos);
    }
    const imgdl::Token token = downloader.download("app://p/moved");
    downloader.get(origin::picture("baseline.jpg")); // the loader has returned
    CHECK(kept && !token.is_done());
    const std::string picture = origin::read_picture("baseline.jpg");
    kept.respond(200);
    kept.send(imgdl::Bytes(picture));
    kept.end();
    CHECK(!kept && token.get().image().is_complete());
}

TEST("reports that are refused leave the transfer as it was; one that goes without an end is lost")
{
    imgdl::Downloader downloader;
    Handed handed(downloader);
    imgdl::Token token;
    imgdl::Transfer transfer = handed.begin(downloader, token);
    const auto code = [](const std::function<void()> &call) { return harness::thrown_by(call).code(); };
    CHECK_CODE(code([&] { transfer.end(); }), IMGDL_ERROR_INVALID_OPERATION);
    CHECK_CODE(code([&] { transfer.send(imgdl::Bytes(piece)); }), IMGDL_ERROR_INVALID_OPERATION);
    CHECK_CODE(code([&] { transfer.respond(20); }), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(code([&] { transfer.respond(200, {{"X", std::string("a\0b", 3)}}); }), IMGDL_ERROR_INVALID_HEADER);
    CHECK_CODE(code([&] { transfer.fail(IMGDL_OK); }), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(code([&] { transfer.on_cancel(std::function<void()>()); }), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK(transfer && !token.is_done());
    imgdl::Transfer other = std::move(transfer);
    CHECK(other && !transfer && !transfer.is_cancelled());
    CHECK_CODE(code([&] { transfer.respond(200); }), IMGDL_ERROR_INVALID_HANDLE);
    imgdl::Transfer &same = other;
    other = std::move(same);
    CHECK(other);
    imgdl::Token next_token;
    imgdl::Request request = body_request();
    request.url += "?next";
    other = handed.begin(downloader, next_token, request);
    CHECK_CODE(token.try_get().code(), IMGDL_ERROR_CONNECTION_LOST);
    other.respond(200);
    other.send(imgdl::Bytes(piece));
    other.end();
    CHECK(next_token.get().data().size() == piece.size());
    const auto alive = std::make_shared<int>();
    const auto loader = [alive](const imgdl_outgoing &, imgdl::Transfer) {};
    CHECK_CODE(code([&] { downloader.register_transport("no scheme", loader); }), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(code([&] {
                   downloader.register_transport("app", std::function<void(const imgdl_outgoing &, imgdl::Transfer)>());
               }), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK(alive.use_count() == 2);
}

TEST("a loader that is faster than its bytes are wanted waits, until they are or nobody wants them")
{
    for (const char *end : {"wanted", "cancelled", "destroyed"}) {
        std::optional<imgdl::Downloader> downloader(std::in_place);
        Handed handed(*downloader);
        imgdl::Token token;
        imgdl::Transfer transfer = handed.begin(*downloader, token);
        transfer.respond(200);
        std::atomic<int> resumes{0};
        pause(*downloader);
        CHECK(fill(transfer) == 4);
        transfer.on_resume([&resumes] { resumes++; });
        std::promise<void> begun;
        std::future<bool> sent = std::async(std::launch::async, [&] {
            begun.set_value();
            for (int i = 0; i < 8; i++)
                transfer.send(imgdl::Bytes(piece));
            const bool is_cancelled = transfer.is_cancelled();
            transfer.end();
            return is_cancelled;
        });
        begun.get_future().wait();
        CHECK(sent.wait_for(10ms) == std::future_status::timeout && resumes == 0);
        if (end == std::string("wanted")) {
            downloader->enter_foreground();
            CHECK(token.get().data().size() == 12 * piece.size() && !sent.get() && resumes > 0);
        } else {
            if (end == std::string("cancelled"))
                token.cancel();
            else
                downloader.reset();
            CHECK(sent.get() && resumes == 0);
        }
        CHECK(!transfer);
    }
}

TEST("where a loader may not wait it is told so, and goes on when it is resumed")
{
    imgdl::Downloader downloader;
    std::size_t pieces = 0; // what cannot be passed on while the loader itself runs is held
    std::promise<imgdl_status> inside;
    imgdl::Transfer transfer;
    std::promise<void> resumed;
    downloader.register_transport("app", [&](const imgdl_outgoing &, imgdl::Transfer given) {
        transfer = std::move(given);
        transfer.respond(200);
        pieces = fill(transfer);
        transfer.on_resume([&] { resumed.set_value(); });
        inside.set_value(code_of_sending(transfer));
    });
    const imgdl::Token token = downloader.download(body_request());
    CHECK_CODE(inside.get_future().get(), IMGDL_ERROR_WOULD_DEADLOCK);
    resumed.get_future().wait();
    CHECK(pieces == 4);
    pause(downloader);
    pieces += fill(transfer);
    for (const imgdl::Executor &executor : {imgdl::Executor(), imgdl::Executor::immediate()}) {
        std::promise<imgdl_status> in_callback;
        imgdl::Request request;
        request.url = origin::picture("baseline.jpg");
        request.flags = IMGDL_REQUEST_CONTINUE_IN_BACKGROUND;
        request.executor = executor;
        const imgdl::Token other = downloader.download(
            request, [&](const imgdl::Event &) { in_callback.set_value(code_of_sending(transfer)); });
        CHECK_CODE(in_callback.get_future().get(), IMGDL_ERROR_WOULD_DEADLOCK);
    }
    transfer.on_resume([] {});
    downloader.enter_foreground();
    transfer.send(imgdl::Bytes(piece));
    transfer.end();
    CHECK(token.get().data().size() == (pieces + 1) * piece.size());
}

TEST("a loader is told once that nobody wants its transfer any more, and may let go of it there")
{
    imgdl::Downloader downloader;
    Handed handed(downloader);
    imgdl::Token token;
    const auto place = std::make_shared<imgdl::Transfer>(handed.begin(downloader, token));
    std::promise<bool> told;
    place->on_resume([place] {}); // what has the transfer has itself: all of it goes with the end
    place->on_cancel([&told, place]() mutable {
        told.set_value(place->is_cancelled());
        *place = imgdl::Transfer();
    });
    token.cancel();
    CHECK(told.get_future().get());
    CHECK_CODE(token.try_get().code(), IMGDL_ERROR_CANCELLED);
    imgdl::Transfer late = handed.begin(downloader, token);
    std::promise<void> first;
    late.on_cancel([&first] { first.set_value(); });
    token.cancel();
    first.get_future().wait();
    int calls = 0;
    late.on_cancel([&calls] { calls++; });
    CHECK(calls == 1 && late.is_cancelled());
    // No errors, and no effect.
    late.respond(200);
    late.send(imgdl::Bytes(piece));
    late.end();
    CHECK(!late && calls == 1);
    downloader.wait_idle();
    CHECK(place.use_count() == 1);
}
