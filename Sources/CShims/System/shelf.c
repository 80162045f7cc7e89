#define _GNU_SOURCE
#include "shelf.h"

#include <string.h>
#include <sys/mman.h>

static struct mapping remove_kept(struct shelf *shelf, int index)
{
    struct mapping mapping = shelf->kept[index];
    shelf->count--;
    shelf->bytes -= mapping.size;
    memmove(shelf->kept + index, shelf->kept + index + 1, (size_t)(shelf->count - index) * sizeof *shelf->kept);
    return mapping;
}

static void unmap_oldest(struct shelf *shelf)
{
    struct mapping oldest = remove_kept(shelf, 0);
    munmap(oldest.memory, oldest.size);
}

static int find(const struct shelf *shelf, size_t size)
{
    int best = -1;
    for (int i = 0; i < shelf->count; i++) {
        size_t found = shelf->kept[i].size;
        if (found >= size && found / shelf->most_quarters <= size / 4 && (best < 0 || found < shelf->kept[best].size))
            best = i;
    }
    return best;
}

struct mapping shelf_take(struct shelf *shelf, size_t size)
{
    struct mapping found = {NULL, 0};
    if (atomic_flag_test_and_set_explicit(&shelf->is_taken, memory_order_acquire))
        return found;
    int best = find(shelf, size);
    if (best >= 0)
        found = remove_kept(shelf, best);
    else
        for (size_t before = shelf->bytes; shelf->count > 0 && before - shelf->bytes < size;)
            unmap_oldest(shelf);
    atomic_flag_clear_explicit(&shelf->is_taken, memory_order_release);
    return found;
}

void shelf_give(struct shelf *shelf, struct mapping mapping, int is_lazy)
{
    if (mapping.size > shelf->most_bytes || atomic_flag_test_and_set_explicit(&shelf->is_taken, memory_order_acquire)) {
        munmap(mapping.memory, mapping.size);
        return;
    }
    while (shelf->count == shelf->most || shelf->bytes + mapping.size > shelf->most_bytes)
        unmap_oldest(shelf);
    if (is_lazy)
        (void)madvise(mapping.memory, mapping.size, MADV_FREE);
    shelf->kept[shelf->count++] = mapping;
    shelf->bytes += mapping.size;
    atomic_flag_clear_explicit(&shelf->is_taken, memory_order_release);
}
