/* How long after its last byte a picture is there (DESIGN section 7): a server sends each picture over twice the time that
 * decoding it takes, and the time from its last send() to the terminal callback (inline executor, mask TERMINAL) is told as a
 * part of decoding by hand. Medians.
 *
 *   arrival [ROUNDS] */
#include "hand.h"
#include "measure.h"
#include "origin.h"
#include "pictures.h"

#include <imgdl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <test_pictures.h>

enum { PIECES = 100, MOST_ROUNDS = 99 };

static const struct {
    const char *name;
    unsigned kind;
} pictures[] = {
    {"baseline.jpg", PICTURE_JPEG_BASELINE}, {"rgb-12.png", PICTURE_PNG_RGB}, {"lossy.webp", PICTURE_WEBP_LOSSY}};

/* ---- The server */

/* What is sent next, and when its last send() began. */
struct sending {
    pthread_mutex_t lock;
    struct bytes bytes;
    int64_t duration, last_byte; /* nanoseconds */
};

static void answer(int socket, void *argument)
{
    struct sending *sending = argument;
    if (!origin_read_request(socket))
        return;
    pthread_mutex_lock(&sending->lock);
    char head[128];
    int length = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                          sending->bytes.size);
    origin_send(socket, head, (size_t)length);
    int64_t start = now();
    size_t sent = 0;
    for (int piece = 1; piece <= PIECES; piece++) {
        int64_t due = start + sending->duration * piece / PIECES;
        struct timespec time = {due / 1000000000, due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
        size_t end = sending->bytes.size * (size_t)piece / PIECES;
        if (piece == PIECES)
            sending->last_byte = now();
        origin_send(socket, sending->bytes.data + sent, end - sent);
        sent = end;
    }
    pthread_mutex_unlock(&sending->lock);
}

/* ---- The client */

static void note_end(const imgdl_event *event, void *user_data)
{
    if (event->code != IMGDL_OK)
        fail(event->message);
    *(int64_t *)user_data = now();
}

/* Nanoseconds. */
static int64_t measure(imgdl_downloader *downloader, int port, struct sending *sending)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/picture", port);
    int64_t end = 0;
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.executor = IMGDL_EXECUTOR_INLINE;
    request.callback = note_end;
    request.user_data = &end;
    if (imgdl_download(downloader, &request, NULL) != IMGDL_OK)
        fail(imgdl_last_error());
    if (imgdl_downloader_wait_idle(downloader, -1) != IMGDL_OK)
        fail(imgdl_last_error());
    pthread_mutex_lock(&sending->lock);
    int64_t late = end - sending->last_byte;
    pthread_mutex_unlock(&sending->lock);
    return late;
}

static int64_t decode_by_hand(const char *name, struct bytes bytes)
{
    int64_t start = now();
    if (!hand_decode(bytes.data, bytes.size))
        fail(name);
    return now() - start;
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 5;
    if (rounds < 1 || rounds > MOST_ROUNDS)
        fail("1 to 99 rounds");
    imgdl_downloader *downloader;
    if (imgdl_downloader_create(NULL, &downloader) != IMGDL_OK)
        fail(imgdl_last_error());
    struct sending sending = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct origin origin;
    origin_start(&origin, answer, &sending);
    int is_too_much = 0;
    printf("| 12 megapixels    | by hand, ms | last byte to terminal, ms | ratio | allowed |\n");
    printf("|------------------|------------:|--------------------------:|------:|--------:|\n");
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        sending.bytes = bench_picture(pictures[i].name, pictures[i].kind, 4000, 3000);
        double hand[MOST_ROUNDS], late[MOST_ROUNDS], ratio[MOST_ROUNDS];
        for (int round = 0; round < rounds; round++) {
            int64_t decoding = decode_by_hand(pictures[i].name, sending.bytes);
            sending.duration = 2 * decoding;
            late[round] = (double)measure(downloader, origin.port, &sending) / 1e6;
            hand[round] = (double)decoding / 1e6;
            ratio[round] = late[round] / hand[round];
        }
        printf("| %-16s | %11.1f | %25.2f | %5.3f |    0.10 |\n", pictures[i].name, median(hand, rounds),
               median(late, rounds), median(ratio, rounds));
        if (median(ratio, rounds) > 0.10)
            is_too_much = 1;
        free(sending.bytes.data);
    }
    if (imgdl_downloader_destroy(downloader) != IMGDL_OK)
        fail(imgdl_last_error());
    if (is_too_much)
        fail("more than is allowed");
}
