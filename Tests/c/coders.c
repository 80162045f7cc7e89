/* Codecs that the host brings: features X5, T22, T28, T32, G1, G2. */
#define SUITE "coders"
#include "support.h"

/* A toy format: "TOYPICTURE", what the codec does wrong, the orientation, width and height in one byte each, a byte
 * that says how pixels lie (IMGDL_PIXEL_FORMAT_…), a zero, then the pixels. */
enum { TOY_HEAD = 16 };
enum fault { NO_FAULT, NO_IMAGE, STALE_IMAGE, UNKNOWN_STATUS, NOT_READY_AT_END, BROKEN, NO_SIZE, BAD_INFO };

struct toy_codec {
    unsigned asked, created, destroyed_decoders, destroyed, partials;
    size_t most_shown;
    int32_t takes; /* what can_decode answers for toys */
    imgdl_decode_options options;
};

struct toy_decoder {
    struct toy_codec *codec;
    uint8_t bytes[70000];
    size_t count, shown;
};

static int32_t toy_can_decode(const void *prefix, size_t length, void *user_data)
{
    struct toy_codec *codec = user_data;
    __atomic_add_fetch(&codec->asked, 1, __ATOMIC_RELAXED);
    if (length > codec->most_shown)
        codec->most_shown = length;
    if (memcmp(prefix, "TOYPICTURE", length < 10 ? length : 10) != 0)
        return 0;
    return length < 10 ? -1 : codec->takes;
}

static void *toy_create(const imgdl_decode_options *options, void *user_data)
{
    struct toy_codec *codec = user_data;
    codec->options = *options;
    struct toy_decoder *decoder = calloc(1, sizeof *decoder);
    decoder->codec = codec;
    __atomic_add_fetch(&codec->created, 1, __ATOMIC_RELAXED);
    return decoder;
}

static void *no_create(const imgdl_decode_options *options, void *user_data)
{
    (void)options, (void)user_data;
    return NULL;
}

static imgdl_status toy_feed(void *context, const void *bytes, size_t length)
{
    struct toy_decoder *decoder = context;
    if (decoder->count + length > sizeof decoder->bytes)
        return IMGDL_ERROR_BAD_IMAGE_DATA;
    memcpy(decoder->bytes + decoder->count, bytes, length);
    decoder->count += length;
    if (decoder->count >= TOY_HEAD && decoder->bytes[10] == BROKEN)
        return IMGDL_ERROR_BAD_IMAGE_DATA;
    return IMGDL_OK;
}

static imgdl_status toy_info(void *context, imgdl_image_info *info)
{
    struct toy_decoder *decoder = context;
    if (decoder->count < TOY_HEAD)
        return IMGDL_ERROR_NOT_READY;
    if (decoder->bytes[10] == BAD_INFO)
        return -77;
    info->orientation = decoder->bytes[11];
    int lies = info->orientation >= 5;
    info->width = decoder->bytes[10] == NO_SIZE ? 0 : decoder->bytes[lies ? 13 : 12];
    info->height = decoder->bytes[lies ? 12 : 13];
    info->has_alpha = 1;
    info->frame_count = 1;
    return IMGDL_OK;
}

static imgdl_status toy_picture(struct toy_decoder *decoder, imgdl_image **image)
{
    uint32_t width = decoder->bytes[12], height = decoder->bytes[13];
    uint8_t *canvas = calloc(width * height, 4);
    size_t size = decoder->count - TOY_HEAD;
    memcpy(canvas, decoder->bytes + TOY_HEAD, size < width * height * 4 ? size : width * height * 4);
    imgdl_status status = imgdl_image_create(width, height, decoder->bytes[14], canvas, width * 4, image);
    free(canvas);
    return status;
}

static imgdl_status toy_partial(void *context, imgdl_image **image)
{
    struct toy_decoder *decoder = context;
    if (decoder->count <= TOY_HEAD || decoder->count == decoder->shown)
        return IMGDL_ERROR_NOT_READY;
    decoder->shown = decoder->count;
    decoder->codec->partials++;
    return toy_picture(decoder, image);
}

