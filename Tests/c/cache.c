/* The cache as a caller sees it: what answers, what is stored, and what the modes do about it. */
#define SUITE "cache"
#include "support.h"

#define FRESH "header=Cache-Control:max-age=600"
#define STALE "header=Cache-Control:max-age=0"
enum { BODY = IMGDL_REQUEST_BODY, IGNORE = IMGDL_REQUEST_BODY | IMGDL_REQUEST_IGNORE_CACHED };

#define CHECK_OUTCOME(found, expected)                                                                                 \
    do {                                                                                                               \
        struct reply answer_ = (found);                                                                               \
        CHECK_CODE(answer_.code, IMGDL_OK);                                                                            \
        CHECK_NUMBER(answer_.outcome, IMGDL_CACHE_OUTCOME_##expected);                                                 \
    } while (0)

/* Every test with a cache in memory, and one on disk. */
#define TEST_WITH_CACHES(text) TEST_WITH_CACHES_(text, JOIN(body_, __LINE__), __LINE__)
#define TEST_WITH_CACHES_(text, body, line)                                                                            \
    static void body(imgdl_cache *cache, imgdl_downloader *downloader);                                                \
    TEST_(60, text ", in memory", JOIN(in_memory_, line)) { with_cache(NULL, body); }                                  \
    TEST_(60, text ", on disk", JOIN(on_disk_, line)) { with_cache(new_folder(), body); }                              \
    static void body(imgdl_cache *cache, imgdl_downloader *downloader)

static void with_cache(char *directory, void (*body)(imgdl_cache *cache, imgdl_downloader *downloader))
{
    imgdl_cache *cache = new_cache(directory);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    body(cache, downloader);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    free(directory);
}

static struct reply ask_with_field(imgdl_downloader *downloader, const char *url, const char *name, const char *value)
{
    imgdl_header header = {name, value};
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.flags = BODY;
    request.headers = &header;
    request.header_count = 1;
    return ask_with(downloader, &request);
}

TEST_WITH_CACHES("what is fresh answers without the server, with the same bytes (O2)")
{
    const char *url = at_origin("/pictures/tiny.png?" FRESH "&n=%d", (int)getpid());
    struct reply first = ask(downloader, url, IMGDL_CACHE_DEFAULT, BODY);
    CHECK_OUTCOME(first, NETWORK);
    struct reply second = ask(downloader, url, IMGDL_CACHE_DEFAULT, BODY);
    CHECK_OUTCOME(second, HIT);
    CHECK_NUMBER(second.http_status, 200);
    CHECK(second.length == first.length && second.sum == first.sum);
    CHECK_NUMBER(times_served(url), 1);
    /* A picture, too. */
    struct reply decoded = ask(downloader, url, IMGDL_CACHE_DEFAULT, 0);
    CHECK_OUTCOME(decoded, HIT);
    CHECK_NUMBER(decoded.width, 24);

    imgdl_cache_entry entry;
    imgdl_cache_entry_init(&entry, sizeof entry);
    REQUIRE_OK(imgdl_cache_query(cache, url, &entry));
    CHECK_NUMBER(entry.status, 200);
    CHECK_NUMBER(entry.body_bytes, first.length);
    CHECK_NUMBER(entry.is_complete, 1);
    CHECK(entry.fresh_s > 500 && entry.fresh_s <= 600);
    CHECK(entry.stored_s > 0 && entry.used_s >= entry.stored_s);
}

TEST_WITH_CACHES("a part of a body that the server gave is stored, and not complete (imgdl_cache_entry)")
{
    const char *url = at_origin("/pictures/baseline.jpg?etag=v1&" FRESH "&n=%d", (int)getpid());
    struct reply part = ask_with_field(downloader, url, "Range", "bytes=100-299");
    CHECK_OUTCOME(part, NETWORK);
    CHECK_NUMBER(part.http_status, 206);
    CHECK_NUMBER(part.length, 200);
    imgdl_cache_entry entry = await_stored(cache, url, 0);
    CHECK_NUMBER(entry.status, 206);
    CHECK_NUMBER(entry.body_bytes, 200);
    CHECK_NUMBER(entry.is_complete, 0);
    CHECK_OUTCOME(ask_with_field(downloader, url, "Range", "bytes=120-129"), HIT);
}

TEST_WITH_CACHES("events of a hit come in the order of any download")
{
    (void)cache;
    const char *url = at_origin("/pictures/progressive.jpg?" FRESH "&n=%d", (int)getpid());
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_DEFAULT, 0), NETWORK);
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(url, &recorder);
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    check_order(&recorder, IMGDL_EVENT_ALL);
    CHECK_NUMBER(imgdl_image_width(recorder.image), 640);
    CHECK_NUMBER(times_served(url), 1);
    recorder_clear(&recorder);
}

