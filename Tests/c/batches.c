/* Batches from many threads: each request and each batch has one end, whatever races (features F1-F6, R09). */
#define SUITE "batches"
#include "support.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

enum { STRESS_THREADS = 4, BATCHES_EACH = UNDER_SANITIZER ? 25 : 100, LARGEST = 24 };

static atomic_uint items_accepted, item_ends, item_destructors, items_cancelled, batches_finished, batch_destructors, wrong;

struct observed_batch {
    atomic_int inside, is_finished, destroyed;
    atomic_size_t finished;
};

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void on_item(const imgdl_event *event, void *user_data)
{
    (void)user_data;
    if (event->kind != IMGDL_EVENT_TERMINAL)
        return;
    item_ends++;
    if (event->code == IMGDL_ERROR_CANCELLED)
        items_cancelled++;
    if (!event->token || !event->metrics)
        wrong++;
}

static void on_item_destroyed(void *user_data)
{
    (void)user_data;
    item_destructors++;
}

static void on_progress(const imgdl_batch_progress *progress, void *user_data)
{
    struct observed_batch *batch = user_data;
    if (atomic_fetch_add(&batch->inside, 1) || atomic_load(&batch->is_finished) || atomic_load(&batch->destroyed))
        wrong++;
    size_t before = atomic_exchange(&batch->finished, progress->finished);
    if (progress->total && progress->finished != before + 1)
        wrong++;
    if (progress->failed + progress->cancelled > progress->finished || progress->finished > progress->total)
        wrong++;
    if (progress->is_finished) {
        if (progress->finished != progress->total)
            wrong++;
        batches_finished++;
        atomic_store(&batch->is_finished, 1);
    }
    atomic_fetch_sub(&batch->inside, 1);
}

static void on_batch_destroyed(void *user_data)
{
    struct observed_batch *batch = user_data;
    if (atomic_exchange(&batch->destroyed, 1))
        wrong++;
    batch_destructors++;
}

struct prefetcher {
    imgdl_downloader *downloader;
    uint64_t random;
    struct observed_batch batches[BATCHES_EACH];
    unsigned accepted;
};

static const char *item_urls[16];

static void *prefetch(void *argument)
{
    struct prefetcher *prefetcher = argument;
    for (unsigned i = 0; i < BATCHES_EACH; i++) {
        imgdl_request requests[LARGEST];
        size_t count = next_random(&prefetcher->random) % (LARGEST + 1);
        for (size_t k = 0; k < count; k++) {
            uint32_t dice = next_random(&prefetcher->random);
            imgdl_request_init(&requests[k], sizeof requests[k]);
            requests[k].url = item_urls[dice % 16];
            requests[k].callback = dice % 5 ? on_item : NULL;
            requests[k].destructor = on_item_destroyed;
            requests[k].executor = dice % 7 == 0 ? IMGDL_EXECUTOR_INLINE : NULL;
            requests[k].event_mask = dice % 3 ? 0 : IMGDL_EVENT_ALL;
        }
        imgdl_batch_options options;
        imgdl_batch_options_init(&options, sizeof options);
        options.max_concurrent = next_random(&prefetcher->random) % 8;
        options.executor = next_random(&prefetcher->random) % 3 == 0 ? IMGDL_EXECUTOR_INLINE : NULL;
        options.progress = on_progress;
        options.destructor = on_batch_destroyed;
        options.user_data = &prefetcher->batches[i];
        imgdl_batch *batch = NULL;
        imgdl_status status = imgdl_downloader_prefetch(prefetcher->downloader, requests, count, &options, &batch);
        if (status == IMGDL_OK) {
            prefetcher->accepted++;
            for (size_t k = 0; k < count; k++)
                if (requests[k].callback)
                    items_accepted++;
        } else if (status != IMGDL_ERROR_SHUT_DOWN) {
            wrong++;
        }
        switch (next_random(&prefetcher->random) % 8) {
        case 0: ignore_status(imgdl_batch_cancel(batch)); break;
        case 1:
            ignore_status(imgdl_batch_set_paused(batch, 1));
            ignore_status(imgdl_batch_set_priority(batch, IMGDL_PRIORITY_HIGH));
            ignore_status(imgdl_batch_set_paused(batch, 0));
            break;
        case 2: ignore_status(imgdl_batch_set_priority(batch, IMGDL_PRIORITY_NORMAL)); break;
        case 3: ignore_status(imgdl_downloader_cancel_all(prefetcher->downloader)); break;
        default: break;
        }
        imgdl_batch_release(batch);
    }
    return NULL;
}

