/* Decoding with a JPEG session. Every function that enters libjpeg sets the trap its errors jump to. */
#include "jpeg_session.h"

#include <jerror.h>
#include <stdlib.h>
#include <string.h>

/* By a profile a row of the widest picture takes 13 ms. */
enum { STRIP_ROWS = 16, STRIP_PIXELS_BY_PROFILE = 1 << 16 };

/* libjpeg takes averages in its transform, but before values are bounded and inks multiplied, and an edge of what is put out
 * lies within one of its pixels: so many halves of a pixel have to be left for each side of one that is put out. In small
 * pictures, which have more detail in a pixel and cost little, some more. */
enum { HALVES_LEFT = 4, HALVES_LEFT_OF_SMALL = 7, MOST_REDUCTION = DCTSIZE };

static int has_inks(const struct jpeg_decompress_struct *jpeg)
{
    return jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
}

static codec_status wanting(const codec_jpeg *session)
{
    return session->has_ended_early ? CODEC_ENDED : CODEC_SUSPENDED;
}

/* Whole MCUs of each component as libjpeg keeps them, whatever its share of the pixels. */
static size_t coefficient_bytes(const struct jpeg_decompress_struct *jpeg)
{
    size_t bytes = 0;
    for (int i = 0; i < jpeg->num_components; i++) {
        const jpeg_component_info *component = &jpeg->comp_info[i];
        size_t across = (size_t)component->h_samp_factor, down = (size_t)component->v_samp_factor;
        size_t width = (component->width_in_blocks + across - 1) / across * across;
        size_t height = (component->height_in_blocks + down - 1) / down * down;
        bytes += width * height * sizeof(JBLOCK);
    }
    return bytes;
}

codec_status codec_jpeg_read_header(codec_jpeg *session, codec_jpeg_header *header)
{
    struct jpeg_decompress_struct *jpeg = &session->jpeg;
    if (setjmp(session->trap))
        return codec_jpeg_failure(session);
    if (jpeg_read_header(jpeg, TRUE) == JPEG_SUSPENDED)
        return wanting(session);
    header->width = jpeg->image_width;
    header->height = jpeg->image_height;
    header->is_arithmetic = jpeg->arith_code;
    header->has_multiple_scans = jpeg_has_multiple_scans(jpeg);
    header->held = header->has_multiple_scans ? coefficient_bytes(jpeg) : 64 * (size_t)jpeg->image_width;
    return CODEC_DONE;
}

/* Its header, and which components have had a scan that says something of all their pixels. */
static void note_scan(codec_jpeg *session)
{
    const struct jpeg_decompress_struct *jpeg = &session->jpeg;
    int is_alone = jpeg->comps_in_scan == 1 && jpeg->num_components == 3;
    session->scan_before = session->scan;
    session->scan = (codec_jpeg_scan_header){
        .number = jpeg->input_scan_number,
        .component = is_alone ? jpeg->cur_comp_info[0]->component_index : -1,
        .first = jpeg->Ss,
        .last = jpeg->Se,
        .high = jpeg->Ah,
        .low = jpeg->Al};
    if (jpeg->Ss != 0 || session->covering_scan)
        return;
    for (int i = 0; i < jpeg->comps_in_scan; i++)
        session->covered |= 1u << jpeg->cur_comp_info[i]->component_index;
    if (session->covered == (1u << jpeg->num_components) - 1)
        session->covering_scan = jpeg->input_scan_number;
}

/* A component that has fewer samples than the picture pixels is reduced less, by libjpeg's own choice, but not always as much
 * less as it has fewer: of 4:1:1 at an eighth a sample of colour stands for 32 pixels across. */
static int is_fine_enough(const struct jpeg_decompress_struct *jpeg, size_t to_width, size_t to_height)
{
    size_t width = 2 * (size_t)jpeg->image_width, height = 2 * (size_t)jpeg->image_height;
    size_t halves = width * height > 4 * CODEC_SMALL_PIXELS ? HALVES_LEFT : HALVES_LEFT_OF_SMALL;
    for (int i = 0; i < jpeg->num_components; i++) {
        const jpeg_component_info *component = &jpeg->comp_info[i];
#if JPEG_LIB_VERSION >= 70
        size_t left = (size_t)component->DCT_h_scaled_size;
#else
        size_t left = (size_t)component->DCT_scaled_size;
#endif
        if (left >= DCTSIZE)
            continue;
        size_t across = DCTSIZE * (size_t)jpeg->max_h_samp_factor, down = DCTSIZE * (size_t)jpeg->max_v_samp_factor;
        if (width * left * (size_t)component->h_samp_factor < halves * to_width * across ||
            height * left * (size_t)component->v_samp_factor < halves * to_height * down)
            return 0;
    }
    return 1;
}

