/* What a cache takes of the disk and of memory while everything comes at full speed, and each sync takes 20 ms. */
#define SUITE "limits of the cache"
#include "writing.h"

#include <dlfcn.h>
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FRESH "header=Cache-Control:max-age=600"

enum { MEBIBYTE = 1 << 20, MEGABYTE = 1000 * 1000 };

/* Begins once more with a disk that is slow. Sanitizers want to be loaded first themselves: there it is as fast as it is. */
static void on_a_slow_disk(void)
{
    static char path[4096];
    if (UNDER_SANITIZER || dlsym(RTLD_DEFAULT, "slow_syncs"))
        return;
    REQUIRE(!getenv("LD_PRELOAD"));
    snprintf(path, sizeof path, "%s/slow-sync.so", program_folder);
    REQUIRE(access(path, R_OK) == 0);
    setenv("LD_PRELOAD", path, 1);
    harness_begin_anew();
}

/* Syncs that went through the disk that is slow, of this process and of the one that it was forked from. */
static unsigned count_slow_syncs(void)
{
    atomic_uint *syncs = dlsym(RTLD_DEFAULT, "slow_syncs");
    return syncs ? atomic_load(syncs) : 0;
}

/* ---- What lies in a folder, by the blocks of the disk */

static struct {
    ino_t inodes[1 << 16];
    size_t count;
    uint64_t bytes;
} walk;

/* A body that gets its last name meanwhile is counted once. */
static int add_file(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)path, (void)place;
    if (kind != FTW_F && kind != FTW_D)
        return 0;
    size_t slot = (size_t)status->st_ino * 2654435761u % (1 << 16);
    while (walk.inodes[slot] && walk.inodes[slot] != status->st_ino)
        slot = (slot + 1) % (1 << 16);
    if (walk.inodes[slot] || ++walk.count > 60000)
        return 0;
    walk.inodes[slot] = status->st_ino;
    walk.bytes += (uint64_t)status->st_blocks * 512;
    return 0;
}

static uint64_t bytes_on_disk(const char *folder)
{
    memset(&walk, 0, sizeof walk);
    nftw(folder, add_file, 16, FTW_PHYS);
    return walk.bytes;
}

struct watch {
    const char *folder;
    pthread_t thread;
    atomic_int is_over;
    uint64_t most;
    unsigned looks;
};

static void *look_again_and_again(void *argument)
{
    struct watch *watch = argument;
    while (!atomic_load(&watch->is_over)) {
        uint64_t bytes = bytes_on_disk(watch->folder);
        if (bytes > watch->most)
            watch->most = bytes;
        watch->looks++;
    }
    return NULL;
}

static void begin_watch(struct watch *watch, const char *folder)
{
    *watch = (struct watch){.folder = folder};
    REQUIRE(pthread_create(&watch->thread, NULL, look_again_and_again, watch) == 0);
}

static void end_watch(struct watch *watch)
{
    atomic_store(&watch->is_over, 1);
    pthread_join(watch->thread, NULL);
    CHECK(watch->looks > 10);
}

/* The promise of max_bytes: a tenth more, a body for each writing process, and 8 MiB for index and log. */
static uint64_t promised(uint64_t max_bytes, unsigned writers, uint64_t body)
{
    return max_bytes + max_bytes / 10 + writers * body + 8 * MEBIBYTE;
}

/* ---- Filling */

static atomic_uint not_stored_events;
/* By the words of these events. */
static atomic_ulong not_stored_told;

/* "…: 12 answers were not stored: …" */
static unsigned long answers_in(const char *message)
{
    const char *end = strstr(message, " answer"), *start = end;
    while (start && start > message && start[-1] >= '0' && start[-1] <= '9')
        start--;
    unsigned long count = start ? strtoul(start, NULL, 10) : 0;
    if (count == 0)
        FAIL("it does not say how many: %s", message);
    return count;
}

static void on_cache_event(const imgdl_cache_event *event, void *user_data)
{
    (void)user_data;
    if (event->kind == IMGDL_CACHE_NOT_STORED) {
        not_stored_events++;
        not_stored_told += answers_in(event->message);
    } else
        FAIL("event %u: %s", event->kind, event->message);
}

