/* imgdl-player: plays the whole of include/imgdl.h at random, from many threads and from inside whatever the library calls,
 * and holds what it sees against the header's promises. moves.def has all functions; each has a move. */
#ifndef PLAYER_H
#define PLAYER_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* Statuses that do not matter are dropped here and there. */
#define IMGDL_CHECKED
#include "imgdl.h"

#ifdef __has_feature
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HAS_SANITIZER
#endif
#endif

/* ---- What may be switched off: by --without NAME */

enum feature {
    FORKS,
    EXITS,
    EXECUTOR_RELEASES,
    DESTROYS_INSIDE,
    STOPS,
    SHORT_THREADS,
    SHORT_DESCRIPTORS,
    SHORT_MEMORY,
    SHORT_DISK,
    HOST_THREADS_WAIT,
    FEATURES
};
extern const char *const feature_names[FEATURES];
extern int has_feature[FEATURES];

/* ---- Chance */

extern uint64_t play_seed;
uint32_t chance(uint32_t below); /* 0 … below - 1, by a generator of the thread's own */
int one_in(uint32_t count);
void seed_thread(uint64_t number);
extern _Thread_local int is_players_thread; /* not the library's */

/* ---- Where a call is made, and what it may answer */

enum place {
#define PLACE(place, title) place,
#define CELL(cell, text, may_deadlock, may_wait)
#define RULE(rule, ...)
#include "rules.def"
#undef PLACE
#undef CELL
#undef RULE
    PLACES
};
extern const char *const place_names[PLACES];
extern _Thread_local enum place here;
extern _Thread_local int depth; /* calls of the library inside calls of the host's */

enum function {
#define MOVE(function, rule, waits) F_##function,
#include "moves.def"
#undef MOVE
    FUNCTIONS
};
extern const char *const function_names[FUNCTIONS];

/* Makes the call, writes it to the log, and holds it against the rule of the function: also while it lasts. */
#define judge(function, call) judge_answer(function, (begin_call(function), call))
imgdl_status judge_answer(enum function function, imgdl_status status);
/* Seconds that a call from here may take which is not to wait, or not for what may need this thread; 0: it may wait. `place`:
 * the one that says so. */
unsigned patience_with(enum function function, enum place *place);
const char *cell_text(enum function function, enum place place);
/* The same for what returns no status. */
void note(enum function function, long value);
void log_call(enum function function, long value);
/* How often each was called, with a handle that lives where it takes one. */
extern atomic_ulong played[FUNCTIONS];
/* From now on everything is in that place, the child of a fork or of exit(): there each answer is judged by that column, and
 * handles are those of before. */
