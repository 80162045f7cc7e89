#include "ccodecs.h"

#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>
#include <jerror.h>
#include <stdlib.h>
#include <string.h>

enum { STRIP_ROWS = 16, TOLERATED_BYTES_BEFORE_END = 16, EOI = JPEG_EOI };

struct codec_jpeg {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    jmp_buf trap;
    size_t to_skip; /* bytes of segments nobody reads that have still to come */
    int is_ending, has_ended_early, is_damaged, failure;
    int bgra, has_inks;
    size_t rows; /* put out in this pass, all from the file's own bytes */
    uint8_t *strip; /* rows on their way to a turned canvas */
    char message[JMSG_LENGTH_MAX];
};

/* Errors and warnings */

static void keep_message(struct codec_jpeg *session)
{
    session->errors.format_message((j_common_ptr)&session->jpeg, session->message);
}

static void trap_error(j_common_ptr jpeg)
{
    struct codec_jpeg *session = jpeg->client_data;
    session->failure = jpeg->err->msg_code;
    keep_message(session);
    longjmp(session->trap, 1);
}

/* Libjpeg goes on after damage and says so only here. Stray bytes between the segments of the header, and a few behind
 * the last coefficients, cost no pixel; decoders agree on such files. */
static int costs_pixels(const struct codec_jpeg *session)
{
    const struct jpeg_error_mgr *errors = &session->errors;
    switch (errors->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_JFIF_MAJOR:
        return 0;
    case JWRN_EXTRANEOUS_DATA:
        if (session->jpeg.input_scan_number == 0)
            return 0;
        return errors->msg_parm.i[1] != EOI || errors->msg_parm.i[0] > TOLERATED_BYTES_BEFORE_END;
    default:
        return 1;
    }
}

static void note_message(j_common_ptr jpeg, int level)
{
    struct codec_jpeg *session = jpeg->client_data;
    if (level >= 0 || session->is_damaged || session->has_ended_early || !costs_pixels(session))
        return;
    session->is_damaged = 1;
    keep_message(session);
}

static void print_nothing(j_common_ptr jpeg) { (void)jpeg; }

/* Bytes */

static void no_source_work(j_decompress_ptr jpeg) { (void)jpeg; }

static boolean fill_input_buffer(j_decompress_ptr jpeg)
{
    static const JOCTET end[2] = {0xFF, EOI};
    struct codec_jpeg *session = jpeg->client_data;
    if (!session->is_ending)
        return FALSE;
    session->has_ended_early = 1;
    session->source.next_input_byte = end;
    session->source.bytes_in_buffer = sizeof end;
    return TRUE;
}

static void skip_input_data(j_decompress_ptr jpeg, long count)
{
    struct codec_jpeg *session = jpeg->client_data;
    size_t wanted = count > 0 ? (size_t)count : 0, here = session->source.bytes_in_buffer;
    size_t now = wanted < here ? wanted : here;
    session->source.next_input_byte += now;
    session->source.bytes_in_buffer -= now;
    session->to_skip += wanted - now;
}

void codec_jpeg_give(codec_jpeg *session, const uint8_t *bytes, size_t size)
{
    session->source.next_input_byte = bytes;
    session->source.bytes_in_buffer = size;
    size_t wanted = session->to_skip;
    session->to_skip = 0;
    skip_input_data(&session->jpeg, (long)wanted);
}

size_t codec_jpeg_left(const codec_jpeg *session) { return session->source.bytes_in_buffer; }

void codec_jpeg_end(codec_jpeg *session)
{
    session->is_ending = 1;
    if (codec_jpeg_scan_is_read(session)) {
        /* A segment between two scans cannot be made up: forget what there is of it. */
        session->jpeg.unread_marker = 0;
        session->to_skip = 0;
        codec_jpeg_give(session, NULL, 0);
    }
}

/* Life */

