/* The cache's functions with every wrong argument, and its life: handles, callbacks, processes, what is found again. */
#define SUITE "cache life"
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FRESH "header=Cache-Control:max-age=600"
enum { BODY = IMGDL_REQUEST_BODY };

static const unsigned char some_bytes[64];

static void count_one(void *user_data)
{
    __atomic_add_fetch((int *)user_data, 1, __ATOMIC_SEQ_CST);
}

/* ---- Arguments */

static void check_every_function(imgdl_cache *cache, imgdl_status code, const char *name)
{
    imgdl_cache_entry entry;
    imgdl_cache_stats stats;
    imgdl_cache_entry_init(&entry, sizeof entry);
    imgdl_cache_stats_init(&stats, sizeof stats);
    const imgdl_status found[] = {
        imgdl_cache_query(cache, "http://127.0.0.1/", &entry), imgdl_cache_remove(cache, "http://127.0.0.1/"),
        imgdl_cache_remove_older(cache, 1), imgdl_cache_clear(cache), imgdl_cache_flush(cache),
        imgdl_cache_statistics(cache, &stats)};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (found[i] != code)
            FAIL("function %zu gives %s, not %s", i, imgdl_error_name(found[i]), name);
}

TEST("what is no cache is an error for every function")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_cache *released = new_cache(NULL);
    imgdl_cache_release(released);
    void *const wrong[] = {NULL, (void *)2, (void *)0x12345678, (void *)UINTPTR_MAX, (void *)(uintptr_t)some_bytes, downloader,
                           released};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_every_function(wrong[i], IMGDL_ERROR_INVALID_HANDLE, "IMGDL_ERROR_INVALID_HANDLE");
        CHECK(imgdl_cache_retain(wrong[i]) == NULL);
        if (wrong[i] != downloader)
            imgdl_cache_release(wrong[i]);
        if (!wrong[i])
            continue;
        imgdl_config config;
        imgdl_config_init(&config, sizeof config);
        config.cache = wrong[i];
        imgdl_downloader *none = NULL;
        CHECK_CODE(imgdl_downloader_create(&config, &none), IMGDL_ERROR_INVALID_HANDLE);
        CHECK_CODE(imgdl_downloader_reconfigure(downloader, &config), IMGDL_ERROR_INVALID_HANDLE);
        CHECK(none == NULL);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("a cache's config: sizes, ranges, and the destructor on every error")
{
    struct {
        imgdl_cache_config today;
        uint64_t tomorrow[2];
    } config;
    int destroyed = 0;
    imgdl_cache *untouched = (imgdl_cache *)(uintptr_t)some_bytes, *cache = untouched;
#define REFUSED(change, code)                                                                                          \
    do {                                                                                                               \
        memset(&config, 0xAA, sizeof config);                                                                          \
        imgdl_cache_config_init(&config.today, sizeof config);                                                         \
        CHECK_NUMBER(config.tomorrow[1], 0);                                                                           \
        config.today.destructor = count_one;                                                                           \
        config.today.user_data = &destroyed;                                                                           \
        change;                                                                                                        \
        int before = destroyed;                                                                                        \
        CHECK_CODE(imgdl_cache_open(&config.today, &cache), code);                                                     \
        CHECK(cache == untouched);                                                                                     \
        CHECK_NUMBER(destroyed - before, 1);                                                                           \
    } while (0)
    REFUSED(config.tomorrow[0] = 1, IMGDL_ERROR_UNSUPPORTED_OPTION);
    REFUSED(config.today.reserved = 1, IMGDL_ERROR_UNSUPPORTED_OPTION);
    REFUSED(config.today.directory = "", IMGDL_ERROR_INVALID_ARGUMENT);
    REFUSED(config.today.directory = "\xFF", IMGDL_ERROR_INVALID_ARGUMENT);
    REFUSED(config.today.max_bytes = 1ull << 63, IMGDL_ERROR_INVALID_ARGUMENT);
    REFUSED(config.today.max_memory_bytes = UINT64_MAX, IMGDL_ERROR_INVALID_ARGUMENT);
    REFUSED(config.today.max_image_bytes = UINT64_MAX, IMGDL_ERROR_INVALID_ARGUMENT);
    REFUSED(config.today.max_partial_bytes = UINT64_MAX, IMGDL_ERROR_INVALID_ARGUMENT);
    REFUSED(config.today.max_age_s = -1, IMGDL_ERROR_INVALID_ARGUMENT);
    imgdl_cache_config_init(&config.today, sizeof config);
    config.today.destructor = count_one;
    config.today.user_data = &destroyed;
    destroyed = 0;
    CHECK_CODE(imgdl_cache_open(&config.today, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_NUMBER(destroyed, 1);
    /* A destructor cannot be found in a struct whose size is wrong. */
    config.today.struct_size = 79;
    CHECK_CODE(imgdl_cache_open(&config.today, &cache), IMGDL_ERROR_UNSUPPORTED_OPTION);
    CHECK_NUMBER(destroyed, 1);
    imgdl_cache_config_init(&config.today, 79);
    CHECK_NUMBER(config.today.struct_size, 79); /* too small: nothing is done */
    imgdl_cache_config_init(NULL, sizeof config);
    imgdl_cache_entry_init(NULL, 48);
    imgdl_cache_stats_init(NULL, 168);

    imgdl_cache_config_init(&config.today, sizeof config.today);
    config.today.destructor = count_one;
    config.today.user_data = &destroyed;
    REQUIRE_OK(imgdl_cache_open(&config.today, &cache));
    CHECK_NUMBER(destroyed, 1);
    imgdl_cache_release(cache);
    CHECK_NUMBER(destroyed, 2);
    REQUIRE_OK(imgdl_cache_open(NULL, &cache));
    imgdl_cache_release(cache);
}

TEST("arguments of the cache's functions, of requests and of configs")
{
    char *directory = new_folder();
    imgdl_cache *caches[] = {new_cache(NULL), new_cache(directory)};
    for (int i = 0; i < 2; i++) {
        imgdl_cache *cache = caches[i];
        imgdl_cache_entry entry;
        imgdl_cache_entry_init(&entry, sizeof entry);
        CHECK_CODE(imgdl_cache_query(cache, "http://127.0.0.1/none", &entry), IMGDL_ERROR_NOT_CACHED);
        CHECK_CODE(imgdl_cache_query(cache, "http://127.0.0.1/none", NULL), IMGDL_ERROR_INVALID_ARGUMENT);
        CHECK_CODE(imgdl_cache_query(cache, NULL, &entry), IMGDL_ERROR_INVALID_URL);
        CHECK_CODE(imgdl_cache_query(cache, "not a url", &entry), IMGDL_ERROR_INVALID_URL);
        CHECK_CODE(imgdl_cache_query(cache, "http://host/\xFF", &entry), IMGDL_ERROR_INVALID_URL);
        CHECK_CODE(imgdl_cache_query(cache, "file:///etc/passwd", &entry), IMGDL_ERROR_UNSUPPORTED_SCHEME);
        CHECK_CODE(imgdl_cache_remove(cache, NULL), IMGDL_ERROR_INVALID_URL);
        CHECK_CODE(imgdl_cache_remove(cache, ""), IMGDL_ERROR_INVALID_URL);
        CHECK_CODE(imgdl_cache_remove(cache, "app://host/"), IMGDL_ERROR_UNSUPPORTED_SCHEME);
        CHECK_CODE(imgdl_cache_remove_older(cache, -1), IMGDL_ERROR_INVALID_ARGUMENT);
        CHECK_CODE(imgdl_cache_remove_older(cache, INT64_MAX), IMGDL_OK);
        CHECK_CODE(imgdl_cache_statistics(cache, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
        imgdl_cache_stats stats;
        imgdl_cache_stats_init(&stats, sizeof stats);
        stats.struct_size = 151;
        CHECK_CODE(imgdl_cache_statistics(cache, &stats), IMGDL_ERROR_UNSUPPORTED_OPTION);
        imgdl_cache_stats_init(&stats, sizeof stats);
        CHECK_CODE(imgdl_cache_statistics(cache, &stats), IMGDL_OK);
        CHECK_NUMBER(stats.is_writable, i);
        CHECK_NUMBER(stats.entries | stats.memory_entries | stats.hits | stats.misses, 0);
    }

    imgdl_config config;
    imgdl_downloader *downloader = NULL;
    imgdl_config_init(&config, sizeof config);
    config.cache_mode = 6;
    CHECK_CODE(imgdl_downloader_create(&config, &downloader), IMGDL_ERROR_INVALID_ARGUMENT);
    imgdl_config_init(&config, sizeof config);
    config.reserved2 = 1;
    CHECK_CODE(imgdl_downloader_create(&config, &downloader), IMGDL_ERROR_UNSUPPORTED_OPTION);
    imgdl_config_init(&config, sizeof config);
    config.flags = IMGDL_CONFIG_REQUIRE_TLS_1_3 << 1;
    CHECK_CODE(imgdl_downloader_create(&config, &downloader), IMGDL_ERROR_UNSUPPORTED_OPTION);
    downloader = new_caching_downloader(caches[1]);
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = "http://127.0.0.1:9/";
    request.cache_mode = 6;
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    request.cache_mode = UINT32_MAX;
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    request.cache_mode = 0;
    request.reserved2 = 1;
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_UNSUPPORTED_OPTION);
    request.reserved2 = 0;
    request.flags = IMGDL_REQUEST_BASIC_OVER_HTTP << 1;
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_UNSUPPORTED_OPTION);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(caches[0]);
    imgdl_cache_release(caches[1]);
    free(directory);
}

/* ---- Lifetime */

TEST("two downloaders share a cache, whose references go in any order")
{
    for (int order = 0; order < 6; order++) {
        char *directory = new_folder();
        imgdl_cache *cache = new_cache(directory);
        CHECK(imgdl_cache_retain(cache) == cache);
        imgdl_cache_release(cache);
        imgdl_downloader *first = new_caching_downloader(cache), *second = new_caching_downloader(cache);
        const char *url = at_origin("/pictures/tiny.png?" FRESH "&n=%d-%d", (int)getpid(), order);
        CHECK_NUMBER(ask(first, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_NETWORK);
        if (order < 2)
            imgdl_cache_release(cache);
        CHECK_NUMBER(ask(second, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_HIT);
        REQUIRE_OK(imgdl_downloader_destroy(order % 2 ? first : second));
        if (order == 2 || order == 3)
            imgdl_cache_release(cache);
        CHECK_NUMBER(ask(order % 2 ? second : first, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_HIT);
        REQUIRE_OK(imgdl_downloader_destroy(order % 2 ? second : first));
        if (order >= 4) {
            imgdl_cache_entry entry;
            imgdl_cache_entry_init(&entry, sizeof entry);
            CHECK_CODE(imgdl_cache_query(cache, url, &entry), IMGDL_OK);
            imgdl_cache_release(cache);
        }
        CHECK_CODE(imgdl_cache_flush(cache), IMGDL_ERROR_INVALID_HANDLE);
        free(directory);
    }
}

TEST("a cache leaves no thread and no descriptor, also when a token outlives its downloader")
{
    ignore_status(imgdl_downloader_destroy(new_downloader()));
    unsigned threads = UNDER_SANITIZER ? count_in_proc("task") : settle_in_proc("task", 1),
             descriptors = count_in_proc("fd");
    for (int i = 0; i < 5; i++) {
        char *directory = new_folder();
        int destroyed = 0;
        imgdl_cache_config options;
        imgdl_cache_config_init(&options, sizeof options);
        options.directory = directory;
        options.destructor = count_one;
        options.user_data = &destroyed;
        imgdl_cache *cache = NULL;
        REQUIRE_OK(imgdl_cache_open(&options, &cache));
        imgdl_downloader *downloader = new_caching_downloader(cache);
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        const char *url = at_origin("/pictures/tiny.png?" FRESH "&n=%d-%d", (int)getpid(), i);
        request.url = url;
        imgdl_token *token = NULL;
        REQUIRE_OK(imgdl_download(downloader, &request, &token));
        free((char *)url);
        REQUIRE_OK(imgdl_token_wait(token, PATIENCE_MS));
        imgdl_cache_release(cache);
        REQUIRE_OK(imgdl_downloader_destroy(downloader));
        CHECK_NUMBER(__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST), 1);
        CHECK_NUMBER(settle_in_proc("task", threads), threads);
        CHECK_NUMBER(settle_in_proc("fd", descriptors), descriptors);
        imgdl_token_release(token);
        free(directory);
    }
    CHECK(!HAS_LEAKS());
}

struct last_references {
    imgdl_cache *cache;
    imgdl_downloader *downloader;
};

static void release_both(struct recorder *recorder, const imgdl_event *event)
{
    struct last_references *last = recorder->context;
    if (event->kind != IMGDL_EVENT_TERMINAL)
        return;
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    CHECK_CODE(imgdl_cache_statistics(last->cache, &stats), IMGDL_OK);
    CHECK_CODE(imgdl_cache_flush(last->cache), IMGDL_OK);
    imgdl_cache_release(last->cache);
    imgdl_downloader_release(last->downloader);
}

TEST("the cache's functions, and the release of everything, inside a download's callback")
{
    for (int i = 0; i < 4; i++) {
        char *directory = new_folder();
        struct last_references last;
        last.cache = new_cache(i % 2 ? directory : NULL);
        last.downloader = new_caching_downloader(last.cache);
        struct recorder recorder;
        recorder_init(&recorder);
        recorder.hook = release_both;
        recorder.context = &last;
        imgdl_request request =
            recorded_request(at_origin("/pictures/tiny.png?" FRESH "&n=%d-%d", (int)getpid(), i), &recorder);
        request.executor = i < 2 ? IMGDL_EXECUTOR_INLINE : NULL;
        REQUIRE_OK(imgdl_download(last.downloader, &request, NULL));
        REQUIRE(await_end(&recorder, NULL));
        check_ending(&recorder);
        CHECK_CODE(recorder.code, IMGDL_OK);
        CHECK_CODE(imgdl_cache_flush(last.cache), IMGDL_ERROR_INVALID_HANDLE);
        recorder_clear(&recorder);
        free(directory);
    }
}

/* ---- What is found again */

TEST("what was stored is found by a cache that is opened later, and by another one at the same time")
{
    char *directory = new_folder();
    const char *url = at_origin("/pictures/baseline.jpg?" FRESH "&n=%d", (int)getpid());
    imgdl_cache *caches[2] = {new_cache(directory), new_cache(directory)};
    imgdl_downloader *downloaders[2] = {new_caching_downloader(caches[0]), new_caching_downloader(caches[1])};
    struct reply first = ask(downloaders[0], url, 0, BODY);
    CHECK_NUMBER(first.outcome, IMGDL_CACHE_OUTCOME_NETWORK);
    REQUIRE_OK(imgdl_cache_flush(caches[0]));
    struct reply second = ask(downloaders[1], url, 0, BODY);
    CHECK_NUMBER(second.outcome, IMGDL_CACHE_OUTCOME_HIT);
    CHECK(second.sum == first.sum && second.length == first.length);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(imgdl_downloader_destroy(downloaders[i]));
        imgdl_cache_release(caches[i]);
    }
    caches[0] = new_cache(directory);
    downloaders[0] = new_caching_downloader(caches[0]);
    struct reply third = ask(downloaders[0], url, IMGDL_CACHE_ONLY, BODY);
    CHECK_NUMBER(third.outcome, IMGDL_CACHE_OUTCOME_HIT);
    CHECK(third.sum == first.sum && third.length == first.length);
    CHECK_NUMBER(times_served(url), 1);
    REQUIRE_OK(imgdl_downloader_destroy(downloaders[0]));
    imgdl_cache_release(caches[0]);
    free(directory);
}

static void expect_success(pid_t child)
{
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST("two processes on one directory: what one stores the other finds, while both have it open")
{
    char *directory = new_folder();
    const char *url = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid());
    int done[2], go[2];
    REQUIRE(pipe(done) == 0 && pipe(go) == 0);
    pid_t child = fork(); /* before the library is used */
    if (child == 0) {
        imgdl_cache *cache = new_cache(directory);
        imgdl_downloader *downloader = new_caching_downloader(cache);
        CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_NETWORK);
        REQUIRE_OK(imgdl_cache_flush(cache));
        char byte = 1;
        REQUIRE(write(done[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1);
        /* The other has removed it. */
        CHECK_CODE(ask(downloader, url, IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED);
        _exit(harness_failures() ? 1 : 0);
    }
    char byte;
    imgdl_cache *cache = new_cache(directory);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    REQUIRE(read(done[0], &byte, 1) == 1);
    CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_HIT);
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_cache_statistics(cache, &stats));
    CHECK_NUMBER(stats.entries, 1);
    REQUIRE_OK(imgdl_cache_remove(cache, url));
    REQUIRE_OK(imgdl_cache_flush(cache));
    REQUIRE(write(go[1], &byte, 1) == 1);
    expect_success(child);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    free(directory);
}

TEST("exit() writes what is stored, whichever was made first, cache or downloader")
{
    for (int i = 0; i < 2; i++) {
        char *directory = new_folder();
        const char *url = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d-%d", (int)getpid(), i);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            if (i == 0)
                new_downloader();
            imgdl_downloader *downloader = new_caching_downloader(new_cache(directory));
            exit(ask(downloader, url, 0, BODY).code == IMGDL_OK ? 0 : 1);
        }
        expect_success(child);
        free(directory);
    }
    /* Only now: a process that has used the library is not what it was. */
}

TEST("fork() with a cache open: the child's handle is FORKED, and new caches work, but not in the same directory")
{
    char *directory = new_folder();
    imgdl_cache *cache = new_cache(directory);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    const char *url = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid());
    CHECK_CODE(ask(downloader, url, 0, BODY).code, IMGDL_OK);
    REQUIRE_OK(imgdl_cache_flush(cache));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        check_every_function(cache, IMGDL_ERROR_FORKED, "IMGDL_ERROR_FORKED");
        imgdl_config config;
        imgdl_config_init(&config, sizeof config);
        config.cache = cache;
        imgdl_downloader *none = NULL;
        CHECK_CODE(imgdl_downloader_create(&config, &none), IMGDL_ERROR_FORKED);
        imgdl_cache_release(cache);
        imgdl_downloader_release(downloader);
        char *const directories[] = {NULL, new_folder(), directory};
        for (int i = 0; i < 3; i++) {
            imgdl_cache *own = new_cache(directories[i]);
            imgdl_downloader *new = new_caching_downloader(own);
            imgdl_cache_outcome again = i < 2 ? IMGDL_CACHE_OUTCOME_HIT : IMGDL_CACHE_OUTCOME_NETWORK;
            CHECK_NUMBER(ask(new, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_NETWORK);
            CHECK_NUMBER(ask(new, url, 0, BODY).outcome, again);
            REQUIRE_OK(imgdl_downloader_destroy(new));
            imgdl_cache_release(own);
        }
        exit(harness_failures() ? 1 : 0);
    }
    expect_success(child);
    CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_HIT);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    free(directory);
}

