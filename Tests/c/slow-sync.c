/* Loaded before everything else (LD_PRELOAD): a disk that takes 20 ms for each sync, as one that turns does. The sync whose
   number FAILING_SYNC is, from 1, fails. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* How many there were. */
atomic_uint slow_syncs;

static int wait_and_call(const char *name, int descriptor)
{
    int (*call)(int);
    *(void **)&call = dlsym(RTLD_NEXT, name);
    struct timespec rest = {0, 20 * 1000 * 1000};
    const char *failing = getenv("FAILING_SYNC");
    unsigned long number = 1 + atomic_fetch_add(&slow_syncs, 1);
    while (nanosleep(&rest, &rest)) {}
    if (failing && strtoul(failing, NULL, 10) == number) {
        errno = EIO;
        return -1;
    }
    return call(descriptor);
}

int fdatasync(int descriptor) { return wait_and_call("fdatasync", descriptor); }
int fsync(int descriptor) { return wait_and_call("fsync", descriptor); }
int syncfs(int descriptor) { return wait_and_call("syncfs", descriptor); }