codec_jpeg *codec_jpeg_create(void)
{
    codec_jpeg *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    session->jpeg.err = jpeg_std_error(&session->errors);
    session->jpeg.client_data = session;
    session->errors.error_exit = trap_error;
    session->errors.emit_message = note_message;
    session->errors.output_message = print_nothing;
    if (setjmp(session->trap)) {
        jpeg_destroy_decompress(&session->jpeg);
        free(session);
        return NULL;
    }
    jpeg_create_decompress(&session->jpeg);
    session->source.init_source = no_source_work;
    session->source.fill_input_buffer = fill_input_buffer;
    session->source.skip_input_data = skip_input_data;
    session->source.resync_to_restart = jpeg_resync_to_restart;
    session->source.term_source = no_source_work;
    session->jpeg.src = &session->source;
    jpeg_save_markers(&session->jpeg, JPEG_APP0 + 1, 0xFFFF);
    return session;
}

void codec_jpeg_destroy(codec_jpeg *session)
{
    if (!session)
        return;
    jpeg_destroy_decompress(&session->jpeg);
    free(session->strip);
    free(session);
}

const char *codec_jpeg_message(const codec_jpeg *session) { return session->message[0] ? session->message : NULL; }
int codec_jpeg_has_ended(const codec_jpeg *session) { return session->has_ended_early; }
int codec_jpeg_is_damaged(const codec_jpeg *session) { return session->is_damaged; }
int codec_jpeg_is_out_of_memory(const codec_jpeg *session)
{
    return session->failure == JERR_OUT_OF_MEMORY || session->failure == JERR_NO_BACKING_STORE;
}
int codec_jpeg_is_too_large(const codec_jpeg *session) { return session->failure == JERR_IMAGE_TOO_BIG; }

/* Decoding */

static codec_status wanting(const codec_jpeg *session)
{
    return session->has_ended_early ? CODEC_ENDED : CODEC_SUSPENDED;
}

codec_status codec_jpeg_read_header(codec_jpeg *session, codec_jpeg_header *header)
{
    struct jpeg_decompress_struct *jpeg = &session->jpeg;
    if (setjmp(session->trap))
        return CODEC_FAILED;
    if (jpeg_read_header(jpeg, TRUE) == JPEG_SUSPENDED)
        return wanting(session);
    header->width = jpeg->image_width;
    header->height = jpeg->image_height;
    header->is_arithmetic = jpeg->arith_code;
    header->has_multiple_scans = jpeg_has_multiple_scans(jpeg);
    return CODEC_DONE;
}

const uint8_t *codec_jpeg_exif(const codec_jpeg *session, size_t *size)
{
    static const char name[6] = "Exif\0";
    for (jpeg_saved_marker_ptr marker = session->jpeg.marker_list; marker; marker = marker->next)
        if (marker->data_length > sizeof name && !memcmp(marker->data, name, sizeof name)) {
            *size = marker->data_length - sizeof name;
            return marker->data + sizeof name;
        }
    *size = 0;
    return NULL;
}

codec_status codec_jpeg_start(codec_jpeg *session, int bgra, long maximum_memory)
{
    struct jpeg_decompress_struct *jpeg = &session->jpeg;
    if (setjmp(session->trap))
        return CODEC_FAILED;
    session->bgra = bgra;
    session->has_inks = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = session->has_inks ? JCS_CMYK : bgra ? JCS_EXT_BGRA : JCS_EXT_RGBA;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->do_fancy_upsampling = TRUE;
    jpeg->do_block_smoothing = TRUE;
    jpeg->buffered_image = jpeg_has_multiple_scans(jpeg);
    jpeg->mem->max_memory_to_use = maximum_memory;
    return jpeg_start_decompress(jpeg) ? CODEC_DONE : wanting(session);
}