static void play(int destroys_early)
{
    for (int i = 0; i < 16; i++)
        item_urls[i] = i == 3 ? at_origin("/status/404?n=%d", i) : at_origin("/pictures/tiny.png?n=%d", i);
    imgdl_downloader *downloader = new_downloader_with(12, NULL);
    static struct prefetcher prefetchers[STRESS_THREADS];
    pthread_t threads[STRESS_THREADS];
    for (unsigned i = 0; i < STRESS_THREADS; i++) {
        prefetchers[i].downloader = downloader;
        prefetchers[i].random = i + 1;
        REQUIRE(pthread_create(&threads[i], NULL, prefetch, &prefetchers[i]) == 0);
    }
    if (destroys_early) {
        /* Half-way through, by the batches' own count. */
        while (batch_destructors < STRESS_THREADS * BATCHES_EACH / 4)
            sched_yield();
        REQUIRE_OK(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_FINISH, NULL, NULL));
    }
    for (unsigned i = 0; i < STRESS_THREADS; i++)
        pthread_join(threads[i], NULL);
    unsigned accepted = 0;
    for (unsigned i = 0; i < STRESS_THREADS; i++)
        accepted += prefetchers[i].accepted;
    if (!destroys_early) {
        REQUIRE_OK(imgdl_downloader_wait_idle(downloader, -1));
        CHECK_NUMBER(imgdl_downloader_current_count(downloader), 0);
    }
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    CHECK_NUMBER(wrong, 0);
    CHECK_NUMBER(batches_finished, accepted);
    CHECK_NUMBER(batch_destructors, STRESS_THREADS * BATCHES_EACH);
    CHECK_NUMBER(item_ends, items_accepted);
    CHECK(items_cancelled > 0);
    CHECK(!HAS_LEAKS());
}

TEST_WITHIN(UNDER_SANITIZER ? 300 : 60, "stress: batches from many threads, cancelled, paused and raised: the counts add up (F1, F5, R09)")
{
    play(0);
}

TEST_WITHIN(UNDER_SANITIZER ? 300 : 60, "stress: a shutdown in the midst of batches ends each of them once (F5)")
{
    play(1);
}

TEST("handles of batches: wrong, stale and released ones are found out")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_batch_progress progress = {.struct_size = sizeof progress};
    imgdl_batch *batch = NULL;
    REQUIRE_OK(imgdl_downloader_prefetch(downloader, NULL, 0, NULL, &batch));
    CHECK_CODE(imgdl_batch_cancel(NULL), IMGDL_ERROR_INVALID_HANDLE);
    CHECK(!strcmp(imgdl_last_error(), "the handle is of no batch that there is: it was released, or is another object's"));
    CHECK_CODE(imgdl_batch_cancel((imgdl_batch *)(void *)downloader), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_downloader_cancel_all((imgdl_downloader *)(void *)batch), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_batch_progress_get(batch, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_batch_progress_get(batch, &progress), IMGDL_OK);
    CHECK_NUMBER(progress.is_finished, 1);
    CHECK(imgdl_batch_retain(batch) == batch);
    imgdl_batch_release(batch);
    /* Parents first. */
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    CHECK_CODE(imgdl_batch_cancel(batch), IMGDL_OK);
    imgdl_batch_release(batch);
    imgdl_batch_release(batch);
    CHECK_CODE(imgdl_batch_set_paused(batch, 1), IMGDL_ERROR_INVALID_HANDLE);
    CHECK(imgdl_batch_retain(batch) == NULL);
    CHECK(!HAS_LEAKS());
}

