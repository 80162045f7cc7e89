#include "pictures.h"

#include "hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <test_pictures.h>

static void fail(const char *what, const char *path)
{
    fprintf(stderr, "%s %s\n", what, path);
    exit(1);
}

static int read_file(const char *path, struct bytes *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    struct stat about;
    fstat(fileno(file), &about);
    bytes->size = (size_t)about.st_size;
    bytes->data = malloc(bytes->size);
    int is_read = bytes->data && fread(bytes->data, 1, bytes->size, file) == bytes->size;
    fclose(file);
    return is_read;
}

static void draw(const char *path, unsigned kind, int width, int height)
{
    if (kind == PICTURE_GIF) {
        uint8_t *pixels = picture_draw(width, height, 7, 0);
        hand_write_gif(path, pixels, width, height);
        picture_free(pixels);
        return;
    }
    struct picture_spec spec = {.kind = kind, .width = width, .height = height, .seed = 7, .quality = 98};
    size_t size;
    uint8_t *data = picture_encode(&spec, &size);
    FILE *file = fopen(path, "wb");
    if (!data || !file || fwrite(data, 1, size, file) != size)
        fail("cannot write", path);
    fclose(file);
    picture_free(data);
}

struct bytes bench_picture(const char *name, unsigned kind, int width, int height)
{
    const char *folder = getenv("IMGDL_BENCH_PICTURES");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "build/bench", name);
    struct bytes bytes;
    if (read_file(path, &bytes))
        return bytes;
    draw(path, kind, width, height);
    if (!read_file(path, &bytes))
        fail("cannot read", path);
    return bytes;
}
