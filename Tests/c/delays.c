/* Time that passes while nobody looks: a process that is stopped, and a callback that takes its time. */
#define SUITE "delays"
#include "support.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* More at a time than the engine looks at first; those that are silent; milliseconds. */
enum { HEARD = 70, SILENT = 3, IDLE_MS = 6000, CALLED_MS = 7500, STOPPED_MS = 10500 };
enum { TOTAL_MS = 1000, STOPPED_TOTAL_MS = 4000 };

static void sleep_until(struct timespec end)
{
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0)
        ;
}

static struct timespec monotonic_in(unsigned milliseconds) { return deadline_in(CLOCK_MONOTONIC, milliseconds); }

static imgdl_downloader *new_impatient_downloader(void)
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.max_concurrent = HEARD + SILENT + 1;
    config.idle_timeout_ms = IDLE_MS;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    return downloader;
}

/* Those of transfers that have ended. */
static uint64_t connections_of(imgdl_downloader *downloader)
{
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
    return stats.connections;
}

/* None of its threads runs, or is about to: all that has been sent to it has been read. */
static int is_at_rest(pid_t process)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *tasks = opendir(path);
    if (!tasks) return 0;
    int rests = 1;
    for (struct dirent *entry; rests && (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/stat", (int)process, entry->d_name);
        FILE *file = fopen(path, "r");
        char line[256] = "";
        if (file && !fgets(line, sizeof line, file)) line[0] = 0;
        if (file) fclose(file);
        const char *name_end = strrchr(line, ')');
        rests = name_end && strncmp(name_end, ") S", 3) == 0;
    }
    closedir(tasks);
    return rests;
}

/* A gate that no test has opened, each of which is a process. Kept until that ends. */
static const char *new_gate(void)
{
    static unsigned count;
    char *name = malloc(64);
    snprintf(name, 64, "delays-%d-%u", (int)getpid(), ++count);
    return name;
}

/* Those that are held at the first gate, then those at the second. */
static void download_all(imgdl_downloader *downloader, struct recorder *recorders, const char *const gates[2])
{
    for (unsigned i = 0; i < HEARD + SILENT; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(
            at_origin("/pictures/tiny.jpg?hold_after=10&gate=%s&n=%u", gates[i >= HEARD], i), &recorders[i]);
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
}

static void expect_all_well(struct recorder *recorders)
{
    for (unsigned i = 0; i < HEARD + SILENT; i++) {
        REQUIRE(await_end(&recorders[i], NULL));
        CHECK_CODE(recorders[i].code, IMGDL_OK);
        recorder_clear(&recorders[i]);
    }
}

/* ---- What stands between a client and a server, and can fall silent without a word, as the way to a server does while a
 * machine sleeps */

enum { MOST_CONNECTIONS = 8 };

struct relay {
    int listener, ends[MOST_CONNECTIONS][2]; /* the client's, the server's */
    atomic_uint count, silent; /* of the oldest ones so many bring nothing any more */
    struct sockaddr_in server;
    char port[8];
    pthread_t thread;
};

static void relay_connection(struct relay *relay)
{
    if (relay->count == MOST_CONNECTIONS) return;
    int *ends = relay->ends[relay->count];
    ends[0] = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC);
    ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (ends[0] >= 0 && connect(ends[1], (struct sockaddr *)&relay->server, sizeof relay->server) == 0) relay->count++;
}

/* Bytes of one end go to the other. */
static int pass_on(const int ends[2], int from)
{
    char bytes[16384];
    ssize_t count = recv(ends[from], bytes, sizeof bytes, 0);
    return count > 0 && send(ends[!from], bytes, (size_t)count, MSG_NOSIGNAL) == count;
}

static void *relay_all(void *argument)
{
    struct relay *relay = argument;
    for (;;) {
        struct pollfd waits[1 + 2 * MOST_CONNECTIONS] = {{.fd = relay->listener, .events = POLLIN}};
        for (unsigned i = 0; i < 2 * MOST_CONNECTIONS; i++)
            waits[i + 1] = (struct pollfd){.fd = i < 2 * relay->count ? relay->ends[i / 2][i % 2] : -1, .events = POLLIN};
        if (poll(waits, 1 + 2 * MOST_CONNECTIONS, -1) < 0) continue;
        for (unsigned i = 0; i < 2 * relay->count; i++)
            if (waits[i + 1].revents && i / 2 >= atomic_load(&relay->silent) && !pass_on(relay->ends[i / 2], i % 2)) {
                shutdown(relay->ends[i / 2][!(i % 2)], SHUT_WR);
                relay->ends[i / 2][i % 2] = -1;
            }
        if (waits[0].revents) relay_connection(relay);
    }
    return NULL;
}