TEST("what a batch's request tells it told as any other: order, one terminal, one destructor")
{
    enum { COUNT = 7 };
    imgdl_downloader *downloader = new_downloader();
    static struct recorder recorders[COUNT];
    imgdl_request requests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        recorder_init(&recorders[i]);
        requests[i] = recorded_request(at_origin("/pictures/baseline.jpg?n=%d", i), &recorders[i]);
    }
    REQUIRE_OK(imgdl_downloader_prefetch(downloader, requests, COUNT, NULL, NULL));
    for (int i = 0; i < COUNT; i++) {
        if (!await_end(&recorders[i], NULL))
            harness_abandon();
        check_ending(&recorders[i]);
        check_order(&recorders[i], IMGDL_EVENT_ALL);
        CHECK_CODE(recorders[i].code, IMGDL_OK);
        recorder_clear(&recorders[i]);
    }
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
}

struct held_steps {
    struct flag entered, leaves, over;
    struct recorder *other;
    unsigned count, before_other;
};

static void on_held_step(const imgdl_batch_progress *progress, void *user_data)
{
    (void)progress;
    struct held_steps *held = user_data;
    if (!held->count++) {
        raise_flag(&held->entered);
        await_flag(&held->leaves, 1);
    }
    if (!held->other->terminals)
        held->before_other++;
}

static void on_held_steps_over(void *user_data) { raise_flag(&((struct held_steps *)user_data)->over); }

TEST("a slow progress takes turns with the other callbacks of its delivery thread")
{
    enum { COUNT = 8 };
    imgdl_downloader *downloader = new_downloader();
    struct recorder other, inline_one;
    recorder_init(&other);
    recorder_init(&inline_one);
    struct held_steps held = {.entered = FLAG_INIT, .leaves = FLAG_INIT, .over = FLAG_INIT, .other = &other};
    imgdl_request requests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        imgdl_request_init(&requests[i], sizeof requests[i]);
        requests[i].url = at_origin("/pictures/tiny.png?_=turn-%d", i);
    }
    imgdl_batch_options options;
    imgdl_batch_options_init(&options, sizeof options);
    options.progress = on_held_step;
    options.destructor = on_held_steps_over;
    options.user_data = &held;
    REQUIRE_OK(imgdl_downloader_prefetch(downloader, requests, COUNT, &options, NULL));
    REQUIRE(await_flag(&held.entered, 1));
    await_stats(downloader, have_ended_well, COUNT);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=turn-other"), &other);
    request.event_mask = IMGDL_EVENT_TERMINAL;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_stats(downloader, have_ended_well, COUNT + 1);
    /* Once this one has been told, the other's end waits for the thread. */
    request = recorded_request(at_origin("/pictures/tiny.png?_=turn-inline"), &inline_one);
    request.executor = IMGDL_EXECUTOR_INLINE;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    REQUIRE(await_end(&inline_one, NULL));
    raise_flag(&held.leaves);
    REQUIRE(await_flag(&held.over, 1));
    REQUIRE(await_end(&other, NULL));
    CHECK_NUMBER(held.count, COUNT);
    /* The one that ran, and one whose turn came before. */
    if (held.before_other > 2)
        FAIL("%u of %d progress calls came before a callback that waited", held.before_other, COUNT);
    check_ending(&other);
    recorder_clear(&other);
    recorder_clear(&inline_one);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

static void on_nothing(const imgdl_batch_progress *progress, void *user_data) { (void)progress, (void)user_data; }

TEST("what a batch announces counts as no request, also where its executor is gone")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_executor *executor = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    struct flag ended = FLAG_INIT, over = FLAG_INIT;
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png?_=announced");
    request.destructor = on_end_raise;
    request.user_data = &ended;
    imgdl_batch_options options;
    imgdl_batch_options_init(&options, sizeof options);
    options.executor = executor;
    options.progress = on_nothing;
    options.destructor = on_end_raise;
    options.user_data = &over;
    REQUIRE_OK(imgdl_downloader_prefetch(downloader, &request, 1, &options, NULL));
    await_flag(&ended, 1);
    imgdl_executor_release(executor);
    await_flag(&over, 1);
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
    CHECK_NUMBER(stats.submitted, 1);
    CHECK_NUMBER(stats.succeeded, 1);
    CHECK_NUMBER(stats.failed, 0);
    CHECK_NUMBER(stats.cancelled, 0);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

/* ---- Inline progress */

