/* Chance, the log, and places: what a call may answer where. */
#include "player.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

const char *const feature_names[FEATURES] = {
    [FORKS] = "forks", [EXITS] = "exits", [EXECUTOR_RELEASES] = "executor-releases", [DESTROYS_INSIDE] = "destroys-inside",
    [STOPS] = "stops", [SHORT_THREADS] = "short-threads", [SHORT_DESCRIPTORS] = "short-descriptors",
    [SHORT_MEMORY] = "short-memory", [SHORT_DISK] = "short-disk", [HOST_THREADS_WAIT] = "waits"};
int has_feature[FEATURES];

_Thread_local enum place here = HOST;
_Thread_local int depth;
/* How often the thread is in each place, one within the other. */
static _Thread_local unsigned char inside[PLACES];

const char *const function_names[FUNCTIONS] = {
#define MOVE(function, rule, waits) #function,
#include "moves.def"
#undef MOVE
};

/* rules.def, three times: its places, its cells, its rules. */
const char *const place_names[PLACES] = {
#define PLACE(place, title) title,
#define CELL(cell, text, may_deadlock, may_wait)
#define RULE(rule, ...)
#include "rules.def"
#undef PLACE
#undef CELL
};
enum cell {
#define PLACE(place, title)
#define CELL(cell, text, may_deadlock, may_wait) CELL_##cell,
#include "rules.def"
#undef CELL
    CELLS
};
static const struct {
    const char *text;
    int may_deadlock, may_wait;
} cells[CELLS] = {
#define CELL(cell, text, may_deadlock, may_wait) {text, may_deadlock, may_wait},
#include "rules.def"
#undef CELL
#undef RULE
};
#define CELL(cell, text, may_deadlock, may_wait)
enum rule {
#define RULE(rule, ...) RULE_##rule,
#include "rules.def"
#undef RULE
    RULES
};
static const enum cell table[RULES][PLACES] = {
#define RULE(rule, host, inlined, delivery, dispatched, hook, codec, destructor, observer, cache_event, after_fork, after_exit)  \
    {CELL_##host,  CELL_##inlined,    CELL_##delivery, CELL_##dispatched,  CELL_##hook,       CELL_##codec,                      \
     CELL_##destructor, CELL_##observer, CELL_##cache_event, CELL_##after_fork, CELL_##after_exit},
#include "rules.def"
#undef RULE
#undef PLACE
#undef CELL
};
static const struct {
    enum rule rule;
    const char *waits;
} functions[FUNCTIONS] = {
#define MOVE(function, rule, waits) {RULE_##rule, waits},
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

static void log_call(enum function function, long value)
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

/* ---- Places */

enum place enter(enum place place)
{
    enum place before = here;
    host_begins();
    here = place;
    inside[here]++;
    depth++;
    return before;
}

void leave(enum place before)
{
    inside[here]--;
    here = before;
    depth--;
    host_ends();
}

void play_inside(enum place place)
{
    enum place before = enter(place);
    if (depth < 3 && one_in(6))
        play();
    leave(before);
}

/* ---- Judging */

atomic_ulong played[FUNCTIONS];
enum place child_place = HOST;
_Thread_local int has_living;
/* Shared with all children: whether they have seen the answer of their column. */
static atomic_uchar (*answers)[FUNCTIONS];

void prepare_answers(void)
{
    answers = mmap(NULL, PLACES * sizeof *answers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (answers == MAP_FAILED)
        give_up("mmap");
}

void become_child(enum place place) { child_place = place; }

static enum cell cell_of(enum function function, enum place place) { return table[functions[function].rule][place]; }

int has_answered(enum place place, enum function function) { return answers[place][function]; }

int is_answered_by_code(enum place place, enum function function)
{
    enum cell cell = cell_of(function, place);
    return cell == CELL_FORKED || cell == CELL_SHUT_DOWN || cell == CELL_NOTHING;
}

/* What may be wrong besides is looked for first by some. */
static int is_refusal(imgdl_status status)
{
    return status == IMGDL_ERROR_INVALID_ARGUMENT || status == IMGDL_ERROR_INVALID_URL ||
           status == IMGDL_ERROR_INVALID_HEADER || status == IMGDL_ERROR_UNSUPPORTED_OPTION ||
           status == IMGDL_ERROR_UNSUPPORTED_SCHEME ||
           (status == IMGDL_ERROR_INVALID_HANDLE && !has_living);
}

static void judge_child(enum function function, imgdl_status status)
{
    enum cell cell = cell_of(function, child_place);
    imgdl_status expected = cell == CELL_FORKED ? IMGDL_ERROR_FORKED : cell == CELL_SHUT_DOWN ? IMGDL_ERROR_SHUT_DOWN : IMGDL_OK;
    /* What is over already is OK everywhere. */
    if (status == IMGDL_OK && cell == CELL_SHUT_DOWN && functions[function].rule == RULE_WAITS)
        return;
    if (expected == IMGDL_OK ? status == IMGDL_ERROR_FORKED || status == IMGDL_ERROR_SHUT_DOWN ||
                                   status == IMGDL_ERROR_WOULD_DEADLOCK
                             : status != expected && !is_refusal(status))
        violation("%s gave %d (%s) %s, where it is \"%s\": %s", function_names[function], status, imgdl_error_name(status),
                  place_names[child_place], cells[cell].text, imgdl_last_error());
    if (status == expected)
        atomic_store(&answers[child_place][function], 1);
}

/* What a place forbids holds in whatever is called there, too. */
static int may_deadlock(enum function function)
{
    for (int place = HOST; place < PLACES; place++)
        if ((inside[place] || place == (int)here) && cells[cell_of(function, (enum place)place)].may_deadlock)
            return 1;
    return 0;
}

static int may_wait(enum function function)
{
    for (int place = HOST; place < PLACES; place++)
        if (inside[place] && !cells[cell_of(function, (enum place)place)].may_wait)
            return 0;
    return cells[cell_of(function, here)].may_wait && *functions[function].waits;
}

unsigned patience_with(enum function function, enum place *place)
{
    /* Where it waits for others, such as a timeout of milliseconds or the disk. */
    enum { AT_ONCE = 10, SOON = 30 };
    unsigned least = 0;
    for (int at = HOST; at < PLACES && child_place == HOST; at++) {
        enum cell cell = cell_of(function, (enum place)at);
        int is_there = inside[at] || at == (int)here;
        if (!is_there || (!cells[cell].may_deadlock && (cells[cell].may_wait || !*functions[function].waits)))
            continue;
        unsigned patience = cells[cell].may_wait ? SOON : AT_ONCE;
        if (!least || patience < least)
            least = patience, *place = (enum place)at;
    }
    return least;
}

const char *cell_text(enum function function, enum place place) { return cells[cell_of(function, place)].text; }

imgdl_status judge_answer(enum function function, imgdl_status status)
{
    end_call();
    log_call(function, status);
    if (status == IMGDL_ERROR_INTERNAL || !strcmp(imgdl_error_name(status), "IMGDL_ERROR_UNKNOWN"))
        violation("%s gave %d (%s) in %s: %s", function_names[function], status, imgdl_error_name(status),
                  place_names[here], imgdl_last_error());
    if (child_place != HOST) {
        judge_child(function, status);
        return status;
    }
    if (status != IMGDL_ERROR_INVALID_HANDLE)
        atomic_fetch_add(&played[function], 1);
    if (status == IMGDL_ERROR_FORKED)
        violation("%s gave FORKED in the process that made the handle", function_names[function]);
    if (status == IMGDL_ERROR_SHUT_DOWN && functions[function].rule == RULE_MAKES)
        violation("%s gave SHUT_DOWN, and nobody has called exit()", function_names[function]);
    if (status == IMGDL_ERROR_WOULD_DEADLOCK && !may_deadlock(function))
        violation("%s gave WOULD_DEADLOCK in %s, where it is \"%s\"", function_names[function], place_names[here],
                  cells[cell_of(function, here)].text);
    if (status == IMGDL_ERROR_WAIT_TIMEOUT && !may_wait(function))
        violation("%s has waited in %s, where it is \"%s\"", function_names[function], place_names[here],
                  cells[cell_of(function, here)].text);
    return status;
}

void note(enum function function, long value)
{
    log_call(function, value);
    if (child_place == HOST) {
        if (has_living)
            atomic_fetch_add(&played[function], 1);
        return;
    }
    if (cell_of(function, child_place) != CELL_NOTHING)
        return;
    if (value != 0 && value != -1)
        violation("%s gave %ld %s", function_names[function], value, place_names[child_place]);
    if (has_living)
        atomic_store(&answers[child_place][function], 1);
}
