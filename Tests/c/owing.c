/* Bodies that wait for hooks and executors, whether they came over the network, from a cache, or from a hook. */
#define SUITE "owing"
#include "support.h"

#define BUDGET (2u << 20)
#define LENGTH (600u << 10) /* more than a quarter of it; all of them fit into a cache in memory */
enum { COUNT = 40, AT_ONCE = 4 };

static uint8_t bytes[LENGTH];

static imgdl_downloader *new_small_downloader(imgdl_cache *cache)
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.memory_budget = BUDGET;
    config.max_concurrent = AT_ONCE;
    config.cache = cache;
    config.cache_mode = cache ? IMGDL_CACHE_USE : IMGDL_CACHE_OFF;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    return downloader;
}

static void begin(
    imgdl_downloader *downloader, const char *name, struct recorder *recorders, imgdl_hooks *hooks, imgdl_executor *executor)
{
    for (int i = 0; i < COUNT; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(at_origin("/pictures/%s%d", name, i), &recorders[i]);
        request.flags = IMGDL_REQUEST_BODY;
        request.hooks = hooks;
        request.executor = executor;
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
}

static void end(struct recorder *recorders, imgdl_executor *executor)
{
    for (int i = 0; i < COUNT; i++) {
        if (!await_end(&recorders[i], executor))
            harness_abandon();
        check_ending(&recorders[i]);
        CHECK_CODE(recorders[i].code, IMGDL_OK);
        recorder_clear(&recorders[i]);
    }
}

static int are_at_rest(const imgdl_stats *stats, uint64_t others)
{
    return stats->running == 0 && stats->waiting + others == COUNT;
}

/* Those that have ended, and those that wait, are all, and so much is counted: each of the numbers is told by itself. */
static int wait_or_have_ended(const imgdl_stats *stats, uint64_t least)
{
    return stats->running == 0 && stats->waiting + stats->succeeded + stats->failed == COUNT && stats->memory >= least;
}

static void check_memory(const imgdl_stats *stats, uint64_t most)
{
    if (stats->memory > most)
        FAIL("%llu bytes at once", (unsigned long long)stats->memory);
}

/* ---- Hooks that owe their answers */

static imgdl_continuation *owed[COUNT];
static struct flag asked;

static void owe(imgdl_data *body, imgdl_continuation *next, void *user_data)
{
    (void)body, (void)user_data;
    owed[asked.value] = next;
    raise_flag(&asked);
}

static void store_all(imgdl_cache *cache, const char *name)
{
    write_picture("owed.bin", bytes, sizeof bytes);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    static struct recorder stored[COUNT];
    begin(downloader, name, stored, NULL, NULL);
    end(stored, NULL);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    REQUIRE_OK(imgdl_cache_flush(cache));
}

#define STORED "owed.bin?header=Cache-Control:max-age=600&n="

static void check_hooks_that_owe(imgdl_cache *cache)
{
    store_all(cache, STORED);
    asked = (struct flag)FLAG_INIT;
    imgdl_hooks_table table = {.struct_size = sizeof table, .transform_body = owe};
    imgdl_hooks *hooks = NULL;
    REQUIRE_OK(imgdl_hooks_create(&table, &hooks));
    imgdl_downloader *downloader = new_small_downloader(cache);
    static struct recorder recorders[COUNT];
    begin(downloader, STORED, recorders, hooks, NULL);
    await_flag(&asked, 1);
    imgdl_stats stats = await_stats(downloader, are_at_rest, 1);
    CHECK_NUMBER(asked.value, 1);
    check_memory(&stats, LENGTH);
    for (int i = 0; i < COUNT; i++) {
        if (!await_flag(&asked, i + 1))
            harness_abandon();
        REQUIRE_OK(imgdl_continue_unchanged(owed[i]));
    }
    end(recorders, NULL);
    imgdl_hooks_release(hooks);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

static void with_caches(void (*check)(imgdl_cache *cache))
{
    for (int is_on_disk = 0; is_on_disk < 2; is_on_disk++) {
        char *folder = is_on_disk ? new_folder() : NULL;
        imgdl_cache *cache = new_cache(folder);
        check(cache);
        imgdl_cache_release(cache);
        free(folder);
    }
}

TEST("what is stored waits for hooks that owe answers for a quarter of memory_budget, as what a server sends does")
{
    with_caches(check_hooks_that_owe);
}

/* ---- Executors that nobody dispatches */

static void check_executor(imgdl_downloader *downloader, const char *name, imgdl_hooks *hooks, unsigned most)
{
    imgdl_executor *executor = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    static struct recorder recorders[COUNT];
    begin(downloader, name, recorders, hooks, executor);
    imgdl_stats stats = await_stats(downloader, wait_or_have_ended, LENGTH);
    CHECK(stats.succeeded >= 1 && stats.succeeded <= most);
    check_memory(&stats, (uint64_t)most * LENGTH);
    end(recorders, executor);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, PATIENCE_MS), IMGDL_OK);
    imgdl_executor_release(executor);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

static void check_stored_for_executor(imgdl_cache *cache)
{
    store_all(cache, STORED);
    check_executor(new_small_downloader(cache), STORED, NULL, 1);
}

TEST("what is stored waits for an executor that nobody dispatches, as what a server sends does")
{
    with_caches(check_stored_for_executor);
}

static void give(imgdl_data *body, imgdl_continuation *next, void *user_data)
{
    (void)body, (void)user_data;
    REQUIRE_OK(imgdl_continue_with_data(next, bytes, sizeof bytes));
}

TEST("what a hook gives for a body counts in its place, also where it waits for an executor that nobody dispatches")
{
    imgdl_hooks_table table = {.struct_size = sizeof table, .transform_body = give};
    imgdl_hooks *hooks = NULL;
    REQUIRE_OK(imgdl_hooks_create(&table, &hooks));
    check_executor(new_small_downloader(NULL), "tiny.jpg?n=given-", hooks, AT_ONCE);
    imgdl_hooks_release(hooks);
}
