/* Rows of Adam7 pictures in which some pixels have not come: vectors, which Swift says less plainly. */
#include "ccodecs.h"

#include <stdatomic.h>
#include <string.h>

typedef uint32_t four_pixels __attribute__((vector_size(16)));

enum { AT_ONCE = 8 };

static four_pixels load(const uint8_t *from)
{
    four_pixels pixels;
    memcpy(&pixels, from, sizeof pixels);
    return pixels;
}

static void store(uint8_t *to, four_pixels pixels, int past_caches)
{
    if (past_caches)
        __builtin_nontemporal_store(pixels, (four_pixels *)(void *)to);
    else
        memcpy(to, &pixels, sizeof pixels);
}

/* With a step that the compiler knows. */
static inline void fill(const uint8_t *restrict from, size_t step, uint8_t *restrict to, size_t width, int past_caches)
{
    size_t x = 0;
    for (; x + AT_ONCE <= width; x += AT_ONCE) {
        four_pixels left = load(from + 4 * x), right = load(from + 4 * x + 16);
        if (step == 2) {
            left = __builtin_shufflevector(left, left, 0, 0, 2, 2);
            right = __builtin_shufflevector(right, right, 0, 0, 2, 2);
        } else if (step == 4) {
            left = __builtin_shufflevector(left, left, 0, 0, 0, 0);
            right = __builtin_shufflevector(right, right, 0, 0, 0, 0);
        } else if (step == 8) {
            left = __builtin_shufflevector(left, left, 0, 0, 0, 0);
            right = left;
        }
        store(to + 4 * x, left, past_caches);
        store(to + 4 * x + 16, right, past_caches);
    }
    for (; x < width; x++)
        memcpy(to + 4 * x, from + 4 * (x - x % step), 4);
}

static void fill_words(const uint8_t *restrict from, size_t step, uint8_t *restrict to, size_t width)
{
    for (size_t x = 0; x < width; x += step)
        for (size_t i = x; i < x + step && i < width; i++)
            memcpy(to + 8 * i, from + 8 * x, 8);
}

static void fill_bytes(const uint8_t *from, size_t step, uint8_t *to, size_t width, int past_caches)
{
    switch (step) {
    case 1: fill(from, 1, to, width, past_caches); break;
    case 2: fill(from, 2, to, width, past_caches); break;
    case 4: fill(from, 4, to, width, past_caches); break;
    default: fill(from, 8, to, width, past_caches);
    }
}

void codec_fill_gaps(const uint8_t *from, size_t pixel, size_t step, uint8_t *to, size_t width, int is_large)
{
    if (pixel == 8) {
        fill_words(from, step, to, width);
    } else if (is_large && (uintptr_t)to % sizeof(four_pixels) == 0) {
        fill_bytes(from, step, to, width, 1);
        /* Such stores are seen by other threads in any order, without this. */
        atomic_thread_fence(memory_order_seq_cst);
    } else {
        fill_bytes(from, step, to, width, 0);
    }
}
