/* Forked children: what was made before the fork answers FORKED or nothing at all, and new downloaders work. Those that
 * exit: nothing of theirs is called when the library's exit handler has returned. */
#include "calls.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { MOST = 8, PATIENCE = 60 };
static struct child {
    pid_t pid;
    double born;
    const char *what;
} children[MOST];

static void fail(const char *what, long value)
{
    char text[200];
    int length = snprintf(text, sizeof text, "child: %s gave %ld (seed %llu)\n", what, value, (unsigned long long)play_seed);
    ignore(write(STDERR_FILENO, text, (size_t)length));
    _exit(3);
}

/* The call that the child is in, for one that never comes to its end. */
static const char *volatile at = "its first call";

/* The child has not ended in time: says where the thread stands that was forked, and ends it. */
static void on_alarm(int signal)
{
    if (gettid() != getpid()) {
        syscall(SYS_tgkill, getpid(), getpid(), signal);
        return;
    }
    char text[200];
    int length = snprintf(text, sizeof text, "child: has not ended in time, at %s (seed %llu)\n", at,
                          (unsigned long long)play_seed);
    ignore(write(STDERR_FILENO, text, (size_t)length));
    void *frames[64];
    backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
    _exit(4);
}

#define REQUIRE_CODE(call, code)                                                                                       \
    do {                                                                                                               \
        at = #call;                                                                                                    \
        imgdl_status status_ = (call);                                                                                 \
        if (status_ != (code))                                                                                         \
            fail(#call, status_);                                                                                      \
    } while (0)

static void play_in_child(enum function function)
{
    at = function_names[function];
    play_function(function);
}

/* Every function once, from any of them on, judged by the column of that place; what ends a handle comes last. */
static void play_all(enum place place, void *const handles[KINDS])
{
    become_child(place);
    inherit(handles);
    static const enum function enders[] = {
        F_imgdl_downloader_invalidate, F_imgdl_downloader_shutdown, F_imgdl_downloader_destroy};
    enum { ENDERS = sizeof enders / sizeof *enders };
    unsigned first = chance(FUNCTIONS);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        enum function function = (enum function)((first + i) % FUNCTIONS);
        int is_ender = 0;
        for (unsigned k = 0; k < ENDERS; k++)
            is_ender |= function == enders[k];
        if (!is_ender)
            play_in_child(function);
    }
    for (unsigned k = 0; k < ENDERS; k++)
        play_in_child(enders[k]);
    imgdl_image *image = handles[IMAGE];
    if (image && (!imgdl_image_width(image) || !imgdl_image_pixels(image)))
        fail("an inherited image", 0);
}

static void download_one(void)
{
    char url[300];
    imgdl_downloader *downloader = NULL;
    imgdl_token *token = NULL;
    imgdl_request request;
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    imgdl_request_init(&request, sizeof request);
    snprintf(url, sizeof url, "%s/pictures/%s?_=child", origin, pictures[0].name);
    request.url = url;
    REQUIRE_CODE(chance(2) ? imgdl_downloader_shared(&downloader) : imgdl_downloader_create(NULL, &downloader), IMGDL_OK);
    REQUIRE_CODE(imgdl_download(downloader, &request, &token), IMGDL_OK);
    REQUIRE_CODE(imgdl_token_wait(token, 30000), IMGDL_OK);
    REQUIRE_CODE(imgdl_token_result(token, &result), IMGDL_OK);
    if (result.code != IMGDL_OK || !imgdl_image_width(result.image))
        fail(result.message, result.code);
    imgdl_token_release(token);
    imgdl_downloader_release(downloader);
}

static atomic_int is_exit_over, is_exit_child;
static double exit_began, exit_took;
static imgdl_downloader *left_downloader;
static imgdl_token *left_token;
static imgdl_cache *left_cache;

static void check_after_exit(void)
{
    void *const handles[KINDS] = {[DOWNLOADER] = left_downloader, [TOKEN] = left_token, [A_CACHE] = left_cache};
    play_all(AFTER_EXIT, handles);
    imgdl_cache_release(left_cache);
    imgdl_token_release(left_token);
    imgdl_downloader_release(left_downloader);
}

/* Registered before the library's own, and so called after it. */
static void after_the_library(void)
{
    if (!is_exit_child)
        return;
    exit_took = seconds_now() - exit_began;
    is_exit_over = 1;
    check_after_exit();
    usleep(20000);
    _exit(0);
}

/* Which call of the host's functions is the one in which the child exits; 0: none, and its main thread does. */
static unsigned exiting_call;
static atomic_uint calls_made;

static void exit_now(void)
{
    exit_began = seconds_now();
    exit(0);
}

static void begin_before_exit(const char *what)
{
    if (is_exit_over)
        fail(what, 1);
    if (atomic_fetch_add(&calls_made, 1) + 1 == exiting_call)
        exit_now();
}

static void on_destructor_before_exit(void *unused)
{
    (void)unused;
    begin_before_exit("a destructor after the library's exit handler");
}

static void on_event_before_exit(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    begin_before_exit("a callback after the library's exit handler");
    usleep(chance(300));
    /* Nobody waits longer than a second, as on a machine that has no time for this process. */
    if (is_exit_over == 1 && exit_took < 0.9)
        fail("a callback that was not waited for at exit", 1);
}

