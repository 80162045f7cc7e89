/* The host's threads are the host's: they may be cancelled, and there may be no more of them. stacks.c has small ones. */
#define SUITE "threads"
#include "support.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>

/* ---- Cancelled threads */

struct waiter {
    imgdl_downloader *downloader;
    imgdl_executor *executor;
    imgdl_token *token;
    imgdl_status (*wait)(struct waiter *waiter);
    imgdl_status status;
    struct flag begun;
    int has_returned;
};

static imgdl_status wait_token(struct waiter *waiter) { return imgdl_token_wait(waiter->token, -1); }
static imgdl_status wait_idle(struct waiter *waiter) { return imgdl_downloader_wait_idle(waiter->downloader, -1); }
static imgdl_status wait_destroy(struct waiter *waiter)
{
    imgdl_downloader_retain(waiter->downloader);
    return imgdl_downloader_destroy(waiter->downloader);
}

static void *wait_in_thread(void *argument)
{
    struct waiter *waiter = argument;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    raise_flag(&waiter->begun);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    waiter->status = waiter->wait(waiter);
    waiter->has_returned = 1;
    /* The one place where it may be cancelled: not in a call that ThreadSanitizer takes part in, whose notes of the thread
     * would stay as they are there. */
    while (waiter->has_returned) {
        pthread_testcancel();
        sched_yield();
    }
    return NULL;
}

/* It is cancelled while it waits, or on its way there: it waits all the same, ends where it may, and all else goes on. */
static void check_cancelled_wait(struct waiter *waiter, imgdl_token *token)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, wait_in_thread, waiter) == 0);
    await_flag(&waiter->begun, 1);
    pthread_cancel(thread);
    CHECK_CODE(imgdl_downloader_wait_idle(waiter->downloader, 5), IMGDL_ERROR_WAIT_TIMEOUT);
    CHECK_CODE(imgdl_token_wait(token, 5), IMGDL_ERROR_WAIT_TIMEOUT);
    CHECK_CODE(imgdl_token_cancel(token), IMGDL_OK);
    void *ended = NULL;
    REQUIRE(pthread_join(thread, &ended) == 0);
    CHECK(ended == PTHREAD_CANCELED);
    CHECK(waiter->has_returned);
    CHECK_CODE(waiter->status, IMGDL_OK);
}

static struct waiter waiter_for(imgdl_downloader *downloader, imgdl_token **token, imgdl_status (*wait)(struct waiter *))
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png?hold_head=1&gate=never&_=%p", (void *)(uintptr_t)wait);
    REQUIRE_OK(imgdl_download(downloader, &request, token));
    return (struct waiter){.downloader = downloader, .token = *token, .wait = wait, .begun = FLAG_INIT};
}

TEST("pthread_cancel of a thread that waits leaves nothing locked: it waits to the end, and ends then")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_status (*const waits[])(struct waiter *) = {wait_token, wait_idle, wait_destroy};
    for (int i = 0; i < 3; i++) {
        imgdl_token *token = NULL;
        struct waiter waiter = waiter_for(downloader, &token, waits[i]);
        if (waits[i] == wait_destroy) { /* which ends the download by itself */
            pthread_t thread;
            void *ended = NULL;
            REQUIRE(pthread_create(&thread, NULL, wait_in_thread, &waiter) == 0);
            await_flag(&waiter.begun, 1);
            pthread_cancel(thread);
            CHECK_CODE(imgdl_token_wait(token, PATIENCE_MS), IMGDL_OK);
            REQUIRE(pthread_join(thread, &ended) == 0);
            CHECK(ended == PTHREAD_CANCELED && waiter.has_returned);
        } else {
            check_cancelled_wait(&waiter, token);
        }
        imgdl_token_release(token);
    }
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK); /* the first one had its own reference */
}

/* What the calls below are made on. */
static struct {
    imgdl_downloader *downloader;
    imgdl_token *token;
    imgdl_executor *executor;
    imgdl_cache *cache;
    imgdl_request request;
    uint8_t *picture;
    size_t picture_size;
} things;

