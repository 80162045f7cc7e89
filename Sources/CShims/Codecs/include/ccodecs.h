/* The codecs as Swift can call them. libwebp's own interface needs no help; libjpeg and libpng report errors by
 * longjmp, which must not cross a Swift frame: each function here that enters them sets a trap, and gives back a
 * status and the codec's own words instead. Sessions live on the heap; none of this is safe for two threads at once. */
#ifndef CCODECS_H
#define CCODECS_H

#include <stddef.h>
#include <stdint.h>
#include <webp/decode.h>
#include <webp/demux.h>

/* CPU time of the calling thread, in nanoseconds. */
int64_t codec_cpu_time(void);

/* What ends decoding early: somebody who asks for it, on any thread, or the CPU time of the one thread that decodes. Once it
 * is due it stays so. NULL, for want of memory, never is. */
typedef struct codec_stop codec_stop;
/* `now`: codec_cpu_time, but in tests. */
codec_stop *codec_stop_create(int64_t (*now)(void));
void codec_stop_destroy(codec_stop *stop);
void codec_stop_ask(codec_stop *stop);
int codec_stop_is_asked(const codec_stop *stop);
/* For work on this thread, in its CPU time; 0: none. */
void codec_stop_set_deadline(codec_stop *stop, int64_t deadline);
/* Whether to stop, asked after so many pixels or what takes as long. The clock is looked at now and then only. While a fork is
 * near the thread gives its turn on the processor away first. */
int codec_stop_is_due(codec_stop *stop, size_t work);

enum codec_status {
    CODEC_DONE,
    CODEC_SUSPENDED, /* wants more bytes */
    CODEC_ENDED,     /* the bytes have ended too early (after codec_jpeg_end) */
    CODEC_LATE,      /* it was stopped; as CODEC_FAILED */
    CODEC_FAILED,    /* see the message; nothing but destroy may follow: the codec's state is not to be trusted */
};
typedef enum codec_status codec_status;

/* How a pixel lies on a canvas: four bytes as they come; the first three of them; four words, of
 * bytes: times 257. */
enum codec_pixel { CODEC_PIXEL_FOUR_BYTES, CODEC_PIXEL_THREE_BYTES, CODEC_PIXEL_FOUR_WORDS };
typedef enum codec_pixel codec_pixel;

typedef struct codec_colour codec_colour;

/* Where pixels go: the pixel x, y of the stored picture belongs at origin + x * step_x + y * step_y. Nothing there is
 * taken to be aligned. */
struct codec_placement {
    uint8_t *origin;
    ptrdiff_t step_x, step_y;
    codec_pixel pixel;
    const codec_colour *colour; /* converts them on the way; NULL: as they come */
    codec_stop *stop;           /* when it is due the rest is not written: ask it before anything is called ready */
};
typedef struct codec_placement codec_placement;

/* Whether a decoder may write its rows, four bytes a pixel, where they belong. */
static inline int codec_is_in_place(const codec_placement *placement)
{
    return placement->step_x == 4 && placement->pixel == CODEC_PIXEL_FOUR_BYTES && !placement->colour;
}

/* Four bytes a pixel, alpha last. Places rows first to first + count of a picture whose rows lie width * 4 apart;
 * colours are multiplied by alpha, (c * a + 127) / 255, if wanted. */
void codec_place_rows(
    const uint8_t *pixels, size_t width, size_t first, size_t count, codec_placement placement, int premultiply);
/* The same for rows of four words a pixel, width * 8 apart, onto a canvas of words. */
void codec_place_words(const uint8_t *pixels, size_t width, size_t first, size_t count, codec_placement placement);
/* Four bytes a pixel from three, opaque, or from words, rounded. */
void codec_four_bytes(const uint8_t *from, codec_pixel pixel, uint8_t *to, size_t count);
/* Whether nothing is seen through any of so many pixels. */
int codec_is_opaque(const uint8_t *pixels, codec_pixel pixel, size_t count);
/* The same multiplication in place. */
void codec_premultiply(uint8_t *pixels, size_t count);
/* Straight alpha: pixels over those that are there, as the APNG specification blends them. */
void codec_blend_over(uint8_t *canvas, const uint8_t *pixels, size_t count);
/* The same of words, rounded to the nearest. Nothing is taken to be aligned. */
void codec_blend_over_words(uint8_t *canvas, const uint8_t *pixels, size_t count);
/* Bytes as libwebp's WebPAnimDecoder rounds them. */
void codec_blend_over_webp(uint8_t *canvas, const uint8_t *pixels, size_t count);
/* From one order of channels and kind of alpha to another; each is 0 RGBA, or CODEC_LAYOUT_BGRA, CODEC_LAYOUT_PREMULTIPLIED, both.
 * Dividing by alpha rounds to the nearest; where alpha is 0 colours become 0. */
