/* fork() at any time: in callbacks, at the first use of anything, in the middle of decoding and of TLS. Each child downloads
 * and decodes, and none waits for what only its parent has. */
#define SUITE "forks"
#include "support.h"

/* Sanitizers take Swift's dynamic runtime, whose locks go by a thread number that fork() makes wrong. */
#if !UNDER_SANITIZER

#include "no-coder.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

/* ---- Children */

enum { CHILD_SECONDS = 20, WELL = 25 };

static const char *const pictures[] = {"tiny.png", "tiny.jpg", "tiny.webp", "progressive.jpg"};
enum { PICTURES = sizeof pictures / sizeof *pictures };
static struct {
    uint8_t *bytes;
    size_t size;
} files[PICTURES];

static void read_files(void)
{
    for (int i = 0; i < PICTURES; i++)
        files[i].bytes = read_picture(pictures[i], &files[i].size);
}

static imgdl_status decode(int picture)
{
    imgdl_image *image = NULL;
    imgdl_status status = imgdl_decode(files[picture].bytes, files[picture].size, NULL, &image);
    imgdl_image_release(image);
    return status;
}

static void require_well(imgdl_status status, const char *what, const char *why)
{
    if (status == IMGDL_OK)
        return;
    fprintf(stderr, "    in a child: %s: %s: %s\n", what, imgdl_error_name(status), why);
    _exit(1);
}

static atomic_int is_destructed;

static void destruct_slowly(void *user_data)
{
    (void)user_data;
    usleep(5000);
    atomic_store(&is_destructed, 1);
}

/* Where a child hangs its alarm ends it. */
static _Noreturn void be_a_child(const char *url, const char *tls_url)
{
    alarm(CHILD_SECONDS);
    for (int i = 0; i < PICTURES; i++)
        require_well(decode(i), pictures[i], imgdl_last_error());
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.ca_file = tls_ca_file;
    imgdl_downloader *downloader = NULL;
    require_well(imgdl_downloader_create(&config, &downloader), "create", imgdl_last_error());
    const char *const urls[] = {url, tls_url};
    for (int i = 0; i < 2; i++) {
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        request.url = urls[i];
        request.flags = i ? IMGDL_REQUEST_BODY : 0;
        if (!urls[i])
            continue;
        imgdl_token *token = NULL;
        imgdl_result result;
        imgdl_result_init(&result, sizeof result);
        require_well(imgdl_download(downloader, &request, &token), "download", imgdl_last_error());
        require_well(imgdl_token_wait(token, -1), "wait", imgdl_last_error());
        require_well(imgdl_token_result(token, &result), "result", imgdl_last_error());
        require_well(result.code, urls[i], result.message);
        imgdl_token_release(token);
    }
    imgdl_request last;
    imgdl_request_init(&last, sizeof last);
    last.url = url;
    last.callback = ignore_event;
    last.destructor = destruct_slowly;
    require_well(imgdl_download(downloader, &last, NULL), "download", imgdl_last_error());
    require_well(imgdl_downloader_destroy(downloader), "destroy", imgdl_last_error());
    if (!atomic_load(&is_destructed)) {
        fprintf(stderr, "    in a child: destroy has not waited\n");
        _exit(1);
    }
    _exit(WELL);
}

static void check_child(pid_t child, const char *where, int expected)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        FAIL("%s: no child", where);
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
        FAIL("%s: a child ended with %s %d", where, WIFEXITED(status) ? "status" : "signal",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* ---- For how long the handlers hold fork() up */

/* The library registers its handlers through this one, which is in libc's place here. */
static void (*prepare_library)(void), (*parent_library)(void);
static double handlers_took;

/* Seconds that this thread could have run, and others had the processors: that is no handler's doing. */
static double seconds_in_line(void)
{
    unsigned long long ran, waited;
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    REQUIRE(file && fscanf(file, "%llu %llu", &ran, &waited) == 2);
    fclose(file);
    return (double)waited / 1e9;
}

static double call_timed(void (*handler)(void))
{
    double in_line = seconds_in_line(), began = seconds_now();
    handler();
    double took = seconds_now() - began;
    return took - (seconds_in_line() - in_line);
}

static void prepare_timed(void)
{
    handlers_took = call_timed(prepare_library);
}

static void parent_timed(void)
{
    handlers_took += call_timed(parent_library);
}

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object);
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object)
{
    static int (*enter)(void (*)(void), void (*)(void), void (*)(void), void *);
    if (!enter)
        *(void **)&enter = dlsym(RTLD_NEXT, "__register_atfork");
    Dl_info place;
    if (prepare && dladdr(*(void **)&prepare, &place) && strstr(place.dli_fname, "libimgdl") && !prepare_library) {
        prepare_library = prepare;
        parent_library = parent;
        return enter(prepare_timed, parent_timed, child, object);
    }
    return enter(prepare, parent, child, object);
}

