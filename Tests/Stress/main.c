/* imgdl-player --origin PROGRAM --pictures FOLDER [--seed N] [--seconds N] [--threads N] [--without NAME,NAME]
 *              [--skip PART-OF-A-FUNCTION,…]
 *
 * Plays in rounds of some two seconds. After each all that was begun has to come to its end, and the process has to be what
 * it was. Prints the seed first: with it the same moves are made, though not at the same moments. */
#include "moves.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 32 };
enum { MOST_TIMES = 4 }; /* so much longer, until all has been played */

static void (*const moves[FUNCTIONS])(void) = {
#define MOVE(function, rule, waits) move_##function,
#include "moves.def"
#undef MOVE
};
static int is_skipped[FUNCTIONS], is_any_skipped;
static atomic_int is_round, at_rest, moves_in_work;

int is_playing(void) { return atomic_load(&is_round); }

int begin_move(void)
{
    atomic_fetch_add(&moves_in_work, 1);
    if (atomic_load(&is_round))
        return 1;
    end_move();
    return 0;
}

void end_round(void) { atomic_store(&is_round, 0); }

void end_move(void)
{
    if (atomic_fetch_sub(&moves_in_work, 1) == 1)
        ring();
}

void play_function(enum function function)
{
    int outer = has_living;
    has_living = 1;
    moves[function]();
    has_living = outer;
}

/* Downloads, and what lets them go on, make up a third. After the end of a round nobody moves any more. */
void play(void)
{
    if (!begin_move())
        return;
    static const enum function often[] = {
        F_imgdl_download, F_imgdl_download, F_imgdl_executor_dispatch, F_imgdl_executor_dispatch,
        F_imgdl_continue_with_request, F_imgdl_downloader_enter_foreground};
    enum function function = one_in(3) ? often[chance(sizeof often / sizeof *often)] : (enum function)chance(FUNCTIONS);
    /* What waits where it must not is looked for first. */
    enum function missing = one_in(2) ? missing_deadlock(here) : FUNCTIONS;
    if (missing != FUNCTIONS)
        function = missing;
    if (!is_skipped[function])
        play_function(function);
    end_move();
}

void play_missing(void)
{
    enum { MOST = 16 };
    if (!begin_move())
        return;
    for (unsigned i = 0; i < MOST; i++) {
        enum function function = missing_deadlock(here);
        if (function != FUNCTIONS && !is_skipped[function])
            play_function(function);
    }
    end_move();
}

/* ---- Threads that play while a round lasts */

static unsigned thread_count = 8;

static void *run(void *number)
{
    seed_thread((uint64_t)(uintptr_t)number);
    for (;;) {
        atomic_fetch_add(&at_rest, 1);
        ring();
        await_phase(PLAYING);
        atomic_fetch_sub(&at_rest, 1);
        while (atomic_load(&is_round)) {
            play();
            if (has_feature[FORKS] && (one_in(100) || atomic_exchange(&awaits_child, 0)))
                play_fork();
            if (one_in(800) && has_feature[EXITS])
                play_exit();
        }
    }
    return NULL;
}

/* What lets everything end: callbacks are dispatched, questions answered, transfers reported. */
static void let_go_on(void)
{
    dispatch_all();
    for (void *next; (next = take(CONTINUATION));)
        answer_continuation(next);
    for (void *transfer; (transfer = take(TRANSFER));)
        report_transfer(transfer);
    reap_children(0);
}

static void until(int (*is_so)(void), const char *what)
{
    for (double end = seconds_now() + 60; !is_so();) {
        if (seconds_now() > end)
            violation("after 60 s %s", what);
        let_go_on();
        if (!is_so())
            await_ring(end);
    }
}

static int are_at_rest(void) { return atomic_load(&at_rest) == (int)thread_count && !atomic_load(&moves_in_work); }

/* ---- The end of a round: on a thread of its own what waits, while the main thread lets it go on */

static atomic_int is_closed;
static int closed(void) { return atomic_load(&is_closed); }

/* Whether it is idle. Nothing is delivered on this thread, so that there is no other reason not to be. */
static int becomes_idle(imgdl_downloader *downloader, int64_t milliseconds)
{
    imgdl_status status = imgdl_downloader_wait_idle(downloader, milliseconds);
    if (status != IMGDL_OK && status != IMGDL_ERROR_WAIT_TIMEOUT && status != IMGDL_ERROR_INVALID_HANDLE)
        violation("waiting at the end of a round is %s", imgdl_error_name(status));
    return status != IMGDL_ERROR_WAIT_TIMEOUT;
}

static void close_downloader(imgdl_downloader *downloader)
{
    imgdl_downloader_set_suspended(downloader, 0);
    imgdl_downloader_enter_foreground(downloader);
    if (!becomes_idle(downloader, 3000)) {
        /* A batch that is paused, and that nobody has a handle of. */
        imgdl_downloader_cancel_all(downloader);
        if (!becomes_idle(downloader, 40000))
            violation("a downloader is not idle 40 s after cancel_all: %llu are left",
                      (unsigned long long)imgdl_downloader_current_count(downloader));
    }
    check_statistics(downloader);
    if (one_in(2) && atomic_load(&is_measured))
        imgdl_downloader_release(downloader);
    else
        judge(F_imgdl_downloader_destroy, imgdl_downloader_destroy(downloader));
}

