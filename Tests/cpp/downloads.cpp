// Downloads: answers, errors, callbacks and what they hold, endings.
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <poll.h>
#include <thread>

#include "harness.hpp"
#include "origin.hpp"

using namespace std::chrono_literals;

namespace {

imgdl::Request request_for(const std::string &url)
{
    imgdl::Request request;
    request.url = url;
    return request;
}

imgdl_cache_outcome outcome_of(const imgdl::Response &response) { return response.head().cache_outcome(); }

// Tells when it is destroyed.
struct Witness {
    explicit Witness(std::promise<void> &destroyed) : destroyed_(&destroyed) {}
    Witness(Witness &&other) noexcept : destroyed_(std::exchange(other.destroyed_, nullptr)) {}
    ~Witness()
    {
        if (destroyed_)
            destroyed_->set_value();
    }
    std::promise<void> *destroyed_;
};

} // namespace

TEST("get gives the picture, its head and its metrics")
{
    imgdl::Downloader downloader;
    const imgdl::Response response = downloader.get(origin::picture("baseline.jpg?header=X-Name:a%20b"));
    CHECK(response && response.image().is_complete() && !response.data());
    CHECK(response.http_status() == 200 && response.content_type() == "image/jpeg");
    CHECK(response.head().header("x-name") == "a b" && !response.head().header("x-other"));
    CHECK(response.head().headers().size() == response.head()->header_count);
    CHECK(response.metrics() && response.metrics()->body_bytes > 0);
    CHECK(response.head().url().find("/pictures/baseline.jpg") != std::string_view::npos);
}

TEST("headers, method, body and flags of a request arrive")
{
    imgdl::Downloader downloader;
    downloader.set_header("X-All", "yes");
    CHECK(downloader.header("x-all") == "yes" && !downloader.header("x-none"));
    downloader.set_header("X-Long", std::string(300, 'l'));
    CHECK(downloader.header("x-long") == std::string(300, 'l'));
    imgdl::Request request = request_for(origin::url("/echo"));
    request.method = "POST";
    request.body = "field=value";
    request.flags = IMGDL_REQUEST_BODY;
    request.header("X-One", "1").headers.push_back({"Accept", std::nullopt});
    const imgdl::Data body = downloader.get(request).data();
    const std::string echo(body.text());
    for (const char *part : {"\"POST\"", "field=value", "X-One", "X-All"})
        CHECK(echo.find(part) != std::string::npos);
    CHECK(echo.find("Accept\"") == std::string::npos);
}

TEST("an error says everything: code, name, status, type, first bytes")
{
    imgdl::Downloader downloader;
    const std::string url = origin::picture("baseline.jpg?status=404&type=text/html&_secret=hunter2");
    const imgdl::Error error = harness::thrown_by([&] { downloader.get(url); });
    CHECK_CODE(error.code(), IMGDL_ERROR_INVALID_STATUS);
    CHECK(error.http_status() == 404 && error.content_type() == "text/html" && error.preview().size() == 512);
    CHECK(std::string(error.what()).find("404") != std::string::npos);
    CHECK(std::string(error.what()).find("hunter2") == std::string::npos);
    const imgdl::Response response = downloader.try_get(url);
    CHECK(!response && response.code() == error.code() && response.message() == error.what());
}

