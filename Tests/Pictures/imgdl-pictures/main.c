/* imgdl-pictures DIR [--large]: writes a set of pictures to look at, to download and to measure with. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test_pictures.h"

struct named_picture {
    const char *name;
    struct picture_spec spec;
};

static const struct named_picture usual[] = {
    {"baseline.jpg", {.kind = PICTURE_JPEG_BASELINE, .width = 1200, .height = 800, .seed = 1}},
    {"progressive.jpg", {.kind = PICTURE_JPEG_PROGRESSIVE, .width = 1280, .height = 853, .seed = 2}},
    {"gray.jpg", {.kind = PICTURE_JPEG_GRAY, .width = 1200, .height = 800, .seed = 3}},
    {"cmyk.jpg", {.kind = PICTURE_JPEG_CMYK, .width = 1024, .height = 683, .seed = 4, .quality = 75}},
    {"arithmetic.jpg", {.kind = PICTURE_JPEG_ARITHMETIC, .width = 1200, .height = 800, .seed = 5}},
    {"oriented-6.jpg",
     {.kind = PICTURE_JPEG_PROGRESSIVE, .width = 1200, .height = 800, .seed = 6, .orientation = 6, .exif_thumbnail = 1}},
    {"opaque.png", {.kind = PICTURE_PNG_RGB, .width = 900, .height = 600, .seed = 7}},
    {"alpha.png", {.kind = PICTURE_PNG_RGBA, .width = 800, .height = 533, .seed = 8}},
    {"palette.png", {.kind = PICTURE_PNG_PALETTE, .width = 1200, .height = 800, .seed = 9}},
    {"adam7.png", {.kind = PICTURE_PNG_ADAM7, .width = 720, .height = 480, .seed = 10}},
    {"lossy.webp", {.kind = PICTURE_WEBP_LOSSY, .width = 1200, .height = 800, .seed = 11}},
    {"lossless.webp", {.kind = PICTURE_WEBP_LOSSLESS, .width = 900, .height = 600, .seed = 12}},
    {"alpha.webp", {.kind = PICTURE_WEBP_LOSSY_ALPHA, .width = 1200, .height = 800, .seed = 13}},
    {"animated.webp", {.kind = PICTURE_WEBP_ANIMATED, .width = 640, .height = 427, .seed = 14}},
};

static const struct named_picture large[] = {
    {"large-baseline.jpg", {.kind = PICTURE_JPEG_BASELINE, .width = 6000, .height = 4000, .seed = 21}},
    {"large-progressive.jpg", {.kind = PICTURE_JPEG_PROGRESSIVE, .width = 6000, .height = 4000, .seed = 22}},
    {"large.png", {.kind = PICTURE_PNG_RGB, .width = 6000, .height = 4000, .seed = 23}},
    {"large-adam7.png", {.kind = PICTURE_PNG_ADAM7, .width = 6000, .height = 4000, .seed = 24}},
    {"large-lossy.webp", {.kind = PICTURE_WEBP_LOSSY, .width = 6000, .height = 4000, .seed = 25}},
    {"large-lossless.webp", {.kind = PICTURE_WEBP_LOSSLESS, .width = 6000, .height = 4000, .seed = 26}},
};

static int write_all(const char *folder, const struct named_picture *pictures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char path[4096];
        if (snprintf(path, sizeof path, "%s/%s", folder, pictures[i].name) >= (int)sizeof path) {
            fprintf(stderr, "imgdl-pictures: the folder's name is too long\n");
            return 1;
        }
        size_t size;
        uint8_t *bytes = picture_encode(&pictures[i].spec, &size);
        FILE *file = fopen(path, "wb");
        int written = file && fwrite(bytes, 1, size, file) == size;
        if (!file || fclose(file) != 0 || !written) {
            fprintf(stderr, "imgdl-pictures: cannot write %s: %s\n", path, strerror(errno));
            return 1;
        }
        picture_free(bytes);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int with_large = 0;
    const char *folder = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--large"))
            with_large = 1;
        else if (argv[i][0] != '-' && !folder)
            folder = argv[i];
        else
            folder = NULL, i = argc;
    }
    if (!folder) {
        fprintf(stderr, "usage: imgdl-pictures DIR [--large]\n");
        return 2;
    }
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "imgdl-pictures: cannot make %s: %s\n", folder, strerror(errno));
        return 1;
    }
    int failed = write_all(folder, usual, sizeof usual / sizeof *usual);
    if (!failed && with_large)
        failed = write_all(folder, large, sizeof large / sizeof *large);
    return failed;
}
