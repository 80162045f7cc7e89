/* Shrinks a picture row by row: each pixel is the average of the area it covers, in integers, so that every machine
 * gives the same. Sums are weighted down the columns first (the inner loop over all pixels, which compilers turn into
 * vector instructions), and across once for each row put out.
 *
 * A whole row, or column, weighs 2^bits; one that lies on an edge is split in two. bits is as large as 32-bit sums
 * allow, so the error stays below a hundredth of a step of a channel. In between, channels are 0 to 65025 (255 * 255):
 * colours times alpha. */
#include "ccodecs.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BITS = 14, MOST_SAMPLES = 1 << 15, FULL = 255 * 255 };

struct span {
    size_t first, last; /* columns; if they are the same, last_weight is 0 */
    uint32_t first_weight, last_weight, reciprocal;
};

struct codec_scaler {
    codec_scaling scaling;
    codec_placement placement;
    size_t rows_in, rows_out;
    /* Where more than MOST_SAMPLES would be summed up, only every so manieth is. */
    size_t row_step, column_step;
    unsigned row_bits, column_bits;
    uint32_t row_total;
    uint32_t *sums;
    uint16_t *values; /* one row of input as products, then one of averages down the columns */
    struct span *spans;
    uint8_t *line; /* a row on its way to a turned canvas */
};

/* 2^32 / total, or a multiple of it, rounded. */
static uint32_t reciprocal(uint64_t scale, uint32_t total)
{
    return (uint32_t)(((scale << 32) + total / 2) / total);
}

static unsigned bits_for(uint64_t most, uint64_t samples)
{
    unsigned bits = MOST_BITS;
    while (bits > 0 && (most * (samples + 2)) << bits > UINT32_MAX)
        bits--;
    return bits;
}

static size_t step_for(size_t in, size_t out) { return in / out / MOST_SAMPLES + 1; }

static uint32_t weight(uint64_t part, uint64_t whole, unsigned bits)
{
    return (uint32_t)(((part << bits) + whole / 2) / whole);
}

static void measure_spans(codec_scaler *scaler)
{
    uint64_t in = scaler->scaling.in_width, out = scaler->scaling.out_width;
    unsigned bits = scaler->column_bits;
    for (uint64_t x = 0; x < out; x++) {
        /* Column i covers out units from i * out, pixel x covers in units from x * in. */
        uint64_t start = x * in, end = start + in;
        struct span *span = &scaler->spans[x];
        span->first = (size_t)(start / out);
        span->last = (size_t)((end - 1) / out);
        span->first_weight = weight((span->first + 1) * out - start, out, bits);
        span->last_weight = span->last > span->first ? weight(end - span->last * out, out, bits) : 0;
        uint64_t between = span->last > span->first ? span->last - span->first - 1 : 0;
        uint64_t samples = (between + scaler->column_step - 1) / scaler->column_step;
        span->reciprocal =
            reciprocal(1, span->first_weight + span->last_weight + (uint32_t)(samples << bits));
    }
}

codec_scaler *codec_scaler_create(codec_scaling scaling)
{
    size_t in = scaling.in_width, out = scaling.out_width;
    if (out == 0 || scaling.out_height == 0 || out > in || scaling.out_height > scaling.in_height || in > SIZE_MAX / 64)
        return NULL;
    codec_scaler *scaler = calloc(1, sizeof *scaler);
    if (!scaler)
        return NULL;
    scaler->scaling = scaling;
    scaler->row_step = step_for(scaling.in_height, scaling.out_height);
    scaler->column_step = step_for(in, out);
    scaler->row_bits = bits_for(
        scaling.from == CODEC_STRAIGHT ? FULL : 255, scaling.in_height / scaling.out_height / scaler->row_step + 1);
    scaler->column_bits = bits_for(FULL, in / out / scaler->column_step + 1);
    scaler->sums = malloc(in * 4 * sizeof *scaler->sums);
    scaler->values = malloc(in * 4 * sizeof *scaler->values);
    scaler->spans = malloc(out * sizeof *scaler->spans);
    scaler->line = malloc(out * 4);
    if (!scaler->sums || !scaler->values || !scaler->spans || !scaler->line) {
        codec_scaler_destroy(scaler);
        return NULL;
    }
    measure_spans(scaler);
    return scaler;
}

void codec_scaler_destroy(codec_scaler *scaler)
{
    if (!scaler)
        return;
    free(scaler->sums);
    free(scaler->values);
    free(scaler->spans);
    free(scaler->line);
    free(scaler);
}

static void clear_sums(codec_scaler *scaler)
{
    memset(scaler->sums, 0, scaler->scaling.in_width * 4 * sizeof *scaler->sums);
    scaler->row_total = 0;
}

void codec_scaler_begin(codec_scaler *scaler, codec_placement placement)
{
    scaler->placement = placement;
    scaler->rows_in = scaler->rows_out = 0;
    clear_sums(scaler);
}

size_t codec_scaler_rows(const codec_scaler *scaler) { return scaler->rows_out; }

/* Down the columns */

