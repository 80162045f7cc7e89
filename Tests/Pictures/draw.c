/* The picture: sky with clouds and a sun, two ranges of hills, grass, and a few balloons. Integers only, so that every
 * machine draws the same. */
#include "pictures.h"

#include <stdlib.h>

static uint32_t scatter(uint32_t x, uint32_t y, uint32_t seed)
{
    uint32_t h = x * 0x9E3779B1u ^ y * 0x85EBCA77u ^ seed * 0xC2B2AE3Du;
    h = (h ^ h >> 15) * 0x2C1B3C6Du;
    h = (h ^ h >> 12) * 0x297A2D39u;
    return h ^ h >> 15;
}

/* 0 to 255, smooth over `cell` pixels. */
static int value_noise(int x, int y, int cell, uint32_t seed)
{
    int cx = x / cell, cy = y / cell;
    int fx = 256 * (x % cell) / cell, fy = 256 * (y % cell) / cell;
    fx = fx * fx / 256 * (768 - 2 * fx) / 256;
    fy = fy * fy / 256 * (768 - 2 * fy) / 256;
    int a = (int)(scatter((uint32_t)cx, (uint32_t)cy, seed) & 255);
    int b = (int)(scatter((uint32_t)cx + 1, (uint32_t)cy, seed) & 255);
    int c = (int)(scatter((uint32_t)cx, (uint32_t)cy + 1, seed) & 255);
    int d = (int)(scatter((uint32_t)cx + 1, (uint32_t)cy + 1, seed) & 255);
    int top = a * (256 - fx) + b * fx, bottom = c * (256 - fx) + d * fx;
    return (int)(((long)top * (256 - fy) + (long)bottom * fy) >> 16);
}

static int mix(int a, int b, int weight) { return (a * (256 - weight) + b * weight) >> 8; }
static uint8_t clamp(int v) { return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v; }

enum { BALLOONS = 5 };
struct balloon {
    int x, y, radius;
    int color[3];
};

struct scene {
    int width, height, unit; /* unit: a hundredth of the longer side, at least one pixel */
    uint32_t seed;
    struct balloon balloons[BALLOONS];
};

static void sky(const struct scene *s, int x, int y, int rgb[3])
{
    int down = 256 * y / s->height;
    int cloud = (2 * value_noise(x, 2 * y, 24 * s->unit, s->seed) + value_noise(x, 2 * y, 7 * s->unit, s->seed + 1)) / 3;
    cloud = cloud < 130 ? 0 : 2 * (cloud - 130);
    rgb[0] = mix(mix(60, 200, down), 245, cloud > 256 ? 256 : cloud);
    rgb[1] = mix(mix(110, 205, down), 245, cloud > 256 ? 256 : cloud);
    rgb[2] = mix(mix(190, 225, down), 248, cloud > 256 ? 256 : cloud);
    long dx = x - 3L * s->width / 4, dy = y - s->height / 6L, r = 6L * s->unit;
    long far = dx * dx + dy * dy;
    if (far < 4 * r * r) {
        int glow = far < r * r ? 256 : (int)(256 - 256 * (far - r * r) / (3 * r * r));
        rgb[0] = mix(rgb[0], 255, glow);
        rgb[1] = mix(rgb[1], 240, glow);
        rgb[2] = mix(rgb[2], 170, glow);
    }
}

static void pixel(const struct scene *s, int x, int y, const int crest[2], int rgb[3])
{
    if (y > crest[1]) {
        int blade = (int)(scatter((uint32_t)x, (uint32_t)y, s->seed) & 15), field = value_noise(x, y, 5 * s->unit, s->seed + 4);
        rgb[0] = 60 + field / 4 + blade;
        rgb[1] = 110 + field / 4 + blade;
        rgb[2] = 35 + blade;
    } else if (y > crest[0]) {
        int wood = value_noise(x, y, 2 + s->unit / 2, s->seed + 5);
        rgb[0] = 70 + wood / 6;
        rgb[1] = 95 + wood / 5;
        rgb[2] = 110 + wood / 8;
    } else {
        sky(s, x, y, rgb);
    }
    for (int i = 0; i < BALLOONS; i++) {
        const struct balloon *b = &s->balloons[i];
        long dx = x - b->x, dy = y - b->y, r = b->radius;
        if (dx * dx + dy * dy >= r * r)
            continue;
        long lx = dx + r / 3, ly = dy + r / 3;
        int light = (int)(256 - 200 * (lx * lx + ly * ly) / (2 * r * r));
        for (int c = 0; c < 3; c++)
            rgb[c] = b->color[c] * (light < 40 ? 40 : light) / 256;
    }
}

/* A soft ellipse: opaque inside, a ramp, nothing in the corners. */
static uint8_t vignette(const struct scene *s, int x, int y)
{
    long dx = 1000L * (2 * x - s->width) / s->width, dy = 1000L * (2 * y - s->height) / s->height;
    return clamp((int)((1250000 - dx * dx - dy * dy) / 1500));
}

uint8_t *picture_draw(int32_t width, int32_t height, uint32_t seed, int32_t has_alpha)
{
    struct scene s = {.width = width, .height = height, .seed = seed};
    s.unit = (width > height ? width : height) / 100;
    if (s.unit < 1)
        s.unit = 1;
    for (uint32_t i = 0; i < BALLOONS; i++) {
        struct balloon *b = &s.balloons[i];
        b->x = (int)(scatter(i, 1, seed) % (uint32_t)width);
        b->y = (int)(scatter(i, 2, seed) % (uint32_t)(height / 2 + 1));
        b->radius = s.unit * (3 + (int)(scatter(i, 3, seed) % 6));
        for (uint32_t c = 0; c < 3; c++)
            b->color[c] = 60 + (int)(scatter(i, 4 + c, seed) % 196);
    }
    uint8_t *pixels = malloc(4 * (size_t)width * (size_t)height);
    int *crests = malloc(2 * sizeof(int) * (size_t)width);
    if (!pixels || !crests)
        abort();
    for (int x = 0; x < width; x++) {
        crests[2 * x] = height / 3 + height * value_noise(x, 0, 22 * s.unit, seed + 2) / 1000;
        crests[2 * x + 1] = 3 * height / 5 + height * value_noise(x, 0, 35 * s.unit, seed + 3) / 1300;
    }
    uint8_t *to = pixels;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++, to += 4) {
            int rgb[3];
            pixel(&s, x, y, crests + 2 * x, rgb);
            for (int c = 0; c < 3; c++)
                to[c] = clamp(rgb[c]);
            to[3] = has_alpha ? vignette(&s, x, y) : 255;
        }
    }
    free(crests);
    return pixels;
}

static uint8_t *draw_edge(const struct picture_spec *spec)
{
    static const uint8_t dark[4] = {40, 60, 90, 255}, bright[4] = {220, 180, 130, 255};
    uint8_t *pixels = malloc(4 * (size_t)spec->width * (size_t)spec->height), *to = pixels;
    if (!pixels)
        abort();
    for (int y = 0; y < spec->height; y++)
        for (int x = 0; x < spec->width; x++)
            for (int c = 0; c < 4; c++)
                *to++ = x >= spec->edge_x && y >= spec->edge_y ? bright[c] : dark[c];
    return pixels;
}

uint8_t *picture_pixels(const struct picture_spec *spec, int32_t has_alpha)
{
    if (spec->edge_x || spec->edge_y)
        return draw_edge(spec);
    return picture_draw(spec->width, spec->height, spec->seed, has_alpha);
}
