/* Processes that a test forks, and how they end. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "support.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

/* Its status once it has ended, or -1 when it does not within the deadline (and is killed). */
static inline int await_child(pid_t child)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    /* A thread that does not block the signal may be the one that it is told, just before it is waited for: then nobody hears. */
    enum { LOOK_MS = 100 };
    struct timespec next = {0, LOOK_MS * 1000000};
    int status;
    for (int looks = 0; looks < PATIENCE_MS / LOOK_MS;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            return status;
        if (sigtimedwait(&signals, NULL, &next) < 0 && errno == EAGAIN)
            looks++;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

static inline pid_t fork_quietly(void)
{
    /* So that await_child can wait for the signal; the library's threads block all signals anyway. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    fflush(NULL);
    return fork();
}

static inline void expect_exit(pid_t child, int expected)
{
    int status = await_child(child);
    if (status == -1)
        FAIL("the process did not end");
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
        FAIL("the process ended with %s %d, not with %d", WIFEXITED(status) ? "status" : "signal",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), expected);
}

static inline void start_transfers(imgdl_downloader *downloader, struct recorder *recorders, unsigned count, const char *path)
{
    for (unsigned i = 0; i < count; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(at_origin(path, i), &recorders[i]);
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
}

#endif
