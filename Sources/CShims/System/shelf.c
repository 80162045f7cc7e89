#define _GNU_SOURCE
#include "shelf.h"
#include "csystem.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

enum {
    /* The shelf is held for a moment, by a trim for as long as it tells the system what it may take. */
    MOST_TRIES = 100,
    /* Unmapping so many bytes takes a millisecond: fork() does not wait for it. */
    MANY_PAGES = 8 << 20,
};

static struct mapping remove_kept(struct shelf *shelf, int index)
{
    struct mapping mapping = shelf->kept[index];
    shelf->count--;
    shelf->bytes -= mapping.size;
    memmove(shelf->kept + index, shelf->kept + index + 1, (size_t)(shelf->count - index) * sizeof *shelf->kept);
    return mapping;
}

/* Of equal ones the oldest. */
static int smallest(const struct shelf *shelf)
{
    int found = 0;
    for (int i = 1; i < shelf->count; i++)
        if (shelf->kept[i].size < shelf->kept[found].size)
            found = i;
    return found;
}

static int find(const struct shelf *shelf, size_t size)
{
    int best = -1;
    for (int i = 0; i < shelf->count; i++) {
        size_t found = shelf->kept[i].size;
        if (found >= size && found / shelf->most_quarters <= size / 4 && (best < 0 || found <= shelf->kept[best].size))
            best = i;
    }
    return best;
}

/* Of those that are too small the largest; -1: there is none. */
static int find_to_extend(const struct shelf *shelf, size_t size)
{
    int found = -1;
    for (int i = 0; i < shelf->count; i++)
        if (shelf->kept[i].size < size && (found < 0 || shelf->kept[i].size > shelf->kept[found].size))
            found = i;
    return found;
}

static _Thread_local size_t given_back;

void count_given_back(size_t bytes) { given_back += bytes; }

size_t system_bytes_given_back(void) { return given_back; }

void shelf_unmap(struct mapping mapping)
{
    count_given_back(mapping.size);
    if (mapping.size < MANY_PAGES) {
        munmap(mapping.memory, mapping.size);
        return;
    }
    int before = system_thread_enter(0);
    munmap(mapping.memory, mapping.size);
    system_thread_restore(before);
}

/* What was removed is unmapped when nobody waits for the shelf. */
static void unmap_all(const struct mapping *removed, int count)
{
    for (int i = 0; i < count; i++)
        shelf_unmap(removed[i]);
}

/* Whether it is the caller's now. */
static int hold(struct shelf *shelf)
{
    for (int tries = 0; atomic_flag_test_and_set_explicit(&shelf->is_taken, memory_order_acquire); tries++) {
        if (tries == MOST_TRIES)
            return 0;
        sched_yield();
    }
    return 1;
}

struct mapping shelf_take(struct shelf *shelf, size_t size)
{
    struct mapping found = {NULL, 0}, removed[MOST_ON_A_SHELF];
    int count = 0;
    if (!hold(shelf))
        return found;
    int best = find(shelf, size);
    int is_fit = best >= 0;
    size_t before = shelf->bytes;
    if (!is_fit && shelf->is_elastic)
        best = find_to_extend(shelf, size);
    if (best >= 0)
        found = remove_kept(shelf, best);
    while (!is_fit && shelf->count > 0 && before - shelf->bytes < size)
        removed[count++] = remove_kept(shelf, 0);
    atomic_flag_clear_explicit(&shelf->is_taken, memory_order_release);
    unmap_all(removed, count);
    return found;
}

int shelf_give(struct shelf *shelf, struct mapping mapping, int most, size_t most_bytes, int is_lazy)
{
    struct mapping removed[MOST_ON_A_SHELF];
    int count = 0;
    if (is_lazy && mapping.size <= most_bytes)
        (void)madvise(mapping.memory, mapping.size, MADV_FREE);
    if (mapping.size > most_bytes || !hold(shelf)) {
        shelf_unmap(mapping);
        return 0;
    }
    int is_kept = 1;
    while (is_kept && (shelf->count >= most || shelf->bytes + mapping.size > most_bytes)) {
        int is_about_size = shelf->count >= most || shelf->is_elastic;
        int index = is_about_size ? smallest(shelf) : 0;
        is_kept = !is_about_size || shelf->kept[index].size <= mapping.size;
        removed[count++] = is_kept ? remove_kept(shelf, index) : mapping;
    }
    if (is_kept) {
        shelf->kept[shelf->count++] = mapping;
        shelf->bytes += mapping.size;
    }
    atomic_flag_clear_explicit(&shelf->is_taken, memory_order_release);
    unmap_all(removed, count);
    return is_kept;
}

int shelf_trim(struct shelf *shelf, size_t most_bytes, int is_lazy)
{
    struct mapping removed[MOST_ON_A_SHELF];
    int count = 0;
    if (!hold(shelf))
        return 0;
    while (shelf->bytes > most_bytes)
        removed[count++] = remove_kept(shelf, 0);
    for (int i = 0; is_lazy && i < shelf->count; i++)
        (void)madvise(shelf->kept[i].memory, shelf->kept[i].size, MADV_FREE);
    atomic_flag_clear_explicit(&shelf->is_taken, memory_order_release);
    unmap_all(removed, count);
    return count;
}

int shelf_fork_child(struct shelf *shelf)
{
    int lost = 0;
    if (atomic_flag_test_and_set_explicit(&shelf->is_taken, memory_order_acquire)) {
        lost = shelf->count;
        shelf->count = 0;
        shelf->bytes = 0;
    }
    atomic_flag_clear_explicit(&shelf->is_taken, memory_order_release);
    return lost;
}
