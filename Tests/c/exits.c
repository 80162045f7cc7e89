/* exit(): at any time, from anywhere, and in time. */
#define SUITE "exits"
#include "children.h"
#include "no-coder.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>

TEST("exit() of a forked process with transfers running ends it with its own status, at once")
{
    static const char *const paths[] = {
        "/pictures/baseline.jpg?hold_head=1&gate=never&n=%u",      /* waiting for an answer */
        "/pictures/baseline.jpg?rate=2000&chunk=100&n=%u",         /* bytes and partial images all the time */
        "/pictures/progressive.jpg?n=%u",                          /* decoding */
    };
    for (int round = 0; round < 9; round++) {
        double start = seconds_now();
        pid_t child = fork_quietly();
        if (child == 0) {
            static struct recorder recorders[8];
            imgdl_downloader *downloader = round % 2 ? new_downloader_with(8, IMGDL_EXECUTOR_INLINE) : new_downloader_with(8, NULL);
            start_transfers(downloader, recorders, 8, paths[round % 3]);
            if (round >= 3)
                await_event(&recorders[0], IMGDL_EVENT_STARTED, NULL);
            exit(40 + round);
        }
        expect_exit(child, 40 + round);
        double took = seconds_now() - start;
        /* What an orderly end would wait for takes longer, or for ever. */
        if (took > 15)
            FAIL("exit took %.1f s", took);
    }
}

TEST("exit() of a forked process with TLS transfers and look-ups running")
{
    pid_t child = fork_quietly();
    if (child == 0) {
        imgdl_config config;
        imgdl_config_init(&config, sizeof config);
        config.ca_file = tls_ca_file;
        imgdl_downloader *downloader = NULL;
        REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        for (int i = 0; i < 4; i++) {
            request.url = i % 2 ? at_tls_origin("/text") : "http://nosuch.invalid/";
            REQUIRE_OK(imgdl_download(downloader, &request, NULL));
        }
        exit(33);
    }
    expect_exit(child, 33);
}

/* A handler of the host's that was registered before the library's own runs after it: exit() has begun in the library. */

static struct {
    imgdl_downloader *downloader, *kept, *shared;
    imgdl_executor *executor;
    imgdl_token *token;
    imgdl_image *image;
    pthread_t thread;
    struct flag entered, leaves;
    atomic_int begun, is_over, late;
} leaving = {.entered = FLAG_INIT, .leaves = FLAG_INIT};

static void note_call(void)
{
    leaving.begun++;
    if (leaving.is_over)
        leaving.late++;
}

static void on_leaving_event(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    note_call();
}

static void on_leaving_destroyed(void *user_data)
{
    (void)user_data;
    note_call();
}

static void *allocate_leaving(uint32_t width, uint32_t height, uint32_t bytes_per_pixel, size_t *stride, void *user_data)
{
    (void)width, (void)bytes_per_pixel, (void)user_data;
    return malloc(*stride * height);
}

static void deallocate_leaving(void *pixels, void *user_data)
{
    (void)user_data;
    free(pixels);
    note_call();
}

static imgdl_request leaving_request(const char *url)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.callback = on_leaving_event;
    request.destructor = on_leaving_destroyed;
    return request;
}

/* As the handler of a host does that uses OpenSSL, too, and began it before the library did. */
static int takes_openssl_down;