/* The path of an index that nobody has open. Free it. */
static char *make_index(const char *directory)
{
    char *path = NULL;
    REQUIRE(asprintf(&path, "%s/index-1.sqlite", directory) > 0);
    imgdl_cache *cache = new_cache(directory);
    REQUIRE_OK(imgdl_cache_flush(cache));
    imgdl_cache_release(cache);
    return path;
}

/* Another program that has an index to itself, by the bytes that SQLite locks. */
static pid_t lock_index(const char *path)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t other = fork();
    if (other == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512};
        int file = open(path, O_RDWR);
        char done = file >= 0 && fcntl(file, F_SETLK, &lock) == 0;
        if (write(ends[1], &done, 1) == 1)
            pause();
        _exit(1);
    }
    char done = 0;
    REQUIRE(other > 0 && read(ends[0], &done, 1) == 1 && done);
    close(ends[0]);
    close(ends[1]);
    return other;
}

static int has_open(const char *path)
{
    char name[64], target[4096];
    for (int file = 0; file < 1024; file++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
        ssize_t length = readlink(name, target, sizeof target - 1);
        if (length > 0 && (size_t)length == strlen(path) && !memcmp(target, path, (size_t)length))
            return 1;
    }
    return 0;
}

static void await_open(const char *path)
{
    for (double end = seconds_now() + PATIENCE_MS / 1e3; !has_open(path); usleep(1000))
        REQUIRE(seconds_now() < end);
}