enum { PLACED = 12, PLACED_WIDTH = 4 };

/* What each thread has done so far. */
static _Thread_local struct {
    int in_callback, in_progress;
    unsigned ended, told;
} here;

/* A batch whose progress is inline. The last call raises the flag, and its destructor once more. */
struct inline_batch {
    struct flag over;
    atomic_uint callbacks_inside, progress_inside, ended, told;
    atomic_int is_destroyed;
    int is_alone; /* its requests have one executor */
    int ends[2];  /* of a pipe, which closes with it */
    /* Set: its first callback stays until so many have ended as are begun at once, and wait behind it. */
    imgdl_downloader *gathers;
    /* Set: the others wait for this gate, which the first progress opens; it stays until one thread has told two of their ends,
     * and so has gone on from the first. */
    const char *gate;
    struct flag second;
};

static void on_placed_item(const imgdl_event *event, void *user_data)
{
    struct inline_batch *batch = user_data;
    if (event->kind != IMGDL_EVENT_TERMINAL)
        return;
    atomic_fetch_add(&batch->callbacks_inside, 1);
    here.in_callback = 1;
    if (batch->gathers && !batch->ended)
        await_stats(batch->gathers, have_ended_well, PLACED_WIDTH);
    if (event->code != IMGDL_OK)
        FAIL("a request of the batch ended with %d", (int)event->code);
    batch->ended++;
    if (++here.ended == 2)
        raise_flag(&batch->second);
    here.in_callback = 0;
    atomic_fetch_sub(&batch->callbacks_inside, 1);
}

static void on_placed_progress(const imgdl_batch_progress *progress, void *user_data)
{
    struct inline_batch *batch = user_data;
    if (atomic_fetch_add(&batch->progress_inside, 1))
        FAIL("progress is told twice at once");
    if (atomic_load(&batch->is_destroyed))
        FAIL("progress is told after the destructor");
    if (here.in_callback || here.in_progress)
        FAIL("progress is told inside a callback");
    here.in_progress = 1;
    unsigned told = ++batch->told;
    if (batch->gate && told == 1) {
        open_gate(batch->gate);
        await_flag(&batch->second, 1);
    }
    if (progress->finished != told || batch->ended < told)
        FAIL("progress %u says %zu, after %u ends", told, progress->finished, (unsigned)batch->ended);
    if (batch->is_alone) {
        if (here.ended != ++here.told)
            FAIL("progress is told on a thread with %u ends and %u progress", here.ended, here.told);
        if (atomic_load(&batch->callbacks_inside))
            FAIL("progress is told while a callback of the batch's requests runs");
    }
    here.in_progress = 0;
    atomic_fetch_sub(&batch->progress_inside, 1);
    if (progress->is_finished)
        raise_flag(&batch->over);
}

static void on_inline_batch_destroyed(void *user_data)
{
    struct inline_batch *batch = user_data;
    if (atomic_load(&batch->progress_inside) || here.in_callback)
        FAIL("the batch's destructor runs inside a callback");
    atomic_store(&batch->is_destroyed, 1);
    close(batch->ends[1]);
    raise_flag(&batch->over);
}

/* Two threads that dispatch, one end each in turn. */
struct turns {
    struct inline_batch *batch;
    imgdl_executor *executor;
    pthread_mutex_t lock;
    pthread_cond_t passed;
    unsigned next;
};

/* How many callbacks ran; -1 once the batch is over. */
static int dispatch_one(struct turns *turns)
{
    struct pollfd descriptors[2] = {
        {.fd = imgdl_executor_fd(turns->executor), .events = POLLIN}, {.fd = turns->batch->ends[0], .events = POLLIN}};
    if (poll(descriptors, 2, PATIENCE_MS) < 1) {
        FAIL("nothing to dispatch");
        return -1;
    }
    if (descriptors[1].revents)
        return -1;
    uint32_t count = 0;
    unsigned told = here.told;
    CHECK_CODE(imgdl_executor_dispatch(turns->executor, 1, &count), IMGDL_OK);
    if (turns->batch->is_alone && here.told - told != count)
        FAIL("a dispatch ran %u ends and told %u times of them", count, here.told - told);
    return (int)count;
}

