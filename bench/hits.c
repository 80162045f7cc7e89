/* What an answer from the cache costs (issue of the cache's speed): CPU time of the whole process for each download of a body
 * of 100 KB that is stored, from imgdl_download to the terminal callback (inline executor, mask TERMINAL), amortized over
 * bursts of 100, from disk and from memory.
 *
 *   hits [DOWNLOADS [disk | memory]] */
#include "measure.h"
#include "origin.h"

#include <imgdl.h>
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

static void measure(const char *what, uint64_t memory, int rounds, int port, double allowed)
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
    printf("| %-11s | %6.1f | %7.0f | %9llu |\n", what, each, allowed,
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
}

int main(int count, char **arguments)
{
    int downloads = count > 1 ? atoi(arguments[1]) : 20000;
    static char body[BODY];
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)(i * 2654435761u >> 13);
    struct origin origin;
    origin_start(&origin, answer, body);
    printf("| 100 KB from | us CPU | allowed | hits      |\n|-------------|-------:|--------:|----------:|\n");
    const char *only = count > 2 ? arguments[2] : NULL;
    if (!only || !strcmp(only, "disk"))
        measure("disk", 0, downloads / URLS, origin.port, 60);
    if (!only || !strcmp(only, "memory"))
        measure("memory", 64u << 20, downloads / URLS, origin.port, 10);
    return 0;
}