enum { CODEC_LAYOUT_BGRA = 1, CODEC_LAYOUT_PREMULTIPLIED = 2 };
void codec_convert_pixels(const uint8_t *from, int from_layout, uint8_t *to, int to_layout, size_t count);
/* The same picture in another size, between the pixels by straight lines: for enlarging. Alpha counts as one more colour.
 * 0: no memory, or stopped. */
int codec_stretch(
    const uint8_t *pixels, size_t width, size_t height, size_t to_width, size_t to_height, codec_placement placement,
    codec_stop *stop);
/* Inks to colours in place, opaque; stored inverted is what Adobe writes: 255 means no ink. */
void codec_convert_inks(uint8_t *pixels, size_t count, int inverted, int bgra);

/* Colours */

enum codec_samples { CODEC_SAMPLES_COLOURS, CODEC_SAMPLES_GRAY, CODEC_SAMPLES_INKS };
typedef enum codec_samples codec_samples;

/* From a profile to sRGB, for pixels that were stored as `samples`, inks inverted or not; NULL for a profile that cannot be
 * used for them, and when it was stopped, which is looked at before each of at most two transforms of up to 50 ms. One thread at a
 * time. */
codec_colour *codec_colour_create(
    const void *profile, size_t length, codec_samples samples, int inverted, int bgra, codec_stop *stop);
void codec_colour_destroy(codec_colour *colour);
/* Four a pixel, alpha last and straight, which stays; gray is the first of the three. Not of inks. */
void codec_colour_bytes(const codec_colour *colour, const uint8_t *from, uint8_t *to, size_t count);
void codec_colour_words(const codec_colour *colour, const uint16_t *from, uint16_t *to, size_t count);
/* In place, as codec_convert_inks. */
void codec_colour_inks(const codec_colour *colour, uint8_t *pixels, size_t count);

/* Scaling down */

enum codec_alpha { CODEC_ALPHA_OPAQUE, CODEC_ALPHA_STRAIGHT, CODEC_ALPHA_PREMULTIPLIED };
typedef enum codec_alpha codec_alpha;

/* A picture of no more pixels leaves more of its way to the exact filter: a pixel of it has more detail, and costs little. */
enum { CODEC_SMALL_PIXELS = 512 * 512 };

/* What a picture is, and what it becomes: neither side grows. */
struct codec_scaling {
    size_t in_width, in_height, out_width, out_height;
    size_t reduction; /* a row or column that comes stands for so many of the picture, the last for what is left; words: 1 */
    codec_alpha from, to; /* opaque stays opaque, whatever `to` says */
    int has_words;        /* four words a pixel, on a canvas of words, straight or opaque: exactly rounded */
};
typedef struct codec_scaling codec_scaling;
typedef struct codec_scaler codec_scaler;

/* NULL when there is no memory, and unless each side becomes smaller by at least the reduction. Takes 24 bytes for each column
 * of the input, 48 for words. */
codec_scaler *codec_scaler_create(codec_scaling scaling);
void codec_scaler_destroy(codec_scaler *scaler);
/* Before the first row of a pass. */
void codec_scaler_begin(codec_scaler *scaler, codec_placement placement);
/* The next row of the input; writes a row of the output when that is covered. What is too much is ignored. */
void codec_scaler_push(codec_scaler *scaler, const uint8_t *row);
/* Rows written since codec_scaler_begin. */
size_t codec_scaler_rows(const codec_scaler *scaler);

/* JPEG */

typedef struct codec_jpeg codec_jpeg;