static void make_request(void)
{
    imgdl_token *token = NULL;
    ignore_status(imgdl_download(things.downloader, &things.request, &token));
    ignore_status(imgdl_token_set_priority(token, IMGDL_PRIORITY_HIGH));
    ignore_status(imgdl_token_cancel(token));
    imgdl_token_release(token);
}
static void make_batch(void)
{
    imgdl_batch *batch = NULL;
    ignore_status(imgdl_downloader_prefetch(things.downloader, &things.request, 1, NULL, &batch));
    ignore_status(imgdl_batch_set_paused(batch, 1));
    ignore_status(imgdl_batch_cancel(batch));
    imgdl_batch_release(batch);
}
static void make_downloader(void)
{
    imgdl_downloader *downloader = NULL;
    ignore_status(imgdl_downloader_create(NULL, &downloader));
    ignore_status(imgdl_downloader_destroy(downloader));
}
static void release_downloader(void)
{
    imgdl_downloader *downloader = NULL;
    ignore_status(imgdl_downloader_create(NULL, &downloader));
    imgdl_downloader_release(downloader);
}
static void make_executor(void)
{
    imgdl_executor *executor = NULL;
    ignore_status(imgdl_executor_create_pumped(&executor));
    imgdl_executor_release(executor);
}
static void make_cache(void)
{
    imgdl_cache_config config;
    imgdl_cache *cache = NULL;
    imgdl_cache_config_init(&config, sizeof config);
    ignore_status(imgdl_cache_open(&config, &cache));
    imgdl_cache_release(cache);
}
static void decode_it(void)
{
    imgdl_image *image = NULL;
    ignore_status(imgdl_decode(things.picture, things.picture_size, NULL, &image));
    imgdl_image_release(image);
}
static void wait_for_it(void) { ignore_status(imgdl_token_wait(things.token, PATIENCE_MS)); }
static void wait_for_all(void) { ignore_status(imgdl_downloader_wait_idle(things.downloader, PATIENCE_MS)); }
static void dispatch(void) { ignore_status(imgdl_executor_dispatch(things.executor, 0, NULL)); }
static void get_numbers(void)
{
    (void)imgdl_downloader_current_count(things.downloader);
    (void)imgdl_downloader_max_concurrent(things.downloader);
    (void)imgdl_downloader_is_suspended(things.downloader);
    (void)imgdl_executor_fd(things.executor);
    (void)imgdl_token_id(things.token);
}
static void trim_unused(void) { (void)imgdl_trim(IMGDL_TRIM_UNUSED); }
static void trim_connections(void) { (void)imgdl_trim(IMGDL_TRIM_CONNECTIONS); }
static void trim_caches(void) { (void)imgdl_trim(IMGDL_TRIM_CACHES); }
static void set_header(void) { ignore_status(imgdl_downloader_set_header(things.downloader, "X-A", "b")); }
static void set_width(void) { ignore_status(imgdl_downloader_set_max_concurrent(things.downloader, 7)); }
static void change_network(void) { ignore_status(imgdl_downloader_network_changed(things.downloader)); }
static void go_back(void) { ignore_status(imgdl_downloader_enter_background(things.downloader, 1000)); }
static void come_back(void) { ignore_status(imgdl_downloader_enter_foreground(things.downloader)); }
static void cancel_all(void) { ignore_status(imgdl_downloader_cancel_all(things.downloader)); }
static void flush_cache(void) { ignore_status(imgdl_cache_flush(things.cache)); }
static void query_cache(void)
{
    imgdl_cache_entry entry;
    imgdl_cache_entry_init(&entry, sizeof entry);
    ignore_status(imgdl_cache_query(things.cache, things.request.url, &entry));
}
static void clear_cache(void) { ignore_status(imgdl_cache_clear(things.cache)); }

#define CALL(function) {#function, function}
static const struct call {
    const char *name;
    void (*make)(void);
} calls[] = {
    CALL(trim_unused), CALL(trim_connections), CALL(trim_caches), CALL(make_request), CALL(make_batch),
    CALL(make_downloader), CALL(release_downloader), CALL(make_executor), CALL(make_cache), CALL(decode_it),
    CALL(wait_for_it), CALL(wait_for_all), CALL(dispatch), CALL(get_numbers), CALL(set_header), CALL(set_width),
    CALL(change_network), CALL(go_back), CALL(come_back), CALL(cancel_all), CALL(flush_cache), CALL(query_cache),
    CALL(clear_cache),
};

