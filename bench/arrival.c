/* How long after its last byte a picture is there (DESIGN section 7): a server sends each picture over twice the time that
 * decoding it takes, and the time from its last send() to the terminal callback (inline executor, mask TERMINAL) is told as a
 * part of decoding by hand. Medians.
 *
 *   arrival [ROUNDS] */
#include "hand.h"
#include "pictures.h"

#include <arpa/inet.h>
#include <imgdl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <test_pictures.h>

enum { PIECES = 100, MOST_ROUNDS = 99 };

static const struct {
    const char *name;
    unsigned kind;
} pictures[] = {
    {"baseline.jpg", PICTURE_JPEG_BASELINE}, {"rgb-12.png", PICTURE_PNG_RGB}, {"lossy.webp", PICTURE_WEBP_LOSSY}};

static void fail(const char *what)
{
    fprintf(stderr, "arrival: %s\n", what);
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int compare(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

/* ---- The server */

struct server {
    int listener, port;
    struct bytes bytes;
    int64_t duration, last_byte; /* nanoseconds; when the last send() began */
};

static void send_all(int socket, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            fail("the connection broke");
        at += sent;
        size -= (size_t)sent;
    }
}

static void *serve(void *argument)
{
    struct server *server = argument;
    int socket = accept(server->listener, NULL, NULL), on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char head[4096];
    size_t length = 0;
    while (length < 4 || memcmp(head + length - 4, "\r\n\r\n", 4)) {
        ssize_t got = recv(socket, head + length, sizeof head - length, 0);
        if (got <= 0)
            fail("no request");
        length += (size_t)got;
    }
    length = (size_t)snprintf(
        head, sizeof head, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", server->bytes.size);
    send_all(socket, head, length);
    int64_t start = now();
    size_t sent = 0;
    for (int piece = 1; piece <= PIECES; piece++) {
        int64_t due = start + server->duration * piece / PIECES;
        struct timespec time = {due / 1000000000, due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
        size_t end = server->bytes.size * (size_t)piece / PIECES;
        if (piece == PIECES)
            server->last_byte = now();
        send_all(socket, server->bytes.data + sent, end - sent);
        sent = end;
    }
    close(socket);
    return NULL;
}

static void listen_on_loopback(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server->listener, (struct sockaddr *)&address, size) || listen(server->listener, 8) ||
        getsockname(server->listener, (struct sockaddr *)&address, &size))
        fail("cannot listen");
    server->port = ntohs(address.sin_port);
}

/* ---- The client */

static void note_end(const imgdl_event *event, void *user_data)
{
    if (event->code != IMGDL_OK)
        fail(event->message);
    *(int64_t *)user_data = now();
}

/* Nanoseconds. */
static int64_t measure(imgdl_downloader *downloader, struct server *server)
{
    pthread_t thread;
    pthread_create(&thread, NULL, serve, server);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/picture", server->port);
    int64_t end = 0;
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.executor = IMGDL_EXECUTOR_INLINE;
    request.callback = note_end;
    request.user_data = &end;
    if (imgdl_download(downloader, &request, NULL) != IMGDL_OK)
        fail(imgdl_last_error());
    imgdl_downloader_wait_idle(downloader, -1);
    pthread_join(thread, NULL);
    return end - server->last_byte;
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
    printf("| 12 megapixels    | by hand, ms | last byte to terminal, ms | ratio | allowed |\n");
    printf("|------------------|------------:|--------------------------:|------:|--------:|\n");
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        struct server server = {.bytes = bench_picture(pictures[i].name, pictures[i].kind, 4000, 3000)};
        listen_on_loopback(&server);
        double hand[MOST_ROUNDS], late[MOST_ROUNDS], ratio[MOST_ROUNDS];
        for (int round = 0; round < rounds; round++) {
            int64_t decoding = decode_by_hand(pictures[i].name, server.bytes);
            server.duration = 2 * decoding;
            late[round] = (double)measure(downloader, &server) / 1e6;
            hand[round] = (double)decoding / 1e6;
            ratio[round] = late[round] / hand[round];
        }
        printf("| %-16s | %11.1f | %25.2f | %5.3f |    0.10 |\n", pictures[i].name, median(hand, rounds),
               median(late, rounds), median(ratio, rounds));
        close(server.listener);
        free(server.bytes.data);
    }
    imgdl_downloader_destroy(downloader);
}
