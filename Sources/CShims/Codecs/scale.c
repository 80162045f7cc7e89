/* Shrinks a picture row by row: each pixel is the average of the area it covers, in integers, so that every machine
 * gives the same. Rows are weighted and summed up down the columns (the inner loop over all pixels, which compilers turn
 * into vector instructions), and across once for each row put out.
 *
 * A whole row, or column, weighs 2^bits; one that lies on an edge is split in two. The weights of all that makes a pixel
 * have the same sum, so one factor turns sums into bytes. bits is as large as 32-bit sums allow: the error stays below a
 * tenth of a step. Colours with straight alpha are multiplied by it first.
 *
 * Where a codec has reduced the picture, a row of the input stands for several of it, and the last for those that are left:
 * that is weighed by what it has of the picture, so that every edge stays at its place. */
#include "ccodecs.h"
#include "scale_words.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BITS = 14, MOST_SAMPLES = 1 << 15 };

/* One of the two ways to sum up. */
struct axis {
    uint64_t in, out; /* in: the picture's own rows, before any reduction */
    uint64_t length;  /* of a row of the input where each put out has the length `in` */
    size_t step; /* where more than MOST_SAMPLES would be summed up, only every so manieth is */
    unsigned bits;
    uint32_t whole, total; /* weights: of a row, and of all that make one put out */
};

struct span {
    size_t first, last; /* columns; if they are the same, last_weight is 0 */
    uint16_t first_weight, last_weight;
};

struct codec_scaler {
    codec_scaling scaling;
    codec_placement placement;
    size_t columns; /* of the input */
    size_t rows_in, rows_out;
    struct axis down, across;
    uint32_t weight; /* of the rows summed up so far */
    unsigned shift;  /* makes 16 bits of a sum down a column */
    /* A sum of both ways times factor, shifted right, is a byte; full is what makes 255. */
    uint32_t full, factor;
    unsigned factor_shift;
    uint32_t *sums;
    uint16_t *values; /* one row of input times its alpha, then one of sums down the columns */
    struct span *spans;
    uint8_t *line; /* a row on its way to a turned canvas */
    struct word_scaler *words; /* does it all, and nothing above is used */
};

/* `most` is the largest thing that is weighted. */
static struct axis make_axis(uint64_t in, uint64_t out, uint64_t reduction, uint64_t most)
{
    struct axis axis = {.in = in, .out = out, .length = out * reduction, .bits = MOST_BITS + 1};
    axis.step = (size_t)(in / axis.length / MOST_SAMPLES + 1);
    uint64_t bound;
    do {
        axis.bits--;
        uint64_t divisor = axis.length * axis.step, total = ((in << axis.bits) + divisor / 2) / divisor;
        axis.whole = 1u << axis.bits;
        axis.total = (uint32_t)total;
        /* Rounding adds one, passing over some another row or two. */
        bound = most * (total + (axis.step > 1 ? 2 * axis.whole : 2));
    } while (axis.bits > 0 && bound > UINT32_MAX);
    return axis;
}

static uint32_t part_of(const struct axis *axis, uint64_t part)
{
    return (uint32_t)(((part << axis->bits) + axis->length / 2) / axis->length);
}

/* What the last one weighs, for the sum of all to be right. */
static uint32_t rest_of(const struct axis *axis, uint64_t so_far)
{
    uint64_t rest = axis->total > so_far ? axis->total - so_far : 0;
    return rest < axis->whole ? (uint32_t)rest : axis->whole;
}

static void measure_spans(codec_scaler *scaler)
{
    const struct axis *axis = &scaler->across;
    for (uint64_t x = 0; x < axis->out; x++) {
        /* Column i covers `length` units from i * length, pixel x covers in units from x * in. */
        uint64_t start = x * axis->in, end = start + axis->in;
        struct span *span = &scaler->spans[x];
        span->first = (size_t)(start / axis->length);
        span->last = (size_t)((end - 1) / axis->length);
        span->first_weight = (uint16_t)part_of(axis, (span->first + 1) * axis->length - start);
        span->last_weight = 0;
        if (span->last > span->first) {
            uint64_t samples = (span->last - span->first - 1 + axis->step - 1) / axis->step;
            span->last_weight = (uint16_t)rest_of(axis, span->first_weight + (samples << axis->bits));
        }
    }
}

