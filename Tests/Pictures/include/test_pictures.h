/* Test pictures: a drawn landscape, the same for the same size and seed, encoded in memory in every way the decoders
 * have to understand. For tests and demonstrations only; encoder errors end the process. */
#ifndef TEST_PICTURES_H
#define TEST_PICTURES_H

#include <stddef.h>
#include <stdint.h>

enum picture_kind {
    PICTURE_JPEG_BASELINE = 0,
    PICTURE_JPEG_PROGRESSIVE = 1,
    PICTURE_JPEG_GRAY = 2,
    PICTURE_JPEG_CMYK = 3, /* stored inverted, with an Adobe marker */
    PICTURE_JPEG_YCCK = 4, /* the same, transformed */
    PICTURE_JPEG_ARITHMETIC = 5,
    PICTURE_JPEG_ARITHMETIC_PROGRESSIVE = 6,
    PICTURE_JPEG_SEPARATE_SCANS = 7, /* sequential, one scan for each component */

    PICTURE_PNG_RGB = 20,
    PICTURE_PNG_RGBA = 21,
    PICTURE_PNG_PALETTE = 22,
    PICTURE_PNG_GRAY16 = 23,
    PICTURE_PNG_ADAM7 = 24,
    PICTURE_PNG_ADAM7_RGBA = 25,

    PICTURE_WEBP_LOSSY = 40,
    PICTURE_WEBP_LOSSLESS = 41,
    PICTURE_WEBP_LOSSY_ALPHA = 42,
    PICTURE_WEBP_LOSSLESS_ALPHA = 43,
    PICTURE_WEBP_ANIMATED = 44, /* three frames, the later ones smaller than the canvas */
};

/* Start from {0}, set kind, width and height. */
struct picture_spec {
    uint32_t kind;
    int32_t width, height;
    uint32_t seed;
    int32_t quality;          /* lossy formats, 1 to 100; 0 means 85 */
    int32_t restart_interval; /* JPEG, in MCUs; 0 for none */
    int32_t orientation;      /* 1 to 8 writes EXIF, other values but 0 are written as they are, 0 for no EXIF */
    int32_t exif_big_endian;
    int32_t exif_thumbnail;   /* JPEG: EXIF holds a small JPEG with an IFD and an orientation of its own */
    int32_t exif_after_xmp;   /* JPEG: an XMP segment comes before EXIF */
    int32_t exif_before_pixels; /* WebP: the EXIF chunk comes before the pixels; else after them, as encoders do */
    int32_t edge_x, edge_y; /* not 0: no landscape, but bright from this column or row on, and dark ahead of it */
};

/* Width * height RGBA8 pixels, straight alpha; opaque unless has_alpha. Free with picture_free. */
uint8_t *picture_draw(int32_t width, int32_t height, uint32_t seed, int32_t has_alpha);

/* The file; *size is its length. Free with picture_free. NULL for an unknown kind. */
uint8_t *picture_encode(const struct picture_spec *spec, size_t *size);

/* A square progressive JPEG, gray, of so many scans that say nothing after the first: of 10,000 pixels and 500 scans it has
 * 266 KB, and takes libjpeg 18 s. Free with picture_free. */
uint8_t *picture_many_scans(int32_t side, int32_t scans, size_t *size);
/* A gray JPEG in arithmetic coding, 65,500 pixels wide, of 7 KB at most: its scan ends early, but with statistics by which
 * each zero that is made up is a large coefficient. libjpeg takes a row of 32,752 blocks in one go. Free with picture_free. */
uint8_t *picture_made_up_blocks(int32_t height, int32_t is_progressive, size_t *size);

/* An EXIF block ("MM" or "II" first) with this orientation in IFD0; returns its length, at most 64 bytes. With a
 * thumbnail, IFD1 follows: its data starts after the block. */
size_t picture_exif(uint8_t block[64], int32_t orientation, int32_t big_endian, size_t thumbnail_size);

enum picture_profile_kind {
    PICTURE_PROFILE_RGB,
    PICTURE_PROFILE_GRAY,
    PICTURE_PROFILE_INKS,
    PICTURE_PROFILE_FINE, /* of inks: its grid has 17 points for each, and its curves are as long as are followed */
    PICTURE_PROFILE_CURVES, /* of RGB: its curves are as long as lcms2 reads */
    PICTURE_PROFILE_COSTLY, /* of colours: 3,000 processing elements, so that lcms2 takes 30 µs or more for each pixel */
};
/* An ICC profile that differs much from sRGB. Free with picture_free. */
uint8_t *picture_profile(uint32_t kind, size_t *size);
/* Through it to sRGB with lcms2 alone: four samples a pixel in and out, of 1 or 2 bytes; of gray the first counts; alpha
 * stays, inks make it no sense. */
void picture_to_srgb(
    const uint8_t *profile, size_t size, uint32_t kind, uint32_t bytes, const void *from, void *to, size_t count);

void picture_free(uint8_t *bytes);

/* SHA-256 (FIPS 180-4). In C, since an unoptimised Swift build would hash a corpus for minutes. */
void picture_sha256(const uint8_t *bytes, size_t size, uint8_t digest[32]);

#endif
