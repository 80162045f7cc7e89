#include "ccodecs.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { MAXIMUM_CHUNK_MEMORY = 8 * 1024 * 1024, MAXIMUM_CHUNKS_KEPT = 128, MESSAGE_SIZE = 200 };

struct codec_png {
    png_structp png;
    png_infop info;
    codec_placement placement;
    codec_scaler *scaler;
    codec_stop *stop;
    int is_stopped;
    size_t width, rows;
    int bgra, premultiply, pass, is_interlaced;
    int is_deep; /* rows have words */
    int has_header, is_at_end, is_damaged, is_out_of_memory;
    size_t unused;
    char message[MESSAGE_SIZE];
};

static void keep_message(struct codec_png *session, const char *message)
{
    strncpy(session->message, message, MESSAGE_SIZE - 1);
}

static void trap_error(png_structp png, png_const_charp message)
{
    struct codec_png *session = png_get_error_ptr(png);
    keep_message(session, message);
    session->is_out_of_memory = strstr(message, "memory") != NULL;
    png_longjmp(png, 1);
}

/* The push reader reports these two as warnings and goes on with rows missing or unverified, where the pull reader
 * refuses the file. */
static void note_warning(png_structp png, png_const_charp message)
{
    struct codec_png *session = png_get_error_ptr(png);
    if (!strcmp(message, "Truncated compressed data in IDAT") || strstr(message, "ADLER32 mismatch")) {
        session->is_damaged = 1;
        keep_message(session, message);
    }
}

static void on_header(png_structp png, png_infop info)
{
    struct codec_png *session = png_get_progressive_ptr(png);
    (void)info;
    session->has_header = 1;
    /* The canvas does not exist yet: its size has to be judged first. */
    session->unused = png_process_data_pause(png, 0);
}

/* The pixels of a row of an Adam7 pass, each to its place: libpng would first make a row of the full width. */
static void scatter(const struct codec_png *session, const uint8_t *row, size_t number, unsigned pass)
{
    size_t step = (size_t)1 << PNG_PASS_COL_SHIFT(pass), pixel = session->is_deep ? 8 : 4;
    size_t y = (number << PNG_PASS_ROW_SHIFT(pass)) + PNG_PASS_START_ROW(pass);
    uint8_t *to = session->placement.origin + (ptrdiff_t)y * session->placement.step_y;
    if (step == 1) {
        memcpy(to, row, pixel * session->width);
        return;
    }
    for (size_t x = PNG_PASS_START_COL(pass); x < session->width; x += step, row += pixel) {
        if (pixel == 4)
            memcpy(to + 4 * x, row, 4);
        else
            memcpy(to + 8 * x, row, 8);
    }
}

static void stop(struct codec_png *session)
{
    session->is_stopped = 1;
    png_longjmp(session->png, 1);
}

static void on_row(png_structp png, png_bytep row, png_uint_32 number, int pass)
{
    struct codec_png *session = png_get_progressive_ptr(png);
    if (codec_stop_is_due(session->stop, session->width))
        stop(session);
    session->pass = pass;
    if (!row || !session->placement.origin) {
        session->rows = (size_t)number + 1;
        return;
    }
    if (session->is_interlaced)
        scatter(session, row, number, (unsigned)pass);
    else if (session->scaler)
        codec_scaler_push(session->scaler, row);
    else if (session->is_deep)
        codec_place_words(row, session->width, number, 1, session->placement);
    else
        codec_place_rows(row, session->width, number, 1, session->placement, session->premultiply);
    if (codec_stop_is_due(session->stop, 0))
        stop(session);
    session->rows = (size_t)number + 1;
}

static void on_end(png_structp png, png_infop info)
{
    struct codec_png *session = png_get_progressive_ptr(png);
    (void)info;
    session->is_at_end = 1;
}

