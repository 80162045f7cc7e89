/* What the system does to the process: it is stopped, and threads, descriptors, memory and disk run short. */
#include "player.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <dirent.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int is_on;
static _Thread_local int is_exempt; /* what the main thread asks for is not refused: it makes the threads of the play */

static atomic_int refuses_threads, refuses_memory;

/* Sanitizers have functions of their own in the place of these. */
#ifndef HAS_SANITIZER
/* ---- Threads: the library asks the program's pthread_create first */

typedef int (*create_function)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*start)(void *), void *argument)
{
    static _Atomic(create_function) real;
    create_function create = atomic_load(&real);
    if (!create) {
        void *found = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&create, &found, sizeof create);
        atomic_store(&real, create);
    }
    if (atomic_load(&refuses_threads) && !is_exempt && one_in(3))
        return EAGAIN;
    return create(thread, attributes, start, argument);
}

/* ---- Memory: large mappings, of which canvases and bodies are made */

__attribute__((visibility("default"))) void *mmap(void *address, size_t size, int protection, int flags, int descriptor,
                                                  off_t offset)
{
    if (atomic_load(&refuses_memory) && size >= 256 * 1024 && descriptor == -1 && !(flags & MAP_STACK) &&
        !is_exempt && one_in(4)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, size, protection, flags, descriptor, offset);
}

#endif

/* ---- Descriptors and the disk */

static struct rlimit descriptors;

static void limit_descriptors(int is_short)
{
    struct rlimit limit = descriptors;
    if (is_short)
        limit.rlim_cur = count_entries("fd") + chance(12);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void limit_files(int is_short)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = is_short ? 4096u << chance(8) : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* ---- Being stopped: by a process of its own, which ends with this one */

static int stopper;

static void start_stopper(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t parent = getpid();
    if (fork() == 0) {
        close(ends[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unsigned milliseconds;
        while (read(ends[0], &milliseconds, sizeof milliseconds) == sizeof milliseconds) {
            kill(parent, SIGSTOP);
            usleep(milliseconds * 1000);
            kill(parent, SIGCONT);
        }
        _exit(0);
    }
    close(ends[0]);
    stopper = ends[1];
}

static void stop_for(unsigned milliseconds)
{
    if (write(stopper, &milliseconds, sizeof milliseconds) < 0)
        violation("nobody stops the process any more");
}

/* ---- Beginning and end */

void faults_end(void)
{
    atomic_store(&refuses_threads, 0);
    atomic_store(&refuses_memory, 0);
    limit_descriptors(0);
    limit_files(0);
}

static void *make_faults(void *unused)
{
    (void)unused;
    seed_thread(77);
    for (;;) {
        usleep(20000 + chance(200000));
        if (!atomic_load(&is_on))
            continue;
        switch (chance(5)) {
        case 0:
            if (has_feature[STOPS])
                /* After more than ten seconds no connection of before is used again. */
                stop_for(one_in(300) ? 10500 : 20 + chance(one_in(10) ? 3000 : 200));
            break;
        case 1: atomic_store(&refuses_threads, has_feature[SHORT_THREADS]); break;
        case 2: atomic_store(&refuses_memory, has_feature[SHORT_MEMORY]); break;
        case 3: limit_descriptors(has_feature[SHORT_DESCRIPTORS]); break;
        default: limit_files(has_feature[SHORT_DISK]); break;
        }
        usleep(1000 + chance(30000));
        faults_end();
    }
    return NULL;
}

void faults_start(void)
{
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &descriptors);
    start_stopper();
    is_exempt = 1;
    pthread_t thread;
    pthread_create(&thread, NULL, make_faults, NULL);
    pthread_detach(thread);
}

void faults_round(int is_there) { atomic_store(&is_on, is_there); }

unsigned count_entries(const char *folder)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/%s", folder);
    DIR *entries = opendir(path);
    unsigned count = 0;
    while (entries && readdir(entries))
        count++;
    if (entries)
        closedir(entries);
    return count;
}

void print_descriptors(void)
{
    for (int number = 0; number < 1024; number++) {
        char path[64], name[512];
        snprintf(path, sizeof path, "/proc/self/fd/%d", number);
        ssize_t length = readlink(path, name, sizeof name - 1);
        if (length < 0)
            continue;
        name[length] = 0;
        printf("descriptor %d: %s\n", number, name);
    }
}

long resident_kilobytes(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%ld %ld", &all, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return resident * 4;
}