TEST("what is not a request is refused, by exception or by code")
{
    imgdl::Downloader downloader;
    CHECK_CODE(downloader.try_get("").code(), IMGDL_ERROR_INVALID_URL);
    const imgdl::Response of_nothing = downloader.try_get("");
    CHECK(!of_nothing.message().empty());
    CHECK_CODE(downloader.try_get(std::string("http://a/\0b", 11)).code(), IMGDL_ERROR_INVALID_URL);
    CHECK_CODE(downloader.try_get("gopher://example.org/").code(), IMGDL_ERROR_UNSUPPORTED_SCHEME);
    imgdl::Request request = request_for(origin::picture("baseline.jpg"));
    request.total_timeout = -1ms;
    CHECK_CODE(downloader.try_get(request).code(), IMGDL_ERROR_INVALID_ARGUMENT);
    request.total_timeout = std::chrono::hours(2000);
    CHECK_CODE(harness::thrown_by([&] { downloader.get(request); }).code(), IMGDL_ERROR_INVALID_ARGUMENT);
    request = request_for(origin::picture("baseline.jpg"));
    request.header("X", std::string("a\0b", 3));
    CHECK_CODE(downloader.try_get(request).code(), IMGDL_ERROR_INVALID_HEADER);
    imgdl::Config config;
    config.max_redirects = 101;
    CHECK_CODE(harness::thrown_by([&] { imgdl::Downloader refused(config); }).code(), IMGDL_ERROR_INVALID_ARGUMENT);
}

TEST("a callback is told all events in order; a capture that only moves is destroyed once")
{
    imgdl::Downloader downloader;
    std::promise<void> destroyed;
    std::vector<std::uint32_t> kinds;
    imgdl::Image picture;
    imgdl::Request request = request_for(origin::picture("baseline.jpg"));
    request.event_mask = IMGDL_EVENT_ALL;
    auto record = [&kinds, &picture, witness = Witness(destroyed), owned = std::make_unique<int>(7)](const auto &event) {
        kinds.push_back(event.kind());
        if (event.is_terminal() && *owned == 7)
            picture = event.image();
    };
    imgdl::Token token = downloader.download(request, std::move(record));
    token.wait();
    destroyed.get_future().wait();
    CHECK(kinds.size() >= 4 && kinds.front() == IMGDL_EVENT_STARTED && kinds.back() == IMGDL_EVENT_TERMINAL);
    CHECK(picture.is_complete() && token.is_done() && token.id() != 0);
    CHECK(token.metrics() && token.metrics()->total_ns > 0);
}

TEST("a refused request destroys its callback, too")
{
    imgdl::Downloader downloader;
    std::promise<void> destroyed;
    const imgdl::Error error = harness::thrown_by([&] {
        auto token = downloader.download("nonsense:", [witness = Witness(destroyed)](const imgdl::Event &) {});
    });
    CHECK_CODE(error.code(), IMGDL_ERROR_UNSUPPORTED_SCHEME);
    CHECK(destroyed.get_future().wait_for(0s) == std::future_status::ready);
}

TEST("B2: a token that goes cancels its download, and only its own")
{
    imgdl::Downloader downloader;
    std::promise<imgdl_status> ended;
    const std::string url = origin::picture("baseline.jpg?hold_after=500&gate=token");
    imgdl::Token other = downloader.download(url);
    {
        imgdl::Token token =
            downloader.download(url, [&](const imgdl::Event &event) { ended.set_value(event.code()); });
        origin::await_gate("token");
        CHECK(!token.is_done() && !token.wait_for(0ms));
        imgdl::Token moved = std::move(token);
        CHECK(!token && moved);
    }
    CHECK_CODE(ended.get_future().get(), IMGDL_ERROR_CANCELLED);
    origin::open_gate("token");
    CHECK(other.get().image().is_complete());
}

TEST("a detached token lets its download run, and a moved-to one cancels what it had")
{
    std::promise<imgdl_status> detached, replaced;
    imgdl::Downloader downloader;
    imgdl::Token token = downloader.download(origin::picture("baseline.jpg?hold_head=1&gate=one"),
                                             [&](const imgdl::Event &event) { detached.set_value(event.code()); });
    token.detach();
    CHECK(!token);
    origin::open_gate("one");
    CHECK_CODE(detached.get_future().get(), IMGDL_OK);
    token = downloader.download(origin::picture("baseline.jpg?first_byte=never"),
                                [&](const imgdl::Event &event) { replaced.set_value(event.code()); });
    token = imgdl::Token();
    CHECK_CODE(replaced.get_future().get(), IMGDL_ERROR_CANCELLED);
}

