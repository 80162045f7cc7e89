/* Many threads, many requests, everything at once; then the books have to balance. */
#define SUITE "stress"
#include "support.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 8, SUBMITS_EACH = 1250, URLS = 50, WINDOW = 64 };

enum { BATCH = 4 };

static const char *urls[URLS];
static imgdl_executor *executors[3]; /* thread, inline, pumped */
static imgdl_hooks *hooks[3];        /* none, answers inside the call, answers later */
static imgdl_downloader *downloader;
static atomic_uint observed_starts, observed_stops;
static atomic_uint accepted, refused, terminals, destroyed, cancelled, failed, succeeded;
static struct flag hundreds = FLAG_INIT; /* of requests that were accepted */
static atomic_uint doubled, after_end, overlapping, unnamed;

struct subscription {
    const char *url;
    atomic_int terminals, destroyed, inside;
    int cancel_in_callback;
};

/* ---- What cannot be: what is known of it on both sides */

enum { MOST_TOLD = 20, MOST_OF_URL = 3 };
static _Atomic(const char *) impossible[MOST_TOLD]; /* URLs */
static atomic_uint impossible_count;

static void tell_impossible(const imgdl_event *event, const struct subscription *subscription)
{
    unsigned same = 0;
    for (unsigned i = 0; i < MOST_TOLD; i++)
        same += impossible[i] == subscription->url;
    unsigned number = same < MOST_OF_URL ? impossible_count++ : MOST_TOLD;
    if (number >= MOST_TOLD)
        return;
    impossible[number] = subscription->url;
    imgdl_metrics metrics;
    imgdl_metrics_init(&metrics, sizeof metrics);
    ignore_status(imgdl_token_metrics(event->token, &metrics));
    fprintf(stderr,
            "    at %.3f %s: %s: %s: status %d, %u redirects, %u retries, %s connection, %s, from “%s”, %.3f s in all, "
            "%.3f s of them waiting, %lld bytes\n",
            seconds_now(), subscription->url, imgdl_error_name(event->code), event->message, event->http_status,
            metrics.redirect_count, metrics.retry_count, metrics.is_connection_reused ? "used" : "new",
            metrics.is_shared ? "joined" : "first", metrics.address, (double)metrics.total_ns / 1e9,
            (double)metrics.queue_ns / 1e9, (long long)metrics.bytes_received);
}

/* When those requests came to the origin, and when it answered: of all hops that took long, too. */
static void tell_origins_times(void)
{
    for (unsigned i = 0; i < impossible_count && i < MOST_TOLD; i++) {
        unsigned known = 0;
        while (impossible[known] != impossible[i])
            known++;
        if (known < i)
            continue;
        const char *url = impossible[i];
        char target[512] = "";
        for (const char *at = strchr(url + strlen("http://"), '/'); at && *at; at++)
            snprintf(target + strlen(target), sizeof target - strlen(target), "%%%02X", (unsigned char)*at);
        char *times = ask_origin("/_times?target=%s&slower_ms=1000", target);
        fprintf(stderr, "    the origin of %s:\n%s", url, times);
        free(times);
    }
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void on_stress_event(const imgdl_event *event, void *user_data)
{
    struct subscription *subscription = user_data;
    if (atomic_fetch_add(&subscription->inside, 1))
        overlapping++;
    if (atomic_load(&subscription->destroyed) || atomic_load(&subscription->terminals))
        after_end++;
    if (event->kind == IMGDL_EVENT_TERMINAL) {
        terminals++;
        if (atomic_fetch_add(&subscription->terminals, 1))
            doubled++;
        if (event->code == IMGDL_OK) {
            succeeded++;
            if (!event->image && !event->data)
                unnamed++;
        } else if (event->code == IMGDL_ERROR_CANCELLED) {
            cancelled++;
        } else {
            failed++;
            /* Nothing else can go wrong here, and least of all the library itself. */
            if (event->code != IMGDL_ERROR_INVALID_STATUS && event->code != IMGDL_ERROR_BAD_IMAGE_DATA &&
                event->code != IMGDL_ERROR_TRUNCATED && event->code != IMGDL_ERROR_CONNECTION_LOST &&
                event->code != IMGDL_ERROR_INVALID_OPERATION && event->code != IMGDL_ERROR_INVALID_CONTENT_TYPE) {
                unnamed++;
                tell_impossible(event, subscription);
            }
        }
    }
    if (subscription->cancel_in_callback)
        ignore_status(imgdl_token_cancel(event->token));
    atomic_fetch_sub(&subscription->inside, 1);
}

static void on_stress_destroyed(void *user_data)
{
    struct subscription *subscription = user_data;
    if (atomic_fetch_add(&subscription->destroyed, 1))
        doubled++;
    destroyed++;
}

/* ---- Hooks: one kind answers at once and refuses now and then, the other has a thread answer */

enum { QUESTIONS = 16384 };
static imgdl_continuation *questions[QUESTIONS];
static unsigned asked, answered;
static int is_answering;
static pthread_mutex_t question_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t question_came = PTHREAD_COND_INITIALIZER;

static void answer_at_once(const imgdl_outgoing *request, imgdl_continuation *next, void *user_data)
{
    static atomic_uint count;
    (void)request, (void)user_data;
    if (++count % 7 == 0)
        ignore_status(imgdl_continue_refused(next, 0, NULL));
    else
        ignore_status(imgdl_continue_unchanged(next));
}

static void answer_later(const imgdl_response *response, imgdl_continuation *next, void *user_data)
{
    (void)response, (void)user_data;
    pthread_mutex_lock(&question_lock);
    REQUIRE(asked - answered < QUESTIONS);
    questions[asked++ % QUESTIONS] = next;
    pthread_cond_signal(&question_came);
    pthread_mutex_unlock(&question_lock);
}

static void *answer_questions(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&question_lock);
    for (;;) {
        while (asked == answered && is_answering)
            pthread_cond_wait(&question_came, &question_lock);
        if (asked == answered)
            break;
        imgdl_continuation *next = questions[answered++ % QUESTIONS];
        pthread_mutex_unlock(&question_lock);
        ignore_status(imgdl_continue_unchanged(next));
        pthread_mutex_lock(&question_lock);
    }
    pthread_mutex_unlock(&question_lock);
    return NULL;
}