static imgdl_status toy_finish(void *context, imgdl_image **image)
{
    struct toy_decoder *decoder = context;
    size_t size = decoder->count < TOY_HEAD ? TOY_HEAD : TOY_HEAD + decoder->bytes[12] * decoder->bytes[13] * 4u;
    if (decoder->count < size)
        return IMGDL_ERROR_TRUNCATED;
    switch (decoder->bytes[10]) {
    case NO_IMAGE: return IMGDL_OK;
    case UNKNOWN_STATUS: return 4711;
    case NOT_READY_AT_END: return IMGDL_ERROR_NOT_READY;
    case STALE_IMAGE:
        toy_picture(decoder, image);
        imgdl_image_release(*image);
        return IMGDL_OK;
    default: return toy_picture(decoder, image);
    }
}

static void toy_destroy(void *context)
{
    struct toy_decoder *decoder = context;
    __atomic_add_fetch(&decoder->codec->destroyed_decoders, 1, __ATOMIC_RELAXED);
    free(decoder);
}

static void toy_destructor(void *user_data) { ((struct toy_codec *)user_data)->destroyed++; }

static imgdl_coder_table toy_table(struct toy_codec *codec)
{
    return (imgdl_coder_table){
        .struct_size = sizeof(imgdl_coder_table), .can_decode = toy_can_decode, .create = toy_create, .feed = toy_feed,
        .info = toy_info, .partial = toy_partial, .finish = toy_finish, .destroy = toy_destroy, .user_data = codec,
        .destructor = toy_destructor};
}

static imgdl_coder *register_toy(struct toy_codec *codec)
{
    imgdl_coder_table table = toy_table(codec);
    imgdl_coder *coder = NULL;
    REQUIRE_OK(imgdl_coder_register(&table, &coder));
    return coder;
}

struct toy {
    uint8_t bytes[TOY_HEAD + 40 * 20 * 4];
    size_t size;
};

static struct toy draw_toy(enum fault fault, int orientation, int format)
{
    struct toy toy = {.size = sizeof toy.bytes};
    memcpy(toy.bytes, "TOYPICTURE", 10);
    toy.bytes[10] = (uint8_t)fault;
    toy.bytes[11] = (uint8_t)orientation;
    toy.bytes[12] = 40;
    toy.bytes[13] = 20;
    toy.bytes[14] = (uint8_t)format;
    for (size_t i = TOY_HEAD; i < toy.size; i += 4) {
        toy.bytes[i] = (uint8_t)(i / 8);
        toy.bytes[i + 1] = (uint8_t)(i / 64);
        toy.bytes[i + 2] = 200;
        toy.bytes[i + 3] = format == IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED ? 255 : 128;
    }
    return toy;
}

static imgdl_status decode(const struct toy *toy, size_t size, const imgdl_decode_options *options, imgdl_image **image)
{
    *image = NULL;
    return imgdl_decode(toy->bytes, size, options, image);
}

