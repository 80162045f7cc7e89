/* What the benchmark's clients in C have in common: their arguments, the URLs, and the line they print. */
#ifndef CLIENT_H
#define CLIENT_H

#include <stddef.h>

struct client {
    const char *name;
    char **urls;
    size_t url_count;
    unsigned concurrency;
    int decodes;
    const char *ca_file; /* NULL: the system's */
    /* What came of it. */
    unsigned long long images, bytes, pixels, errors;
};

/* --urls FILE --concurrency N --decode 0|1 [--cacert FILE]; ends the process when they are wrong. */
void client_begin(struct client *client, const char *name, int count, char **arguments);
/* Counts one; the first few are printed. */
void client_failed(struct client *client, const char *message);
/* Prints {"images":…,"bytes":…,"pixels":…,"errors":…}; the status to exit with. */
int client_end(const struct client *client);

#endif