static void ask_with_certificates(void)
{
    if (takes_openssl_down) {
        void *found = dlsym(RTLD_DEFAULT, "OPENSSL_cleanup");
        void (*clean_up)(void);
        REQUIRE(found);
        memcpy(&clean_up, &found, sizeof clean_up);
        clean_up();
    }
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    imgdl_downloader *downloader = NULL;
    CHECK_CODE(imgdl_downloader_create(&config, &downloader), IMGDL_ERROR_SHUT_DOWN);
    config.crl_file = tls_ca_file;
    CHECK_CODE(imgdl_downloader_create(&config, &downloader), IMGDL_ERROR_SHUT_DOWN);
    config.ca_file = tls_ca_file;
    config.crl_file = NULL;
    CHECK_CODE(imgdl_downloader_create(&config, &downloader), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_downloader_reconfigure(leaving.kept, &config), IMGDL_ERROR_SHUT_DOWN);
    config.ca_file = NULL;
    config.cookie_file = "/nonexistent/cookies";
    CHECK_CODE(imgdl_downloader_create(&config, &downloader), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_downloader_reconfigure(leaving.kept, &config), IMGDL_ERROR_SHUT_DOWN);
    imgdl_request request = leaving_request(at_tls_origin("/text"));
    request.callback = NULL;
    request.destructor = NULL;
    CHECK_CODE(imgdl_download(leaving.kept, &request, NULL), IMGDL_ERROR_SHUT_DOWN);
    request.ca_file = tls_ca_file;
    CHECK_CODE(imgdl_download(leaving.kept, &request, NULL), IMGDL_ERROR_SHUT_DOWN);
    request.ca_file = NULL;
    request.client_certificate = tls_ca_file;
    CHECK_CODE(imgdl_download(leaving.kept, &request, NULL), IMGDL_ERROR_SHUT_DOWN);
    if (harness_failures())
        _exit(1);
}

TEST("calls that name certificates, after exit() of a forked process has begun in the library, are SHUT_DOWN, and do not crash")
{
    for (takes_openssl_down = 0; takes_openssl_down <= 1; takes_openssl_down++) {
        pid_t child = fork_quietly();
        if (child == 0) {
            atexit(ask_with_certificates);
            imgdl_config config;
            imgdl_config_init(&config, sizeof config);
            config.ca_file = tls_ca_file;
            REQUIRE_OK(imgdl_downloader_create(&config, &leaving.kept));
            exit(34);
        }
        expect_exit(child, 34);
    }
}

static void *wait_while_exiting(void *argument)
{
    (void)argument;
    raise_flag(&leaving.entered);
    CHECK_CODE(imgdl_token_wait(leaving.token, -1), IMGDL_ERROR_SHUT_DOWN);
    return NULL;
}

/* The last column of the table in docs/threads.md: the same on every thread, and wherever exit() was called. */
static void check_after_exit_began(void)
{
    imgdl_downloader *none = NULL;
    imgdl_cache *no_cache = NULL;
    imgdl_batch *batch = NULL;
    uint32_t dispatched = 7;
    int before = leaving.begun;
    CHECK_CODE(imgdl_downloader_create(NULL, &none), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_downloader_shared(&none), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_cache_open(NULL, &no_cache), IMGDL_ERROR_SHUT_DOWN);
    imgdl_request request = leaving_request(at_origin("/pictures/tiny.png?_=leaving"));
    imgdl_downloader *const both[] = {leaving.downloader, leaving.shared};
    for (int i = 0; i < 2; i++) {
        CHECK_CODE(imgdl_download(both[i], &request, NULL), IMGDL_ERROR_SHUT_DOWN);
        CHECK_CODE(imgdl_downloader_prefetch(both[i], &request, 1, NULL, &batch), IMGDL_ERROR_SHUT_DOWN);
        CHECK(batch == NULL);
    }
    CHECK_CODE(imgdl_downloader_reconfigure(leaving.downloader, NULL), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_token_wait(leaving.token, -1), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_downloader_wait_idle(leaving.downloader, -1), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_executor_dispatch(leaving.executor, 0, &dispatched), IMGDL_OK);
    CHECK_NUMBER(dispatched, 0);
    imgdl_executor_release(leaving.executor);
    CHECK_CODE(imgdl_token_wait(leaving.token, -1), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_downloader_wait_idle(leaving.downloader, -1), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_token_cancel(leaving.token), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_destroy(leaving.downloader), IMGDL_OK);
    CHECK_NUMBER(leaving.begun, before);
    CHECK_NUMBER(leaving.late, 0);
}

static void after_exit_began(void)
{
    leaving.is_over = 1;
    pthread_join(leaving.thread, NULL);
    int before = leaving.begun;
    imgdl_image_release(leaving.image);
    imgdl_downloader_release(leaving.kept);
    CHECK_NUMBER(leaving.begun, before);
    check_after_exit_began();
    if (harness_failures())
        _exit(1);
}

