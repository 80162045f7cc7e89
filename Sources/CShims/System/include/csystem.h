/* The kernel's and libc's own interfaces that Swift's Glibc module does not carry. No library but libc. */
#ifndef CSYSTEM_H
#define CSYSTEM_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/* Memory for bodies. From 256 KiB on it is a mapping of its own, so that after a peak it goes back to the system, but for
 * 8 MiB that are kept for what is asked for next: malloc keeps what it once had wherever something small lies behind it.
 * *capacity is what system_block_free needs. */
void *system_block_allocate(size_t size, size_t *capacity);
void system_block_free(void *memory, size_t capacity);
/* Gives the blocks that are kept back to the system. */
void system_blocks_release_kept(void);
/* In the child of a fork, where nobody else has what is kept. */
void system_blocks_fork_child(void);

/* Memory for `size` bytes of pixels: page faults are a third to half of the cost of decoding into fresh 4 KiB pages. From
 * 128 KiB to 2 MiB a few of them, two for each processor and 16 at most, take turns in huge pages, and the others have
 * malloc's memory. Above that each has huge pages of its own; of those that are freed one for each processor and one more
 * are kept, 48 MiB at most, and 192 MiB while pictures are decoded, whose pages the system may take. *capacity is what
 * system_pixels_free needs; *is_zero: it holds zeros, otherwise what was there before. */
void *system_pixels_allocate(size_t size, size_t *capacity, int *is_zero);
void system_pixels_free(void *memory, size_t capacity);
/* Zeros for a part of it; much of them in no time: pages are given back, and cleared when they are written to again. */
void system_pixels_clear(void *part, size_t size, size_t capacity);
/* Writes a byte of zeros to each page of a part, which the system clears before. */
void system_pixels_touch(void *part, size_t size);
/* Between these somebody decodes one picture after the other. Threads: any. */
void system_pixels_begin_work(void);
void system_pixels_end_work(void);
/* In the child of a fork, where nobody does. */
void system_pixels_fork_child(void);
/* Gives the pixels that nobody has back to the system. */
void system_pixels_release_kept(void);
/* How many bytes of blocks and pixels the calling thread has given back since it began, to the system or to malloc. What is
 * kept for what is asked for next is not given back. */
size_t system_bytes_given_back(void);

/* The calling thread's name, at most 15 bytes: GNU extensions that Swift's Glibc does not show. */
void system_thread_set_name(const char *name);
void system_thread_get_name(char *name, size_t capacity);
/* Until it has ended, or for so long: then 0, and it is not joined. */
int system_thread_join(pthread_t thread, int milliseconds);

/* fork() copies locks as they are, those of Swift's runtime, libcurl, OpenSSL and SQLite too, and a thread may be in one:
 * the child would wait for it for ever. So the library's threads, and the host's in its calls, say when they work and when
 * they rest, and fork() waits for their rest: for a second in which none of them runs, for five in all. What may take long and
 * holds no such lock (waits, look-ups, decoding, the host's callbacks) counts as rest. */
/* Work (1) or rest (0) from now on. Gives what `restore` needs, which follows on the same thread: when work begins or
 * goes on, it waits for a fork that is under way. In the child, the process ends as by _exit(0) when the host's code in which
 * a thread of the library's has forked returns. */
int system_thread_enter(int is_working);
void system_thread_restore(int before);
/* The same where a lock is held, with which nobody may wait: 0, and nothing has changed, when a fork is under way. */
int system_thread_try_restore(int before);
/* For a fork that is near: where a thread that works has no lock. */
void system_thread_let_fork_pass(void);
/* Whether one is near, for who rests and can end what another thread is at. */
int system_fork_is_near(void);
/* For a fork that is near: between two pieces of a computation that counts as rest. The thread gives its turn on the processor
 * away: one that works may have none, and the fork waits for that. */
void system_thread_stand_aside(void);
/* First of all before fork(), and last of all after it in either process. What a fork waits for together with other forks it waits
 * for once, and it is no cancellation point: whoever is cancelled in it would leave all its locks taken. */
