#include "engine.h"
#include "measure.h"
#include "origin.h"

#include <curl/curl.h>
#include <imgdl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void check(imgdl_status status)
{
    if (status != IMGDL_OK)
        fail(imgdl_last_error());
}

static void download(imgdl_downloader *downloader, const char *url, imgdl_event_mask mask, imgdl_event_callback callback,
                     void *user_data)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.flags = IMGDL_REQUEST_BODY;
    request.event_mask = mask;
    request.executor = IMGDL_EXECUTOR_INLINE;
    request.callback = callback;
    request.user_data = user_data;
    check(imgdl_download(downloader, &request, NULL));
}

/* ---- The last byte */

enum { BODY = 3000 };

/* Everything but the last byte, and after a while that. */
static void answer_late(int socket, void *last_byte)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n";
    char response[sizeof head - 1 + BODY] = {0};
    memcpy(response, head, sizeof head - 1);
    while (origin_read_request(socket)) {
        origin_send(socket, response, sizeof response - 1);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
        __atomic_store_n((int64_t *)last_byte, now(), __ATOMIC_RELEASE);
        origin_send(socket, "", 1);
    }
}

static void note_time(const imgdl_event *event, void *end)
{
    check(event->code);
    *(int64_t *)end = now();
}

static size_t take(char *bytes, size_t size, size_t count, void *body)
{
    (void)bytes;
    (void)body;
    return size * count;
}

/* When libcurl says that it is over. */
static int64_t transfer_by_hand(CURLM *multi, const char *url)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_multi_add_handle(multi, easy);
    for (int running = 1; running;) {
        curl_multi_perform(multi, &running);
        if (running)
            curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    int left;
    CURLMsg *message = curl_multi_info_read(multi, &left);
    int64_t end = now();
    if (!message || message->data.result != CURLE_OK)
        fail("libcurl's transfer failed");
    curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    return end;
}

void measure_latency(int rounds)
{
    int64_t last_byte = 0;
    struct origin origin;
    origin_start(&origin, answer_late, &last_byte);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/body", origin.port);
    imgdl_downloader *downloader;
    check(imgdl_downloader_create(NULL, &downloader));
    CURLM *multi = curl_multi_init();
    double *ours = calloc((size_t)rounds, sizeof *ours), *theirs = calloc((size_t)rounds, sizeof *theirs);
    for (int round = 0; round < rounds; round++) {
        int64_t end = 0;
        download(downloader, url, 0, note_time, &end);
        check(imgdl_downloader_wait_idle(downloader, -1));
        ours[round] = (double)(end - __atomic_load_n(&last_byte, __ATOMIC_ACQUIRE)) / 1e3;
        end = transfer_by_hand(multi, url);
        theirs[round] = (double)(end - __atomic_load_n(&last_byte, __ATOMIC_ACQUIRE)) / 1e3;
    }
    printf("%f %f\n", median(ours, rounds), median(theirs, rounds));
    curl_multi_cleanup(multi);
    if (imgdl_downloader_destroy(downloader) != IMGDL_OK)
        fail(imgdl_last_error());
}

/* ---- Chunks */

enum { CHUNK = 1000 };

struct chunks {
    int arrived, transfers, written; /* in this round; descriptor that tells the server of its end */
};

static void count_chunk(const imgdl_event *event, void *user_data)
{
    struct chunks *chunks = user_data;
    if (event->kind == IMGDL_EVENT_TERMINAL) {
        check(event->code);
    } else if (++chunks->arrived == chunks->transfers) {
        chunks->arrived = 0;
        if (write(chunks->written, "", 1) != 1)
            fail("the pipe broke");
    }
}

/* One chunk to each, then one to each again once all have arrived, so that none is read together with the next. */
static void send_chunks(const struct origin *origin, int transfers, int rounds, int arrived)
{
    int *sockets = calloc((size_t)transfers, sizeof *sockets);
    char chunk[CHUNK] = {0}, head[128];
    int length = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", rounds * CHUNK);
    for (int i = 0; i < transfers; i++) {
        sockets[i] = origin_accept(origin);
        /* Under valgrind a turn may take longer than 10 s: then what is not sent yet begins anew on another connection. */
        while (!origin_read_request(sockets[i])) {
            close(sockets[i]);
            sockets[i] = origin_accept(origin);
        }
    }
    for (int i = 0; i < transfers; i++)
        origin_send(sockets[i], head, (size_t)length);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < transfers; i++)
            origin_send(sockets[i], chunk, sizeof chunk);
        char byte;
        if (read(arrived, &byte, 1) != 1)
            fail("the client is gone");
    }
}

void run_chunks(int transfers, int rounds)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    struct origin origin;
    origin_listen(&origin);
    int arrived[2];
    if (pipe(arrived))
        fail("no pipe");
    /* In a process of its own, so that its instructions are not counted. */
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        send_chunks(&origin, transfers, rounds, arrived[0]);
        _exit(0);
    }
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.max_concurrent = (uint32_t)transfers;
    config.connect_timeout_ms = config.idle_timeout_ms = 600000;
    imgdl_downloader *downloader;
    check(imgdl_downloader_create(&config, &downloader));
    struct chunks chunks = {.transfers = transfers, .written = arrived[1]};
    for (int i = 0; i < transfers; i++) {
        char url[64];
        snprintf(url, sizeof url, "http://127.0.0.1:%d/%d", origin.port, i);
        download(downloader, url, IMGDL_EVENT_PROGRESS | IMGDL_EVENT_TERMINAL, count_chunk, &chunks);
    }
    check(imgdl_downloader_wait_idle(downloader, -1));
    if (imgdl_downloader_destroy(downloader) != IMGDL_OK)
        fail(imgdl_last_error());
    int status;
    if (waitpid(server, &status, 0) != server || status != 0)
        fail("the server failed");
}
