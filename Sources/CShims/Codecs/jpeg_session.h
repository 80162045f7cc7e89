/* What the two halves of the JPEG shim share: the session. */
#ifndef JPEG_SESSION_H
#define JPEG_SESSION_H

#include "ccodecs.h"

#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>

struct codec_jpeg {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    jmp_buf trap;
    size_t to_skip; /* bytes of segments nobody reads that have still to come */
    int is_ending, is_given_up, has_ended_early, is_damaged, failure;
    int bgra, has_inks;
    JDIMENSION width, height;
    int components;
    codec_scaler *scaler;
    size_t rows; /* put out in this pass, all from the file's own bytes */
    int pass; /* of several scans: the one that is being put out; 0 between passes */
    int covering_scan;
    unsigned covered; /* a bit for each component */
    uint8_t *strip; /* rows on their way to a turned canvas, or to the scaler */
    char message[JMSG_LENGTH_MAX];
};

#endif