TEST("once exit() has begun in the library none of the host's functions is begun, waits end, and nothing new is made")
{
    pid_t child = fork_quietly();
    if (child == 0) {
        atexit(after_exit_began);
        leaving.downloader = new_downloader();
        leaving.kept = new_downloader();
        REQUIRE_OK(imgdl_downloader_shared(&leaving.shared));
        REQUIRE_OK(imgdl_executor_create_pumped(&leaving.executor));
        /* One that waits for its host to take it, … */
        imgdl_request request = leaving_request(at_origin("/pictures/tiny.png?_=waits"));
        request.executor = leaving.executor;
        REQUIRE_OK(imgdl_download(leaving.downloader, &request, NULL));
        struct pollfd descriptor = {.fd = imgdl_executor_fd(leaving.executor), .events = POLLIN};
        REQUIRE(poll(&descriptor, 1, PATIENCE_MS) == 1);
        /* … one that runs, that another thread waits for, … */
        request = leaving_request(at_origin("/pictures/tiny.png?hold_head=1&gate=never"));
        REQUIRE_OK(imgdl_download(leaving.downloader, &request, &leaving.token));
        REQUIRE(pthread_create(&leaving.thread, NULL, wait_while_exiting, NULL) == 0);
        REQUIRE(await_flag(&leaving.entered, 1));
        /* … and a picture in memory of the host's. */
        imgdl_decode_options options;
        imgdl_decode_options_init(&options, sizeof options);
        options.allocate = allocate_leaving;
        options.deallocate = deallocate_leaving;
        size_t size;
        uint8_t *bytes = read_picture("tiny.png", &size);
        REQUIRE_OK(imgdl_decode(bytes, size, &options, &leaving.image));
        exit(51);
    }
    expect_exit(child, 51);
}

/* ---- How long it takes, whatever runs */

enum { STAY_INLINE = 1, STAY_DELIVERY = 2, STAY_CODEC = 4, STAY_CACHE = 8, STAY_EVERYWHERE = 15 };
static double exit_began;

static void stay(void)
{
    note_call();
    raise_flag(&leaving.entered);
    await_flag(&leaving.leaves, 1);
}

static void stay_in_callback(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    stay();
}

static int32_t stay_in_codec(const void *prefix, size_t length, void *user_data)
{
    (void)prefix, (void)length, (void)user_data;
    stay();
    return 0;
}

static void stay_in_cache_event(const imgdl_cache_event *event, void *user_data)
{
    (void)event, (void)user_data;
    stay();
}

static void register_codec(int32_t (*can_decode)(const void *, size_t, void *))
{
    imgdl_coder_table table = {.struct_size = sizeof table, .can_decode = can_decode, .create = create_no_decoder,
                               .feed = feed_no_decoder, .info = tell_no_info, .finish = finish_no_decoder,
                               .destroy = destroy_no_decoder};
    imgdl_coder *coder = NULL;
    REQUIRE_OK(imgdl_coder_register(&table, &coder));
}

/* Its disk cannot be used, of which it tells. */
static imgdl_cache *cache_with_event(void (*callback)(const imgdl_cache_event *, void *))
{
    imgdl_cache_config config;
    imgdl_cache_config_init(&config, sizeof config);
    config.directory = "/proc/nowhere";
    config.callback = callback;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(imgdl_cache_open(&config, &cache));
    return cache;
}

/* One that has been given a cookie, which is in the file when the process has ended. */
static imgdl_downloader *downloader_with_cookie(const char *path, imgdl_executor *executor)
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.cookie_file = path;
    config.executor = executor;
    config.decode_threads = 1;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/cookies/set?a=b&max_age=1000");
    request.flags = IMGDL_REQUEST_COOKIES | IMGDL_REQUEST_BODY;
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(downloader, &request, &token));
    REQUIRE_OK(imgdl_token_wait(token, PATIENCE_MS));
    imgdl_token_release(token);
    return downloader;
}

static char *new_cookie_path(void)
{
    char *folder = new_folder(), *path = NULL;
    REQUIRE(asprintf(&path, "%s/cookies", folder) > 0);
    free(folder);
    return path;
}