TEST("a codec of the host's is used at once and in pieces, as long as it is registered (X5, T22)")
{
    struct toy_codec codec = {.takes = 1};
    struct toy toy = draw_toy(NO_FAULT, 1, IMGDL_PIXEL_FORMAT_RGBA8);
    imgdl_image *image;
    CHECK_CODE(decode(&toy, toy.size, NULL, &image), IMGDL_ERROR_BAD_IMAGE_DATA);
    imgdl_coder *coder = register_toy(&codec);
    CHECK_CODE(decode(&toy, toy.size, NULL, &image), IMGDL_OK);
    CHECK_NUMBER(imgdl_image_width(image), 40);
    CHECK_NUMBER(imgdl_image_height(image), 20);
    CHECK_NUMBER(imgdl_image_format(image), IMGDL_FORMAT_OTHER);
    CHECK_NUMBER(imgdl_image_is_complete(image), 1);
    CHECK(memcmp(imgdl_image_pixels(image), toy.bytes + TOY_HEAD, 40 * 20 * 4) == 0);
    imgdl_image_release(image);

    for (size_t piece = 1; piece < 200; piece += 99) {
        imgdl_decoder *decoder = NULL;
        imgdl_image_info info;
        imgdl_image_info_init(&info, sizeof info);
        REQUIRE_OK(imgdl_decoder_create(NULL, &decoder));
        unsigned partials = 0;
        for (size_t at = 0; at < toy.size; at += piece) {
            size_t count = toy.size - at < piece ? toy.size - at : piece;
            CHECK_CODE(imgdl_decoder_feed(decoder, toy.bytes + at, count), IMGDL_OK);
            if (at + piece < TOY_HEAD)
                CHECK_CODE(imgdl_decoder_info(decoder, &info), IMGDL_ERROR_NOT_READY);
            imgdl_status status = imgdl_decoder_partial(decoder, &image);
            if (status == IMGDL_OK) {
                partials++;
                CHECK_NUMBER(imgdl_image_is_complete(image), 0);
                imgdl_image_release(image);
            }
        }
        CHECK(partials > 10);
        CHECK_CODE(imgdl_decoder_info(decoder, &info), IMGDL_OK);
        CHECK_NUMBER(info.width, 40);
        CHECK_NUMBER(info.format, IMGDL_FORMAT_OTHER);
        CHECK_CODE(imgdl_decoder_finish(decoder, &image), IMGDL_OK);
        CHECK(memcmp(imgdl_image_pixels(image), toy.bytes + TOY_HEAD, 40 * 20 * 4) == 0);
        imgdl_image_release(image);
        imgdl_decoder_destroy(decoder);
    }
    CHECK_NUMBER(codec.created, 4); /* 1, 100 and 199 bytes at a time, and all */
    CHECK_NUMBER(codec.destroyed_decoders, 4);
    CHECK(codec.most_shown <= 64);

    /* What it has begun goes on. */
    imgdl_decoder *decoder = NULL;
    REQUIRE_OK(imgdl_decoder_create(NULL, &decoder));
    CHECK_CODE(imgdl_decoder_feed(decoder, toy.bytes, 100), IMGDL_OK);
    imgdl_coder_release(coder);
    imgdl_coder_release(coder);
    CHECK_NUMBER(codec.destroyed, 0);
    CHECK_CODE(decode(&toy, toy.size, NULL, &image), IMGDL_ERROR_BAD_IMAGE_DATA);
    CHECK_CODE(imgdl_decoder_feed(decoder, toy.bytes + 100, toy.size - 100), IMGDL_OK);
    CHECK_CODE(imgdl_decoder_finish(decoder, &image), IMGDL_OK);
    imgdl_image_release(image);
    imgdl_decoder_destroy(decoder);
    CHECK_NUMBER(codec.destroyed, 1);
}

TEST("the newest codec is asked first, then the older, then the library's own; one alone when it is named (X5)")
{
    struct toy_codec old = {.takes = 1}, new = {.takes = 1};
    struct toy toy = draw_toy(NO_FAULT, 1, IMGDL_PIXEL_FORMAT_RGBA8);
    imgdl_coder *old_coder = register_toy(&old), *new_coder = register_toy(&new);
    imgdl_image *image;
    CHECK_CODE(decode(&toy, toy.size, NULL, &image), IMGDL_OK);
    imgdl_image_release(image);
    CHECK_NUMBER(new.created, 1);
    CHECK_NUMBER(old.asked, 0);
    new.takes = -1; /* not even by 64 bytes: that is no */
    CHECK_CODE(decode(&toy, toy.size, NULL, &image), IMGDL_OK);
    imgdl_image_release(image);
    CHECK_NUMBER(new.created, 1);
    CHECK_NUMBER(old.created, 1);

    size_t size;
    uint8_t *bytes = read_picture("tiny.png", &size);
    REQUIRE_OK(imgdl_decode(bytes, size, NULL, &image));
    CHECK_NUMBER(imgdl_image_format(image), IMGDL_FORMAT_PNG);
    imgdl_image_release(image);
    CHECK_CODE(imgdl_decode(bytes, 4, NULL, &image), IMGDL_ERROR_TRUNCATED);
    CHECK_CODE(imgdl_decode(bytes, 0, NULL, &image), IMGDL_ERROR_BAD_IMAGE_DATA);
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.coder = new_coder;
    CHECK_CODE(imgdl_decode(bytes, size, &options, &image), IMGDL_ERROR_TRUNCATED); /* the toy's own verdict */
    CHECK_NUMBER(new.created, 2);
    CHECK_CODE(decode(&toy, toy.size, &options, &image), IMGDL_OK); /* without can_decode */
    imgdl_image_release(image);
    free(bytes);
    imgdl_coder_release(new_coder);
    CHECK_CODE(decode(&toy, toy.size, &options, &image), IMGDL_ERROR_INVALID_HANDLE);
    imgdl_coder_release(old_coder);
    CHECK_NUMBER(new.destroyed + old.destroyed, 2);
}

