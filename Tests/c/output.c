/* What decoding gives out, and what it refuses, through the C interface alone: pixel formats, the caller's memory, notes on
 * colours, limits. The pixels themselves are the business of the tests of the codecs. */
#define SUITE "output"
#include "harness.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory {
    int given, taken, refuses;
    size_t padding;
};

static void *give(uint32_t width, uint32_t height, uint32_t bytes_per_pixel, size_t *stride, void *user_data)
{
    struct memory *memory = user_data;
    if (memory->refuses || *stride != (size_t)width * bytes_per_pixel)
        return NULL;
    *stride += memory->padding;
    memory->given++;
    return malloc(*stride * height);
}

static void take(void *pixels, void *user_data)
{
    ((struct memory *)user_data)->taken++;
    free(pixels);
}

TEST("a canvas in the caller's memory, which lives as long as the last image (B22)")
{
    size_t size;
    uint8_t *bytes = read_picture("tiny.png", &size);
    struct memory memory = {.padding = 5};
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.pixel_format = IMGDL_PIXEL_FORMAT_RGB8;
    options.allocate = give;
    options.deallocate = take;
    options.allocator_user_data = &memory;
    imgdl_image *image = NULL, *plain = NULL;
    REQUIRE_OK(imgdl_decode(bytes, size, &options, &image));
    REQUIRE_OK(imgdl_decode(bytes, size, NULL, &plain));
    CHECK_NUMBER(imgdl_image_pixel_format(image), IMGDL_PIXEL_FORMAT_RGB8);
    CHECK_NUMBER(imgdl_image_stride(image), 24 * 3 + 5);
    const uint8_t *three = imgdl_image_pixels(image), *four = imgdl_image_pixels(plain);
    for (size_t y = 0; y < 16; y++)
        for (size_t x = 0; x < 24; x++)
            CHECK(!memcmp(three + y * (24 * 3 + 5) + 3 * x, four + y * 24 * 4 + 4 * x, 3));
    CHECK(memory.given == 1 && memory.taken == 0);
    imgdl_image_retain(image);
    imgdl_image_release(image);
    CHECK_NUMBER(memory.taken, 0);
    imgdl_image_release(image);
    CHECK_NUMBER(memory.taken, 1);
    imgdl_image_release(plain);

    memory.refuses = 1;
    CHECK_CODE(imgdl_decode(bytes, size, &options, &image), IMGDL_ERROR_OUT_OF_MEMORY);
    options.deallocate = NULL;
    CHECK_CODE(imgdl_decode(bytes, size, &options, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_NUMBER(memory.given, 1);
    free(bytes);
}

/* An allocator that stays in a canvas's allocation until it is told to go on. */
struct slow_memory {
    struct flag entered, leaves, taken, told;
};

static void *give_slowly(uint32_t width, uint32_t height, uint32_t bytes_per_pixel, size_t *stride, void *user_data)
{
    (void)width, (void)bytes_per_pixel;
    struct slow_memory *memory = user_data;
    raise_flag(&memory->entered);
    await_flag(&memory->leaves, 1);
    return malloc(*stride * height);
}

static void take_noted(void *pixels, void *user_data)
{
    free(pixels);
    raise_flag(&((struct slow_memory *)user_data)->taken);
}

static void on_told(void *memory) { raise_flag(&((struct slow_memory *)memory)->told); }


static imgdl_downloader *begin_slow_decoding(struct slow_memory *memory)
{
    *memory = (struct slow_memory){FLAG_INIT, FLAG_INIT, FLAG_INIT, FLAG_INIT};
    imgdl_downloader *downloader = new_downloader();
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png");
    request.callback = ignore_event;
    request.destructor = on_told;
    request.user_data = memory;
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.allocate = give_slowly;
    options.deallocate = take_noted;
    options.allocator_user_data = memory;
    request.decode = &options;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    REQUIRE(await_flag(&memory->entered, 1));
    return downloader;
}

static void *destroy_downloader(void *downloader)
{
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    return NULL;
}

TEST("a canvas in the caller's memory of a decoder that nobody waits for any more is given back after the destructor")
{
    struct slow_memory memory;
    imgdl_downloader *downloader = begin_slow_decoding(&memory);
    CHECK_CODE(imgdl_downloader_cancel_all(downloader), IMGDL_OK);
    imgdl_downloader_release(downloader);
    REQUIRE(await_flag(&memory.told, 1));
    CHECK_NUMBER(memory.taken.value, 0);
    raise_flag(&memory.leaves);
    REQUIRE(await_flag(&memory.taken, 1));
}

TEST("a destroy that waits returns when canvases in the caller's memory are given back")
{
    struct slow_memory memory;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, destroy_downloader, begin_slow_decoding(&memory)) == 0);
    REQUIRE(await_flag(&memory.told, 1));
    CHECK_NUMBER(memory.taken.value, 0);
    raise_flag(&memory.leaves);
    pthread_join(thread, NULL);
    CHECK_NUMBER(memory.taken.value, 1);
}

