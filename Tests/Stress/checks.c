/* What has to be so when all has ended: statistics, memory, threads, descriptors. */
#include "player.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* When it is idle: each end counts when it is told, and no later. */
void check_statistics(imgdl_downloader *downloader)
{
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    /* What was cancelled may be in work for a moment longer, of which nobody is told. */
    for (double end = seconds_now() + 20;; usleep(1000)) {
        imgdl_status status = imgdl_downloader_stats(downloader, &stats);
        if (status == IMGDL_ERROR_INVALID_HANDLE)
            break;
        if (status != IMGDL_OK)
            violation("statistics at the end: %s", imgdl_error_name(status));
        int is_even = stats.submitted == stats.succeeded + stats.failed + stats.cancelled;
        if (is_even && !stats.waiting && !stats.running && !stats.paused && !stats.decoding && !stats.memory)
            break;
        if (!is_even || seconds_now() > end)
            violation("statistics at the end: %llu submitted, %llu succeeded, %llu failed, %llu cancelled, %llu waiting, "
                      "%llu running, %llu paused, %llu decoding, %llu bytes",
                      (unsigned long long)stats.submitted, (unsigned long long)stats.succeeded,
                      (unsigned long long)stats.failed, (unsigned long long)stats.cancelled,
                      (unsigned long long)stats.waiting, (unsigned long long)stats.running,
                      (unsigned long long)stats.paused, (unsigned long long)stats.decoding,
                      (unsigned long long)stats.memory);
    }
}

atomic_int is_measured;

static unsigned threads_before, files_before;
static long memory_before;

/* ---- Memory that grows slowly: what was allocated after each round */

enum { WARM_UP = 30, PART = 40 }; /* rounds until it has what it keeps; rounds that are compared */
enum { GROWTH_KILOBYTES = 2 << 10 };
/* Of the first rounds, and what one may have more than they. */
enum { WARM = 5, LEFT_KILOBYTES = 20 << 10 };
static long *allocated;
static unsigned allocated_count;

static int compare_longs(const void *a, const void *b)
{
    long first = *(const long *)a, second = *(const long *)b;
    return (first > second) - (first < second);
}

static long median(const long *values, unsigned count)
{
    long sorted[PART];
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_longs);
    return sorted[count / 2];
}

/* Resident memory tells less: what was freed in small pieces stays there. */
long allocated_kilobytes(void)
{
    struct mallinfo2 memory = mallinfo2();
    return (long)((memory.uordblks + memory.hblkhd) / 1024);
}

static int is_memory_ignored(void) { return getenv("IMGDL_PLAYER_IGNORES_MEMORY") != NULL; }

/* After a round; once it is warm, none leaves much more than the first ones did. */
void note_allocated(long kilobytes)
{
    allocated = realloc(allocated, (allocated_count + 1) * sizeof *allocated);
    allocated[allocated_count++] = kilobytes;
    if (allocated_count <= WARM || is_memory_ignored())
        return;
    long first = median(allocated, WARM);
    if (kilobytes > first + LEFT_KILOBYTES)
        violation("a round leaves %ld KiB allocated, where the first %u left %ld", kilobytes, WARM, first);
}

/* A long play is looked at as a whole: what each round leaves shows when all rounds do. */
void check_growth(void)
{
    if (allocated_count < WARM_UP + 3 * PART || is_memory_ignored())
        return;
    long first = median(allocated + WARM_UP, PART), last = median(allocated + allocated_count - PART, PART);
    printf("%ld KiB allocated after rounds %u to %u, %ld KiB after the last %u\n", first, WARM_UP, WARM_UP + PART - 1, last,
           PART);
    if (last > first + first / 10 + GROWTH_KILOBYTES)
        violation("memory grows: %ld KiB at first, %ld at the end", first, last);
}

/* Executors stay for the next round, and each has a descriptor. */
unsigned count_descriptors(void)
{
    unsigned all = count_entries("fd"), of_executors = count_executors();
    return all > of_executors ? all - of_executors : 0;
}

/* The system tells nobody when a thread is gone: this is looked for. */
static int is_what_it_was(void)
{
    imgdl_trim(IMGDL_TRIM_CACHES);
    return count_entries("task") <= threads_before && count_descriptors() <= files_before;
}

void check_shared(void)
{
    imgdl_downloader *shared = NULL;
    if (imgdl_downloader_shared(&shared) == IMGDL_OK) {
        imgdl_status status = imgdl_downloader_wait_idle(shared, 20000);
        if (status != IMGDL_OK)
            violation("the shared downloader is not idle at the end: %s", imgdl_error_name(status));
        check_statistics(shared);
    }
    imgdl_downloader_release(shared);
}

/* The shared downloader stays, and has threads of its own. */
void check_process(unsigned round)
{
    imgdl_trim(IMGDL_TRIM_CACHES);
    if (round < 2) {
        unsigned threads = count_entries("task"), files = count_descriptors();
        /* It may not have started all of its own yet. */
        threads_before = threads + 4 > threads_before ? threads + 4 : threads_before;
        files_before = files + 4 > files_before ? files + 4 : files_before;
        memory_before = resident_kilobytes();
        atomic_store(&is_measured, round == 1);
        return;
    }
    for (double end = seconds_now() + 20; !is_what_it_was(); usleep(10000))
        if (seconds_now() > end) {
            print_descriptors();
            violation("%u threads where there were %u, %u descriptors where there were %u", count_entries("task"),
                      threads_before, count_descriptors(), files_before);
        }
    long memory = resident_kilobytes();
    note_allocated(allocated_kilobytes());
    if (memory > 2 * memory_before + 200000 && !is_memory_ignored())
        violation("%ld KiB of memory where there were %ld", memory, memory_before);
}
