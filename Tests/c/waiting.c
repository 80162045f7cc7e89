/* Waiting: what it waits for, how long, and where it would wait for itself. */
#define SUITE "waiting"
#include "support.h"

#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

static imgdl_request plain_request(const char *url)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    return request;
}

TEST("imgdl_token_wait without a callback: the result is in the token, and stays there")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_request request = plain_request(at_origin("/pictures/tiny.jpg?hold_head=1&gate=plain"));
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(downloader, &request, &token));
    CHECK_CODE(imgdl_token_wait(token, 0), IMGDL_ERROR_WAIT_TIMEOUT);
    CHECK_CODE(imgdl_token_wait(token, 20), IMGDL_ERROR_WAIT_TIMEOUT);
    open_gate("plain");
    for (int again = 0; again < 2; again++) {
        CHECK_CODE(imgdl_token_wait(token, -1), IMGDL_OK);
        imgdl_result result;
        imgdl_result_init(&result, sizeof result);
        CHECK_CODE(imgdl_token_result(token, &result), IMGDL_OK);
        CHECK_NUMBER(imgdl_image_width(result.image), 48);
    }
    imgdl_token_release(token);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

struct waiter {
    imgdl_token *token;
    imgdl_downloader *downloader;
    struct flag started;
};

static void *wait_for_token(void *argument)
{
    struct waiter *waiter = argument;
    raise_flag(&waiter->started);
    imgdl_status result = imgdl_token_wait(waiter->token, -1);
    CHECK_CODE(result, IMGDL_OK);
    return NULL;
}

static void *wait_for_idle(void *argument)
{
    struct waiter *waiter = argument;
    raise_flag(&waiter->started);
    imgdl_status result = imgdl_downloader_wait_idle(waiter->downloader, -1);
    CHECK_CODE(result, IMGDL_OK);
    return NULL;
}

TEST("many threads may wait for one token and one downloader, and a cancel wakes them")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_request request = plain_request(at_origin("/pictures/tiny.jpg?hold_head=1&gate=never"));
    struct waiter waiter = {.downloader = downloader, .started = FLAG_INIT};
    REQUIRE_OK(imgdl_download(downloader, &request, &waiter.token));
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        REQUIRE(pthread_create(&threads[i], NULL, i % 2 ? wait_for_token : wait_for_idle, &waiter) == 0);
    await_flag(&waiter.started, 6);
    CHECK_CODE(imgdl_token_cancel(waiter.token), IMGDL_OK);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    CHECK_CODE(imgdl_token_result(waiter.token, &result), IMGDL_OK);
    CHECK_CODE(result.code, IMGDL_ERROR_CANCELLED);
    imgdl_token_release(waiter.token);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

/* ---- Where waiting would be a deadlock */

struct inside {
    struct recorder recorder; /* first: hooks get its address */
    imgdl_downloader *downloader;
    imgdl_token *other;
    imgdl_executor *executor;
};