static imgdl_cache *open_cache(const char *directory, uint64_t max_bytes, uint64_t max_memory_bytes)
{
    imgdl_cache_config config;
    imgdl_cache *cache = NULL;
    imgdl_cache_config_init(&config, sizeof config);
    config.directory = directory;
    config.max_bytes = max_bytes;
    config.max_memory_bytes = max_memory_bytes;
    config.callback = on_cache_event;
    REQUIRE_OK(imgdl_cache_open(&config, &cache));
    return cache;
}

struct filling {
    struct flag is_finished;
    size_t failed;
};

static void on_progress(const imgdl_batch_progress *progress, void *user_data)
{
    struct filling *filling = user_data;
    if (!progress->is_finished)
        return;
    filling->failed = progress->failed + progress->cancelled;
    raise_flag(&filling->is_finished);
}

/* Prefetches so many URLs, of this form with a number behind it. */
static void fill(imgdl_cache *cache, const char *form, unsigned count)
{
    struct filling filling = {.is_finished = FLAG_INIT};
    imgdl_request *requests = calloc(count, sizeof *requests);
    imgdl_config config;
    imgdl_downloader *downloader = NULL;
    imgdl_config_init(&config, sizeof config);
    config.cache = cache;
    config.cache_mode = IMGDL_CACHE_USE;
    config.max_concurrent = 16;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    for (unsigned i = 0; i < count; i++) {
        imgdl_request_init(&requests[i], sizeof requests[i]);
        requests[i].url = at_origin("%s&n=%d-%u", form, (int)getpid(), i);
        requests[i].flags = IMGDL_REQUEST_BODY;
    }
    imgdl_batch_options options;
    imgdl_batch_options_init(&options, sizeof options);
    options.max_concurrent = 16;
    options.progress = on_progress;
    options.user_data = &filling;
    REQUIRE_OK(imgdl_downloader_prefetch(downloader, requests, count, &options, NULL));
    while (!filling.is_finished.value)
        REQUIRE(await_flag(&filling.is_finished, 1));
    CHECK_NUMBER(filling.failed, 0);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_downloader_release(downloader);
    free(requests);
}

static imgdl_cache_stats statistics(imgdl_cache *cache)
{
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_cache_statistics(cache, &stats));
    return stats;
}

/* Each of them is stored, or counted as not stored, with an event. */
static void check_books(imgdl_cache *cache, unsigned count)
{
    unsigned syncs = count_slow_syncs();
    REQUIRE_OK(imgdl_cache_flush(cache));
    syncs = count_slow_syncs() - syncs;
    imgdl_cache_stats stats = statistics(cache);
    printf("    %llu stored, %llu not, %llu evicted\n", (unsigned long long)stats.stored,
           (unsigned long long)stats.not_stored, (unsigned long long)stats.evicted);
    CHECK_NUMBER(stats.stored + stats.not_stored, count);
    CHECK(stats.stored > 0);
    CHECK(UNDER_SANITIZER || syncs > 0); /* the flush had to wait for the slow disk */
}

static void close_within_a_second(imgdl_cache *cache)
{
    unsigned syncs = count_slow_syncs();
    double start = seconds_now();
    imgdl_cache_release(cache);
    double took = seconds_now() - start;
    printf("    closing took %.3f s\n", took);
    CHECK(took < (UNDER_SANITIZER ? 10 : 1));
    CHECK(UNDER_SANITIZER || count_slow_syncs() > syncs); /* so had closing */
}

TEST_WITHIN(300, "what lies on the disk stays within max_bytes while bodies come at full speed")
{
    on_a_slow_disk();
    enum { BODY = 100 * 1000, LIMIT = 10 * MEGABYTE };
    unsigned count = (unsigned)strtoul(harness_argument("bodies", UNDER_SANITIZER ? "300" : "1500"), NULL, 10);
    static uint8_t body[BODY];
    memset(body, 'x', sizeof body);
    write_picture("filler.bin", body, sizeof body);
    char *folder = new_folder();
    imgdl_cache *cache = open_cache(folder, LIMIT, 0);
    struct watch watch;
    begin_watch(&watch, folder);
    fill(cache, "/pictures/filler.bin?" FRESH, count);
    check_books(cache, count);
    imgdl_cache_stats stats = statistics(cache);
    CHECK(stats.bytes <= LIMIT);
    CHECK((stats.not_stored > 0) == (not_stored_events > 0));
    close_within_a_second(cache);
    end_watch(&watch);
    printf("    %.1f MB at most\n", (double)watch.most / MEGABYTE);
    CHECK(watch.most > LIMIT / 2);
    CHECK(watch.most <= promised(LIMIT, 1, BODY));
    CHECK(bytes_on_disk(folder) <= promised(LIMIT, 0, 0));
    free(folder);
}

