/* What the cache answers when nothing was done, by the names of the codes; and what other processes see of what was. */
#define SUITE "cache truth"
#include "children.h"
#include "writing.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define FRESH "header=Cache-Control:max-age=600"
enum { BODY = IMGDL_REQUEST_BODY };

static char *last_message;

static void on_event(const imgdl_cache_event *event, void *user_data)
{
    if (event->kind == IMGDL_CACHE_UNWRITABLE)
        __atomic_add_fetch((int *)user_data, 1, __ATOMIC_SEQ_CST);
    free(last_message);
    last_message = strdup(event->message);
}

static imgdl_status open_cache(const char *directory, int *unwritable, imgdl_cache **cache)
{
    imgdl_cache_config config;
    imgdl_cache_config_init(&config, sizeof config);
    config.directory = directory;
    config.max_memory_bytes = 1 << 20;
    config.callback = on_event;
    config.user_data = unwritable;
    return imgdl_cache_open(&config, cache);
}

/* `other`: something that is stored besides. */
static void check_read_only(imgdl_cache *cache, const char *url, const char *other)
{
    CHECK_CODE(imgdl_cache_remove(cache, url), IMGDL_ERROR_READ_ONLY);
    CHECK_CODE(imgdl_cache_remove(cache, "http://images.invalid/never"), IMGDL_OK);
    CHECK_CODE(imgdl_cache_remove_older(cache, 3600), IMGDL_OK);
    /* What was used in this second stays. */
    imgdl_cache_entry entry;
    imgdl_cache_entry_init(&entry, sizeof entry);
    REQUIRE_OK(imgdl_cache_query(cache, other, &entry));
    while (time(NULL) <= entry.used_s)
        usleep(10000);
    CHECK_CODE(imgdl_cache_remove_older(cache, 0), IMGDL_ERROR_READ_ONLY);
    CHECK_CODE(imgdl_cache_clear(cache), IMGDL_ERROR_READ_ONLY);
    CHECK_CODE(imgdl_cache_flush(cache), IMGDL_ERROR_READ_ONLY);
}

static void store(imgdl_cache *cache, const char *url)
{
    imgdl_downloader *downloader = new_caching_downloader(cache);
    CHECK_CODE(ask(downloader, url, 0, BODY).code, IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    REQUIRE_OK(imgdl_cache_flush(cache));
}

static imgdl_cache_stats statistics(imgdl_cache *cache)
{
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_cache_statistics(cache, &stats));
    return stats;
}

TEST("unflushed counts what is stored, still there and not safe yet; a flush brings it to none")
{
    enum { COUNT = 3 };
    char *directory = new_folder();
    const char *urls[COUNT];
    int unwritable = 0;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(open_cache(directory, &unwritable, &cache));
    CHECK_NUMBER(statistics(cache).unflushed, 0);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    for (unsigned i = 0; i < COUNT; i++) {
        urls[i] = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d-%u", (int)getpid(), i);
        CHECK_CODE(ask(downloader, urls[i], 0, BODY).code, IMGDL_OK);
        CHECK_NUMBER(statistics(cache).unflushed, i + 1);
    }
    REQUIRE_OK(imgdl_cache_remove(cache, urls[0]));
    CHECK_NUMBER(statistics(cache).unflushed, COUNT - 1);
    REQUIRE_OK(imgdl_cache_flush(cache));
    CHECK_NUMBER(statistics(cache).unflushed, 0);
    CHECK_CODE(ask(downloader, urls[0], 0, BODY).code, IMGDL_OK);
    CHECK_NUMBER(statistics(cache).unflushed, 1);
    REQUIRE_OK(imgdl_cache_flush(cache));
    CHECK_NUMBER(statistics(cache).unflushed, 0);
    CHECK_NUMBER(unwritable, 0);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    free(directory);
}

TEST("CACHE_BUSY: another connection holds a transaction that writes")
{
    char *directory = new_folder();
    const char *url = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid());
    int unwritable = 0;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(open_cache(directory, &unwritable, &cache));
    store(cache, url);
    struct writing other = open_index(directory);
    start_writing(&other);
    CHECK_CODE(imgdl_cache_remove(cache, url), IMGDL_ERROR_CACHE_BUSY);
    CHECK(strstr(imgdl_last_error(), directory) != NULL);
    CHECK_CODE(imgdl_cache_clear(cache), IMGDL_ERROR_CACHE_BUSY);
    stop_writing(&other);
    CHECK_CODE(imgdl_cache_clear(cache), IMGDL_OK);
    close_index(&other);
    imgdl_cache_release(cache);
    free(directory);
}

