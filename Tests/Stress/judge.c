/* Places, and what a call may answer where. */
#include "player.h"

#include <string.h>
#include <sys/mman.h>

_Thread_local enum place here = HOST;
_Thread_local int depth;
/* How often the thread is in each place, one within the other. */
static _Thread_local unsigned char inside[PLACES];

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

void play_here(unsigned seldom)
{
    /* Some places are seldom come to: none is left before its WOULD_DEADLOCK has been asked for. */
    if (depth < 3 && (missing_deadlock(here) != FUNCTIONS || one_in(seldom)))
        play();
    fork_inside();
}

void play_inside(enum place place)
{
    enum place before = enter(place);
    play_here(6);
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

static int is_never(enum cell cell)
{
    return cell == CELL_NEVER || cell == CELL_NEVER_1 || cell == CELL_NEVER_2 || cell == CELL_NEVER_3 ||
           cell == CELL_NEVER_4;
}

int is_deadlock_there(enum place place, enum function function) { return is_never(cell_of(function, place)); }

enum function missing_deadlock(enum place place)
{
    /* From any of them on, so that one that is seldom seen does not keep the others from it. */
    unsigned first = chance(FUNCTIONS);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        enum function function = (enum function)((first + i) % FUNCTIONS);
        if (is_deadlock_there(place, function) && !has_answered(place, function))
            return function;
    }
    return FUNCTIONS;
}

/* A downloader that was shut down says so, too. */
static int may_be_shut_down(enum function function)
{
    enum rule rule = functions[function].rule;
    return rule == RULE_READS || rule == RULE_ASKS || function == F_imgdl_transport_register;
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
    if (status == IMGDL_ERROR_SHUT_DOWN && !may_be_shut_down(function))
        violation("%s gave SHUT_DOWN, and nobody has called exit()", function_names[function]);
    if (status == IMGDL_ERROR_WOULD_DEADLOCK && !may_deadlock(function))
        violation("%s gave WOULD_DEADLOCK in %s, where it is \"%s\"", function_names[function], place_names[here],
                  cells[cell_of(function, here)].text);
    if (status == IMGDL_ERROR_WOULD_DEADLOCK && is_deadlock_there(here, function))
        atomic_store(&answers[here][function], 1);
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
