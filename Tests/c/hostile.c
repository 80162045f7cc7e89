/* Decodes every file that is named, or stands in a folder that is named: whole and in pieces of 1000 bytes, all frames
 * and the first alone, as stored and smaller. Every pixel of every picture, partial or not, decides a branch, so that
 * memcheck sees one that was never written. A program of its own: memcheck and UndefinedBehaviorSanitizer run it.
 * --damaged: each file is broken in a few places, too. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "imgdl.h"

static unsigned files, pictures, lit;
static int damages;

/* Only the part that holds pixels may be read of a partial image: imgdl_image_ready. */
static void look_at(imgdl_image *image)
{
    imgdl_rectangle ready = imgdl_image_ready(image);
    size_t stride = imgdl_image_stride(image);
    const uint8_t *pixels = imgdl_image_pixels(image);
    for (uint32_t y = ready.y; y < ready.y + ready.height; y++) {
        const uint8_t *row = pixels + y * stride + 4u * ready.x;
        uint32_t sum = 0;
        for (uint32_t i = 0; i < 4 * ready.width; i++)
            sum = sum * 31 + row[i];
        if (sum & 1)
            lit++;
    }
    pictures++;
}

static void look_at_all(imgdl_image *image)
{
    if (!image)
        return;
    look_at(image);
    for (uint32_t i = 1; i < imgdl_image_frame_count(image); i++) {
        imgdl_image *frame = NULL;
        if (imgdl_image_frame(image, i, &frame) != IMGDL_OK)
            break;
        look_at(frame);
        imgdl_image_release(frame);
    }
    imgdl_image_release(image);
}

/* In pieces of memory of their own, so that one byte behind is one too many. */
static imgdl_status decode_in_pieces(const uint8_t *bytes, size_t size, const imgdl_decode_options *options)
{
    imgdl_decoder *decoder = NULL;
    if (imgdl_decoder_create(options, &decoder) != IMGDL_OK)
        return IMGDL_ERROR_INTERNAL;
    for (size_t at = 0; at < size; at += 1000) {
        size_t length = size - at < 1000 ? size - at : 1000;
        uint8_t *piece = malloc(length);
        if (!piece)
            abort();
        memcpy(piece, bytes + at, length);
        imgdl_status status = imgdl_decoder_feed(decoder, piece, length);
        free(piece);
        imgdl_image *partial = NULL;
        if (imgdl_decoder_partial(decoder, &partial) == IMGDL_OK) {
            look_at(partial);
            imgdl_image_release(partial);
        }
        if (status != IMGDL_OK)
            break;
    }
    imgdl_image *image = NULL;
    imgdl_status status = imgdl_decoder_finish(decoder, &image);
    look_at_all(image);
    imgdl_decoder_destroy(decoder);
    return status;
}

static int decode_every_way(const char *path, const uint8_t *bytes, size_t size)
{
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.max_pixels = 4000000;
    int failures = 0;
    for (int way = 0; way < 3; way++) {
        options.flags = IMGDL_DECODE_SALVAGE | (way > 0 ? IMGDL_DECODE_ALL_FRAMES : 0);
        options.target_width = way > 1 ? 23 : 0;
        options.pixel_format = way > 1 ? IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED : IMGDL_PIXEL_FORMAT_RGBA8;
        imgdl_image *image = NULL;
        imgdl_status whole = imgdl_decode(bytes, size, &options, &image);
        look_at_all(image);
        imgdl_status pieces = decode_in_pieces(bytes, size, &options);
        if (whole != pieces) {
            fprintf(stderr, "%s, way %d: %s as a whole, %s in pieces\n", path, way, imgdl_error_name(whole),
                    imgdl_error_name(pieces));
            failures++;
        }
    }
    return failures;
}

static int decode_file(const char *path, size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    FILE *file = fopen(path, "rb");
    if (!bytes || !file || fread(bytes, 1, size, file) != size) {
        perror(path);
        exit(2);
    }
    fclose(file);
    files++;
    int failures = decode_every_way(path, bytes, size);
    uint32_t state = 1;
    for (int i = 0; damages && i < 4 && size > 0; i++) {
        for (int places = 0; places < 3; places++) {
            state = state * 1664525 + 1013904223;
            bytes[(state >> 8) % size] ^= (uint8_t)(1 << (state >> 29));
        }
        failures += decode_every_way(path, bytes, size);
    }
    free(bytes);
    return failures;
}

static int decode_path(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0) {
        perror(path);
        exit(2);
    }
    if (!S_ISDIR(about.st_mode))
        return decode_file(path, (size_t)about.st_size);
    DIR *folder = opendir(path);
    if (!folder) {
        perror(path);
        exit(2);
    }
    int failures = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char inner[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        failures += decode_path(inner);
    }
    closedir(folder);
    return failures;
}

int main(int count, char **arguments)
{
    int failures = 0;
    for (int i = 1; i < count; i++)
        if (strcmp(arguments[i], "--damaged") == 0)
            damages = 1;
        else
            failures += decode_path(arguments[i]);
    fprintf(stderr, "%u pictures of %u files, %u rows lit\n", pictures, files, lit);
    printf("%u passed, %d failed, 0 skipped\n", files, failures);
    return failures != 0;
}