void become_child(enum place place);
extern enum place child_place; /* HOST in the process that plays */
/* What a child's functions have answered as their column says, in all children: of those that answer a code there. */
int has_answered(enum place place, enum function function);
int is_answered_by_code(enum place place, enum function function);
/* The same of WOULD_DEADLOCK in the other places, in the process that plays. */
int is_deadlock_there(enum place place, enum function function);
/* One whose WOULD_DEADLOCK nobody has seen there yet; FUNCTIONS: none. */
enum function missing_deadlock(enum place place);
void prepare_answers(void); /* before the first child */
/* A promise is broken: says so, with what was done last, and ends the process. */
void violation(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void write_log(unsigned most, const void *about);
extern _Thread_local const void *about_now; /* the ward whose function runs on this thread */

/* Around whatever takes handles or leaves some: 0 where the round is over, and nobody is to. */
int begin_move(void);
void end_move(void);
int is_playing(void);
void end_round(void); /* in a child, which makes no moves, whatever is called there */
/* One random move, from wherever this is. */
void play(void);
void play_function(enum function function);
/* In a place that is seldom come to: those whose WOULD_DEADLOCK nobody has seen there yet. */
void play_missing(void);
/* What is called by the library may play, too. */
void play_inside(enum place place);
/* The same where the place has been entered: one in so many times. */
void play_here(unsigned seldom);
/* The same with no move. */
enum place enter(enum place place);
void leave(enum place before);

/* ---- Calls that wait where they must not */

void waits_start(void);
void begin_call(enum function function);
void end_call(void);
/* Of the thread's innermost call: a function of the host's runs in it. */
void host_begins(void);
void host_ends(void);
/* For a test: the function waits there for so long. */
void wait_in(const char *place, const char *function, const char *milliseconds);
/* Likewise: what is named happens, and is seen. */
void see(const char *what);

/* ---- Waiting for what others do */

void bell_start(void);
/* Something has been done that the main thread may wait for: an end, a handle that is found, a thread that rests. */
void ring(void);
/* Until somebody has rung since the last call, or a pumped executor has something to run, or that moment. */
void await_ring(double end);
/* What all threads do. */
enum phase { AT_REST, PLAYING, CLOSING };
void begin_phase(enum phase next);
void await_phase(enum phase awaited);

/* ---- What the library is given to call, and may not call any more after its end */

enum ward_kind { REQUEST, BATCH, HOOKS, OBSERVING, TRANSPORT, CODER, CACHE, DONE, WARD_KINDS };
struct executor_model;
struct ward {
    enum ward_kind kind;
    atomic_int accepted; /* 1: the library owes its end; -1: refused */
    imgdl_status status; /* of the call that was given it */
    atomic_int terminals, destroyed, inside, calls;
    int is_silent; /* a request without a callback: its end is not told */
    imgdl_event_mask mask;
    struct executor_model *executor; /* pumped, of a request or batch; NULL */
    _Atomic(void *) handle;          /* of a cache, once it is open */
    double born;
    char url[200];
};
struct ward *new_ward(enum ward_kind kind);
/* Around each call of the host's functions with it. `may_overlap`: those of a table may run on several threads. */
void enter_ward(struct ward *ward, int may_overlap);
void leave_ward(struct ward *ward);
void ward_destroyed(void *ward); /* an imgdl_destructor */
void accept_ward(struct ward *ward, imgdl_status status);
/* Waits until each has what it is owed, and holds them against the model. */
void settle_wards(void (*meanwhile)(void), double patience);
void forget_wards(void);
extern atomic_long ward_count;

/* ---- Handles */

enum kind {
    IMAGE,
    DATA,
    DECODER,
    EXECUTOR,
    HOOK_TABLE,
    CONTINUATION,
    DOWNLOADER,
    TOKEN,
    A_BATCH,
    A_CODER,
    TRANSFER,
    A_CACHE,
    KINDS
};
/* Any of them: nearly always one of that kind that lives, else a stale one, NULL, another kind's, or no handle at all. In a
 * child the one that is inherited. */
void *pick(enum kind kind);
/* Of the cache whose event runs on the thread: picked mostly; NULL in no event. */
extern _Thread_local void *cache_of_event;
/* Whether the last one that the thread has picked or taken was of that kind, and lived; 1 when it has wanted none. */
extern _Thread_local int has_living;
/* In a child: these and no others. */
void inherit(void *const handles[KINDS]);
/* Around fork(): no other thread is in the shelves, or adds a ward or an executor. */
void hold_shelves(void);
void let_shelves_go(void);
void hold_wards(void);
void let_wards_go(void);
void hold_executors(void);
void let_executors_go(void);
/* Nobody else gets it any more; NULL when there is none. */
void *take(enum kind kind);
/* Puts it where others find it; a full shelf gives another one back, to be released. */
void *put(enum kind kind, void *handle);
int is_full(enum kind kind);
/* One that lives, nearly always: it may be released at this moment. NULL: there is none. */
void *pick_living(enum kind kind);
void put_or_release(enum kind kind, void *handle);
void release_handle(enum kind kind, void *handle);
/* It is not to be found any more but as a stale one. */
void forget_handle(enum kind kind, void *handle);
void release_all(void);

/* ---- Executors */

struct executor_model {
    imgdl_executor *handle;
    atomic_int references;
    atomic_int dispatching;
    atomic_int unreleased; /* references whose release has not returned */
    atomic_int inside;     /* callbacks that run */
    atomic_int late;       /* callbacks that began after the last one had; one may have been in hand */
};
/* Around each callback that runs there; NULL for one that runs elsewhere. Gives what the thread was inside of. */
struct executor_model *enter_executor(struct executor_model *model);
void leave_executor(struct executor_model *outer);
struct executor_model *model_of(imgdl_executor *executor);
void new_executor(void);
unsigned count_executors(void); /* that have references */
int dispatch(struct executor_model *model, uint32_t most); /* how many ran; -1: another thread is at it */
/* Whose callback runs on this thread; NULL: none of a pumped executor. */
extern _Thread_local struct executor_model *dispatching;
void dispatch_all(void);
/* Those that become readable when there is something to run, and that nobody dispatches now: how many. */
unsigned executor_descriptors(struct pollfd *places, unsigned room);
imgdl_executor *random_executor(struct executor_model **model);
/* In a child: nor does the thread run a callback of one any more. */
void nobody_dispatches(void);
/* Where a downloader's callbacks run that name no executor: a pumped one, inline, or on a thread of its own. */
struct delivery {
    struct executor_model *model;
    int is_inline;
};
void note_delivery(imgdl_downloader *downloader, struct delivery delivery);
struct delivery delivery_of(imgdl_downloader *downloader);

/* ---- Requests and what they name */

extern const char *origin;         /* such as http://127.0.0.1:4711 */
extern const char *http2_origin;   /* the same pictures, by TLS and HTTP/2 */
extern const char *http2_ca_file;  /* whom to trust there */
extern const char *scratch_folder;
struct picture {
    const char *name;
    uint8_t *bytes;
    size_t size;
};
extern const imgdl_status_range accepted_statuses[2];
extern const char *const accepted_types[2];
extern const struct picture *pictures;
extern unsigned picture_count;
/* Of that downloader's. All that it points to lives until the thread asks for the next one. */
imgdl_request random_request(struct ward *ward, imgdl_downloader *downloader);
imgdl_decode_options random_decode_options(void);
/* Where its callbacks will run, too. */
imgdl_config random_config(struct delivery *delivery);
void answer_continuation(imgdl_continuation *next);
/* First by one of the functions, such as F_imgdl_continue_with_data, which may be no answer to its question. */
void answer_continuation_by(enum function function, imgdl_continuation *next);
void report_transfer(imgdl_transfer *transfer);
int are_canvases_back(void);

/* ---- When a round has ended */

void check_statistics(imgdl_downloader *downloader); /* of one that is idle */
void check_shared(void);
void check_process(unsigned round);
extern atomic_int is_measured; /* the first rounds say what the process is, and nothing of theirs is to be left then */
unsigned count_descriptors(void); /* but those of executors, which stay for the next round */
long allocated_kilobytes(void);
void note_allocated(long kilobytes);
void check_growth(void);
void note_end(imgdl_status code); /* of a request */
void print_ends(void);
/* What nobody has played in a play of so many seconds. */
unsigned count_missing(double seconds, int is_said);
/* For all functions to be played, by what is switched on, too. */
int is_long_enough(double seconds);

/* ---- The rest */

double seconds_now(void);
void give_up(const char *what) __attribute__((noreturn));
/* Gives the folder that they are served from, with animations besides. */
const char *read_pictures(const char *folder);
void start_origin(const char *program, const char *folder);
void remove_folder(const char *path);
void faults_start(void);
void faults_round(int is_on);
void faults_end(void); /* whatever is short at this moment is not any more */
/* Something lies on a shelf that no child has had. */
extern atomic_int awaits_child;
void play_fork(void);
void play_exit(void);
/* Now and then, from whatever is called by the library. */
void fork_inside(void);
void reap_children(int waits);
void children_prepare(void); /* before the library is used */
/* For test_sees.py. */
void see_hanging_child(void);
static inline void ignore(long unused) { (void)unused; }
unsigned count_entries(const char *folder); /* of /proc/self */
void print_descriptors(void);                /* what each of this process leads to */
long resident_kilobytes(void);

#endif
