/* Pumped executors: released while their callbacks run, how much a dispatch runs, and what nobody dispatches. */
#define SUITE "executors"
#include "support.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

/* What a dispatch is inside of, held there. */
struct held {
    imgdl_downloader *downloader;
    imgdl_executor *executor;
    imgdl_token *token;
    struct flag entered, leaves, destroyed;
    atomic_int inside, is_destroyed, late;
};

static void stay_inside(struct held *held)
{
    if (atomic_load(&held->is_destroyed))
        held->late++;
    atomic_store(&held->inside, 1);
    raise_flag(&held->entered);
    await_flag(&held->leaves, 1);
    atomic_store(&held->inside, 0);
}

static void on_held_event(const imgdl_event *event, void *user_data)
{
    if (event->kind != IMGDL_EVENT_STARTED)
        FAIL("event %u comes after the executor is gone", event->kind);
    stay_inside(user_data);
}

static void on_held_progress(const imgdl_batch_progress *progress, void *user_data)
{
    (void)progress;
    stay_inside(user_data);
}

static void on_held_destroyed(void *user_data)
{
    struct held *held = user_data;
    if (atomic_load(&held->inside))
        FAIL("the destructor runs while a callback of the same does");
    atomic_store(&held->is_destroyed, 1);
    raise_flag(&held->destroyed);
}

static void *dispatch(void *argument)
{
    struct held *held = argument;
    struct pollfd descriptor = {.fd = imgdl_executor_fd(held->executor), .events = POLLIN};
    if (poll(&descriptor, 1, PATIENCE_MS) != 1)
        FAIL("nothing to dispatch");
    REQUIRE_OK(imgdl_executor_dispatch(held->executor, 0, NULL));
    return NULL;
}

/* Of all that has ended, the engine has told everybody. */
static void await_told(imgdl_downloader *downloader, uint64_t ended)
{
    await_stats(downloader, have_ended_well, ended);
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=told"), &recorder);
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    recorder_clear(&recorder);
}

static struct held hold(void)
{
    struct held held = {
        .downloader = new_downloader(), .entered = FLAG_INIT, .leaves = FLAG_INIT, .destroyed = FLAG_INIT};
    REQUIRE_OK(imgdl_executor_create_pumped(&held.executor));
    return held;
}

static void check_held(struct held *held, pthread_t thread)
{
    CHECK_NUMBER(held->destroyed.value, 0);
    raise_flag(&held->leaves);
    pthread_join(thread, NULL);
    CHECK_NUMBER(held->destroyed.value, 1);
    CHECK_NUMBER(held->late, 0);
    CHECK_CODE(imgdl_downloader_wait_idle(held->downloader, PATIENCE_MS), IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_destroy(held->downloader));
}

TEST("a released executor: the destructor of a token whose callback runs comes after that, on its thread")
{
    struct held held = hold();
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png?hold_head=1&gate=held");
    request.event_mask = IMGDL_EVENT_ALL;
    request.executor = held.executor;
    request.callback = on_held_event;
    request.destructor = on_held_destroyed;
    request.user_data = &held;
    REQUIRE_OK(imgdl_download(held.downloader, &request, &held.token));
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, dispatch, &held) == 0);
    REQUIRE(await_flag(&held.entered, 1));
    imgdl_executor_release(held.executor);
    CHECK_NUMBER(held.destroyed.value, 0);
    REQUIRE_OK(imgdl_token_cancel(held.token));
    await_told(held.downloader, 1);
    check_held(&held, thread);
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    CHECK_CODE(imgdl_token_result(held.token, &result), IMGDL_OK);
    CHECK_CODE(result.code, IMGDL_ERROR_CANCELLED);
    imgdl_token_release(held.token);
}

