/* The codecs called by hand, one call for a whole file: what decoding is measured against. */
#ifndef HAND_H
#define HAND_H

#include <stddef.h>
#include <stdint.h>

/* Memory for pixels that grows as pictures need it. Begins as zeros. */
struct hand_canvas {
    uint8_t *pixels;
    size_t size;
};

/* To RGBA8; how many pixels, 0: failed. The first byte tells the format. */
size_t hand_decode_into(struct hand_canvas *canvas, const uint8_t *bytes, size_t size);
void hand_canvas_free(struct hand_canvas *canvas);
/* The same in memory of its own, which is freed again. */
int hand_decode(const uint8_t *bytes, size_t size);
/* One frame, colours cut to 6 × 6 × 6 with a little noise: as hard to decode as a dithered photograph. */
void hand_write_gif(const char *path, const uint8_t *pixels, int width, int height);

#endif
