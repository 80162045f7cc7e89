/* A small picture made large: each row of the source is stretched once, and each row put out lies between two of those. */
#include "ccodecs.h"

#include <stdlib.h>
#include <string.h>

/* Where the centre of a pixel put out lies in the source: between two of its pixels, in 256ths from the first. */
struct place {
    size_t first, second;
    unsigned part;
};

static struct place find(size_t at, size_t size, size_t to_size)
{
    /* (at + 1/2) * size / to_size - 1/2, in 256ths */
    int64_t position = (int64_t)((2 * (uint64_t)at + 1) * size * 128 / to_size) - 128;
    if (position < 0)
        position = 0;
    struct place place = {(size_t)position >> 8, ((size_t)position >> 8) + 1, (unsigned)position & 255};
    if (place.second >= size)
        place.second = size - 1;
    return place;
}

static void stretch_row(const uint8_t *pixels, size_t width, uint8_t *row, size_t to_width)
{
    for (size_t x = 0; x < to_width; x++, row += 4) {
        struct place place = find(x, width, to_width);
        const uint8_t *first = pixels + 4 * place.first, *second = pixels + 4 * place.second;
        for (int c = 0; c < 4; c++)
            row[c] = (uint8_t)((first[c] * (256 - place.part) + second[c] * place.part + 128) >> 8);
    }
}

static void mix_rows(
    uint8_t *restrict to, const uint8_t *restrict first, const uint8_t *restrict second, unsigned part, size_t count)
{
    uint16_t above = (uint16_t)(256 - part), below = (uint16_t)part;
    for (size_t i = 0; i < count; i++)
        to[i] = (uint8_t)((uint16_t)(first[i] * above + second[i] * below + 128) >> 8);
}

int codec_stretch(
    const uint8_t *pixels, size_t width, size_t height, size_t to_width, size_t to_height, codec_placement placement,
    codec_stop *stop)
{
    size_t row_size = 4 * to_width;
    uint8_t *memory = malloc(3 * row_size);
    if (!memory)
        return 0;
    uint8_t *first = memory, *second = memory + row_size, *line = memory + 2 * row_size;
    size_t first_row = SIZE_MAX, second_row = SIZE_MAX; /* of the source, that lie there stretched */
    int is_stopped = 0;
    for (size_t y = 0; y < to_height && !(is_stopped = codec_stop_is_due(stop, to_width)); y++) {
        struct place place = find(y, height, to_height);
        if (place.first == second_row) {
            uint8_t *spare = first;
            first = second;
            second = spare;
            second_row = first_row;
            first_row = place.first;
        }
        if (place.first != first_row)
            stretch_row(pixels + 4 * width * place.first, width, first, to_width);
        if (place.second != second_row)
            stretch_row(pixels + 4 * width * place.second, width, second, to_width);
        first_row = place.first;
        second_row = place.second;
        mix_rows(line, first, second, place.part, row_size);
        codec_place_rows(line, to_width, y, 1, placement, 0);
    }
    free(memory);
    return !is_stopped;
}