TEST("a released executor: a batch's destructor comes after a progress that runs, and no progress after it")
{
    struct held held = hold();
    imgdl_request requests[2];
    for (int i = 0; i < 2; i++) {
        imgdl_request_init(&requests[i], sizeof requests[i]);
        requests[i].url = at_origin(i ? "/pictures/tiny.png?hold_head=1&gate=batch" : "/pictures/tiny.png?_=batch");
    }
    imgdl_batch_options options;
    imgdl_batch_options_init(&options, sizeof options);
    options.executor = held.executor;
    options.progress = on_held_progress;
    options.destructor = on_held_destroyed;
    options.user_data = &held;
    REQUIRE_OK(imgdl_downloader_prefetch(held.downloader, requests, 2, &options, NULL));
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, dispatch, &held) == 0);
    REQUIRE(await_flag(&held.entered, 1));
    imgdl_executor_release(held.executor);
    open_gate("batch");
    await_told(held.downloader, 2);
    check_held(&held, thread);
}

static void release_own_executor(struct recorder *recorder, const imgdl_event *event)
{
    if (event->kind == IMGDL_EVENT_STARTED)
        imgdl_executor_release(recorder->context);
}

TEST("an executor that is released inside one of its own callbacks: all that wait there end once, without another callback")
{
    imgdl_downloader *downloader = new_downloader_with(4, NULL);
    imgdl_executor *executor = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    struct recorder recorders[4];
    for (int i = 0; i < 4; i++) {
        recorder_init(&recorders[i]);
        recorders[i].hook = release_own_executor;
        recorders[i].context = executor;
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=own-%d", i), &recorders[i]);
        request.executor = executor;
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
    await_told(downloader, 4);
    REQUIRE_OK(imgdl_executor_dispatch(executor, 0, NULL));
    unsigned callbacks = 0;
    for (int i = 0; i < 4; i++) {
        CHECK_NUMBER(recorders[i].destroyed, 1);
        CHECK_NUMBER(recorders[i].late, 0);
        CHECK_NUMBER(recorders[i].overlaps, 0);
        callbacks += recorders[i].count;
    }
    CHECK_NUMBER(callbacks, 1);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, PATIENCE_MS), IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("a released executor: the thread that made it waits for what is left there, which ends without a callback")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_executor *executor = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    struct recorder recorders[2];
    imgdl_token *tokens[2];
    for (int i = 0; i < 2; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request =
            recorded_request(at_origin("/pictures/tiny.png?hold_head=1&gate=left-%d", i), &recorders[i]);
        request.executor = executor;
        REQUIRE_OK(imgdl_download(downloader, &request, &tokens[i]));
    }
    imgdl_executor *kept = imgdl_executor_retain(executor);
    imgdl_executor_release(executor);
    CHECK_CODE(imgdl_token_wait(tokens[0], PATIENCE_MS), IMGDL_ERROR_WOULD_DEADLOCK);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, PATIENCE_MS), IMGDL_ERROR_WOULD_DEADLOCK);
    imgdl_executor_release(kept);
    CHECK_CODE(imgdl_token_wait(tokens[0], 0), IMGDL_ERROR_WAIT_TIMEOUT);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, 0), IMGDL_ERROR_WAIT_TIMEOUT);
    open_gate("left-0");
    CHECK_CODE(imgdl_token_wait(tokens[0], PATIENCE_MS), IMGDL_OK);
    open_gate("left-1");
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, PATIENCE_MS), IMGDL_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_NUMBER(recorders[i].count, 0);
        CHECK_NUMBER(recorders[i].destroyed, 1);
        imgdl_result result;
        imgdl_result_init(&result, sizeof result);
        CHECK_CODE(imgdl_token_result(tokens[i], &result), IMGDL_OK);
        CHECK_CODE(result.code, IMGDL_ERROR_CANCELLED);
        imgdl_token_release(tokens[i]);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

/* ---- What a dispatch runs */

enum { STEPS = 8 };

/* A batch whose progress waits in a pumped executor. */
struct steps {
    imgdl_downloader *downloader;
    imgdl_executor *executor;
    size_t finished[STEPS];
    unsigned count, destroyed;
    int is_finished;
    void (*on_first)(imgdl_executor *executor);
};

