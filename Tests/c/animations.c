/* Small animations, written byte by byte: nothing in them is compressed. */
#include "animations.h"

#include <stdlib.h>
#include <string.h>

struct file {
    uint8_t *bytes;
    size_t size;
};

static void add(struct file *file, const void *bytes, size_t size)
{
    file->bytes = realloc(file->bytes, file->size + size);
    if (!file->bytes)
        abort();
    memcpy(file->bytes + file->size, bytes, size);
    file->size += size;
}

/* Where each frame lies. */
static const struct place {
    uint8_t x, y, width, height;
} places[ANIMATION_FRAMES] = {{0, 0, ANIMATION_WIDTH, ANIMATION_HEIGHT}, {5, 7, 30, 20}, {40, 3, 24, 45}, {0, 20, 64, 28}};

/* ---- GIF */

/* Each code is a byte: 7 bits, and the table is cleared before a code would have nine. */
static void add_gif_pixels(struct file *file, size_t count, uint8_t shade)
{
    enum { CLEAR = 0x80, END = 0x81, CODES = 100 };
    static const uint8_t bits = 7, end_of_blocks[] = {1, END, 0};
    add(file, &bits, 1);
    for (size_t at = 0; at < count;) {
        uint8_t block[2 + CODES] = {0, CLEAR};
        uint8_t length = 1;
        for (; length <= CODES && at < count; at++)
            block[1 + length++] = (uint8_t)((at / 3 + shade) & 0x7F);
        block[0] = length;
        add(file, block, (size_t)length + 1);
    }
    add(file, end_of_blocks, sizeof end_of_blocks);
}

uint8_t *animated_gif(size_t *size)
{
    static const uint8_t head[] = {'G', 'I', 'F', '8', '9', 'a', ANIMATION_WIDTH, 0, ANIMATION_HEIGHT, 0, 0xF6, 0, 0};
    static const uint8_t loops[] = {0x21, 0xFF, 11, 'N', 'E', 'T', 'S', 'C', 'A', 'P', 'E', '2', '.', '0', 3, 1, 2, 0, 0};
    struct file file = {NULL, 0};
    add(&file, head, sizeof head);
    for (unsigned i = 0; i < 128; i++) {
        uint8_t colour[] = {(uint8_t)(2 * i), (uint8_t)(255 - i), (uint8_t)(i * i)};
        add(&file, colour, sizeof colour);
    }
    add(&file, loops, sizeof loops);
    for (unsigned i = 0; i < ANIMATION_FRAMES; i++) {
        const struct place *place = &places[i];
        /* Colour 5 is transparent, but in the first frame. */
        uint8_t control[] = {0x21, 0xF9, 4, (uint8_t)(i << 2 | (i > 0)), (uint8_t)(3 * i), 0, 5, 0};
        uint8_t image[] = {0x2C, place->x, 0, place->y, 0, place->width, 0, place->height, 0,
                           i == ANIMATION_FRAMES - 1 ? 0x40 : 0};
        add(&file, control, sizeof control);
        add(&file, image, sizeof image);
        add_gif_pixels(&file, (size_t)place->width * place->height, (uint8_t)(20 * i));
    }
    add(&file, ";", 1);
    *size = file.size;
    return file.bytes;
}

/* ---- APNG */

static void put_number(uint8_t *to, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(number >> (24 - 8 * i));
}

static void add_chunk(struct file *file, const char *name, const void *bytes, size_t size)
{
    uint8_t number[4];
    put_number(number, (uint32_t)size);
    add(file, number, 4);
    size_t begin = file->size;
    add(file, name, 4);
    add(file, bytes, size);
    uint32_t sum = UINT32_MAX;
    for (size_t i = begin; i < file->size; i++) {
        sum ^= file->bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
    }
    put_number(number, ~sum);
    add(file, number, 4);
}

/* A frame's pixels as zlib has them, stored as they are in one block, behind the number that an fdAT begins with. */
static struct file stored_pixels(const struct place *place, uint32_t number, unsigned frame)
{
    struct file file = {NULL, 0};
    uint8_t prefix[4];
    put_number(prefix, number);
    add(&file, prefix, 4);
    size_t row = 1 + 4u * place->width, length = row * place->height;
    uint8_t head[] = {0x78, 1, 1, (uint8_t)length, (uint8_t)(length >> 8), (uint8_t)~length, (uint8_t)(~length >> 8)};
    add(&file, head, sizeof head);
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = i % row == 0 ? 0 : (uint8_t)(i * (frame + 3) + i / row * 5);
        add(&file, &byte, 1);
        low = (low + byte) % 65521;
        high = (high + low) % 65521;
    }
    put_number(prefix, high << 16 | low);
    add(&file, prefix, 4);
    return file;
}

uint8_t *animated_png(size_t *size)
{
    uint8_t header[13] = {0, 0, 0, ANIMATION_WIDTH, 0, 0, 0, ANIMATION_HEIGHT, 8, 6, 0, 0, 0};
    uint8_t animation[8] = {0, 0, 0, ANIMATION_FRAMES, 0, 0, 0, 3};
    uint32_t number = 0;
    struct file file = {NULL, 0};
    add(&file, "\x89PNG\r\n\x1A\n", 8);
    add_chunk(&file, "IHDR", header, sizeof header);
    add_chunk(&file, "acTL", animation, sizeof animation);
    for (unsigned i = 0; i < ANIMATION_FRAMES; i++) {
        const struct place *place = &places[i];
        uint8_t control[26] = {[23] = 10, [24] = (uint8_t)(i % 3), [25] = (uint8_t)(i & 1)};
        const uint32_t numbers[] = {number++, place->width, place->height, place->x, place->y};
        for (unsigned k = 0; k < 5; k++)
            put_number(control + 4 * k, numbers[k]);
        control[21] = (uint8_t)(1 + i);
        add_chunk(&file, "fcTL", control, sizeof control);
        struct file pixels = stored_pixels(place, i ? number++ : 0, i);
        if (i)
            add_chunk(&file, "fdAT", pixels.bytes, pixels.size);
        else
            add_chunk(&file, "IDAT", pixels.bytes + 4, pixels.size - 4);
        free(pixels.bytes);
    }
    add_chunk(&file, "IEND", "", 0);
    *size = file.size;
    return file.bytes;
}