static void make_hooks(void)
{
    imgdl_hooks_table table = {.struct_size = sizeof table, .modify_request = answer_at_once};
    REQUIRE_OK(imgdl_hooks_create(&table, &hooks[1]));
    table = (imgdl_hooks_table){.struct_size = sizeof table, .modify_response = answer_later};
    REQUIRE_OK(imgdl_hooks_create(&table, &hooks[2]));
}

static void on_observation(const imgdl_observation *observation, void *user_data)
{
    (void)user_data;
    if (observation->kind == IMGDL_OBSERVED_STARTED && observation->retry_count == 0)
        observed_starts++;
    if (observation->kind == IMGDL_OBSERVED_STOPPED)
        observed_stops++;
}

struct submitter {
    uint64_t random;
    struct subscription *subscriptions;
};

/* A request as the dice fall; options must live until it has been handed over. */
static imgdl_request draw_request(uint64_t *random, struct subscription *subscription, imgdl_decode_options *options)
{
    uint32_t dice = next_random(random), more = next_random(random);
    subscription->cancel_in_callback = dice % 11 == 0;
    imgdl_decode_options_init(options, sizeof *options);
    options->pixel_format = 1 + dice / 7 % 4;
    options->target_width = more / 3 % 4 == 0 ? 2 + more / 11 % 8 : 0;
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = subscription->url = urls[dice / 11 % URLS];
    request.event_mask = dice % 3 ? IMGDL_EVENT_TERMINAL : IMGDL_EVENT_ALL;
    request.flags = (dice / 5 % 3 == 0 ? IMGDL_REQUEST_BODY : 0) | (more % 2 ? IMGDL_REQUEST_CONTINUE_IN_BACKGROUND : 0);
    request.priority = (imgdl_priority)(dice / 13 % 3) - 1;
    request.decode = dice / 17 % 4 == 0 ? options : NULL;
    request.executor = executors[dice / 19 % 3];
    request.hooks = more / 5 % 4 == 0 ? hooks[more / 7 % 3] : NULL;
    request.retry_count = more / 13 % 3;
    request.retry_base_ms = 1;
    request.callback = on_stress_event;
    request.destructor = on_stress_destroyed;
    request.user_data = subscription;
    return request;
}

static void note_accepted(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (++accepted % 100 == 0)
            raise_flag(&hundreds);
}