TEST_WITH_CACHES("each mode, for what is fresh (O2)")
{
    (void)cache;
    const char *url = at_origin("/pictures/tiny.png?etag=v1&" FRESH "&n=%d", (int)getpid());
    CHECK_CODE(ask(downloader, url, IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED);
    CHECK_NUMBER(times_served(url), 0);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_OFF, BODY), NETWORK);
    CHECK_CODE(ask(downloader, url, IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED); /* OFF stores nothing */
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), NETWORK);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_ONLY, BODY), HIT);
    CHECK_NUMBER(times_served(url), 2);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_OFF, BODY), NETWORK);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_RELOAD, BODY), NETWORK);
    CHECK_NUMBER(times_served(url), 4);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_REFRESH, BODY), VALIDATED);
    CHECK_NUMBER(times_served(url), 5);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), HIT);
    CHECK_NUMBER(times_served(url), 5);
}

TEST_WITH_CACHES("what is stale is validated, and answers as it is where that was asked for")
{
    const char *url = at_origin("/pictures/tiny.png?etag=v1&" STALE "&n=%d", (int)getpid());
    struct reply first = ask(downloader, url, IMGDL_CACHE_USE, BODY);
    CHECK_OUTCOME(first, NETWORK);
    struct reply second = ask(downloader, url, IMGDL_CACHE_USE, BODY);
    CHECK_OUTCOME(second, VALIDATED);
    CHECK_NUMBER(second.http_status, 200);
    CHECK(second.sum == first.sum && second.length == first.length);
    CHECK_NUMBER(times_served(url), 2);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_ONLY, BODY), STALE);
    CHECK_OUTCOME(ask_with_field(downloader, url, "Cache-Control", "max-stale"), STALE);
    CHECK_NUMBER(times_served(url), 2);
    imgdl_cache_entry entry;
    imgdl_cache_entry_init(&entry, sizeof entry);
    REQUIRE_OK(imgdl_cache_query(cache, url, &entry));
    CHECK(entry.fresh_s <= 0);
}

TEST_WITH_CACHES("what may not be stored is not: no-store, Vary: * (RFC 9111 section 3)")
{
    static const char *const fields[] = {"Cache-Control:no-store", "Vary:*"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *url =
            at_origin("/pictures/tiny.png?" FRESH "&header=%s&n=%d", fields[i], (int)getpid());
        CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), NETWORK);
        CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), NETWORK);
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED);
        imgdl_cache_entry entry;
        imgdl_cache_entry_init(&entry, sizeof entry);
        CHECK_CODE(imgdl_cache_query(cache, url, &entry), IMGDL_ERROR_NOT_CACHED);
    }
}

TEST_WITH_CACHES("what varies with cookies answers the same cookies alone")
{
    (void)cache;
    const char *url = at_origin("/pictures/tiny.png?" FRESH "&header=Vary:Cookie&n=%d", (int)getpid());
    imgdl_request_flags jar = BODY | IMGDL_REQUEST_COOKIES;
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, jar), NETWORK);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, jar), HIT);
    ask(downloader, at_origin("/cookies/set?a=1&path=/"), IMGDL_CACHE_OFF, jar);
    CHECK_CODE(ask(downloader, url, IMGDL_CACHE_ONLY, jar).code, IMGDL_ERROR_NOT_CACHED);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, jar), NETWORK);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, jar), HIT);
}

TEST_WITH_CACHES("a body whose coding ends early is not stored, though its framing is whole")
{
    const char *url = at_origin("/pictures/truecolour.png?" FRESH "&gzip=1&coding_cut=1&n=%d", (int)getpid());
    for (int i = 0; i < 2; i++) {
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_USE, BODY).code, IMGDL_ERROR_TRUNCATED);
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED);
    }
    const char *whole = at_origin("/pictures/truecolour.png?" FRESH "&gzip=1&coding_tail=9&n=%d", (int)getpid());
    CHECK_OUTCOME(ask(downloader, whole, IMGDL_CACHE_USE, BODY), NETWORK);
    CHECK_OUTCOME(ask(downloader, whole, IMGDL_CACHE_ONLY, BODY), HIT);
    (void)cache;
}

