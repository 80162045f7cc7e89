/* What the two halves of the JPEG shim share: the session. */
#ifndef JPEG_SESSION_H
#define JPEG_SESSION_H

#include "ccodecs.h"

#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>

/* A segment that is being read: how it begins tells whether anybody wants it. libjpeg could save segments, but every one of
 * a kind, however many there are. */
struct codec_jpeg_segment {
    int is_open;
    size_t remaining, have;
    uint8_t head[14];
    uint8_t *content; /* where the rest goes; NULL: nowhere */
};

/* The ICC profile while its chunks come. */
struct codec_jpeg_profile {
    uint8_t *chunks[256]; /* by their numbers, from 1 */
    uint32_t sizes[256];
    size_t held, most;    /* bytes of all of them */
    unsigned count;       /* as the chunks say it */
    int is_broken, is_too_long;
    uint8_t *whole;
};

struct codec_jpeg {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    jmp_buf trap;
    size_t to_skip; /* bytes of segments nobody reads that have still to come */
    size_t used, given; /* bytes of the file before those that are lent, and those */
    size_t behind;      /* of those that are lent, what libjpeg is not shown yet */
    size_t bad_code_told_below; /* a bad code counts when the file has fewer bytes than this */
    int is_ending, is_given_up, has_ended_early, is_damaged, failure;
    int is_short;         /* bits were made up, */
    JDIMENSION short_row; /* first in this row of MCUs */
    int bgra, has_inks, inks_are_inverted;
    const codec_colour *inks; /* converts them by a profile */
    struct codec_jpeg_segment segment;
    struct codec_jpeg_profile profile;
    uint8_t *exif; /* the first one, without its name */
    size_t exif_size;
    codec_stop *stop;
    int is_stopped; /* within a call */
    /* libjpeg's own of arithmetic coding, for those that stand in their place. */
    void (*start_pass)(j_decompress_ptr jpeg);
    boolean (*decode_mcu)(j_decompress_ptr jpeg, JBLOCKROW *blocks);
    /* What a second frame header changes before it is refused. */
    JDIMENSION width, height;
    int components, precision;
    boolean is_progressive, is_arithmetic;
    codec_scaler *scaler;
    size_t rows; /* put out in this pass, all from the file's own bytes */
    int pass; /* of several scans: the one that is being put out; 0 between passes */
    int covering_scan;
    unsigned covered; /* a bit for each component */
    codec_jpeg_scan_header scan, scan_before; /* the one being read, and the one ahead of it */
    uint8_t *strip; /* rows on their way to a turned canvas, or to the scaler */
    size_t strip_first, strip_rows; /* those that are there and not handed on yet, wherever they lie */
    char message[JMSG_LENGTH_MAX];
};

/* What a call that was left through the trap returns. */
static inline codec_status codec_jpeg_failure(const codec_jpeg *session)
{
    return session->is_stopped ? CODEC_LATE : CODEC_FAILED;
}

/* Keeps the first EXIF segment. Inside the trap. */
void codec_jpeg_read_exif(codec_jpeg *session);
/* Arithmetic coding: from the scan on that has begun, decoding ends between two MCUs where it is to stop. */
void codec_jpeg_watch_mcus(codec_jpeg *session);

#endif
