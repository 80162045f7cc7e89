/* A JPEG session's life, its errors and warnings, and the bytes it is lent. */
#include "jpeg_session.h"

#include <jerror.h>
#include <stdlib.h>

/* Some encoders pad. In a progressive file many stray bytes mean that a scan was lost. */
enum { TOLERATED_BYTES_BEFORE_END = 64 };

/* A file in arithmetic coding is lent as a whole: libjpeg is shown so many bytes at a time, and whoever wants it to stop is
 * asked in between, also where it passes over them on its way to a marker. */
enum { WINDOW = 4096, WINDOW_WORK = 1 << 15 };

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

/* Libjpeg-turbo's sequential Huffman decoder has a short cut which passes over bad codes without a word, for as many MCUs
 * as have so many bytes ahead of them; it is too much faster to go without. The same pixels come of both ways. */
static int has_short_cut(const struct codec_jpeg *session)
{
    return !session->jpeg.progressive_mode && !session->jpeg.arith_code;
}

/* Of a file with one scan all pixels are there once that is read, whatever follows; of a sequential one a component's. libjpeg
 * counts no bytes that it had looked ahead at, and how many those are depends with its short cut on the pieces of the file. */
static int stray_bytes_cost_pixels(const struct codec_jpeg *session, int count, int marker)
{
    const struct jpeg_decompress_struct *jpeg = &session->jpeg;
    if (jpeg->input_scan_number == 0)
        return 0;
    if (!codec_jpeg_scan_is_read(session))
        return 1;
    if (!jpeg->buffered_image || has_short_cut(session))
        return 0;
    return count > (marker == JPEG_EOI ? TOLERATED_BYTES_BEFORE_END : 0);
}

/* Libjpeg goes on after damage and says so only here. Stray bytes between the segments of the header cost no pixel; decoders
 * agree on such files. */
static int costs_pixels(const struct codec_jpeg *session)
{
    const struct jpeg_error_mgr *errors = &session->errors;
    switch (errors->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM: /* a transform of four components in a file of three, or the reverse */
        return 0;
    case JWRN_EXTRANEOUS_DATA:
        return stray_bytes_cost_pixels(session, errors->msg_parm.i[0], errors->msg_parm.i[1]);
    default:
        return 1;
    }
}

static size_t bytes_used(const struct codec_jpeg *session)
{
    return session->used + session->given - codec_jpeg_left(session);
}

static size_t short_cut_bytes(const struct codec_jpeg *session)
{
    return 8 * DCTSIZE2 * (size_t)(session->jpeg.blocks_in_MCU > 0 ? session->jpeg.blocks_in_MCU : 1);
}

/* From here on there are more bits than the file has. */
static void note_short(struct codec_jpeg *session)
{
    if (session->is_short)
        return;
    session->is_short = 1;
    session->short_row = session->jpeg.input_iMCU_row;
}

static void note_message(j_common_ptr jpeg, int level)
{
    struct codec_jpeg *session = jpeg->client_data;
    if (level < 0 && session->errors.msg_code == JWRN_HIT_MARKER && session->has_ended_early)
        note_short(session);
    if (level >= 0 || session->is_damaged || session->has_ended_early || !costs_pixels(session))
        return;
    if (session->errors.msg_code == JWRN_HUFF_BAD_CODE && has_short_cut(session)) {
        session->bad_code_told_below = bytes_used(session) + short_cut_bytes(session);
        return;
    }
    session->is_damaged = 1;
    /* Their number depends on how far libjpeg could look ahead, so on the pieces the file came in: left out. */
    if (session->errors.msg_code == JWRN_EXTRANEOUS_DATA)
        snprintf(
            session->message, sizeof session->message, "Corrupt JPEG data: extraneous bytes before marker 0x%02x",
            (unsigned)session->errors.msg_parm.i[1]);
    else
        keep_message(session);
}

static void print_nothing(j_common_ptr jpeg) { (void)jpeg; }

/* Bytes */

static void no_source_work(j_decompress_ptr jpeg) { (void)jpeg; }

/* libjpeg never goes back in arithmetic coding: what it has been shown it has used. */
static void show_more(struct codec_jpeg *session)
{
    size_t count = session->jpeg.arith_code && session->behind > WINDOW ? WINDOW : session->behind;
    session->source.bytes_in_buffer += count;
    session->behind -= count;
}

