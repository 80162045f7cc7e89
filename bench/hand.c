#include "hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gif_lib.h>
#include <jpeglib.h>
#include <png.h>
#include <sys/mman.h>
#include <webp/decode.h>

/* As the library gets its canvases: large ones from huge pages. With small ones a third of the time would be page faults. */
static void *room(struct hand_canvas *canvas, size_t size)
{
    enum { HUGE = 2 * 1024 * 1024 };
    if (size > canvas->size) {
        hand_canvas_free(canvas);
        canvas->size = (size + HUGE - 1) / HUGE * HUGE;
        canvas->pixels = aligned_alloc(HUGE, canvas->size);
        if (canvas->pixels)
            (void)madvise(canvas->pixels, size, MADV_HUGEPAGE);
        else
            canvas->size = 0;
    }
    return canvas->pixels;
}

void hand_canvas_free(struct hand_canvas *canvas)
{
    free(canvas->pixels);
    *canvas = (struct hand_canvas){0};
}

static size_t decode_jpeg(struct hand_canvas *canvas, const uint8_t *bytes, size_t size)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, bytes, size);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = JCS_EXT_RGBA;
    jpeg_start_decompress(&jpeg);
    size_t stride = 4 * (size_t)jpeg.output_width;
    size_t count = (size_t)jpeg.output_width * jpeg.output_height;
    uint8_t *pixels = room(canvas, 4 * count);
    while (pixels && jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = pixels + stride * jpeg.output_scanline;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return pixels ? count : 0;
}

struct cursor {
    const uint8_t *at;
    size_t left;
};

static void read_bytes(png_structp png, png_bytep to, size_t size)
{
    struct cursor *cursor = png_get_io_ptr(png);
    if (size > cursor->left)
        png_error(png, "too short");
    memcpy(to, cursor->at, size);
    cursor->at += size;
    cursor->left -= size;
}

static size_t decode_png(struct hand_canvas *canvas, const uint8_t *bytes, size_t size)
{
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    if (setjmp(png_jmpbuf(png)))
        return 0;
    struct cursor cursor = {bytes, size};
    png_set_read_fn(png, &cursor, read_bytes);
    png_read_info(png, info);
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xFF, PNG_FILLER_AFTER);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    size_t stride = png_get_rowbytes(png, info), height = png_get_image_height(png, info);
    uint8_t *pixels = room(canvas, stride * height);
    png_bytepp rows = malloc(height * sizeof *rows);
    if (!pixels || !rows)
        return 0;
    for (size_t y = 0; y < height; y++)
        rows[y] = pixels + y * stride;
    png_read_image(png, rows);
    png_read_end(png, NULL);
    png_destroy_read_struct(&png, &info, NULL);
    free(rows);
    return stride / 4 * height;
}

static size_t decode_webp(struct hand_canvas *canvas, const uint8_t *bytes, size_t size)
{
    int width, height;
    if (!WebPGetInfo(bytes, size, &width, &height))
        return 0;
    size_t count = (size_t)width * (size_t)height;
    uint8_t *pixels = room(canvas, 4 * count);
    return pixels && WebPDecodeRGBAInto(bytes, size, pixels, 4 * count, 4 * width) ? count : 0;
}

static int read_gif(GifFileType *gif, GifByteType *to, int size)
{
    struct cursor *cursor = gif->UserData;
    size_t count = (size_t)size < cursor->left ? (size_t)size : cursor->left;
    memcpy(to, cursor->at, count);
    cursor->at += count;
    cursor->left -= count;
    return (int)count;
}

static size_t decode_gif(struct hand_canvas *canvas, const uint8_t *bytes, size_t size)
{
    struct cursor cursor = {bytes, size};
    int error;
    GifFileType *gif = DGifOpen(&cursor, read_gif, &error);
    if (!gif || DGifSlurp(gif) != GIF_OK)
        return 0;
    const SavedImage *frame = &gif->SavedImages[0];
    const ColorMapObject *map = frame->ImageDesc.ColorMap ? frame->ImageDesc.ColorMap : gif->SColorMap;
    uint32_t colours[256] = {0};
    for (int i = 0; i < map->ColorCount; i++) {
        GifColorType c = map->Colors[i];
        colours[i] = (uint32_t)c.Red | (uint32_t)c.Green << 8 | (uint32_t)c.Blue << 16 | 0xFF000000u;
    }
    size_t count = (size_t)frame->ImageDesc.Width * (size_t)frame->ImageDesc.Height;
    uint32_t *pixels = room(canvas, 4 * count);
    for (size_t i = 0; pixels && i < count; i++)
        pixels[i] = colours[frame->RasterBits[i]];
    DGifCloseFile(gif, &error);
    return pixels ? count : 0;
}

size_t hand_decode_into(struct hand_canvas *canvas, const uint8_t *bytes, size_t size)
{
    switch (size ? bytes[0] : 0) {
    case 0xFF: return decode_jpeg(canvas, bytes, size);
    case 0x89: return decode_png(canvas, bytes, size);
    case 'R': return decode_webp(canvas, bytes, size);
    case 'G': return decode_gif(canvas, bytes, size);
    default: return 0;
    }
}

int hand_decode(const uint8_t *bytes, size_t size)
{
    struct hand_canvas canvas = {0};
    size_t count = hand_decode_into(&canvas, bytes, size);
    hand_canvas_free(&canvas);
    return count > 0;
}

void hand_write_gif(const char *path, const uint8_t *pixels, int width, int height)
{
    int error;
    GifFileType *gif = EGifOpenFileName(path, 0, &error);
    ColorMapObject *map = GifMakeMapObject(256, NULL);
    GifByteType *row = malloc((size_t)width);
    if (!gif || !map || !row)
        abort();
    for (int i = 0; i < 216; i++)
        map->Colors[i] = (GifColorType){(GifByteType)(i / 36 * 51), (GifByteType)(i / 6 % 6 * 51), (GifByteType)(i % 6 * 51)};
    EGifSetGifVersion(gif, 1);
    EGifPutScreenDesc(gif, width, height, 8, 0, map);
    EGifPutImageDesc(gif, 0, 0, width, height, 0, NULL);
    uint32_t noise = 1;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++, pixels += 4) {
            int levels[3];
            for (int c = 0; c < 3; c++) {
                noise = noise * 1664525u + 1013904223u;
                int level = (pixels[c] + (int)(noise >> 27)) / 51;
                levels[c] = level > 5 ? 5 : level;
            }
            row[x] = (GifByteType)(levels[0] * 36 + levels[1] * 6 + levels[2]);
        }
        EGifPutLine(gif, row, width);
    }
    EGifCloseFile(gif, &error);
    GifFreeMapObject(map);
    free(row);
}
