#include "origin.h"

#include "measure.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void origin_listen(struct origin *origin)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    origin->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(origin->listener, (struct sockaddr *)&address, size) || listen(origin->listener, 4096) ||
        getsockname(origin->listener, (struct sockaddr *)&address, &size))
        fail("cannot listen");
    origin->port = ntohs(address.sin_port);
}

int origin_accept(const struct origin *origin)
{
    int socket = accept(origin->listener, NULL, NULL), on = 1;
    if (socket < 0)
        fail("no connection");
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
}

struct connection {
    const struct origin *origin;
    int socket;
};

static void *converse(void *argument)
{
    struct connection connection = *(struct connection *)argument;
    free(argument);
    connection.origin->answer(connection.socket, connection.origin->argument);
    close(connection.socket);
    return NULL;
}

static void *accept_all(void *argument)
{
    for (;;) {
        struct connection *connection = malloc(sizeof *connection);
        *connection = (struct connection){argument, origin_accept(argument)};
        pthread_t thread;
        if (pthread_create(&thread, NULL, converse, connection))
            fail("no thread");
        pthread_detach(thread);
    }
    return NULL;
}

void origin_start(struct origin *origin, void (*answer)(int socket, void *argument), void *argument)
{
    origin->answer = answer;
    origin->argument = argument;
    origin_listen(origin);
    pthread_t thread;
    if (pthread_create(&thread, NULL, accept_all, origin))
        fail("no thread");
    pthread_detach(thread);
}

int origin_read_request(int socket)
{
    char head[4096];
    size_t length = 0;
    while (length < 4 || memcmp(head + length - 4, "\r\n\r\n", 4)) {
        ssize_t got = recv(socket, head + length, sizeof head - length, 0);
        if (got == 0 && length == 0)
            return 0;
        if (got <= 0)
            fail("no whole request");
        length += (size_t)got;
    }
    return 1;
}

void origin_send(int socket, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            fail("the connection broke");
        at += sent;
        size -= (size_t)sent;
    }
}