/* A child that lives on, forked while this process waits with the file open. */
static pid_t fork_holding(const char *path)
{
    await_open(path);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    REQUIRE(child > 0);
    return child;
}

TEST("fork() while a cache is being opened: the child does not use the index that its parent waits at")
{
    char *directory = new_folder(), *path = make_index(directory);
    const char *url = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid());
    fflush(NULL);
    pid_t other = lock_index(path);
    imgdl_cache *cache = new_cache(directory);
    await_open(path);
    pid_t child = fork();
    if (child == 0) {
        /* Else its parent has had it in a moment, and this shows nothing. */
        CHECK(kill(other, SIGKILL) == 0);
        imgdl_cache *own = new_cache(directory);
        imgdl_downloader *downloader = new_caching_downloader(own);
        for (int i = 0; i < 2; i++)
            CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_NETWORK);
        REQUIRE_OK(imgdl_downloader_destroy(downloader));
        imgdl_cache_release(own);
        exit(harness_failures() ? 1 : 0);
    }
    int status = 0;
    REQUIRE(waitpid(other, &status, 0) == other);
    expect_success(child);
    imgdl_cache_release(cache);
    free(path);
    free(directory);
}

/* ---- Events */

struct told {
    imgdl_cache *cache; /* with `checks`, from `opened` on */
    int checks;
    struct flag opened, moved, unwritable, destroyed;
    char message[1024];
};

