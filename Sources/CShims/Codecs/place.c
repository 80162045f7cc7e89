/* Pixels to their place. In C because libpng's rows arrive inside a callback, where no Swift frame may be. */
#include "ccodecs.h"

#include <string.h>

static uint32_t divide_by_255(uint32_t v) { return (v + 127) / 255; }

static uint32_t load(const uint8_t *from)
{
    uint32_t pixel;
    memcpy(&pixel, from, 4);
    return pixel;
}

void codec_premultiply(uint8_t *pixels, size_t count)
{
    for (uint8_t *end = pixels + 4 * count; pixels != end; pixels += 4) {
        uint32_t alpha = pixels[3];
        if (alpha == 255)
            continue;
        for (int c = 0; c < 3; c++)
            pixels[c] = (uint8_t)divide_by_255(pixels[c] * alpha);
    }
}

static uint8_t undo_alpha(uint32_t colour, uint32_t alpha)
{
    uint32_t straight = alpha ? (colour * 255 + alpha / 2) / alpha : 0;
    return (uint8_t)(straight < 255 ? straight : 255);
}

void codec_convert_pixels(const uint8_t *from, int from_layout, uint8_t *to, int to_layout, size_t count)
{
    int swaps = (from_layout ^ to_layout) & CODEC_LAYOUT_BGRA;
    int multiplies = to_layout & ~from_layout & CODEC_LAYOUT_PREMULTIPLIED;
    int divides = from_layout & ~to_layout & CODEC_LAYOUT_PREMULTIPLIED;
    for (const uint8_t *end = from + 4 * count; from != end; from += 4, to += 4) {
        uint8_t alpha = from[3];
        for (int c = 0; c < 3; c++) {
            uint8_t colour = from[swaps ? 2 - c : c];
            to[c] = divides ? undo_alpha(colour, alpha) : colour;
        }
        to[3] = alpha;
    }
    if (multiplies)
        codec_premultiply(to - 4 * count, count);
}

int codec_is_opaque(const uint8_t *pixels, codec_pixel pixel, size_t count)
{
    if (pixel == CODEC_PIXEL_THREE_BYTES)
        return 1;
    if (pixel == CODEC_PIXEL_FOUR_WORDS) {
        uint64_t all = UINT64_MAX;
        for (size_t i = 0; i < count; i++) {
            uint64_t words;
            memcpy(&words, pixels + 8 * i, sizeof words);
            all &= words;
        }
        uint16_t each[4];
        memcpy(each, &all, sizeof each);
        return each[3] == UINT16_MAX;
    }
    uint32_t all = UINT32_MAX;
    for (size_t i = 0; i < count; i++)
        all &= load(pixels + 4 * i);
    uint8_t each[4];
    memcpy(each, &all, sizeof each);
    return each[3] == UINT8_MAX;
}

void codec_convert_inks(uint8_t *pixels, size_t count, int inverted, int bgra)
{
    uint32_t flip = inverted ? 0 : 255;
    for (uint8_t *end = pixels + 4 * count; pixels != end; pixels += 4) {
        uint32_t light = pixels[3] ^ flip;
        uint8_t red = (uint8_t)divide_by_255((pixels[0] ^ flip) * light);
        uint8_t green = (uint8_t)divide_by_255((pixels[1] ^ flip) * light);
        uint8_t blue = (uint8_t)divide_by_255((pixels[2] ^ flip) * light);
        pixels[0] = bgra ? blue : red;
        pixels[1] = green;
        pixels[2] = bgra ? red : blue;
        pixels[3] = 255;
    }
}

/* Whether to stop, after so many pixels. Where they are written down a column each may be the first on its page, which the
 * system clears before. */
static int is_due(const codec_placement *placement, size_t pixels)
{
    enum { PIXEL_OF_ITS_OWN_PAGE = 16 };
    int is_column = placement->step_x > 8 || placement->step_x < -8;
    return codec_stop_is_due(placement->stop, is_column ? pixels * PIXEL_OF_ITS_OWN_PAGE : pixels);
}

