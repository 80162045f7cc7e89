#define _GNU_SOURCE
#include "csystem.h"

#include <time.h>

void system_thread_set_name(const char *name) { (void)pthread_setname_np(pthread_self(), name); }

void system_thread_get_name(char *name, size_t capacity) { (void)pthread_getname_np(pthread_self(), name, capacity); }

/* ThreadSanitizer knows the other one alone, whose clock somebody may set. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define JOIN_CLOCK CLOCK_REALTIME
#define join_until(thread, time) pthread_timedjoin_np(thread, NULL, time)
#endif
#endif
#ifndef JOIN_CLOCK
#define JOIN_CLOCK CLOCK_MONOTONIC
#define join_until(thread, time) pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, time)
#endif

int system_thread_join(pthread_t thread, int milliseconds)
{
    struct timespec time;
    clock_gettime(JOIN_CLOCK, &time);
    int64_t nanoseconds = time.tv_nsec + milliseconds * INT64_C(1000000);
    time.tv_sec += nanoseconds / 1000000000;
    time.tv_nsec = nanoseconds % 1000000000;
    return join_until(thread, &time) == 0;
}