struct removing {
    imgdl_cache *cache;
    int is_over, ended, busy;
};

static void *remove_again_and_again(void *argument)
{
    struct removing *removing = argument;
    while (!__atomic_load_n(&removing->is_over, __ATOMIC_SEQ_CST)) {
        imgdl_status status = imgdl_cache_remove(removing->cache, "http://images.invalid/");
        __atomic_add_fetch(status == IMGDL_ERROR_CACHE_BUSY ? &removing->busy : &removing->ended, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

TEST("fork() does not wait for another program that writes to the index")
{
    char *directory = new_folder();
    int unwritable = 0;
    struct removing removing = {NULL, 0, 0, 0};
    REQUIRE_OK(open_cache(directory, &unwritable, &removing.cache));
    store(removing.cache, at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid()));
    struct writing other = open_index(directory);
    start_writing(&other);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, remove_again_and_again, &removing) == 0);
    double longest = 0;
    unsigned forks = 0;
    /* For as long as one removal waits, from its beginning to the answer that it was held up. */
    for (; forks < 100 || !__atomic_load_n(&removing.busy, __ATOMIC_SEQ_CST); forks++) {
        double began = seconds_now();
        pid_t child = fork_quietly();
        double took = seconds_now() - began;
        if (child == 0)
            _exit(0);
        REQUIRE(child > 0);
        longest = took > longest ? took : longest;
        CHECK_NUMBER(await_child(child), 0);
        usleep(10000);
    }
    printf("    the longest of %u took %.1f ms\n", forks, longest * 1e3);
    CHECK(longest < 0.2);
    __atomic_store_n(&removing.is_over, 1, __ATOMIC_SEQ_CST);
    CHECK_NUMBER(__atomic_load_n(&removing.ended, __ATOMIC_SEQ_CST), 0);
    CHECK(__atomic_load_n(&removing.busy, __ATOMIC_SEQ_CST) > 0);
    stop_writing(&other);
    pthread_join(thread, NULL);
    close_index(&other);
    imgdl_cache_release(removing.cache);
    free(directory);
}

TEST("READ_ONLY: a disk that is mounted so serves what it has")
{
    char *directory = new_folder();
    const char *url = at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid());
    const char *other = at_origin("/pictures/tiny.png?" FRESH "&n=%d", (int)getpid());
    int unwritable = 0;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(open_cache(directory, &unwritable, &cache));
    store(cache, url);
    store(cache, other);
    imgdl_cache_release(cache);
    if (mount(directory, directory, NULL, MS_BIND, NULL) != 0)
        harness_skip("this machine cannot mount a file system");
    REQUIRE(mount(NULL, directory, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0);
    REQUIRE_OK(open_cache(directory, &unwritable, &cache));
    imgdl_downloader *downloader = new_caching_downloader(cache);
    CHECK_NUMBER(ask(downloader, url, IMGDL_CACHE_ONLY, BODY).outcome, IMGDL_CACHE_OUTCOME_HIT);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    CHECK_NUMBER(unwritable, 1);
    check_read_only(cache, url, other);
    imgdl_cache_release(cache);
    REQUIRE(umount(directory) == 0);
    free(directory);
}