struct codec_jpeg_header {
    uint32_t width, height;
    int is_arithmetic, has_multiple_scans;
    size_t held; /* bytes of coefficients where there are several scans, otherwise of rows on their way */
};
typedef struct codec_jpeg_header codec_jpeg_header;

/* `stop` is looked at within each call, and has to outlive the session. */
codec_jpeg *codec_jpeg_create(codec_stop *stop);
void codec_jpeg_destroy(codec_jpeg *session);
/* The error's words; without one, the words of the first warning that means damaged pixels; else NULL. */
const char *codec_jpeg_message(const codec_jpeg *session);
/* file_size: bytes of the whole file, those after its end included. */
int codec_jpeg_is_damaged(codec_jpeg *session, size_t file_size);
int codec_jpeg_is_out_of_memory(const codec_jpeg *session);
int codec_jpeg_is_too_large(const codec_jpeg *session);

/* Lends bytes for the next calls; those not used (codec_jpeg_left) have to be given again, more behind them. */
void codec_jpeg_give(codec_jpeg *session, const uint8_t *bytes, size_t size);
size_t codec_jpeg_left(const codec_jpeg *session);
/* Nothing follows the bytes given from now on: decoding stops with CODEC_ENDED within a scan, CODEC_SUSPENDED elsewhere. */
void codec_jpeg_end(codec_jpeg *session);
/* The file counts as ended where its bytes end, so that codec_jpeg_consume and then a pass can show what is
 * there. A segment that was begun is forgotten. */
void codec_jpeg_give_up(codec_jpeg *session);

codec_status codec_jpeg_read_header(codec_jpeg *session, codec_jpeg_header *header);
/* The first EXIF segment, without its name; NULL if there is none. Lives as long as the session. */
const uint8_t *codec_jpeg_exif(const codec_jpeg *session, size_t *size);
/* Keeps the ICC profile, unless it is longer than that. Before the header is read. */
void codec_jpeg_read_profile(codec_jpeg *session, size_t most);
enum codec_profile_state { CODEC_PROFILE_NONE, CODEC_PROFILE_WHOLE, CODEC_PROFILE_BROKEN, CODEC_PROFILE_TOO_LONG };
typedef enum codec_profile_state codec_profile_state;
/* After the header. The bytes live until codec_jpeg_forget_profile, or the session's end. */
codec_profile_state codec_jpeg_profile(codec_jpeg *session, const uint8_t **bytes, size_t *size);
void codec_jpeg_forget_profile(codec_jpeg *session);
codec_samples codec_jpeg_samples(const codec_jpeg *session);
/* As Adobe writes inks. */
int codec_jpeg_is_inverted(const codec_jpeg *session);
/* A picture of inks goes through this; before the first row. */
void codec_jpeg_convert_inks_by(codec_jpeg *session, const codec_colour *colour);

/* By how much libjpeg may reduce the picture (1, 2, 4, 8) for a scaler to make so many pixels of it that are as good as
 * of the whole. After the header. */
unsigned codec_jpeg_reduction(codec_jpeg *session, size_t to_width, size_t to_height);
/* Rows come at the stored size divided by the reduction, each side rounded up; with a scaler they go to that and nowhere
 * else. It has to outlive the session, and to be begun before the first row of each pass. */
codec_status codec_jpeg_start(codec_jpeg *session, int bgra, unsigned reduction, codec_scaler *scaler);

/* Puts out the rows that have arrived, and of several scans (codec_jpeg_begin_pass comes first) those that the pass has
 * coefficients for, down to this row, before the scaler: all of them: CODEC_DONE. */
codec_status codec_jpeg_rows(codec_jpeg *session, codec_placement placement, size_t rows);
/* Behind the last row, and for several scans the last pass. */
codec_status codec_jpeg_finish(codec_jpeg *session);
/* Rows put out so far in this pass, before the scaler. */
size_t codec_jpeg_rows_out(const codec_jpeg *session);

/* Several scans: takes in coefficients up to the end of the file. Called again after CODEC_ENDED it makes up the rest,
 * so that a pass can show what is there. */
codec_status codec_jpeg_consume(codec_jpeg *session);
/* The scan being read, from 1; whether all of it has been; and how many rows (before the scaler) could be
 * shown of it alone. */
