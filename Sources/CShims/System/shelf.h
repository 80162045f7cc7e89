/* Mappings that were freed and are kept for what is asked for next, since the system clears each page that it gives. */
#ifndef SHELF_H
#define SHELF_H

#include <stdatomic.h>
#include <stddef.h>

enum { MOST_ON_A_SHELF = 32 };

struct mapping {
    void *memory;
    size_t size;
};

/* Statically allocated: its limits, the rest zero. */
struct shelf {
    /* How many quarters of what is asked for one that is taken may have. */
    const size_t most_quarters;
    /* Mappings are made larger where one that is too small is all there is: the largest are worth most. */
    const int is_elastic;
    /* The oldest first. */
    struct mapping kept[MOST_ON_A_SHELF];
    int count;
    size_t bytes;
    /* The shelf is done without where it stays taken for long: a lock would be copied by fork() as it is. Not at once: what is
     * mapped anew then comes on top of what is kept. */
    atomic_flag is_taken;
};

/* The one that fits best, of those the one that was used last; NULL memory when there is none, or, of an elastic shelf, the
 * largest that is too small. Then so much is given back to the system as is about to be asked of it: what is kept adds
 * nothing to the most that was ever in use. */
struct mapping shelf_take(struct shelf *shelf, size_t size);
/* Whether it is kept. `most` are, MOST_ON_A_SHELF at most: beyond that the smallest goes back to the system, and beyond the
 * bytes the oldest, of an elastic shelf the smallest. `is_lazy`: the system may take the pages of what is kept, when it is
 * short of memory. To tell it so interrupts all processors that the program runs on: not for what is about to be used again. */
int shelf_give(struct shelf *shelf, struct mapping mapping, int most, size_t most_bytes, int is_lazy);
/* So that no more than that is kept: how many went back to the system, the oldest first. */
int shelf_trim(struct shelf *shelf, size_t most_bytes, int is_lazy);
/* In the child of a fork. Where another thread of the parent's had the shelf, what was kept is lost: how many. */
int shelf_fork_child(struct shelf *shelf);
/* Gives it to the system, and counts it. */
void shelf_unmap(struct mapping mapping);
/* Adds to system_bytes_given_back. */
void count_given_back(size_t bytes);

#endif
