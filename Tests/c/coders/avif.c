/* A codec of somebody else's, carried by imgdl_coder_register: examples/coders/avif, loaded when it is asked for. */
#define SUITE "avif"
#include "../support.h"

#include <avif/avif.h>
#include <dlfcn.h>

enum { WIDTH = 96, HEIGHT = 64 };

static imgdl_coder *load_coder(void)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/../lib/libimgdl-avif.so", program_folder);
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        FAIL("%s", dlerror());
    REQUIRE(library);
    imgdl_status (*avif_coder_register)(imgdl_coder **);
    *(void **)&avif_coder_register = dlsym(library, "avif_coder_register");
    REQUIRE(avif_coder_register);
    imgdl_coder *coder = NULL;
    REQUIRE_OK(avif_coder_register(&coder));
    return coder;
}

/* Left half red, right half transparent blue; quarters: turned anticlockwise by so many. */
static avifRWData encode(unsigned quarters)
{
    static uint8_t pixels[HEIGHT][WIDTH][4];
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            memcpy(pixels[y][x], x < WIDTH / 2 ? (uint8_t[]){250, 10, 10, 255} : (uint8_t[]){10, 10, 250, 0}, 4);
    avifImage *image = avifImageCreate(WIDTH, HEIGHT, 8, AVIF_PIXEL_FORMAT_YUV444);
    if (quarters > 0) {
        image->transformFlags = AVIF_TRANSFORM_IROT;
        image->irot.angle = (uint8_t)quarters;
    }
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, image);
    rgb.pixels = &pixels[0][0][0];
    rgb.rowBytes = sizeof pixels[0];
    REQUIRE(avifImageRGBToYUV(image, &rgb) == AVIF_RESULT_OK);
    avifEncoder *encoder = avifEncoderCreate();
    encoder->speed = 10;
    avifRWData file = AVIF_DATA_EMPTY;
    REQUIRE(avifEncoderWrite(encoder, image, &file) == AVIF_RESULT_OK);
    avifEncoderDestroy(encoder);
    avifImageDestroy(image);
    return file;
}

static int is_near(const imgdl_image *image, uint32_t x, uint32_t y, const uint8_t expected[4])
{
    const uint8_t *pixel = (const uint8_t *)imgdl_image_pixels(image) + y * imgdl_image_stride(image) + 4 * x;
    for (int c = 0; c < 4; c++)
        if (abs(pixel[c] - expected[c]) > 12 && (c == 3 || expected[3] > 0))
            return 0;
    return 1;
}

static const uint8_t red[4] = {250, 10, 10, 255}, clear[4] = {0, 0, 0, 0};

TEST("an AVIF is downloaded and decoded, and only while the codec is registered (X5, T22)")
{
    avifRWData file = encode(0);
    write_picture("picture.avif", file.data, file.size);
    write_picture("again.avif", file.data, file.size);
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_downloader *downloader = new_downloader();
    imgdl_request request = recorded_request(at_origin("/pictures/picture.avif"), &recorder);
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_ERROR_BAD_IMAGE_DATA);
    recorder_clear(&recorder);

    imgdl_coder *coder = load_coder();
    recorder_init(&recorder);
    request = recorded_request(at_origin("/pictures/again.avif"), &recorder);
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    REQUIRE(recorder.image);
    CHECK_NUMBER(imgdl_image_width(recorder.image), WIDTH);
    CHECK_NUMBER(imgdl_image_height(recorder.image), HEIGHT);
    CHECK_NUMBER(imgdl_image_format(recorder.image), IMGDL_FORMAT_OTHER);
    CHECK(is_near(recorder.image, 10, 10, red));
    CHECK(is_near(recorder.image, WIDTH - 10, 10, clear));
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_coder_release(coder);
    avifRWDataFree(&file);
}

TEST("in pieces: the size is known early, and the picture is the same (B7, B8)")
{
    imgdl_coder *coder = load_coder();
    avifRWData file = encode(0);
    for (size_t step = 1; step < file.size; step = 3 * step + 1) {
        imgdl_decoder *decoder = NULL;
        REQUIRE_OK(imgdl_decoder_create(NULL, &decoder));
        size_t known = 0;
        for (size_t at = 0; at < file.size; at += step) {
            size_t length = file.size - at < step ? file.size - at : step;
            CHECK_CODE(imgdl_decoder_feed(decoder, file.data + at, length), IMGDL_OK);
            imgdl_image_info info;
            imgdl_image_info_init(&info, sizeof info);
            if (known == 0 && imgdl_decoder_info(decoder, &info) == IMGDL_OK) {
                known = at + length;
                CHECK_NUMBER(info.width, WIDTH);
                CHECK_NUMBER(info.has_alpha, 1);
            }
        }
        if (step == 1)
            CHECK(known < file.size);
        imgdl_image *image = NULL;
        REQUIRE_OK(imgdl_decoder_finish(decoder, &image));
        CHECK(is_near(image, 10, 10, red));
        imgdl_image_release(image);
        imgdl_decoder_destroy(decoder);
    }
    avifRWDataFree(&file);
    imgdl_coder_release(coder);
}

TEST("what is asked of a picture holds for it, too: turned, smaller, not too large (X8, B10)")
{
    imgdl_coder *coder = load_coder();
    avifRWData file = encode(1); /* red at the bottom */
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    imgdl_image *image = NULL;
    REQUIRE_OK(imgdl_decode(file.data, file.size, &options, &image));
    CHECK_NUMBER(imgdl_image_width(image), HEIGHT);
    CHECK_NUMBER(imgdl_image_height(image), WIDTH);
    CHECK(is_near(image, 10, WIDTH - 10, red));
    CHECK(is_near(image, 10, 10, clear));
    imgdl_image_release(image);
    options.target_width = 32;
    REQUIRE_OK(imgdl_decode(file.data, file.size, &options, &image));
    CHECK_NUMBER(imgdl_image_width(image), 32);
    CHECK_NUMBER(imgdl_image_height(image), 48);
    imgdl_image_release(image);
    options.max_pixels = WIDTH * HEIGHT - 1;
    CHECK_CODE(imgdl_decode(file.data, file.size, &options, &image), IMGDL_ERROR_PIXEL_LIMIT);
    avifRWDataFree(&file);
    imgdl_coder_release(coder);
}

TEST("a cut or broken AVIF is an error (B5)")
{
    imgdl_coder *coder = load_coder();
    avifRWData file = encode(0);
    imgdl_image *image = NULL;
    for (size_t size = 20; size < file.size; size += 7)
        CHECK(imgdl_decode(file.data, size, NULL, &image) != IMGDL_OK);
    for (size_t at = 12; at < file.size; at++) {
        file.data[at] ^= 0x55;
        if (imgdl_decode(file.data, file.size, NULL, &image) == IMGDL_OK)
            imgdl_image_release(image);
        file.data[at] ^= 0x55;
    }
    avifRWDataFree(&file);
    imgdl_coder_release(coder);
}
