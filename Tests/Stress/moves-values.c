/* Moves of sections 2 to 5 of the header: versions, errors, images, bodies, decoding. */
#include "moves.h"

#include <string.h>

void move_imgdl_version(void) { note(F_imgdl_version, (long)imgdl_version()); }
void move_imgdl_version_string(void) { note(F_imgdl_version_string, (long)strlen(imgdl_version_string())); }
void move_imgdl_error_name(void) { note(F_imgdl_error_name, (long)strlen(imgdl_error_name((imgdl_status)chance(3000)))); }
void move_imgdl_error_message(void)
{
    note(F_imgdl_error_message, (long)strlen(imgdl_error_message((imgdl_status)chance(3000))));
}
void move_imgdl_last_error(void) { note(F_imgdl_last_error, (long)strlen(imgdl_last_error())); }

/* Its own reference, so that what it points to stays; NULL for what is no image any more. */
static imgdl_image *hold_image(void) { return imgdl_image_retain(pick(IMAGE)); }

#define IMAGE_GETTER(name)                                                                                             \
    void move_imgdl_image_##name(void) { note(F_imgdl_image_##name, (long)imgdl_image_##name(pick(IMAGE))); }
IMAGE_GETTER(width)
IMAGE_GETTER(height)
IMAGE_GETTER(stride)
IMAGE_GETTER(format)
IMAGE_GETTER(pixel_format)
IMAGE_GETTER(frame_count)
IMAGE_GETTER(loop_count)
IMAGE_GETTER(scale_factor)
IMAGE_GETTER(orientation)
IMAGE_GETTER(is_complete)
IMAGE_GETTER(notes)
IMAGE_GETTER(pass)
IMAGE_GETTER(is_good_enough)
IMAGE_GETTER(colour_notes)

void move_imgdl_image_frame_duration_ms(void)
{
    note(F_imgdl_image_frame_duration_ms, (long)imgdl_image_frame_duration_ms(pick(IMAGE), chance(4)));
}

void move_imgdl_image_pixels(void)
{
    imgdl_image *image = hold_image();
    const uint8_t *pixels = imgdl_image_pixels(image);
    imgdl_rectangle ready = imgdl_image_ready(image);
    size_t stride = imgdl_image_stride(image);
    long sum = 0;
    for (uint32_t row = 0; pixels && ready.width && row < ready.height; row += 16)
        sum += pixels[(ready.y + row) * stride];
    note(F_imgdl_image_pixels, sum);
    imgdl_image_release(image);
}

void move_imgdl_image_ready(void)
{
    imgdl_image *image = hold_image();
    imgdl_rectangle ready = imgdl_image_ready(image);
    if (ready.x + ready.width > imgdl_image_width(image) || ready.y + ready.height > imgdl_image_height(image))
        violation("what is ready of an image is larger than the image");
    note(F_imgdl_image_ready, ready.height);
    imgdl_image_release(image);
}

void move_imgdl_image_frame(void)
{
    imgdl_image *frame = NULL;
    if (judge(F_imgdl_image_frame, imgdl_image_frame(pick(IMAGE), chance(3), &frame)) == IMGDL_OK)
        put_or_release(IMAGE, frame);
}

void move_imgdl_image_icc_profile(void)
{
    imgdl_image *image = hold_image();
    size_t length = 0;
    const uint8_t *profile = imgdl_image_icc_profile(image, &length);
    note(F_imgdl_image_icc_profile, profile && length ? profile[length - 1] : -1);
    imgdl_image_release(image);
}

void move_imgdl_image_create(void)
{
    static const uint8_t pixels[64 * 64 * 8];
    imgdl_image *image = NULL;
    uint32_t side = chance(70);
    if (side > 64)
        side = 0;
    if (judge(F_imgdl_image_create, imgdl_image_create(side, side, chance(6), pixels, (size_t)side * 8, &image)) == IMGDL_OK)
        put_or_release(IMAGE, image);
}

MOVE_RETAIN(image, IMAGE)
void move_imgdl_image_release(void) { release_handle(IMAGE, take(IMAGE)); }

