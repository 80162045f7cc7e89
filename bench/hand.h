/* The codecs called by hand, one call for a whole file: what decoding is measured against. */
#ifndef HAND_H
#define HAND_H

#include <stddef.h>
#include <stdint.h>

/* To RGBA8 in memory of its own, which is freed again. The name's ending tells the format. 0: failed. */
int hand_decode(const char *name, const uint8_t *bytes, size_t size);
/* One frame, colours cut to 6 × 6 × 6 with a little noise: as hard to decode as a dithered photograph. */
void hand_write_gif(const char *path, const uint8_t *pixels, int width, int height);

#endif
