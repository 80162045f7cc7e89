/* Waiting: what it waits for, how long, and where it would wait for itself. */
#define SUITE "waiting"
#include "support.h"

#include <malloc.h>
#include <poll.h>
#include <sched.h>

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
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.webp?_=other"), &other);
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

enum { CROWD = UNDER_SANITIZER ? 2000 : 50000 };

static void count_end(const imgdl_event *event, void *user_data)
{
    int *ends = user_data;
    if (event->kind == IMGDL_EVENT_TERMINAL && event->code == IMGDL_ERROR_CANCELLED)
        ++*ends;
}

static void await_crowd(imgdl_downloader *downloader, uint64_t waiting)
{
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    do {
        sched_yield();
        REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
    } while (stats.waiting != waiting);
}

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
            await_crowd(downloader, 1);
            before = allocated();
        }
    }
    await_crowd(downloader, CROWD + 1);
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
