#define _GNU_SOURCE
#include "ccodecs.h"

#include <time.h>

int64_t codec_cpu_time(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now))
        return 0;
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
