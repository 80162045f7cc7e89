#define _GNU_SOURCE
#include "csystem.h"

#include <stdatomic.h>
#include <time.h>

enum { PATIENCE_MS = 100 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* Threads change `busy` for each callback, so without the gate; whoever then finds that a fork is near goes through it.
 * Both are sequentially consistent: either the thread sees the fork, or the fork sees what the thread did before. */
static atomic_int busy;
static atomic_int is_forking;

static void leave(void)
{
    atomic_fetch_sub(&busy, 1);
    if (!atomic_load(&is_forking))
        return;
    pthread_mutex_lock(&gate);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&gate);
}

void system_thread_begin_work(void)
{
    if (!system_thread_is_library())
        return;
    system_rest_end();
    atomic_fetch_add(&busy, 1);
    while (atomic_load(&is_forking)) {
        leave();
        pthread_mutex_lock(&gate);
        while (is_forking)
            pthread_cond_wait(&changed, &gate);
        pthread_mutex_unlock(&gate);
        atomic_fetch_add(&busy, 1);
    }
}

void system_thread_end_work(void)
{
    if (!system_thread_is_library())
        return;
    system_rest_begin();
    leave();
}

void system_fork_prepare(void)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += PATIENCE_MS * 1000000L;
    if (deadline.tv_nsec >= 1000000000L) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&gate);
    is_forking = 1;
    while (busy > 0 && pthread_cond_timedwait(&changed, &gate, &deadline) == 0) {}
}

void system_fork_parent(void)
{
    is_forking = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&gate);
}

void system_fork_child(void)
{
    is_forking = 0;
    busy = 0;
    /* Who waited for it is not in this process. */
    pthread_cond_init(&changed, NULL);
    pthread_mutex_unlock(&gate);
}
