#include "flatness.h"

#include <stdio.h>

/* Caches fill in the first period, so the second is what the last is compared with. At rest there is no chance in these
 * numbers but for idle connections, and of those only so many are kept. */
enum { EARLY = 1, LATE = PERIODS - 1 };

static const double ALLOWED_SHARE = 1.10, ALLOWED_ALLOCATED = 2, ALLOWED_RESIDENT = 6; /* MiB */
enum { ALLOWED_THREADS = 2, ALLOWED_OTHERS = 2 };

static const char *find_leak(const struct run *run, char *text, size_t capacity)
{
    const struct holding *early = &run->periods[EARLY].at_rest, *late = &run->periods[LATE].at_rest;
    if (late->allocated > early->allocated * ALLOWED_SHARE + ALLOWED_ALLOCATED)
        snprintf(text, capacity, "%.1f MiB are allocated in the end, %.1f after the second tenth", late->allocated,
                 early->allocated);
    else if (late->resident > early->resident * ALLOWED_SHARE + ALLOWED_RESIDENT)
        snprintf(text, capacity, "%.1f MiB are resident in the end, %.1f after the second tenth", late->resident,
                 early->resident);
    else if (late->threads > early->threads + ALLOWED_THREADS)
        snprintf(text, capacity, "%u threads in the end, %u after the second tenth", late->threads, early->threads);
    else if (late->others > early->others + ALLOWED_OTHERS)
        snprintf(text, capacity, "%u descriptors besides sockets in the end, %u after the second tenth", late->others,
                 early->others);
    else
        return NULL;
    return text;
}

static const char *find_excess(const struct run *run, char *text, size_t capacity)
{
    const struct holding *before = &run->before;
    const struct explained *explained = &run->explained;
    unsigned idle = before->sockets + explained->idle_connections;
    unsigned sockets = idle + explained->connections, others = before->others + explained->others;
    unsigned threads = before->threads + explained->threads;
    for (int i = 0; i < PERIODS; i++) {
        const struct period *period = &run->periods[i];
        if (period->at_rest.sockets > idle)
            snprintf(text, capacity, "%u sockets at rest after tenth %d, which idle connections do not explain (%u)",
                     period->at_rest.sockets, i + 1, idle);
        else if (period->most.sockets > sockets)
            snprintf(text, capacity, "%u sockets in tenth %d, which connections do not explain (%u)",
                     period->most.sockets, i + 1, sockets);
        else if (period->most.others > others)
            snprintf(text, capacity, "%u descriptors besides sockets in tenth %d, where %u are explained",
                     period->most.others, i + 1, others);
        else if (period->most.threads > threads)
            snprintf(text, capacity, "%u threads in tenth %d, where %u are explained", period->most.threads, i + 1,
                     threads);
        else
            continue;
        return text;
    }
    return NULL;
}

static const char *find_remains(const struct run *run, char *text, size_t capacity)
{
    const struct holding *before = &run->before, *after = &run->after;
    if (after->threads > before->threads)
        snprintf(text, capacity, "%u threads after the end, %u before", after->threads, before->threads);
    else if (after->sockets + after->others > before->sockets + before->others)
        snprintf(text, capacity, "%u sockets and %u other descriptors after the end, %u and %u before", after->sockets,
                 after->others, before->sockets, before->others);
    else
        return NULL;
    return text;
}

const char *find_growth(const struct run *run, char *text, size_t capacity)
{
    const char *found = find_leak(run, text, capacity);
    if (!found)
        found = find_excess(run, text, capacity);
    return found ? found : find_remains(run, text, capacity);
}
