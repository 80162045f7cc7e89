/* Loaded before everything else (LD_PRELOAD): a disk that takes 20 ms for each sync, as one that turns does. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>

/* How many there were. */
atomic_uint slow_syncs;

static int wait_and_call(const char *name, int descriptor)
{
    int (*call)(int);
    *(void **)&call = dlsym(RTLD_NEXT, name);
    struct timespec rest = {0, 20 * 1000 * 1000};
    atomic_fetch_add(&slow_syncs, 1);
    while (nanosleep(&rest, &rest)) {}
    return call(descriptor);
}

int fdatasync(int descriptor) { return wait_and_call("fdatasync", descriptor); }
int fsync(int descriptor) { return wait_and_call("fsync", descriptor); }
int syncfs(int descriptor) { return wait_and_call("syncfs", descriptor); }
