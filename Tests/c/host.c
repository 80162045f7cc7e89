/* The host's process is not ours: exit, fork, signals. */
#define SUITE "host"
#include "support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

/* Its status once it has ended, or -1 when it does not within the deadline (and is killed). */
static int await_child(pid_t child)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    struct timespec patience = {PATIENCE_MS / 1000, 0};
    int status;
    for (;;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            return status;
        if (sigtimedwait(&signals, NULL, &patience) < 0 && errno == EAGAIN) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return -1;
        }
    }
}

static pid_t fork_quietly(void)
{
    /* So that await_child can wait for the signal; the library's threads block all signals anyway. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    fflush(NULL);
    return fork();
}

static void expect_exit(pid_t child, int expected)
{
    int status = await_child(child);
    if (status == -1)
        FAIL("the process did not end");
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
        FAIL("the process ended with %s %d, not with %d", WIFEXITED(status) ? "status" : "signal",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), expected);
}

/* ---- exit */

static void start_transfers(imgdl_downloader *downloader, struct recorder *recorders, unsigned count, const char *path)
{
    for (unsigned i = 0; i < count; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(at_origin(path, i), &recorders[i]);
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
}

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
    imgdl_downloader *downloader, *kept;
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

static void *wait_while_exiting(void *argument)
{
    (void)argument;
    raise_flag(&leaving.entered);
    CHECK_CODE(imgdl_token_wait(leaving.token, -1), IMGDL_ERROR_SHUT_DOWN);
    return NULL;
}

static void after_exit_began(void)
{
    leaving.is_over = 1;
    pthread_join(leaving.thread, NULL);
    imgdl_downloader *none = NULL;
    imgdl_cache *no_cache = NULL;
    uint32_t dispatched = 7;
    int before = leaving.begun;
    CHECK_CODE(imgdl_downloader_create(NULL, &none), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_downloader_shared(&none), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_cache_open(NULL, &no_cache), IMGDL_ERROR_SHUT_DOWN);
    imgdl_request request = leaving_request(at_origin("/pictures/tiny.png?_=leaving"));
    CHECK_CODE(imgdl_download(leaving.downloader, &request, NULL), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_executor_dispatch(leaving.executor, 0, &dispatched), IMGDL_OK);
    CHECK_NUMBER(dispatched, 0);
    imgdl_image_release(leaving.image);
    CHECK_CODE(imgdl_token_wait(leaving.token, -1), IMGDL_ERROR_SHUT_DOWN);
    imgdl_executor_release(leaving.executor);
    CHECK_CODE(imgdl_downloader_wait_idle(leaving.downloader, -1), IMGDL_ERROR_SHUT_DOWN);
    CHECK_CODE(imgdl_downloader_destroy(leaving.downloader), IMGDL_OK);
    imgdl_downloader_release(leaving.kept);
    CHECK_NUMBER(leaving.begun, before);
    CHECK_NUMBER(leaving.late, 0);
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

static void stay_inside(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    note_call();
    raise_flag(&leaving.entered);
    await_flag(&leaving.leaves, 1);
}

static void after_the_patience(void)
{
    leaving.is_over = 1;
    double took = seconds_now() - *(double *)leaving.kept;
    /* The callback was waited for, and no longer than is said. */
    if (took < 0.9 || took > 10)
        FAIL("exit() waited %.2f s for a callback that does not return", took);
    raise_flag(&leaving.leaves);
    CHECK_CODE(imgdl_downloader_destroy(leaving.downloader), IMGDL_OK);
    CHECK_NUMBER(leaving.begun, 1);
    if (harness_failures())
        _exit(1);
}

TEST("exit() waits a second at most for a callback that runs, and begins none of those behind it")
{
    for (int is_inline = 0; is_inline < 2; is_inline++) {
        pid_t child = fork_quietly();
        if (child == 0) {
            static double start;
            atexit(after_the_patience);
            leaving.downloader = new_downloader_with(4, is_inline ? IMGDL_EXECUTOR_INLINE : NULL);
            leaving.kept = (imgdl_downloader *)(void *)&start;
            for (int i = 0; i < 4; i++) {
                imgdl_request request = leaving_request(at_origin("/pictures/tiny.png?_=patience-%d", i));
                request.callback = stay_inside;
                request.destructor = NULL;
                REQUIRE_OK(imgdl_download(leaving.downloader, &request, NULL));
            }
            REQUIRE(await_flag(&leaving.entered, 1));
            start = seconds_now();
            exit(52);
        }
        expect_exit(child, 52);
    }
}

static void leave_inside(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    exit(53);
}

TEST("exit() inside a callback, on every executor")
{
    for (int place = 0; place < 3; place++) {
        pid_t child = fork_quietly();
        if (child == 0) {
            imgdl_executor *executor = place == 1 ? IMGDL_EXECUTOR_INLINE : NULL;
            if (place == 2)
                REQUIRE_OK(imgdl_executor_create_pumped(&executor));
            imgdl_downloader *downloader = new_downloader();
            imgdl_request request = leaving_request(at_origin("/pictures/tiny.png?_=inside-%d", place));
            request.callback = leave_inside;
            request.executor = executor;
            REQUIRE_OK(imgdl_download(downloader, &request, NULL));
            struct pollfd descriptor = {.fd = place == 2 ? imgdl_executor_fd(executor) : -1, .events = POLLIN};
            poll(&descriptor, 1, PATIENCE_MS);
            ignore_status(imgdl_executor_dispatch(executor, 0, NULL));
            _exit(1);
        }
        expect_exit(child, 53);
    }
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

/* ---- fork */

static void in_child(imgdl_downloader *old_downloader, imgdl_token *old_token, imgdl_executor *old_executor,
                    imgdl_image *image, imgdl_downloader *old_shared)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png?_=child");
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    CHECK_CODE(imgdl_download(old_downloader, &request, NULL), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_downloader_cancel_all(old_downloader), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_downloader_wait_idle(old_downloader, -1), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_downloader_set_suspended(old_downloader, 1), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_downloader_set_header(old_downloader, "X", "y"), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_downloader_shutdown(old_downloader, IMGDL_SHUTDOWN_CANCEL, NULL, NULL), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_token_cancel(old_token), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_token_wait(old_token, -1), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_token_result(old_token, &result), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_executor_dispatch(old_executor, 0, NULL), IMGDL_ERROR_FORKED);
    CHECK_NUMBER(imgdl_executor_fd(old_executor), -1);
    CHECK_NUMBER(imgdl_image_width(image), 24);
    CHECK(imgdl_image_pixels(image) != NULL);

    imgdl_downloader *shared = NULL, *new = new_downloader();
    REQUIRE_OK(imgdl_downloader_shared(&shared));
    CHECK(shared != old_shared);
    CHECK_CODE(imgdl_download(old_shared, &request, NULL), IMGDL_ERROR_FORKED);
    for (int i = 0; i < 2; i++) {
        struct recorder recorder;
        recorder_init(&recorder);
        imgdl_request recorded = recorded_request(at_origin("/pictures/tiny.png?_=child%d", i), &recorder);
        CHECK_CODE(download_and_wait(i ? shared : new, &recorded, &recorder), IMGDL_OK);
        recorder_clear(&recorder);
    }
    imgdl_executor *executor = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request recorded = recorded_request(at_origin("/pictures/tiny.png?_=child-pump"), &recorder);
    recorded.executor = executor;
    REQUIRE_OK(imgdl_download(new, &recorded, NULL));
    await_end(&recorder, executor);
    imgdl_executor_release(executor);
    CHECK_CODE(imgdl_downloader_destroy(new), IMGDL_OK);
    imgdl_downloader_release(shared);

    imgdl_token_release(old_token);
    imgdl_executor_release(old_executor);
    imgdl_image_release(image);
    imgdl_downloader_release(old_shared);
    CHECK_CODE(imgdl_downloader_destroy(old_downloader), IMGDL_ERROR_FORKED); /* released all the same */
    CHECK_CODE(imgdl_downloader_cancel_all(old_downloader), IMGDL_ERROR_INVALID_HANDLE);
}

TEST("fork() with transfers running: the child starts anew, the parent goes on")
{
    imgdl_downloader *downloader = new_downloader(), *shared = NULL;
    imgdl_executor *executor = NULL;
    imgdl_token *token = NULL;
    size_t size;
    uint8_t *bytes = read_picture("tiny.png", &size);
    imgdl_image *image = NULL;
    REQUIRE_OK(imgdl_decode(bytes, size, NULL, &image));
    free(bytes);
    REQUIRE_OK(imgdl_downloader_shared(&shared));
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    struct recorder recorders[3];
    for (int i = 0; i < 3; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request =
            recorded_request(at_origin("/pictures/baseline.jpg?hold_after=3000&gate=fork&n=%d", i), &recorders[i]);
        request.executor = i == 2 ? executor : NULL;
        REQUIRE_OK(imgdl_download(i == 1 ? shared : downloader, &request, i ? NULL : &token));
    }
    await_gate("fork", 3);

    /* A child that does nothing ends like any process. */
    pid_t idle = fork_quietly();
    if (idle == 0)
        exit(21);
    expect_exit(idle, 21);

    pid_t child = fork_quietly();
    if (child == 0) {
        int before = harness_failures();
        in_child(downloader, token, executor, image, shared);
        exit(harness_failures() > before ? 1 : 22);
    }
    expect_exit(child, 22);

    open_gate("fork");
    for (int i = 0; i < 3; i++) {
        if (!await_end(&recorders[i], i == 2 ? executor : NULL))
            harness_abandon();
        check_ending(&recorders[i]);
        CHECK_CODE(recorders[i].code, IMGDL_OK);
    }
    imgdl_token_release(token);
    imgdl_executor_release(executor);
    imgdl_image_release(image);
    imgdl_downloader_release(shared);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
}

TEST("children forked while the library is busy all start anew")
{
    imgdl_downloader *downloader = new_downloader_with(8, NULL);
    struct recorder recorders[40];
    start_transfers(downloader, recorders, 40, "/pictures/tiny.jpg?chunk=50&pause_ms=1&n=%u");
    for (int i = 0; i < 20; i++) {
        pid_t child = fork_quietly();
        if (child == 0) {
            int before = harness_failures();
            struct recorder recorder;
            recorder_init(&recorder);
            imgdl_downloader *new = new_downloader();
            imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=busy%d", i), &recorder);
            CHECK_CODE(download_and_wait(new, &request, &recorder), IMGDL_OK);
            ignore_status(imgdl_downloader_destroy(new));
            _exit(harness_failures() > before ? 1 : 23);
        }
        expect_exit(child, 23);
    }
    for (int i = 0; i < 40; i++) {
        if (!await_end(&recorders[i], NULL))
            harness_abandon();
        check_ending(&recorders[i]);
        CHECK_CODE(recorders[i].code, IMGDL_OK);
    }
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
}

/* What Swift makes at its first use is made under locks, which a child would find taken for ever. */
TEST_WITHIN(120, "children forked while the library does everything for the first time")
{
    for (int i = 0; i < 60; i++) {
        pid_t first = fork_quietly();
        if (first == 0) {
            struct recorder recorder;
            recorder_init(&recorder);
            imgdl_downloader *downloader = new_downloader();
            imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=first%d", i), &recorder);
            REQUIRE_OK(imgdl_download(downloader, &request, NULL));
            for (volatile int work = 0; work < i * 20000; work = work + 1) {} /* some way into it, each time another */
            pid_t child = fork_quietly();
            if (child == 0) {
                alarm(PATIENCE_MS / 1000 / 2);
                recorder_init(&recorder);
                imgdl_downloader *new = new_downloader();
                request = recorded_request(at_origin("/pictures/tiny.jpg?_=first%d", i), &recorder);
                _exit(download_and_wait(new, &request, &recorder) == IMGDL_OK ? 24 : 1);
            }
            int status = await_child(child);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
        }
        expect_exit(first, 24);
    }
}

/* ---- Signals */

TEST("a TLS peer that goes away in the middle of a write raises no SIGPIPE in a host without a handler")
{
    signal(SIGPIPE, SIG_DFL);
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.ca_file = tls_ca_file;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    enum { SIZE = 16 << 20 };
    char *body = calloc(1, SIZE);
    for (int i = 0; i < 10; i++) {
        struct recorder recorder;
        recorder_init(&recorder);
        imgdl_request request = recorded_request(at_tls_origin("/gone"), &recorder);
        request.method = "POST";
        request.body = body;
        request.body_length = SIZE;
        imgdl_status code = download_and_wait(downloader, &request, &recorder);
        if (code != IMGDL_ERROR_CONNECTION_LOST)
            FAIL("%s: %s", imgdl_error_name(code), recorder.message);
        recorder_clear(&recorder);
    }
    free(body);
    struct sigaction action;
    sigaction(SIGPIPE, NULL, &action);
    CHECK(action.sa_handler == SIG_DFL);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
}

static void count_signal(int number)
{
    static volatile sig_atomic_t count;
    (void)number;
    count = count + 1;
}

TEST("signals reach the host's own thread: none of the library's takes one")
{
    struct sigaction action = {.sa_handler = count_signal}, found;
    sigaction(SIGUSR1, &action, NULL);
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorders[4];
    start_transfers(downloader, recorders, 4, "/pictures/baseline.jpg?hold_after=5000&gate=signals&n=%u");
    await_gate("signals", 4);
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    kill(getpid(), SIGUSR1); /* to the process: any thread that does not block it would take it */
    sigset_t pending;
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGUSR1) == 1);
    struct timespec patience = {PATIENCE_MS / 1000, 0};
    CHECK_NUMBER(sigtimedwait(&block, NULL, &patience), SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sigaction(SIGUSR1, NULL, &found);
    CHECK(found.sa_handler == count_signal);
    open_gate("signals");
    for (int i = 0; i < 4; i++)
        await_end(&recorders[i], NULL);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
}
