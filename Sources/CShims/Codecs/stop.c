/* What ends decoding early. Between two looks at the clock, which costs a quarter of a microsecond, lies so much work that
 * it does not matter, and so little that nobody waits for it. */
#define _GNU_SOURCE
#include "ccodecs.h"
#include "csystem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Pixels; those that go through a profile take up to 200 ns each. */
enum { WORK_BETWEEN_LOOKS = 1 << 15 };

struct codec_stop {
    atomic_int is_asked;
    int is_over;
    int64_t deadline;
    size_t work;
    int64_t (*now)(void);
};

int64_t codec_cpu_time(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now))
        return 0;
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

codec_stop *codec_stop_create(int64_t (*now)(void))
{
    codec_stop *stop = calloc(1, sizeof *stop);
    if (stop)
        stop->now = now;
    return stop;
}

void codec_stop_destroy(codec_stop *stop) { free(stop); }

void codec_stop_ask(codec_stop *stop)
{
    if (stop)
        atomic_store_explicit(&stop->is_asked, 1, memory_order_relaxed);
}

int codec_stop_is_asked(const codec_stop *stop)
{
    return stop && atomic_load_explicit(&stop->is_asked, memory_order_relaxed);
}

void codec_stop_set_deadline(codec_stop *stop, int64_t deadline)
{
    if (!stop)
        return;
    stop->deadline = deadline;
    stop->work = WORK_BETWEEN_LOOKS;
}

int codec_stop_is_due(codec_stop *stop, size_t work)
{
    system_thread_stand_aside();
    if (!stop || stop->is_over)
        return stop != NULL;
    if (codec_stop_is_asked(stop))
        return stop->is_over = 1;
    stop->work += work < WORK_BETWEEN_LOOKS ? work : WORK_BETWEEN_LOOKS;
    if (stop->deadline == 0 || stop->work < WORK_BETWEEN_LOOKS)
        return 0;
    stop->work = 0;
    return stop->is_over = stop->now() > stop->deadline;
}