/* Takes the next subscriptions for a batch; how many. */
static unsigned submit_batch(struct submitter *submitter, struct subscription *subscriptions)
{
    imgdl_request requests[BATCH];
    imgdl_decode_options options[BATCH];
    for (unsigned i = 0; i < BATCH; i++)
        requests[i] = draw_request(&submitter->random, &subscriptions[i], &options[i]);
    imgdl_batch_options batch_options;
    imgdl_batch_options_init(&batch_options, sizeof batch_options);
    batch_options.max_concurrent = 1 + next_random(&submitter->random) % BATCH;
    imgdl_batch *batch = NULL;
    if (imgdl_downloader_prefetch(downloader, requests, BATCH, &batch_options, &batch) != IMGDL_OK) {
        refused += BATCH;
        return BATCH;
    }
    note_accepted(BATCH);
    switch (next_random(&submitter->random) % 4) {
    case 0: ignore_status(imgdl_batch_cancel(batch)); break;
    case 1: ignore_status(imgdl_batch_set_paused(batch, 1)), ignore_status(imgdl_batch_set_paused(batch, 0)); break;
    case 2: ignore_status(imgdl_batch_set_priority(batch, IMGDL_PRIORITY_HIGH)); break;
    default: break;
    }
    imgdl_batch_release(batch);
    return BATCH;
}

static void *submit(void *argument)
{
    struct submitter *submitter = argument;
    imgdl_token *recent[WINDOW] = {NULL};
    for (unsigned i = 0; i < SUBMITS_EACH; i++) {
        if (i + BATCH < SUBMITS_EACH && next_random(&submitter->random) % 32 == 0) {
            i += submit_batch(submitter, &submitter->subscriptions[i]) - 1;
            continue;
        }
        imgdl_decode_options options;
        imgdl_request request = draw_request(&submitter->random, &submitter->subscriptions[i], &options);
        imgdl_token **slot = &recent[i % WINDOW];
        imgdl_token_release(*slot);
        *slot = NULL;
        if (imgdl_download(downloader, &request, slot) != IMGDL_OK)
            refused++;
        else
            note_accepted(1);
        switch (next_random(&submitter->random) % 24) {
        case 0: ignore_status(imgdl_token_cancel(*slot)); break; /* at once */
        case 1: /* one that may be anywhere in its life */
        case 2: ignore_status(imgdl_token_cancel(recent[next_random(&submitter->random) % WINDOW])); break;
        case 3:
            ignore_status(
                imgdl_token_set_priority(recent[next_random(&submitter->random) % WINDOW], IMGDL_PRIORITY_HIGH));
            break;
        case 4: imgdl_downloader_current_count(downloader); break;
        case 5:
            ignore_status(imgdl_downloader_set_max_concurrent(downloader, 1 + next_random(&submitter->random) % 32));
            break;
        case 6: ignore_status(imgdl_token_wait(recent[next_random(&submitter->random) % WINDOW], 0)); break;
        case 7: {
            imgdl_token *token = imgdl_token_retain(*slot);
            imgdl_token_release(token);
            break;
        }
        case 8:
            ignore_status(imgdl_downloader_set_suspended(downloader, 1));
            ignore_status(imgdl_downloader_set_suspended(downloader, 0));
            break;
        case 9: ignore_status(imgdl_downloader_set_max_per_host(downloader, next_random(&submitter->random) % 8)); break;
        case 10: ignore_status(imgdl_downloader_set_order(downloader, next_random(&submitter->random) % 2)); break;
        case 11:
            ignore_status(imgdl_downloader_enter_background(downloader, 0));
            ignore_status(imgdl_downloader_enter_foreground(downloader));
            ignore_status(imgdl_downloader_network_changed(downloader));
            break;
        case 12: {
            imgdl_stats stats;
            imgdl_stats_init(&stats, sizeof stats);
            ignore_status(imgdl_downloader_stats(downloader, &stats));
            break;
        }
        case 13: {
            imgdl_metrics metrics;
            imgdl_metrics_init(&metrics, sizeof metrics);
            ignore_status(imgdl_token_metrics(recent[next_random(&submitter->random) % WINDOW], &metrics));
            break;
        }
        default: break;
        }
    }
    for (unsigned i = 0; i < WINDOW; i++)
        imgdl_token_release(recent[i]);
    return NULL;
}

static void *pump(void *stop)
{
    struct pollfd waiting[2] = {{.fd = imgdl_executor_fd(executors[2]), .events = POLLIN},
                                {.fd = *(int *)stop, .events = POLLIN}};
    while (poll(waiting, 2, -1) >= 0 && !waiting[1].revents)
        ignore_status(imgdl_executor_dispatch(executors[2], 16, NULL));
    return NULL;
}