static unsigned choose_reduction(struct jpeg_decompress_struct *jpeg, size_t to_width, size_t to_height)
{
    for (unsigned reduction = has_inks(jpeg) ? 1 : MOST_REDUCTION; reduction > 1; reduction /= 2) {
        jpeg->scale_num = DCTSIZE / reduction;
        jpeg->scale_denom = DCTSIZE;
        jpeg_calc_output_dimensions(jpeg);
        if (is_fine_enough(jpeg, to_width, to_height))
            return reduction;
    }
    return 1;
}

unsigned codec_jpeg_reduction(codec_jpeg *session, size_t to_width, size_t to_height)
{
    if (setjmp(session->trap))
        return 1;
    return choose_reduction(&session->jpeg, to_width, to_height);
}

codec_status codec_jpeg_start(codec_jpeg *session, int bgra, unsigned reduction, codec_scaler *scaler)
{
    struct jpeg_decompress_struct *jpeg = &session->jpeg;
    if (setjmp(session->trap))
        return codec_jpeg_failure(session);
    session->bgra = bgra;
    session->scaler = scaler;
    session->width = jpeg->image_width;
    session->height = jpeg->image_height;
    session->components = jpeg->num_components;
    session->precision = jpeg->data_precision;
    session->is_progressive = jpeg->progressive_mode;
    session->is_arithmetic = jpeg->arith_code;
    session->has_inks = has_inks(jpeg);
    session->inks_are_inverted = jpeg->saw_Adobe_marker;
    jpeg->out_color_space = session->has_inks ? JCS_CMYK : bgra ? JCS_EXT_BGRA : JCS_EXT_RGBA;
    jpeg->scale_num = DCTSIZE / reduction;
    jpeg->scale_denom = DCTSIZE;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->do_fancy_upsampling = TRUE;
    jpeg->do_block_smoothing = TRUE;
    jpeg->buffered_image = jpeg_has_multiple_scans(jpeg);
    jpeg->mem->max_memory_to_use = 0; /* the caller has judged it; and the environment has no say (JPEGMEM) */
    if (!jpeg_start_decompress(jpeg))
        return wanting(session);
    if (jpeg->arith_code)
        codec_jpeg_watch_mcus(session);
    note_scan(session);
    return CODEC_DONE;
}

/* A second frame header is an error, but only at its end: until then libjpeg has let it change what it works by. */
static int is_untouched(const codec_jpeg *session)
{
    const struct jpeg_decompress_struct *jpeg = &session->jpeg;
    return jpeg->image_width == session->width && jpeg->image_height == session->height &&
           jpeg->num_components == session->components;
}

/* Of the rows of MCUs that are the file's own; upsampling mixes the last of their rows with those below. */
static size_t rows_of(const codec_jpeg *session, size_t rows_of_mcus)
{
    const struct jpeg_decompress_struct *jpeg = &session->jpeg;
    size_t rows = rows_of_mcus * (size_t)jpeg->max_v_samp_factor * jpeg->scale_num;
    if (rows >= jpeg->output_height)
        return jpeg->output_height;
    int mixes = 0;
    for (int i = 0; i < jpeg->num_components; i++)
        mixes |= jpeg->comp_info[i].v_samp_factor < jpeg->max_v_samp_factor;
    return mixes && rows > 0 ? rows - 1 : rows;
}

/* A picture in one scan. */
static int is_made_up(const codec_jpeg *session, size_t row)
{
    return session->is_short && !session->jpeg.buffered_image && row >= rows_of(session, session->short_row);
}

/* Where the next row is written: on the canvas, if it can lie there as it comes. */
static uint8_t *next_row(const codec_jpeg *session, const codec_placement *placement)
{
    if (session->strip)
        return session->strip + 4 * (size_t)session->jpeg.output_width * session->strip_rows;
    return placement->origin + (ptrdiff_t)(session->strip_first + session->strip_rows) * placement->step_y;
}

static codec_status read_row(codec_jpeg *session, const codec_placement *placement)
{
    struct jpeg_decompress_struct *jpeg = &session->jpeg;
    size_t width = jpeg->output_width;
    JSAMPROW row = next_row(session, placement);
    if (codec_stop_is_due(session->stop, width))
        return CODEC_LATE;
    if (jpeg_read_scanlines(jpeg, &row, 1) == 0)
        return wanting(session);
    if (is_made_up(session, session->strip_first + session->strip_rows)) {
        memset(row, 0, 4 * width);
        return CODEC_ENDED;
    }
    if (session->has_inks && session->inks)
        codec_colour_inks(session->inks, row, width);
    else if (session->has_inks)
        codec_convert_inks(row, width, session->inks_are_inverted, session->bgra);
    if (session->scaler)
        codec_scaler_push(session->scaler, row);
    session->strip_rows++;
    return CODEC_DONE;
}

/* 0: it was stopped. */
static int hand_on_rows(codec_jpeg *session, const codec_placement *placement)
{
    if (session->strip && !session->scaler)
        codec_place_rows(
            session->strip, session->jpeg.output_width, session->strip_first, session->strip_rows, *placement, 0);
    if (codec_stop_is_due(session->stop, 0))
        return 0;
    session->rows = session->strip_first + session->strip_rows;
    session->strip_rows = 0;
    return 1;
}