struct cancelled_call {
    const struct call *call;
    int has_returned;
};

/* It is cancelled already when it calls: the first cancellation point ends it. */
static void *call_while_cancelled(void *argument)
{
    struct cancelled_call *made = argument;
    pthread_cancel(pthread_self());
    made->call->make();
    made->has_returned = 1;
    while (made->has_returned) {
        pthread_testcancel();
        sched_yield();
    }
    return NULL;
}

/* A call is repeated: whether one has to wake the library's thread depends on what that does at the moment. */
TEST("pthread_cancel is seen by no call, neither by one that waits, wakes a thread, gives memory back nor lets go of something")
{
    imgdl_token *token = NULL;
    things.cache = new_cache(NULL);
    things.downloader = new_caching_downloader(things.cache);
    things.picture = read_picture("tiny.png", &things.picture_size);
    REQUIRE_OK(imgdl_executor_create_pumped(&things.executor));
    imgdl_request_init(&things.request, sizeof things.request);
    things.request.url = at_origin("/pictures/tiny.png?header=Cache-Control:max-age=600&_=cancelled");
    REQUIRE_OK(imgdl_download(things.downloader, &things.request, &token));
    REQUIRE_OK(imgdl_token_wait(token, PATIENCE_MS));
    things.token = token;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int k = 0; k < 10; k++) {
            struct cancelled_call made = {.call = &calls[i]};
            pthread_t thread;
            void *ended = NULL;
            REQUIRE(pthread_create(&thread, NULL, call_while_cancelled, &made) == 0);
            REQUIRE(pthread_join(thread, &ended) == 0);
            CHECK(ended == PTHREAD_CANCELED);
            if (!made.has_returned) { /* locks are taken for ever */
                FAIL("%s ended its thread in the library", made.call->name);
                harness_abandon();
            }
        }
    struct reply reply = ask(things.downloader, things.request.url, IMGDL_CACHE_OFF, 0);
    CHECK_CODE(reply.code, IMGDL_OK);
    imgdl_token_release(token);
    imgdl_executor_release(things.executor);
    CHECK_CODE(imgdl_downloader_destroy(things.downloader), IMGDL_OK);
    imgdl_cache_release(things.cache);
    free(things.picture);
}

static void cancel_own_thread(struct recorder *recorder, const imgdl_event *event)
{
    (void)recorder;
    (void)event;
    pthread_cancel(pthread_self());
    pthread_testcancel(); /* nor is this a place to end */
}

static void *dispatch_in_thread(void *argument)
{
    struct waiter *waiter = argument;
    struct recorder recorder;
    recorder_init(&recorder);
    recorder.hook = cancel_own_thread;
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=own-dispatch"), &recorder);
    request.executor = waiter->executor;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    CHECK_CODE(imgdl_download(waiter->downloader, &request, NULL), IMGDL_OK);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    while (recorder.destroyed == 0) /* no cancellation point stands here but in the calls */
        if (imgdl_executor_dispatch(waiter->executor, 0, NULL) != IMGDL_OK)
            return NULL;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    check_ending(&recorder);
    waiter->has_returned = 1;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    return NULL;
}

TEST("a callback that cancels its own thread: one of the library's goes on, the host's ends after the call")
{
    imgdl_executor *pumped = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&pumped));
    imgdl_downloader *downloader = new_downloader();
    imgdl_executor *const executors[] = {NULL, IMGDL_EXECUTOR_INLINE};
    for (int i = 0; i < 4; i++) {
        struct recorder recorder;
        recorder_init(&recorder);
        recorder.hook = cancel_own_thread;
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=own%d", i), &recorder);
        request.executor = executors[i % 2];
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
        if (!await_end(&recorder, NULL))
            harness_abandon();
        check_ending(&recorder);
        if (recorder.code != IMGDL_OK)
            FAIL("%s", recorder.message);
        recorder_clear(&recorder);
    }
    struct waiter waiter = {.downloader = downloader, .executor = pumped};
    pthread_t thread;
    void *ended = NULL;
    REQUIRE(pthread_create(&thread, NULL, dispatch_in_thread, &waiter) == 0);
    REQUIRE(pthread_join(thread, &ended) == 0);
    CHECK(ended == PTHREAD_CANCELED && waiter.has_returned);
    imgdl_executor_release(pumped);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
}