static void wait_inside(struct recorder *recorder, const imgdl_event *event)
{
    struct inside *inside = (struct inside *)(void *)recorder;
    CHECK_CODE(imgdl_token_wait(event->token, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    CHECK_CODE(imgdl_token_wait(inside->other, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    CHECK_CODE(imgdl_downloader_wait_idle(inside->downloader, -1), IMGDL_ERROR_WOULD_DEADLOCK);
}

static void check_wait_inside(imgdl_executor *executor, const char *name)
{
    struct inside inside = {0};
    recorder_init(&inside.recorder);
    inside.downloader = new_downloader();
    inside.recorder.hook = wait_inside;
    imgdl_request other = plain_request(at_origin("/pictures/tiny.jpg?hold_head=1&gate=never"));
    REQUIRE_OK(imgdl_download(inside.downloader, &other, &inside.other));
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=inside-%s", name), &inside.recorder);
    request.executor = executor;
    CHECK_CODE(download_and_wait(inside.downloader, &request, &inside.recorder), IMGDL_OK);
    imgdl_token_release(inside.other);
    REQUIRE_OK(imgdl_downloader_destroy(inside.downloader));
    recorder_clear(&inside.recorder);
}

TEST("waiting in a callback on a thread of the library is WOULD_DEADLOCK")
{
    check_wait_inside(NULL, "thread");
}

TEST("waiting in an inline callback is WOULD_DEADLOCK")
{
    check_wait_inside(IMGDL_EXECUTOR_INLINE, "inline");
}

TEST("waiting on the thread of a pumped executor for its own callbacks is WOULD_DEADLOCK; another thread may")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_executor *executor = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=pump-owner"), &recorder);
    request.executor = executor;
    struct waiter waiter = {.downloader = downloader, .started = FLAG_INIT};
    REQUIRE_OK(imgdl_download(downloader, &request, &waiter.token));
    CHECK_CODE(imgdl_token_wait(waiter.token, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, wait_for_token, &waiter) == 0);
    if (!await_end(&recorder, executor))
        harness_abandon();
    pthread_join(thread, NULL);
    CHECK_NUMBER(recorder.terminals, 1);
    /* Nothing is outstanding any more: there is nothing to wait for. */
    CHECK_CODE(imgdl_token_wait(waiter.token, -1), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, -1), IMGDL_OK);
    imgdl_token_release(waiter.token);
    imgdl_executor_release(executor);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

struct pump {
    imgdl_executor *executor;
    struct recorder *until;
    struct flag dispatched;
};

static void *pump_until_end(void *argument)
{
    struct pump *pump = argument;
    ignore_status(imgdl_executor_dispatch(pump->executor, 0, NULL)); /* from now on it belongs to this thread */
    raise_flag(&pump->dispatched);
    await_end(pump->until, pump->executor);
    return NULL;
}

static void ask_on_executor(struct recorder *recorder, const imgdl_event *event)
{
    struct inside *inside = (struct inside *)(void *)recorder;
    if (event->kind != IMGDL_EVENT_TERMINAL)
        return;
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=came-later"), inside->recorder.context);
    request.executor = inside->executor;
    CHECK_CODE(imgdl_download(inside->downloader, &request, &inside->other), IMGDL_OK);
}

TEST("what comes for the executor of a thread that waits already ends its wait with WOULD_DEADLOCK")
{
    struct inside inside = {0};
    struct recorder later;
    recorder_init(&inside.recorder);
    recorder_init(&later);
    inside.downloader = new_downloader();
    inside.recorder.hook = ask_on_executor;
    inside.recorder.context = &later;
    REQUIRE_OK(imgdl_executor_create_pumped(&inside.executor));
    /* Long enough for the wait to have begun, mostly: a wait that begins later passes as well. */
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?delay_ms=200&_=waits-already"), &inside.recorder);
    REQUIRE_OK(imgdl_download(inside.downloader, &request, NULL));
    CHECK_CODE(imgdl_downloader_wait_idle(inside.downloader, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    if (!await_end(&later, inside.executor) || !await_end(&inside.recorder, NULL))
        harness_abandon();
    check_ending(&inside.recorder);
    check_ending(&later);
    CHECK_CODE(later.code, IMGDL_OK);
    imgdl_token_release(inside.other);
    REQUIRE_OK(imgdl_downloader_destroy(inside.downloader));
    imgdl_executor_release(inside.executor);
}

/* Asks for downloads on another thread's executor, just when that thread destroys the downloader. */
struct latecomer {
    imgdl_executor *executor;
    _Atomic(imgdl_downloader *) downloader;
    atomic_int pause, is_over, accepted, refused;
};

static void pass_time(int count)
{
    for (volatile int i = 0; i < count; i++) {
    }
}

static void *come_late(void *argument)
{
    struct latecomer *latecomer = argument;
    while (!latecomer->is_over) {
        imgdl_downloader *downloader = latecomer->downloader;
        if (!downloader) {
            sched_yield();
            continue;
        }
        pass_time(latecomer->pause);
        imgdl_request request = plain_request("data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7");
        request.executor = latecomer->executor;
        request.callback = ignore_event;
        imgdl_status status = imgdl_download(downloader, &request, NULL);
        CHECK(status == IMGDL_OK || status == IMGDL_ERROR_SHUT_DOWN);
        atomic_fetch_add(status == IMGDL_OK ? &latecomer->accepted : &latecomer->refused, 1);
        latecomer->downloader = NULL;
    }
    return NULL;
}

TEST("destroy does not wait for what another thread hands it on the calling thread's executor at that moment")
{
    enum { ROUNDS = UNDER_SANITIZER ? 200 : 1000, PAUSE = 200 };
    struct latecomer latecomer = {0};
    unsigned seed = 1, head_start = 6000;
    pthread_t thread;
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.flags |= IMGDL_CONFIG_ALLOW_DATA_URLS;
    REQUIRE_OK(imgdl_executor_create_pumped(&latecomer.executor));
    REQUIRE(pthread_create(&thread, NULL, come_late, &latecomer) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        imgdl_downloader *downloader = NULL;
        REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
        REQUIRE(imgdl_downloader_retain(downloader) == downloader);
        latecomer.pause = rand_r(&seed) % PAUSE;
        int accepted = latecomer.accepted;
        latecomer.downloader = downloader;
        pass_time(rand_r(&seed) % head_start);
        CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
        while (latecomer.downloader)
            sched_yield();
        /* So that each of the two is the first as often, however fast the machine. */
        head_start = latecomer.accepted == accepted ? head_start + head_start / 16 + 1 : head_start - head_start / 16 + 1;
        imgdl_downloader_release(downloader);
        (void)imgdl_executor_dispatch(latecomer.executor, 0, NULL);
    }
    latecomer.is_over = 1;
    pthread_join(thread, NULL);
    CHECK(latecomer.accepted > ROUNDS / 20);
    CHECK(latecomer.refused > ROUNDS / 20);
    imgdl_executor_release(latecomer.executor);
}

TEST("a pumped executor belongs to the thread that dispatched it last")
{
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorder;
    recorder_init(&recorder);
    struct pump pump = {.until = &recorder, .dispatched = FLAG_INIT};
    REQUIRE_OK(imgdl_executor_create_pumped(&pump.executor));
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?hold_head=1&gate=moved"), &recorder);
    request.executor = pump.executor;
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(downloader, &request, &token));
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, pump_until_end, &pump) == 0);
    await_flag(&pump.dispatched, 1);
    open_gate("moved");
    CHECK_CODE(imgdl_token_wait(token, PATIENCE_MS), IMGDL_OK);
    pthread_join(thread, NULL);
    check_ending(&recorder);
    imgdl_token_release(token);
    imgdl_executor_release(pump.executor);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

static void wait_for_other(struct recorder *recorder, const imgdl_event *event)
{
    struct inside *inside = (struct inside *)(void *)recorder;
    if (event->kind != IMGDL_EVENT_TERMINAL)
        return;
    CHECK_CODE(imgdl_token_wait(event->token, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    CHECK_CODE(imgdl_executor_dispatch(inside->executor, 0, NULL), IMGDL_ERROR_WOULD_DEADLOCK);
    /* The other one's callbacks need the library's thread, which is free. */
    CHECK_CODE(imgdl_token_wait(inside->other, 0), IMGDL_ERROR_WAIT_TIMEOUT);
    char gate[32];
    snprintf(gate, sizeof gate, "other-%d", (int)getpid());
    open_gate(gate);
    CHECK_CODE(imgdl_token_wait(inside->other, PATIENCE_MS), IMGDL_OK);
}

TEST("a callback of a pumped executor may wait for what does not need its thread, but not dispatch itself")
{
    struct inside inside = {0};
    struct recorder other;
    recorder_init(&inside.recorder);
    recorder_init(&other);
    inside.downloader = new_downloader();
    inside.recorder.hook = wait_for_other;
    REQUIRE_OK(imgdl_executor_create_pumped(&inside.executor));
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.webp?hold_head=1&gate=other-%d", (int)getpid()), &other);
    REQUIRE_OK(imgdl_download(inside.downloader, &request, &inside.other));
    request = recorded_request(at_origin("/pictures/tiny.png?_=waits-for-other"), &inside.recorder);
    request.executor = inside.executor;
    REQUIRE_OK(imgdl_download(inside.downloader, &request, NULL));
    if (!await_end(&inside.recorder, inside.executor))
        harness_abandon();
    check_ending(&inside.recorder);
    CHECK_NUMBER(other.terminals, 1);
    imgdl_token_release(inside.other);
    imgdl_executor_release(inside.executor);
    REQUIRE_OK(imgdl_downloader_destroy(inside.downloader));
}

static void start_another(struct recorder *recorder, const imgdl_event *event)
{
    if (event->kind != IMGDL_EVENT_TERMINAL || recorder->context == NULL)
        return;
    struct inside *inside = recorder->context;
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=from-callback"), &inside->recorder);
    CHECK_CODE(imgdl_download(inside->downloader, &request, &inside->other), IMGDL_OK);
    CHECK_CODE(imgdl_token_set_priority(inside->other, IMGDL_PRIORITY_HIGH), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_set_max_concurrent(inside->downloader, 3), IMGDL_OK);
    CHECK(imgdl_downloader_current_count(inside->downloader) >= 1);
}

TEST("everything else may be called inside a callback, a new download too")
{
    struct inside inside = {0};
    recorder_init(&inside.recorder);
    inside.downloader = new_downloader();
    struct recorder first;
    recorder_init(&first);
    first.hook = start_another;
    first.context = &inside;
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?_=callback"), &first);
    CHECK_CODE(download_and_wait(inside.downloader, &request, &first), IMGDL_OK);
    if (!await_end(&inside.recorder, NULL))
        harness_abandon();
    check_ending(&inside.recorder);
    CHECK_CODE(imgdl_downloader_wait_idle(inside.downloader, PATIENCE_MS), IMGDL_OK);
    imgdl_token_release(inside.other);
    REQUIRE_OK(imgdl_downloader_destroy(inside.downloader));
}

/* ---- A batch's progress, inline, runs where its last request's callback has run: here inside a dispatch. */

struct progressing {
    imgdl_downloader *downloader;
    unsigned steps;
    struct flag destroyed;
};

static void wait_in_progress(const imgdl_batch_progress *progress, void *user_data)
{
    struct progressing *progressing = user_data;
    progressing->steps++;
    CHECK_CODE(imgdl_downloader_wait_idle(progressing->downloader, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    if (progress->is_finished)
        CHECK_CODE(imgdl_downloader_destroy(progressing->downloader), IMGDL_OK);
}

static void on_progressing_destroyed(void *user_data)
{
    struct progressing *progressing = user_data;
    CHECK_CODE(imgdl_downloader_wait_idle(progressing->downloader, -1), IMGDL_ERROR_INVALID_HANDLE);
    raise_flag(&progressing->destroyed);
}

static void pump(imgdl_executor *executor)
{
    struct pollfd descriptor = {.fd = imgdl_executor_fd(executor), .events = POLLIN};
    REQUIRE(poll(&descriptor, 1, PATIENCE_MS) == 1);
    REQUIRE_OK(imgdl_executor_dispatch(executor, 0, NULL));
}

TEST("an inline progress of a batch runs inside a dispatch: to wait there is WOULD_DEADLOCK, and to destroy does not wait")
{
    struct progressing progressing = {.downloader = new_downloader(), .destroyed = FLAG_INIT};
    struct recorder recorders[2];
    imgdl_request requests[2];
    imgdl_executor *executor = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    for (int i = 0; i < 2; i++) {
        recorder_init(&recorders[i]);
        requests[i] = recorded_request(at_origin("/pictures/tiny.png?_=progress-%d", i), &recorders[i]);
        requests[i].event_mask = IMGDL_EVENT_TERMINAL;
        requests[i].executor = executor;
    }
    imgdl_batch_options options;
    imgdl_batch_options_init(&options, sizeof options);
    options.executor = IMGDL_EXECUTOR_INLINE;
    options.progress = wait_in_progress;
    options.destructor = on_progressing_destroyed;
    options.user_data = &progressing;
    REQUIRE_OK(imgdl_downloader_prefetch(progressing.downloader, requests, 2, &options, NULL));
    while (progressing.steps < 2)
        pump(executor);
    await_flag(&progressing.destroyed, 1);
    CHECK_NUMBER(progressing.steps, 2);
    for (int i = 0; i < 2; i++)
        check_ending(&recorders[i]);
    imgdl_executor_release(executor);
}

/* ---- Destructors on the thread that releases an executor, which is not the one that it belongs to */

struct dropped {
    imgdl_downloader *own, *other;
    imgdl_token *token, *waiting;
    imgdl_executor *executor;
    struct flag destroyed;
};

static void on_dropped(void *user_data)
{
    struct dropped *dropped = user_data;
    CHECK_CODE(imgdl_token_wait(dropped->token, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    CHECK_CODE(imgdl_downloader_wait_idle(dropped->own, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    /* Its destructor is this thread's business, too, when this one has returned. */
    CHECK_CODE(imgdl_token_wait(dropped->waiting, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    CHECK_CODE(imgdl_downloader_wait_idle(dropped->other, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    CHECK_CODE(imgdl_downloader_destroy(dropped->other), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_destroy(dropped->own), IMGDL_OK);
    raise_flag(&dropped->destroyed);
}

static void never_called(const imgdl_event *event, void *user_data)
{
    (void)user_data;
    FAIL("a callback of an executor that is gone: event %u", event->kind);
}

static void *release_executor(void *argument)
{
    struct dropped *dropped = argument;
    imgdl_executor_release(dropped->executor);
    return NULL;
}

TEST("destructors that run while another thread releases an executor: waiting is WOULD_DEADLOCK, destroying does not wait")
{
    struct dropped dropped = {.own = new_downloader(), .other = new_downloader(), .destroyed = FLAG_INIT};
    struct recorder recorder;
    recorder_init(&recorder);
    REQUIRE_OK(imgdl_executor_create_pumped(&dropped.executor));
    imgdl_request request = plain_request(at_origin("/pictures/tiny.png?_=dropped"));
    request.executor = dropped.executor;
    request.callback = never_called;
    request.destructor = on_dropped;
    request.user_data = &dropped;
    REQUIRE_OK(imgdl_download(dropped.own, &request, &dropped.token));
    await_stats(dropped.own, have_ended_well, 1);
    /* What waits behind it. */
    request = recorded_request(at_origin("/pictures/tiny.png?_=waiting"), &recorder);
    request.executor = dropped.executor;
    request.callback = never_called;
    request.event_mask = IMGDL_EVENT_TERMINAL;
    REQUIRE_OK(imgdl_download(dropped.other, &request, &dropped.waiting));
    await_stats(dropped.other, have_ended_well, 1);
    /* Once the engine has told of the next it has told of the last. */
    for (int i = 0; i < 2; i++) {
        struct recorder next;
        recorder_init(&next);
        request = recorded_request(at_origin("/pictures/tiny.png?_=next"), &next);
        CHECK_CODE(download_and_wait(i ? dropped.other : dropped.own, &request, &next), IMGDL_OK);
    }
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, release_executor, &dropped) == 0);
    REQUIRE(await_flag(&dropped.destroyed, 1));
    pthread_join(thread, NULL);
    CHECK_NUMBER(recorder.destroyed, 1);
    imgdl_token_release(dropped.token);
    imgdl_token_release(dropped.waiting);
}

static void *no_start(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request, (void)user_data;
    imgdl_transfer_release(transfer);
    return NULL;
}

static void no_cancel(void *loading, void *user_data) { (void)loading, (void)user_data; }

struct destroying {
    imgdl_downloader *downloader;
    int has_run;
};

static void destroy_again(void *user_data)
{
    struct destroying *destroying = user_data;
    CHECK_CODE(imgdl_downloader_destroy(destroying->downloader), IMGDL_OK);
    destroying->has_run = 1;
}

TEST("a destructor that runs inside destroy may destroy the same downloader by another reference")
{
    struct destroying destroying = {.downloader = new_downloader()};
    imgdl_transport_table table = {
        .struct_size = sizeof table, .start = no_start, .cancel = no_cancel, .destructor = destroy_again,
        .user_data = &destroying};
    REQUIRE_OK(imgdl_transport_register(destroying.downloader, "mine", &table));
    CHECK(imgdl_downloader_retain(destroying.downloader) == destroying.downloader);
    CHECK_CODE(imgdl_downloader_destroy(destroying.downloader), IMGDL_OK);
    CHECK(destroying.has_run);
}

enum { CROWD = UNDER_SANITIZER ? 2000 : 50000 };

static void count_end(const imgdl_event *event, void *user_data)
{
    int *ends = user_data;
    if (event->kind == IMGDL_EVENT_TERMINAL && event->code == IMGDL_ERROR_CANCELLED)
        ++*ends;
}

static int are_waiting(const imgdl_stats *stats, uint64_t number) { return stats->waiting == number; }

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

TEST("each of many requests that wait takes 500 bytes at most, token included, and one call ends each once")
{
    static int ends[CROWD + 1];
    imgdl_token **tokens = calloc(CROWD + 1, sizeof *tokens);
    imgdl_downloader *downloader = new_downloader();
    REQUIRE_OK(imgdl_downloader_set_suspended(downloader, 1));
    size_t before = 0;
    for (int i = 0; i <= CROWD; i++) {
        char url[81];
        int length = snprintf(url, sizeof url, "http://images.example.com/%d/", i);
        memset(url + length, 'p', sizeof url - 1 - (size_t)length);
        url[80] = 0;
        imgdl_request request = plain_request(url);
        request.executor = IMGDL_EXECUTOR_INLINE;
        request.callback = count_end;
        request.user_data = &ends[i];
        REQUIRE_OK(imgdl_download(downloader, &request, &tokens[i]));
        /* What is made once is there with the first. */
        if (i == 0) {
            await_stats(downloader, are_waiting, 1);
            before = allocated();
        }
    }
    await_stats(downloader, are_waiting, CROWD + 1);
    if (!UNDER_SANITIZER) {
        size_t each = (allocated() - before) / CROWD;
        if (each > 500)
            FAIL("each takes %zu bytes", each);
    }
    REQUIRE_OK(imgdl_downloader_cancel_all(downloader));
    REQUIRE_OK(imgdl_downloader_wait_idle(downloader, PATIENCE_MS));
    int wrong = 0;
    for (int i = 0; i <= CROWD; i++) {
        wrong += ends[i] != 1;
        imgdl_token_release(tokens[i]);
    }
    CHECK_NUMBER(wrong, 0);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    free(tokens);
}
