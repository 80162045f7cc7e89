/* What the benchmarks have in common. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>

/* Says why, and ends the program. */
_Noreturn void fail(const char *what);
/* Nanoseconds of a clock that only goes forward. */
int64_t now(void);
/* Seconds of all threads of the process, user and system. */
double cpu_seconds(void);
/* Sorts them. */
double median(double *values, int count);

#endif