static void on_cache_event(const imgdl_cache_event *event, void *user_data)
{
    struct told *told = user_data;
    CHECK_NUMBER(event->struct_size, sizeof *event);
    snprintf(told->message, sizeof told->message, "%s", event->message);
    if (told->checks && await_flag(&told->opened, 1)) {
        check_every_function(told->cache, IMGDL_ERROR_WOULD_DEADLOCK, "IMGDL_ERROR_WOULD_DEADLOCK");
        CHECK(imgdl_cache_retain(told->cache) == told->cache);
        imgdl_cache_release(told->cache);
        imgdl_cache_release(told->cache);
        check_every_function(told->cache, IMGDL_ERROR_INVALID_HANDLE, "IMGDL_ERROR_INVALID_HANDLE");
    }
    if (event->kind == IMGDL_CACHE_MOVED_ASIDE)
        raise_flag(&told->moved);
    if (event->kind == IMGDL_CACHE_UNWRITABLE)
        raise_flag(&told->unwritable);
}

static void on_told_destroyed(void *user_data)
{
    raise_flag(&((struct told *)user_data)->destroyed);
}

static imgdl_cache *new_told_cache(const char *directory, struct told *told, int checks)
{
    *told = (struct told){
        .checks = checks, .opened = FLAG_INIT, .moved = FLAG_INIT, .unwritable = FLAG_INIT, .destroyed = FLAG_INIT};
    imgdl_cache_config config;
    imgdl_cache_config_init(&config, sizeof config);
    config.directory = directory;
    config.callback = on_cache_event;
    config.destructor = on_told_destroyed;
    config.user_data = told;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(imgdl_cache_open(&config, &cache));
    return cache;
}

