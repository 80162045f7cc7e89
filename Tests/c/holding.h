/* What the process holds at one moment. */
#ifndef HOLDING_H
#define HOLDING_H

struct holding {
    double resident;  /* MiB, without what the system may take at any time (LazyFree) */
    double allocated; /* MiB, from malloc */
    unsigned threads;
    unsigned sockets;
    unsigned others; /* other descriptors */
};

double resident_now(void);
struct holding holding_now(void);
/* The most of each. */
void keep_most(struct holding *most, struct holding now);
void print_holding(const char *title, const struct holding *holding);

#endif
