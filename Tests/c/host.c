/* The host's process is not ours: fork, signals. */
#define SUITE "host"
#include "children.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

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
    CHECK(!strcmp(imgdl_last_error(), "this downloader belongs to the parent process: make a new one after fork"));
    CHECK_CODE(imgdl_downloader_wait_idle(old_downloader, -1), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_downloader_set_suspended(old_downloader, 1), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_downloader_set_header(old_downloader, "X", "y"), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_downloader_shutdown(old_downloader, IMGDL_SHUTDOWN_CANCEL, NULL, NULL), IMGDL_ERROR_FORKED);
    CHECK_CODE(imgdl_token_cancel(old_token), IMGDL_ERROR_FORKED);
    CHECK(!strcmp(imgdl_last_error(), "this token belongs to the parent process: make a new one after fork"));
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