void move_imgdl_data_bytes(void)
{
    imgdl_data *data = imgdl_data_retain(pick(DATA));
    const uint8_t *bytes = imgdl_data_bytes(data);
    size_t length = imgdl_data_length(data);
    note(F_imgdl_data_bytes, bytes && length ? bytes[length - 1] : -1);
    imgdl_data_release(data);
}
void move_imgdl_data_length(void) { note(F_imgdl_data_length, (long)imgdl_data_length(pick(DATA))); }
MOVE_RETAIN(data, DATA)
void move_imgdl_data_release(void) { release_handle(DATA, take(DATA)); }

/* ---- Structs: of any size that a caller may have, and not a byte behind it */

#define INITIALIZER(name)                                                                                              \
    void move_imgdl_##name##_init(void)                                                                                \
    {                                                                                                                  \
        union { imgdl_##name value; uint8_t bytes[sizeof(imgdl_##name) + 64]; } all;                                   \
        memset(&all, 0xA5, sizeof all);                                                                                \
        size_t size = chance(sizeof all - 8);                                                                          \
        imgdl_##name##_init(one_in(20) ? NULL : &all.value, size);                                                     \
        for (size_t i = size; i < sizeof all; i++)                                                                     \
            if (all.bytes[i] != 0xA5)                                                                                  \
                violation("imgdl_" #name "_init(%zu) wrote at %zu", size, i);                                          \
        note(F_imgdl_##name##_init, (long)size);                                                                       \
    }
INITIALIZER(decode_options)
INITIALIZER(image_info)
INITIALIZER(request)
INITIALIZER(outgoing)
INITIALIZER(config)
INITIALIZER(result)
INITIALIZER(batch_options)
INITIALIZER(metrics)
INITIALIZER(stats)
INITIALIZER(cache_config)
INITIALIZER(cache_entry)
INITIALIZER(cache_stats)

/* ---- Decoding */

/* Some picture's bytes, often cut; or the toy codec's. */
static const uint8_t *random_bytes(size_t *size)
{
    static const uint8_t toy[40] = {'T', 'O', 'Y', 9};
    if (one_in(6)) {
        *size = chance(sizeof toy);
        return toy;
    }
    const struct picture *picture = &pictures[chance(picture_count)];
    *size = one_in(3) ? chance((uint32_t)picture->size) : picture->size;
    return picture->bytes;
}

void move_imgdl_decode(void)
{
    imgdl_decode_options options = random_decode_options();
    size_t size;
    const uint8_t *bytes = random_bytes(&size);
    imgdl_image *image = NULL;
    /* A whole one in full is worth a hundred other moves. */
    if (size > 100000 && !one_in(4))
        size = 2000;
    judge(F_imgdl_decode, imgdl_decode(bytes, size, one_in(3) ? NULL : &options, &image));
    put_or_release(IMAGE, image);
}

void move_imgdl_decoder_create(void)
{
    imgdl_decode_options options = random_decode_options();
    imgdl_decoder *decoder = NULL;
    if (judge(F_imgdl_decoder_create, imgdl_decoder_create(one_in(3) ? NULL : &options, &decoder)) == IMGDL_OK)
        put_or_release(DECODER, decoder);
}

/* One thread at a time: whoever has it has it alone. */
#define WITH_DECODER(body)                                                                                             \
    {                                                                                                                  \
        imgdl_decoder *decoder = take(DECODER);                                                                        \
        body;                                                                                                          \
        put_or_release(DECODER, decoder);                                                                              \
    }

void move_imgdl_decoder_feed(void)
{
    size_t size;
    const uint8_t *bytes = random_bytes(&size);
    if (size > 20000)
        size = 20000;
    WITH_DECODER(judge(F_imgdl_decoder_feed, imgdl_decoder_feed(decoder, bytes, size)))
}

void move_imgdl_decoder_info(void)
{
    imgdl_image_info info;
    imgdl_image_info_init(&info, sizeof info);
    WITH_DECODER(judge(F_imgdl_decoder_info, imgdl_decoder_info(decoder, &info)))
}

void move_imgdl_decoder_partial(void)
{
    imgdl_image *image = NULL;
    WITH_DECODER(judge(F_imgdl_decoder_partial, imgdl_decoder_partial(decoder, &image)))
    put_or_release(IMAGE, image);
}

void move_imgdl_decoder_finish(void)
{
    imgdl_image *image = NULL;
    WITH_DECODER(judge(F_imgdl_decoder_finish, imgdl_decoder_finish(decoder, &image)))
    put_or_release(IMAGE, image);
}

void move_imgdl_decoder_destroy(void) { release_handle(DECODER, take(DECODER)); }