TEST_WITH_CACHES("a caller's own condition: 304 is NOT_MODIFIED, from the cache too (B18)")
{
    (void)cache;
    const char *url = at_origin("/pictures/tiny.png?etag=v1&" FRESH "&n=%d", (int)getpid());
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), NETWORK);
    struct reply answer = ask_with_field(downloader, url, "If-None-Match", "\"v1\"");
    CHECK_CODE(answer.code, IMGDL_ERROR_NOT_MODIFIED);
    CHECK_NUMBER(answer.http_status, 304);
    CHECK_NUMBER(times_served(url), 1);
    CHECK_OUTCOME(ask_with_field(downloader, url, "If-None-Match", "\"v2\""), HIT);
}

TEST_WITH_CACHES("IGNORE_CACHED tells of what has changed alone: by freshness, by 304, by comparing bytes (O3)")
{
    (void)cache;
    static const char *const queries[] = {FRESH, ("etag=v1&" STALE), STALE};
    size_t size;
    uint8_t *bytes = read_picture("tiny.png", &size);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        char name[64];
        snprintf(name, sizeof name, "changing-%d-%zu.png", (int)getpid(), i);
        write_picture(name, bytes, size);
        const char *url = at_origin("/pictures/%s?%s", name, queries[i]);
        CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, IGNORE), NETWORK);
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_USE, IGNORE).code, IMGDL_ERROR_NOT_MODIFIED);
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_RELOAD, IGNORE).code, IMGDL_ERROR_NOT_MODIFIED);
        /* Others are told all the same. */
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_USE, BODY).code, IMGDL_OK);
        write_picture(name, "other", 5);
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_RELOAD, IGNORE).code, IMGDL_OK);
    }
    free(bytes);
}

TEST("without a cache ONLY is NOT_CACHED, and every other mode and IGNORE_CACHED go to the server")
{
    imgdl_downloader *downloader = new_downloader();
    const char *url = at_origin("/pictures/tiny.png?" FRESH "&n=%d", (int)getpid());
    CHECK_CODE(ask(downloader, url, IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED);
    for (imgdl_cache_mode mode = 0; mode <= IMGDL_CACHE_REFRESH; mode++)
        if (mode != IMGDL_CACHE_ONLY)
            CHECK_OUTCOME(ask(downloader, url, mode, IGNORE), NETWORK);
    CHECK_NUMBER(times_served(url), 5);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

/* With this bound in the request. */
static struct reply ask_within(imgdl_downloader *downloader, const char *url, imgdl_cache_mode mode, uint64_t max_stale_ms)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.flags = BODY;
    request.cache_mode = mode;
    request.max_stale_ms = max_stale_ms;
    return ask_with(downloader, &request);
}

TEST("max_stale_ms of the request, else of the downloader, bounds what is stale: an hour of it here")
{
    imgdl_cache *cache = new_cache(NULL);
    const char *url = at_origin("/pictures/tiny.png?header=Age:3660&header=Cache-Control:max-age=60&n=%d", (int)getpid());
    const uint64_t hour = 3600000;
    const uint64_t bounds[] = {0, IMGDL_NO_LIMIT, IMGDL_STALE_NEVER, 1, hour - 1000, hour + 600000};
    const int allowed[] = {1, 1, 0, 0, 0, 1};
    enum { BOUNDS = sizeof bounds / sizeof *bounds };
    _Static_assert(sizeof allowed / sizeof *allowed == BOUNDS, "one each");
    for (int i = 0; i < BOUNDS; i++) {
        imgdl_config config;
        imgdl_config_init(&config, sizeof config);
        config.cache = cache;
        config.cache_mode = IMGDL_CACHE_USE;
        config.max_stale_ms = bounds[i];
        imgdl_downloader *downloader = NULL;
        REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
        if (i == 0)
            CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), NETWORK);
        for (int own = 0; own < BOUNDS; own++) {
            struct reply answer = ask_within(downloader, url, IMGDL_CACHE_ONLY, bounds[own]);
            if (own == 0 ? allowed[i] : allowed[own])
                CHECK_OUTCOME(answer, STALE);
            else
                CHECK_CODE(answer.code, IMGDL_ERROR_NOT_CACHED);
        }
        REQUIRE_OK(imgdl_downloader_destroy(downloader));
    }
    CHECK_NUMBER(times_served(url), 1);
    imgdl_cache_release(cache);
}

static int64_t seconds_fresh(imgdl_cache *cache, const char *url)
{
    imgdl_cache_entry entry;
    imgdl_cache_entry_init(&entry, sizeof entry);
    REQUIRE_OK(imgdl_cache_query(cache, url, &entry));
    return entry.fresh_s;
}