static void on_step(const imgdl_batch_progress *progress, void *user_data)
{
    struct steps *steps = user_data;
    if (steps->destroyed || steps->is_finished)
        FAIL("a step comes after the last one");
    if (steps->count < STEPS)
        steps->finished[steps->count] = progress->finished;
    steps->is_finished = progress->is_finished;
    if (!steps->count++ && steps->on_first)
        steps->on_first(steps->executor);
}

static void on_steps_destroyed(void *user_data) { ((struct steps *)user_data)->destroyed++; }

/* All requests of the batch have ended, and none of its steps has been told. */
static void have_steps_wait(struct steps *steps, int are_heard)
{
    steps->downloader = new_downloader();
    REQUIRE_OK(imgdl_executor_create_pumped(&steps->executor));
    imgdl_request requests[STEPS];
    for (int i = 0; i < STEPS; i++) {
        imgdl_request_init(&requests[i], sizeof requests[i]);
        requests[i].url = at_origin("/pictures/tiny.png?_=step-%d", i);
    }
    imgdl_batch_options options;
    imgdl_batch_options_init(&options, sizeof options);
    options.executor = steps->executor;
    options.progress = are_heard ? on_step : NULL;
    options.destructor = on_steps_destroyed;
    options.user_data = steps;
    REQUIRE_OK(imgdl_downloader_prefetch(steps->downloader, requests, STEPS, &options, NULL));
    await_told(steps->downloader, STEPS);
    CHECK_NUMBER(steps->count, 0);
}

static uint32_t dispatched(imgdl_executor *executor, uint32_t most)
{
    uint32_t count = UINT32_MAX;
    REQUIRE_OK(imgdl_executor_dispatch(executor, most, &count));
    return count;
}

static int is_readable(imgdl_executor *executor)
{
    struct pollfd descriptor = {.fd = imgdl_executor_fd(executor), .events = POLLIN};
    return poll(&descriptor, 1, 0) == 1;
}

static void *make_executor(void *executor)
{
    REQUIRE_OK(imgdl_executor_create_pumped(executor));
    return NULL;
}

struct waiting {
    imgdl_token *token;
    struct flag has_looked;
};

static void *wait_in_another(void *argument)
{
    struct waiting *waiting = argument;
    CHECK_CODE(imgdl_token_wait(waiting->token, 0), IMGDL_ERROR_WAIT_TIMEOUT);
    raise_flag(&waiting->has_looked);
    CHECK_CODE(imgdl_token_wait(waiting->token, -1), IMGDL_OK);
    return NULL;
}

TEST("an executor whose thread has ended: a thread that the system gives the same number waits for its downloads")
{
    imgdl_executor *executor = NULL;
    pthread_t thread, other;
    struct recorder recorder;
    imgdl_downloader *downloader = new_downloader();
    recorder_init(&recorder);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=threads"), &recorder);
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    recorder_clear(&recorder);
    REQUIRE(pthread_create(&thread, NULL, make_executor, &executor) == 0);
    pthread_join(thread, NULL);
    recorder_init(&recorder);
    request = recorded_request(at_origin("/pictures/tiny.png?hold_head=1&gate=ended-thread"), &recorder);
    request.executor = executor;
    request.event_mask = 0; /* the terminal alone */
    struct waiting waiting = {NULL, FLAG_INIT};
    REQUIRE_OK(imgdl_download(downloader, &request, &waiting.token));
    await_gate("ended-thread", 1);
    REQUIRE(pthread_create(&other, NULL, wait_in_another, &waiting) == 0);
    int is_same = pthread_equal(thread, other);
    REQUIRE(await_flag(&waiting.has_looked, 1));
    open_gate("ended-thread");
    struct pollfd descriptor = {.fd = imgdl_executor_fd(executor), .events = POLLIN};
    for (uint32_t ran = 0; !ran;) {
        REQUIRE(poll(&descriptor, 1, PATIENCE_MS) == 1);
        REQUIRE_OK(imgdl_executor_dispatch(executor, 0, &ran));
    }
    pthread_join(other, NULL);
    imgdl_token_release(waiting.token);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_executor_release(executor);
    recorder_clear(&recorder);
    if (!is_same)
        harness_skip("this machine cannot give a thread the number of another one");
}