/* A path that no directory can have. Free it. */
static char *new_file(void)
{
    char *folder = new_folder(), *path = NULL;
    REQUIRE(asprintf(&path, "%s/file", folder) > 0);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL && fclose(file) == 0);
    free(folder);
    return path;
}

TEST("a directory that cannot be used is an event, and downloads succeed")
{
    char *path = new_file();
    struct told told;
    imgdl_cache *cache = new_told_cache(path, &told, 0);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    const char *url = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid());
    CHECK_CODE(ask(downloader, url, 0, BODY).code, IMGDL_OK);
    CHECK_CODE(ask(downloader, url, 0, BODY).code, IMGDL_OK);
    REQUIRE(await_flag(&told.unwritable, 1));
    CHECK(strstr(told.message, path) != NULL);
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_cache_statistics(cache, &stats));
    CHECK_NUMBER(stats.is_writable, 0);
    CHECK_CODE(imgdl_cache_clear(cache), IMGDL_ERROR_DISK_FAILED);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    REQUIRE(await_flag(&told.destroyed, 1));
    free(path);
}

static int spoil(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)place;
    if (kind != FTW_F)
        return 0;
    FILE *file = fopen(path, "r+");
    if (file) {
        for (int i = 0; i < 4096; i++)
            fputc('x', file);
        fclose(file);
    }
    return 0;
}