TEST_WITH_CACHES("a picture without the mark of its end is shown where nothing was cut, stored or not (IMGDL_IMAGE_INCOMPLETE_END)")
{
    static const struct {
        const char *name, *kind;
        size_t end; /* EOI, IEND, or what else marks it */
    } pictures[] = {{"baseline.jpg", "jpg", 2}, {"progressive.jpg", "jpg", 2}, {"truecolour.png", "png", 12}};
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        size_t size;
        uint8_t *bytes = read_picture(pictures[i].name, &size);
        imgdl_image *whole = NULL, *image = NULL;
        REQUIRE_OK(imgdl_decode(bytes, size, NULL, &whole));
        CHECK_NUMBER(imgdl_image_notes(whole), 0);
        size -= pictures[i].end;
        REQUIRE_OK(imgdl_decode(bytes, size, NULL, &image));
        CHECK_NUMBER(imgdl_image_notes(image), IMGDL_IMAGE_INCOMPLETE_END);
        CHECK_NUMBER(imgdl_image_is_complete(image), 1);
        CHECK(memcmp(imgdl_image_pixels(image), imgdl_image_pixels(whole),
                     imgdl_image_stride(whole) * imgdl_image_height(whole)) == 0);

        char name[64];
        snprintf(name, sizeof name, "endless-%zu-%d.%s", i, (int)getpid(), pictures[i].kind);
        write_picture(name, bytes, size);
        const char *lengths[] = {"short_by=0", "chunked=1"};
        for (size_t way = 0; way < sizeof lengths / sizeof *lengths; way++) {
            const char *url = at_origin("/pictures/%s?%s&etag=v1&" FRESH, name, lengths[way]);
            CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, 0), NETWORK);
            struct reply again = ask(downloader, url, IMGDL_CACHE_USE, 0);
            CHECK_OUTCOME(again, HIT);
            CHECK_NUMBER(again.width, imgdl_image_width(whole));
        }
        /* Its connection's end may have cut it; what is stored remembers that. */
        const char *url = at_origin("/pictures/%s?length=none&etag=v1&" FRESH, name);
        CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), NETWORK);
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_USE, 0).code, IMGDL_ERROR_TRUNCATED);
        CHECK_CODE(ask(downloader, at_origin("/pictures/%s?length=none", name), IMGDL_CACHE_OFF, 0).code,
                   IMGDL_ERROR_TRUNCATED);
        (void)cache;
        imgdl_image_release(whole);
        imgdl_image_release(image);
        free(bytes);
    }
}

TEST_WITH_CACHES("what is no picture is validated by whoever asks next, fetched anew if that does not help, and a limit spoils nothing")
{
    size_t size;
    uint8_t *bytes = read_picture("tiny.png", &size);
    char name[64];
    snprintf(name, sizeof name, "damaged-%d.png", (int)getpid());
    const char *url = at_origin("/pictures/%s?etag=v1&" FRESH, name);
    write_picture(name, bytes, size / 2);
    CHECK_CODE(ask(downloader, url, IMGDL_CACHE_USE, 0).code, IMGDL_ERROR_TRUNCATED);
    CHECK(seconds_fresh(cache, url) <= 0);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), VALIDATED);
    CHECK(seconds_fresh(cache, url) > 500);
    CHECK_CODE(ask(downloader, url, IMGDL_CACHE_USE, 0).code, IMGDL_ERROR_TRUNCATED);
    CHECK_CODE(ask(downloader, url, IMGDL_CACHE_USE, 0).code, IMGDL_ERROR_TRUNCATED);
    write_picture(name, bytes, size);
    struct reply whole = ask(downloader, url, IMGDL_CACHE_USE, 0);
    CHECK_OUTCOME(whole, NETWORK);
    CHECK_NUMBER(whole.width, 24);

    const char *large = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid());
    imgdl_decode_options decode;
    imgdl_decode_options_init(&decode, sizeof decode);
    decode.max_pixels = 1;
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = large;
    request.decode = &decode;
    CHECK_CODE(ask_with(downloader, &request).code, IMGDL_ERROR_PIXEL_LIMIT);
    CHECK_OUTCOME(ask(downloader, large, IMGDL_CACHE_USE, BODY), HIT);
    free(bytes);
}

TEST_WITH_CACHES("a 404 with max-age is kept where a request takes it, and is INVALID_STATUS to others")
{
    (void)cache;
    const char *url = at_origin("/pictures/tiny.png?status=404&" FRESH "&n=%d", (int)getpid());
    CHECK_CODE(ask(downloader, url, IMGDL_CACHE_USE, BODY).code, IMGDL_ERROR_INVALID_STATUS);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY | IMGDL_REQUEST_ANY_STATUS), NETWORK);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY | IMGDL_REQUEST_ANY_STATUS), HIT);
    imgdl_request request;
    const imgdl_status_range missing = {404, 404};
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.flags = BODY;
    request.accepted_statuses = &missing;
    request.accepted_status_count = 1;
    struct reply answer = ask_with(downloader, &request);
    CHECK_OUTCOME(answer, HIT);
    CHECK_NUMBER(answer.http_status, 404);
    CHECK_CODE(ask(downloader, url, IMGDL_CACHE_USE, BODY).code, IMGDL_ERROR_INVALID_STATUS);
    CHECK_NUMBER(times_served(url), 2);
}