/* One row of whatever kind: some pixels at a time are converted beside the canvas. */
static void place_row_of(
    const uint8_t *from, size_t width, uint8_t *to, const codec_placement *placement, int premultiply)
{
    enum { SOME = 256 };
    uint8_t beside[4 * SOME];
    for (size_t x = 0; x < width && !is_due(placement, SOME); x += SOME, from += 4 * SOME) {
        size_t count = width - x < SOME ? width - x : SOME;
        const uint8_t *pixel = from;
        if (placement->colour || premultiply) {
            if (placement->colour)
                codec_colour_bytes(placement->colour, from, beside, count);
            else
                memcpy(beside, from, 4 * count);
            if (premultiply)
                codec_premultiply(beside, count);
            pixel = beside;
        }
        uint8_t *column = to + (ptrdiff_t)x * placement->step_x;
        for (size_t i = 0; i < count; i++, pixel += 4, column += placement->step_x) {
            if (placement->pixel == CODEC_PIXEL_FOUR_WORDS) {
                uint16_t words[4];
                for (int c = 0; c < 4; c++)
                    words[c] = (uint16_t)(pixel[c] * 257);
                memcpy(column, words, sizeof words);
            } else {
                memcpy(column, pixel, placement->pixel == CODEC_PIXEL_THREE_BYTES ? 3 : 4);
            }
        }
    }
}

void codec_place_words(const uint8_t *pixels, size_t width, size_t first, size_t count, codec_placement placement)
{
    enum { SOME = 256 };
    uint16_t stored[4 * SOME], words[4 * SOME];
    for (size_t row = first; row < first + count; row++, pixels += 8 * width) {
        if (codec_stop_is_due(placement.stop, width))
            return;
        if (placement.step_x == 8 && !placement.colour) {
            memcpy(placement.origin + (ptrdiff_t)row * placement.step_y, pixels, 8 * width);
            continue;
        }
        for (size_t x = 0; x < width && !is_due(&placement, SOME); x += SOME) {
            size_t some = width - x < SOME ? width - x : SOME;
            memcpy(stored, pixels + 8 * x, 8 * some);
            if (placement.colour)
                codec_colour_words(placement.colour, stored, words, some);
            const uint16_t *from = placement.colour ? words : stored;
            uint8_t *to = placement.origin + (ptrdiff_t)row * placement.step_y + (ptrdiff_t)x * placement.step_x;
            for (size_t i = 0; i < some; i++, from += 4, to += placement.step_x)
                memcpy(to, from, 8);
        }
    }
}

void codec_four_bytes(const uint8_t *from, codec_pixel pixel, uint8_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++, to += 4) {
        if (pixel == CODEC_PIXEL_THREE_BYTES) {
            memcpy(to, from + 3 * i, 3);
            to[3] = 255;
        } else if (pixel == CODEC_PIXEL_FOUR_WORDS) {
            uint16_t words[4];
            memcpy(words, from + 8 * i, sizeof words);
            for (int c = 0; c < 4; c++)
                to[c] = (uint8_t)((words[c] + 128u) / 257);
        } else {
            memcpy(to, from + 4 * i, 4);
        }
    }
}

void codec_place_rows(
    const uint8_t *pixels, size_t width, size_t first, size_t count, codec_placement placement, int premultiply)
{
    /* Rows that become columns are written some at a time, a cache line each, instead of one pixel a line. */
    enum { BLOCK = 16, SOME = 256 };
    if (placement.pixel != CODEC_PIXEL_FOUR_BYTES || placement.colour) {
        for (size_t row = 0; row < count; row++)
            place_row_of(
                pixels + 4 * width * row, width, placement.origin + (ptrdiff_t)(first + row) * placement.step_y,
                &placement, premultiply);
        return;
    }
    size_t at_once = placement.step_x == 4 || placement.step_x == -4 ? 1 : BLOCK;
    for (size_t done = 0; done < count && !codec_stop_is_due(placement.stop, at_once * width); done += at_once) {
        size_t rows = count - done < at_once ? count - done : at_once;
        const uint8_t *from = pixels + 4 * width * done;
        uint8_t *to = placement.origin + (ptrdiff_t)(first + done) * placement.step_y;
        if (placement.step_x == 4) {
            memcpy(to, from, 4 * width);
            if (premultiply)
                codec_premultiply(to, width);
            continue;
        }
        for (size_t x = 0; x < width; x++) {
            if (x % SOME == 0 && is_due(&placement, SOME))
                return;
            uint8_t *column = to + (ptrdiff_t)x * placement.step_x;
            for (size_t row = 0; row < rows; row++, column += placement.step_y) {
                uint32_t pixel = load(from + 4 * (row * width + x));
                memcpy(column, &pixel, 4);
                if (premultiply)
                    codec_premultiply(column, 1);
            }
        }
    }
}