TEST("a downloader that goes has told everybody before: what callbacks refer to may go next")
{
    std::atomic<int> cancelled{0};
    {
        imgdl::Downloader downloader;
        for (int i = 0; i < 10; i++)
            downloader.download(origin::picture("baseline.jpg?first_byte=never&n=" + std::to_string(i)),
                                [&](const imgdl::Event &event) { cancelled += event.code() == IMGDL_ERROR_CANCELLED; })
                .detach();
        imgdl::Downloader moved = std::move(downloader);
        CHECK(moved.current_count() == 10 && !downloader.raw());
    }
    CHECK(cancelled == 10);
}

TEST("a shared downloader is not ended by an object that goes")
{
    imgdl::Token token;
    {
        imgdl::Downloader shared = imgdl::Downloader::shared();
        token = shared.download(origin::picture("baseline.jpg?hold_head=1&gate=shared"));
        CHECK_CODE(harness::thrown_by([&] { shared.shutdown(IMGDL_SHUTDOWN_CANCEL, [] {}); }).code(),
                   IMGDL_ERROR_INVALID_OPERATION);
    }
    origin::open_gate("shared");
    CHECK(token.get().image());
}

TEST("shutdown tells its end once, and detach lets run what runs")
{
    std::promise<void> done;
    imgdl::Downloader downloader;
    imgdl::Token token = downloader.download(origin::picture("baseline.jpg"));
    downloader.shutdown(IMGDL_SHUTDOWN_FINISH, [&done, owned = std::make_unique<int>(1)] { done.set_value(); });
    done.get_future().wait();
    CHECK(token.get().image());
    CHECK_CODE(downloader.try_get(origin::picture("baseline.jpg")).code(), IMGDL_ERROR_SHUT_DOWN);

    imgdl::Downloader detached;
    token = detached.download(origin::picture("baseline.jpg?hold_head=1&gate=detached"));
    detached.detach();
    origin::open_gate("detached");
    CHECK(token.get().image());
}

TEST("a pumped executor runs callbacks where it is dispatched, an immediate one at once")
{
    imgdl::Executor executor = imgdl::Executor::pumped();
    imgdl::Downloader downloader;
    imgdl::Request request = request_for(origin::picture("baseline.jpg"));
    request.executor = executor;
    bool is_done = false;
    std::thread::id thread;
    imgdl::Token token = downloader.download(request, [&](const imgdl::Event &event) {
        is_done = event.is_terminal();
        thread = std::this_thread::get_id();
    });
    CHECK_CODE(token.try_get().code(), IMGDL_ERROR_WOULD_DEADLOCK);
    while (!is_done) {
        pollfd waiting = {executor.fd(), POLLIN, 0};
        CHECK(poll(&waiting, 1, -1) == 1);
        executor.dispatch();
    }
    CHECK(thread == std::this_thread::get_id());

    request.executor = imgdl::Executor::immediate();
    const imgdl::Request copy = request;
    std::promise<imgdl_status> ended;
    downloader.download(copy, [&](const imgdl::Event &event) { ended.set_value(event.code()); }).detach();
    CHECK_CODE(ended.get_future().get(), IMGDL_OK);
}

TEST("a batch tells each of its events, and its progress")
{
    std::mutex lock;
    std::vector<int> endings(5);
    std::promise<imgdl_batch_progress> finished;
    imgdl::Downloader downloader;
    std::vector<imgdl::Request> requests;
    for (std::size_t i = 0; i < endings.size(); i++)
        requests.push_back(request_for(origin::picture((i ? "baseline.jpg?n=" : "baseline.jpg?status=500&n=") +
                                                       std::to_string(i))));
    const imgdl::Batch batch = downloader.prefetch(
        requests, {},
        [&](const imgdl_batch_progress &progress) {
            if (progress.is_finished)
                finished.set_value(progress);
        },
        [&](std::size_t index, const imgdl::Event &event) {
            const std::lock_guard<std::mutex> guard(lock);
            endings[index] += event.is_terminal() ? (event.code() == IMGDL_OK ? 1 : 100) : 0;
        });
    const imgdl_batch_progress progress = finished.get_future().get();
    CHECK(progress.total == 5 && progress.failed == 1 && progress.cancelled == 0);
    const std::lock_guard<std::mutex> guard(lock);
    CHECK((endings == std::vector<int>{100, 1, 1, 1, 1}));
    CHECK(batch.progress().finished == 5);
}

