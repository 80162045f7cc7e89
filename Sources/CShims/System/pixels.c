#define _GNU_SOURCE
#include "csystem.h"
#include "shelf.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    HUGE_PAGE = 2 * 1024 * 1024,
    /* From here on malloc would map memory anew for each, or let the system have it back in between. */
    SMALLEST_ORDINARY = 128 * 1024,
    MOST_ORDINARY = 16,
    MOST_LARGE_BYTES = 24 * HUGE_PAGE,
    MOST_LARGE_BYTES_AT_WORK = 96 * HUGE_PAGE,
    /* Below, writing zeros is as fast. */
    MUCH_TO_CLEAR = 16 * HUGE_PAGE,
    /* The capacity of what malloc gave. */
    FROM_MALLOC = 0,
};

/* Pictures of ordinary size take turns in a few huge pages, whatever their size: what was given back last is still in the
 * processor's caches, and no page is cleared anew. Whoever keeps pictures keeps no more of these, but has malloc's. */
static struct shelf ordinary = {.most_quarters = 4, .is_taken = ATOMIC_FLAG_INIT};
/* In use or kept. */
static atomic_int ordinary_count;

static struct shelf large = {.most_quarters = 16, .is_elastic = 1, .is_taken = ATOMIC_FLAG_INIT};
/* How many have more to decode. */
static atomic_int at_work;

static int processors(void)
{
    static atomic_int known;
    int count = atomic_load_explicit(&known, memory_order_relaxed);
    if (count == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        count = online < 1 ? 1 : online < MOST_ON_A_SHELF ? (int)online : MOST_ON_A_SHELF - 1;
        atomic_store_explicit(&known, count, memory_order_relaxed);
    }
    return count;
}

/* Aligned to huge pages. */
static void *map_aligned(size_t size, int protection)
{
    /* One huge page more than needed, then the unaligned ends are given back. */
    char *memory = mmap(NULL, size + HUGE_PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    char *aligned = (char *)(((uintptr_t)memory + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    size_t before = (size_t)(aligned - memory), after = HUGE_PAGE - before;
    if (before)
        munmap(memory, before);
    if (after)
        munmap(aligned + size, after);
    return aligned;
}

static void *map(size_t size)
{
    void *memory = map_aligned(size, PROT_READ | PROT_WRITE);
    if (memory)
        (void)madvise(memory, size, MADV_HUGEPAGE);
    return memory;
}

/* Its pages go along, and only what is new has to be cleared. NULL memory where that is not to be had. */
static struct mapping extend(struct mapping kept, size_t size)
{
    void *place = map_aligned(size, PROT_NONE);
    if (place && mremap(kept.memory, kept.size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place) != MAP_FAILED)
        return (struct mapping){place, size};
    if (place)
        munmap(place, size);
    shelf_unmap(kept);
    return (struct mapping){NULL, 0};
}

/* For each processor one that is written, and one on its way to somebody. */
static int most_ordinary(void)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
    /* It is to see whoever writes behind the end of a picture. */
    return 0;
#endif
#endif
    return processors() < MOST_ORDINARY / 2 ? 2 * processors() : MOST_ORDINARY;
}

/* What is kept counts as memory of the process, whether or not the system may take it: one for each processor, and one on
 * its way to somebody. */
static int most_large(void)
{
    return processors() + 1;
}

/* Where one picture of 24 megapixels follows the other, the system would clear 96 MB for each. */
static void give_large(struct mapping mapping)
{
    int is_at_work = atomic_load_explicit(&at_work, memory_order_relaxed) > 0;
    shelf_give(&large, mapping, most_large(), is_at_work ? MOST_LARGE_BYTES_AT_WORK : MOST_LARGE_BYTES, !is_at_work);
}

static void *take_ordinary(int *is_zero)
{
    struct mapping kept = shelf_take(&ordinary, HUGE_PAGE);
    *is_zero = !kept.memory;
    if (kept.memory || atomic_load_explicit(&ordinary_count, memory_order_relaxed) >= most_ordinary())
        return kept.memory;
    if (atomic_fetch_add_explicit(&ordinary_count, 1, memory_order_relaxed) < most_ordinary()) {
        void *memory = map(HUGE_PAGE);
        if (memory)
            return memory;
    }
    atomic_fetch_sub_explicit(&ordinary_count, 1, memory_order_relaxed);
    return NULL;
}

void *system_pixels_allocate(size_t size, size_t *capacity, int *is_zero)
{
    if (size <= HUGE_PAGE) {
        void *memory = size < SMALLEST_ORDINARY ? NULL : take_ordinary(is_zero);
        *capacity = memory ? HUGE_PAGE : FROM_MALLOC;
        if (memory)
            return memory;
        *is_zero = 0;
        return malloc(size ? size : 1);
    }
    size_t rounded = (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    if (rounded < size || rounded + HUGE_PAGE < rounded)
        return NULL;
    struct mapping mapping = shelf_take(&large, rounded);
    if (mapping.memory && mapping.size < rounded)
        mapping = extend(mapping, rounded);
    *is_zero = !mapping.memory;
    if (!mapping.memory)
        mapping = (struct mapping){map(rounded), rounded};
    *capacity = mapping.size;
    return mapping.memory;
}

void system_pixels_clear(void *part, size_t size, size_t capacity)
{
    if (capacity > HUGE_PAGE && size >= MUCH_TO_CLEAR) {
        size_t before = -(uintptr_t)part & (HUGE_PAGE - 1), pages = (size - before) & ~(size_t)(HUGE_PAGE - 1);
        char *first = (char *)part + before;
        if (madvise(first, pages, MADV_DONTNEED) == 0) {
            memset(part, 0, before);
            memset(first + pages, 0, size - before - pages);
            return;
        }
    }
    memset(part, 0, size);
}

void system_pixels_touch(void *part, size_t size)
{
    enum { SMALLEST_PAGE = 4096 };
    for (size_t at = 0; at < size; at += SMALLEST_PAGE)
        ((volatile char *)part)[at] = 0;
}

void system_pixels_free(void *memory, size_t capacity)
{
    if (capacity == FROM_MALLOC) {
        count_given_back(malloc_usable_size(memory));
        free(memory);
    } else if (capacity > HUGE_PAGE) {
        give_large((struct mapping){memory, capacity});
    } else if (!shelf_give(&ordinary, (struct mapping){memory, capacity}, MOST_ORDINARY, MOST_ORDINARY * HUGE_PAGE, 0)) {
        atomic_fetch_sub_explicit(&ordinary_count, 1, memory_order_relaxed);
    }
}

void system_pixels_release_kept(void)
{
    atomic_fetch_sub_explicit(&ordinary_count, shelf_trim(&ordinary, 0, 0), memory_order_relaxed);
    shelf_trim(&large, 0, 0);
}

void system_pixels_begin_work(void)
{
    atomic_fetch_add_explicit(&at_work, 1, memory_order_relaxed);
}

void system_pixels_end_work(void)
{
    if (atomic_fetch_sub_explicit(&at_work, 1, memory_order_relaxed) == 1)
        shelf_trim(&large, MOST_LARGE_BYTES, 1);
}

void system_pixels_fork_child(void)
{
    atomic_store_explicit(&at_work, 0, memory_order_relaxed);
    atomic_fetch_sub_explicit(&ordinary_count, shelf_fork_child(&ordinary), memory_order_relaxed);
    (void)shelf_fork_child(&large);
}
