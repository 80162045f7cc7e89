/* Shrinks a picture of four channels of 16 bits, row by row: each pixel is the average of the area it covers, exactly
 * rounded. Weights are whole numbers: in an axis of `in` rows that become `out` (both without their common divisor) a row
 * is `out` long and a row put out `in`, so the weights of a pixel add up to the product of both axes' `in`. A colour times
 * alpha has 32 bits, so 64 bits hold the sums of pictures below 2^32 pixels (2^48 where they are opaque); of larger ones
 * the lowest bits are dropped, which is less than a step. */
#include "scale_words.h"

#include <stdlib.h>
#include <string.h>

/* Rows lie anywhere: in the host's memory, too. */
typedef uint16_t unaligned_word __attribute__((aligned(1), may_alias));

struct axis {
    uint64_t in, out;
};

struct word_scaler {
    codec_placement placement;
    size_t in_width, out_width, in_height, out_height, rows_in, rows_out;
    int has_alpha;
    struct axis down, across;
    unsigned shift; /* what sums down a column lose for both sums to fit */
    uint64_t *sums;   /* down the columns */
    uint32_t *values; /* a row of the input times its alpha */
    uint16_t *line;   /* a row on its way to the canvas */
};

static struct axis make_axis(uint64_t in, uint64_t out)
{
    uint64_t a = in, b = out;
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return (struct axis){in / a, out / a};
}

struct word_scaler *word_scaler_create(const codec_scaling *scaling)
{
    struct word_scaler *scaler = calloc(1, sizeof *scaler);
    if (!scaler)
        return NULL;
    scaler->in_width = scaling->in_width;
    scaler->out_width = scaling->out_width;
    scaler->in_height = scaling->in_height;
    scaler->out_height = scaling->out_height;
    scaler->has_alpha = scaling->from != CODEC_ALPHA_OPAQUE;
    scaler->down = make_axis(scaling->in_height, scaling->out_height);
    scaler->across = make_axis(scaling->in_width, scaling->out_width);
    /* Sides are below 2^31, so 62 bits hold the product. */
    unsigned bits = scaler->has_alpha ? 32 : 48;
    while ((scaler->down.in * scaler->across.in) >> scaler->shift >> bits)
        scaler->shift++;
    scaler->sums = malloc(scaling->in_width * 4 * sizeof *scaler->sums);
    scaler->line = malloc(scaling->out_width * 4 * sizeof *scaler->line);
    scaler->values = scaler->has_alpha ? malloc(scaling->in_width * 4 * sizeof *scaler->values) : NULL;
    if (!scaler->sums || !scaler->line || (scaler->has_alpha && !scaler->values)) {
        word_scaler_destroy(scaler);
        return NULL;
    }
    return scaler;
}

void word_scaler_destroy(struct word_scaler *scaler)
{
    if (!scaler)
        return;
    free(scaler->sums);
    free(scaler->line);
    free(scaler->values);
    free(scaler);
}

void word_scaler_begin(struct word_scaler *scaler, codec_placement placement)
{
    scaler->placement = placement;
    scaler->rows_in = scaler->rows_out = 0;
    memset(scaler->sums, 0, scaler->in_width * 4 * sizeof *scaler->sums);
}

size_t word_scaler_rows(const struct word_scaler *scaler) { return scaler->rows_out; }

/* Down the columns */

static void add_words(uint64_t *restrict sums, const unaligned_word *restrict row, size_t n, uint32_t weight)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (uint64_t)row[i] * weight;
}

static void add_values(uint64_t *restrict sums, const uint32_t *restrict row, size_t n, uint32_t weight)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (uint64_t)row[i] * weight;
}

static void multiply_by_alpha(uint32_t *restrict values, const unaligned_word *restrict row, size_t width)
{
    for (size_t x = 0; x < width; x++) {
        uint32_t alpha = row[4 * x + 3];
        values[4 * x] = row[4 * x] * alpha;
        values[4 * x + 1] = row[4 * x + 1] * alpha;
        values[4 * x + 2] = row[4 * x + 2] * alpha;
        values[4 * x + 3] = alpha;
    }
}