static void add_bytes(uint32_t *restrict sums, const uint8_t *restrict row, size_t count, uint16_t weight)
{
    for (size_t i = 0; i < count; i++)
        sums[i] += (uint32_t)(uint16_t)row[i] * weight;
}

static void add_values(uint32_t *restrict sums, const uint16_t *restrict row, size_t count, uint16_t weight)
{
    for (size_t i = 0; i < count; i++)
        sums[i] += (uint32_t)row[i] * weight;
}

static void multiply_by_alpha(uint16_t *restrict values, const uint8_t *restrict row, size_t width)
{
    for (size_t x = 0; x < width; x++) {
        uint16_t alpha = row[4 * x + 3];
        values[4 * x] = (uint16_t)(row[4 * x] * alpha);
        values[4 * x + 1] = (uint16_t)(row[4 * x + 1] * alpha);
        values[4 * x + 2] = (uint16_t)(row[4 * x + 2] * alpha);
        values[4 * x + 3] = (uint16_t)(255 * alpha);
    }
}

static void add_row(codec_scaler *scaler, const uint8_t *row, uint32_t weight)
{
    size_t count = 4 * scaler->scaling.in_width;
    if (scaler->scaling.from == CODEC_STRAIGHT) {
        multiply_by_alpha(scaler->values, row, scaler->scaling.in_width);
        add_values(scaler->sums, scaler->values, count, (uint16_t)weight);
    } else {
        add_bytes(scaler->sums, row, count, (uint16_t)weight);
    }
    scaler->row_total += weight;
}

static void average_columns(uint16_t *restrict values, const uint32_t *restrict sums, size_t count, uint32_t factor)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (uint16_t)(((uint64_t)sums[i] * factor + 0x80000000u) >> 32);
}

/* Across */

static void average_span(const codec_scaler *scaler, const struct span *span, uint32_t average[4])
{
    uint32_t between[4] = {0, 0, 0, 0};
    const uint16_t *first = scaler->values + 4 * span->first, *last = scaler->values + 4 * span->last;
    size_t step = 4 * scaler->column_step;
    for (const uint16_t *column = first + 4; column < last; column += step)
        for (int c = 0; c < 4; c++)
            between[c] += column[c];
    for (int c = 0; c < 4; c++) {
        uint32_t sum = (between[c] << scaler->column_bits) + first[c] * span->first_weight + last[c] * span->last_weight;
        average[c] = (uint32_t)(((uint64_t)sum * span->reciprocal + 0x80000000u) >> 32);
    }
}

static void put_pixel(uint8_t *to, const uint32_t average[4], int divides)
{
    uint32_t alpha = average[3];
    for (int c = 0; c < 3; c++) {
        uint32_t value = (average[c] + 127) / 255;
        if (divides)
            value = alpha ? (average[c] * 255 + alpha / 2) / alpha : 0;
        to[c] = (uint8_t)(value < 255 ? value : 255);
    }
    to[3] = (uint8_t)((alpha + 127) / 255);
}

static void put_out_row(codec_scaler *scaler)
{
    const codec_scaling *scaling = &scaler->scaling;
    const codec_placement *placement = &scaler->placement;
    int has_products = scaling->from == CODEC_STRAIGHT;
    average_columns(
        scaler->values, scaler->sums, 4 * scaling->in_width, reciprocal(has_products ? 1 : 255, scaler->row_total));
    int in_place = placement->step_x == 4;
    uint8_t *to = in_place ? placement->origin + (ptrdiff_t)scaler->rows_out * placement->step_y : scaler->line;
    int divides = scaling->from != CODEC_OPAQUE && scaling->to == CODEC_STRAIGHT;
    for (size_t x = 0; x < scaling->out_width; x++) {
        uint32_t average[4];
        average_span(scaler, &scaler->spans[x], average);
        put_pixel(to + 4 * x, average, divides && average[3] < FULL);
    }
    if (!in_place)
        codec_place_rows(scaler->line, scaling->out_width, scaler->rows_out, 1, *placement, 0);
    scaler->rows_out++;
    clear_sums(scaler);
}

void codec_scaler_push(codec_scaler *scaler, const uint8_t *row)
{
    const codec_scaling *scaling = &scaler->scaling;
    if (scaler->rows_out >= scaling->out_height)
        return;
    /* Row i covers out units from i * out, row y put out covers in units from y * in. */
    uint64_t in = scaling->in_height, out = scaling->out_height;
    uint64_t start = scaler->rows_in * out, end = start + out, edge = (scaler->rows_out + 1) * in;
    int is_sampled = scaler->rows_in % scaler->row_step == 0;
    uint32_t whole = 1u << scaler->row_bits;
    uint32_t weight_here = end <= edge ? whole : weight(edge - start, out, scaler->row_bits);
    scaler->rows_in++;
    if (is_sampled && weight_here > 0)
        add_row(scaler, row, weight_here);
    if (end < edge)
        return;
    put_out_row(scaler);
    if (is_sampled && weight_here < whole)
        add_row(scaler, row, whole - weight_here);
}
