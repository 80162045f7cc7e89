#define _GNU_SOURCE
#include "csystem.h"
#include "shelf.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { SMALLEST_MAPPED = 256 * 1024, STEP = 64 * 1024, MOST_KEPT_BYTES = 8 << 20 };

static struct shelf shelf = {
    .most_quarters = 6, .is_taken = ATOMIC_FLAG_INIT};

void *system_block_allocate(size_t size, size_t *capacity)
{
    *capacity = size;
    if (size < SMALLEST_MAPPED)
        return malloc(size ? size : 1);
    size_t rounded = (size + STEP - 1) / STEP * STEP;
    if (rounded < size)
        return NULL;
    struct mapping mapping = shelf_take(&shelf, rounded);
    if (!mapping.memory) {
        mapping.memory = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapping.memory == MAP_FAILED)
            return NULL;
        mapping.size = rounded;
    }
    *capacity = mapping.size;
    return mapping.memory;
}

void system_block_free(void *memory, size_t capacity)
{
    if (capacity < SMALLEST_MAPPED) {
        count_given_back(capacity);
        free(memory);
    } else {
        shelf_give(&shelf, (struct mapping){memory, capacity}, MOST_ON_A_SHELF, MOST_KEPT_BYTES, 0);
    }
}

void system_blocks_release_kept(void)
{
    shelf_trim(&shelf, 0, 0);
}

void system_blocks_fork_child(void) { (void)shelf_fork_child(&shelf); }