TEST("a dispatch runs max_events progress calls of a batch at most, and says how many")
{
    struct steps steps = {.count = 0};
    have_steps_wait(&steps, 1);
    static const uint32_t most[] = {1, 1, 4, 1};
    unsigned told = 0;
    for (unsigned i = 0; i < sizeof most / sizeof *most; i++) {
        told += most[i];
        CHECK_NUMBER(dispatched(steps.executor, most[i]), most[i]);
        CHECK_NUMBER(steps.count, told);
        CHECK_NUMBER(steps.destroyed, 0);
        CHECK(is_readable(steps.executor));
    }
    CHECK_NUMBER(dispatched(steps.executor, 0), STEPS - told);
    CHECK_NUMBER(steps.count, STEPS);
    CHECK_NUMBER(steps.is_finished, 1);
    CHECK_NUMBER(steps.destroyed, 1);
    for (int i = 0; i < STEPS; i++)
        CHECK_NUMBER(steps.finished[i], i + 1);
    CHECK_NUMBER(dispatched(steps.executor, 0), 0);
    CHECK(!is_readable(steps.executor));
    REQUIRE_OK(imgdl_downloader_wait_idle(steps.downloader, PATIENCE_MS));
    imgdl_executor_release(steps.executor);
    REQUIRE_OK(imgdl_downloader_destroy(steps.downloader));
}

TEST("a dispatch does not count what calls nobody: a batch without progress, events of a token that was cancelled")
{
    struct steps steps = {.count = 0};
    have_steps_wait(&steps, 0);
    CHECK_NUMBER(dispatched(steps.executor, 0), 0);
    CHECK_NUMBER(steps.destroyed, 1);
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=cancelled"), &recorder);
    request.event_mask = IMGDL_EVENT_ALL;
    request.executor = steps.executor;
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(steps.downloader, &request, &token));
    await_told(steps.downloader, STEPS + 2);
    REQUIRE_OK(imgdl_token_cancel(token));
    CHECK_NUMBER(dispatched(steps.executor, 1), 1);
    CHECK_NUMBER(recorder.count, 1);
    CHECK_NUMBER(recorder.terminals, 1);
    CHECK_CODE(recorder.code, IMGDL_ERROR_CANCELLED);
    CHECK_NUMBER(dispatched(steps.executor, 0), 0);
    imgdl_token_release(token);
    recorder_clear(&recorder);
    imgdl_executor_release(steps.executor);
    REQUIRE_OK(imgdl_downloader_destroy(steps.downloader));
}

static void *release_executor(void *executor)
{
    imgdl_executor_release(executor);
    return NULL;
}

static void release_on_another_thread(imgdl_executor *executor)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, release_executor, executor) == 0);
    pthread_join(thread, NULL);
}

TEST("an executor that is released while a batch's progress runs: none begins after that, and its destructor runs once")
{
    for (int is_other_thread = 0; is_other_thread < 2; is_other_thread++) {
        struct steps steps = {.on_first = is_other_thread ? release_on_another_thread : imgdl_executor_release};
        have_steps_wait(&steps, 1);
        CHECK_NUMBER(dispatched(steps.executor, 0), 1);
        CHECK_NUMBER(steps.count, 1);
        CHECK_NUMBER(steps.destroyed, 1);
        CHECK_CODE(imgdl_downloader_wait_idle(steps.downloader, PATIENCE_MS), IMGDL_OK);
        REQUIRE_OK(imgdl_downloader_destroy(steps.downloader));
    }
}

/* ---- An executor that nobody dispatches */

enum { EACH = 12, BUDGET = 4 << 20 };

