/* Waiting for what somebody else does: whoever has done something rings, and who waits looks again. Nobody waits without an
 * end. */
#include "player.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { MOST_EXECUTORS_AT_ONCE = 256 };
static int bell = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static enum phase phase = AT_REST;

void bell_start(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (bell < 0)
        give_up("eventfd");
}

void ring(void)
{
    uint64_t one = 1;
    /* While they play, the main thread looks at its clock and at executors alone. */
    if (!is_playing())
        ignore(write(bell, &one, sizeof one));
}

void await_ring(double end)
{
    struct pollfd places[1 + MOST_EXECUTORS_AT_ONCE] = {{.fd = bell, .events = POLLIN}};
    unsigned count = 1 + executor_descriptors(places + 1, MOST_EXECUTORS_AT_ONCE);
    double rest = end - seconds_now();
    if (rest <= 0)
        return;
    if (poll(places, count, (int)ceil(rest * 1000)) < 0 && errno != EINTR)
        violation("poll gave %d", errno);
    uint64_t rings;
    ignore(read(bell, &rings, sizeof rings));
}

void begin_phase(enum phase next)
{
    pthread_mutex_lock(&lock);
    phase = next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void await_phase(enum phase awaited)
{
    pthread_mutex_lock(&lock);
    while (phase != awaited)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