static void *close_all(void *unused)
{
    (void)unused;
    seed_thread(99);
    static const enum kind kinds[] = {TOKEN, IMAGE, DATA, DECODER};
    for (;;) {
        await_phase(CLOSING);
        for (void *batch; (batch = take(A_BATCH));) {
            imgdl_batch_set_paused(batch, 0);
            imgdl_batch_release(batch);
        }
        for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
            for (void *handle; (handle = take(kinds[i]));)
                release_handle(kinds[i], handle);
        for (void *downloader; (downloader = take(DOWNLOADER));)
            close_downloader(downloader);
        release_all();
        begin_phase(AT_REST);
        atomic_store(&is_closed, 1);
        ring();
    }
    return NULL;
}

static void play_round(unsigned round)
{
    while (chance(3))
        new_executor();
    for (unsigned i = 0; i < 3; i++)
        move_imgdl_downloader_create();
    faults_round(1);
    atomic_store(&is_round, 1);
    begin_phase(PLAYING);
    /* A host whose loop comes round now and then. */
    for (double end = seconds_now() + 1.0 + chance(1500) / 1000.0; seconds_now() < end; usleep(500)) {
        dispatch_all();
        reap_children(0);
    }
    faults_round(0);
    begin_phase(AT_REST);
    atomic_store(&is_round, 0);
    until(are_at_rest, "a thread is still in a call");
    atomic_store(&is_closed, 0);
    begin_phase(CLOSING);
    until(closed, "downloaders and caches are not closed");
    settle_wards(let_go_on, 30);
    check_shared();
    reap_children(1);
    long count = atomic_load(&ward_count);
    forget_wards();
    /* Of what was released while it decoded for nobody, a moment after everybody was told. */
    until(are_canvases_back, "canvases in memory of ours are not given back");
    check_process(round);
    printf("round %u: %ld requests and tables, %u threads, %u descriptors, %ld KiB, %ld allocated\n", round, count,
           count_entries("task"), count_descriptors(), resident_kilobytes(), allocated_kilobytes());
    fflush(stdout);
}

/* ---- The start */

static void switch_off(char *names)
{
    for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
        int found = 0;
        for (unsigned i = 0; i < FEATURES; i++)
            if (!strcmp(name, feature_names[i]))
                has_feature[i] = 0, found = 1;
        if (!found)
            give_up(name);
    }
}

static void skip(char *names)
{
    for (char *name = strtok(names, ","); name; name = strtok(NULL, ","))
        for (unsigned i = 0; i < FUNCTIONS; i++)
            if (strstr(function_names[i], name))
                is_skipped[i] = is_any_skipped = 1;
}

int main(int argc, char **argv)
{
    const char *program = NULL, *folder = NULL;
    if (argc == 5 && !strcmp(argv[1], "--wait-in"))
        return wait_in(argv[2], argv[3], argv[4]), 0;
    if (argc == 3 && !strcmp(argv[1], "--see"))
        return see(argv[2]), 0;
    double seconds = 60;
    play_seed = (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;
    for (unsigned i = 0; i < FEATURES; i++)
        has_feature[i] = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        if (!strcmp(name, "--origin"))
            program = argv[i + 1];
        else if (!strcmp(name, "--pictures"))
            folder = argv[i + 1];
        else if (!strcmp(name, "--seed"))
            play_seed = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(name, "--seconds"))
            seconds = strtod(argv[i + 1], NULL);
        else if (!strcmp(name, "--threads"))
            thread_count = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (!strcmp(name, "--without"))
            switch_off(argv[i + 1]);
        else if (!strcmp(name, "--skip"))
            skip(argv[i + 1]);
        else
            program = NULL, i = argc;
    }
    if (!program || !folder || !thread_count || thread_count > MOST_THREADS) {
        fprintf(stderr, "imgdl-player --origin PROGRAM --pictures FOLDER [--seed N] [--seconds N] [--threads N] "
                        "[--without NAME,NAME] [--skip FUNCTION,FUNCTION]\n");
        return 2;
    }
    printf("seed %llu\n", (unsigned long long)play_seed);
    fflush(stdout);
    static char scratch[] = "/tmp/imgdl-player-XXXXXX";
    if (!mkdtemp(scratch))
        give_up(scratch);
    scratch_folder = scratch;
    bell_start();
    prepare_answers();
    children_prepare();
    start_origin(program, read_pictures(folder));
    faults_start();
    waits_start();
    seed_thread(0);
    for (unsigned i = 0; i < thread_count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, (void *)(uintptr_t)(i + 1)) != 0)
            give_up("pthread_create");
    }
    atomic_store(&is_closed, 1);
    pthread_t closer;
    if (pthread_create(&closer, NULL, close_all, NULL) != 0)
        give_up("pthread_create");
    until(are_at_rest, "threads have not begun");
    double begun = seconds_now();
    unsigned rounds = 0;
    int is_for_all = is_long_enough(seconds) && !is_any_skipped;
    do
        play_round(rounds++);
    while (seconds_now() < begun + seconds ||
           (is_for_all && seconds_now() < begun + seconds * MOST_TIMES && count_missing(seconds, 0)));
    check_growth();
    remove_folder(scratch);
    print_ends();
    unsigned missing = count_missing(seconds, 1);
    int is_failed = missing && is_for_all;
    printf("%u rounds, %u not played%s\n", rounds, missing, is_failed ? ", in time enough for all" : "");
    printf("%d passed, %d failed, 0 skipped\n", !is_failed, is_failed);
    return is_failed;
}