TEST("an index that is none is moved aside with an event, and begun anew")
{
    char *directory = new_folder();
    const char *url = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid());
    imgdl_cache *cache = new_cache(directory);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    CHECK_CODE(ask(downloader, url, 0, BODY).code, IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    nftw(directory, spoil, 16, FTW_PHYS);
    struct told told;
    cache = new_told_cache(directory, &told, 0);
    downloader = new_caching_downloader(cache);
    CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_NETWORK);
    CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_HIT);
    REQUIRE(await_flag(&told.moved, 1));
    CHECK(strstr(told.message, directory) != NULL);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    REQUIRE(await_flag(&told.destroyed, 1));
    free(directory);
}

TEST("fork() while a cache is being opened: a child that lives on keeps no lock of its parent's")
{
    char *directory = new_folder(), *path = make_index(directory);
    const char *url = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid());
    pid_t other = lock_index(path);
    imgdl_cache *cache = new_cache(directory);
    pid_t child = fork_holding(path);
    REQUIRE(kill(other, SIGKILL) == 0);
    REQUIRE(waitpid(other, NULL, 0) == other);
    imgdl_cache_release(cache);
    /* Nobody moves it aside while it is being opened. */
    nftw(directory, spoil, 16, FTW_PHYS);
    struct told told;
    cache = new_told_cache(directory, &told, 0);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_NETWORK);
    CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_HIT);
    REQUIRE(await_flag(&told.moved, 1));
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    REQUIRE(kill(child, SIGKILL) == 0);
    REQUIRE(waitpid(child, NULL, 0) == child);
    free(path);
    free(directory);
}

TEST("inside the cache's own callback its functions would deadlock, and the last reference may go")
{
    char *path = new_file();
    struct told told;
    imgdl_cache *cache = new_told_cache(path, &told, 1);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    told.cache = cache;
    raise_flag(&told.opened);
    REQUIRE(await_flag(&told.unwritable, 1));
    CHECK_CODE(ask(downloader, at_origin("/pictures/tiny.jpg?n=%d", (int)getpid()), 0, BODY).code, IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    REQUIRE(await_flag(&told.destroyed, 1));
    /* Without a downloader it is the last one altogether. */
    cache = new_told_cache(path, &told, 1);
    told.cache = cache;
    raise_flag(&told.opened);
    REQUIRE(await_flag(&told.destroyed, 1));
    free(path);
}