/* ---- In the host's code */

static const char *child_url;
static int returns; /* the child, from the code that it was forked in */

/* 1 in a child that is to return. */
static int fork_here(const char *where, int is_on_library_thread)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        /* As the host's own threads have them. */
        if (sigismember(&mask, SIGTERM) || sigismember(&mask, SIGALRM) || !sigismember(&mask, SIGUSR2))
            _exit(2);
        /* One of the host's is in a call, which ends before it does. */
        int cancellation = PTHREAD_CANCEL_DISABLE;
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancellation);
        if (is_on_library_thread && cancellation != PTHREAD_CANCEL_ENABLE)
            _exit(3);
        if (returns && is_on_library_thread)
            return 1;
        be_a_child(child_url, NULL);
    }
    check_child(child, where, returns && is_on_library_thread ? 0 : WELL);
    return 0;
}

static int is_library_thread;
static void fork_in_callback(struct recorder *recorder, const imgdl_event *event)
{
    (void)recorder;
    if (event->kind == IMGDL_EVENT_TERMINAL)
        fork_here("a callback", is_library_thread);
}
static void fork_in_destructor(void *user_data)
{
    fork_here("a destructor", 1);
    raise_flag(user_data);
}
static void fork_in_hook(const imgdl_outgoing *request, imgdl_continuation *next, void *user_data)
{
    (void)request;
    (void)user_data;
    if (!fork_here("a hook", 1))
        CHECK_CODE(imgdl_continue_unchanged(next), IMGDL_OK);
}
static void fork_in_observer(const imgdl_observation *observation, void *user_data)
{
    (void)user_data;
    if (observation->kind == IMGDL_OBSERVED_STARTED)
        fork_here("an observer", 1);
}
static void fork_in_done(void *user_data)
{
    fork_here("done", 1);
    raise_flag(user_data);
}

TEST_WITHIN(180, "a child forked in the host's code downloads, waits and gets signals; one that returns from it ends")
{
    read_files();
    child_url = at_origin("/pictures/tiny.png?_=in-callback");
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, SIGUSR2);
    REQUIRE(pthread_sigmask(SIG_SETMASK, &own, NULL) == 0);
    imgdl_hooks_table table;
    memset(&table, 0, sizeof table);
    table.struct_size = sizeof table;
    table.modify_request = fork_in_hook;
    imgdl_hooks *hooks = NULL;
    REQUIRE_OK(imgdl_hooks_create(&table, &hooks));
    for (returns = 0; returns < 2; returns++) {
        imgdl_executor *pumped = NULL;
        REQUIRE_OK(imgdl_executor_create_pumped(&pumped));
        imgdl_downloader *downloader = new_downloader();
        REQUIRE_OK(imgdl_downloader_set_observer(downloader, fork_in_observer, NULL, NULL));
        imgdl_executor *const executors[] = {NULL, IMGDL_EXECUTOR_INLINE, pumped};
        for (int i = 0; i < 3; i++) {
            struct recorder recorder;
            recorder_init(&recorder);
            recorder.hook = fork_in_callback;
            is_library_thread = i < 2;
            imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?_=parent%d", i), &recorder);
            request.executor = executors[i];
            request.hooks = i == 1 ? hooks : NULL;
            REQUIRE_OK(imgdl_download(downloader, &request, NULL));
            if (!await_end(&recorder, i == 2 ? pumped : NULL))
                harness_abandon();
            check_ending(&recorder);
            CHECK_CODE(recorder.code, IMGDL_OK);
            recorder_clear(&recorder);
        }
        struct flag destroyed = FLAG_INIT, done = FLAG_INIT;
        REQUIRE_OK(imgdl_downloader_set_observer(downloader, fork_in_observer, &destroyed, fork_in_destructor));
        REQUIRE_OK(imgdl_downloader_set_observer(downloader, NULL, NULL, NULL));
        await_flag(&destroyed, 1);
        CHECK_CODE(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_FINISH, fork_in_done, &done), IMGDL_OK);
        await_flag(&done, 1);
        CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
        imgdl_executor_release(pumped);
    }
    imgdl_hooks_release(hooks);
}

/* ---- What a child finds */