codec_png *codec_png_create(int bgra, codec_stop *stop)
{
    codec_png *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    session->bgra = bgra;
    session->stop = stop;
    session->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, session, trap_error, note_warning);
    session->info = session->png ? png_create_info_struct(session->png) : NULL;
    if (!session->info || setjmp(png_jmpbuf(session->png))) {
        codec_png_destroy(session);
        return NULL;
    }
    /* The caller judges the size, by pixels; libpng's own bound of a million columns would refuse long strips. */
    png_set_user_limits(session->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_malloc_max(session->png, MAXIMUM_CHUNK_MEMORY);
    png_set_chunk_cache_max(session->png, MAXIMUM_CHUNKS_KEPT);
    png_set_progressive_read_fn(session->png, session, on_header, on_row, on_end);
    return session;
}

void codec_png_destroy(codec_png *session)
{
    if (!session)
        return;
    if (session->png)
        png_destroy_read_struct(&session->png, &session->info, NULL);
    free(session);
}

const char *codec_png_message(const codec_png *session) { return session->message[0] ? session->message : NULL; }
int codec_png_is_damaged(const codec_png *session) { return session->is_damaged; }
int codec_png_is_out_of_memory(const codec_png *session) { return session->is_out_of_memory; }

void codec_png_ignore_checksums(codec_png *session)
{
    if (setjmp(png_jmpbuf(session->png)))
        return;
    png_set_crc_action(session->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
}

codec_status codec_png_feed(codec_png *session, const uint8_t *bytes, size_t size, size_t *used)
{
    *used = size;
    if (setjmp(png_jmpbuf(session->png)))
        return session->is_stopped ? CODEC_LATE : CODEC_FAILED;
    session->unused = 0;
    png_process_data(session->png, session->info, (png_bytep)(uintptr_t)bytes, size);
    *used = size - session->unused;
    return session->is_at_end ? CODEC_DONE : CODEC_SUSPENDED;
}

int codec_png_header_of(const codec_png *session, codec_png_header *header)
{
    if (!session->has_header)
        return 0;
    header->width = png_get_image_width(session->png, session->info);
    header->height = png_get_image_height(session->png, session->info);
    header->is_interlaced = png_get_interlace_type(session->png, session->info) != PNG_INTERLACE_NONE;
    header->is_gray = (png_get_color_type(session->png, session->info) & PNG_COLOR_MASK_COLOR) == 0;
    header->depth = png_get_bit_depth(session->png, session->info);
    header->has_alpha = (png_get_color_type(session->png, session->info) & PNG_COLOR_MASK_ALPHA) != 0 ||
                        png_get_valid(session->png, session->info, PNG_INFO_tRNS) != 0;
    return 1;
}

codec_status codec_png_start(
    codec_png *session, codec_placement placement, int premultiply, codec_scaler *scaler, int deep)
{
    png_structp png = session->png;
    if (setjmp(png_jmpbuf(png)))
        return CODEC_FAILED;
    session->width = png_get_image_width(png, session->info);
    session->placement = placement;
    session->premultiply = premultiply;
    session->scaler = scaler;
    session->is_deep = deep;
    session->is_interlaced = png_get_interlace_type(png, session->info) != PNG_INTERLACE_NONE;
    size_t pixel = deep ? 8 : 4;
    png_set_expand(png);
    if (!deep)
        png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, deep ? 0xFFFF : 0xFF, PNG_FILLER_AFTER);
    const union {
        uint16_t word;
        uint8_t first;
    } one = {1};
    if (deep && one.first)
        png_set_swap(png);
    if (session->bgra)
        png_set_bgr(png);
    png_read_update_info(png, session->info);
    if (png_get_rowbytes(png, session->info) != pixel * session->width)
        png_error(png, "unexpected row size");
    return CODEC_SUSPENDED;
}

int codec_png_pass(const codec_png *session) { return session->pass; }
size_t codec_png_rows(const codec_png *session) { return session->rows; }

int codec_png_is_whole(const codec_png *session)
{
    enum { ADAM7_PASSES = 7 }; /* small pictures leave some of them out: count libpng's own number */
    if (png_get_interlace_type(session->png, session->info) != PNG_INTERLACE_NONE)
        return png_get_current_pass_number(session->png) >= ADAM7_PASSES;
    return session->rows >= png_get_image_height(session->png, session->info);
}