#if !UNDER_SANITIZER

/* ---- No more threads */

/* How many the system gives from now on; negative: as many as are asked for. In this program's place of libc's own. */
static int threads_left = -1;
static int threads_asked;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    static int (*make)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!make)
        *(void **)&make = dlsym(RTLD_NEXT, "pthread_create");
    __atomic_add_fetch(&threads_asked, 1, __ATOMIC_SEQ_CST);
    int left = __atomic_load_n(&threads_left, __ATOMIC_SEQ_CST);
    while (left > 0 && !__atomic_compare_exchange_n(&threads_left, &left, left - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    return left == 0 ? EAGAIN : make(thread, attributes, body, argument);
}

static void give_threads(int count) { __atomic_store_n(&threads_left, count, __ATOMIC_SEQ_CST); }

static void check_gone(unsigned descriptors)
{
    CHECK_NUMBER(settle_in_proc("task", 1), 1);
    CHECK_NUMBER(settle_in_proc("fd", descriptors), descriptors);
}

static imgdl_status create_with(imgdl_executor *executor, imgdl_downloader **downloader)
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.executor = executor;
    config.flags = IMGDL_CONFIG_ALLOW_FILE_URLS;
    config.decode_threads = 3;
    return imgdl_downloader_create(&config, downloader);
}

/* Pictures, a body that nobody decodes, and a file: each has its one end, whatever threads there are. */
static unsigned download_some(imgdl_downloader *downloader, imgdl_executor *pumped, int count)
{
    unsigned whole = 0;
    struct recorder recorders[5];
    static char file[512];
    snprintf(file, sizeof file, "file://%s", tls_ca_file);
    for (int i = 0; i < 5; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(
            i == 4 ? file : at_origin("/pictures/tiny.png?_=refused%d-%d", count, i), &recorders[i]);
        request.flags = i >= 3 ? IMGDL_REQUEST_BODY : 0;
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
    for (int i = 0; i < 5; i++) {
        if (!await_end(&recorders[i], pumped))
            harness_abandon();
        check_ending(&recorders[i]);
        if (recorders[i].code == IMGDL_OK)
            whole++;
        else
            CHECK_CODE(recorders[i].code, IMGDL_ERROR_OUT_OF_MEMORY);
        if (i == 3)
            CHECK_CODE(recorders[i].code, IMGDL_OK); /* needs no thread of its own */
        recorder_clear(&recorders[i]);
    }
    return whole;
}

TEST("out of threads: a downloader is refused, or downloads with those it has, and ends")
{
    REQUIRE_OK(imgdl_downloader_destroy(new_downloader()));
    unsigned descriptors = count_in_proc("fd");
    imgdl_executor *pumped = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&pumped));
    descriptors++;
    imgdl_executor *const executors[] = {NULL, IMGDL_EXECUTOR_INLINE, pumped};
    for (int kind = 0; kind < 3; kind++) {
        unsigned needed = kind == 0 ? 2 : 1, whole = 0; /* the engine, and who delivers */
        for (int count = 0; count < 9; count++) {
            give_threads(count);
            imgdl_downloader *downloader = NULL;
            imgdl_status status = create_with(executors[kind], &downloader);
            if ((unsigned)count < needed) {
                CHECK_CODE(status, IMGDL_ERROR_OUT_OF_MEMORY);
                CHECK(downloader == NULL);
                check_gone(descriptors);
                continue;
            }
            REQUIRE_OK(status);
            whole = download_some(downloader, kind == 2 ? pumped : NULL, kind * 100 + count);
            give_threads(0);
            struct flag done = FLAG_INIT;
            switch (count % 3) {
            case 0: CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK); break;
            case 1: imgdl_downloader_release(downloader); break;
            case 2:
                CHECK_CODE(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_FINISH, on_end_raise, &done), IMGDL_OK);
                await_flag(&done, 1);
                /* It has ended: whoever asks then is told all the same. */
                CHECK_CODE(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_CANCEL, on_end_raise, &done), IMGDL_OK);
                await_flag(&done, 2);
                CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
            }
            check_gone(descriptors);
        }
        CHECK_NUMBER(whole, 5);
    }
    give_threads(-1);
    imgdl_executor_release(pumped);
}