TEST_WITH_CACHES("REFRESH leaves alone what is fresh and immutable (RFC 8246), RELOAD does not")
{
    (void)cache;
    const char *url = at_origin("/pictures/tiny.png?etag=v1&header=Cache-Control:max-age=600,immutable&n=%d", (int)getpid());
    const char *other = at_origin("/pictures/tiny.png?etag=v1&" FRESH "&n=%d", (int)getpid());
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), NETWORK);
    CHECK_OUTCOME(ask(downloader, other, IMGDL_CACHE_USE, BODY), NETWORK);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_REFRESH, BODY), HIT);
    CHECK_OUTCOME(ask(downloader, other, IMGDL_CACHE_REFRESH, BODY), VALIDATED);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_RELOAD, BODY), NETWORK);
}

TEST("the mode of the config holds for requests that say nothing, and is OFF unless it says so")
{
    imgdl_cache *cache = new_cache(NULL);
    const char *url = at_origin("/pictures/tiny.png?" FRESH "&n=%d", (int)getpid());
    const imgdl_cache_mode modes[] = {IMGDL_CACHE_DEFAULT, IMGDL_CACHE_OFF, IMGDL_CACHE_USE, IMGDL_CACHE_ONLY};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        imgdl_config config;
        imgdl_config_init(&config, sizeof config);
        config.cache = cache;
        config.cache_mode = modes[i];
        imgdl_downloader *downloader = NULL;
        REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
        if (modes[i] == IMGDL_CACHE_ONLY)
            CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_DEFAULT, BODY), HIT);
        else
            CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_DEFAULT, BODY), NETWORK);
        REQUIRE_OK(imgdl_downloader_destroy(downloader));
    }
    CHECK_NUMBER(times_served(url), 3);
    imgdl_cache_release(cache);
}

TEST_WITH_CACHES("remove, remove_older and clear, and a POST, remove")
{
    const char *url = at_origin("/pictures/tiny.png?" FRESH "&n=%d", (int)getpid());
    const char *other = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid());
    for (int round = 0; round < 4; round++) {
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_USE, BODY).code, IMGDL_OK);
        CHECK_CODE(ask(downloader, other, IMGDL_CACHE_USE, BODY).code, IMGDL_OK);
        REQUIRE_OK(imgdl_cache_remove_older(cache, 3600));
        CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_ONLY, BODY), HIT);
        imgdl_request post;
        switch (round) {
        case 0:
            /* User, password and fragment are no part of what it is stored under. */
            REQUIRE_OK(imgdl_cache_remove(cache, at_origin("/pictures/tiny.png?" FRESH "&n=%d#fragment", (int)getpid())));
            break;
        case 1: REQUIRE_OK(imgdl_cache_remove_older(cache, 0)); break;
        case 2: REQUIRE_OK(imgdl_cache_clear(cache)); break;
        case 3:
            imgdl_request_init(&post, sizeof post);
            post.url = url;
            post.method = "POST";
            post.flags = BODY | IMGDL_REQUEST_ANY_STATUS;
            CHECK_CODE(ask_with(downloader, &post).code, IMGDL_OK);
            break;
        }
        if (round == 1) /* what was used this second is not older than none */
            continue;
        if (round == 2)
            CHECK_CODE(ask(downloader, other, IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED);
        else
            CHECK_OUTCOME(ask(downloader, other, IMGDL_CACHE_ONLY, BODY), HIT);
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED);
    }
    /* Nothing there is no error. */
    REQUIRE_OK(imgdl_cache_remove(cache, url));
    REQUIRE_OK(imgdl_cache_clear(cache));
    REQUIRE_OK(imgdl_cache_flush(cache));
}