TEST("a batch without options, with progress and without")
{
    imgdl::Downloader downloader;
    const std::vector<imgdl::Request> requests(2, request_for(origin::picture("baseline.jpg")));
    std::size_t finished = 0;
    std::atomic<int> endings{0};
    const auto count = [&finished](const imgdl_batch_progress &progress) { finished = progress.finished; };
    const imgdl::Batch silent = downloader.prefetch(requests);
    silent.wait();
    CHECK(silent.progress().finished == 2 && silent.progress().failed == 0);
    downloader.prefetch(requests, count).wait();
    CHECK(finished == 2);
    downloader.prefetch(requests, count, [&](std::size_t, const imgdl::Event &event) { endings += event.is_terminal(); }).wait();
    CHECK(endings == 2);
    CHECK(imgdl_batch_retain(silent.raw()) == silent.raw());
    const imgdl::Batch own(silent.raw());
    CHECK(harness::thrown_by([&] { own.wait(); }).code() == IMGDL_ERROR_INVALID_OPERATION);
    CHECK(harness::thrown_by([&] { (void)own.wait_for(imgdl::milliseconds(1)); }).code() == IMGDL_ERROR_INVALID_OPERATION);
}

TEST("what is waited for longer than a clock counts is waited for")
{
    for (const imgdl::milliseconds longest : {imgdl::milliseconds::max(), imgdl::milliseconds(24h * 365 * 300)}) {
        imgdl::Downloader downloader;
        const std::string gate = "longest" + std::to_string(longest.count());
        const imgdl::Request request = request_for(origin::picture("baseline.jpg?hold_head=1&gate=" + gate));
        const imgdl::Batch batch = downloader.prefetch({request});
        const imgdl::Token token = downloader.download(request);
        // No time is left of what is over, however long it has been.
        CHECK(!batch.wait_for(imgdl::milliseconds::min()) && !token.wait_for(imgdl::milliseconds::min()));
        CHECK(!downloader.wait_idle_for(imgdl::milliseconds::min()));
        std::promise<void> waits;
        std::future<bool> of_batch = std::async(std::launch::async, [&] {
            waits.set_value();
            return batch.wait_for(longest);
        });
        std::future<bool> of_token = std::async(std::launch::async, [&] { return token.wait_for(longest); });
        std::future<bool> of_all = std::async(std::launch::async, [&] { return downloader.wait_idle_for(longest); });
        waits.get_future().wait();
        origin::await_gate(gate);
        origin::open_gate(gate);
        CHECK(of_batch.get() && of_token.get() && of_all.get());
        CHECK(batch.wait_for(longest) && token.wait_for(longest) && downloader.wait_idle_for(longest));
    }
}

TEST("a batch that goes cancels what it has; one with a bad request is refused as a whole")
{
    std::promise<imgdl_batch_progress> finished;
    imgdl::Downloader downloader;
    std::vector<imgdl::Request> requests(3, request_for(origin::picture("baseline.jpg?first_byte=never")));
    const auto tell = [&finished](const imgdl_batch_progress &progress) {
        if (progress.is_finished)
            finished.set_value(progress);
    };
    (void)downloader.prefetch(requests, {}, tell);
    CHECK(finished.get_future().get().cancelled == 3);
    requests[1].url = "";
    std::promise<void> destroyed;
    const imgdl::Error error = harness::thrown_by([&] {
        (void)downloader.prefetch(requests, {}, [witness = Witness(destroyed)](const imgdl_batch_progress &) {});
    });
    CHECK_CODE(error.code(), IMGDL_ERROR_INVALID_URL);
    CHECK(std::string(error.what()).find("requests[1]") != std::string::npos);
    CHECK(destroyed.get_future().wait_for(0s) == std::future_status::ready);
}