/* To the server of that URL, once it has begun: clients that come before that wait. It lives as long as the process. */
static struct relay *new_relay(const char *url)
{
    struct relay *relay = calloc(1, sizeof *relay);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof own;
    relay->server = own;
    relay->server.sin_port = htons((uint16_t)strtol(strchr(url + strlen("https://"), ':') + 1, NULL, 10));
    relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(relay->listener, (struct sockaddr *)&own, size) == 0 && listen(relay->listener, 8) == 0);
    REQUIRE(getsockname(relay->listener, (struct sockaddr *)&own, &size) == 0);
    snprintf(relay->port, sizeof relay->port, "%d", ntohs(own.sin_port));
    return relay;
}

static void download_by_http2(imgdl_downloader *downloader, const char *port, const char *name, uint64_t connections)
{
    char url[128];
    struct recorder recorder;
    recorder_init(&recorder);
    snprintf(url, sizeof url, "https://127.0.0.1:%s/pictures/tiny.jpg?n=%s", port, name);
    imgdl_request request = recorded_request(url, &recorder);
    request.ca_file = http2_ca_file;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) / 1e9 < 1);
    CHECK(connections_of(downloader) == connections);
    recorder_clear(&recorder);
}

/* All of them without a new connection; what follows has one, since it was stopped for more than 10 s. */
TEST("A process that was stopped for longer than its idle timeout goes on: what lies there is read, silence was none, and a "
     "kept connection of HTTP/2 that has died meanwhile holds up nobody")
{
    static struct recorder recorders[HEARD + SILENT];
    const char *const gates[2] = {new_gate(), new_gate()};
    struct relay *relay = new_relay(at_http2_origin("/"));
    fflush(NULL);
    pid_t child = fork(); /* before the library is used, and before there is another thread */
    if (child == 0) {
        imgdl_downloader *other = new_impatient_downloader(), *downloader = new_impatient_downloader();
        download_by_http2(other, relay->port, "first", 1);
        download_by_http2(other, relay->port, "kept", 1);
        download_all(downloader, recorders, gates);
        expect_all_well(recorders);
        CHECK(connections_of(downloader) == HEARD + SILENT);
        download_by_http2(other, relay->port, "stopped", 2);
        REQUIRE_OK(imgdl_downloader_destroy(other));
        struct recorder next;
        recorder_init(&next);
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?n=stopped"), &next);
        CHECK_CODE(download_and_wait(downloader, &request, &next), IMGDL_OK);
        CHECK(connections_of(downloader) == HEARD + SILENT + 1);
        recorder_clear(&next);
        REQUIRE_OK(imgdl_downloader_destroy(downloader));
        exit(harness_failures() ? 1 : 0);
    }
    REQUIRE(pthread_create(&relay->thread, NULL, relay_all, relay) == 0);
    await_gate(gates[0], HEARD);
    await_gate(gates[1], SILENT);
    while (!is_at_rest(child))
        sched_yield();
    struct timespec end = monotonic_in(STOPPED_MS);
    int status = 0;
    kill(child, SIGSTOP);
    REQUIRE(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    atomic_store(&relay->silent, relay->count);
    open_gate(gates[0]);
    sleep_until(end);
    kill(child, SIGCONT);
    open_gate(gates[1]);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Inline: the engine's thread sleeps, while all others are answered. */
static void take_time(struct recorder *recorder, const imgdl_event *event)
{
    if (event->kind != IMGDL_EVENT_TERMINAL) return;
    struct timespec end = monotonic_in(CALLED_MS);
    open_gate(recorder->context);
    sleep_until(end);
}

TEST("A callback that takes longer than the idle timeout ends nobody, however many have been answered meanwhile")
{
    static struct recorder recorders[HEARD + SILENT];
    const char *const gates[2] = {new_gate(), new_gate()};
    imgdl_downloader *downloader = new_impatient_downloader();
    download_all(downloader, recorders, gates);
    await_gate(gates[0], HEARD);
    await_gate(gates[1], SILENT);
    struct recorder slow;
    recorder_init(&slow);
    slow.hook = take_time;
    slow.context = (void *)gates[0];
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?n=slow"), &slow);
    request.executor = IMGDL_EXECUTOR_INLINE;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    REQUIRE(await_end(&slow, NULL));
    open_gate(gates[1]);
    expect_all_well(recorders);
    recorder_clear(&slow);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("A total timeout waits for nobody: it is over when the callback that held everybody up returns")
{
    imgdl_downloader *downloader = new_impatient_downloader();
    const char *gate = new_gate();
    struct recorder held, slow;
    recorder_init(&held);
    recorder_init(&slow);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?hold_after=10&gate=%s", gate), &held);
    request.total_timeout_ms = CALLED_MS - 1000;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_gate(gate, 1);
    slow.hook = take_time;
    slow.context = (void *)new_gate();
    imgdl_request other = recorded_request(at_origin("/pictures/tiny.jpg?n=slow-total"), &slow);
    other.executor = IMGDL_EXECUTOR_INLINE;
    REQUIRE_OK(imgdl_download(downloader, &other, NULL));
    REQUIRE(await_end(&slow, NULL));
    REQUIRE(await_end(&held, NULL));
    CHECK_CODE(held.code, IMGDL_ERROR_TOTAL_TIMEOUT);
    recorder_clear(&held);
    recorder_clear(&slow);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

/* In its own callback, longer than its total timeout. */
static void outlast_itself(struct recorder *recorder, const imgdl_event *event)
{
    if (event->kind != IMGDL_EVENT_RESPONSE || !recorder->context) return;
    recorder->context = NULL;
    sleep_until(monotonic_in(TOTAL_MS + 500));
}

TEST("A total timeout waits for the request's own callback neither: what has come meanwhile is not given out")
{
    imgdl_downloader *downloader = new_impatient_downloader();
    for (int i = 0; i < 3; i++) {
        struct recorder own;
        recorder_init(&own);
        own.hook = outlast_itself;
        own.context = &own;
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?n=own%d", i), &own);
        request.executor = IMGDL_EXECUTOR_INLINE;
        request.flags = IMGDL_REQUEST_BODY; /* a decoder would take until the next turn */
        request.total_timeout_ms = TOTAL_MS;
        CHECK_CODE(download_and_wait(downloader, &request, &own), IMGDL_ERROR_TOTAL_TIMEOUT);
        recorder_clear(&own);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

/* The whole body lies there when the process goes on. */
TEST("A process that was stopped for longer than a total timeout gives nothing out of what came meanwhile")
{
    static struct recorder recorders[HEARD];
    const char *gate = new_gate();
    fflush(NULL);
    pid_t child = fork(); /* before the library is used */
    if (child == 0) {
        imgdl_downloader *downloader = new_impatient_downloader();
        for (unsigned i = 0; i < HEARD; i++) {
            recorder_init(&recorders[i]);
            imgdl_request request = recorded_request(
                at_origin("/pictures/tiny.jpg?hold_after=10&gate=%s&n=total%u", gate, i), &recorders[i]);
            request.flags = IMGDL_REQUEST_BODY; /* a decoder would take until the next turn */
            request.total_timeout_ms = STOPPED_TOTAL_MS;
            REQUIRE_OK(imgdl_download(downloader, &request, NULL));
        }
        for (unsigned i = 0; i < HEARD; i++) {
            REQUIRE(await_end(&recorders[i], NULL));
            CHECK_CODE(recorders[i].code, IMGDL_ERROR_TOTAL_TIMEOUT);
            recorder_clear(&recorders[i]);
        }
        REQUIRE_OK(imgdl_downloader_destroy(downloader));
        exit(harness_failures() ? 1 : 0);
    }
    await_gate(gate, HEARD);
    while (!is_at_rest(child))
        sched_yield();
    struct timespec end = monotonic_in(STOPPED_TOTAL_MS + 500);
    int status = 0;
    kill(child, SIGSTOP);
    REQUIRE(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    open_gate(gate);
    sleep_until(end);
    kill(child, SIGCONT);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST("imgdl_downloader_network_changed: what runs goes on, what follows has a new connection")
{
    CHECK_CODE(imgdl_downloader_network_changed(NULL), IMGDL_ERROR_INVALID_HANDLE);
    imgdl_downloader *downloader = new_impatient_downloader();
    const char *gate = new_gate();
    struct recorder running;
    recorder_init(&running);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?hold_after=10&gate=%s", gate), &running);
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_gate(gate, 1);
    for (int i = 0; i < 4; i++) {
        if (i == 2) REQUIRE_OK(imgdl_downloader_network_changed(downloader));
        struct recorder next;
        recorder_init(&next);
        imgdl_request following = recorded_request(at_origin("/pictures/tiny.jpg?n=network%d", i), &next);
        CHECK_CODE(download_and_wait(downloader, &following, &next), IMGDL_OK);
        recorder_clear(&next);
        CHECK(connections_of(downloader) == (i < 2 ? 1 : 2));
    }
    open_gate(gate);
    REQUIRE(await_end(&running, NULL));
    CHECK_CODE(running.code, IMGDL_OK);
    recorder_clear(&running);
    CHECK(connections_of(downloader) == 3);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

/* One that has just been said to have changed. */
static imgdl_downloader *changed_downloader;
static _Atomic(imgdl_continuation *) owed;

static void change_network(void)
{
    REQUIRE_OK(imgdl_downloader_network_changed(changed_downloader));
}

static void change_in_request(const imgdl_outgoing *request, imgdl_continuation *next, void *user_data)
{
    (void)request, (void)user_data;
    change_network();
    REQUIRE_OK(imgdl_continue_unchanged(next));
}

static void change_in_response(const imgdl_response *response, imgdl_continuation *next, void *user_data)
{
    (void)response, (void)user_data;
    change_network();
    REQUIRE_OK(imgdl_continue_unchanged(next));
}

static void change_in_redirect(const imgdl_response *response, const char *url, imgdl_continuation *next, void *user_data)
{
    (void)response, (void)url, (void)user_data;
    change_network();
    REQUIRE_OK(imgdl_continue_unchanged(next));
}

static void change_in_challenge(const imgdl_response *challenge, imgdl_continuation *next, void *user_data)
{
    (void)challenge, (void)user_data;
    change_network();
    REQUIRE_OK(imgdl_continue_with_credentials(next, "u", "p"));
}

static void owe_redirect(const imgdl_response *response, const char *url, imgdl_continuation *next, void *user_data)
{
    (void)response, (void)url, (void)user_data;
    atomic_store(&owed, next);
}

static const imgdl_hooks_table hook_tables[] = {
    {.struct_size = sizeof(imgdl_hooks_table), .modify_request = change_in_request},
    {.struct_size = sizeof(imgdl_hooks_table), .redirect = change_in_redirect},
    {.struct_size = sizeof(imgdl_hooks_table), .authenticate = change_in_challenge},
    {.struct_size = sizeof(imgdl_hooks_table), .modify_response = change_in_response},
    {.struct_size = sizeof(imgdl_hooks_table), .redirect = owe_redirect},
};

/* An idle connection is there, or the one that it came over. */
TEST("imgdl_downloader_network_changed: what a hook's answer sends goes over a new connection")
{
    static const struct {
        unsigned hooks;
        const char *target;
        unsigned connections; /* after a first download and this one; after a last one there are 2 */
    } cases[] = {
        {0, "/pictures/tiny.jpg?n=hook", 2},
        {1, "/redirect?to=%2Fpictures%2Ftiny.jpg", 2},
        {2, "/auth/basic?user=u&password=p&picture=tiny.jpg", 2},
        {3, "/pictures/tiny.jpg?n=response", 1},
        {4, "/redirect?to=%2Fpictures%2Ftiny.jpg", 2},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        changed_downloader = new_impatient_downloader();
        atomic_store(&owed, NULL);
        imgdl_hooks *hooks = NULL;
        REQUIRE_OK(imgdl_hooks_create(&hook_tables[cases[i].hooks], &hooks));
        for (unsigned n = 0; n < 3; n++) {
            struct recorder next;
            recorder_init(&next);
            const char *target = n == 1 ? cases[i].target : "/pictures/tiny.jpg?n=plain";
            imgdl_request request = recorded_request(at_origin("%s", target), &next);
            request.flags |= IMGDL_REQUEST_BASIC_OVER_HTTP;
            if (n == 1) request.hooks = hooks;
            REQUIRE_OK(imgdl_download(changed_downloader, &request, NULL));
            if (n == 1 && cases[i].hooks == 4) {
                while (!atomic_load(&owed))
                    sched_yield();
                change_network();
                REQUIRE_OK(imgdl_continue_unchanged(atomic_load(&owed)));
            }
            REQUIRE(await_end(&next, NULL));
            CHECK_CODE(next.code, IMGDL_OK);
            recorder_clear(&next);
            if (n == 1) CHECK(connections_of(changed_downloader) == cases[i].connections);
        }
        CHECK(connections_of(changed_downloader) == 2);
        imgdl_hooks_release(hooks);
        REQUIRE_OK(imgdl_downloader_destroy(changed_downloader));
    }
}

static void change_once(struct recorder *recorder, const imgdl_event *event)
{
    if (event->kind != IMGDL_EVENT_TERMINAL) return;
    change_network();
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?n=after"), recorder->context);
    REQUIRE_OK(imgdl_download(changed_downloader, &request, NULL));
}

TEST("imgdl_downloader_network_changed: what a callback asks for after it has a new connection")
{
    for (int i = 0; i < 2; i++) {
        changed_downloader = new_impatient_downloader();
        struct recorder first, after;
        recorder_init(&first);
        recorder_init(&after);
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?n=first"), &first);
        first.hook = change_once;
        first.context = &after;
        if (i == 0) request.executor = IMGDL_EXECUTOR_INLINE;
        REQUIRE_OK(imgdl_download(changed_downloader, &request, NULL));
        REQUIRE(await_end(&first, NULL));
        CHECK_CODE(first.code, IMGDL_OK);
        REQUIRE(await_end(&after, NULL));
        CHECK_CODE(after.code, IMGDL_OK);
        CHECK(connections_of(changed_downloader) == 2);
        recorder_clear(&first);
        recorder_clear(&after);
        REQUIRE_OK(imgdl_downloader_destroy(changed_downloader));
    }
}
