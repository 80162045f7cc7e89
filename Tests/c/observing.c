/* Observers, statistics and metrics from many threads, and across fork() (features N1-N4, B24, I40). */
#define SUITE "observing"
#include "support.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

struct observer {
    atomic_uint started, response, stopped, finished, destroyed, late;
};

static void on_observation(const imgdl_observation *observation, void *user_data)
{
    struct observer *observer = user_data;
    if (atomic_load(&observer->destroyed))
        observer->late++;
    switch (observation->kind) {
    case IMGDL_OBSERVED_STARTED: observer->started++; break;
    case IMGDL_OBSERVED_RESPONSE: observer->response++; break;
    case IMGDL_OBSERVED_STOPPED: observer->stopped++; break;
    case IMGDL_OBSERVED_FINISHED: observer->finished++; break;
    default: observer->late++;
    }
}

static void on_observer_destroyed(void *user_data) { ((struct observer *)user_data)->destroyed++; }

static imgdl_stats stats_of(imgdl_downloader *downloader)
{
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    CHECK_CODE(imgdl_downloader_stats(downloader, &stats), IMGDL_OK);
    return stats;
}

enum { WATCHERS = 2, REPLACED = 200, LOADERS = 3, LOADS = UNDER_SANITIZER ? 100 : 400 };

static imgdl_downloader *busy;
static struct observer replaced[WATCHERS][REPLACED];

static void *keep_replacing(void *argument)
{
    struct observer *observers = argument;
    for (int i = 0; i < REPLACED; i++) {
        CHECK_CODE(imgdl_downloader_set_observer(busy, on_observation, &observers[i], on_observer_destroyed), IMGDL_OK);
        imgdl_stats stats = stats_of(busy);
        if (stats.succeeded + stats.failed + stats.cancelled > stats.submitted || stats.shared > stats.submitted)
            FAIL("more ends than requests");
        if (stats.total.count != stats.succeeded + stats.failed + stats.cancelled)
            FAIL("a snapshot that is torn");
    }
    return NULL;
}

static void *keep_loading(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    char *base = (char *)(uintptr_t)at_origin("/pictures/tiny.png?n=");
    for (unsigned i = 0; i < LOADS; i++) {
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        char url[256];
        snprintf(url, sizeof url, "%s%u", base, (unsigned)(i * LOADERS + number) % 50);
        request.url = url;
        imgdl_token *token = NULL;
        REQUIRE_OK(imgdl_download(busy, &request, &token));
        imgdl_metrics metrics;
        imgdl_metrics_init(&metrics, sizeof metrics);
        imgdl_status status = imgdl_token_metrics(token, &metrics);
        if (status != IMGDL_OK && status != IMGDL_ERROR_NOT_READY)
            FAIL("imgdl_token_metrics: %s", imgdl_error_name(status));
        if (i % 5 == 0)
            ignore_status(imgdl_token_cancel(token));
        CHECK_CODE(imgdl_token_wait(token, -1), IMGDL_OK);
        REQUIRE_OK(imgdl_token_metrics(token, &metrics));
        CHECK(metrics.total_ns > 0);
        CHECK(metrics.is_shared || metrics.queue_ns + metrics.transfer_ns <= metrics.total_ns);
        imgdl_token_release(token);
    }
    free(base);
    return NULL;
}

TEST_WITHIN(UNDER_SANITIZER ? 300 : 60, "stress: observers come and go while all is busy: each has one destructor and nothing after it (N1)")
{
    busy = new_downloader();
    pthread_t watchers[WATCHERS], loaders[LOADERS];
    for (int i = 0; i < WATCHERS; i++)
        REQUIRE(pthread_create(&watchers[i], NULL, keep_replacing, replaced[i]) == 0);
    for (uintptr_t i = 0; i < LOADERS; i++)
        REQUIRE(pthread_create(&loaders[i], NULL, keep_loading, (void *)i) == 0);
    for (int i = 0; i < WATCHERS; i++)
        pthread_join(watchers[i], NULL);
    for (int i = 0; i < LOADERS; i++)
        pthread_join(loaders[i], NULL);
    REQUIRE_OK(imgdl_downloader_wait_idle(busy, -1));
    imgdl_stats stats = stats_of(busy);
    CHECK_NUMBER(stats.submitted, LOADERS * LOADS);
    CHECK_NUMBER(stats.succeeded + stats.failed + stats.cancelled, LOADERS * LOADS);
    CHECK_NUMBER(stats.waiting + stats.running + stats.decoding, 0);
    CHECK_NUMBER(stats.transfer.count, stats.transfers);
    CHECK_CODE(imgdl_downloader_destroy(busy), IMGDL_OK);
    unsigned started = 0, stopped = 0;
    for (int i = 0; i < WATCHERS; i++)
        for (int k = 0; k < REPLACED; k++) {
            CHECK_NUMBER(replaced[i][k].destroyed, 1);
            CHECK_NUMBER(replaced[i][k].late, 0);
            started += replaced[i][k].started;
            stopped += replaced[i][k].stopped;
        }
    CHECK(started <= stats.transfers && stopped <= stats.transfers);
    CHECK(!HAS_LEAKS());
}