TEST("a cache answers the second time, and is asked about")
{
    imgdl::CacheConfig options;
    options.directory = origin::new_folder();
    imgdl::Cache cache(options, [](const imgdl_cache_event &) {});
    imgdl::Config config;
    config.cache = cache;
    config.cache_mode = IMGDL_CACHE_USE;
    imgdl::Downloader downloader(config);
    const std::string url = origin::picture("baseline.jpg?header=Cache-Control:max-age%3D100");
    CHECK(!cache.query(url));
    CHECK(outcome_of(downloader.get(url)) == IMGDL_CACHE_OUTCOME_NETWORK);
    CHECK(outcome_of(downloader.get(url)) == IMGDL_CACHE_OUTCOME_HIT);
    CHECK(cache.query(url) && cache.query(url)->status == 200);
    cache.flush();
    CHECK(cache.statistics().hits + cache.statistics().memory_hits == 1);
    imgdl::Request aged;
    aged.url = origin::picture("baseline.jpg?header=Age:3660&header=Cache-Control:max-age%3D60");
    CHECK(outcome_of(downloader.get(aged)) == IMGDL_CACHE_OUTCOME_NETWORK);
    aged.cache_mode = IMGDL_CACHE_ONLY;
    CHECK(outcome_of(downloader.get(aged)) == IMGDL_CACHE_OUTCOME_STALE);
    const std::pair<std::chrono::milliseconds, bool> limits[] = {
        {0ms, false}, {1ms, false}, {2h, true}, {std::chrono::milliseconds::max(), true}};
    for (const auto &[limit, is_allowed] : limits) {
        aged.max_stale = limit;
        if (is_allowed)
            CHECK_CODE(downloader.try_get(aged).code(), IMGDL_OK);
        else
            CHECK_CODE(downloader.try_get(aged).code(), IMGDL_ERROR_NOT_CACHED);
    }
    aged.max_stale = -1ms;
    CHECK_CODE(harness::thrown_by([&] { downloader.get(aged); }).code(), IMGDL_ERROR_INVALID_ARGUMENT);
    config.max_stale = 0ms;
    aged.max_stale = {};
    CHECK_CODE(imgdl::Downloader(config).try_get(aged).code(), IMGDL_ERROR_NOT_CACHED);
    cache.remove(url);
    CHECK(!cache.query(url));
    cache.remove_older(1s);
    cache.clear();
    CHECK_CODE(harness::thrown_by([&] { cache.query(""); }).code(), IMGDL_ERROR_INVALID_URL);
    std::promise<void> destroyed;
    options.directory = std::string("a\0b", 3);
    CHECK_CODE(harness::thrown_by([&] {
                   imgdl::Cache refused(options, [witness = Witness(destroyed)](const imgdl_cache_event &) {});
               }).code(), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK(destroyed.get_future().wait_for(0s) == std::future_status::ready);
}

TEST("R1, R2: hooks sign a request, transform its body, refuse a response; one without an answer refuses")
{
    imgdl::Downloader downloader;
    imgdl::HookFunctions functions;
    functions.modify_request = [](const imgdl_outgoing &outgoing, imgdl::Continuation next) {
        const std::string path = outgoing.url;
        if (path.find("forgotten") == std::string::npos)
            next.with_request("", "", {{"X-Signature", "signed"}});
    };
    functions.modify_response = [](const imgdl::ResponseView &response, imgdl::Continuation next) {
        if (response.status() == 418)
            next.refused(IMGDL_OK, "no tea");
        else
            next.unchanged();
    };
    functions.transform_body = [](const imgdl::Data &body, imgdl::Continuation next) {
        const std::string louder = std::string(body.text()) + "!";
        next.with_data(imgdl::Bytes(louder));
    };
    imgdl::Request request = request_for(origin::url("/echo"));
    request.flags = IMGDL_REQUEST_BODY;
    request.hooks = imgdl::Hooks(std::move(functions));
    const imgdl::Data body = downloader.get(request).data();
    const std::string echo(body.text());
    CHECK(echo.find("X-Signature") != std::string::npos && echo.back() == '!');
    request.url = origin::url("/status/418");
    CHECK_CODE(downloader.try_get(request).code(), IMGDL_ERROR_INVALID_RESPONSE);
    request.url = origin::url("/echo?forgotten");
    CHECK_CODE(downloader.try_get(request).code(), IMGDL_ERROR_INVALID_OPERATION);
    CHECK_CODE(harness::thrown_by([] { imgdl::Hooks none((imgdl::HookFunctions())); }).code(),
               IMGDL_ERROR_INVALID_ARGUMENT);
}

TEST("redirects and challenges can be answered")
{
    imgdl::Downloader downloader;
    imgdl::HookFunctions functions;
    functions.redirect = [](const imgdl::ResponseView &, const char *url, imgdl::Continuation next) {
        next.with_request(std::string(url) + "?_seen=1");
    };
    functions.authenticate = [](const imgdl::ResponseView &challenge, imgdl::Continuation next) {
        if (challenge.status() == 401)
            next.with_credentials("user", "secret");
    };
    imgdl::Request request;
    request.hooks = imgdl::Hooks(std::move(functions));
    request.url = origin::url("/redirect?to=/pictures/baseline.jpg");
    const imgdl::Response redirected = downloader.get(request);
    CHECK(redirected.head()->redirect_count == 1);
    CHECK(origin::ask("/_log").find("baseline.jpg?_seen=1") != std::string::npos);
    request.url = origin::url("/auth/basic?user=user&password=secret&picture=baseline.jpg");
    request.flags = IMGDL_REQUEST_BASIC_OVER_HTTP;
    CHECK(downloader.get(request).image());
}

TEST("an observer sees transfers, statistics count them, settings are read back")
{
    std::atomic<int> stopped{0};
    imgdl::Downloader downloader;
    downloader.set_observer([&](const imgdl_observation &seen) { stopped += seen.kind == IMGDL_OBSERVED_STOPPED; });
    downloader.get(origin::picture("baseline.jpg"));
    downloader.clear_observer();
    downloader.get(origin::picture("baseline.jpg"));
    CHECK(stopped == 1 && downloader.stats().succeeded == 2);
    downloader.set_max_concurrent(3);
    downloader.set_max_per_host(2);
    downloader.set_order(IMGDL_ORDER_LIFO);
    CHECK(downloader.max_concurrent() == 3 && !downloader.is_suspended());
    downloader.set_suspended(true);
    imgdl::Token waiting = downloader.download(origin::picture("baseline.jpg"));
    waiting.set_priority(IMGDL_PRIORITY_HIGH);
    CHECK(downloader.is_suspended() && !downloader.wait_idle_for(0ms) && !waiting.metrics());
    downloader.cancel_all();
    downloader.wait_idle();
    CHECK_CODE(waiting.try_get().code(), IMGDL_ERROR_CANCELLED);
    downloader.set_suspended(false);
    downloader.enter_background(0ms);
    downloader.enter_foreground();
    CHECK(downloader.stats().connections == 1);
    downloader.network_changed();
    downloader.get(origin::picture("baseline.jpg"));
    CHECK(downloader.stats().connections == 2);
    downloader.invalidate(true);
    CHECK_CODE(downloader.try_get(origin::picture("baseline.jpg")).code(), IMGDL_ERROR_INVALID_OPERATION);
    downloader.reconfigure({});
    CHECK(downloader.get(origin::picture("baseline.jpg")).image());
}
