/* Frames over frames, four bytes a pixel, alpha last and straight. In C because it is the inner loop of animations. */
#include "ccodecs.h"

#include <string.h>

void codec_blend_over(uint8_t *canvas, const uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++, canvas += 4, pixels += 4) {
        uint32_t above = pixels[3], below = canvas[3];
        if (above == 0)
            continue;
        if (above == 255 || below == 0) {
            memcpy(canvas, pixels, 4);
            continue;
        }
        uint32_t u = above * 255, v = (255 - above) * below, alpha = u + v;
        for (int c = 0; c < 3; c++)
            canvas[c] = (uint8_t)((pixels[c] * u + canvas[c] * v) / alpha);
        canvas[3] = (uint8_t)(alpha / 255);
    }
}

void codec_blend_over_webp(uint8_t *canvas, const uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++, canvas += 4, pixels += 4) {
        uint32_t above = pixels[3];
        if (above == 0)
            continue;
        if (above == 255) {
            memcpy(canvas, pixels, 4);
            continue;
        }
        uint32_t below = (canvas[3] * (256 - above)) >> 8, alpha = above + below;
        uint32_t scale = (1u << 24) / alpha;
        for (int c = 0; c < 3; c++)
            canvas[c] = (uint8_t)(((pixels[c] * above + canvas[c] * below) * scale) >> 24);
        canvas[3] = (uint8_t)alpha;
    }
}
