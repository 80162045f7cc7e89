#define _GNU_SOURCE
#include "slots.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 32 };

/* Those that nobody has. No lock, which fork() would copy as it is. */
static _Atomic(void *) given_back[MOST];
static atomic_int count;

static int allowed(void)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
    /* It is to see whoever writes behind the end of a picture. */
    return 0;
#endif
#endif
    static atomic_int known;
    int most = atomic_load_explicit(&known, memory_order_relaxed);
    if (most > 0)
        return most;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    most = processors < 1 ? 2 : processors < MOST ? (int)processors + 1 : MOST;
    atomic_store_explicit(&known, most, memory_order_relaxed);
    return most;
}

static void *take_given_back(void)
{
    for (int i = 0; i < MOST; i++) {
        void *slot = atomic_load_explicit(&given_back[i], memory_order_relaxed);
        if (slot && atomic_compare_exchange_strong_explicit(&given_back[i], &slot, NULL, memory_order_acquire,
                                                            memory_order_relaxed))
            return slot;
    }
    return NULL;
}

void *slot_take(int *is_zero)
{
    *is_zero = 0;
    void *slot = take_given_back();
    if (slot || atomic_load_explicit(&count, memory_order_relaxed) >= allowed())
        return slot;
    if (atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) < allowed()) {
        slot = mmap(NULL, SLOT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (slot != MAP_FAILED) {
            *is_zero = 1;
            return slot;
        }
    }
    atomic_fetch_sub_explicit(&count, 1, memory_order_relaxed);
    return NULL;
}

void slot_give(void *slot)
{
    for (int i = 0;; i = (i + 1) % MOST) {
        void *nothing = NULL;
        if (atomic_compare_exchange_strong_explicit(&given_back[i], &nothing, slot, memory_order_release,
                                                    memory_order_relaxed))
            return;
    }
}
