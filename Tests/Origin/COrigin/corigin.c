#define _GNU_SOURCE
#include "corigin.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int corigin_accept(int listener) {
    int descriptor;
    do descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    while (descriptor < 0 && (errno == EINTR || errno == ECONNABORTED));
    return descriptor;
}

int corigin_unsent(int descriptor) {
    int bytes = 0;
    return ioctl(descriptor, SIOCOUTQNSD, &bytes) == 0 ? bytes : 0;
}

int corigin_wake_new(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void corigin_wake(int descriptor) {
    uint64_t one = 1;
    ssize_t written = write(descriptor, &one, sizeof one);
    (void)written;
}

void corigin_wake_clear(int descriptor) {
    uint64_t count;
    ssize_t taken = read(descriptor, &count, sizeof count);
    (void)taken;
}

int corigin_watch_new(void) { return epoll_create1(EPOLL_CLOEXEC); }

int corigin_watch_add(int watch, int descriptor, uint64_t number) {
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.u64 = number};
    return epoll_ctl(watch, EPOLL_CTL_ADD, descriptor, &event);
}

int corigin_watch_take(int watch, uint64_t *numbers, int capacity) {
    struct epoll_event events[64];
    int count;
    if (capacity > 64) capacity = 64;
    do count = epoll_wait(watch, events, capacity, 0);
    while (count < 0 && errno == EINTR);
    for (int i = 0; i < count; i++) numbers[i] = events[i].data.u64;
    return count < 0 ? 0 : count;
}

int corigin_close_from(posix_spawn_file_actions_t *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
