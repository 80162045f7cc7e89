/* Frames over frames, four channels a pixel, alpha last and straight. In C because it is the inner loop of animations. */
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

void codec_blend_over_words(uint8_t *canvas, const uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++, canvas += 8, pixels += 8) {
        uint16_t from[4], to[4];
        memcpy(from, pixels, 8);
        memcpy(to, canvas, 8);
        uint32_t above = from[3], below = to[3];
        if (above == 0)
            continue;
        if (above == UINT16_MAX || below == 0) {
            memcpy(canvas, from, 8);
            continue;
        }
        uint32_t u = above * UINT16_MAX, v = (UINT16_MAX - above) * below, alpha = u + v;
        for (int c = 0; c < 3; c++)
            to[c] = (uint16_t)(((uint64_t)from[c] * u + (uint64_t)to[c] * v + alpha / 2) / alpha);
        to[3] = (uint16_t)((alpha + UINT16_MAX / 2) / UINT16_MAX);
        memcpy(canvas, to, 8);
    }
}