/* Up to `rows`, as long as the bytes are the file's own; the caller has set the trap. */
static codec_status put_out(codec_jpeg *session, codec_placement placement, size_t rows)
{
    struct jpeg_decompress_struct *jpeg = &session->jpeg;
    int in_place = placement.step_x == 4;
    size_t width = jpeg->output_width;
    if (!in_place && !session->strip && !(session->strip = malloc(4 * width * STRIP_ROWS)))
        ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
    while (jpeg->output_scanline < rows) {
        size_t first = jpeg->output_scanline, count = 0;
        size_t wanted = rows - first < STRIP_ROWS ? rows - first : STRIP_ROWS;
        codec_status status = CODEC_DONE;
        while (count < wanted && status == CODEC_DONE) {
            JSAMPROW row = in_place ? placement.origin + (ptrdiff_t)(first + count) * placement.step_y
                                    : session->strip + 4 * width * count;
            int was_whole = !session->has_ended_early;
            if (jpeg_read_scanlines(jpeg, &row, 1) == 0) {
                status = wanting(session);
            } else if (was_whole && session->has_ended_early && !jpeg->buffered_image) {
                if (in_place)
                    memset(row, 0, 4 * width);
                status = CODEC_ENDED;
            } else {
                if (session->has_inks)
                    codec_convert_inks(row, width, jpeg->saw_Adobe_marker, session->bgra);
                count++;
            }
        }
        if (!in_place)
            codec_place_rows(session->strip, width, first, count, placement, 0);
        session->rows = first + count;
        if (status != CODEC_DONE)
            return status;
    }
    return CODEC_DONE;
}

codec_status codec_jpeg_rows(codec_jpeg *session, codec_placement placement)
{
    if (setjmp(session->trap))
        return CODEC_FAILED;
    return put_out(session, placement, session->jpeg.output_height);
}

codec_status codec_jpeg_finish(codec_jpeg *session)
{
    if (setjmp(session->trap))
        return CODEC_FAILED;
    if (!jpeg_finish_decompress(&session->jpeg))
        return wanting(session);
    return session->has_ended_early ? CODEC_ENDED : CODEC_DONE;
}

size_t codec_jpeg_rows_out(const codec_jpeg *session) { return session->rows; }

codec_status codec_jpeg_consume(codec_jpeg *session, int maximum_scans)
{
    const int had_ended = session->has_ended_early;
    if (setjmp(session->trap))
        return CODEC_FAILED;
    for (;;) {
        if (session->jpeg.input_scan_number > maximum_scans)
            return CODEC_LIMIT;
        int did = jpeg_consume_input(&session->jpeg);
        if (session->has_ended_early && !had_ended)
            return CODEC_ENDED;
        if (did == JPEG_REACHED_EOI)
            return CODEC_DONE;
        if (did == JPEG_SUSPENDED)
            return CODEC_SUSPENDED;
    }
}

int codec_jpeg_scan(const codec_jpeg *session) { return session->jpeg.input_scan_number; }

int codec_jpeg_scan_is_read(const codec_jpeg *session)
{
    return session->jpeg.input_scan_number > 0 && session->jpeg.input_iMCU_row >= session->jpeg.total_iMCU_rows;
}

size_t codec_jpeg_scan_rows(const codec_jpeg *session)
{
    size_t margin = (size_t)session->jpeg.max_v_samp_factor, read = session->jpeg.input_iMCU_row;
    if (session->has_ended_early && read > 0 && !codec_jpeg_scan_is_read(session))
        read--; /* finished with coefficients that are not the file's */
    read *= margin * DCTSIZE;
    if (read >= session->jpeg.image_height)
        return session->jpeg.image_height;
    return read > margin ? read - margin : 0; /* upsampling looks at the rows below */
}

codec_status codec_jpeg_output(codec_jpeg *session, int scan, codec_placement placement, size_t rows)
{
    struct jpeg_decompress_struct *jpeg = &session->jpeg;
    if (setjmp(session->trap))
        return CODEC_FAILED;
    session->rows = 0;
    if (!jpeg_start_output(jpeg, scan))
        return CODEC_SUSPENDED;
    codec_status status = put_out(session, placement, rows < jpeg->output_height ? rows : jpeg->output_height);
    if (status == CODEC_DONE && rows >= jpeg->output_height && !jpeg_finish_output(jpeg))
        return CODEC_SUSPENDED;
    return status;
}