TEST_WITH_CACHES("statistics count each look-up once")
{
    const char *url = at_origin("/pictures/tiny.png?etag=v1&" STALE "&n=%d", (int)getpid());
    const char *fresh = at_origin("/pictures/tiny.png?" FRESH "&n=%d", (int)getpid());
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), NETWORK);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), VALIDATED);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_ONLY, BODY), STALE);
    CHECK_OUTCOME(ask(downloader, fresh, IMGDL_CACHE_USE, BODY), NETWORK);
    CHECK_OUTCOME(ask(downloader, fresh, IMGDL_CACHE_USE, BODY), HIT);
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_cache_flush(cache));
    REQUIRE_OK(imgdl_cache_statistics(cache, &stats));
    CHECK_NUMBER(stats.misses, 2);
    CHECK_NUMBER(stats.validated, 1);
    CHECK_NUMBER(stats.stale, 1);
    CHECK_NUMBER(stats.hits + stats.memory_hits, 1);
    CHECK_NUMBER(stats.stored, 2);
    CHECK_NUMBER(stats.entries + stats.memory_entries, 2);
    CHECK_NUMBER(stats.damaged, 0);
}

TEST_WITH_CACHES("a batch fills the cache without decoding (F1)")
{
    (void)cache;
    enum { COUNT = 5 };
    imgdl_request requests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        imgdl_request_init(&requests[i], sizeof requests[i]);
        requests[i].url = at_origin("/pictures/tiny.webp?" FRESH "&n=%d-%d", (int)getpid(), i);
        requests[i].flags = BODY;
        requests[i].cache_mode = IMGDL_CACHE_USE;
    }
    REQUIRE_OK(imgdl_downloader_prefetch(downloader, requests, COUNT, NULL, NULL));
    REQUIRE_OK(imgdl_downloader_wait_idle(downloader, PATIENCE_MS));
    for (int i = 0; i < COUNT; i++)
        CHECK_NUMBER(ask(downloader, requests[i].url, IMGDL_CACHE_ONLY, 0).width, 48);
}

/* ---- Bodies that broke off */

static void on_bytes(struct recorder *recorder, const imgdl_event *event)
{
    if (event->kind == IMGDL_EVENT_PROGRESS && event->received >= 3000)
        raise_flag(recorder->context);
}

/* Downloads the first 3000 bytes at least, which wait at the gate, and cancels. */
static void break_off(imgdl_downloader *downloader, const char *url, const char *gate)
{
    struct flag came = FLAG_INIT;
    struct recorder recorder;
    recorder_init(&recorder);
    recorder.hook = on_bytes;
    recorder.context = &came;
    imgdl_request request = recorded_request(url, &recorder);
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(downloader, &request, &token));
    await_gate(gate, 1);
    REQUIRE(await_flag(&came, 1));
    REQUIRE_OK(imgdl_token_cancel(token));
    REQUIRE(await_end(&recorder, NULL));
    CHECK_CODE(recorder.code, IMGDL_ERROR_CANCELLED);
    imgdl_token_release(token);
    recorder_clear(&recorder);
}

TEST_WITH_CACHES("what a cancelled transfer has received is kept, and continued (B11, R01)")
{
    char gate[64];
    snprintf(gate, sizeof gate, "%s-%d", __func__, (int)getpid());
    const char *url = at_origin("/pictures/baseline.jpg?etag=v1&" FRESH "&hold_after=3000&gate=%s", gate);
    break_off(downloader, url, gate);
    imgdl_cache_entry entry = await_stored(cache, url, 0);
    CHECK_NUMBER(entry.is_complete, 0);
    CHECK_NUMBER(entry.body_bytes, 3000);
    CHECK_CODE(ask(downloader, url, IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED);
    open_gate(gate);
    size_t size;
    uint8_t *bytes = read_picture("baseline.jpg", &size);
    struct reply answer = ask(downloader, url, IMGDL_CACHE_USE, BODY);
    CHECK_OUTCOME(answer, RESUMED);
    CHECK_NUMBER(answer.http_status, 200);
    CHECK(answer.length == size && answer.sum == sum_of(bytes, size));
    answer = ask(downloader, url, IMGDL_CACHE_USE, BODY);
    CHECK_OUTCOME(answer, HIT);
    CHECK(answer.length == size && answer.sum == sum_of(bytes, size));
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_cache_statistics(cache, &stats));
    CHECK_NUMBER(stats.resumed, 1);
    CHECK_NUMBER(stats.partial_entries, 0);
    free(bytes);
}

TEST_WITH_CACHES("a connection that breaks again and again: every attempt goes on where the last one stopped (B14)")
{
    (void)cache;
    size_t size;
    uint8_t *bytes = read_picture("baseline.jpg", &size);
    unsigned step = (unsigned)size / 3 + 1;
    const char *url = at_origin("/pictures/baseline.jpg?etag=v1&" FRESH "&close_after=%u&n=%d", step, (int)getpid());
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.flags = BODY;
    request.retry_count = 5;
    request.retry_base_ms = 1;
    struct reply answer = ask_with(downloader, &request);
    CHECK_OUTCOME(answer, RESUMED);
    CHECK(answer.length == size && answer.sum == sum_of(bytes, size));
    CHECK_NUMBER(times_served(url), 3);
    CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), HIT);
    free(bytes);
}

