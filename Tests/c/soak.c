/* Mixed work with faults, 500 requests a second, for as long as one wants: the books balance, and nothing grows.
 *
 * --seconds S (default 3) and --rate R; from 60 seconds on it rests after each tenth, and what it then holds has to be
 * flat after the second (flatness.c). `make soak` lets it run for an hour. */
#define SUITE "soak"
#include "flatness.h"
#include "support.h"

#include <malloc.h>
#include <stdatomic.h>
#include <time.h>

enum {
    MOST_OUTSTANDING = 4000,
    MOST_CONCURRENT = 256,
    RECENT = 256,           /* tokens, of which some are cancelled */
    FLAT_FROM_SECONDS = 60, /* below that a tenth says little */
};

/* A second downloader lives for a moment, with one download. */
static const struct explained explained = {
    .connections = MOST_CONCURRENT + 8,
    .idle_connections = 64,        /* TransportConfiguration.swift */
    .others = MOST_CONCURRENT + 64, /* a file for each that is stored, the cache's own, epoll's */
    .threads = 24,
};

static atomic_uint accepted, terminals, destroyed, outstanding, unexpected;
static atomic_uint by_code[8000];

static uint64_t random_state = 1;

static uint32_t next_random(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static void on_soak_event(const imgdl_event *event, void *user_data)
{
    (void)user_data;
    if (event->kind != IMGDL_EVENT_TERMINAL)
        return;
    terminals++;
    if (event->code < 0 || (size_t)event->code >= sizeof by_code / sizeof *by_code)
        unexpected++;
    else
        by_code[event->code]++;
    if (event->code == IMGDL_ERROR_OUT_OF_MEMORY || event->code == IMGDL_ERROR_INTERNAL)
        fprintf(stderr, "    %s\n", event->message);
}

static void on_soak_destroyed(void *user_data)
{
    (void)user_data;
    destroyed++;
    outstanding--;
}

/* ---- What is asked for */

static const char *draw_url(char url[512])
{
    static const char *const pictures[] = {
        "tiny.png", "tiny.jpg", "tiny.webp", "truecolour.png", "adam7.png", "baseline.jpg", "progressive.jpg",
        "lossy.webp", "lossless.webp", "turned.jpg",
    };
    static const char *const faults[] = {
        "status=404", "status=503", "short_by=100", "reset_after=150", "close_after=150", "length=lie", "length=none",
        "chunked=1&chunk=200", "cut_chunked=1", "gzip=1", "empty=1", "keepalive=0", "delay_ms=300", "rate=20000",
        "stall_after=100", "first_byte=never", "headers=70", "type=text/html", "chunk=700&pause_ms=5", "range=ignore&etag=v1",
        "close_after=180&etag=v2", "header=Cache-Control:max-age=2", "gzip_bomb=10000000",
    };
    static const char *const others[] = {
        "/garbage", "/redirect-loop", "/redirect/3?to=/pictures/tiny.png", "/redirect?to=/pictures/lossy.webp",
        "/redirect?to=http://127.0.0.1:1/", "/status/500", "/pictures/page.html", "/pictures/noise.jpg",
        "/auth/basic?user=u&password=p",
    };
    const char *picture = pictures[next_random(sizeof pictures / sizeof *pictures)];
    uint32_t dice = next_random(100), number = next_random(100000);
    char text[256];
    if (dice < 15) /* one that many ask for */
        snprintf(text, sizeof text, "/pictures/%s?n=hot&delay_ms=20", picture);
    else if (dice < 40) /* one that the cache has, sooner or later */
        snprintf(text, sizeof text, "/pictures/%s?n=%u&header=Cache-Control:max-age=60", picture, number % 500);
    else if (dice < 75)
        snprintf(text, sizeof text, "/pictures/%s?n=%u", picture, number);
    else if (dice < 92)
        snprintf(text, sizeof text, "/pictures/%s?n=%u&%s", picture, number, faults[next_random(sizeof faults / sizeof *faults)]);
    else if (dice < 95)
        snprintf(text, sizeof text, "/flaky?id=%u&fail=2&status=503&picture=%s", number, picture);
    else
        snprintf(text, sizeof text, "%s", others[next_random(sizeof others / sizeof *others)]);
    static const char *base;
    if (!base)
        base = at_origin("%s", "");
    snprintf(url, 512, "%s%s", base, text);
    return url;
}

static void draw_options(imgdl_decode_options *options)
{
    imgdl_decode_options_init(options, sizeof *options);
    options->pixel_format = 1 + next_random(4);
    options->target_width = next_random(2) ? 0 : 20 + next_random(100);
}

static imgdl_token *submit(imgdl_downloader *downloader)
{
    char url[512];
    imgdl_decode_options options;
    draw_options(&options);
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = draw_url(url);
    request.event_mask = next_random(3) ? IMGDL_EVENT_TERMINAL : IMGDL_EVENT_ALL;
    request.partial_interval_ms = 1;
    request.flags = next_random(4) ? 0 : IMGDL_REQUEST_BODY;
    request.priority = (imgdl_priority)next_random(3) - 1;
    request.decode = next_random(3) ? NULL : &options;
    request.idle_timeout_ms = 1000;
    request.total_timeout_ms = 5000;
    request.max_body_bytes = 8 << 20;
    request.retry_count = next_random(3);
    request.retry_base_ms = 20;
    request.cache_mode = next_random(4) ? IMGDL_CACHE_DEFAULT : IMGDL_CACHE_RELOAD;
    request.callback = on_soak_event;
    request.destructor = on_soak_destroyed;
    imgdl_token *token = NULL;
    outstanding++;
    REQUIRE_OK(imgdl_download(downloader, &request, &token));
    accepted++;
    return token;
}

/* A life of a downloader beside the one that stays, with a download that may or may not be over when it ends. */
static void live_shortly(imgdl_cache *cache)
{
    imgdl_downloader *downloader = new_caching_downloader(cache);
    imgdl_token_release(submit(downloader));
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

/* ---- The run */

struct soak {
    imgdl_cache *cache;
    imgdl_downloader *downloader;
    imgdl_token *recent[RECENT];
    long total, submitted, passed_over;
    double rested; /* seconds */
};

static void begin(struct soak *soak, const char *folder)
{
    imgdl_cache_config settings;
    imgdl_cache_config_init(&settings, sizeof settings);
    settings.directory = folder;
    settings.max_bytes = 8 << 20;
    settings.max_memory_bytes = 2 << 20;
    REQUIRE_OK(imgdl_cache_open(&settings, &soak->cache));
    soak->downloader = new_caching_downloader(soak->cache);
    REQUIRE_OK(imgdl_downloader_set_max_concurrent(soak->downloader, MOST_CONCURRENT));
}

static void let_go_of_tokens(struct soak *soak)
{
    for (unsigned i = 0; i < RECENT; i++) {
        imgdl_token_release(soak->recent[i]);
        soak->recent[i] = NULL;
    }
}

static void end(struct soak *soak)
{
    let_go_of_tokens(soak);
    CHECK_CODE(imgdl_downloader_wait_idle(soak->downloader, 60000), IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_destroy(soak->downloader));
    imgdl_cache_release(soak->cache);
}

/* Whatever is due; a machine that cannot keep up is not drowned. */
static void submit_due(struct soak *soak, double due)
{
    while (soak->submitted + soak->passed_over < soak->total && (double)(soak->submitted + soak->passed_over) < due) {
        if (atomic_load(&outstanding) >= MOST_OUTSTANDING) {
            soak->passed_over++;
            continue;
        }
        imgdl_token **slot = &soak->recent[next_random(RECENT)];
        if (next_random(6) == 0)
            ignore_status(imgdl_token_cancel(soak->recent[next_random(RECENT)]));
        imgdl_token_release(*slot);
        *slot = submit(soak->downloader);
        soak->submitted++;
    }
}

/* Nothing is in work, and nobody holds a picture. */
static struct holding rest(struct soak *soak)
{
    double start = seconds_now();
    let_go_of_tokens(soak);
    REQUIRE_OK(imgdl_downloader_wait_idle(soak->downloader, 60000));
    REQUIRE_OK(imgdl_cache_flush(soak->cache));
    double resident = resident_now();
    malloc_trim(0);
    struct holding now = holding_now();
    printf("  %7ld requests, %ld passed over; malloc kept %.1f MiB\n", soak->submitted, soak->passed_over,
           resident - now.resident);
    soak->rested += seconds_now() - start;
    return now;
}

static void work(struct soak *soak, int seconds, int rate, struct run *run)
{
    double start = seconds_now();
    int is_long = seconds >= FLAT_FROM_SECONDS, period = 0;
    for (int second = 0; soak->submitted + soak->passed_over < soak->total || (is_long && period < PERIODS);) {
        double now = seconds_now() - start - soak->rested;
        submit_due(soak, now * rate);
        if (now >= second + 1) {
            second++;
            free(ask_origin("/_reset"));
            live_shortly(soak->cache);
            if (is_long && period < PERIODS)
                keep_most(&run->periods[period].most, holding_now());
            if (is_long && second * PERIODS >= (period + 1) * seconds) {
                run->periods[period].at_rest = rest(soak);
                print_holding("at rest:", &run->periods[period].at_rest);
                print_holding("most:", &run->periods[period].most);
                period++;
            }
        }
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
}

TEST_WITHIN(7200, "mixed work with faults, all of it told once, and nothing grows")
{
    int seconds = atoi(harness_argument("seconds", "3")), rate = atoi(harness_argument("rate", "500"));
    REQUIRE(seconds > 0 && seconds <= 7000 && rate > 0 && rate <= 10000);
    char *folder = new_folder();
    struct run run = {.explained = explained};
    struct soak soak = {0};
    /* What the process has since its first use of the library is not this run's. */
    begin(&soak, folder);
    live_shortly(soak.cache);
    end(&soak);
    run.before = holding_now();
    soak = (struct soak){.total = (long)seconds * rate};
    begin(&soak, folder);
    work(&soak, seconds, rate, &run);
    end(&soak);
    settle_in_proc("task", run.before.threads);
    run.after = holding_now();
    free(folder);
    CHECK_NUMBER(terminals, accepted);
    CHECK_NUMBER(destroyed, accepted);
    CHECK_NUMBER(unexpected, 0);
    CHECK(by_code[IMGDL_OK] > 0 && by_code[IMGDL_ERROR_CANCELLED] > 0 && by_code[IMGDL_ERROR_IDLE_TIMEOUT] > 0);
    if (soak.passed_over * 10 > soak.total)
        FAIL("%ld of %ld requests were passed over: it does not keep up", soak.passed_over, soak.total);
    if (seconds >= FLAT_FROM_SECONDS) {
        print_holding("before:", &run.before);
        print_holding("after:", &run.after);
        for (int code = 0; code < (int)(sizeof by_code / sizeof *by_code); code++)
            if (by_code[code])
                printf("  %8u  %s\n", by_code[code], imgdl_error_name(code));
        char text[256];
        if (find_growth(&run, text, sizeof text))
            FAIL("%s", text);
    }
}
