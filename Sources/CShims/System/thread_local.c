#include "csystem.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

static _Thread_local int is_library;
static _Thread_local const void *occupation;
/* The signal mask of the host's thread that started this one. */
static _Thread_local sigset_t hosts_mask;
static _Thread_local char last_error[1024];

uint64_t system_thread_number(void)
{
    static atomic_uint_fast64_t last;
    static _Thread_local uint64_t number;
    if (!number)
        number = atomic_fetch_add(&last, 1) + 1;
    return number;
}

void system_thread_become_library(const sigset_t *mask)
{
    is_library = 1;
    hosts_mask = *mask;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

void system_thread_get_hosts_mask(sigset_t *mask)
{
    if (is_library)
        *mask = hosts_mask;
    else
        (void)pthread_sigmask(SIG_SETMASK, NULL, mask);
}

void system_thread_become_hosts(void)
{
    if (!is_library)
        return;
    is_library = 0;
    (void)pthread_sigmask(SIG_SETMASK, &hosts_mask, NULL);
}

int system_thread_is_library(void) { return is_library; }

int system_thread_hold_cancellation(void)
{
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void system_thread_restore_cancellation(int before) { (void)pthread_setcancelstate(before, NULL); }

void system_thread_set_occupation(const void *now) { occupation = now; }

const void *system_thread_occupation(void) { return occupation; }

void system_thread_set_last_error(const char *message)
{
    strncpy(last_error, message, sizeof last_error - 1);
    last_error[sizeof last_error - 1] = '\0';
}

const char *system_thread_last_error(void) { return last_error; }