static void destroy_in_callback(struct recorder *recorder, const imgdl_event *event)
{
    if (event->kind != IMGDL_EVENT_STARTED)
        return;
    give_threads(0);
    CHECK_CODE(imgdl_downloader_destroy(recorder->context), IMGDL_OK);
}

TEST("out of threads: what runs is cancelled and its end is told, also when destroy is called in a callback")
{
    REQUIRE_OK(imgdl_downloader_destroy(new_downloader()));
    unsigned descriptors = count_in_proc("fd");
    for (int round = 0; round < 6; round++) {
        imgdl_downloader *downloader = NULL;
        REQUIRE_OK(create_with(round % 2 ? IMGDL_EXECUTOR_INLINE : NULL, &downloader));
        struct recorder recorder;
        recorder_init(&recorder);
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?hold_head=1&gate=none%d", round), &recorder);
        if (round >= 4)
            recorder.hook = destroy_in_callback;
        recorder.context = downloader;
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
        if (round < 4)
            give_threads(0);
        struct flag done = FLAG_INIT;
        if (round < 2) {
            CHECK_CODE(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_CANCEL, on_end_raise, &done), IMGDL_OK);
            await_flag(&done, 1);
        }
        if (round < 4)
            CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
        else
            await_end(&recorder, NULL);
        check_ending(&recorder);
        CHECK_CODE(recorder.code, IMGDL_ERROR_CANCELLED);
        recorder_clear(&recorder);
        check_gone(descriptors);
        give_threads(-1);
    }
}

TEST("the last release of a downloader starts no thread, nor does its end")
{
    imgdl_executor *const executors[] = {NULL, IMGDL_EXECUTOR_INLINE};
    for (int i = 0; i < 4; i++) {
        imgdl_downloader *downloader = new_downloader_with(4, executors[i % 2]);
        struct recorder recorder;
        recorder_init(&recorder);
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=last%d", i), &recorder);
        CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
        int asked = __atomic_load_n(&threads_asked, __ATOMIC_SEQ_CST);
        if (i < 2) {
            imgdl_downloader_release(downloader);
        } else {
            struct flag done = FLAG_INIT;
            CHECK_CODE(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_FINISH, on_end_raise, &done), IMGDL_OK);
            await_flag(&done, 1);
            imgdl_downloader_release(downloader);
        }
        CHECK_NUMBER(settle_in_proc("task", 1), 1);
        CHECK_NUMBER(__atomic_load_n(&threads_asked, __ATOMIC_SEQ_CST), asked);
        recorder_clear(&recorder);
    }
}

TEST("out of threads: a cache is refused, and its destructor runs once; one that has its two works")
{
    unsigned descriptors = count_in_proc("fd");
    for (int count = 0; count < 4; count++) {
        struct flag destroyed = FLAG_INIT;
        char *folder = new_folder();
        imgdl_cache_config config;
        imgdl_cache_config_init(&config, sizeof config);
        config.directory = folder;
        config.destructor = on_end_raise;
        config.user_data = &destroyed;
        imgdl_cache *cache = NULL;
        give_threads(count);
        imgdl_status status = imgdl_cache_open(&config, &cache);
        if (count < 2) {
            CHECK_CODE(status, IMGDL_ERROR_OUT_OF_MEMORY);
            CHECK(cache == NULL);
        } else {
            REQUIRE_OK(status);
            CHECK_CODE(imgdl_cache_flush(cache), IMGDL_OK);
            CHECK_NUMBER(destroyed.value, 0);
            imgdl_cache_release(cache);
        }
        give_threads(-1);
        CHECK_NUMBER(destroyed.value, 1);
        check_gone(descriptors);
        free(folder);
    }
}

#endif