static void look_at_statistics(struct recorder *recorder, const imgdl_event *event)
{
    (void)event;
    imgdl_stats stats = stats_of(recorder->context);
    CHECK_NUMBER(stats.cancelled, 1);
    CHECK_NUMBER(stats.succeeded + stats.failed, 0);
}

TEST("what is cancelled after its end and before anybody is told counts as cancelled, as the callback says (N1)")
{
    for (int round = 0; round < 4; round++) {
        imgdl_executor *executor = NULL;
        REQUIRE_OK(imgdl_executor_create_pumped(&executor));
        imgdl_downloader *downloader = new_downloader();
        struct recorder recorder;
        recorder_init(&recorder);
        recorder.hook = look_at_statistics;
        recorder.context = downloader;
        const char *paths[] = {"/pictures/tiny.png?_=between%d", "/status/404?_=between%d"};
        imgdl_request request = recorded_request(at_origin(paths[round % 2], round), &recorder);
        request.event_mask = 0; /* the terminal alone */
        request.executor = executor;
        imgdl_token *token = NULL;
        REQUIRE_OK(imgdl_download(downloader, &request, &token));
        struct pollfd ready = {.fd = imgdl_executor_fd(executor), .events = POLLIN};
        REQUIRE(poll(&ready, 1, PATIENCE_MS) == 1);
        imgdl_stats stats = stats_of(downloader);
        CHECK_NUMBER(round % 2 ? stats.failed : stats.succeeded, 1);
        if (round < 2) {
            CHECK_CODE(imgdl_token_cancel(token), IMGDL_OK);
            CHECK_CODE(imgdl_executor_dispatch(executor, 0, NULL), IMGDL_OK);
            CHECK_CODE(recorder.code, IMGDL_ERROR_CANCELLED);
            check_ending(&recorder);
        }
        imgdl_executor_release(executor); /* without a dispatch, what it has is cancelled */
        CHECK_CODE(imgdl_token_wait(token, PATIENCE_MS), IMGDL_OK);
        stats = stats_of(downloader);
        CHECK_NUMBER(stats.cancelled, 1);
        CHECK_NUMBER(stats.succeeded + stats.failed, 0);
        imgdl_result result;
        imgdl_result_init(&result, sizeof result);
        CHECK_CODE(imgdl_token_result(token, &result), IMGDL_OK);
        CHECK_CODE(result.code, IMGDL_ERROR_CANCELLED);
        imgdl_token_release(token);
        CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
        recorder_clear(&recorder);
    }
}

TEST("every transfer that starts stops, whatever becomes of it (N1, N3)")
{
    enum { COUNT = 40 };
    imgdl_downloader *downloader = new_downloader();
    struct observer observer = {0};
    REQUIRE_OK(imgdl_downloader_set_observer(downloader, on_observation, &observer, on_observer_destroyed));
    static const char *const paths[] = {"/pictures/tiny.png?n=%d", "/pictures/baseline.jpg?n=%d&close_after=500",
                                        "/status/500?n=%d", "/pictures/baseline.jpg?n=%d&reset_after=100"};
    imgdl_token *tokens[COUNT];
    for (int i = 0; i < COUNT; i++) {
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        char path[128];
        snprintf(path, sizeof path, paths[i % 4], i);
        request.url = at_origin("%s", path);
        REQUIRE_OK(imgdl_download(downloader, &request, &tokens[i]));
        if (i % 7 == 0)
            ignore_status(imgdl_token_cancel(tokens[i]));
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK_CODE(imgdl_token_wait(tokens[i], PATIENCE_MS), IMGDL_OK);
        imgdl_token_release(tokens[i]);
    }
    imgdl_stats stats = stats_of(downloader);
    CHECK_NUMBER(observer.started, stats.transfers + stats.retries);
    CHECK_NUMBER(observer.stopped, stats.transfers);
    CHECK(observer.finished < observer.stopped);
    CHECK(observer.response <= observer.started);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    CHECK_NUMBER(observer.destroyed, 1);
}

