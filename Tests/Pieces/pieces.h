/* Each picture is decoded in many ways that must not matter: in one piece, byte by byte, in odd pieces, with and without looks
 * at the picture so far. */
#ifndef PIECES_H
#define PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "imgdl.h"

/* ---- chance.c */

/* Each case has numbers of its own: it can be played again alone. */
void begin_case(uint64_t seed, uint64_t number);
/* Below `bound`, which is not 0. */
uint32_t chance(uint32_t bound);

/* ---- damage.c */

struct bytes {
    uint8_t *start;
    size_t size;
};

/* Damages a copy of `source` by chance; to be freed. */
struct bytes damaged(struct bytes source);

/* ---- outcome.c */

enum { FRAMES_KEPT = 64, MESSAGE = 256, UNKNOWN = -1 };

/* What is seen of a picture, or of what could be had of it. */
struct outcome {
    imgdl_status status;
    char message[MESSAGE];
    int has_image, is_complete;
    uint32_t width, height, orientation, frame_count, loop_count, pass;
    imgdl_picture_notes notes;
    imgdl_colour_notes colour_notes;
    int alpha; /* has_alpha of the header, or UNKNOWN: not told, or not of a whole picture */
    imgdl_rectangle ready;
    /* Of the frames that were decoded: a sum of the pixels that may be read, and how long it is shown. */
    uint32_t decoded;
    uint64_t pixels[FRAMES_KEPT];
    uint32_t milliseconds[FRAMES_KEPT];
};

/* How a picture is cut, and how often it is looked at. */
struct cut {
    const char *name;
    size_t least, most; /* bytes of a piece; 0: all at once */
    uint32_t looks;     /* once in so many pieces; 0: never */
};

/* Decodes; the words say what was delivered and taken back, or are empty. */
struct outcome decode(struct bytes picture, const imgdl_decode_options *options, struct cut cut, char words[MESSAGE]);

/* What differs, or NULL. What one of them does not know is no difference. */
const char *difference(const struct outcome *one, const struct outcome *other);

/* ---- blindness.c */

/* What might differ without being told, or NULL. */
const char *blindness(void);

#endif
