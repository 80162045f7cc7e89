#define _GNU_SOURCE
#include "csystem.h"

#include <poll.h>
#include <time.h>

void system_nap(int descriptor, long nanoseconds)
{
    struct pollfd watched = {.fd = descriptor, .events = POLLIN};
    struct timespec time = {.tv_nsec = nanoseconds};
    (void)ppoll(&watched, 1, &time, NULL);
}