/* Frees the path. */
static void check_cookie_kept(char *path, const char *by, int place)
{
    char kept[4096] = "";
    FILE *file = fopen(path, "r");
    if (file) {
        kept[fread(kept, 1, sizeof kept - 1, file)] = '\0';
        fclose(file);
    }
    if (!strstr(kept, "\ta\tb\n"))
        FAIL("exit() in place %d: the cookie of %s is not kept: %s", place, by, file ? kept : "no file");
    free(path);
}

static imgdl_downloader *stay_in(
    imgdl_executor *executor, const char *cookie_path, imgdl_event_callback callback, imgdl_request_flags flags)
{
    imgdl_downloader *downloader = downloader_with_cookie(cookie_path, executor);
    for (int i = 0; i < 4; i++) {
        imgdl_request request = leaving_request(at_origin("/pictures/tiny.png?_=patience-%d", i));
        request.callback = callback;
        request.destructor = NULL;
        request.flags = flags;
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
    return downloader;
}

static void after_the_patience(void)
{
    leaving.is_over = 1;
    double took = seconds_now() - exit_began;
    /* What runs was waited for, and no longer than is said: a second, and what a busy machine takes. */
    if (took < 0.8 || took > 1.9)
        FAIL("exit() waited %.2f s for what does not return", took);
    int before = leaving.begun;
    raise_flag(&leaving.leaves);
    CHECK_CODE(imgdl_downloader_destroy(leaving.downloader), IMGDL_OK);
    CHECK_NUMBER(leaving.begun, before);
    CHECK_NUMBER(leaving.late, 0);
    if (harness_failures())
        _exit(1);
}

TEST_WITHIN(120, "exit() takes a second at most whatever runs, on whatever threads, and begins nothing that comes behind it")
{
    static const int stays[] = {STAY_INLINE, STAY_DELIVERY, STAY_CODEC, STAY_CACHE, STAY_EVERYWHERE};
    for (unsigned i = 0; i < sizeof stays / sizeof *stays; i++) {
        char *paths[] = {new_cookie_path(), new_cookie_path(), new_cookie_path(), new_cookie_path()};
        pid_t child = fork_quietly();
        if (child == 0) {
            int count = 0;
            atexit(after_the_patience);
            leaving.downloader = downloader_with_cookie(paths[3], NULL);
            if (stays[i] & STAY_INLINE && ++count)
                stay_in(IMGDL_EXECUTOR_INLINE, paths[0], stay_in_callback, IMGDL_REQUEST_BODY);
            if (stays[i] & STAY_DELIVERY && ++count)
                stay_in(NULL, paths[1], stay_in_callback, IMGDL_REQUEST_BODY);
            if (stays[i] & STAY_CODEC && ++count) {
                register_codec(stay_in_codec);
                stay_in(NULL, paths[2], on_leaving_event, 0);
            }
            if (stays[i] & STAY_CACHE && ++count)
                cache_with_event(stay_in_cache_event);
            REQUIRE(await_flag(&leaving.entered, count));
            exit_began = seconds_now();
            exit(52);
        }
        expect_exit(child, 52);
        static const int holders[] = {STAY_INLINE, STAY_DELIVERY, STAY_CODEC};
        for (int holder = 0; holder < 3; holder++)
            if (stays[i] & holders[holder])
                check_cookie_kept(paths[holder], "a downloader whose callback stays", stays[i]);
            else
                free(paths[holder]);
        check_cookie_kept(paths[3], "another downloader", stays[i]);
    }
}

/* ---- What comes back in time */

static void return_in_a_moment(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    raise_flag(&leaving.entered);
    usleep(20000);
}

static void after_what_came_back(void)
{
    double took = seconds_now() - exit_began;
    if (took > 0.6)
        FAIL("exit() took %.2f s, though all came back in time", took);
    if (harness_failures())
        _exit(1);
}

/* A thread that comes back from a callback while exit() waits for it goes on, and with it what is left to be written. */
TEST_WITHIN(120, "exit() that waits for a callback keeps the cookies, when that has returned")
{
    for (unsigned i = 0; i < 40; i++) {
        char *path = new_cookie_path();
        pid_t child = fork_quietly();
        if (child == 0) {
            atexit(after_what_came_back);
            leaving.downloader = downloader_with_cookie(path, NULL);
            imgdl_request request = leaving_request(at_origin("/pictures/tiny.png?_=moment"));
            request.callback = return_in_a_moment;
            request.destructor = NULL;
            request.executor = IMGDL_EXECUTOR_INLINE;
            REQUIRE_OK(imgdl_download(leaving.downloader, &request, NULL));
            REQUIRE(await_flag(&leaving.entered, 1));
            exit_began = seconds_now();
            exit(54);
        }
        expect_exit(child, 54);
        check_cookie_kept(path, "the downloader", 0);
    }
}

/* ---- Inside each of the host's functions */

enum place {
    IN_INLINE, IN_DELIVERY, IN_DISPATCH, IN_DESTRUCTOR, IN_HOOK, IN_LOADER, IN_CANCEL, IN_CODEC, IN_OBSERVER, IN_CACHE_EVENT,
    IN_DONE, ON_MAIN_THREAD, PLACES
};
static enum place leaves_in;

/* The first of those that come here. */
static void leave_in(enum place place)
{
    static atomic_flag is_leaving = ATOMIC_FLAG_INIT;
    note_call();
    if (place == leaves_in && !atomic_flag_test_and_set(&is_leaving))
        exit(53);
}

static void leave_in_inline(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    leave_in(IN_INLINE);
}
static void leave_in_delivery(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    leave_in(IN_DELIVERY);
}
static void leave_in_dispatch(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    leave_in(IN_DISPATCH);
}
static void leave_in_destructor(void *user_data)
{
    (void)user_data;
    leave_in(IN_DESTRUCTOR);
}
static void leave_in_hook(const imgdl_outgoing *request, imgdl_continuation *next, void *user_data)
{
    (void)request, (void)user_data;
    leave_in(IN_HOOK);
    ignore_status(imgdl_continue_unchanged(next));
}
static void *leave_in_loader(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request, (void)user_data;
    leave_in(IN_LOADER);
    raise_flag(&leaving.entered);
    return transfer;
}
static void leave_in_cancel(void *started, void *user_data)
{
    (void)user_data;
    leave_in(IN_CANCEL);
    imgdl_transfer_release(started);
}
static int32_t leave_in_codec(const void *prefix, size_t length, void *user_data)
{
    (void)prefix, (void)length, (void)user_data;
    leave_in(IN_CODEC);
    return 0;
}
static void leave_in_observer(const imgdl_observation *observation, void *user_data)
{
    (void)observation, (void)user_data;
    leave_in(IN_OBSERVER);
}
static void leave_in_cache_event(const imgdl_cache_event *event, void *user_data)
{
    (void)event, (void)user_data;
    await_flag(&leaving.entered, 1);
    leave_in(IN_CACHE_EVENT);
}
static void leave_in_done(void *user_data)
{
    (void)user_data;
    leave_in(IN_DONE);
}

static imgdl_cache *leaving_cache;

static void after_leaving_inside(void)
{
    leaving.is_over = 1;
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    CHECK_CODE(imgdl_cache_statistics(leaving_cache, &stats), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_cache_flush(leaving_cache), IMGDL_ERROR_SHUT_DOWN);
    imgdl_cache_release(leaving_cache);
    check_after_exit_began();
    if (harness_failures()) {
        FAIL("exit() was called in place %d", leaves_in);
        _exit(1);
    }
}

/* Never comes back. */
static void leave_inside(const char *cookie_path, const char *other_cookie_path)
{
    atexit(after_leaving_inside);
    imgdl_hooks_table hooks_table = {.struct_size = sizeof hooks_table, .modify_request = leave_in_hook};
    imgdl_hooks *hooks = NULL;
    REQUIRE_OK(imgdl_hooks_create(&hooks_table, &hooks));
    leaving.downloader = downloader_with_cookie(cookie_path, NULL);
    downloader_with_cookie(other_cookie_path, NULL);
    if (leaves_in == IN_CODEC)
        register_codec(leave_in_codec);
    leaving_cache = new_cache(NULL);
    REQUIRE_OK(imgdl_downloader_shared(&leaving.shared));
    REQUIRE_OK(imgdl_executor_create_pumped(&leaving.executor));
    imgdl_transport_table loader = {.struct_size = sizeof loader, .start = leave_in_loader, .cancel = leave_in_cancel};
    REQUIRE_OK(imgdl_transport_register(leaving.downloader, "app", &loader));
    /* What is waited for, and never comes, on the executor of this thread. */
    imgdl_request request = leaving_request(at_origin("/pictures/tiny.png?hold_head=1&gate=never"));
    request.idle_timeout_ms = 3600 * 1000;
    request.executor = leaving.executor;
    REQUIRE_OK(imgdl_download(leaving.downloader, &request, &leaving.token));
    request = leaving_request(at_origin("/pictures/tiny.png?_=inside"));
    request.callback = leaves_in == IN_INLINE ? leave_in_inline : leaves_in == IN_DISPATCH ? leave_in_dispatch : leave_in_delivery;
    request.executor = leaves_in == IN_INLINE ? IMGDL_EXECUTOR_INLINE : leaves_in == IN_DISPATCH ? leaving.executor : NULL;
    request.destructor = leave_in_destructor;
    request.hooks = leaves_in == IN_HOOK ? hooks : NULL;
    REQUIRE_OK(imgdl_download(leaving.downloader, &request, NULL));
    if (leaves_in == IN_LOADER || leaves_in == IN_CANCEL) {
        imgdl_token *token = NULL;
        request = leaving_request("app://one");
        REQUIRE_OK(imgdl_download(leaving.downloader, &request, &token));
        REQUIRE(await_flag(&leaving.entered, 1));
        CHECK_CODE(imgdl_token_cancel(token), IMGDL_OK);
    }
    if (leaves_in == IN_OBSERVER) {
        REQUIRE_OK(imgdl_downloader_set_observer(leaving.downloader, leave_in_observer, NULL, NULL));
        request = leaving_request(at_origin("/pictures/tiny.png?_=observed"));
        REQUIRE_OK(imgdl_download(leaving.downloader, &request, NULL));
    }
    if (leaves_in == IN_DONE)
        CHECK_CODE(imgdl_downloader_shutdown(new_downloader(), IMGDL_SHUTDOWN_FINISH, leave_in_done, NULL), IMGDL_OK);
    if (leaves_in == IN_CACHE_EVENT) {
        cache_with_event(leave_in_cache_event);
        raise_flag(&leaving.entered);
    }
    if (leaves_in == ON_MAIN_THREAD)
        exit(53);
    struct pollfd descriptor = {.fd = leaves_in == IN_DISPATCH ? imgdl_executor_fd(leaving.executor) : -1, .events = POLLIN};
    poll(&descriptor, 1, PATIENCE_MS);
    ignore_status(imgdl_executor_dispatch(leaving.executor, 0, NULL));
    _exit(2);
}

TEST_WITHIN(120, "exit() inside each of the host's functions: cookies are kept, and then each call answers as the table says")
{
    for (int place = 0; place < PLACES; place++) {
        char *path = new_cookie_path(), *other_path = new_cookie_path();
        pid_t child = fork_quietly();
        if (child == 0) {
            leaves_in = (enum place)place;
            leave_inside(path, other_path);
        }
        expect_exit(child, 53);
        check_cookie_kept(path, "the downloader", place);
        check_cookie_kept(other_path, "another downloader", place);
    }
}

/* ---- Who waits for a function that does not return any more */

static imgdl_cache *awaited_cache;
static imgdl_transfer *awaited_transfer;
static struct flag is_told = FLAG_INIT, waits = FLAG_INIT;
enum { WAITERS = 3 };
static pthread_t waiters[WAITERS];

static void leave_with_waiters(const imgdl_cache_event *event, void *user_data)
{
    (void)event, (void)user_data;
    raise_flag(&is_told);
    await_flag(&waits, WAITERS);
    exit(56);
}

static void *start_awaited(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request, (void)user_data;
    awaited_transfer = transfer;
    raise_flag(&leaving.entered);
    return NULL;
}

/* Until exit() has waited for it, and some more. */
static void cancel_for_long(void *started, void *user_data)
{
    (void)started, (void)user_data;
    raise_flag(&is_told);
    await_flag(&leaving.leaves, 1);
}

static void *flush_awaited(void *argument)
{
    (void)argument;
    raise_flag(&waits);
    CHECK_CODE(imgdl_cache_flush(awaited_cache), IMGDL_ERROR_SHUT_DOWN);
    return NULL;
}

/* The last reference: the cache's threads end before it returns. */
static void *release_awaited(void *argument)
{
    raise_flag(&waits);
    imgdl_cache_release(argument);
    return NULL;
}

static void *end_awaited(void *argument)
{
    (void)argument;
    raise_flag(&waits);
    CHECK_CODE(imgdl_transfer_end(awaited_transfer, IMGDL_ERROR_CONNECTION_LOST, NULL), IMGDL_OK);
    return NULL;
}

static void after_the_waiters(void)
{
    for (int i = 0; i < WAITERS; i++)
        pthread_join(waiters[i], NULL);
    raise_flag(&leaving.leaves);
    if (harness_failures())
        _exit(1);
}

TEST("exit() ends all waits for functions of the host's that do not return: on the disk's thread, in a loader's cancel")
{
    pid_t child = fork_quietly();
    if (child == 0) {
        atexit(after_the_waiters);
        imgdl_transport_table loader = {.struct_size = sizeof loader, .start = start_awaited, .cancel = cancel_for_long};
        imgdl_token *token = NULL;
        leaving.downloader = new_downloader();
        REQUIRE_OK(imgdl_transport_register(leaving.downloader, "app", &loader));
        imgdl_request request = leaving_request("app://one");
        REQUIRE_OK(imgdl_download(leaving.downloader, &request, &token));
        REQUIRE(await_flag(&leaving.entered, 1));
        CHECK_CODE(imgdl_token_cancel(token), IMGDL_OK);
        REQUIRE(await_flag(&is_told, 1));
        awaited_cache = cache_with_event(leave_with_waiters);
        REQUIRE(await_flag(&is_told, 2));
        imgdl_cache *other = cache_with_event(stay_in_cache_event);
        REQUIRE(await_flag(&leaving.entered, 2));
        REQUIRE(pthread_create(&waiters[0], NULL, flush_awaited, NULL) == 0);
        REQUIRE(pthread_create(&waiters[1], NULL, release_awaited, other) == 0);
        REQUIRE(pthread_create(&waiters[2], NULL, end_awaited, NULL) == 0);
        pause();
    }
    expect_exit(child, 56);
}

/* Threads that go on with it until they are refused. */
enum { MAKERS = 4 };

static void *make_downloaders(void *argument)
{
    (void)argument;
    for (;;) {
        imgdl_downloader *downloader = NULL;
        imgdl_request request = leaving_request(at_origin("/pictures/tiny.png?_=making"));
        imgdl_status status = imgdl_downloader_create(NULL, &downloader);
        if (status != IMGDL_OK) {
            CHECK_CODE(status, IMGDL_ERROR_SHUT_DOWN);
            raise_flag(&leaving.leaves);
            return NULL;
        }
        raise_flag(&leaving.entered);
        ignore_status(imgdl_download(downloader, &request, NULL));
        CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    }
}

static void after_the_makers(void)
{
    /* Each of them is refused, instead of going on with a library that has been taken down. */
    if (!await_flag(&leaving.leaves, MAKERS) || harness_failures())
        _exit(1);
}

static void start_makers(void)
{
    pthread_t thread;
    for (int i = 0; i < MAKERS; i++)
        REQUIRE(pthread_create(&thread, NULL, make_downloaders, NULL) == 0);
}

TEST("exit() while other threads make downloaders: each is refused from then on")
{
    for (int round = 1; round <= 15; round++) {
        pid_t child = fork_quietly();
        if (child == 0) {
            atexit(after_the_makers);
            start_makers();
            REQUIRE(await_flag(&leaving.entered, round));
            exit(54);
        }
        expect_exit(child, 54);
    }
}

TEST("exit() while other threads make the first downloader: nothing is taken down under them")
{
    for (int round = 0; round < 80; round++) {
        pid_t child = fork_quietly();
        if (child == 0) {
            start_makers();
            /* At moments that are spread over all that is set up once. */
            for (double end = seconds_now() + round * 20e-6; seconds_now() < end;) {}
            exit(55);
        }
        expect_exit(child, 55);
    }
}

/* ---- Children of a process that exits. Sanitizers take Swift's dynamic runtime, whose locks go by a thread number that fork()
 * makes wrong. */
#if !UNDER_SANITIZER

static struct flag forked = FLAG_INIT;
static pid_t forked_child;
static int is_child;

/* What refuses it is the library's handler, on another thread. */
static void await_exit_begun(void)
{
    imgdl_cache *cache = NULL;
    while (imgdl_cache_open(NULL, &cache) == IMGDL_OK)
        imgdl_cache_release(cache);
}

/* From glibc 2.41 on exit() has a lock, which the child finds taken. */
static int may_exit_in_child(void) { return strverscmp(gnu_get_libc_version(), "2.41") < 0; }

static _Noreturn void be_another_process(void)
{
    is_child = 1;
    alarm(PATIENCE_MS / 1000);
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_downloader *downloader = NULL, *shared = NULL;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(imgdl_cache_open(NULL, &cache));
    REQUIRE_OK(imgdl_downloader_create(NULL, &downloader));
    REQUIRE_OK(imgdl_downloader_shared(&shared));
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=another-process"), &recorder);
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    check_ending(&recorder);
    CHECK_CODE(recorder.code, IMGDL_OK);
    if (harness_failures())
        _exit(1);
    if (may_exit_in_child())
        exit(61); /* by `after_the_forks` */
    _exit(61);
}

static void fork_once_exit_began(void)
{
    raise_flag(&leaving.entered);
    await_exit_begun();
    pid_t child = fork();
    if (child == 0)
        be_another_process();
    forked_child = child;
    raise_flag(&forked);
}

static void fork_in_event(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    fork_once_exit_began();
}

static void *fork_on_thread(void *argument)
{
    (void)argument;
    fork_once_exit_began();
    return NULL;
}

/* After the library's handler, in the parent and in the child, which has one of its own. */
static void after_the_forks(void)
{
    imgdl_downloader *none = NULL;
    CHECK_CODE(imgdl_downloader_create(NULL, &none), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_downloader_shared(&none), IMGDL_ERROR_SHUT_DOWN);
    if (is_child)
        _exit(harness_failures() ? 1 : 61);
    if (await_flag(&forked, 1))
        expect_exit(forked_child, 61);
    /* This thread is in exit(), and so is what it forks. */
    pid_t child = fork_quietly();
    if (child == 0) {
        CHECK_CODE(imgdl_downloader_create(NULL, &none), IMGDL_ERROR_SHUT_DOWN);
        _exit(harness_failures() ? 1 : 62);
    }
    expect_exit(child, 62);
    if (harness_failures())
        _exit(1);
}

TEST("a child forked while another thread is in exit() is a process that does not exit; one forked by that thread does")
{
    static imgdl_executor *const executors[] = {NULL, IMGDL_EXECUTOR_INLINE};
    for (int i = 0; i < 3; i++) {
        pid_t child = fork_quietly();
        if (child == 0) {
            atexit(after_the_forks);
            imgdl_downloader *downloader = new_downloader();
            if (i < 2) {
                imgdl_request request = leaving_request(at_origin("/pictures/tiny.png?_=forks"));
                request.callback = fork_in_event;
                request.executor = executors[i];
                REQUIRE_OK(imgdl_download(downloader, &request, NULL));
            } else {
                pthread_t thread;
                REQUIRE(pthread_create(&thread, NULL, fork_on_thread, NULL) == 0);
            }
            REQUIRE(await_flag(&leaving.entered, 1));
            exit(60);
        }
        expect_exit(child, 60);
    }
}

#endif