/* Up to `rows`, as long as the bytes are the file's own; the caller has set the trap. */
static codec_status put_out(codec_jpeg *session, const codec_placement *placement, size_t rows)
{
    struct jpeg_decompress_struct *jpeg = &session->jpeg;
    size_t width = jpeg->output_width, most = STRIP_ROWS;
    if (placement->colour && most * width > STRIP_PIXELS_BY_PROFILE)
        most = STRIP_PIXELS_BY_PROFILE / width + 1;
    int in_place = !session->scaler && codec_is_in_place(placement);
    if (!in_place && !session->strip && !(session->strip = malloc(4 * width * STRIP_ROWS)))
        ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
    while (jpeg->output_scanline < rows) {
        session->strip_first = jpeg->output_scanline;
        size_t wanted = rows - session->strip_first < most ? rows - session->strip_first : most;
        codec_status status = CODEC_DONE;
        while (session->strip_rows < wanted && status == CODEC_DONE)
            status = read_row(session, placement);
        if (!hand_on_rows(session, placement))
            return CODEC_LATE;
        if (status != CODEC_DONE)
            return status;
    }
    return CODEC_DONE;
}

codec_status codec_jpeg_rows(codec_jpeg *session, codec_placement placement, size_t rows)
{
    if (setjmp(session->trap)) {
        if (!session->is_stopped)
            hand_on_rows(session, &placement);
        return codec_jpeg_failure(session);
    }
    if (!is_untouched(session))
        return CODEC_FAILED;
    session->strip_rows = 0;
    size_t height = session->jpeg.output_height;
    return put_out(session, &placement, rows < height ? rows : height);
}

/* Of several scans; the caller has set the trap. */
static int end_pass(codec_jpeg *session)
{
    if (session->pass && !jpeg_finish_output(&session->jpeg))
        return 0;
    session->pass = 0;
    return 1;
}

codec_status codec_jpeg_finish(codec_jpeg *session)
{
    if (setjmp(session->trap))
        return codec_jpeg_failure(session);
    if (!end_pass(session) || !jpeg_finish_decompress(&session->jpeg))
        return wanting(session);
    return session->has_ended_early ? CODEC_ENDED : CODEC_DONE;
}

size_t codec_jpeg_rows_out(const codec_jpeg *session) { return session->rows; }

codec_status codec_jpeg_consume(codec_jpeg *session)
{
    const int had_ended = session->has_ended_early;
    if (setjmp(session->trap))
        return codec_jpeg_failure(session);
    for (;;) {
        /* A row of MCUs. */
        if (codec_stop_is_due(session->stop, session->jpeg.image_width))
            return CODEC_LATE;
        int did = jpeg_consume_input(&session->jpeg);
        if (session->has_ended_early && !had_ended)
            return CODEC_ENDED;
        if (did == JPEG_REACHED_EOI)
            return CODEC_DONE;
        if (did == JPEG_SUSPENDED)
            return CODEC_SUSPENDED;
        if (did == JPEG_REACHED_SOS)
            note_scan(session);
    }
}

int codec_jpeg_scan(const codec_jpeg *session) { return session->jpeg.input_scan_number; }

codec_jpeg_scan_header codec_jpeg_scan_header_of(const codec_jpeg *session, int before)
{
    return before ? session->scan_before : session->scan;
}

int codec_jpeg_scan_is_read(const codec_jpeg *session)
{
    return session->jpeg.input_scan_number > 0 && session->jpeg.input_iMCU_row >= session->jpeg.total_iMCU_rows;
}

size_t codec_jpeg_scan_rows(const codec_jpeg *session)
{
    return rows_of(session, session->is_short ? session->short_row : session->jpeg.input_iMCU_row);
}

int codec_jpeg_is_final(const codec_jpeg *session)
{
    const struct jpeg_decompress_struct *jpeg = &session->jpeg;
    /* An arithmetic coder leaves zeros at its end away: what is missing cannot be told from what was never written. */
    if (session->is_arithmetic || session->is_short)
        return 0;
    if (!session->is_progressive)
        return !jpeg->buffered_image || session->covering_scan > 0;
    for (int i = 0; i < session->components; i++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (jpeg->coef_bits[i][k] != 0)
                return 0;
    return 1;
}

int codec_jpeg_covering_scan(const codec_jpeg *session) { return session->covering_scan; }

codec_status codec_jpeg_begin_pass(codec_jpeg *session, int scan, int smooths)
{
    if (setjmp(session->trap))
        return codec_jpeg_failure(session);
    if (!is_untouched(session))
        return CODEC_FAILED;
    if (!end_pass(session))
        return CODEC_SUSPENDED;
    session->jpeg.do_block_smoothing = smooths ? TRUE : FALSE;
    if (!jpeg_start_output(&session->jpeg, scan))
        return CODEC_SUSPENDED;
    session->pass = scan;
    session->rows = 0;
    return CODEC_DONE;
}