static void choose_factor(codec_scaler *scaler, uint64_t most)
{
    while ((most * (scaler->down.total + 2ull)) >> scaler->shift >= UINT16_MAX)
        scaler->shift++;
    uint64_t half = (1ull << scaler->shift) / 2;
    uint64_t full = ((most * scaler->down.total + half) >> scaler->shift) * scaler->across.total;
    scaler->full = (uint32_t)full;
    /* As many bits as fit: full is at least 2^24, so this ends below 2^64. */
    scaler->factor_shift = 32;
    while ((255ull << (scaler->factor_shift + 1)) / full <= UINT32_MAX && scaler->factor_shift < 55)
        scaler->factor_shift++;
    uint64_t factor = (255ull << scaler->factor_shift) / full;
    scaler->factor = (uint32_t)(factor < UINT32_MAX ? factor + 1 : factor); /* above, so that a half is rounded up */
}

codec_scaler *codec_scaler_create(codec_scaling scaling)
{
    size_t in = scaling.in_width, out = scaling.out_width, reduction = scaling.reduction;
    if (out == 0 || scaling.out_height == 0 || in > INT32_MAX || scaling.in_height > INT32_MAX || reduction == 0 ||
        out > in / reduction || scaling.out_height > scaling.in_height / reduction ||
        (scaling.has_words && reduction > 1))
        return NULL;
    codec_scaler *scaler = calloc(1, sizeof *scaler);
    if (!scaler)
        return NULL;
    if (scaling.has_words) {
        scaler->words = word_scaler_create(&scaling);
        if (!scaler->words) {
            free(scaler);
            return NULL;
        }
        return scaler;
    }
    uint64_t most = scaling.from == CODEC_ALPHA_STRAIGHT ? 255 * 255 : 255;
    scaler->scaling = scaling;
    scaler->columns = (in + reduction - 1) / reduction;
    scaler->down = make_axis(scaling.in_height, scaling.out_height, reduction, most);
    scaler->across = make_axis(in, out, reduction, UINT16_MAX);
    choose_factor(scaler, most);
    scaler->sums = malloc(scaler->columns * 4 * sizeof *scaler->sums);
    scaler->values = malloc(scaler->columns * 4 * sizeof *scaler->values);
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
    word_scaler_destroy(scaler->words);
    free(scaler->sums);
    free(scaler->values);
    free(scaler->spans);
    free(scaler->line);
    free(scaler);
}

void codec_scaler_begin(codec_scaler *scaler, codec_placement placement)
{
    if (scaler->words) {
        word_scaler_begin(scaler->words, placement);
        return;
    }
    scaler->placement = placement;
    scaler->rows_in = scaler->rows_out = 0;
    scaler->weight = 0;
    memset(scaler->sums, 0, scaler->columns * 4 * sizeof *scaler->sums);
}

size_t codec_scaler_rows(const codec_scaler *scaler)
{
    return scaler->words ? word_scaler_rows(scaler->words) : scaler->rows_out;
}

/* Down the columns */

static void add_bytes(uint32_t *restrict sums, const uint8_t *restrict row, size_t n, uint16_t weight)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (uint32_t)(uint16_t)row[i] * weight;
}

static void add_values(uint32_t *restrict sums, const uint16_t *restrict row, size_t n, uint16_t weight)
{
    for (size_t i = 0; i < n; i++)
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
    if (weight == 0)
        return;
    size_t count = 4 * scaler->columns;
    if (scaler->scaling.from == CODEC_ALPHA_STRAIGHT) {
        multiply_by_alpha(scaler->values, row, scaler->columns);
        add_values(scaler->sums, scaler->values, count, (uint16_t)weight);
    } else {
        add_bytes(scaler->sums, row, count, (uint16_t)weight);
    }
    scaler->weight += weight;
}

/* Into 16 bits; the sums begin anew. */
static void take_sums(uint16_t *restrict values, uint32_t *restrict sums, size_t n, unsigned shift)
{
    uint32_t half = (1u << shift) / 2;
    for (size_t i = 0; i < n; i++) {
        values[i] = (uint16_t)((sums[i] + half) >> shift);
        sums[i] = 0;
    }
}

/* Across: four channels at a time, in the vectors that gcc and clang have for every processor. */

typedef uint16_t four_values __attribute__((vector_size(8)));
typedef uint32_t four_sums __attribute__((vector_size(16)));
typedef uint64_t two_products __attribute__((vector_size(16)));
typedef uint8_t four_bytes __attribute__((vector_size(4)));

