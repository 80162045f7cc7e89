// What callbacks may be, what they may do, and what is refused instead of a hang or an end of the program.
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <poll.h>

#include "harness.hpp"
#include "origin.hpp"

using namespace std::chrono_literals;

namespace {

const auto no_progress = [](const imgdl_batch_progress &) {};

imgdl::Request picture_request(const std::string &name_and_faults)
{
    imgdl::Request request;
    request.url = origin::picture(name_and_faults);
    return request;
}

// IMGDL_OK where waiting is refused by nothing.
imgdl_status code_of_waiting(const imgdl::Batch &batch)
{
    try {
        batch.wait();
    } catch (const imgdl::Error &error) {
        return error.code();
    }
    return IMGDL_OK;
}

imgdl_status code_of_waiting_for(const imgdl::Batch &batch)
{
    try {
        (void)batch.wait_for(10min);
    } catch (const imgdl::Error &error) {
        return error.code();
    }
    return IMGDL_OK;
}

void check_is_refused(const std::function<void()> &call, const std::string &named)
{
    const imgdl::Error error = harness::thrown_by(call);
    CHECK_CODE(error.code(), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK(error.what() == named + " is an empty function");
}

std::atomic<int> function_calls{0};
void count_event(const imgdl::Event &) { function_calls++; }
void count_progress(const imgdl_batch_progress &) { function_calls++; }

} // namespace

TEST("a batch cannot be waited for inside a callback of its downloader")
{
    imgdl::Downloader downloader;
    const imgdl::Batch batch = downloader.prefetch({picture_request("baseline.jpg?hold_head=1&gate=later")});
    for (const imgdl::Executor &executor : {imgdl::Executor(), imgdl::Executor::immediate()}) {
        imgdl::Request request = picture_request("baseline.jpg");
        request.executor = executor;
        std::promise<std::pair<imgdl_status, imgdl_status>> codes;
        const imgdl::Token token = downloader.download(request, [&](const imgdl::Event &) {
            codes.set_value({code_of_waiting(batch), code_of_waiting_for(batch)});
        });
        const auto found = codes.get_future().get();
        CHECK_CODE(found.first, IMGDL_ERROR_WOULD_DEADLOCK);
        CHECK_CODE(found.second, IMGDL_ERROR_WOULD_DEADLOCK);
    }
    origin::open_gate("later");
    batch.wait();
    CHECK(batch.progress().finished == 1 && batch.progress().failed == 0);
    // What is over can be waited for everywhere.
    std::promise<imgdl_status> late;
    const imgdl::Token token = downloader.download(origin::picture("baseline.jpg?n=late"), [&](const imgdl::Event &) {
        late.set_value(code_of_waiting(batch));
    });
    CHECK_CODE(late.get_future().get(), IMGDL_OK);
}

TEST("a batch cannot be waited for inside its own progress, nor by what is destroyed with that")
{
    struct Waiting {
        std::shared_ptr<std::promise<imgdl_status>> code;
        const imgdl::Batch *batch;
        Waiting(std::shared_ptr<std::promise<imgdl_status>> told, const imgdl::Batch *waited) : code(told), batch(waited) {}
        Waiting(Waiting &&other) noexcept : code(std::move(other.code)), batch(other.batch) {}
        ~Waiting()
        {
            if (code)
                code->set_value(code_of_waiting(*batch));
        }
    };
    const auto destroyed = std::make_shared<std::promise<imgdl_status>>();
    std::promise<imgdl_status> told;
    imgdl::Downloader downloader;
    imgdl::Batch batch;
    batch = downloader.prefetch({picture_request("baseline.jpg?hold_head=1&gate=made")},
                                [&, waiting = Waiting(destroyed, &batch)](const imgdl_batch_progress &progress) {
                                    if (progress.is_finished)
                                        told.set_value(code_of_waiting(batch));
                                });
    origin::open_gate("made");
    CHECK_CODE(told.get_future().get(), IMGDL_ERROR_WOULD_DEADLOCK);
    CHECK_CODE(destroyed->get_future().get(), IMGDL_ERROR_WOULD_DEADLOCK);
    batch.wait();
}

TEST("a batch cannot be waited for on the thread that has to dispatch its progress")
{
    imgdl::Executor executor = imgdl::Executor::pumped();
    imgdl::Downloader downloader;
    imgdl::BatchOptions options;
    options.executor = executor;
    const imgdl::Batch batch = downloader.prefetch({picture_request("baseline.jpg")}, options);
    CHECK_CODE(code_of_waiting(batch), IMGDL_ERROR_WOULD_DEADLOCK);
    while (!batch.progress().finished || !batch.wait_for(0ms)) {
        pollfd descriptor = {executor.fd(), POLLIN, 0};
        CHECK(poll(&descriptor, 1, 60'000) == 1);
        executor.dispatch();
    }
    CHECK(batch.progress().finished == 1);
}

TEST("a batch can be waited for when its downloader has been let go of, but not inside its callbacks")
{
    imgdl::Downloader downloader;
    std::promise<imgdl_status> inside;
    imgdl::Batch batch;
    batch = downloader.prefetch({picture_request("baseline.jpg?hold_head=1&gate=detached")}, no_progress,
                                [&](std::size_t, const imgdl::Event &) { inside.set_value(code_of_waiting(batch)); });
    downloader.detach();
    origin::open_gate("detached");
    CHECK_CODE(inside.get_future().get(), IMGDL_ERROR_WOULD_DEADLOCK);
    batch.wait();
    CHECK(batch.progress().finished == 1);
}

TEST("an empty function is refused by the call that takes it")
{
    imgdl::Downloader downloader;
    const std::string url = origin::picture("baseline.jpg");
    const std::vector<imgdl::Request> requests(1, picture_request("baseline.jpg"));
    const std::function<void(const imgdl::Event &)> no_callback;
    const std::function<void(const imgdl_batch_progress &)> empty_progress;
    const std::function<void(std::size_t, const imgdl::Event &)> no_member;
    void (*const no_pointer)(const imgdl::Event &) = nullptr;
    check_is_refused([&] { (void)downloader.download(url, no_callback); }, "the callback");
    check_is_refused([&] { (void)downloader.download(requests[0], no_pointer); }, "the callback");
    check_is_refused([&] { (void)downloader.prefetch(requests, empty_progress); }, "progress");
    check_is_refused([&] { (void)downloader.prefetch(requests, no_progress, no_member); }, "the callback");
    check_is_refused([&] { downloader.shutdown(IMGDL_SHUTDOWN_FINISH, std::function<void()>()); }, "done");
    check_is_refused([&] { downloader.set_observer(std::function<void(const imgdl_observation &)>()); }, "the observer");
    check_is_refused([] { imgdl::Cache({}, std::function<void(const imgdl_cache_event &)>()); }, "on_event");
    // Nothing has begun, and nothing has ended.
    CHECK(downloader.current_count() == 0);
    CHECK(downloader.get(url).image().is_complete());
}

TEST("functions, pointers to them, full std::functions, and what takes an event by value are called")
{
    imgdl::Downloader downloader;
    const std::string url = origin::picture("baseline.jpg");
    const std::vector<imgdl::Request> requests(1, picture_request("baseline.jpg"));
    function_calls = 0;
    downloader.download(url, count_event).wait();
    downloader.download(url, &count_event).wait();
    downloader.download(url, std::function<void(const imgdl::Event &)>(count_event)).wait();
    downloader.download(url, [](imgdl::Event event) { function_calls += event.is_terminal(); }).wait();
    downloader.prefetch(requests, count_progress).wait();
    downloader.prefetch(requests, count_progress, [](std::size_t, imgdl::Event) { function_calls++; }).wait();
    CHECK(function_calls == 7);
}