TEST("options of decoding that do not exist")
{
    size_t size;
    uint8_t *bytes = read_picture("tiny.png", &size);
    imgdl_image *image = NULL;
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.colour = 2;
    CHECK_CODE(imgdl_decode(bytes, size, &options, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    imgdl_decode_options_init(&options, sizeof options);
    options.reserved2 = 1;
    CHECK_CODE(imgdl_decode(bytes, size, &options, &image), IMGDL_ERROR_UNSUPPORTED_OPTION);
    imgdl_decode_options_init(&options, sizeof options);
    options.pixel_format = IMGDL_PIXEL_FORMAT_RGBA16 + 1;
    CHECK_CODE(imgdl_decode(bytes, size, &options, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK(image == NULL);
    free(bytes);
}

TEST("without a profile there are no notes on colours, and invalid handles have none")
{
    size_t size, length = 7;
    uint8_t *bytes = read_picture("tiny.png", &size);
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.colour = IMGDL_COLOUR_SRGB;
    imgdl_image *image = NULL;
    REQUIRE_OK(imgdl_decode(bytes, size, &options, &image));
    CHECK(imgdl_image_icc_profile(image, &length) == NULL && length == 0);
    CHECK(imgdl_image_icc_profile(image, NULL) == NULL);
    CHECK_NUMBER(imgdl_image_colour_notes(image), 0);
    CHECK_NUMBER(imgdl_image_is_good_enough(image), 1);
    imgdl_image_release(image);
    length = 7;
    CHECK(imgdl_image_icc_profile(image, &length) == NULL && length == 0);
    CHECK(imgdl_image_colour_notes(NULL) == 0 && imgdl_image_notes(NULL) == 0 && imgdl_image_is_good_enough(NULL) == 0);
    free(bytes);
}

TEST("limits of decoding say their names and numbers (B10)")
{
    size_t size;
    uint8_t *bytes = read_picture("tiny.png", &size);
    imgdl_image *image = NULL;
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.max_side = 23;
    CHECK_CODE(imgdl_decode(bytes, size, &options, &image), IMGDL_ERROR_SIZE_LIMIT);
    CHECK(strstr(imgdl_last_error(), "24 × 16") && strstr(imgdl_last_error(), "23"));
    imgdl_decode_options_init(&options, sizeof options);
    options.max_memory_bytes = 1500;
    CHECK_CODE(imgdl_decode(bytes, size, &options, &image), IMGDL_ERROR_MEMORY_LIMIT);
    CHECK(strstr(imgdl_last_error(), "1500") != NULL);
    CHECK(image == NULL);
    free(bytes);
}

static long peak_memory(void)
{
    char line[128];
    long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &kilobytes) == 1)
            break;
    if (file)
        fclose(file);
    return kilobytes;
}

TEST("a JPEG of 258 bytes that claims 65500 x 65500 costs less than a megabyte (B10)")
{
    uint8_t bytes[258] = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
    memset(bytes + 7, 1, 64);
    static const uint8_t rest[] = {
        0xFF, 0xC0, 0, 11, 8, 0xFF, 0xDC, 0xFF, 0xDC, 1, 1, 0x11, 0,  /* 65500 x 65500, gray */
        0xFF, 0xC4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0xFF, 0xC4, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0,
    };
    memcpy(bytes + 71, rest, sizeof rest);
    imgdl_image *image = NULL;
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.max_pixels = UINT64_MAX;
    options.max_memory_bytes = 1000000;
    CHECK_CODE(imgdl_decode(bytes, sizeof bytes, NULL, &image), IMGDL_ERROR_PIXEL_LIMIT);
    long before = peak_memory();
    CHECK_CODE(imgdl_decode(bytes, sizeof bytes, NULL, &image), IMGDL_ERROR_PIXEL_LIMIT);
    CHECK_CODE(imgdl_decode(bytes, sizeof bytes, &options, &image), IMGDL_ERROR_MEMORY_LIMIT);
    CHECK(peak_memory() - before < 1000);
    CHECK(image == NULL);
}
