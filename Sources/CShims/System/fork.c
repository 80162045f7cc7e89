#include "csystem.h"

/* Swift's runtime locks with FUTEX_LOCK_PI, by a thread number that each thread keeps in this variable of the runtime.
 * fork() gives the thread that forked another number in the child: a lock that it takes there and that a second thread
 * waits for is never let go. Zero makes the runtime ask again. The variable has no name in the dynamic runtime, which
 * only tests use; without it here, the linker says so when a newer runtime does it otherwise. */
#ifdef SYSTEM_STATIC_SWIFT_RUNTIME
extern __thread uint32_t swift_thread_number __asm__("_ZZN5swift14threading_impl5linux13ulock_get_tidEvE3tid");
#endif

void system_forget_thread_number(void)
{
#ifdef SYSTEM_STATIC_SWIFT_RUNTIME
    swift_thread_number = 0;
#endif
}