static void start_each(imgdl_downloader *downloader, struct recorder *recorders, imgdl_executor *executor, const char *name)
{
    for (int i = 0; i < EACH; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(at_origin("/pictures/baseline.jpg?_=%s-%d", name, i), &recorders[i]);
        request.event_mask = IMGDL_EVENT_TERMINAL;
        request.executor = executor;
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
}

TEST("pictures that wait for an executor which nobody dispatches hold up those of no other, and their own go on later")
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.memory_budget = BUDGET;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    imgdl_executor *executor = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    static struct recorder waiting[EACH], others[2 * EACH];
    start_each(downloader, waiting, executor, "waiting");
    start_each(downloader, others, NULL, "other");
    start_each(downloader, others + EACH, IMGDL_EXECUTOR_INLINE, "inline");
    for (int i = 0; i < 2 * EACH; i++) {
        if (!await_end(&others[i], NULL))
            harness_abandon();
        check_ending(&others[i]);
        CHECK_CODE(others[i].code, IMGDL_OK);
        imgdl_image_release(others[i].image);
    }
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
    CHECK(stats.succeeded < 3 * EACH);
    /* All of them are 39 MB: once the budget, and as much for each executor that has something to take. */
    if (stats.memory_peak > 3 * BUDGET)
        FAIL("%llu bytes at once", (unsigned long long)stats.memory_peak);
    for (int i = 0; i < EACH; i++) {
        if (!await_end(&waiting[i], executor))
            harness_abandon();
        check_ending(&waiting[i]);
        CHECK_CODE(waiting[i].code, IMGDL_OK);
        imgdl_image_release(waiting[i].image);
    }
    REQUIRE_OK(imgdl_downloader_wait_idle(downloader, PATIENCE_MS));
    imgdl_executor_release(executor);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

enum { IDLE = 5, OF_EACH = 4 };

/* Two pictures each fill the budget, and none of the executors has its share. */
static void start_on_all(
    imgdl_downloader *downloader, imgdl_executor **executors, struct recorder *recorders, imgdl_event_mask mask)
{
    for (int i = 0; i < IDLE * OF_EACH; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(at_origin("/pictures/baseline.jpg?_=idle-%d", i), &recorders[i]);
        request.event_mask = mask;
        request.executor = executors[i % IDLE];
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
}

static void check_ended(struct recorder *recorder, imgdl_executor *executor)
{
    if (!await_end(recorder, executor))
        harness_abandon();
    check_ending(recorder);
    CHECK_CODE(recorder->code, IMGDL_OK);
    imgdl_image_release(recorder->image);
}

TEST("five executors that nobody dispatches fill the budget together, and hold up nobody else")
{
    static struct recorder waiting[IDLE * OF_EACH], others[2];
    for (int round = 0; round < 6; round++) {
        imgdl_config config;
        imgdl_config_init(&config, sizeof config);
        config.memory_budget = 5 * BUDGET / 2;
        imgdl_downloader *downloader = NULL;
        REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
        imgdl_executor *executors[IDLE];
        for (int i = 0; i < IDLE; i++)
            REQUIRE_OK(imgdl_executor_create_pumped(&executors[i]));
        start_on_all(downloader, executors, waiting, round % 2 ? IMGDL_EVENT_ALL : IMGDL_EVENT_TERMINAL);
        for (int i = 0; i < 2; i++) {
            recorder_init(&others[i]);
            imgdl_request request = recorded_request(at_origin("/pictures/baseline.jpg?_=taken-%d", i), &others[i]);
            request.executor = i ? IMGDL_EXECUTOR_INLINE : NULL;
            REQUIRE_OK(imgdl_download(downloader, &request, NULL));
            check_ended(&others[i], NULL);
        }
        for (int i = IDLE - 1; i >= 0; i--)
            for (int k = i; k < IDLE * OF_EACH; k += IDLE)
                check_ended(&waiting[k], executors[i]);
        REQUIRE_OK(imgdl_downloader_wait_idle(downloader, PATIENCE_MS));
        for (int i = 0; i < IDLE; i++)
            imgdl_executor_release(executors[i]);
        REQUIRE_OK(imgdl_downloader_destroy(downloader));
    }
}
