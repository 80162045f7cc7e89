/* What an answer from the cache costs (issue of the cache's speed): CPU time of the whole process for each download of a body
 * of 100 KB that is stored, from imgdl_download to the terminal callback (inline executor, mask TERMINAL), amortized over
 * bursts of 100, from disk and from memory. Beyond its bounds, which are times what is taken by hand in the same run, it fails.
 *
 *   hits [DOWNLOADS [disk | memory]] */
#include "measure.h"
#include "origin.h"

#include <fcntl.h>
#include <imgdl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY = 100 * 1024, URLS = 100 };

static void answer(int socket, void *body)
{
    char head[128];
    int size = snprintf(head, sizeof head,
                        "HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: max-age=3600\r\nContent-Length: %d\r\n\r\n",
                        BODY);
    if (!origin_read_request(socket))
        return;
    origin_send(socket, head, (size_t)size);
    origin_send(socket, body, BODY);
}

static void check_end(const imgdl_event *event, void *user_data)
{
    (void)user_data;
    if (event->code != IMGDL_OK)
        fail(event->message);
    if (imgdl_data_length(event->data) != BODY)
        fail("not the body");
}

static void download_all(imgdl_downloader *downloader, int port)
{
    for (int i = 0; i < URLS; i++) {
        char url[64];
        snprintf(url, sizeof url, "http://127.0.0.1:%d/%d", port, i);
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        request.url = url;
        request.flags = IMGDL_REQUEST_BODY;
        request.executor = IMGDL_EXECUTOR_INLINE;
        request.callback = check_end;
        if (imgdl_download(downloader, &request, NULL) != IMGDL_OK)
            fail(imgdl_last_error());
    }
    if (imgdl_downloader_wait_idle(downloader, -1) != IMGDL_OK)
        fail(imgdl_last_error());
}

/* Microseconds of CPU for each of as many such bodies opened, read into memory of their own and closed; or copied there. */
static double by_hand(bool is_copied)
{
    enum { ROUNDS = 50 };
    static char bodies[URLS][BODY];
    char folder[] = "/tmp/imgdl-hits-files-XXXXXX", paths[URLS][64];
    if (!mkdtemp(folder))
        fail(folder);
    for (int i = 0; i < URLS; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%d", folder, i);
        int file = open(paths[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        memset(bodies[i], i, BODY);
        if (file < 0 || write(file, bodies[i], BODY) != BODY)
            fail(paths[i]);
        close(file);
    }
    double rounds[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double start = cpu_seconds();
        char *copies[URLS];
        for (int i = 0; i < URLS; i++) {
            copies[i] = malloc(BODY);
            if (!copies[i])
                fail("no memory");
            if (is_copied) {
                memcpy(copies[i], bodies[i], BODY);
                continue;
            }
            int file = open(paths[i], O_RDONLY | O_CLOEXEC);
            if (read(file, copies[i], BODY) != BODY)
                fail(paths[i]);
            close(file);
        }
        for (int i = 0; i < URLS; i++)
            free(copies[i]);
        rounds[round] = (cpu_seconds() - start) / URLS * 1e6;
    }
    for (int i = 0; i < URLS; i++)
        unlink(paths[i]);
    rmdir(folder);
    return median(rounds, ROUNDS);
}

/* `allowed`: times by hand. */
static bool measure(const char *what, uint64_t memory, int rounds, int port, double allowed)
{
    char folder[] = "/tmp/imgdl-hits-XXXXXX";
    imgdl_cache_config options;
    imgdl_cache_config_init(&options, sizeof options);
    options.directory = mkdtemp(folder);
    options.max_memory_bytes = memory;
    imgdl_cache *cache;
    if (!options.directory || imgdl_cache_open(&options, &cache) != IMGDL_OK)
        fail("cannot open a cache");
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.cache = cache;
    config.cache_mode = IMGDL_CACHE_USE;
    imgdl_downloader *downloader;
    if (imgdl_downloader_create(&config, &downloader) != IMGDL_OK)
        fail(imgdl_last_error());
    download_all(downloader, port);
    if (imgdl_cache_flush(cache) != IMGDL_OK)
        fail(imgdl_last_error());
    download_all(downloader, port);
    double start = cpu_seconds();
    for (int round = 0; round < rounds; round++)
        download_all(downloader, port);
    double each = (cpu_seconds() - start) / rounds / URLS * 1e6;
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    if (imgdl_cache_statistics(cache, &stats) != IMGDL_OK)
        fail(imgdl_last_error());
    double reference = by_hand(memory > 0);
    printf("| %-11s | %6.1f | %7.1f | %5.2f | %7.1f | %9llu |\n", what, each, reference, each / reference, allowed,
           (unsigned long long)(memory ? stats.memory_hits : stats.hits));
    if (imgdl_downloader_destroy(downloader) != IMGDL_OK)
        fail(imgdl_last_error());
    if (imgdl_cache_clear(cache) != IMGDL_OK)
        fail(imgdl_last_error());
    imgdl_cache_release(cache);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        fail(command);
    return each <= reference * allowed;
}

int main(int count, char **arguments)
{
    int downloads = count > 1 ? atoi(arguments[1]) : 20000;
    static char body[BODY];
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)(i * 2654435761u >> 13);
    struct origin origin;
    origin_start(&origin, answer, body);
    printf("| 100 KB from | us CPU | by hand | times | allowed | hits      |\n"
           "|-------------|-------:|--------:|------:|--------:|----------:|\n");
    const char *only = count > 2 ? arguments[2] : NULL;
    bool is_within = true;
    if (!only || !strcmp(only, "disk"))
        is_within = measure("disk", 0, downloads / URLS, origin.port, 1.5);
    if (!only || !strcmp(only, "memory"))
        is_within = measure("memory", 64u << 20, downloads / URLS, origin.port, 0.3) && is_within;
    if (!is_within)
        fail("more than is allowed");
    return 0;
}
