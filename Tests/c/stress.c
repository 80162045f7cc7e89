/* Many threads, many requests, everything at once; then the books have to balance. */
#define SUITE "stress"
#include "support.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 8, SUBMITS_EACH = 1250, URLS = 50, WINDOW = 64 };

static const char *urls[URLS];
static imgdl_executor *executors[3]; /* thread, inline, pumped */
static imgdl_downloader *downloader;
static atomic_uint accepted, refused, terminals, destroyed, cancelled, failed, succeeded;
static struct flag hundreds = FLAG_INIT; /* of requests that were accepted */
static atomic_uint doubled, after_end, overlapping, unnamed;

struct subscription {
    atomic_int terminals, destroyed, inside;
    int cancel_in_callback;
};

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
                event->code != IMGDL_ERROR_TRUNCATED && event->code != IMGDL_ERROR_CONNECTION_LOST) {
                unnamed++;
                fprintf(stderr, "    %s: %s\n", imgdl_error_name(event->code), event->message);
            }
        }
    }
    if (subscription->cancel_in_callback)
        imgdl_token_cancel(event->token);
    atomic_fetch_sub(&subscription->inside, 1);
}

static void on_stress_destroyed(void *user_data)
{
    struct subscription *subscription = user_data;
    if (atomic_fetch_add(&subscription->destroyed, 1))
        doubled++;
    destroyed++;
}

struct submitter {
    uint64_t random;
    struct subscription *subscriptions;
};

static void *submit(void *argument)
{
    struct submitter *submitter = argument;
    imgdl_token *recent[WINDOW] = {NULL};
    for (unsigned i = 0; i < SUBMITS_EACH; i++) {
        uint32_t dice = next_random(&submitter->random);
        struct subscription *subscription = &submitter->subscriptions[i];
        subscription->cancel_in_callback = dice % 11 == 0;
        imgdl_decode_options options;
        imgdl_decode_options_init(&options, sizeof options);
        options.pixel_format = 1 + dice / 7 % 4;
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        request.url = urls[dice / 11 % URLS];
        request.event_mask = dice % 3 ? IMGDL_EVENT_TERMINAL : IMGDL_EVENT_ALL;
        request.flags = dice / 5 % 3 == 0 ? IMGDL_REQUEST_BODY : 0;
        request.priority = (imgdl_priority)(dice / 13 % 3) - 1;
        request.decode = dice / 17 % 4 == 0 ? &options : NULL;
        request.executor = executors[dice / 19 % 3];
        request.callback = on_stress_event;
        request.destructor = on_stress_destroyed;
        request.user_data = subscription;
        imgdl_token **slot = &recent[i % WINDOW];
        imgdl_token_release(*slot);
        *slot = NULL;
        if (imgdl_download(downloader, &request, slot) != IMGDL_OK)
            refused++;
        else if (++accepted % 100 == 0)
            raise_flag(&hundreds);
        switch (next_random(&submitter->random) % 16) {
        case 0: imgdl_token_cancel(*slot); break; /* at once */
        case 1: /* one that may be anywhere in its life */
        case 2: imgdl_token_cancel(recent[next_random(&submitter->random) % WINDOW]); break;
        case 3: imgdl_token_set_priority(recent[next_random(&submitter->random) % WINDOW], IMGDL_PRIORITY_HIGH); break;
        case 4: imgdl_downloader_current_count(downloader); break;
        case 5: imgdl_downloader_set_max_concurrent(downloader, 1 + next_random(&submitter->random) % 32); break;
        case 6: imgdl_token_wait(recent[next_random(&submitter->random) % WINDOW], 0); break;
        case 7: {
            imgdl_token *token = imgdl_token_retain(*slot);
            imgdl_token_release(token);
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
        imgdl_executor_dispatch(executors[2], 16, NULL);
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
    };
    for (unsigned i = 0; i < URLS; i++) {
        char path[128];
        snprintf(path, sizeof path, paths[i % (sizeof paths / sizeof *paths)], i);
        urls[i] = at_origin("%s", path);
    }
    downloader = new_downloader_with(16, NULL);
    executors[1] = IMGDL_EXECUTOR_INLINE;
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
    CHECK_NUMBER(imgdl_downloader_current_count(downloader), 0);
    CHECK_NUMBER(accepted, THREADS * SUBMITS_EACH);
    CHECK_NUMBER(refused, 0);
    CHECK_NUMBER(terminals, accepted);
    CHECK_NUMBER(destroyed, accepted);
    CHECK_NUMBER(doubled, 0);
    CHECK_NUMBER(after_end, 0);
    CHECK_NUMBER(overlapping, 0);
    CHECK_NUMBER(unnamed, 0);
    CHECK(succeeded > 1000 && cancelled > 100 && failed > 100);
    imgdl_executor_release(executors[2]);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
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
    free(subscriptions);
}