TEST("DISK_FULL: a flush says so, and clearing makes room")
{
    char *directory = new_folder(), *path = NULL;
    if (mount("tmpfs", directory, "tmpfs", 0, "size=640k,mode=700") != 0)
        harness_skip("this machine cannot mount a file system");
    int unwritable = 0;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(open_cache(directory, &unwritable, &cache));
    store(cache, at_origin("/pictures/tiny.jpg?" FRESH "&n=%d", (int)getpid()));
    REQUIRE(asprintf(&path, "%s/filler", directory) > 0);
    static const char block[4096];
    int filler = open(path, O_WRONLY | O_CREAT, 0600);
    while (write(filler, block, sizeof block) > 0)
        ;
    close(filler);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    CHECK_CODE(ask(downloader, at_origin("/pictures/baseline.jpg?" FRESH "&n=%d", (int)getpid()), 0, BODY).code, IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    CHECK_CODE(imgdl_cache_flush(cache), IMGDL_ERROR_DISK_FULL);
    CHECK_CODE(imgdl_cache_clear(cache), IMGDL_OK);
    imgdl_cache_release(cache);
    REQUIRE(umount(directory) == 0);
    free(path);
    free(directory);
}

TEST("UNSAFE_DIRECTORY: one that others may write to is not used, not changed, and said")
{
    char *directory = new_folder();
    REQUIRE(chmod(directory, 0777) == 0);
    int unwritable = 0;
    imgdl_cache *cache = NULL;
    CHECK_CODE(open_cache(directory, &unwritable, &cache), IMGDL_ERROR_UNSAFE_DIRECTORY);
    CHECK(cache == NULL);
    CHECK_NUMBER(unwritable, 1);
    CHECK(strstr(imgdl_last_error(), directory) != NULL && strstr(last_message, directory) != NULL);
    struct stat status;
    REQUIRE(stat(directory, &status) == 0);
    CHECK_NUMBER(status.st_mode & 07777, 0777);
    CHECK(rmdir(directory) == 0); /* nothing was made in it */
    free(directory);
}

/* ---- Other processes. Sanitizers take Swift's dynamic runtime, whose locks go by a thread number that fork() makes wrong. */
#if !UNDER_SANITIZER

/* A process of its own that does what it reads, a letter at a time, and answers with the outcome of its request. */
static pid_t start_other(const char *directory, const char *url, int *in, int *out)
{
    int ask_pipe[2], tell_pipe[2];
    REQUIRE(pipe(ask_pipe) == 0 && pipe(tell_pipe) == 0);
    pid_t child = fork();
    if (child != 0) {
        close(ask_pipe[0]);
        close(tell_pipe[1]);
        *in = ask_pipe[1];
        *out = tell_pipe[0];
        return child;
    }
    close(ask_pipe[1]);
    imgdl_cache *cache = NULL;
    int unwritable = 0;
    if (open_cache(directory, &unwritable, &cache) != IMGDL_OK)
        _exit(1);
    imgdl_downloader *downloader = new_caching_downloader(cache);
    char command;
    while (read(ask_pipe[0], &command, 1) == 1) {
        if (command == 'r' && imgdl_cache_remove(cache, url) != IMGDL_OK)
            _exit(2);
        if (command == 'c' && imgdl_cache_clear(cache) != IMGDL_OK)
            _exit(3);
        int outcome = command == 'g' ? (int)ask(downloader, url, 0, BODY).outcome : 0;
        if (command == 'n')
            outcome = (int)ask(downloader, url, IMGDL_CACHE_RELOAD, BODY).outcome;
        if (command == 'n' && imgdl_cache_flush(cache) != IMGDL_OK)
            _exit(4);
        if (write(tell_pipe[1], &outcome, sizeof outcome) != sizeof outcome)
            _exit(5);
    }
    _exit(0);
}

static int tell(int in, int out, char command)
{
    int outcome = -1;
    REQUIRE(write(in, &command, 1) == 1);
    REQUIRE(read(out, &outcome, sizeof outcome) == sizeof outcome);
    return outcome;
}

static void end_other(pid_t child, int in, int out)
{
    close(in);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_NUMBER(status, 0);
    close(out);
}

TEST("a newer version that one process stores another serves in place of that in its memory")
{
    static const char first[] = "the first version", second[] = "another version";
    char *directory = new_folder(), *name = NULL;
    REQUIRE(asprintf(&name, "versions-%d.bin", (int)getpid()) > 0);
    write_picture(name, first, sizeof first);
    const char *url = at_origin("/pictures/%s?" FRESH, name);
    int in, out;
    pid_t child = start_other(directory, url, &in, &out);
    imgdl_cache *cache = NULL;
    int unwritable = 0;
    REQUIRE_OK(open_cache(directory, &unwritable, &cache));
    imgdl_downloader *downloader = new_caching_downloader(cache);
    CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_NETWORK);
    REQUIRE_OK(imgdl_cache_flush(cache));
    write_picture(name, second, sizeof second);
    uint64_t memory_hits = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct reply reply = ask(downloader, url, 0, BODY);
        CHECK_NUMBER(reply.outcome, IMGDL_CACHE_OUTCOME_HIT);
        CHECK(reply.length == sizeof first && reply.sum == sum_of(first, sizeof first));
        uint64_t before = memory_hits;
        memory_hits = statistics(cache).memory_hits;
        if (i > 0)
            CHECK_NUMBER(memory_hits - before, 1);
    }
    CHECK_NUMBER(tell(in, out, 'n'), IMGDL_CACHE_OUTCOME_NETWORK);
    struct reply reply = ask(downloader, url, 0, BODY);
    CHECK_NUMBER(reply.outcome, IMGDL_CACHE_OUTCOME_HIT);
    CHECK(reply.length == sizeof second && reply.sum == sum_of(second, sizeof second));
    CHECK_NUMBER(times_served(url), 2);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    end_other(child, in, out);
    CHECK_NUMBER(unwritable, 0);
    free(name);
    free(directory);
}