TEST_WITH_CACHES("a server that does not continue: the whole body, and no retry used (I33)")
{
    static const char *const ways[] = {"ignore", "wrong", "416"};
    size_t size;
    uint8_t *bytes = read_picture("baseline.jpg", &size);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char gate[64];
        snprintf(gate, sizeof gate, "%s-%d", ways[i], (int)getpid());
        const char *url = at_origin("/pictures/baseline.jpg?etag=v1&" FRESH "&hold_after=3000&range=%s&gate=%s", ways[i],
                                    gate);
        break_off(downloader, url, gate);
        await_stored(cache, url, 0);
        open_gate(gate);
        struct reply answer = ask(downloader, url, IMGDL_CACHE_USE, BODY);
        CHECK_OUTCOME(answer, NETWORK);
        CHECK(answer.length == size && answer.sum == sum_of(bytes, size));
        CHECK_OUTCOME(ask(downloader, url, IMGDL_CACHE_USE, BODY), HIT);
    }
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_cache_statistics(cache, &stats));
    CHECK_NUMBER(stats.resumed, 0);
    free(bytes);
}

static void on_all_but_one(struct recorder *recorder, const imgdl_event *event)
{
    if (event->kind == IMGDL_EVENT_PROGRESS && event->received == event->expected - 1)
        raise_flag(recorder->context);
}

TEST("with FINISH_NEARLY_DONE a cancelled transfer that is nearly there goes on into the cache (R33)")
{
    imgdl_cache *cache = new_cache(NULL);
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.cache = cache;
    config.cache_mode = IMGDL_CACHE_USE;
    config.flags = IMGDL_CONFIG_FINISH_NEARLY_DONE;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    size_t size;
    free(read_picture("baseline.jpg", &size));
    char gate[64];
    snprintf(gate, sizeof gate, "%s-%d", __func__, (int)getpid());
    const char *url = at_origin("/pictures/baseline.jpg?" FRESH "&hold_after=%zu&gate=%s", size - 1, gate);
    struct flag came = FLAG_INIT;
    struct recorder recorder;
    recorder_init(&recorder);
    recorder.hook = on_all_but_one;
    recorder.context = &came;
    imgdl_request request = recorded_request(url, &recorder);
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(downloader, &request, &token));
    REQUIRE(await_flag(&came, 1));
    REQUIRE_OK(imgdl_token_cancel(token));
    REQUIRE(await_end(&recorder, NULL));
    CHECK_CODE(recorder.code, IMGDL_ERROR_CANCELLED);
    open_gate(gate);
    await_stored(cache, url, 1);
    CHECK_NUMBER(ask(downloader, url, IMGDL_CACHE_ONLY, BODY).length, size);
    CHECK_NUMBER(times_served(url), 1);
    imgdl_token_release(token);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
}

/* ---- Decoded images */

TEST("the tier of decoded images gives everybody the same pixels (B20)")
{
    imgdl_cache_config options;
    imgdl_cache_config_init(&options, sizeof options);
    options.max_image_bytes = 16u << 20;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(imgdl_cache_open(&options, &cache));
    imgdl_downloader *downloader = new_caching_downloader(cache);
    const char *url = at_origin("/pictures/baseline.jpg?" FRESH "&n=%d", (int)getpid());
    struct recorder recorders[3];
    for (int i = 0; i < 3; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(url, &recorders[i]);
        imgdl_decode_options decode;
        imgdl_decode_options_init(&decode, sizeof decode);
        decode.pixel_format = i == 2 ? IMGDL_PIXEL_FORMAT_BGRA8 : IMGDL_PIXEL_FORMAT_RGBA8;
        request.decode = &decode;
        request.event_mask = 0;
        CHECK_CODE(download_and_wait(downloader, &request, &recorders[i]), IMGDL_OK);
    }
    CHECK(imgdl_image_pixels(recorders[0].image) != NULL);
    CHECK(imgdl_image_pixels(recorders[0].image) == imgdl_image_pixels(recorders[1].image));
    CHECK(imgdl_image_pixels(recorders[0].image) != imgdl_image_pixels(recorders[2].image));
    CHECK_NUMBER(times_served(url), 1);
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_cache_statistics(cache, &stats));
    CHECK_NUMBER(stats.image_hits, 1);
    CHECK(stats.image_entries >= 1 && stats.image_bytes >= 640u * 427 * 4);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    for (int i = 0; i < 3; i++)
        recorder_clear(&recorders[i]);
}