static void add_row(struct word_scaler *scaler, const unaligned_word *row, uint64_t weight)
{
    if (scaler->has_alpha)
        add_values(scaler->sums, scaler->values, 4 * scaler->in_width, (uint32_t)weight);
    else
        add_words(scaler->sums, row, 4 * scaler->in_width, (uint32_t)weight);
}

/* Across */

struct pixel_sums {
    uint64_t channels[4];
};

static void weigh(struct pixel_sums *sums, const uint64_t *column, uint64_t weight, unsigned shift)
{
    for (int c = 0; c < 4; c++)
        sums->channels[c] += (column[c] >> shift) * weight;
}

static struct pixel_sums sum_up(const struct word_scaler *scaler, uint64_t x)
{
    const struct axis *axis = &scaler->across;
    /* Column i covers out units from i * out, pixel x covers in units from x * in. */
    uint64_t start = x * axis->in, end = start + axis->in;
    uint64_t first = start / axis->out, last = (end - 1) / axis->out;
    const uint64_t *column = scaler->sums + 4 * first;
    struct pixel_sums sums = {{0}};
    if (first == last) {
        weigh(&sums, column, axis->in, scaler->shift);
        return sums;
    }
    for (uint64_t i = first + 1; i < last; i++) {
        column += 4;
        for (int c = 0; c < 4; c++)
            sums.channels[c] += column[c] >> scaler->shift;
    }
    for (int c = 0; c < 4; c++)
        sums.channels[c] *= axis->out;
    weigh(&sums, scaler->sums + 4 * first, (first + 1) * axis->out - start, scaler->shift);
    weigh(&sums, scaler->sums + 4 * last, end - last * axis->out, scaler->shift);
    return sums;
}

static uint16_t divide(uint64_t sum, uint64_t by)
{
    /* Not sum + half, which may be too much for 64 bits. */
    uint64_t value = sum / by, rest = sum % by;
    value += rest >= by - rest;
    return (uint16_t)(value < UINT16_MAX ? value : UINT16_MAX);
}

static void put_out_row(struct word_scaler *scaler)
{
    uint64_t area = (scaler->down.in * scaler->across.in) >> scaler->shift;
    uint16_t *to = scaler->line;
    for (size_t x = 0; x < scaler->out_width; x++, to += 4) {
        struct pixel_sums sums = sum_up(scaler, x);
        uint64_t alpha = sums.channels[3], by = scaler->has_alpha ? alpha : area;
        for (int c = 0; c < 3; c++)
            to[c] = by ? divide(sums.channels[c], by) : 0;
        to[3] = divide(alpha, area);
    }
    codec_place_words((const uint8_t *)scaler->line, scaler->out_width, scaler->rows_out, 1, scaler->placement);
    if (!codec_stop_is_due(scaler->placement.stop, scaler->in_width))
        scaler->rows_out++;
    memset(scaler->sums, 0, scaler->in_width * 4 * sizeof *scaler->sums);
}

void word_scaler_push(struct word_scaler *scaler, const uint8_t *bytes)
{
    const struct axis *axis = &scaler->down;
    const unaligned_word *row = (const unaligned_word *)bytes;
    if (scaler->rows_out >= scaler->out_height)
        return;
    if (scaler->has_alpha)
        multiply_by_alpha(scaler->values, row, scaler->in_width);
    /* Row i covers out units from i * out, row y put out covers in units from y * in. */
    uint64_t start = scaler->rows_in * axis->out, end = start + axis->out, edge = (scaler->rows_out + 1) * axis->in;
    scaler->rows_in++;
    if (end < edge) {
        add_row(scaler, row, axis->out);
        return;
    }
    add_row(scaler, row, edge - start);
    put_out_row(scaler);
    if (end > edge)
        add_row(scaler, row, end - edge);
}