TEST("what one process removes or clears another does not serve from its memory")
{
    char *directory = new_folder();
    const char *url = at_origin("/pictures/tiny.jpg?" FRESH "&etag=v1&n=%d", (int)getpid());
    int in, out;
    pid_t child = start_other(directory, url, &in, &out);
    imgdl_cache *cache = NULL;
    int unwritable = 0;
    REQUIRE_OK(open_cache(directory, &unwritable, &cache));
    imgdl_downloader *downloader = new_caching_downloader(cache);
    for (const char *command = "rc"; *command; command++) {
        CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_NETWORK);
        REQUIRE_OK(imgdl_cache_flush(cache));
        CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_HIT);
        uint64_t before = statistics(cache).memory_hits;
        CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_HIT);
        CHECK_NUMBER(statistics(cache).memory_hits - before, 1);
        (void)tell(in, out, *command);
    }
    CHECK_NUMBER(ask(downloader, url, 0, BODY).outcome, IMGDL_CACHE_OUTCOME_NETWORK);
    REQUIRE_OK(imgdl_cache_flush(cache));
    CHECK_NUMBER(tell(in, out, 'g'), IMGDL_CACHE_OUTCOME_HIT);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    end_other(child, in, out);
    free(directory);
}

/* URLs that are removed while what was asked for is held: by another process and by this one, alone and with all. */
enum { WAYS = 4, OTHERS = 2 };
struct removals {
    char *directory, *urls[WAYS], gates[WAYS][64];
    pid_t others[OTHERS];
    int in[OTHERS], out[OTHERS], unwritable;
    imgdl_cache *cache;
    imgdl_downloader *downloader;
};

static void removals_begin(struct removals *all, const char *name)
{
    *all = (struct removals){.directory = new_folder()};
    for (unsigned i = 0; i < WAYS; i++) {
        snprintf(all->gates[i], sizeof all->gates[i], "%s-%d-%u", name, (int)getpid(), i);
        all->urls[i] = strdup(at_origin("/pictures/tiny.jpg?" FRESH "&hold_after=10&gate=%s", all->gates[i]));
    }
    for (unsigned i = 0; i < OTHERS; i++) /* before the library is used */
        all->others[i] = start_other(all->directory, all->urls[i], &all->in[i], &all->out[i]);
    REQUIRE_OK(open_cache(all->directory, &all->unwritable, &all->cache));
    all->downloader = new_caching_downloader(all->cache);
}

static void removals_do(struct removals *all, unsigned way)
{
    if (way < OTHERS)
        (void)tell(all->in[way], all->out[way], "rc"[way]);
    else if (way == OTHERS)
        REQUIRE_OK(imgdl_cache_remove(all->cache, all->urls[way]));
    else
        REQUIRE_OK(imgdl_cache_clear(all->cache));
}

static void removals_end(struct removals *all)
{
    REQUIRE_OK(imgdl_downloader_destroy(all->downloader));
    imgdl_cache_release(all->cache);
    /* The second one has the first one's pipe, too: it ends first. */
    for (unsigned i = OTHERS; i > 0; i--)
        end_other(all->others[i - 1], all->in[i - 1], all->out[i - 1]);
    for (unsigned i = 0; i < WAYS; i++)
        free(all->urls[i]);
    CHECK_NUMBER(all->unwritable, 0);
    free(all->directory);
}