static void run_stress(uint64_t seed)
{
    static const char *const paths[] = {
        "/pictures/tiny.png?n=%u",
        "/pictures/tiny.jpg?n=%u",
        "/pictures/tiny.webp?n=%u",
        "/pictures/tiny.png?n=%u&chunked=1&chunk=100",
        "/pictures/tiny.jpg?n=%u&keepalive=0",
        "/pictures/tiny.png?n=%u&delay_ms=5",
        "/redirect?n=%u&to=/pictures/tiny.png",
        "/status/404?n=%u",
        "/pictures/page.html?n=%u&type=image/png",
        "/pictures/tiny.png?n=%u&close_after=200",
        "/flaky?id=s%u&fail=3&status=503&picture=tiny.png",
    };
    for (unsigned i = 0; i < URLS; i++) {
        char path[128];
        snprintf(path, sizeof path, paths[i % (sizeof paths / sizeof *paths)], i);
        urls[i] = at_origin("%s", path);
    }
    downloader = new_downloader_with(16, NULL);
    executors[1] = IMGDL_EXECUTOR_INLINE;
    make_hooks();
    REQUIRE_OK(imgdl_downloader_set_observer(downloader, on_observation, NULL, NULL));
    pthread_t answering;
    is_answering = 1;
    REQUIRE(pthread_create(&answering, NULL, answer_questions, NULL) == 0);
    int stop[2];
    REQUIRE(pipe(stop) == 0);
    REQUIRE_OK(imgdl_executor_create_pumped(&executors[2]));
    struct submitter submitters[THREADS];
    pthread_t threads[THREADS], pumping;
    REQUIRE(pthread_create(&pumping, NULL, pump, &stop[0]) == 0);
    struct subscription *subscriptions = calloc(THREADS * SUBMITS_EACH, sizeof *subscriptions);
    for (unsigned i = 0; i < THREADS; i++) {
        submitters[i] = (struct submitter){seed * 1000 + i, subscriptions + i * SUBMITS_EACH};
        REQUIRE(pthread_create(&threads[i], NULL, submit, &submitters[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, UNDER_SANITIZER ? 300000 : 120000), IMGDL_OK);
    REQUIRE(write(stop[1], "", 1) == 1);
    pthread_join(pumping, NULL);
    pthread_mutex_lock(&question_lock);
    is_answering = 0;
    pthread_cond_signal(&question_came);
    pthread_mutex_unlock(&question_lock);
    pthread_join(answering, NULL);
    CHECK_NUMBER(imgdl_downloader_current_count(downloader), 0);
    CHECK_NUMBER(accepted, THREADS * SUBMITS_EACH);
    CHECK_NUMBER(refused, 0);
    CHECK_NUMBER(terminals, accepted);
    CHECK_NUMBER(destroyed, accepted);
    CHECK_NUMBER(doubled, 0);
    CHECK_NUMBER(after_end, 0);
    CHECK_NUMBER(overlapping, 0);
    CHECK_NUMBER(unnamed, 0);
    tell_origins_times();
    CHECK(succeeded > 1000 && cancelled > 100 && failed > 100);
    imgdl_executor_release(executors[2]);
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
    /* The last callback's thread may still hold its picture for a moment. */
    for (double end = seconds_now() + PATIENCE_MS / 1000.0; stats.memory && seconds_now() < end;) {
        sched_yield();
        REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
    }
    CHECK_NUMBER(stats.submitted, accepted);
    CHECK_NUMBER(stats.succeeded + stats.failed + stats.cancelled, accepted);
    CHECK_NUMBER(stats.running + stats.waiting + stats.decoding, 0);
    CHECK_NUMBER(stats.memory, 0);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    CHECK_NUMBER(observed_starts, observed_stops);
    for (unsigned i = 1; i < 3; i++)
        imgdl_hooks_release(hooks[i]);
    printf("     seed %llu: %u downloads: %u succeeded, %u cancelled, %u failed\n", (unsigned long long)seed,
           (unsigned)accepted, (unsigned)succeeded, (unsigned)cancelled, (unsigned)failed);
    for (unsigned i = 0; i < THREADS * SUBMITS_EACH; i++)
        if (subscriptions[i].terminals != 1 || subscriptions[i].destroyed != 1) {
            FAIL("request %u: %d terminals, %d destructors", i, subscriptions[i].terminals, subscriptions[i].destroyed);
            break;
        }
    free(subscriptions);
}

/* --seed N takes another one. */
TEST_WITHIN(UNDER_SANITIZER ? 600 : 180, "ten thousand requests of eight threads: as many ends, one for each")
{
    run_stress(strtoull(harness_argument("seed", "1"), NULL, 10));
}

TEST_WITHIN(UNDER_SANITIZER ? 600 : 180, "and with another seed")
{
    run_stress(strtoull(harness_argument("seed", "1"), NULL, 10) + 1);
}

/* ---- Ending in the middle of it */

TEST_WITHIN(UNDER_SANITIZER ? 600 : 120, "downloaders destroyed while other threads hand over requests")
{
    enum { ROUNDS = 5 };
    urls[0] = at_origin("/pictures/tiny.png?n=destroyed");
    for (unsigned i = 1; i < URLS; i++)
        urls[i] = i % 3 ? urls[0] : at_origin("/pictures/tiny.jpg?n=%u&delay_ms=3", i);
    executors[1] = IMGDL_EXECUTOR_INLINE;
    struct subscription *subscriptions = calloc(THREADS * SUBMITS_EACH, sizeof *subscriptions);
    make_hooks();
    imgdl_hooks_release(hooks[2]); /* nobody answers its questions here */
    hooks[2] = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        downloader = new_downloader_with(8, NULL);
        accepted = refused = terminals = destroyed = 0;
        hundreds.value = 0;
        memset(subscriptions, 0, THREADS * SUBMITS_EACH * sizeof *subscriptions);
        struct submitter submitters[THREADS];
        pthread_t threads[THREADS];
        REQUIRE_OK(imgdl_executor_create_pumped(&executors[2]));
        for (unsigned i = 0; i < THREADS; i++) {
            submitters[i] = (struct submitter){(uint64_t)round * 100 + i, subscriptions + i * SUBMITS_EACH};
            REQUIRE(pthread_create(&threads[i], NULL, submit, &submitters[i]) == 0);
        }
        await_flag(&hundreds, 5 * (round + 1)); /* somewhere in the middle: they go on all the time */
        /* The pumped executor is not dispatched: its callbacks may never run, their destructors have to. */
        imgdl_executor_release(executors[2]);
        CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        CHECK_NUMBER(accepted + refused, THREADS * SUBMITS_EACH);
        /* Those of the executor that nobody dispatches any more are run by the library, when it comes to it. */
        double end = seconds_now() + PATIENCE_MS / 1000.0;
        while (destroyed < accepted + refused && seconds_now() < end)
            sched_yield();
        CHECK_NUMBER(destroyed, accepted + refused);
        CHECK(terminals <= accepted);
        CHECK_NUMBER(doubled, 0);
        CHECK_NUMBER(after_end, 0);
    }
    imgdl_hooks_release(hooks[1]);
    free(subscriptions);
}

/* ---- Header fields that change while others read them */

static struct flag field_readers_left = FLAG_INIT;

/* Each looks at the downloader's fields, and has requests that go over them. */
static void *read_fields(void *unused)
{
    (void)unused;
    const imgdl_header own[] = {{"X-Own", "1"}, {"Accept", "image/png"}};
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png?n=fields");
    request.headers = own;
    request.header_count = 2;
    for (unsigned i = 0; i < 400; i++) {
        char value[100];
        size_t length = 0;
        imgdl_token *token = NULL;
        CHECK_CODE(imgdl_downloader_get_header(downloader, "User-Agent", value, sizeof value, &length), IMGDL_OK);
        CHECK(length == strlen("one/1") && (!strcmp(value, "one/1") || !strcmp(value, "two/2")));
        CHECK_CODE(imgdl_download(downloader, &request, &token), IMGDL_OK);
        imgdl_token_cancel(token);
        imgdl_token_release(token);
    }
    raise_flag(&field_readers_left);
    return NULL;
}

/* What can be wrong here ThreadSanitizer sees, or a crash. */
TEST_WITHIN(UNDER_SANITIZER ? 600 : 120, "header fields that change while other threads hand over requests")
{
    enum { READERS = 4 };
    static const char *const agents[] = {"one/1", "two/2"};
    pthread_t threads[READERS];
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.user_agent = agents[0];
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    field_readers_left.value = 0;
    for (unsigned i = 0; i < READERS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, read_fields, NULL) == 0);
    unsigned changes = 0;
    for (int is_over = 0; !is_over; changes++) {
        CHECK_CODE(imgdl_downloader_set_header(downloader, "X-Other", changes % 3 ? agents[changes % 2] : NULL), IMGDL_OK);
        if (changes % 16 == 0) {
            config.user_agent = agents[changes / 16 % 2];
            CHECK_CODE(imgdl_downloader_reconfigure(downloader, &config), IMGDL_OK);
        }
        pthread_mutex_lock(&field_readers_left.lock);
        is_over = field_readers_left.value == READERS;
        pthread_mutex_unlock(&field_readers_left.lock);
    }
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    printf("     %u changes\n", changes);
    CHECK(changes > 16);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
}
