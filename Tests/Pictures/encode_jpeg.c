#include "pictures.h"

#include <stdio.h>
#include <jpeglib.h>
#include <stdlib.h>
#include <string.h>

static void write_exif(struct jpeg_compress_struct *jpeg, const struct picture_spec *spec)
{
    static const char xmp[] = "http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x='adobe:ns:meta/'></x:xmpmeta>";
    if (spec->exif_after_xmp)
        jpeg_write_marker(jpeg, JPEG_APP0 + 1, (const JOCTET *)xmp, sizeof xmp - 1);
    if (!spec->orientation)
        return;
    uint8_t *thumbnail = NULL;
    size_t thumbnail_size = 0;
    if (spec->exif_thumbnail) {
        struct picture_spec small = {.kind = PICTURE_JPEG_BASELINE, .width = 160, .height = 107, .seed = spec->seed + 1};
        thumbnail = picture_encode_jpeg(&small, &thumbnail_size);
    }
    struct picture_bytes segment = {0};
    uint8_t block[64];
    picture_append(&segment, "Exif\0", 6);
    picture_append(&segment, block, picture_exif(block, spec->orientation, spec->exif_big_endian, thumbnail_size));
    picture_append(&segment, thumbnail, thumbnail_size);
    jpeg_write_marker(jpeg, JPEG_APP0 + 1, segment.bytes, (unsigned)segment.size);
    free(segment.bytes);
    free(thumbnail);
}

static void set_color(struct jpeg_compress_struct *jpeg, uint32_t kind)
{
    jpeg->input_components = kind == PICTURE_JPEG_GRAY ? 1 : 4;
    jpeg->in_color_space = kind == PICTURE_JPEG_GRAY ? JCS_GRAYSCALE : JCS_EXT_RGBX;
    if (kind == PICTURE_JPEG_CMYK || kind == PICTURE_JPEG_YCCK)
        jpeg->in_color_space = JCS_CMYK;
    jpeg_set_defaults(jpeg);
    if (kind == PICTURE_JPEG_YCCK)
        jpeg_set_colorspace(jpeg, JCS_YCCK);
}

/* Inks as Adobe stores them: 255 means none. Black takes what the three have in common. */
static void to_inverted_inks(const uint8_t *from, JSAMPLE *to, int width)
{
    for (int x = 0; x < width; x++, from += 4, to += 4) {
        int white = from[0] > from[1] ? from[0] : from[1];
        white = white > from[2] ? white : from[2];
        for (int c = 0; c < 3; c++)
            to[c] = (JSAMPLE)(white ? 255 * from[c] / white : 255);
        to[3] = (JSAMPLE)white;
    }
}

static void convert_row(const uint8_t *from, JSAMPLE *to, const struct picture_spec *spec)
{
    if (spec->kind == PICTURE_JPEG_CMYK || spec->kind == PICTURE_JPEG_YCCK)
        to_inverted_inks(from, to, spec->width);
    else if (spec->kind == PICTURE_JPEG_GRAY)
        for (int x = 0; x < spec->width; x++)
            to[x] = (JSAMPLE)((77 * from[4 * x] + 151 * from[4 * x + 1] + 28 * from[4 * x + 2]) >> 8);
    else
        memcpy(to, from, 4 * (size_t)spec->width);
}

uint8_t *picture_encode_jpeg(const struct picture_spec *spec, size_t *size)
{
    static const jpeg_scan_info separate[3] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    unsigned char *bytes = NULL;
    unsigned long length = 0;
    jpeg_mem_dest(&jpeg, &bytes, &length);

    jpeg.image_width = (JDIMENSION)spec->width;
    jpeg.image_height = (JDIMENSION)spec->height;
    set_color(&jpeg, spec->kind);
    jpeg_set_quality(&jpeg, spec->quality ? spec->quality : 85, TRUE);
    jpeg.restart_interval = (unsigned)spec->restart_interval;
    if (spec->kind == PICTURE_JPEG_SEPARATE_SCANS) {
        jpeg.scan_info = separate;
        jpeg.num_scans = 3;
    }
    if (spec->kind == PICTURE_JPEG_ARITHMETIC || spec->kind == PICTURE_JPEG_ARITHMETIC_PROGRESSIVE)
        jpeg.arith_code = TRUE;
    if (spec->kind == PICTURE_JPEG_PROGRESSIVE || spec->kind == PICTURE_JPEG_ARITHMETIC_PROGRESSIVE)
        jpeg_simple_progression(&jpeg);

    jpeg_start_compress(&jpeg, TRUE);
    write_exif(&jpeg, spec);
    uint8_t *pixels = picture_pixels(spec, 0);
    JSAMPLE *row = malloc(4 * (size_t)spec->width);
    if (!row)
        abort();
    while (jpeg.next_scanline < jpeg.image_height) {
        convert_row(pixels + 4 * (size_t)spec->width * jpeg.next_scanline, row, spec);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(row);
    free(pixels);
    *size = length;
    return bytes;
}
