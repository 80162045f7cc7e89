#define _GNU_SOURCE
#include "csystem.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Tries: some ten microseconds, as long as to be woken takes. The patience is counted in turns of the clock: a stop of hours uses up
 * one turn, so a thread that could not move meanwhile still has the others. A turn in which a thread at work computes, or waits for
 * a processor, is none of the patience's, only of all: it comes to its end, and has locks until then. The places fill what is left of
 * a shard's cache line. */
enum { PATIENCE_TURNS = 20, ALL_TURNS = 100, TURN_MS = 50, TRIES_BEFORE_SLEEP = 500, SHARDS = 16, PLACES = 15 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
/* The condition of those who wait for the end of a fork. */
static pthread_cond_t passable = PTHREAD_COND_INITIALIZER;
/* Counts who has left while a fork is near: nobody waits to say so, who may have a lock. */
static sem_t left;
/* Threads change `busy` for each callback and each call, so without the gate, and each in its own line of the processor's
 * caches; whoever then finds that a fork is near goes through it. Both are sequentially consistent: either the thread sees the
 * fork, or the fork sees what the thread did before. */
static struct {
    _Alignas(64) atomic_int busy;
    /* Who they are. Of those that share a place and work at once, the first is known. */
    _Atomic(pid_t) threads[PLACES];
} shards[SHARDS];
static atomic_int is_forking;
/* Forks that went on while somebody was at work. */
static atomic_uint impatient_forks;
static atomic_uint threads_seen;

static _Thread_local struct {
    int is_working;
    /* How many `system_thread_enter` have not been restored. */
    int depth;
    /* The depth at which a thread of the library's has forked, in the child. */
    int forked_depth;
    /* Its place is that of its number less 1. */
    unsigned number;
    pid_t thread;
    /* How many there had been when this thread's fork began. */
    unsigned impatient_forks;
    /* Whether it could be cancelled before its fork. */
    int cancellation;
} own;

static atomic_int *own_busy(void)
{
    if (!own.number) {
        own.number = atomic_fetch_add_explicit(&threads_seen, 1, memory_order_relaxed) % (SHARDS * PLACES) + 1;
        own.thread = gettid();
    }
    return &shards[(own.number - 1) % SHARDS].busy;
}

/* Of a thread that has a number, which others may share: numbers of threads that are gone come back. */
static _Atomic(pid_t) *own_place(void)
{
    unsigned place = own.number - 1;
    return &shards[place % SHARDS].threads[place / SHARDS];
}

static void enter_name(void)
{
    _Atomic(pid_t) *place = own_place();
    pid_t nobody = 0;
    if (atomic_load_explicit(place, memory_order_relaxed) == nobody)
        (void)atomic_compare_exchange_strong_explicit(place, &nobody, own.thread, memory_order_relaxed, memory_order_relaxed);
}

static void remove_name(void)
{
    _Atomic(pid_t) *place = own_place();
    if (atomic_load_explicit(place, memory_order_relaxed) == own.thread)
        atomic_store_explicit(place, 0, memory_order_relaxed);
}

static int all_busy(void)
{
    int sum = 0;
    for (int i = 0; i < SHARDS; i++)
        sum += atomic_load(&shards[i].busy);
    return sum;
}

static void leave(void)
{
    atomic_int *busy = own_busy();
    remove_name();
    atomic_fetch_sub(busy, 1);
    if (atomic_load(&is_forking))
        (void)sem_post(&left);
}

static int try_to_pass(void)
{
    if (atomic_load(&is_forking))
        return 0;
    atomic_fetch_add(own_busy(), 1);
    enter_name();
    if (!atomic_load(&is_forking))
        return 1;
    leave();
    return 0;
}

static void pass(void)
{
    while (!try_to_pass()) {
        pthread_mutex_lock(&gate);
        while (is_forking)
            pthread_cond_wait(&passable, &gate);
        pthread_mutex_unlock(&gate);
    }
}

static void set_working(int is_working)
{
    if (own.is_working == is_working)
        return;
    own.is_working = is_working;
    if (is_working) {
        system_rest_end();
        pass();
    } else {
        system_rest_begin();
        leave();
    }
}

int system_thread_enter(int is_working)
{
    int before = own.is_working;
    own.depth++;
    set_working(is_working);
    return before;
}

void system_thread_restore(int before)
{
    own.depth--;
    /* The host's code has returned in the child to a thread of the library's, whose downloader is the parent's. */
    if (own.depth < own.forked_depth)
        _exit(0);
    set_working(before);
}

int system_thread_try_restore(int before)
{
    if (before && !own.is_working) {
        if (!try_to_pass())
            return 0;
        system_rest_end();
        own.is_working = 1;
    }
    own.depth--;
    return 1;
}

void system_thread_let_fork_pass(void)
{
    if (!own.is_working || !atomic_load_explicit(&is_forking, memory_order_relaxed))
        return;
    leave();
    pass();
}

int system_fork_is_near(void) { return atomic_load_explicit(&is_forking, memory_order_relaxed); }

void system_thread_stand_aside(void)
{
    if (atomic_load_explicit(&is_forking, memory_order_relaxed) && !own.is_working)
        sched_yield();
}

/* Whether others are at work, after so many looks. Mostly nobody is, or for a few microseconds: to be woken takes longer. Who
 * sleeps then is woken ahead of those that compute; one that only gave its turn away would come after all of them. */
static int are_others_at_work(int tries)
{
    while (all_busy() > own.is_working)
        if (tries-- == 0)
            return 1;
    return 0;
}

static struct timespec turn_end(void)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += TURN_MS * 1000000L;
    if (end.tv_nsec >= 1000000000L) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000L;
    }
    return end;
}

