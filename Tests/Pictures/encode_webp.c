#include "pictures.h"

#include <stdlib.h>
#include <string.h>
#include <webp/encode.h>

static void put(uint8_t *at, uint32_t value, int count)
{
    for (int i = 0; i < count; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void append_chunk(struct picture_bytes *file, const char *name, const void *payload, size_t size)
{
    uint8_t head[8];
    memcpy(head, name, 4);
    put(head + 4, (uint32_t)size, 4);
    picture_append(file, head, 8);
    picture_append(file, payload, size);
    if (size & 1)
        picture_append(file, "", 1);
}

/* The chunks of one still, without RIFF header and VP8X. */
static struct picture_bytes encode_still(const struct picture_spec *spec, int lossless, int has_alpha)
{
    WebPConfig config;
    WebPPicture picture;
    WebPMemoryWriter writer;
    if (!WebPConfigInit(&config) || !WebPPictureInit(&picture))
        abort();
    WebPMemoryWriterInit(&writer);
    config.lossless = lossless;
    config.quality = (float)(lossless ? 20 : spec->quality ? spec->quality : 85);
    config.method = lossless ? 0 : 2;
    picture.use_argb = lossless;
    picture.width = spec->width;
    picture.height = spec->height;
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &writer;
    uint8_t *pixels = picture_pixels(spec, has_alpha);
    if (!WebPPictureImportRGBA(&picture, pixels, 4 * spec->width) || !WebPEncode(&config, &picture))
        abort();
    free(pixels);
    WebPPictureFree(&picture);

    struct picture_bytes chunks = {0};
    size_t start = memcmp(writer.mem + 12, "VP8X", 4) ? 12 : 30;
    picture_append(&chunks, writer.mem + start, writer.size - start);
    WebPMemoryWriterClear(&writer);
    return chunks;
}

enum { ANIMATION = 0x02, EXIF = 0x08, ALPHA = 0x10 };

static void append_canvas(struct picture_bytes *file, const struct picture_spec *spec, int flags)
{
    uint8_t payload[10] = {(uint8_t)flags};
    put(payload + 4, (uint32_t)spec->width - 1, 3);
    put(payload + 7, (uint32_t)spec->height - 1, 3);
    append_chunk(file, "VP8X", payload, sizeof payload);
}

static void append_frame(struct picture_bytes *file, const struct picture_spec *spec, int x, int y, int lossless)
{
    struct picture_bytes still = encode_still(spec, lossless, 1);
    uint8_t head[16] = {0};
    put(head, (uint32_t)x / 2, 3);
    put(head + 3, (uint32_t)y / 2, 3);
    put(head + 6, (uint32_t)spec->width - 1, 3);
    put(head + 9, (uint32_t)spec->height - 1, 3);
    put(head + 12, 100, 3);
    struct picture_bytes frame = {0};
    picture_append(&frame, head, sizeof head);
    picture_append(&frame, still.bytes, still.size);
    append_chunk(file, "ANMF", frame.bytes, frame.size);
    free(frame.bytes);
    free(still.bytes);
}

static void append_animation(struct picture_bytes *file, const struct picture_spec *spec)
{
    uint8_t loop[6] = {0};
    append_chunk(file, "ANIM", loop, sizeof loop);
    append_frame(file, spec, 0, 0, 0);
    struct picture_spec small = *spec;
    small.width = spec->width / 2 + 1;
    small.height = spec->height / 2 + 1;
    for (int i = 1; i <= 2; i++) {
        small.seed = spec->seed + (uint32_t)i;
        append_frame(file, &small, spec->width / 8 * i, spec->height / 8 * i, i == 1);
    }
}

uint8_t *picture_encode_webp(const struct picture_spec *spec, size_t *size)
{
    int animated = spec->kind == PICTURE_WEBP_ANIMATED;
    int lossless = spec->kind == PICTURE_WEBP_LOSSLESS || spec->kind == PICTURE_WEBP_LOSSLESS_ALPHA;
    int has_alpha = animated || spec->kind == PICTURE_WEBP_LOSSY_ALPHA || spec->kind == PICTURE_WEBP_LOSSLESS_ALPHA;
    int extended = animated || spec->orientation || spec->kind == PICTURE_WEBP_LOSSY_ALPHA;
    uint8_t exif[64];
    size_t exif_size = spec->orientation ? picture_exif(exif, spec->orientation, spec->exif_big_endian, 0) : 0;

    struct picture_bytes file = {0};
    picture_append(&file, "RIFF\0\0\0\0WEBP", 12);
    if (extended)
        append_canvas(&file, spec, (animated ? ANIMATION : 0) | (exif_size ? EXIF : 0) | (has_alpha ? ALPHA : 0));
    if (exif_size && spec->exif_before_pixels)
        append_chunk(&file, "EXIF", exif, exif_size);
    if (animated) {
        append_animation(&file, spec);
    } else {
        struct picture_bytes still = encode_still(spec, lossless, has_alpha);
        picture_append(&file, still.bytes, still.size);
        free(still.bytes);
    }
    if (exif_size && !spec->exif_before_pixels)
        append_chunk(&file, "EXIF", exif, exif_size);
    put(file.bytes + 4, (uint32_t)file.size - 8, 4);
    *size = file.size;
    return file.bytes;
}