static void *dispatch_in_turns(void *argument)
{
    struct turns *turns = argument;
    pthread_mutex_lock(&turns->lock);
    unsigned own = turns->next++ % 2;
    pthread_cond_broadcast(&turns->passed);
    for (int count = 0; count >= 0;) {
        struct timespec deadline = deadline_in(CLOCK_REALTIME, PATIENCE_MS);
        while (turns->next < 2 || turns->next % 2 != own)
            if (pthread_cond_timedwait(&turns->passed, &turns->lock, &deadline) == ETIMEDOUT)
                harness_abandon();
        count = dispatch_one(turns);
        if (count)
            turns->next++;
        pthread_cond_broadcast(&turns->passed);
    }
    pthread_mutex_unlock(&turns->lock);
    CHECK_NUMBER(here.ended, PLACED / 2);
    CHECK_NUMBER(here.told, here.ended);
    return NULL;
}

static void *dispatch_alone(void *argument)
{
    while (dispatch_one(argument) >= 0)
        ;
    return NULL;
}

static struct inline_batch new_inline_batch(int is_alone)
{
    struct inline_batch batch = {.over = FLAG_INIT, .second = FLAG_INIT, .is_alone = is_alone};
    REQUIRE(pipe(batch.ends) == 0);
    return batch;
}

/* Callbacks of its requests run on these executors in turn. */
static void begin_inline_batch(
    imgdl_downloader *downloader, struct inline_batch *batch, imgdl_executor *const *executors, unsigned executor_count)
{
    imgdl_request requests[PLACED];
    for (unsigned i = 0; i < PLACED; i++) {
        imgdl_request_init(&requests[i], sizeof requests[i]);
        if (batch->gate && i > 0)
            requests[i].url = at_origin("/pictures/tiny.png?hold_head=1&gate=%s&_=%u", batch->gate, i);
        else
            requests[i].url = at_origin("/pictures/tiny.png?_=placed-%u", i);
        requests[i].executor = executors[i % executor_count];
        requests[i].callback = on_placed_item;
        requests[i].user_data = batch;
    }
    imgdl_batch_options options;
    imgdl_batch_options_init(&options, sizeof options);
    options.max_concurrent = PLACED_WIDTH;
    options.executor = IMGDL_EXECUTOR_INLINE;
    options.progress = on_placed_progress;
    options.destructor = on_inline_batch_destroyed;
    options.user_data = batch;
    REQUIRE_OK(imgdl_downloader_prefetch(downloader, requests, PLACED, &options, NULL));
}

static void end_inline_batch(imgdl_downloader *downloader, struct inline_batch *batch)
{
    REQUIRE(await_flag(&batch->over, 2));
    CHECK_NUMBER(batch->ended, PLACED);
    CHECK_NUMBER(batch->told, PLACED);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    close(batch->ends[0]);
}

TEST("a batch's inline progress is told inside the dispatch that told the end before it, and after that (F1)")
{
    imgdl_downloader *downloader = new_downloader();
    struct inline_batch batch = new_inline_batch(1);
    struct turns turns = {.batch = &batch, .lock = PTHREAD_MUTEX_INITIALIZER, .passed = PTHREAD_COND_INITIALIZER};
    REQUIRE_OK(imgdl_executor_create_pumped(&turns.executor));
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&threads[i], NULL, dispatch_in_turns, &turns) == 0);
    begin_inline_batch(downloader, &batch, &turns.executor, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    end_inline_batch(downloader, &batch);
    imgdl_executor_release(turns.executor);
}

TEST("a batch's inline progress is told on the delivery thread that told the end before it, and after that (F1)")
{
    imgdl_downloader *downloader = new_downloader();
    struct inline_batch batch = new_inline_batch(1);
    batch.gathers = downloader;
    imgdl_executor *delivery = NULL;
    begin_inline_batch(downloader, &batch, &delivery, 1);
    end_inline_batch(downloader, &batch);
}

