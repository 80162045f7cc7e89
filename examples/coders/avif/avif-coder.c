/* One avifDecoder for each picture. It reads through an avifIO that says WAITING_ON_IO while bytes are missing, so the
 * size is known as soon as the boxes that tell it have come; the picture is decoded when it is whole. Of an animation the
 * first image is shown.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "avif-coder.h"

#include <avif/avif.h>
#include <stdlib.h>
#include <string.h>

struct picture {
    avifIO io; /* first: libavif gives it back to read_bytes */
    avifDecoder *decoder;
    uint8_t *bytes;
    size_t count, capacity;
    int is_parsed, is_whole;
    imgdl_status failure;
    uint64_t max_pixels;
};

/* ---- Bytes */

static avifResult read_bytes(avifIO *io, uint32_t flags, uint64_t offset, size_t size, avifROData *out)
{
    struct picture *picture = (struct picture *)io;
    if (flags != 0 || (picture->is_whole && offset > picture->count))
        return AVIF_RESULT_IO_ERROR;
    size_t there = offset < picture->count ? picture->count - (size_t)offset : 0;
    if (there < size && !picture->is_whole)
        return AVIF_RESULT_WAITING_ON_IO;
    out->data = picture->bytes + (there ? (size_t)offset : 0);
    out->size = there < size ? there : size;
    return AVIF_RESULT_OK;
}

static imgdl_status keep(struct picture *picture, const void *bytes, size_t length)
{
    if (length > SIZE_MAX - picture->count)
        return IMGDL_ERROR_OUT_OF_MEMORY;
    size_t needed = picture->count + length;
    if (needed > picture->capacity) {
        size_t wanted = picture->capacity + picture->capacity / 2;
        uint8_t *grown = realloc(picture->bytes, wanted > needed ? wanted : needed);
        if (!grown)
            return IMGDL_ERROR_OUT_OF_MEMORY;
        picture->bytes = grown;
        picture->capacity = wanted > needed ? wanted : needed;
    }
    if (length > 0)
        memcpy(picture->bytes + picture->count, bytes, length);
    picture->count = needed;
    return IMGDL_OK;
}

static imgdl_status status_of(avifResult result)
{
    switch (result) {
    case AVIF_RESULT_OK: return IMGDL_OK;
    case AVIF_RESULT_WAITING_ON_IO:
    case AVIF_RESULT_TRUNCATED_DATA: return IMGDL_ERROR_TRUNCATED;
    case AVIF_RESULT_OUT_OF_MEMORY: return IMGDL_ERROR_OUT_OF_MEMORY;
    default: return IMGDL_ERROR_BAD_IMAGE_DATA;
    }
}

/* Tries the header again with what has come. TRUNCATED: more is needed. */
static imgdl_status parse(struct picture *picture)
{
    if (picture->is_parsed || picture->failure != IMGDL_OK)
        return picture->failure;
    imgdl_status status = status_of(avifDecoderParse(picture->decoder));
    if (status != IMGDL_OK)
        return status;
    picture->is_parsed = 1;
    const avifImage *image = picture->decoder->image;
    if ((uint64_t)image->width * image->height > picture->max_pixels)
        picture->failure = IMGDL_ERROR_PIXEL_LIMIT;
    return picture->failure;
}

/* ---- What imgdl calls */

