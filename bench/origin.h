/* A server on loopback for measurements: as little of one as HTTP/1.1 allows. What it cannot do ends the program. */
#ifndef ORIGIN_H
#define ORIGIN_H

#include <stddef.h>

struct origin {
    int listener, port;
    void (*answer)(int socket, void *argument);
    void *argument;
};

/* A free port. */
void origin_listen(struct origin *origin);
int origin_accept(const struct origin *origin);
/* Listens, and calls `answer` for each connection on a thread of its own; the connection is closed when it returns. */
void origin_start(struct origin *origin, void (*answer)(int socket, void *argument), void *argument);
/* Reads one request without a body; 0 when the client has gone instead. */
int origin_read_request(int socket);
void origin_send(int socket, const void *bytes, size_t size);

#endif
