/* Writes PNG files without a compressor: stored deflate blocks. For looking at pixels, not for keeping them. */
#ifndef PNG_WRITER_H
#define PNG_WRITER_H

#include <stddef.h>
#include <stdint.h>

struct png_area {
    uint32_t x, y, width, height;
};

/* RGBA8, straight alpha. Only the pixels of `area` are read, the others are written as transparent; every `step`-th
 * pixel of every `step`-th row is written. 0, or -1 with errno set. */
int png_write(const char *path, const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
              struct png_area area, uint32_t step);

#endif