static int32_t fork_in_codec(const void *prefix, size_t length, void *user_data)
{
    (void)prefix, (void)length;
    static atomic_flag has_forked = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&has_forked))
        return 0;
    pid_t child = fork();
    if (child == 0) {
        /* The system has it back at once: nobody decodes here, whatever the parent was at. */
        enum { SIDE = 4096 };
        uint32_t *pixels = calloc((size_t)SIDE * SIDE, 4);
        imgdl_image *image = NULL;
        require_well(imgdl_image_create(SIDE, SIDE, IMGDL_PIXEL_FORMAT_RGBA8, pixels, SIDE * 4, &image), "create", "");
        imgdl_image_release(image);
        _exit(imgdl_trim(IMGDL_TRIM_UNUSED) < (uint64_t)SIDE * SIDE * 4 ? WELL : 1);
    }
    check_child(child, "a codec", WELL);
    raise_flag(user_data);
    return 0;
}

TEST("a child forked while pictures are decoded keeps no more memory for the next ones than a process that decodes none")
{
    struct flag forked = FLAG_INIT;
    imgdl_coder_table table = {.struct_size = sizeof table, .can_decode = fork_in_codec, .create = create_no_decoder,
                               .feed = feed_no_decoder, .info = tell_no_info, .finish = finish_no_decoder,
                               .destroy = destroy_no_decoder, .user_data = &forked};
    imgdl_coder *coder = NULL;
    REQUIRE_OK(imgdl_coder_register(&table, &coder));
    imgdl_downloader *downloader = new_downloader();
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png?_=in-codec");
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_flag(&forked, 1);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    imgdl_coder_release(coder);
}

/* ---- At the first use */

static void *create_first(void *argument)
{
    (void)argument;
    imgdl_downloader *downloader = new_downloader();
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = child_url;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    return downloader;
}

static void *decode_first(void *argument)
{
    (void)argument;
    for (int i = 0; i < PICTURES; i++)
        CHECK_CODE(decode(i), IMGDL_OK);
    return NULL;
}

/* ---- In signal handlers */

static atomic_int handler_children;

static void fork_in_a_handler(int number)
{
    (void)number;
    int before = errno, status = -1;
    pid_t child = _Fork();
    if (child == 0)
        _exit(0);
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
        atomic_fetch_add(&handler_children, 1);
    errno = before;
}

/* ---- Cancellation */

static atomic_int is_forking_over;

static void *fork_on(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_forking_over)) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        int before;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        waitpid(child, NULL, 0);
        pthread_setcancelstate(before, NULL);
        pthread_testcancel();
    }
    return NULL;
}

static void *make_downloaders(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_forking_over))
        CHECK_CODE(imgdl_downloader_destroy(new_downloader()), IMGDL_OK);
    return NULL;
}

