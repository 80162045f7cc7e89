/* Forked children: what was made before the fork answers FORKED or nothing at all, and new downloaders work. Those that
 * exit: nothing of theirs is called when the library's exit handler has returned. */
#include "calls.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { MOST = 8, PATIENCE = 60 };
static struct child {
    pid_t pid;
    double born;
    const char *what;
} children[MOST];

/* What a child has: nobody else's locks, so no shelf and no stdio. */
struct inherited {
    void *handles[KINDS];
};

static void fail(const char *what, long value)
{
    char text[200];
    int length = snprintf(text, sizeof text, "child: %s gave %ld (seed %llu)\n", what, value, (unsigned long long)play_seed);
    ignore(write(STDERR_FILENO, text, (size_t)length));
    _exit(3);
}

#define REQUIRE_CODE(call, code)                                                                                       \
    do {                                                                                                               \
        imgdl_status status_ = (call);                                                                                 \
        if (status_ != (code))                                                                                         \
            fail(#call, status_);                                                                                      \
    } while (0)

/* Each rule of moves.def, on handles of the parent's. */
static void check_inherited(const struct inherited *all)
{
    imgdl_stats stats;
    imgdl_cache_stats cache_stats;
    imgdl_result result;
    imgdl_stats_init(&stats, sizeof stats);
    imgdl_cache_stats_init(&cache_stats, sizeof cache_stats);
    imgdl_result_init(&result, sizeof result);
    imgdl_downloader *downloader = all->handles[DOWNLOADER];
    if (downloader) {
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        request.url = "http://127.0.0.1:1/";
        REQUIRE_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_FORKED);
        REQUIRE_CODE(imgdl_downloader_wait_idle(downloader, -1), IMGDL_ERROR_FORKED);
        REQUIRE_CODE(imgdl_downloader_cancel_all(downloader), IMGDL_ERROR_FORKED);
        REQUIRE_CODE(imgdl_downloader_stats(downloader, &stats), IMGDL_ERROR_FORKED);
        REQUIRE_CODE(imgdl_downloader_set_suspended(downloader, 1), IMGDL_ERROR_FORKED);
        if (imgdl_downloader_current_count(downloader) || imgdl_downloader_max_concurrent(downloader))
            fail("a getter of an inherited downloader", 1);
        imgdl_downloader_release(imgdl_downloader_retain(downloader));
    }
    imgdl_token *token = all->handles[TOKEN];
    if (token) {
        REQUIRE_CODE(imgdl_token_wait(token, -1), IMGDL_ERROR_FORKED);
        REQUIRE_CODE(imgdl_token_cancel(token), IMGDL_ERROR_FORKED);
        REQUIRE_CODE(imgdl_token_result(token, &result), IMGDL_ERROR_FORKED);
        imgdl_token_release(imgdl_token_retain(token));
    }
    imgdl_executor *executor = all->handles[EXECUTOR];
    if (executor) {
        REQUIRE_CODE(imgdl_executor_dispatch(executor, 1, NULL), IMGDL_ERROR_FORKED);
        if (imgdl_executor_fd(executor) != -1)
            fail("imgdl_executor_fd", 0);
        imgdl_executor_release(imgdl_executor_retain(executor));
    }
    imgdl_batch *batch = all->handles[A_BATCH];
    if (batch)
        REQUIRE_CODE(imgdl_batch_cancel(batch), IMGDL_ERROR_FORKED);
    imgdl_cache *cache = all->handles[A_CACHE];
    if (cache) {
        REQUIRE_CODE(imgdl_cache_statistics(cache, &cache_stats), IMGDL_ERROR_FORKED);
        REQUIRE_CODE(imgdl_cache_clear(cache), IMGDL_ERROR_FORKED);
    }
    imgdl_image *image = all->handles[IMAGE];
    if (image && (!imgdl_image_width(image) || !imgdl_image_pixels(image)))
        fail("an inherited image", 0);
    imgdl_trim(IMGDL_TRIM_CACHES);
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
static imgdl_downloader *left_downloader;
static imgdl_token *left_token;
static imgdl_cache *left_cache;

/* The last column of the table. */
static void check_after_exit(void)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = "http://127.0.0.1:1/";
    imgdl_downloader *another = NULL;
    imgdl_cache *cache = NULL;
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    imgdl_batch *batch = NULL;
    REQUIRE_CODE(imgdl_download(left_downloader, &request, NULL), IMGDL_ERROR_SHUT_DOWN);
    REQUIRE_CODE(imgdl_downloader_prefetch(left_downloader, &request, 1, NULL, &batch), IMGDL_ERROR_SHUT_DOWN);
    REQUIRE_CODE(imgdl_downloader_reconfigure(left_downloader, NULL), IMGDL_ERROR_SHUT_DOWN);
    REQUIRE_CODE(imgdl_downloader_wait_idle(left_downloader, -1), IMGDL_ERROR_SHUT_DOWN);
    REQUIRE_CODE(imgdl_token_wait(left_token, -1), IMGDL_ERROR_SHUT_DOWN);
    REQUIRE_CODE(imgdl_downloader_create(NULL, &another), IMGDL_ERROR_SHUT_DOWN);
    REQUIRE_CODE(imgdl_downloader_shared(&another), IMGDL_ERROR_SHUT_DOWN);
    REQUIRE_CODE(imgdl_cache_open(NULL, &cache), IMGDL_ERROR_SHUT_DOWN);
    REQUIRE_CODE(imgdl_cache_statistics(left_cache, &stats), IMGDL_ERROR_SHUT_DOWN);
    REQUIRE_CODE(imgdl_token_cancel(left_token), IMGDL_OK);
    imgdl_trim(IMGDL_TRIM_CACHES);
    imgdl_cache_release(left_cache);
    imgdl_token_release(left_token);
    REQUIRE_CODE(imgdl_downloader_destroy(left_downloader), IMGDL_OK);
}