static boolean fill_input_buffer(j_decompress_ptr jpeg)
{
    static const JOCTET end[2] = {0xFF, JPEG_EOI};
    struct codec_jpeg *session = jpeg->client_data;
    if (session->behind > 0) {
        if (codec_stop_is_due(session->stop, WINDOW_WORK)) {
            session->is_stopped = 1;
            longjmp(session->trap, 1);
        }
        show_more(session);
        return TRUE;
    }
    /* Within a segment two made-up bytes would be taken for its contents. */
    if (!session->is_ending || (codec_jpeg_scan_is_read(session) && !session->is_given_up))
        return FALSE;
    session->has_ended_early = 1;
    /* Arithmetic coding does not tell where it needs what is not there: an encoder may leave zeros out. */
    if (session->jpeg.arith_code)
        note_short(session);
    session->source.next_input_byte = end;
    session->source.bytes_in_buffer = sizeof end;
    return TRUE;
}

static void skip_input_data(j_decompress_ptr jpeg, long count)
{
    struct codec_jpeg *session = jpeg->client_data;
    size_t wanted = count > 0 ? (size_t)count : 0;
    for (;;) {
        size_t here = session->source.bytes_in_buffer, now = wanted < here ? wanted : here;
        session->source.next_input_byte += now;
        session->source.bytes_in_buffer -= now;
        wanted -= now;
        if (wanted == 0 || session->behind == 0)
            break;
        show_more(session);
    }
    session->to_skip += wanted;
}

void codec_jpeg_give(codec_jpeg *session, const uint8_t *bytes, size_t size)
{
    session->used = bytes_used(session);
    session->given = size;
    session->source.next_input_byte = bytes;
    session->source.bytes_in_buffer = 0;
    session->behind = size;
    show_more(session);
    size_t wanted = session->to_skip;
    session->to_skip = 0;
    skip_input_data(&session->jpeg, (long)wanted);
}

size_t codec_jpeg_left(const codec_jpeg *session) { return session->source.bytes_in_buffer + session->behind; }

void codec_jpeg_end(codec_jpeg *session) { session->is_ending = 1; }

void codec_jpeg_give_up(codec_jpeg *session)
{
    session->is_ending = 1;
    session->is_given_up = 1;
    if (session->failure) {
        /* In a marker's segment, of which libjpeg knows no more now than of any other that it has not begun. */
        struct jpeg_decompress_struct *jpeg = &session->jpeg;
        jpeg->image_width = session->width;
        jpeg->image_height = session->height;
        jpeg->num_components = session->components;
        jpeg->data_precision = session->precision;
        jpeg->progressive_mode = session->is_progressive;
        jpeg->arith_code = session->is_arithmetic;
        jpeg->unread_marker = JPEG_EOI;
        session->to_skip = 0;
        codec_jpeg_give(session, NULL, 0);
    } else if (codec_jpeg_scan_is_read(session)) {
        session->jpeg.unread_marker = 0;
        session->to_skip = 0;
        codec_jpeg_give(session, NULL, 0);
    }
}

/* Life */

codec_jpeg *codec_jpeg_create(codec_stop *stop)
{
    codec_jpeg *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    session->jpeg.err = jpeg_std_error(&session->errors);
    session->jpeg.client_data = session;
    session->stop = stop;
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
    codec_jpeg_read_exif(session);
    return session;
}

void codec_jpeg_destroy(codec_jpeg *session)
{
    if (!session)
        return;
    jpeg_destroy_decompress(&session->jpeg);
    codec_jpeg_forget_profile(session);
    free(session->exif);
    free(session->strip);
    free(session);
}

const char *codec_jpeg_message(const codec_jpeg *session) { return session->message[0] ? session->message : NULL; }

int codec_jpeg_is_damaged(codec_jpeg *session, size_t file_size)
{
    /* Where decoding it in one piece would have come upon the code without the short cut: whatever the pieces were. */
    if (!session->is_damaged && file_size < session->bad_code_told_below) {
        session->is_damaged = 1;
        snprintf(session->message, sizeof session->message, "Corrupt JPEG data: bad Huffman code");
    }
    if (!session->is_damaged && session->jpeg.buffered_image && has_short_cut(session) && !session->covering_scan) {
        session->is_damaged = 1;
        snprintf(session->message, sizeof session->message, "Corrupt JPEG data: a component has no scan");
    }
    return session->is_damaged;
}

int codec_jpeg_is_out_of_memory(const codec_jpeg *session)
{
    return session->failure == JERR_OUT_OF_MEMORY || session->failure == JERR_NO_BACKING_STORE;
}
int codec_jpeg_is_too_large(const codec_jpeg *session) { return session->failure == JERR_IMAGE_TOO_BIG; }