TEST("what a codec gives is brought to the pixel format and the orientation that were asked for (X5)")
{
    struct toy_codec codec = {.takes = 1};
    imgdl_coder *coder = register_toy(&codec);
    static const uint8_t first[5][4] = {
        {0, 0, 0, 0}, {2, 0, 200, 128}, {1, 0, 100, 128}, {200, 0, 2, 128}, {100, 0, 1, 128}};
    struct toy toy = draw_toy(NO_FAULT, 1, IMGDL_PIXEL_FORMAT_RGBA8);
    imgdl_image *image;
    for (imgdl_pixel_format format = 1; format <= IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED; format++) {
        imgdl_decode_options options;
        imgdl_decode_options_init(&options, sizeof options);
        options.pixel_format = format;
        CHECK_CODE(decode(&toy, toy.size, &options, &image), IMGDL_OK);
        CHECK_NUMBER(codec.options.pixel_format, format);
        CHECK_NUMBER(imgdl_image_pixel_format(image), format);
        const uint8_t *pixel = imgdl_image_pixels(image);
        if (memcmp(pixel, first[format], 4) != 0)
            FAIL("format %u: %d %d %d %d", format, pixel[0], pixel[1], pixel[2], pixel[3]);
        imgdl_image_release(image);
    }
    for (int orientation = 1; orientation <= 8; orientation++) {
        struct toy turned = draw_toy(NO_FAULT, orientation, IMGDL_PIXEL_FORMAT_RGBA8);
        CHECK_CODE(decode(&turned, turned.size, NULL, &image), IMGDL_OK);
        CHECK_NUMBER(imgdl_image_orientation(image), orientation);
        CHECK_NUMBER(imgdl_image_width(image), orientation >= 5 ? 20 : 40);
        CHECK_NUMBER(imgdl_image_height(image), orientation >= 5 ? 40 : 20);
        imgdl_image_release(image);
    }
    struct toy upside_down = draw_toy(NO_FAULT, 3, IMGDL_PIXEL_FORMAT_RGBA8);
    CHECK_CODE(decode(&upside_down, upside_down.size, NULL, &image), IMGDL_OK);
    CHECK(memcmp((const uint8_t *)imgdl_image_pixels(image) + (40 * 20 - 1) * 4, upside_down.bytes + TOY_HEAD, 4) == 0);
    imgdl_image_release(image);
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.flags = IMGDL_DECODE_IGNORE_ORIENTATION;
    CHECK_CODE(decode(&upside_down, upside_down.size, &options, &image), IMGDL_OK);
    CHECK(memcmp(imgdl_image_pixels(image), upside_down.bytes + TOY_HEAD, 4) == 0);
    CHECK_NUMBER(codec.options.flags, IMGDL_DECODE_IGNORE_ORIENTATION);
    imgdl_image_release(image);
    /* It gave all pixels: the library scales, then turns. */
    imgdl_decode_options_init(&options, sizeof options);
    options.target_width = options.target_height = 10;
    for (int orientation = 1; orientation <= 8; orientation += 5) {
        struct toy turned = draw_toy(NO_FAULT, orientation, IMGDL_PIXEL_FORMAT_RGBA8);
        imgdl_decoder *decoder = NULL;
        imgdl_image_info info;
        imgdl_image_info_init(&info, sizeof info);
        REQUIRE_OK(imgdl_decoder_create(&options, &decoder));
        CHECK_CODE(imgdl_decoder_feed(decoder, turned.bytes, turned.size), IMGDL_OK);
        CHECK_CODE(imgdl_decoder_info(decoder, &info), IMGDL_OK);
        CHECK_NUMBER(codec.options.target_width, 10);
        CHECK_CODE(imgdl_decoder_finish(decoder, &image), IMGDL_OK);
        CHECK_NUMBER(info.width, orientation == 1 ? 10 : 5);
        CHECK_NUMBER(imgdl_image_width(image), info.width);
        CHECK_NUMBER(imgdl_image_height(image), info.height);
        imgdl_image_release(image);
        imgdl_decoder_destroy(decoder);
    }
    options.max_pixels = 799;
    CHECK_CODE(decode(&toy, toy.size, &options, &image), IMGDL_ERROR_PIXEL_LIMIT);
    imgdl_coder_release(coder);
}