void system_fork_approach(void);
void system_fork_depart(void);
/* Before fork(), and after it in either process. */
void system_fork_prepare(void);
void system_fork_parent(void);
void system_fork_child(void);

/* Around each call of a function of the host's, whatever the thread: it may last, and is not Swift. One may call another.
 * 0: the process exits, and it must not be called; then `end` must not follow. */
int system_host_code_begin(void);
void system_host_code_end(void);
/* exit() has begun, on this thread: from now on none begins. */
void system_host_code_refuse(void);
int system_host_code_is_over(void);
/* Until none runs but what the calling thread is in, or that moment of the monotonic clock. */
void system_host_code_await(int64_t nanoseconds);
/* Nobody waits any more: a thread of the library's that comes back from one rests until the process is gone. */
void system_host_code_abandon(void);
int system_host_code_is_abandoned(void);
/* In the child of a fork. 1: another thread of the parent was in exit(), so that the child, which has only the thread that
 * forked, does not exit. */
int system_host_code_fork_child(void);

/* Debug builds count the locks that the calling thread holds: no function of the host's is called with one. */
void system_lock_taken(void);
void system_lock_left(void);
int system_locks_held(void);

/* The time that a thread spends in rest: in the host's code, or waiting. */
struct system_rest;
/* The calling thread's, for as long as it runs. */
struct system_rest *system_thread_rest(void);
/* Called where a rest begins and ends. */
void system_rest_begin(void);
void system_rest_end(void);
/* These may be called by any thread. CPU time of rests, in nanoseconds, is added up from when measuring is switched on; a
 * rest that had begun before is left out. */
void system_rest_measure(struct system_rest *rest, int is_measured);
int system_rest_is_under_way(struct system_rest *rest);
int64_t system_rest_nanoseconds(struct system_rest *rest);

/* Bytes that have been read from a TCP socket, by whomever; -1 where the kernel does not say. Threads: any. */
int64_t system_socket_taken(int descriptor);
/* Whether some of what was written to a TCP socket lies here yet: its other end has no room for it. Threads: any. */
int system_socket_has_unsent(int descriptor);
/* Bytes that can be read from it at once; 0 where nobody knows. */
int system_unread(int descriptor);
/* A number that tells connections apart by their ends: of a TCP socket, 0 where it has none; and of the ends as text. */
uint64_t system_socket_name(int descriptor);
uint64_t system_connection_name(const char *address, int remote_port, int local_port);

/* In the child of a fork, before any other use of Swift. */
void system_forget_thread_number(void);

/* Sleeps until the descriptor is readable, for less than a second: ppoll is a GNU extension, too. */
void system_nap(int descriptor, long nanoseconds);

/* Whether the calling thread is one of the library's: waiting there could wait for itself. */
int system_thread_is_library(void);
/* A number of the calling thread that no other one ever gets: pthread_self() is given again to later threads. */
uint64_t system_thread_number(void);
/* `mask`: as the host's thread that wanted it blocks signals; that of the calling thread, or the one that it came by. It
 * cannot be cancelled. */
void system_thread_become_library(const sigset_t *mask);
void system_thread_get_hosts_mask(sigset_t *mask);
/* In the child of a fork. No effect on a thread that is the host's. */
void system_thread_become_hosts(void);

/* Until it is restored nobody cancels the calling thread: pthread_cancel would end it in the middle of a wait, with a lock
 * taken. Gives what restores it. */
int system_thread_hold_cancellation(void);
void system_thread_restore_cancellation(int before);

/* The calling thread's occupation, in the terms of who set it; NULL at first. */
void system_thread_set_occupation(const void *occupation);
const void *system_thread_occupation(void);

/* What was wrong with the last failed call on this thread: at most 1023 bytes of it are kept. Never NULL. */
void system_thread_set_last_error(const char *message);
const char *system_thread_last_error(void);

#endif
