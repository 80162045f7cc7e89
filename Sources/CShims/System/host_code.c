#define _GNU_SOURCE
#include "csystem.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static _Thread_local int locks;
/* How many of the host's functions the thread is in, one within the other. */
static _Thread_local int depth;
/* The thread is in exit(), which does not return. */
static _Thread_local int exits;

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* Threads in a function of the host's. It changes with each call, so without the gate; whoever then finds that the process
 * exits goes through it. Both are sequentially consistent: either the thread sees the exit, or the exit sees the thread.
 * With IS_LEFT, exit() waits for them no longer: of each that comes back one addition says whether it was in time. */
static atomic_int running;
enum { IS_LEFT = 1 << 30 };
static atomic_int is_exiting;

void system_lock_taken(void) { locks++; }

void system_lock_left(void) { locks--; }

int system_locks_held(void) { return locks; }

/* Whether exit() has waited no longer. */
static int leave(void)
{
    int before = atomic_fetch_sub(&running, 1);
    if (atomic_load(&is_exiting)) {
        pthread_mutex_lock(&gate);
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&gate);
    }
    return before & IS_LEFT;
}

int system_host_code_begin(void)
{
    if (depth > 0 && atomic_load(&is_exiting))
        return 0;
    if (++depth > 1)
        return 1;
    atomic_fetch_add(&running, 1);
    if (!atomic_load(&is_exiting))
        return 1;
    depth--;
    /* It goes on, as threads of the library do that run nothing of the host's, whether exit() still waits or not. */
    leave();
    return 0;
}

void system_host_code_end(void)
{
    if (--depth > 0)
        return;
    /* The library, in which it would go on, may be gone. */
    if (leave() && system_thread_is_library())
        for (;;)
            pause();
}

int system_host_code_is_over(void) { return atomic_load(&is_exiting); }

void system_host_code_refuse(void)
{
    exits = 1;
    atomic_store(&is_exiting, 1);
}

void system_host_code_await(int64_t nanoseconds)
{
    const int own = depth > 0;
    const struct timespec deadline = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    pthread_mutex_lock(&gate);
    while ((atomic_load(&running) & ~IS_LEFT) > own && pthread_cond_clockwait(&changed, &gate, CLOCK_MONOTONIC, &deadline) == 0) {}
    pthread_mutex_unlock(&gate);
}

void system_host_code_abandon(void) { atomic_fetch_or(&running, IS_LEFT); }

int system_host_code_is_abandoned(void) { return (atomic_load(&running) & IS_LEFT) != 0; }

int system_host_code_fork_child(void)
{
    const int goes_on = atomic_load(&is_exiting) && !exits;
    if (goes_on)
        atomic_store(&is_exiting, 0);
    /* Other threads, which were in the host's code or at the gate, are not in this process. */
    atomic_store(&running, (depth > 0) | (goes_on ? 0 : atomic_load(&running) & IS_LEFT));
    pthread_mutex_init(&gate, NULL);
    pthread_cond_init(&changed, NULL);
    return goes_on;
}
