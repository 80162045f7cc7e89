#define _GNU_SOURCE
#include "csystem.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 * 1024 * 1024 };

void *system_pixels_allocate(size_t size, size_t *capacity)
{
    if (size < HUGE_PAGE) {
        *capacity = size;
        return calloc(1, size ? size : 1);
    }
    size_t rounded = (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    if (rounded < size || rounded + HUGE_PAGE < rounded)
        return NULL;
    /* One huge page more than needed, then the unaligned ends are given back. */
    char *memory = mmap(NULL, rounded + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    char *aligned = (char *)(((uintptr_t)memory + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    size_t before = (size_t)(aligned - memory), after = HUGE_PAGE - before;
    if (before)
        munmap(memory, before);
    if (after)
        munmap(aligned + rounded, after);
    (void)madvise(aligned, rounded, MADV_HUGEPAGE);
    *capacity = rounded;
    return aligned;
}

void system_pixels_free(void *memory, size_t capacity)
{
    if (capacity < HUGE_PAGE)
        free(memory);
    else
        munmap(memory, capacity);
}