static imgdl_cache *new_cache_of_images(const char *directory)
{
    imgdl_cache_config options;
    imgdl_cache_config_init(&options, sizeof options);
    options.directory = directory;
    options.max_image_bytes = 16u << 20;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(imgdl_cache_open(&options, &cache));
    return cache;
}

/* The answer to the validation says that it has not changed: but it is not there any more. */
TEST("a picture that another cache of the folder removes while it is validated is fetched anew")
{
    char *directory = new_folder();
    imgdl_cache *cache = new_cache_of_images(directory), *other = new_cache_of_images(directory);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    for (int round = 0; round < 2; round++) {
        char gate[64];
        snprintf(gate, sizeof gate, "%s-%d-%d", __func__, (int)getpid(), round);
        const char *url = at_origin("/pictures/tiny.png?etag=v1&" STALE "&hold_head=1&gate=%s", gate);
        open_gate(gate);
        struct recorder recorders[2];
        for (int i = 0; i < 2; i++) {
            recorder_init(&recorders[i]);
            imgdl_request request = recorded_request(url, &recorders[i]);
            imgdl_token *token = NULL;
            REQUIRE_OK(imgdl_download(downloader, &request, &token));
            if (i == 1) {
                await_gate(gate, 2);
                if (round == 0)
                    REQUIRE_OK(imgdl_cache_remove(other, url));
                else
                    REQUIRE_OK(imgdl_cache_clear(other));
                open_gate(gate);
            }
            REQUIRE(await_end(&recorders[i], NULL));
            CHECK_CODE(recorders[i].code, IMGDL_OK);
            imgdl_token_release(token);
            if (i == 0) {
                REQUIRE_OK(imgdl_cache_flush(cache));
                close_gate(gate);
            }
        }
        CHECK(imgdl_image_pixels(recorders[0].image) != imgdl_image_pixels(recorders[1].image));
        CHECK_NUMBER(times_served(url), 3);
        for (int i = 0; i < 2; i++)
            recorder_clear(&recorders[i]);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    imgdl_cache_release(other);
    free(directory);
}

/* ---- Hooks */

struct hooked {
    unsigned asked;
    struct flag ended;
};

static void let_pass(const imgdl_outgoing *request, imgdl_continuation *next, void *user_data)
{
    (void)request;
    struct hooked *hooked = user_data;
    __atomic_add_fetch(&hooked->asked, 1, __ATOMIC_SEQ_CST);
    CHECK_CODE(imgdl_continue_unchanged(next), IMGDL_OK);
}

static void on_hooks_end(void *hooked) { raise_flag(&((struct hooked *)hooked)->ended); }

TEST("hooks end with the last request that names them, whatever the cache was asked for it")
{
    imgdl_cache *cache = new_cache(NULL);
    imgdl_downloader *downloaders[] = {new_caching_downloader(cache), new_downloader()};
    /* Nothing is stored for any of the URLs; the hook is asked before the cache, since its answer may be another URL. */
    static const struct {
        imgdl_cache_mode mode;
        imgdl_status code;
    } cases[] = {
        {IMGDL_CACHE_USE, IMGDL_OK}, {IMGDL_CACHE_ONLY, IMGDL_ERROR_NOT_CACHED}, {IMGDL_CACHE_REFRESH, IMGDL_OK}};
    for (unsigned i = 0; i < 2; i++)
        for (unsigned j = 0; j < sizeof cases / sizeof *cases; j++) {
            struct hooked hooked = {.ended = FLAG_INIT};
            imgdl_hooks_table table = {.struct_size = sizeof table, .modify_request = let_pass, .user_data = &hooked,
                                       .destructor = on_hooks_end};
            imgdl_request request;
            imgdl_request_init(&request, sizeof request);
            request.url = at_origin("/pictures/tiny.png?" FRESH "&_=%u%u", i, j);
            request.cache_mode = cases[j].mode;
            REQUIRE_OK(imgdl_hooks_create(&table, &request.hooks));
            CHECK_NUMBER(ask_with(downloaders[i], &request).code, cases[j].code);
            CHECK_NUMBER(__atomic_load_n(&hooked.asked, __ATOMIC_SEQ_CST), 1);
            imgdl_hooks_release(request.hooks);
            await_flag(&hooked.ended, 1);
            CHECK_NUMBER(hooked.ended.value, 1);
        }
    for (unsigned i = 0; i < 2; i++)
        REQUIRE_OK(imgdl_downloader_destroy(downloaders[i]));
    imgdl_cache_release(cache);
}
