#include "engine.h"
#include "measure.h"

#include <imgdl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BURST = 10000, URL_LENGTH = 80, FEW = 1000 };

static void check(imgdl_status status)
{
    if (status != IMGDL_OK)
        fail(imgdl_last_error());
}

static imgdl_status expected;

static void note_end(const imgdl_event *event, void *user_data)
{
    (void)user_data;
    if (event->code != expected)
        fail(event->message);
}

static imgdl_downloader *make_downloader(void)
{
    imgdl_downloader *downloader;
    check(imgdl_downloader_create(NULL, &downloader));
    return downloader;
}

static void download(imgdl_downloader *downloader, const char *prefix, int number, imgdl_token **token)
{
    char url[URL_LENGTH + 1];
    int length = snprintf(url, sizeof url, "%s/%d/", prefix, number);
    memset(url + length, 'p', sizeof url - 1 - (size_t)length);
    url[URL_LENGTH] = 0;
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.flags = IMGDL_REQUEST_BODY;
    request.executor = IMGDL_EXECUTOR_INLINE;
    request.callback = note_end;
    check(imgdl_download(downloader, &request, token));
}

static imgdl_stats statistics(imgdl_downloader *downloader)
{
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    check(imgdl_downloader_stats(downloader, &stats));
    return stats;
}

static void wait_for_queue(imgdl_downloader *downloader, int waiting)
{
    while (statistics(downloader).waiting != (uint64_t)waiting)
        usleep(200);
}

static double allocated(void)
{
    struct mallinfo2 info = mallinfo2();
    return (double)(info.uordblks + info.hblkhd);
}

static double resident(void)
{
    long pages;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        fail("/proc/self/statm");
    fclose(file);
    return (double)(pages * sysconf(_SC_PAGESIZE));
}

/* ---- Requests that wait */

static const char host[] = "http://images.example.com";

void measure_waiting(int standing)
{
    imgdl_token **tokens = malloc((size_t)(standing + BURST) * sizeof *tokens);
    memset(tokens, 0xFF, (size_t)(standing + BURST) * sizeof *tokens);
    imgdl_downloader *downloader = make_downloader();
    expected = IMGDL_ERROR_CANCELLED;
    check(imgdl_downloader_set_suspended(downloader, 1));
    /* What is made once, at the first request. */
    download(downloader, host, standing + BURST, NULL);
    wait_for_queue(downloader, 1);

    double bytes = allocated(), pages = resident();
    for (int i = 0; i < standing; i++)
        download(downloader, host, i, &tokens[i]);
    wait_for_queue(downloader, standing + 1);
    bytes = standing < FEW ? 0 : (allocated() - bytes) / standing;
    pages = standing < FEW ? 0 : (resident() - pages) / standing;

    double start = cpu_seconds();
    for (int i = standing; i < standing + BURST; i++)
        download(downloader, host, i, &tokens[i]);
    wait_for_queue(downloader, standing + BURST + 1);
    double enqueue = (cpu_seconds() - start) / BURST;

    start = cpu_seconds();
    for (int i = standing; i < standing + BURST; i++)
        check(imgdl_token_cancel(tokens[i]));
    wait_for_queue(downloader, standing + 1);
    double cancel = (cpu_seconds() - start) / BURST;

    for (int i = standing; i < standing + BURST; i++) {
        imgdl_token_release(tokens[i]);
        download(downloader, host, i, &tokens[i]);
    }
    wait_for_queue(downloader, standing + BURST + 1);
    start = cpu_seconds();
    check(imgdl_downloader_cancel_all(downloader));
    check(imgdl_downloader_wait_idle(downloader, -1));
    double terminal = (cpu_seconds() - start) / (standing + BURST + 1);
    printf("%f %f %f %f %f\n", enqueue * 1e6, cancel * 1e6, terminal * 1e6, bytes, pages);
}

/* ---- A transport without a network */

static void *answer_at_once(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request;
    (void)user_data;
    check(imgdl_transfer_response(transfer, 200, NULL, 0));
    check(imgdl_transfer_end(transfer, IMGDL_OK, NULL));
    imgdl_transfer_release(transfer);
    return NULL;
}

static imgdl_transfer *running;

static void *keep(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request;
    (void)user_data;
    check(imgdl_transfer_response(transfer, 200, NULL, 0));
    __atomic_store_n(&running, transfer, __ATOMIC_RELEASE);
    return NULL;
}

static void ignore_cancel(void *started, void *user_data)
{
    (void)started;
    (void)user_data;
}

static imgdl_downloader *make_downloader_with(void *(*start)(const imgdl_outgoing *, imgdl_transfer *, void *))
{
    imgdl_downloader *downloader = make_downloader();
    imgdl_transport_table table = {.struct_size = sizeof table, .start = start, .cancel = ignore_cancel};
    check(imgdl_transport_register(downloader, "bench", &table));
    return downloader;
}

void measure_answered(int count)
{
    imgdl_downloader *downloader = make_downloader_with(answer_at_once);
    download(downloader, "bench://first", 0, NULL);
    check(imgdl_downloader_wait_idle(downloader, -1));
    double start = cpu_seconds();
    for (int i = 0; i < count; i++)
        download(downloader, "bench://images", i, NULL);
    check(imgdl_downloader_wait_idle(downloader, -1));
    printf("%f\n", (cpu_seconds() - start) / count * 1e6);
    if (imgdl_downloader_destroy(downloader) != IMGDL_OK)
        fail(imgdl_last_error());
}

void measure_joining(int count)
{
    imgdl_downloader *downloader = make_downloader_with(keep);
    download(downloader, "bench://images", 0, NULL);
    while (!__atomic_load_n(&running, __ATOMIC_ACQUIRE))
        usleep(200);
    download(downloader, "bench://images", 0, NULL);
    while (statistics(downloader).shared != 1)
        usleep(200);
    double bytes = allocated(), start = cpu_seconds();
    for (int i = 0; i < count; i++)
        download(downloader, "bench://images", 0, NULL);
    while (statistics(downloader).shared != (uint64_t)count + 1)
        usleep(200);
    bytes = (allocated() - bytes) / count;
    check(imgdl_transfer_body(running, "bytes", 5));
    check(imgdl_transfer_end(running, IMGDL_OK, NULL));
    imgdl_transfer_release(running);
    check(imgdl_downloader_wait_idle(downloader, -1));
    printf("%f %f\n", (cpu_seconds() - start) / count * 1e6, bytes);
    if (imgdl_downloader_destroy(downloader) != IMGDL_OK)
        fail(imgdl_last_error());
}