static void exit_in_work(void)
{
    is_exit_child = 1;
    exiting_call = one_in(2) ? 1 + chance(60) : 0;
    REQUIRE_CODE(imgdl_downloader_create(NULL, &left_downloader), IMGDL_OK);
    REQUIRE_CODE(imgdl_cache_open(NULL, &left_cache), IMGDL_OK);
    for (unsigned i = 0; i < 40; i++) {
        char url[300];
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        /* The first one never ends. */
        snprintf(url, sizeof url, "%s/pictures/%s?_=exit%u&%s", origin, pictures[chance(picture_count)].name, i,
                 i ? "chunk=1000" : "first_byte=never");
        request.url = url;
        request.event_mask = IMGDL_EVENT_ALL;
        request.callback = on_event_before_exit;
        request.destructor = on_destructor_before_exit;
        request.executor = one_in(3) ? IMGDL_EXECUTOR_INLINE : NULL;
        imgdl_status status = imgdl_download(left_downloader, &request, i ? NULL : &left_token);
        /* A callback of those before has called exit(), and what comes after it may have let go of the downloader. */
        if (status != IMGDL_OK && exiting_call && atomic_load(&calls_made) >= exiting_call)
            break;
        REQUIRE_CODE(status, IMGDL_OK);
    }
    while (exiting_call)
        pause();
    usleep(chance(60000));
    exit_now();
}

/* How long the process may last, in seconds. */
static void patience_of_child(unsigned seconds)
{
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, on_alarm);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(seconds);
}

/* How a child ends. */
enum ending {
    BY_ITSELF,
    IN_EXIT,
    WHEN_IT_RETURNS /* to the library, on a thread that was the library's */
};

static void run_child(enum ending ending, void *const handles[KINDS])
{
    patience_of_child(PATIENCE);
    end_round();
    faults_end();
    nobody_dispatches();
    seed_thread((uint64_t)getpid());
    if (ending == IN_EXIT)
        exit_in_work();
    download_one();
    play_all(AFTER_FORK, handles);
    if (ending != WHEN_IT_RETURNS)
        _exit(0);
}

static void start_child(const char *what, enum ending ending)
{
    void *handles[KINDS] = {NULL};
    static const enum kind kinds[] = {DOWNLOADER, TOKEN, EXECUTOR, A_BATCH, A_CACHE, IMAGE, CONTINUATION, TRANSFER};
    /* Out of the shelves, so that nobody releases them before the fork. */
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        handles[kinds[i]] = take(kinds[i]);
    /* What is rare in a child is a transfer of a loader's: where there is none now, mostly another moment is waited for. */
    int is_now = ending == IN_EXIT || here != HOST || handles[TRANSFER] || one_in(4);
    /* Nobody waits for who waits for a child. */
    int is_locked = is_now && pthread_mutex_trylock(&lock) == 0;
    struct child *free_place = NULL;
    for (unsigned i = 0; is_locked && i < MOST; i++)
        if (!children[i].pid)
            free_place = &children[i];
    /* A child that finds them taken would wait for ever. */
    hold_wards();
    hold_executors();
    hold_shelves();
    pid_t pid = free_place ? fork() : -1;
    let_shelves_go();
    let_executors_go();
    let_wards_go();
    if (pid == 0)
        run_child(ending, handles);
    if (pid > 0)
        *free_place = (struct child){pid, seconds_now(), what};
    if (is_locked)
        pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        put_or_release(kinds[i], handles[kinds[i]]);
}

atomic_int awaits_child;

void play_fork(void) { start_child("fork", BY_ITSELF); }
void play_exit(void) { start_child("exit", IN_EXIT); }

void fork_inside(void)
{
    /* Most calls of the host's functions are destructors. */
    uint32_t seldom = here == DESTRUCTOR ? 400 : 60;
#ifdef HAS_SANITIZER
    return; /* of a thread of the library's: locks of Swift's runtime go by a number that it has not got any more */
#endif
    if (!has_feature[FORKS] || !one_in(seldom) || !begin_move())
        return;
    if (has_feature[EXITS] && one_in(8))
        start_child("exit, forked inside", IN_EXIT);
    else if (!is_players_thread && depth == 1 && one_in(3))
        start_child("fork inside, and back", WHEN_IT_RETURNS);
    else
        start_child("fork inside", BY_ITSELF);
    end_move();
}

void children_prepare(void)
{
    atexit(after_the_library);
    /* The first one loads a library, which a signal's handler may not. */
    void *frame;
    (void)backtrace(&frame, 1);
}

void see_hanging_child(void)
{
    void *frame;
    (void)backtrace(&frame, 1);
    children[0] = (struct child){fork(), seconds_now(), "fork"};
    if (children[0].pid == 0) {
        patience_of_child(1);
        at = function_names[F_imgdl_cache_flush];
        for (;;)
            pause();
    }
    reap_children(1);
}

void reap_children(int waits)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < MOST; i++) {
        struct child *child = &children[i];
        int status = 0;
        if (!child->pid || waitpid(child->pid, &status, waits ? 0 : WNOHANG) != child->pid)
            continue;
        child->pid = 0;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            violation("a child (%s) %s %d after %.1f s", child->what, WIFEXITED(status) ? "ended with" : "was killed by",
                      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), seconds_now() - child->born);
    }
    pthread_mutex_unlock(&lock);
}