TEST("a batch's inline progress is told once at a time, wherever its requests end (F1)")
{
    imgdl_downloader *downloader = new_downloader();
    struct inline_batch batch = new_inline_batch(0);
    batch.gate = "placed";
    struct turns turns = {.batch = &batch};
    REQUIRE_OK(imgdl_executor_create_pumped(&turns.executor));
    begin_inline_batch(downloader, &batch, (imgdl_executor *[]){turns.executor, NULL, IMGDL_EXECUTOR_INLINE}, 3);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, dispatch_alone, &turns) == 0);
    pthread_join(thread, NULL);
    end_inline_batch(downloader, &batch);
    imgdl_executor_release(turns.executor);
}

/* ---- The end of a session */

/* A batch of three, of which one runs, and a download that runs: none ends by itself. */
struct session {
    char gate[32]; /* of this process: one that was opened stays so */
    imgdl_downloader *downloader;
    struct recorder items[3], single;
    imgdl_batch *batch;
};

static void begin_session(struct session *session)
{
    snprintf(session->gate, sizeof session->gate, "session-%d", (int)getpid());
    session->downloader = new_downloader();
    imgdl_request requests[3];
    for (int i = 0; i < 3; i++) {
        recorder_init(&session->items[i]);
        requests[i] = recorded_request(
            at_origin("/pictures/tiny.png?hold_head=1&gate=%s&_=batch%d", session->gate, i), &session->items[i]);
    }
    imgdl_batch_options options;
    imgdl_batch_options_init(&options, sizeof options);
    options.max_concurrent = 1;
    REQUIRE_OK(imgdl_downloader_prefetch(session->downloader, requests, 3, &options, &session->batch));
    recorder_init(&session->single);
    imgdl_request single =
        recorded_request(at_origin("/pictures/tiny.png?hold_head=1&gate=%s&_=single", session->gate), &session->single);
    REQUIRE_OK(imgdl_download(session->downloader, &single, NULL));
}

static void check_session(struct session *session, imgdl_status running, imgdl_status waiting)
{
    struct recorder *const all[] = {&session->single, &session->items[0], &session->items[1], &session->items[2]};
    for (int i = 0; i < 4; i++) {
        if (!await_end(all[i], NULL))
            harness_abandon();
        imgdl_status due = i < 2 ? running : waiting;
        if (all[i]->code != due)
            FAIL("%d: %s, not %s", i, imgdl_error_name(all[i]->code), imgdl_error_name(due));
    }
    imgdl_batch_release(session->batch);
    CHECK_CODE(imgdl_downloader_destroy(session->downloader), IMGDL_OK);
}

TEST("a reconfigure that is refused after a shutdown cancels nothing")
{
    struct session session;
    begin_session(&session);
    REQUIRE_OK(imgdl_downloader_shutdown(session.downloader, IMGDL_SHUTDOWN_FINISH, NULL, NULL));
    CHECK_CODE(imgdl_downloader_reconfigure(session.downloader, NULL), IMGDL_ERROR_SHUT_DOWN);
    open_gate(session.gate);
    check_session(&session, IMGDL_OK, IMGDL_ERROR_CANCELLED);
}

TEST("invalidate cancels what a shutdown has let run, in batches and out of them")
{
    struct session session;
    begin_session(&session);
    REQUIRE_OK(imgdl_downloader_shutdown(session.downloader, IMGDL_SHUTDOWN_FINISH, NULL, NULL));
    REQUIRE_OK(imgdl_downloader_invalidate(session.downloader, 1));
    check_session(&session, IMGDL_ERROR_CANCELLED, IMGDL_ERROR_CANCELLED);
}

TEST("invalidate lets run what runs; what a batch has not begun ends with INVALID_OPERATION, and another batch is refused with it")
{
    struct session session;
    begin_session(&session);
    REQUIRE_OK(imgdl_downloader_invalidate(session.downloader, 0));
    struct recorder refused;
    recorder_init(&refused);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=refused"), &refused);
    imgdl_batch *batch = NULL;
    CHECK_CODE(imgdl_downloader_prefetch(session.downloader, &request, 1, NULL, &batch), IMGDL_ERROR_INVALID_OPERATION);
    CHECK(batch == NULL);
    CHECK_NUMBER(refused.destroyed, 1);
    CHECK_NUMBER(refused.terminals, 0);
    open_gate(session.gate);
    check_session(&session, IMGDL_OK, IMGDL_ERROR_INVALID_OPERATION);
}