TEST_WITHIN(120, "headers of answers without a body count for max_bytes")
{
    on_a_slow_disk();
    enum { COUNT = UNDER_SANITIZER ? 200 : 600 };
    char *folder = new_folder();
    imgdl_cache *cache = open_cache(folder, MEGABYTE, 0);
    struct watch watch;
    begin_watch(&watch, folder);
    fill(cache, "/pictures/tiny.png?headers=60&empty=1&" FRESH, COUNT);
    check_books(cache, COUNT);
    close_within_a_second(cache);
    end_watch(&watch);
    printf("    %.1f MB at most\n", (double)watch.most / MEGABYTE);
    CHECK(watch.most <= promised(MEGABYTE, 1, 0));
    free(folder);
}

/* So many processes fill the folder at the same time, and each then closes and ends. */
static void fill_by_processes(unsigned writers, const char *folder, uint64_t limit, const char *form, unsigned count)
{
    pid_t children[16];
    REQUIRE(writers <= sizeof children / sizeof *children);
    fflush(NULL);
    for (unsigned i = 0; i < writers; i++) {
        children[i] = fork();
        REQUIRE(children[i] >= 0);
        if (children[i] > 0)
            continue;
        imgdl_cache *cache = open_cache(folder, limit, 0);
        fill(cache, form, count);
        check_books(cache, count);
        /* None is starved by the others. */
        CHECK(statistics(cache).stored >= count / 20);
        imgdl_cache_release(cache);
        fflush(NULL);
        _exit(harness_failures() ? 1 : 0);
    }
    for (unsigned i = 0; i < writers; i++) {
        int status;
        REQUIRE(waitpid(children[i], &status, 0) == children[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

TEST_WITHIN(300, "what lies on the disk stays within max_bytes while four forked processes store at full speed, and each can flush")
{
    on_a_slow_disk();
    enum { BODY = 100 * 1000, LIMIT = 10 * MEGABYTE, WRITERS = 4 };
    static uint8_t body[BODY];
    memset(body, 'x', sizeof body);
    write_picture("filler.bin", body, sizeof body);
    char *folder = new_folder();
    struct watch watch;
    begin_watch(&watch, folder);
    unsigned count = (unsigned)strtoul(harness_argument("bodies", UNDER_SANITIZER ? "400" : "1600"), NULL, 10);
    fill_by_processes(WRITERS, folder, LIMIT, "/pictures/filler.bin?" FRESH, count / WRITERS);
    end_watch(&watch);
    printf("    %.1f MB at most, %u looks\n", (double)watch.most / MEGABYTE, watch.looks);
    CHECK(watch.most > LIMIT / 2);
    CHECK(watch.most <= promised(LIMIT, WRITERS, BODY));
    CHECK(bytes_on_disk(folder) <= promised(LIMIT, 0, 0));
    free(folder);
}

TEST_WITHIN(300, "six forked processes that store many headers at full speed are not in each other's way, and each can flush")
{
    on_a_slow_disk();
    enum { WRITERS = 6 };
    char *folder = new_folder();
    struct watch watch;
    begin_watch(&watch, folder);
    fill_by_processes(WRITERS, folder, MEGABYTE, "/pictures/tiny.png?headers=60&empty=1&" FRESH, UNDER_SANITIZER ? 100 : 400);
    end_watch(&watch);
    printf("    %.1f MB at most, %u looks\n", (double)watch.most / MEGABYTE, watch.looks);
    CHECK(watch.most <= promised(MEGABYTE, WRITERS, 0));
    free(folder);
}

/* Resident pages. */
static uint64_t bytes_in_memory(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    REQUIRE(file && fscanf(file, "%*u %lu", &pages) == 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

TEST_WITHIN(120, "headers of answers without a body count for max_memory_bytes")
{
    enum { COUNT = UNDER_SANITIZER ? 200 : 1200 };
    imgdl_cache *cache = open_cache(NULL, 0, MEGABYTE);
    fill(cache, "/pictures/tiny.png?headers=60&empty=1&" FRESH, 20);
    uint64_t before = bytes_in_memory();
    fill(cache, "/pictures/tiny.png?headers=60&empty=1&" FRESH "&n=b", COUNT);
    uint64_t after = bytes_in_memory();
    imgdl_cache_stats stats = statistics(cache);
    printf("    %llu entries, %.1f MB more\n", (unsigned long long)stats.memory_entries,
           ((double)after - (double)before) / MEGABYTE);
    CHECK(stats.memory_entries > 0);
    CHECK(stats.memory_bytes <= MEGABYTE);
    if (!UNDER_SANITIZER)
        CHECK(after < before + 20 * MEGABYTE);
    imgdl_cache_release(cache);
}

enum { LOCATION = 1800 };

/* The path of one to a picture, which is kept, with a Location of so many bytes. */
static void write_redirect(char target[LOCATION + 128])
{
    int length = snprintf(target, 128, "/redirect?code=301&to=/pictures/tiny.png%%23");
    memset(target + length, 'x', LOCATION);
    target[length + LOCATION] = 0;
}

TEST_WITHIN(120, "kept redirects with long Locations count for max_bytes")
{
    on_a_slow_disk();
    enum { COUNT = UNDER_SANITIZER ? 200 : 600 };
    char *folder = new_folder();
    char target[LOCATION + 128];
    write_redirect(target);
    imgdl_cache *cache = open_cache(folder, MEGABYTE, 0);
    struct watch watch;
    begin_watch(&watch, folder);
    fill(cache, target, COUNT);
    imgdl_cache_stats stats = statistics(cache);
    close_within_a_second(cache);
    end_watch(&watch);
    printf("    %llu stored, %.1f MB at most\n", (unsigned long long)stats.stored, (double)watch.most / MEGABYTE);
    CHECK(stats.bytes > MEGABYTE / 2);
    CHECK(stats.bytes <= MEGABYTE);
    CHECK(watch.most <= promised(MEGABYTE, 1, 0));
    free(folder);
}

TEST_WITHIN(120, "kept redirects with long Locations count for max_memory_bytes")
{
    enum { COUNT = UNDER_SANITIZER ? 200 : 1000 };
    char target[LOCATION + 128];
    write_redirect(target);
    imgdl_cache *cache = open_cache(NULL, 0, MEGABYTE);
    fill(cache, target, 20);
    imgdl_cache_stats few = statistics(cache);
    CHECK(few.memory_bytes > 20 * LOCATION);
    uint64_t before = bytes_in_memory();
    fill(cache, target, COUNT);
    uint64_t after = bytes_in_memory();
    imgdl_cache_stats stats = statistics(cache);
    printf("    %llu entries, %.1f MB more\n", (unsigned long long)stats.memory_entries,
           ((double)after - (double)before) / MEGABYTE);
    CHECK(stats.memory_entries > 0);
    CHECK(stats.memory_bytes <= MEGABYTE);
    CHECK(stats.memory_bytes > MEGABYTE / 2);
    if (!UNDER_SANITIZER)
        CHECK(after < before + 20 * MEGABYTE);
    imgdl_cache_release(cache);
}

TEST_WITHIN(120, "closing after many small bodies takes less than a second on a slow disk")
{
    on_a_slow_disk();
    unsigned count = (unsigned)strtoul(harness_argument("small", UNDER_SANITIZER ? "300" : "2000"), NULL, 10);
    uint8_t body[1000] = {1};
    write_picture("small.bin", body, sizeof body);
    char *folder = new_folder();
    imgdl_cache *cache = open_cache(folder, 256 * MEGABYTE, 0);
    fill(cache, "/pictures/small.bin?" FRESH, count);
    close_within_a_second(cache);
    cache = open_cache(folder, 256 * MEGABYTE, 0);
    imgdl_cache_stats stats = statistics(cache);
    printf("    %llu found again\n", (unsigned long long)stats.entries);
    CHECK_NUMBER(stats.entries + not_stored_told, count);
    imgdl_cache_release(cache);
    free(folder);
}

/* When a download had ended, and how many answers until then were said not to be stored. */
struct ending {
    double time;
    unsigned long not_stored;
};

/* A process that stores some hundred answers a second until it is killed, and tells when each had ended. */
static _Noreturn void store_until_killed(const char *folder, int told)
{
    imgdl_cache *cache = open_cache(folder, 256 * MEGABYTE, 0);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    for (unsigned i = 0;; i++) {
        struct reply reply = ask(downloader, at_origin("/pictures/small.bin?" FRESH "&n=k%u", i), 0, IMGDL_REQUEST_BODY);
        struct ending ending = {.time = seconds_now()};
        nanosleep(&(struct timespec){0, 3 * 1000 * 1000}, NULL);
        ending.not_stored = not_stored_told;
        if (reply.code != IMGDL_OK || write(told, &ending, sizeof ending) != sizeof ending)
            _exit(1);
    }
}

/* Such a process, and what it has told. */
struct storing {
    char *folder;
    pid_t process;
    int told;
    unsigned count;
    struct ending endings[1 << 16];
};

static void begin_storing(struct storing *storing)
{
    uint8_t body[1000] = {1};
    write_picture("small.bin", body, sizeof body);
    storing->folder = new_folder();
    storing->count = 0;
    int told[2];
    REQUIRE(pipe(told) == 0);
    storing->process = fork();
    if (storing->process == 0)
        store_until_killed(storing->folder, told[1]);
    close(told[1]);
    storing->told = told[0];
}

/* Takes what it tells, for so long from now on. */
static void listen_for(struct storing *storing, double seconds)
{
    double end = seconds_now() + seconds;
    while (storing->count < sizeof storing->endings / sizeof *storing->endings && seconds_now() < end) {
        struct ending *ending = &storing->endings[storing->count++];
        REQUIRE(read(storing->told, ending, sizeof *ending) == sizeof *ending);
    }
}

static void kill_storing(struct storing *storing)
{
    kill(storing->process, SIGKILL);
    waitpid(storing->process, NULL, 0);
    close(storing->told);
}

/* Of those that had ended before. */
static unsigned count_lost(struct storing *storing, double before)
{
    unsigned kept = 0, lost = 0;
    while (kept < storing->count && storing->endings[kept].time < before)
        kept++;
    REQUIRE(kept > 10);
    imgdl_cache *cache = open_cache(storing->folder, 256 * MEGABYTE, 0);
    for (unsigned i = 0; i < kept; i++) {
        imgdl_cache_entry entry;
        imgdl_cache_entry_init(&entry, sizeof entry);
        lost += imgdl_cache_query(cache, at_origin("/pictures/small.bin?" FRESH "&n=k%u", i), &entry) != IMGDL_OK;
    }
    printf("    %u stored, %u of them more than a second before, %u of these not found\n", storing->count, kept, lost);
    imgdl_cache_release(cache);
    free(storing->folder);
    return lost;
}

TEST_WITHIN(120, "a process that is killed loses the last second at most")
{
    on_a_slow_disk();
    static struct storing storing;
    begin_storing(&storing);
    listen_for(&storing, 2.5);
    kill_storing(&storing);
    CHECK_NUMBER(count_lost(&storing, seconds_now() - 1), 0);
}

TEST_WITHIN(120, "a process that is killed while another one writes loses what has come since that began, and a second, at most")
{
    static struct storing storing;
    begin_storing(&storing);
    listen_for(&storing, 1.5);
    struct writing other = open_index(storing.folder);
    /* What comes while the first one lasts is written when it ends; the second one lasts until the end. */
    start_writing(&other);
    listen_for(&storing, 2.5);
    stop_writing(&other);
    listen_for(&storing, 2);
    double begun = seconds_now();
    start_writing(&other);
    listen_for(&storing, 1.5);
    kill_storing(&storing);
    stop_writing(&other);
    close_index(&other);
    /* Those that nothing promises to keep: it was said of them before. */
    unsigned long told = 0;
    for (unsigned i = 0; i < storing.count && storing.endings[i].time < begun; i++)
        told = storing.endings[i].not_stored;
    printf("    %lu said not to be stored\n", told);
    CHECK(count_lost(&storing, begun - 1) <= told);
    CHECK(told < storing.count / 2);
}
