/* The pictures that benchmarks decode: drawn once, kept in the folder that IMGDL_BENCH_PICTURES names, or build/bench. */
#ifndef BENCH_PICTURES_H
#define BENCH_PICTURES_H

#include <stddef.h>
#include <stdint.h>

/* Besides the kinds of test_pictures.h. */
enum { PICTURE_GIF = 1000 };

struct bytes {
    uint8_t *data; /* to free() */
    size_t size;
};

/* A drawing at quality 98. Ends the program when it cannot be made. */
struct bytes bench_picture(const char *name, unsigned kind, int width, int height);

#endif
