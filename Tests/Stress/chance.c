/* Chance, and the log. */
#include "player.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *const feature_names[FEATURES] = {
    [FORKS] = "forks", [EXITS] = "exits", [EXECUTOR_RELEASES] = "executor-releases", [DESTROYS_INSIDE] = "destroys-inside",
    [STOPS] = "stops", [SHORT_THREADS] = "short-threads", [SHORT_DESCRIPTORS] = "short-descriptors",
    [SHORT_MEMORY] = "short-memory", [SHORT_DISK] = "short-disk", [HOST_THREADS_WAIT] = "waits"};
int has_feature[FEATURES];

const char *const function_names[FUNCTIONS] = {
#define MOVE(function, rule, waits) #function,
#include "moves.def"
#undef MOVE
};

/* ---- Chance */

uint64_t play_seed;
static _Thread_local uint64_t state;
static atomic_ullong strangers = 1000; /* threads of the library */

_Thread_local int is_players_thread;

static void seed(uint64_t number)
{
    state = (play_seed + 1) * 0x9E3779B97F4A7C15u ^ (number + 1) * 0xBF58476D1CE4E5B9u;
    if (!state)
        state = 1;
}

void seed_thread(uint64_t number)
{
    is_players_thread = 1;
    seed(number);
}

uint32_t chance(uint32_t below)
{
    if (!state)
        seed(atomic_fetch_add(&strangers, 1));
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(((state >> 32) * below) >> 32);
}

int one_in(uint32_t count) { return chance(count) == 0; }

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- The log: what was done last, by everybody. Entries are written without a lock; one that is read while it is
 * written may be mixed, which a reader of a failure can live with. */

enum { ENTRIES = 1 << 14 };
struct entry {
    double time;
    int thread;
    enum place place;
    enum function function;
    long value;
    const void *about;
};
static struct entry entries[ENTRIES];
static atomic_ullong entry_count;
static _Thread_local int thread_number;
static atomic_int thread_count = 1;
_Thread_local const void *about_now;

void log_call(enum function function, long value)
{
    if (!thread_number)
        thread_number = atomic_fetch_add(&thread_count, 1);
    entries[atomic_fetch_add(&entry_count, 1) % ENTRIES] =
        (struct entry){seconds_now(), thread_number, here, function, value, about_now};
}

void write_log(unsigned most, const void *about)
{
    unsigned long long end = atomic_load(&entry_count), first = end > ENTRIES ? end - ENTRIES : 0;
    if (!about && end - first > most)
        first = end - most;
    for (unsigned long long i = first; i < end; i++) {
        const struct entry *entry = &entries[i % ENTRIES];
        if (!about || entry->about == about)
            fprintf(stderr, "  %.6f thread %d, %s: %s %ld %s\n", entry->time, entry->thread, place_names[entry->place],
                    function_names[entry->function], entry->value,
                    entry->value > 1000 && entry->value < 3000 ? imgdl_error_name((imgdl_status)entry->value) : "");
    }
}

void violation(const char *format, ...)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&is_told))
        for (;;)
            pause();
    va_list values;
    va_start(values, format);
    fprintf(stderr, "VIOLATION (seed %llu): ", (unsigned long long)play_seed);
    vfprintf(stderr, format, values);
    fprintf(stderr, "\n");
    va_end(values);
    write_log(100, NULL);
    fflush(NULL);
    /* For a debugger. */
    if (getenv("IMGDL_PLAYER_STAYS"))
        for (;;)
            pause();
    _exit(1);
}