TEST("what a codec says is broken is broken, and what a codec does wrong is an error (X5, T22)")
{
    struct toy_codec codec = {.takes = 1};
    imgdl_coder *coder = register_toy(&codec);
    static const struct { enum fault fault; imgdl_status code; } table[] = {
        {NO_IMAGE, IMGDL_ERROR_INTERNAL},       {STALE_IMAGE, IMGDL_ERROR_INTERNAL},
        {UNKNOWN_STATUS, IMGDL_ERROR_INTERNAL}, {NOT_READY_AT_END, IMGDL_ERROR_INTERNAL},
        {NO_SIZE, IMGDL_ERROR_INTERNAL},        {BAD_INFO, IMGDL_ERROR_INTERNAL},
        {BROKEN, IMGDL_ERROR_BAD_IMAGE_DATA}};
    imgdl_image *image;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct toy toy = draw_toy(table[i].fault, 1, IMGDL_PIXEL_FORMAT_RGBA8);
        imgdl_status found = decode(&toy, toy.size, NULL, &image);
        if (found != table[i].code)
            FAIL("fault %d: %s", table[i].fault, imgdl_error_name(found));
        CHECK(strlen(imgdl_last_error()) > 0);
        CHECK(image == NULL);
        /* It stays so. */
        imgdl_decoder *decoder = NULL;
        REQUIRE_OK(imgdl_decoder_create(NULL, &decoder));
        ignore_status(imgdl_decoder_feed(decoder, toy.bytes, toy.size));
        CHECK(imgdl_decoder_finish(decoder, &image) == table[i].code);
        CHECK(imgdl_decoder_feed(decoder, "x", 1) == table[i].code);
        CHECK(imgdl_decoder_finish(decoder, &image) == table[i].code);
        imgdl_decoder_destroy(decoder);
    }
    struct toy toy = draw_toy(NO_FAULT, 1, IMGDL_PIXEL_FORMAT_RGBA8);
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    CHECK_CODE(decode(&toy, 1000, &options, &image), IMGDL_ERROR_TRUNCATED);
    CHECK(image == NULL);
    options.flags = IMGDL_DECODE_SALVAGE;
    CHECK_CODE(decode(&toy, 1000, &options, &image), IMGDL_ERROR_TRUNCATED);
    CHECK(memcmp(imgdl_image_pixels(image), toy.bytes + TOY_HEAD, 1000 - TOY_HEAD) == 0);
    CHECK_NUMBER(imgdl_image_is_complete(image), 0);
    imgdl_image_release(image);
    CHECK_NUMBER(codec.created, codec.destroyed_decoders);
    imgdl_coder_release(coder);

    imgdl_coder_table none = toy_table(&codec);
    none.create = no_create;
    REQUIRE_OK(imgdl_coder_register(&none, &coder));
    CHECK_CODE(decode(&toy, toy.size, NULL, &image), IMGDL_ERROR_OUT_OF_MEMORY);
    imgdl_coder_release(coder);
}

