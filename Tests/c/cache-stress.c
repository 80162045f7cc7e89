/* Many threads, two downloaders, one small cache on disk that evicts all the time; then the books have to balance. */
#define SUITE "stress of the cache"
#include "support.h"

#include <stdatomic.h>

enum { THREADS = 4, ASKS = UNDER_SANITIZER ? 300 : 800, URLS = 24 };

static const char *urls[URLS];
static uint64_t sums[URLS];
static imgdl_cache *cache;
static imgdl_downloader *downloaders[2];
static atomic_uint accepted, terminals, destroyed, wrong, from_cache, is_over;

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void on_event(const imgdl_event *event, void *user_data)
{
    const unsigned *number = user_data;
    if (event->kind == IMGDL_EVENT_RESPONSE && event->response->cache_outcome != IMGDL_CACHE_OUTCOME_NETWORK)
        from_cache++;
    if (event->kind != IMGDL_EVENT_TERMINAL)
        return;
    terminals++;
    switch (event->code) {
    case IMGDL_OK:
        if (event->data && sum_of(imgdl_data_bytes(event->data), imgdl_data_length(event->data)) != sums[*number]) {
            wrong++;
            fprintf(stderr, "    %s: other bytes\n", urls[*number]);
        }
        break;
    case IMGDL_ERROR_CANCELLED:
    case IMGDL_ERROR_NOT_CACHED:
    case IMGDL_ERROR_NOT_MODIFIED:
    case IMGDL_ERROR_TRUNCATED:
    case IMGDL_ERROR_CONNECTION_LOST: break;
    default:
        wrong++;
        fprintf(stderr, "    %s: %s\n", imgdl_error_name(event->code), event->message);
    }
}

static void on_destroyed(void *user_data)
{
    free(user_data);
    destroyed++;
}

static void *ask_again_and_again(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    for (int i = 0; i < ASKS; i++) {
        uint32_t dice = next_random(&random);
        unsigned *number = malloc(sizeof *number);
        *number = dice / 3 % URLS;
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        request.url = urls[*number];
        request.flags = dice / 5 % 3 ? IMGDL_REQUEST_BODY : 0;
        request.flags |= dice / 7 % 9 ? 0 : IMGDL_REQUEST_IGNORE_CACHED;
        request.cache_mode = dice / 11 % 2 ? IMGDL_CACHE_USE : dice / 13 % (IMGDL_CACHE_REFRESH + 1);
        request.event_mask = dice / 17 % 4 ? IMGDL_EVENT_RESPONSE : IMGDL_EVENT_ALL;
        request.executor = dice / 19 % 3 ? NULL : IMGDL_EXECUTOR_INLINE;
        request.retry_count = dice / 23 % 3;
        request.retry_base_ms = 1;
        request.callback = on_event;
        request.destructor = on_destroyed;
        request.user_data = number;
        imgdl_token *token = NULL;
        REQUIRE_OK(imgdl_download(downloaders[dice / 29 % 2], &request, &token));
        accepted++;
        if (next_random(&random) % 5 == 0)
            ignore_status(imgdl_token_cancel(token));
        else if (next_random(&random) % 3 == 0)
            REQUIRE_OK(imgdl_token_wait(token, PATIENCE_MS));
        imgdl_token_release(token);
    }
    return NULL;
}

static void *disturb(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    while (!is_over) {
        imgdl_cache_entry entry;
        imgdl_cache_stats stats;
        imgdl_cache_entry_init(&entry, sizeof entry);
        imgdl_cache_stats_init(&stats, sizeof stats);
        imgdl_status status = imgdl_cache_query(cache, urls[next_random(&random) % URLS], &entry);
        CHECK(status == IMGDL_OK || status == IMGDL_ERROR_NOT_CACHED);
        CHECK_CODE(imgdl_cache_statistics(cache, &stats), IMGDL_OK);
        switch (next_random(&random) % 16) {
        case 0: CHECK_CODE(imgdl_cache_clear(cache), IMGDL_OK); break;
        case 1: CHECK_CODE(imgdl_cache_flush(cache), IMGDL_OK); break;
        case 2: CHECK_CODE(imgdl_cache_remove_older(cache, next_random(&random) % 2), IMGDL_OK); break;
        default: CHECK_CODE(imgdl_cache_remove(cache, urls[next_random(&random) % URLS]), IMGDL_OK);
        }
    }
    return NULL;
}

static void make_urls(void)
{
    static const char *const names[] = {"tiny.jpg", "tiny.png", "tiny.webp", "truecolour.png"};
    static const char *const queries[] = {
        "header=Cache-Control:max-age=600", "etag=v1&header=Cache-Control:max-age=0", "etag=v1", "close_after=300&etag=v1",
        "header=Cache-Control:no-store", "header=Cache-Control:max-age=0,stale-while-revalidate=600&etag=v1"};
    for (unsigned i = 0; i < URLS; i++) {
        urls[i] = at_origin("/pictures/%s?%s&n=%d-%u", names[i % 4], queries[i / 4], (int)getpid(), i);
        size_t size;
        uint8_t *bytes = read_picture(names[i % 4], &size);
        sums[i] = sum_of(bytes, size);
        free(bytes);
    }
}

static void run(const char *directory, uint64_t seed)
{
    imgdl_cache_config options;
    imgdl_cache_config_init(&options, sizeof options);
    options.directory = directory;
    options.max_bytes = 100000;
    options.max_memory_bytes = 30000;
    options.max_image_bytes = 300000;
    REQUIRE_OK(imgdl_cache_open(&options, &cache));
    for (int i = 0; i < 2; i++)
        downloaders[i] = new_caching_downloader(cache);
    accepted = terminals = destroyed = is_over = 0;
    pthread_t threads[THREADS], disturber;
    for (uint64_t i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, ask_again_and_again, (void *)(uintptr_t)(seed * 100 + i)) == 0);
    REQUIRE(pthread_create(&disturber, NULL, disturb, (void *)(uintptr_t)(seed * 100 + 99)) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    is_over = 1;
    pthread_join(disturber, NULL);
    if (seed % 2)
        imgdl_cache_release(cache);
    for (int i = 0; i < 2; i++)
        REQUIRE_OK(imgdl_downloader_destroy(downloaders[i]));
    if (seed % 2 == 0)
        imgdl_cache_release(cache);
    CHECK_NUMBER(terminals, accepted);
    CHECK_NUMBER(destroyed, accepted);
    CHECK_NUMBER(wrong, 0);
}

TEST_WITHIN(UNDER_SANITIZER ? 600 : 120, "stress: one cache, everything at once, in memory and on disk")
{
    uint64_t seed = strtoull(harness_argument("seed", "1"), NULL, 10);
    make_urls();
    run(NULL, seed);
    run(new_folder(), seed + 1);
    CHECK(from_cache > 0);
    printf("     %u answers from the cache\n", (unsigned)from_cache);
}