TEST("what only waits is counted as waiting, though nothing has begun (N1)")
{
    imgdl_downloader *downloader = new_downloader();
    REQUIRE_OK(imgdl_downloader_set_suspended(downloader, 1));
    imgdl_token *tokens[3];
    for (int i = 0; i < 3; i++) {
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        request.url = at_origin("/pictures/tiny.png?n=%d", i);
        REQUIRE_OK(imgdl_download(downloader, &request, &tokens[i]));
    }
    while (stats_of(downloader).waiting != 3)
        sched_yield();
    CHECK_NUMBER(stats_of(downloader).running, 0);
    for (int i = 0; i < 3; i++) {
        ignore_status(imgdl_token_cancel(tokens[i]));
        CHECK_CODE(imgdl_token_wait(tokens[i], PATIENCE_MS), IMGDL_OK);
        imgdl_token_release(tokens[i]);
    }
    while (stats_of(downloader).waiting != 0)
        sched_yield();
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
}

TEST("fork() with a batch and an observer: the child is told so and can let go")
{
    imgdl_downloader *downloader = new_downloader();
    struct observer observer = {0};
    REQUIRE_OK(imgdl_downloader_set_observer(downloader, on_observation, &observer, on_observer_destroyed));
    imgdl_request requests[3];
    for (int i = 0; i < 3; i++) {
        imgdl_request_init(&requests[i], sizeof requests[i]);
        requests[i].url = at_origin("/pictures/baseline.jpg?hold_after=3000&gate=batch&n=%d", i);
    }
    imgdl_batch_options options;
    imgdl_batch_options_init(&options, sizeof options);
    options.max_concurrent = 2;
    imgdl_batch *batch = NULL;
    REQUIRE_OK(imgdl_downloader_prefetch(downloader, requests, 3, &options, &batch));
    await_gate("batch", 2);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int before = harness_failures();
        imgdl_stats stats;
        imgdl_stats_init(&stats, sizeof stats);
        imgdl_batch_progress progress = {.struct_size = sizeof progress};
        CHECK_CODE(imgdl_batch_cancel(batch), IMGDL_ERROR_FORKED);
        CHECK_CODE(imgdl_batch_set_paused(batch, 1), IMGDL_ERROR_FORKED);
        CHECK_CODE(imgdl_batch_set_priority(batch, 0), IMGDL_ERROR_FORKED);
        CHECK_CODE(imgdl_batch_progress_get(batch, &progress), IMGDL_ERROR_FORKED);
        CHECK_CODE(imgdl_downloader_stats(downloader, &stats), IMGDL_ERROR_FORKED);
        struct observer refused = {0};
        CHECK_CODE(imgdl_downloader_set_observer(downloader, on_observation, &refused, on_observer_destroyed),
                   IMGDL_ERROR_FORKED);
        CHECK_NUMBER(refused.destroyed, 1);
        CHECK_CODE(imgdl_downloader_prefetch(downloader, requests, 3, NULL, NULL), IMGDL_ERROR_FORKED);
        imgdl_batch_release(batch);
        CHECK_CODE(imgdl_batch_cancel(batch), IMGDL_ERROR_INVALID_HANDLE);
        imgdl_downloader_release(downloader);
        CHECK_NUMBER(observer.destroyed, 0);
        exit(harness_failures() > before ? 1 : 22);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 22);
    open_gate("batch");
    REQUIRE_OK(imgdl_downloader_wait_idle(downloader, PATIENCE_MS));
    imgdl_batch_progress progress = {.struct_size = sizeof progress};
    CHECK_CODE(imgdl_batch_progress_get(batch, &progress), IMGDL_OK);
    CHECK_NUMBER(progress.finished - progress.failed - progress.cancelled, 3);
    imgdl_batch_release(batch);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    CHECK_NUMBER(observer.destroyed, 1);
}