TEST("tables that are wrong are refused, and nothing of them is called (X5)")
{
    struct toy_codec codec = {.takes = 1};
    imgdl_coder *coder = NULL;
    imgdl_coder_table whole = toy_table(&codec), table;
    CHECK_CODE(imgdl_coder_register(NULL, &coder), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_coder_register(&whole, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
#define CHECK_WITHOUT(function)                                                                                        \
    do {                                                                                                               \
        table = whole;                                                                                                 \
        table.function = NULL;                                                                                         \
        CHECK_CODE(imgdl_coder_register(&table, &coder), IMGDL_ERROR_INVALID_ARGUMENT);                                \
    } while (0)
    CHECK_WITHOUT(can_decode);
    CHECK_WITHOUT(create);
    CHECK_WITHOUT(feed);
    CHECK_WITHOUT(info);
    CHECK_WITHOUT(finish);
    CHECK_WITHOUT(destroy);
    table = whole;
    table.struct_size = 40;
    CHECK_CODE(imgdl_coder_register(&table, &coder), IMGDL_ERROR_UNSUPPORTED_OPTION);
    table = whole;
    table.reserved = 1;
    CHECK_CODE(imgdl_coder_register(&table, &coder), IMGDL_ERROR_UNSUPPORTED_OPTION);
    CHECK(coder == NULL);
    CHECK_NUMBER(codec.destroyed, 0);
    /* Without partial there are no partial images, and the picture all the same. */
    table = whole;
    table.partial = NULL;
    REQUIRE_OK(imgdl_coder_register(&table, &coder));
    struct toy toy = draw_toy(NO_FAULT, 1, IMGDL_PIXEL_FORMAT_RGBA8);
    imgdl_decoder *decoder = NULL;
    imgdl_image *image = NULL;
    REQUIRE_OK(imgdl_decoder_create(NULL, &decoder));
    CHECK_CODE(imgdl_decoder_feed(decoder, toy.bytes, toy.size), IMGDL_OK);
    CHECK_CODE(imgdl_decoder_partial(decoder, &image), IMGDL_ERROR_NOT_READY);
    CHECK_CODE(imgdl_decoder_finish(decoder, &image), IMGDL_OK);
    imgdl_image_release(image);
    imgdl_decoder_destroy(decoder);
    imgdl_coder_release((imgdl_coder *)decoder);
    imgdl_coder_release(NULL);
    imgdl_coder_release(coder);
    CHECK_NUMBER(codec.destroyed, 1);
}

TEST("images of the host's own pixels: rows of any stride, and what cannot be one (X5)")
{
    uint8_t pixels[3 * 32];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)i;
    imgdl_image *image = NULL;
    REQUIRE_OK(imgdl_image_create(5, 3, IMGDL_PIXEL_FORMAT_BGRA8, pixels, 32, &image));
    CHECK_NUMBER(imgdl_image_stride(image), 20);
    CHECK_NUMBER(imgdl_image_pixel_format(image), IMGDL_PIXEL_FORMAT_BGRA8);
    for (size_t row = 0; row < 3; row++)
        CHECK(memcmp((const uint8_t *)imgdl_image_pixels(image) + 20 * row, pixels + 32 * row, 20) == 0);
    imgdl_image_release(image);
    CHECK_CODE(imgdl_image_create(0, 3, 1, pixels, 32, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_image_create(5, 3, 9, pixels, 32, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_image_create(5, 3, 1, NULL, 32, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_image_create(5, 3, 1, pixels, 19, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_image_create(5, 3, 1, pixels, SIZE_MAX, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_image_create(5, 3, 1, pixels, 32, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
}

/* ---- Downloads */

/* Gives the first half of a toy, and the rest when it was told to. */
struct shelf {
    struct toy toy;
    imgdl_transfer *transfer;
    struct flag started;
};

static void *shelf_start(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request;
    struct shelf *shelf = user_data;
    shelf->transfer = transfer;
    CHECK_CODE(imgdl_transfer_response(transfer, 200, NULL, 0), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_body(transfer, shelf->toy.bytes, shelf->toy.size / 2), IMGDL_OK);
    raise_flag(&shelf->started);
    return shelf;
}

static void shelf_cancel(void *started, void *user_data)
{
    (void)user_data;
    imgdl_transfer_release(((struct shelf *)started)->transfer);
}

TEST("a download with partial images: one decoder of the host's for these and for the picture (T22, T28)")
{
    struct toy_codec codec = {.takes = 1};
    imgdl_coder *coder = register_toy(&codec);
    struct shelf shelf = {.toy = draw_toy(NO_FAULT, 6, IMGDL_PIXEL_FORMAT_RGBA8), .started = FLAG_INIT};
    imgdl_transport_table table = {
        .struct_size = sizeof table, .start = shelf_start, .cancel = shelf_cancel, .user_data = &shelf};
    imgdl_downloader *downloader = new_downloader();
    REQUIRE_OK(imgdl_transport_register(downloader, "shelf", &table));
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request("shelf:1", &recorder);
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_event(&recorder, IMGDL_EVENT_PARTIAL, NULL);
    size_t half = shelf.toy.size / 2;
    CHECK_CODE(imgdl_transfer_body(shelf.transfer, shelf.toy.bytes + half, shelf.toy.size - half), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_end(shelf.transfer, IMGDL_OK, NULL), IMGDL_OK);
    imgdl_transfer_release(shelf.transfer);
    await_end(&recorder, NULL);
    check_ending(&recorder);
    check_order(&recorder, IMGDL_EVENT_ALL);
    CHECK_CODE(recorder.code, IMGDL_OK);
    CHECK_NUMBER(imgdl_image_width(recorder.image), 20);
    CHECK_NUMBER(imgdl_image_format(recorder.image), IMGDL_FORMAT_OTHER);
    CHECK_NUMBER(codec.created, 1);
    CHECK(codec.partials >= 1);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    CHECK_NUMBER(codec.destroyed_decoders, 1);
    imgdl_coder_release(coder);
    CHECK_NUMBER(codec.destroyed, 1);
}