static int32_t can_decode(const void *prefix, size_t length, void *user_data)
{
    (void)user_data;
    const uint8_t *bytes = prefix;
    size_t there = length < 8 ? length : 8;
    if (there > 4 && memcmp(bytes + 4, "ftyp", there - 4) != 0)
        return 0;
    if (length < 8)
        return -1;
    size_t box = (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
    /* The major brand, a version, then the brands it is compatible with. */
    size_t end = box < 64 ? box : 64;
    for (size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4) {
        if (at + 4 > length)
            return -1;
        if (memcmp(bytes + at, "avif", 4) == 0 || memcmp(bytes + at, "avis", 4) == 0)
            return 1;
    }
    return 0;
}

static void destroy(void *context)
{
    struct picture *picture = context;
    if (picture->decoder)
        avifDecoderDestroy(picture->decoder);
    free(picture->bytes);
    free(picture);
}

static void *create(const imgdl_decode_options *options, void *user_data)
{
    (void)user_data;
    struct picture *picture = calloc(1, sizeof *picture);
    if (!picture || !(picture->decoder = avifDecoderCreate())) {
        free(picture);
        return NULL;
    }
    picture->max_pixels = options->max_pixels ? options->max_pixels : IMGDL_DEFAULT_MAX_PIXELS;
    picture->io.read = read_bytes;
    picture->decoder->ignoreExif = AVIF_TRUE; /* an AVIF is turned by its own properties */
    picture->decoder->ignoreXMP = AVIF_TRUE;
    avifDecoderSetIO(picture->decoder, &picture->io);
    return picture;
}

static imgdl_status feed(void *context, const void *bytes, size_t length)
{
    struct picture *picture = context;
    imgdl_status status = keep(picture, bytes, length);
    if (status == IMGDL_OK)
        status = parse(picture);
    return status == IMGDL_ERROR_TRUNCATED ? IMGDL_OK : status;
}

/* The EXIF orientation that stands for libavif's rotation (anticlockwise, in quarters) and the mirror behind it. */
static uint32_t orientation_of(const avifImage *image)
{
    static const uint32_t turned[4] = {1, 8, 3, 6};
    static const uint32_t mirrored[2][4] = {{4, 5, 2, 7}, {2, 7, 4, 5}};
    unsigned quarters = image->transformFlags & AVIF_TRANSFORM_IROT ? image->irot.angle & 3 : 0;
    if (!(image->transformFlags & AVIF_TRANSFORM_IMIR))
        return turned[quarters];
#if AVIF_VERSION_MAJOR > 0
    return mirrored[image->imir.axis & 1][quarters];
#else
    return mirrored[image->imir.mode & 1][quarters];
#endif
}

static imgdl_status info(void *context, imgdl_image_info *info)
{
    struct picture *picture = context;
    if (!picture->is_parsed)
        return IMGDL_ERROR_NOT_READY;
    const avifImage *image = picture->decoder->image;
    info->orientation = orientation_of(image);
    info->width = info->orientation >= 5 ? image->height : image->width;
    info->height = info->orientation >= 5 ? image->width : image->height;
    info->frame_count = 1;
    info->has_alpha = picture->decoder->alphaPresent;
    return IMGDL_OK;
}

static imgdl_status finish(void *context, imgdl_image **image)
{
    struct picture *picture = context;
    picture->is_whole = 1;
    imgdl_status status = parse(picture);
    if (status == IMGDL_OK)
        status = status_of(avifDecoderNextImage(picture->decoder));
    if (status != IMGDL_OK)
        return status;
    const avifImage *decoded = picture->decoder->image;
    avifRGBImage pixels;
    avifRGBImageSetDefaults(&pixels, decoded);
    pixels.format = AVIF_RGB_FORMAT_RGBA;
    pixels.depth = 8;
    pixels.rowBytes = 4 * decoded->width;
    pixels.pixels = malloc((size_t)pixels.rowBytes * decoded->height);
    if (!pixels.pixels)
        return IMGDL_ERROR_OUT_OF_MEMORY;
    status = status_of(avifImageYUVToRGB(decoded, &pixels));
    if (status == IMGDL_OK)
        status = imgdl_image_create(
            decoded->width, decoded->height, IMGDL_PIXEL_FORMAT_RGBA8, pixels.pixels, pixels.rowBytes, image);
    free(pixels.pixels);
    return status;
}

imgdl_status avif_coder_register(imgdl_coder **coder)
{
    const imgdl_coder_table table = {
        .struct_size = sizeof table,
        .can_decode = can_decode,
        .create = create,
        .feed = feed,
        .info = info,
        .finish = finish,
        .destroy = destroy,
    };
    return imgdl_coder_register(&table, coder);
}
