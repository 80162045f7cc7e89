#include "pictures.h"

#include <stdlib.h>
#include <string.h>

uint8_t *picture_encode(const struct picture_spec *spec, size_t *size)
{
    *size = 0;
    if (spec->width < 1 || spec->height < 1)
        return NULL;
    if (spec->kind <= PICTURE_JPEG_SEPARATE_SCANS)
        return picture_encode_jpeg(spec, size);
    if (spec->kind >= PICTURE_PNG_RGB && spec->kind <= PICTURE_PNG_ADAM7_RGBA)
        return picture_encode_png(spec, size);
    if (spec->kind >= PICTURE_WEBP_LOSSY && spec->kind <= PICTURE_WEBP_ANIMATED)
        return picture_encode_webp(spec, size);
    return NULL;
}

void picture_free(uint8_t *bytes) { free(bytes); }

void picture_append(struct picture_bytes *to, const void *bytes, size_t size)
{
    if (size > to->capacity - to->size) {
        size_t capacity = 2 * (to->size + size);
        uint8_t *grown = realloc(to->bytes, capacity);
        if (!grown)
            abort();
        to->bytes = grown;
        to->capacity = capacity;
    }
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void put(uint8_t *at, uint32_t value, int count, int32_t big_endian)
{
    for (int i = 0; i < count; i++)
        at[i] = (uint8_t)(value >> 8 * (big_endian ? count - 1 - i : i));
}

static uint8_t *entry(uint8_t *at, int tag, int type, uint32_t value, int32_t big_endian)
{
    put(at, (uint32_t)tag, 2, big_endian);
    put(at + 2, (uint32_t)type, 2, big_endian);
    put(at + 4, 1, 4, big_endian);
    memset(at + 8, 0, 4);
    put(at + 8, value, type == 3 ? 2 : 4, big_endian);
    return at + 12;
}

size_t picture_exif(uint8_t block[64], int32_t orientation, int32_t big_endian, size_t thumbnail_size)
{
    enum { SHORT = 3, LONG = 4 };
    memcpy(block, big_endian ? "MM\0*" : "II*\0", 4);
    put(block + 4, 8, 4, big_endian);
    uint8_t *at = block + 8;
    put(at, 1, 2, big_endian);
    at = entry(at + 2, 0x112, SHORT, (uint32_t)orientation, big_endian);
    put(at, thumbnail_size ? 26 : 0, 4, big_endian);
    at += 4;
    if (!thumbnail_size)
        return (size_t)(at - block);
    put(at, 2, 2, big_endian);
    at = entry(at + 2, 0x201, LONG, 56, big_endian);
    at = entry(at, 0x202, LONG, (uint32_t)thumbnail_size, big_endian);
    put(at, 0, 4, big_endian);
    return (size_t)(at + 4 - block);
}
