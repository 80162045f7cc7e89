/* What the test origin needs of Linux and Swift's Glibc module hides: the GNU calls, ioctl, epoll. */
#ifndef CORIGIN_H
#define CORIGIN_H

#include <spawn.h>
#include <stddef.h>
#include <stdint.h>

int corigin_accept(int listener);          /* the new descriptor closes on exec, so no spawned client inherits it */
int corigin_unsent(int descriptor);        /* bytes in the send queue that the kernel has not yet put on the wire */
int corigin_close_from(posix_spawn_file_actions_t *actions, int first);  /* in the child, all from this one up */
int corigin_wake_new(void);
void corigin_wake(int descriptor);
void corigin_wake_clear(int descriptor);

/* A set of sockets watched for one thing: their peer closed or reset the connection. Each reports once. */
int corigin_watch_new(void);
int corigin_watch_add(int watch, int descriptor, uint64_t number);
int corigin_watch_take(int watch, uint64_t *numbers, int capacity);  /* never blocks */

#endif
