/* The verdict on a long run: whether what the process holds stays the same. By numbers alone. */
#ifndef FLATNESS_H
#define FLATNESS_H

#include "holding.h"

#include <stddef.h>

enum { PERIODS = 10 };

struct period {
    struct holding most;    /* of each, while there was work */
    struct holding at_rest; /* at its end, with nothing in work, when malloc has given back what is free */
};

/* What the configuration explains. */
struct explained {
    unsigned connections, idle_connections; /* sockets */
    unsigned others;                        /* other descriptors, while there is work */
    unsigned threads;                       /* the same */
};

struct run {
    struct holding before, after; /* the first use; after the last */
    struct period periods[PERIODS];
    struct explained explained;
};

/* NULL when it is flat, or what is wrong, in `text`. */
const char *find_growth(const struct run *run, char *text, size_t capacity);

#endif
