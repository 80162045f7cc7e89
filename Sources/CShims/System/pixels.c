#define _GNU_SOURCE
#include "csystem.h"
#include "shelf.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 * 1024 * 1024 };

static struct shelf shelf = {
    .most = 4, .most_bytes = 24 * HUGE_PAGE, .most_quarters = 16, .is_taken = ATOMIC_FLAG_INIT};

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
    struct mapping mapping = shelf_take(&shelf, rounded);
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
    else
        shelf_give(&shelf, (struct mapping){memory, capacity}, 1);
}