/* Registered before the library's own, and so called after it. */
static void after_the_library(void)
{
    if (!is_exit_child)
        return;
    is_exit_over = 1;
    check_after_exit();
    usleep(20000);
    _exit(0);
}

static void on_event_before_exit(const imgdl_event *event, void *user_data)
{
    (void)event, (void)user_data;
    if (is_exit_over)
        fail("a callback after the library's exit handler", 1);
    usleep(chance(300));
    if (is_exit_over == 1)
        fail("a callback that was not waited for at exit", 1);
}

static void exit_in_work(void)
{
    is_exit_child = 1;
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
        request.executor = one_in(3) ? IMGDL_EXECUTOR_INLINE : NULL;
        REQUIRE_CODE(imgdl_download(left_downloader, &request, i ? NULL : &left_token), IMGDL_OK);
    }
    usleep(chance(60000));
    exit(0);
}

static void start_child(const char *what, int exits)
{
    struct inherited inherited = {.handles = {NULL}};
    static const enum kind kinds[] = {DOWNLOADER, TOKEN, EXECUTOR, A_BATCH, A_CACHE, IMAGE};
    /* Out of the shelves, so that nobody releases them before the fork. */
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        inherited.handles[kinds[i]] = take(kinds[i]);
    pthread_mutex_lock(&lock);
    struct child *free_place = NULL;
    for (unsigned i = 0; i < MOST; i++)
        if (!children[i].pid)
            free_place = &children[i];
    pid_t pid = free_place ? fork() : -1;
    if (pid == 0) {
        alarm(PATIENCE);
        end_round();
        faults_end();
        seed_thread((uint64_t)getpid());
        if (exits)
            exit_in_work();
        check_inherited(&inherited);
        download_one();
        _exit(0);
    }
    if (pid > 0)
        *free_place = (struct child){pid, seconds_now(), what};
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        put_or_release(kinds[i], inherited.handles[kinds[i]]);
}

void play_fork(void) { start_child("fork", 0); }
void play_exit(void) { start_child("exit", 1); }

void children_prepare(void) { atexit(after_the_library); }

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
