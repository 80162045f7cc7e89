#include "png-writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t crc_table[256];

static void make_crc_table(void)
{
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t c = n;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
        crc_table[n] = c;
    }
}

struct chunk {
    FILE *file;
    uint32_t crc;
};

static void put(struct chunk *chunk, const void *bytes, size_t count)
{
    const uint8_t *byte = bytes;
    for (size_t i = 0; i < count; i++)
        chunk->crc = crc_table[(chunk->crc ^ byte[i]) & 255] ^ chunk->crc >> 8;
    fwrite(bytes, 1, count, chunk->file);
}

static void put32(struct chunk *chunk, uint32_t value)
{
    put(chunk, (uint8_t[]){value >> 24 & 255, value >> 16 & 255, value >> 8 & 255, value & 255}, 4);
}

static struct chunk begin(FILE *file, const char *type, uint32_t length)
{
    struct chunk chunk = {file, 0};
    put32(&chunk, length);
    chunk.crc = 0xFFFFFFFFu;
    put(&chunk, type, 4);
    return chunk;
}

static void end(struct chunk *chunk)
{
    uint32_t crc = chunk->crc ^ 0xFFFFFFFFu;
    put32(chunk, crc);
}

static uint32_t adler32(uint32_t adler, const uint8_t *bytes, size_t count)
{
    uint32_t a = adler & 0xFFFF, b = adler >> 16;
    for (size_t i = 0; i < count; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

int png_write(const char *path, const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
              struct png_area area, uint32_t step)
{
    uint32_t columns = (width + step - 1) / step, rows = (height + step - 1) / step;
    size_t row_size = 1 + (size_t)columns * 4; /* a filter byte (0: none) and the pixels */
    /* One row makes one stored block where it fits, several where it does not. */
    size_t blocks_per_row = (row_size + 65534) / 65535;
    size_t length = 2 + rows * (row_size + 5 * blocks_per_row) + 4;
    if (width == 0 || height == 0 || length > 0x7FFFFFFF) {
        errno = EINVAL;
        return -1;
    }
    uint8_t *row = malloc(row_size);
    FILE *file = row ? fopen(path, "wb") : NULL;
    if (!file) {
        free(row);
        return -1;
    }
    make_crc_table();
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, file);

    struct chunk chunk = begin(file, "IHDR", 13);
    put32(&chunk, columns);
    put32(&chunk, rows);
    put(&chunk, (uint8_t[]){8, 6, 0, 0, 0}, 5); /* 8 bits, RGBA */
    end(&chunk);

    chunk = begin(file, "IDAT", (uint32_t)length);
    put(&chunk, "\x78\x01", 2);
    uint32_t adler = 1;
    for (uint32_t y = 0; y < rows; y++) {
        memset(row, 0, row_size);
        uint32_t line = y * step;
        if (line >= area.y && line - area.y < area.height)
            for (uint32_t x = 0; x < columns; x++) {
                uint32_t column = x * step;
                if (column >= area.x && column - area.x < area.width)
                    memcpy(row + 1 + 4 * (size_t)x, pixels + line * stride + 4 * (size_t)column, 4);
            }
        adler = adler32(adler, row, row_size);
        for (size_t at = 0; at < row_size;) {
            size_t count = row_size - at < 65535 ? row_size - at : 65535;
            uint8_t last = y + 1 == rows && at + count == row_size;
            put(&chunk, (uint8_t[]){last, count & 255, count >> 8, ~count & 255, ~count >> 8 & 255}, 5);
            put(&chunk, row + at, count);
            at += count;
        }
    }
    put32(&chunk, adler);
    end(&chunk);
    chunk = begin(file, "IEND", 0);
    end(&chunk);

    free(row);
    int failed = ferror(file);
    return fclose(file) != 0 || failed ? -1 : 0;
}
