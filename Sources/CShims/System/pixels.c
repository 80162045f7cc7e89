#define _GNU_SOURCE
#include "csystem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 * 1024 * 1024, MOST_KEPT = 4, MOST_KEPT_BYTES = 24 * HUGE_PAGE };

struct mapping {
    void *memory;
    size_t size;
};

/* Freed mappings, the oldest first. Whoever finds them in use does without them, rather than wait: a lock would be copied
 * by fork() as it is. */
static struct mapping kept[MOST_KEPT];
static int kept_count;
static size_t kept_bytes;
static atomic_flag is_busy = ATOMIC_FLAG_INIT;

static struct mapping remove_kept(int index)
{
    struct mapping mapping = kept[index];
    kept_count--;
    kept_bytes -= mapping.size;
    memmove(kept + index, kept + index + 1, (size_t)(kept_count - index) * sizeof *kept);
    return mapping;
}

static void unmap_oldest(void)
{
    struct mapping oldest = remove_kept(0);
    munmap(oldest.memory, oldest.size);
}

/* The one that fits best and is not four times as large. Where there is none, so much is given back to the system as
 * is about to be asked of it: what is kept adds nothing to the most that was ever in use. */
static struct mapping take_kept(size_t size)
{
    struct mapping found = {NULL, 0};
    if (atomic_flag_test_and_set_explicit(&is_busy, memory_order_acquire))
        return found;
    int best = -1;
    for (int i = 0; i < kept_count; i++)
        if (kept[i].size >= size && kept[i].size / 4 <= size && (best < 0 || kept[i].size < kept[best].size))
            best = i;
    if (best >= 0)
        found = remove_kept(best);
    else
        for (size_t before = kept_bytes; kept_count > 0 && before - kept_bytes < size;)
            unmap_oldest();
    atomic_flag_clear_explicit(&is_busy, memory_order_release);
    return found;
}

static int keep(struct mapping mapping)
{
    if (mapping.size > MOST_KEPT_BYTES || atomic_flag_test_and_set_explicit(&is_busy, memory_order_acquire))
        return 0;
    while (kept_count == MOST_KEPT || kept_bytes + mapping.size > MOST_KEPT_BYTES)
        unmap_oldest();
    /* A system that is short of memory may take the pages, without our help. */
    (void)madvise(mapping.memory, mapping.size, MADV_FREE);
    kept[kept_count++] = mapping;
    kept_bytes += mapping.size;
    atomic_flag_clear_explicit(&is_busy, memory_order_release);
    return 1;
}

static void *map(size_t size)
{
    /* One huge page more than needed, then the unaligned ends are given back. */
    char *memory = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    char *aligned = (char *)(((uintptr_t)memory + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    size_t before = (size_t)(aligned - memory), after = HUGE_PAGE - before;
    if (before)
        munmap(memory, before);
    if (after)
        munmap(aligned + size, after);
    (void)madvise(aligned, size, MADV_HUGEPAGE);
    return aligned;
}

void *system_pixels_allocate(size_t size, size_t *capacity, int *is_zero)
{
    if (size < HUGE_PAGE) {
        *capacity = size;
        *is_zero = 0;
        return malloc(size ? size : 1);
    }
    size_t rounded = (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    if (rounded < size || rounded + HUGE_PAGE < rounded)
        return NULL;
    struct mapping mapping = take_kept(rounded);
    *is_zero = !mapping.memory;
    if (!mapping.memory)
        mapping = (struct mapping){map(rounded), rounded};
    *capacity = mapping.size;
    return mapping.memory;
}

void system_pixels_free(void *memory, size_t capacity)
{
    if (capacity < HUGE_PAGE)
        free(memory);
    else if (!keep((struct mapping){memory, capacity}))
        munmap(memory, capacity);
}
