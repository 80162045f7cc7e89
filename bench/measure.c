#include "measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(1);
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

int64_t now(void) { return read_clock(CLOCK_MONOTONIC); }

double cpu_seconds(void) { return (double)read_clock(CLOCK_PROCESS_CPUTIME_ID) / 1e9; }

static int compare(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}
