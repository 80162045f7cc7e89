#include "pictures.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

static void append(png_structp png, png_bytep bytes, png_size_t size)
{
    picture_append(png_get_io_ptr(png), bytes, size);
}

static void flush(png_structp png) { (void)png; }

/* Rows in the file's own layout, made in place from RGBA. */
static void convert_row(uint8_t *row, const struct picture_spec *spec)
{
    for (int x = 0; x < spec->width; x++) {
        const uint8_t *from = row + 4 * x;
        int r = from[0], g = from[1], b = from[2];
        if (spec->kind == PICTURE_PNG_PALETTE) { /* a cube of 6 x 6 x 6 colours */
            row[x] = (uint8_t)(36 * ((r + 25) / 51) + 6 * ((g + 25) / 51) + (b + 25) / 51);
        } else if (spec->kind == PICTURE_PNG_GRAY16) {
            int gray = 77 * r + 151 * g + 28 * b;
            row[2 * x] = (uint8_t)(gray >> 8);
            row[2 * x + 1] = (uint8_t)gray;
        } else if (spec->kind == PICTURE_PNG_RGB || spec->kind == PICTURE_PNG_ADAM7) {
            row[3 * x] = (uint8_t)r;
            row[3 * x + 1] = (uint8_t)g;
            row[3 * x + 2] = (uint8_t)b;
        }
    }
}

static void write_palette(png_structp png, png_infop info)
{
    png_color palette[216];
    png_byte alpha[3] = {255, 128, 0};
    for (int i = 0; i < 216; i++)
        palette[i] = (png_color){(png_byte)(i / 36 * 51), (png_byte)(i / 6 % 6 * 51), (png_byte)(i % 6 * 51)};
    png_set_PLTE(png, info, palette, 216);
    png_set_tRNS(png, info, alpha, 3, NULL);
}

uint8_t *picture_encode_png(const struct picture_spec *spec, size_t *size)
{
    int has_alpha = spec->kind == PICTURE_PNG_RGBA || spec->kind == PICTURE_PNG_ADAM7_RGBA;
    int interlaced = spec->kind == PICTURE_PNG_ADAM7 || spec->kind == PICTURE_PNG_ADAM7_RGBA;
    int type = has_alpha ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_RGB;
    if (spec->kind == PICTURE_PNG_PALETTE)
        type = PNG_COLOR_TYPE_PALETTE;
    if (spec->kind == PICTURE_PNG_GRAY16)
        type = PNG_COLOR_TYPE_GRAY;

    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info)
        abort();
    if (setjmp(png_jmpbuf(png)))
        abort();
    struct picture_bytes file = {0};
    png_set_write_fn(png, &file, append, flush);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(
        png, info, (png_uint_32)spec->width, (png_uint_32)spec->height, spec->kind == PICTURE_PNG_GRAY16 ? 16 : 8, type,
        interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (spec->kind == PICTURE_PNG_PALETTE)
        write_palette(png, info);
    uint8_t exif[64];
    if (spec->orientation)
        png_set_eXIf_1(
            png, info, (png_uint_32)picture_exif(exif, spec->orientation, spec->exif_big_endian, 0), exif);
    png_write_info(png, info);

    uint8_t *pixels = picture_pixels(spec, has_alpha);
    size_t stride = 4 * (size_t)spec->width;
    for (int y = 0; y < spec->height; y++)
        convert_row(pixels + stride * (size_t)y, spec);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < spec->height; y++)
            png_write_row(png, pixels + stride * (size_t)y);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    free(pixels);
    *size = file.size;
    return file.bytes;
}
