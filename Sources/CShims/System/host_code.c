#include "csystem.h"

static _Thread_local int locks;
/* How many of the host's functions the thread is in, one within the other. */
static _Thread_local int depth;

void system_lock_taken(void) { locks++; }

void system_lock_left(void) { locks--; }

int system_locks_held(void) { return locks; }

void system_host_code_begin(void)
{
    if (depth++ == 0)
        system_thread_end_work();
}

void system_host_code_end(void)
{
    if (--depth == 0)
        system_thread_begin_work();
}