/* The thread has a processor, or waits for one. 0 where that cannot be read, without descriptors or /proc. */
static int is_running(pid_t thread)
{
    char text[256];
    snprintf(text, sizeof text, "/proc/self/task/%d/stat", (int)thread);
    int file = open(text, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    /* Its name is whatever the host has made it. */
    const char *state = strrchr(text, ')');
    return state && !strncmp(state, ") R", 3);
}

static int is_another_running(void)
{
    for (int i = 0; i < SHARDS; i++)
        for (int k = 0; k < PLACES; k++) {
            pid_t thread = atomic_load_explicit(&shards[i].threads[k], memory_order_relaxed);
            if (thread && thread != own.thread && is_running(thread))
                return 1;
        }
    return 0;
}

void system_fork_approach(void)
{
    own.cancellation = system_thread_hold_cancellation();
    own.impatient_forks = impatient_forks;
}

void system_fork_depart(void) { system_thread_restore_cancellation(own.cancellation); }

void system_fork_prepare(void)
{
    pthread_mutex_lock(&gate);
    while (sem_trywait(&left) == 0) {} /* of the fork before */
    is_forking = 1;
    /* A fork that has waited for another one which lost its patience has none left. */
    int has_patience = own.impatient_forks == impatient_forks, tries = TRIES_BEFORE_SLEEP;
    int patience = PATIENCE_TURNS, turns = has_patience ? ALL_TURNS : 1;
    struct timespec end = turn_end();
    while (are_others_at_work(tries)) {
        tries = 0;
        if (sem_clockwait(&left, CLOCK_MONOTONIC, &end) == 0 || errno == EINTR)
            continue;
        patience -= !is_another_running();
        if (--turns == 0 || patience == 0) {
            impatient_forks++;
            return;
        }
        end = turn_end();
    }
}

void system_fork_parent(void)
{
    is_forking = 0;
    pthread_cond_broadcast(&passable);
    pthread_mutex_unlock(&gate);
}

void system_fork_child(void)
{
    is_forking = 0;
    for (int i = 0; i < SHARDS; i++) {
        shards[i].busy = 0;
        for (int k = 0; k < PLACES; k++)
            shards[i].threads[k] = 0;
    }
    own.thread = gettid();
    if (own.is_working) {
        *own_busy() = 1;
        enter_name();
    }
    /* It is the host's from now on, until its callback returns, and can be cancelled as others of the host's. */
    if (system_thread_is_library()) {
        own.forked_depth = own.depth;
        own.cancellation = PTHREAD_CANCEL_ENABLE;
    }
    system_thread_become_hosts();
    /* Who waited for it is not in this process. */
    pthread_cond_init(&passable, NULL);
    (void)sem_init(&left, 0, 0);
    pthread_mutex_unlock(&gate);
}

__attribute__((constructor)) static void loaded(void) { (void)sem_init(&left, 0, 0); }