int codec_jpeg_scan(const codec_jpeg *session);
int codec_jpeg_scan_is_read(const codec_jpeg *session);
size_t codec_jpeg_scan_rows(const codec_jpeg *session);
/* What the header of a scan says (T.81 B.2.3): the band of coefficients, and how precise it was and becomes. */
struct codec_jpeg_scan_header {
    int number;    /* from 1; 0: none */
    int component; /* of a picture of three, the only one in the scan, from 0; -1: several, or another kind of picture */
    int first, last, high, low;
};
typedef struct codec_jpeg_scan_header codec_jpeg_scan_header;
/* Of the scan being read, or (`before`) of the one ahead of it. */
codec_jpeg_scan_header codec_jpeg_scan_header_of(const codec_jpeg *session, int before);
/* Whether the scans that have begun say all of every coefficient (of one scan: every row was read), from bytes of the file
 * alone. To be asked behind an input that was ended. */
int codec_jpeg_is_final(const codec_jpeg *session);
/* The first scan with which something is known of every pixel of every component; 0: it has not begun. */
int codec_jpeg_covering_scan(const codec_jpeg *session);
/* Ends the pass that is running, whether it has put out everything or not, and begins one over the picture as it is with this
 * scan. The scan of the running pass must have been read. `smooths`: where fine detail has not come, its place is not left to
 * flat blocks; that doubles the work of the pass. */
codec_status codec_jpeg_begin_pass(codec_jpeg *session, int scan, int smooths);

/* PNG */

typedef struct codec_png codec_png;

struct codec_png_header {
    uint32_t width, height;
    int is_interlaced, has_alpha;
    int is_gray, depth; /* bits of a sample */
};
typedef struct codec_png_header codec_png_header;

/* `stop` is looked at between rows, and has to outlive the session. */
codec_png *codec_png_create(int bgra, codec_stop *stop);
void codec_png_destroy(codec_png *session);
/* The error's words; without one, the last warning about the pixels' data; else NULL. */
const char *codec_png_message(const codec_png *session);
int codec_png_is_damaged(const codec_png *session);
int codec_png_is_out_of_memory(const codec_png *session);

/* For chunks that the caller has changed; the image data keeps its own checksum. Before the first feed. */
void codec_png_ignore_checksums(codec_png *session);
/* Reads on; CODEC_LATE when it was stopped between two rows. Stops behind the header (*used < size is possible then, once): call codec_png_start, and give the rest. */
codec_status codec_png_feed(codec_png *session, const uint8_t *bytes, size_t size, size_t *used);
/* Nonzero once the header has been read. */
int codec_png_header_of(const codec_png *session, codec_png_header *header);
/* Interlaced pictures must be placed as they are stored, not converted, premultiplied or scaled: each pixel is written to its
 * place, and nothing between them (codec_fill_gaps). With a scaler, rows go to that and nowhere else; it has to outlive the
 * session. Deep: a picture of 16 bits goes onto a canvas of words, or to a scaler of words. */
codec_status codec_png_start(
    codec_png *session, codec_placement placement, int premultiply, codec_scaler *scaler, int deep);
/* The colour profile in a whole chunk iCCP, to be freed by the caller. CODEC_DONE, CODEC_LATE when it was stopped, which is looked
 * at every 16 KiB, CODEC_ENDED for none, CODEC_SUSPENDED for one that says it has more than `room` bytes (*length), and
 * CODEC_FAILED for want of memory. */
codec_status codec_png_unpack_profile(
    const uint8_t *chunk, size_t size, size_t room, codec_stop *stop, uint8_t **profile, size_t *length);
/* A row of pixels, of four or eight bytes, made of every so manieth (1, 2, 4, 8) of them. `is_large`: `to` belongs to
 * something that caches do not hold, and is written past them where it can be. */
void codec_fill_gaps(const uint8_t *from, size_t pixel, size_t step, uint8_t *to, size_t width, int is_large);
/* The running pass, from 0, and the rows of it that are there: fewer than the picture has. */
int codec_png_pass(const codec_png *session);
size_t codec_png_rows(const codec_png *session);
/* Every row of every pass has come. */
int codec_png_is_whole(const codec_png *session);

#endif