/* fork() is no cancellation point: it would leave the library locked for ever. */
TEST_WITHIN(60, "a thread that is cancelled while it calls fork() leaves no lock taken")
{
    pthread_t workers[2], forker;
    atomic_store(&is_forking_over, 0);
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&workers[i], NULL, make_downloaders, NULL) == 0);
    for (int round = 0; round < 100; round++) {
        void *result;
        REQUIRE(pthread_create(&forker, NULL, fork_on, NULL) == 0);
        usleep((useconds_t)(round % 20) * 1000);
        REQUIRE(pthread_cancel(forker) == 0 && pthread_join(forker, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
        CHECK_CODE(imgdl_downloader_destroy(new_downloader()), IMGDL_OK);
    }
    atomic_store(&is_forking_over, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
}

TEST("_Fork() in a signal handler, whatever call is interrupted, gives a child that can exit")
{
    enum { CHILDREN = 500 };
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(NULL, &downloader));
    struct sigaction action = {.sa_handler = fork_in_a_handler, .sa_flags = SA_RESTART}, old;
    REQUIRE(sigaction(SIGPROF, &action, &old) == 0);
    struct itimerval often = {{0, 1700}, {0, 1700}}, never = {{0, 0}, {0, 0}};
    REQUIRE(setitimer(ITIMER_PROF, &often, NULL) == 0);
    atomic_store(&handler_children, 0);
    while (atomic_load(&handler_children) < CHILDREN) {
        imgdl_stats stats;
        imgdl_stats_init(&stats, sizeof stats);
        imgdl_downloader_retain(downloader);
        CHECK_CODE(imgdl_downloader_stats(downloader, &stats), IMGDL_OK);
        imgdl_downloader_release(downloader);
    }
    REQUIRE(setitimer(ITIMER_PROF, &never, NULL) == 0);
    REQUIRE(sigaction(SIGPROF, &old, NULL) == 0);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST_WITHIN(600, "children forked while another thread makes its first downloader, or decodes its first picture")
{
    read_files();
    child_url = at_origin("/pictures/tiny.png?_=first-use");
    const int count = (int)strtol(harness_argument("forks", "60"), NULL, 10);
    for (int i = 0; i < count; i++) {
        pid_t first = fork();
        if (first == 0) {
            pthread_t thread;
            REQUIRE(pthread_create(&thread, NULL, i % 2 ? decode_first : create_first, NULL) == 0);
            /* Some way into it, each time another: it takes some 20 ms. */
            struct timespec time = {.tv_nsec = (i * 7919L % 400) * 50000};
            nanosleep(&time, NULL);
            pid_t child = fork();
            if (child == 0)
                be_a_child(child_url, NULL);
            int status = 0;
            waitpid(child, &status, 0);
            if (!WIFEXITED(status))
                fprintf(stderr, "    the child hung; its fork() was held up for %.3f ms\n", handlers_took * 1e3);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
        }
        check_child(first, i % 2 ? "the first decoding" : "the first downloader", WELL);
    }
}

/* ---- In the middle of everything */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

struct load {
    imgdl_downloader *downloader;
    const char *url;
    imgdl_request_flags flags;
    unsigned ended; /* well */
    int is_over;
};

/* The next one begins where one has ended, so that there are always some. */
static void *keep_loading(void *argument)
{
    struct load *load = argument;
    for (unsigned i = 0; !__atomic_load_n(&load->is_over, __ATOMIC_SEQ_CST); i++) {
        imgdl_token *tokens[4];
        for (int k = 0; k < 4; k++) {
            char url[512];
            snprintf(url, sizeof url, "%s&n=%u-%d", load->url, i, k);
            imgdl_request request;
            imgdl_request_init(&request, sizeof request);
            request.url = url;
            request.flags = load->flags;
            REQUIRE_OK(imgdl_download(load->downloader, &request, &tokens[k]));
        }
        for (int k = 0; k < 4; k++) {
            imgdl_result result;
            imgdl_result_init(&result, sizeof result);
            CHECK_CODE(imgdl_token_wait(tokens[k], -1), IMGDL_OK);
            CHECK_CODE(imgdl_token_result(tokens[k], &result), IMGDL_OK);
            if (result.code != IMGDL_OK)
                FAIL("%s", result.message);
            __atomic_add_fetch(&load->ended, 1, __ATOMIC_SEQ_CST);
            imgdl_token_release(tokens[k]);
        }
    }
    return NULL;
}

TEST_WITHIN(1200, "children forked in the middle of decoding and of TLS: fork() is held up for 5 ms in the median, and of a thousand one in a hundred longer")
{
    enum { MOST = 10000 };
    const double BOUND = 0.005, BUSY_BOUND = 0.05; /* seconds */
    static double took[MOST];
    read_files();
    child_url = at_origin("/pictures/tiny.png?_=middle");
    const char *tls_url = at_tls_origin("/text");
    int count = (int)strtol(harness_argument("forks", "100"), NULL, 10);
    count = count > MOST ? MOST : count;
    REQUIRE(count > 0);
    REQUIRE(prepare_library != NULL);
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.ca_file = tls_ca_file;
    struct load loads[3] = {
        {.url = at_origin("/pictures/baseline.jpg?_=load")},
        {.url = at_origin("/pictures/progressive.jpg?_=load")},
        {.url = at_tls_origin("/text?_=load"), .flags = IMGDL_REQUEST_BODY},
    };
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(imgdl_downloader_create(&config, &loads[i].downloader));
        REQUIRE(pthread_create(&threads[i], NULL, keep_loading, &loads[i]) == 0);
    }
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0)
            be_a_child(child_url, tls_url);
        took[i] = handlers_took;
        check_child(child, "in the middle", WELL);
    }
    for (int i = 0; i < 3; i++)
        __atomic_store_n(&loads[i].is_over, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK(loads[i].ended > 0);
        CHECK_CODE(imgdl_downloader_destroy(loads[i].downloader), IMGDL_OK);
    }
    qsort(took, (size_t)count, sizeof *took, compare);
    double median = took[count / 2], at_90 = took[(count * 90 - 1) / 100], at_99 = took[(count * 99 - 1) / 100];
    printf("     handlers held fork() up for %.3f ms in the median, %.3f ms at the 90th percentile, %.3f ms at the 99th, "
           "%.3f ms at most\n", median * 1e3, at_90 * 1e3, at_99 * 1e3, took[count - 1] * 1e3);
    if (median > BOUND)
        FAIL("fork() was held up for %.3f ms in the median", median * 1e3);
    /* Beside others that keep the processors busy ten in a hundred wait for a thread of the library's to get its turn, too. */
    if (at_90 > BUSY_BOUND)
        FAIL("fork() was held up for %.3f ms at the 90th percentile", at_90 * 1e3);
    /* Of a hundred forks the 99th percentile would be one, which a busy machine holds up by itself. */
    if (count >= 1000 && at_99 > BOUND)
        FAIL("fork() was held up for %.3f ms at the 99th percentile", at_99 * 1e3);
}

#endif