static four_sums load_four(const uint16_t *from)
{
    four_values values;
    memcpy(&values, from, sizeof values);
    return __builtin_convertvector(values, four_sums);
}

static four_sums weigh(const uint16_t *from, uint16_t weight)
{
    four_values weights = {weight, weight, weight, weight};
    return load_four(from) * __builtin_convertvector(weights, four_sums);
}

static four_sums sum_up(const uint16_t *values, const struct span *span, size_t step, unsigned bits)
{
    const uint16_t *first = values + 4 * span->first, *last = values + 4 * span->last;
    four_sums between = {0, 0, 0, 0};
    for (const uint16_t *column = first + 4; column < last; column += step)
        between += load_four(column);
    return (between << bits) + weigh(first, span->first_weight) + weigh(last, span->last_weight);
}

/* Sums times factor, 64 bits wide, two and two; none is more than 255: sums are never a thousandth above full. */
static four_bytes average(four_sums sums, uint32_t factor, unsigned shift)
{
    two_products half = {1ull << (shift - 1), 1ull << (shift - 1)}, factors = {factor, factor};
    two_products low = ((two_products)sums & UINT32_MAX) * factors, high = ((two_products)sums >> 32) * factors;
    two_products both = ((low + half) >> shift) | ((high + half) >> shift) << 32;
    return __builtin_convertvector((four_sums)both, four_bytes);
}

static void put_straight(uint8_t *to, four_sums sums)
{
    uint32_t alpha = sums[3];
    for (int c = 0; c < 3; c++) {
        uint64_t value = alpha ? (sums[c] * 255ull + alpha / 2) / alpha : 0;
        to[c] = (uint8_t)(value < 255 ? value : 255);
    }
}

static void put_out_row(codec_scaler *scaler)
{
    const codec_scaling *scaling = &scaler->scaling;
    const codec_placement *placement = &scaler->placement;
    take_sums(scaler->values, scaler->sums, 4 * scaler->columns, scaler->shift);
    scaler->weight = 0;
    int in_place = codec_is_in_place(placement);
    uint8_t *to = in_place ? placement->origin + (ptrdiff_t)scaler->rows_out * placement->step_y : scaler->line;
    /* Colours are converted before they are multiplied by alpha. */
    int multiplies_late = placement->colour && scaling->to == CODEC_ALPHA_PREMULTIPLIED;
    int divides = scaling->from != CODEC_ALPHA_OPAQUE && (scaling->to == CODEC_ALPHA_STRAIGHT || multiplies_late);
    const struct span *spans = scaler->spans;
    const uint32_t factor = scaler->factor, full = scaler->full;
    const unsigned shift = scaler->factor_shift, bits = scaler->across.bits;
    const size_t step = 4 * scaler->across.step;
    for (size_t x = 0; x < scaling->out_width; x++, to += 4) {
        four_sums sums = sum_up(scaler->values, &spans[x], step, bits);
        four_bytes bytes = average(sums, factor, shift);
        memcpy(to, &bytes, sizeof bytes);
        if (divides && sums[3] != full)
            put_straight(to, sums);
    }
    if (!in_place)
        codec_place_rows(scaler->line, scaling->out_width, scaler->rows_out, 1, *placement, multiplies_late);
    if (!codec_stop_is_due(placement->stop, scaler->columns))
        scaler->rows_out++;
}

void codec_scaler_push(codec_scaler *scaler, const uint8_t *row)
{
    if (scaler->words) {
        word_scaler_push(scaler->words, row);
        return;
    }
    const struct axis *axis = &scaler->down;
    if (scaler->rows_out >= axis->out)
        return;
    /* Row i covers `length` units from i * length, row y put out covers in units from y * in. */
    uint64_t end = (scaler->rows_in + 1) * axis->length, edge = (scaler->rows_out + 1) * axis->in;
    uint32_t whole = scaler->rows_in % axis->step == 0 ? axis->whole : 0;
    scaler->rows_in++;
    if (end < edge) {
        add_row(scaler, row, whole);
        return;
    }
    uint32_t rest = rest_of(axis, scaler->weight), here = rest < whole ? rest : whole;
    add_row(scaler, row, here);
    put_out_row(scaler);
    /* Measured anew: what the last one lacked by rounding must not add up from row to row. */
    if (end > edge && whole > 0)
        add_row(scaler, row, part_of(axis, end - edge));
}
