#define _GNU_SOURCE
#include "csystem.h"

#include <stdatomic.h>
#include <time.h>

struct system_rest {
    atomic_int is_resting;
    atomic_int is_measured;
    _Atomic int64_t nanoseconds;
    /* Its thread's own: of the rest that it is in; 0 where that is not measured. */
    int64_t start;
};

static _Thread_local struct system_rest own;

struct system_rest *system_thread_rest(void) { return &own; }

static int64_t thread_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Sequentially consistent, like all of these: whoever has it measured and then finds the thread at work has its next
 * rest. */
void system_rest_begin(void)
{
    atomic_store(&own.is_resting, 1);
    own.start = atomic_load(&own.is_measured) ? thread_time() : 0;
}

void system_rest_end(void)
{
    if (own.start)
        atomic_fetch_add(&own.nanoseconds, thread_time() - own.start);
    own.start = 0;
    atomic_store(&own.is_resting, 0);
}

void system_rest_measure(struct system_rest *rest, int is_measured) { atomic_store(&rest->is_measured, is_measured); }

int system_rest_is_under_way(struct system_rest *rest) { return atomic_load(&rest->is_resting); }

int64_t system_rest_nanoseconds(struct system_rest *rest) { return atomic_load(&rest->nanoseconds); }