TEST("who asks after another process, or this one, has removed a URL shares nothing with who asked before")
{
    struct removals all;
    removals_begin(&all, "parted");
    for (unsigned i = 0; i < WAYS; i++) {
        struct recorder recorders[3];
        for (unsigned j = 0; j < 3; j++) {
            recorder_init(&recorders[j]);
            imgdl_request request = recorded_request(all.urls[i], &recorders[j]);
            REQUIRE_OK(imgdl_download(all.downloader, &request, NULL));
            if (j < 2) /* the third shares the second's transfer */
                await_gate(all.gates[i], j + 1);
            if (j > 0)
                continue;
            removals_do(&all, i);
        }
        open_gate(all.gates[i]);
        for (unsigned j = 0; j < 3; j++) {
            REQUIRE(await_end(&recorders[j], NULL));
            CHECK_CODE(recorders[j].code, IMGDL_OK);
            recorder_clear(&recorders[j]);
        }
        imgdl_stats stats;
        imgdl_stats_init(&stats, sizeof stats);
        REQUIRE_OK(imgdl_downloader_stats(all.downloader, &stats));
        CHECK_NUMBER(stats.transfers, 2 * (i + 1));
        CHECK_NUMBER(stats.shared, i + 1);
    }
    removals_end(&all);
}

TEST("what a request brings that was sent before another process, or this one, removed its URL is not stored")
{
    struct removals all;
    removals_begin(&all, "removed");
    for (unsigned i = 0; i < WAYS; i++) {
        struct recorder recorder;
        recorder_init(&recorder);
        imgdl_request request = recorded_request(all.urls[i], &recorder);
        REQUIRE_OK(imgdl_download(all.downloader, &request, NULL));
        await_gate(all.gates[i], 1);
        removals_do(&all, i);
        open_gate(all.gates[i]);
        REQUIRE(await_end(&recorder, NULL));
        CHECK_CODE(recorder.code, IMGDL_OK);
        recorder_clear(&recorder);
        CHECK_CODE(ask(all.downloader, all.urls[i], IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED);
        REQUIRE_OK(imgdl_cache_flush(all.cache));
        CHECK_CODE(ask(all.downloader, all.urls[i], IMGDL_CACHE_ONLY, BODY).code, IMGDL_ERROR_NOT_CACHED);
        CHECK_NUMBER(ask(all.downloader, all.urls[i], 0, BODY).outcome, IMGDL_CACHE_OUTCOME_NETWORK);
        CHECK_NUMBER(ask(all.downloader, all.urls[i], 0, BODY).outcome, IMGDL_CACHE_OUTCOME_HIT);
    }
    removals_end(&all);
}

#endif

/* ---- Systems that forbid a call */

/* Older containers forbid it, and kernels before Linux 5.6 do not know it. */
static void forbid_openat2(int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        harness_skip("this machine cannot forbid a call of the system");
    struct open_how how = {.flags = O_RDONLY};
    REQUIRE(syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how) < 0 && errno == error);
}

static void check_without_openat2(int error)
{
    forbid_openat2(error);
    char *folder = new_folder();
    imgdl_cache *cache;
    REQUIRE_OK(open_cache(folder, &(int){0}, &cache));
    imgdl_downloader *downloader = new_caching_downloader(cache);
    const char *url = at_origin("/pictures/tiny.png?" FRESH "&n=%d", (int)getpid());
    struct reply first = ask(downloader, url, 0, BODY);
    CHECK_NUMBER(first.outcome, IMGDL_CACHE_OUTCOME_NETWORK);
    REQUIRE_OK(imgdl_cache_flush(cache));
    /* Of another cache, whose memory has nothing. */
    imgdl_cache *other;
    REQUIRE_OK(open_cache(folder, &(int){0}, &other));
    imgdl_downloader *second_downloader = new_caching_downloader(other);
    struct reply second = ask(second_downloader, url, 0, BODY);
    CHECK_NUMBER(second.outcome, IMGDL_CACHE_OUTCOME_HIT);
    CHECK(second.length == first.length && second.sum == first.sum);
    REQUIRE_OK(imgdl_downloader_destroy(second_downloader));
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(other);
    imgdl_cache_release(cache);
    free(folder);
}

TEST("a body is read where the system forbids openat2()") { check_without_openat2(EPERM); }

TEST("a body is read where the system does not know openat2()") { check_without_openat2(ENOSYS); }
