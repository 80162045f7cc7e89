/* Decoding a picture in pieces, and what was seen. */
#include "pieces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKS_KEPT = 8 };

/* A partial image, as it was when it was given. */
struct look {
    imgdl_rectangle ready;
    uint32_t decoded;
    uint64_t pixels[FRAMES_KEPT];
};

static unsigned bytes_per_pixel(const imgdl_image *image)
{
    switch (imgdl_image_pixel_format(image)) {
    case IMGDL_PIXEL_FORMAT_RGB8: return 3;
    case IMGDL_PIXEL_FORMAT_RGBA16: return 8;
    default: return 4;
    }
}

/* Whether something is seen through a pixel. */
static int is_transparent(const imgdl_image *image)
{
    unsigned pixel = bytes_per_pixel(image);
    const uint8_t *row = imgdl_image_pixels(image);
    for (uint32_t y = 0; pixel != 3 && y < imgdl_image_height(image); y++, row += imgdl_image_stride(image))
        for (size_t end = pixel; end <= (size_t)imgdl_image_width(image) * pixel; end += pixel)
            if (row[end - 1] != 255 || (pixel == 8 && row[end - 2] != 255))
                return 1;
    return 0;
}

/* A sum of the pixels in a part, which lies within the image. */
static uint64_t sum(const imgdl_image *image, imgdl_rectangle part)
{
    unsigned pixel = bytes_per_pixel(image);
    size_t stride = imgdl_image_stride(image), length = (size_t)part.width * pixel;
    const uint8_t *row = (const uint8_t *)imgdl_image_pixels(image) + part.y * stride + (size_t)part.x * pixel;
    uint64_t sum = 0xCBF29CE484222325u;
    for (uint32_t y = 0; y < part.height; y++, row += stride) {
        size_t at = 0;
        for (uint64_t word; at + 8 <= length; at += 8) {
            memcpy(&word, row + at, 8);
            sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
            sum ^= sum >> 32;
        }
        for (; at < length; at++)
            sum = (sum ^ row[at]) * 0x100000001B3u;
    }
    return sum;
}

/* Of frame 0 the part that may be read; of the others all. */
static uint32_t sum_frames(const imgdl_image *image, imgdl_rectangle ready, uint64_t *pixels, uint32_t *milliseconds)
{
    uint32_t count = imgdl_image_frame_count(image), decoded = 0;
    for (; decoded < (count > 0 ? count : 1) && decoded < FRAMES_KEPT; decoded++) {
        imgdl_image *frame = NULL;
        if (imgdl_image_frame(image, decoded, &frame) != IMGDL_OK)
            break;
        imgdl_rectangle all = {0, 0, imgdl_image_width(frame), imgdl_image_height(frame)};
        pixels[decoded] = sum(frame, decoded == 0 ? ready : all);
        if (milliseconds)
            milliseconds[decoded] = imgdl_image_frame_duration_ms(image, decoded);
        imgdl_image_release(frame);
    }
    return decoded;
}

/* The first ones, and one in between now and then. */
static void keep_look(const imgdl_image *image, struct look *looks, unsigned *count)
{
    unsigned at = (*count)++;
    if (at >= LOOKS_KEPT && (at = chance(*count)) >= LOOKS_KEPT)
        return;
    looks[at].ready = imgdl_image_ready(image);
    looks[at].decoded = sum_frames(image, looks[at].ready, looks[at].pixels, NULL);
}

/* Rows of a picture that comes in one pass are final, and so is every frame behind the first. */
static void check_looks(
    const imgdl_image *image, const struct look *looks, unsigned count, int rows_are_final, const struct outcome *end,
    char words[MESSAGE])
{
    if (count > 0 && !image) {
        snprintf(words, MESSAGE, "%u partial images were given, and nothing is left of them", count);
        return;
    }
    for (unsigned i = 0; i < count && i < LOOKS_KEPT; i++) {
        const struct look *look = &looks[i];
        if (look->decoded > end->decoded) {
            snprintf(words, MESSAGE, "%u frames were given, and %u are left", look->decoded, end->decoded);
            return;
        }
        for (uint32_t frame = 1; frame < look->decoded; frame++)
            if (look->pixels[frame] != end->pixels[frame])
                snprintf(words, MESSAGE, "frame %u was given with other pixels", frame);
        imgdl_rectangle part = look->ready, left = end->ready;
        if (!rows_are_final)
            continue;
        if (part.x < left.x || part.y < left.y || part.x + part.width > left.x + left.width ||
            part.y + part.height > left.y + left.height)
            snprintf(words, MESSAGE, "%u x %u pixels were given, and %u x %u are left", part.width, part.height, left.width,
                     left.height);
        else if (sum(image, part) != look->pixels[0])
            snprintf(words, MESSAGE, "%u x %u pixels were given that are others now", part.width, part.height);
    }
}

static struct outcome seen(imgdl_status status, const imgdl_image *image)
{
    struct outcome outcome = {.status = status, .alpha = UNKNOWN};
    if (status != IMGDL_OK)
        snprintf(outcome.message, MESSAGE, "%s", imgdl_last_error());
    if (!image)
        return outcome;
    outcome.has_image = 1;
    outcome.is_complete = imgdl_image_is_complete(image);
    outcome.width = imgdl_image_width(image);
    outcome.height = imgdl_image_height(image);
    outcome.orientation = imgdl_image_orientation(image);
    outcome.frame_count = imgdl_image_frame_count(image);
    outcome.loop_count = imgdl_image_loop_count(image);
    outcome.pass = imgdl_image_pass(image);
    outcome.notes = imgdl_image_notes(image);
    outcome.colour_notes = imgdl_image_colour_notes(image);
    outcome.ready = imgdl_image_ready(image);
    outcome.decoded = sum_frames(image, outcome.ready, outcome.pixels, outcome.milliseconds);
    return outcome;
}

/* In memory of its own, so that one byte behind it is one too many for a sanitizer. */
static imgdl_status feed(imgdl_decoder *decoder, const uint8_t *bytes, size_t length)
{
    uint8_t *piece = malloc(length);
    if (!piece)
        abort();
    memcpy(piece, bytes, length);
    imgdl_status status = imgdl_decoder_feed(decoder, piece, length);
    free(piece);
    return status;
}

struct outcome decode(struct bytes picture, const imgdl_decode_options *options, struct cut cut, char words[MESSAGE])
{
    words[0] = '\0';
    imgdl_image *image = NULL;
    if (cut.most == 0) {
        imgdl_status status = imgdl_decode(picture.start, picture.size, options, &image);
        struct outcome outcome = seen(status, image);
        imgdl_image_release(image);
        return outcome;
    }
    imgdl_decoder *decoder = NULL;
    if (imgdl_decoder_create(options, &decoder) != IMGDL_OK)
        abort();
    struct look looks[LOOKS_KEPT];
    unsigned count = 0;
    imgdl_image_info info;
    imgdl_image_info_init(&info, sizeof info);
    imgdl_status fed = IMGDL_OK;
    for (size_t at = 0, length; at < picture.size && fed == IMGDL_OK; at += length) {
        length = cut.least + (cut.most > cut.least ? chance((uint32_t)(cut.most - cut.least)) : 0);
        if (length > picture.size - at)
            length = picture.size - at;
        fed = feed(decoder, picture.start + at, length);
        imgdl_image *partial = NULL;
        if (cut.looks > 0 && chance(cut.looks) == 0 && imgdl_decoder_partial(decoder, &partial) == IMGDL_OK) {
            /* A thumbnail is not the picture. */
            if (imgdl_image_pass(partial) > 0)
                keep_look(partial, looks, &count);
            imgdl_image_release(partial);
        }
    }
    int knows = imgdl_decoder_info(decoder, &info) == IMGDL_OK;
    imgdl_status status = imgdl_decoder_finish(decoder, &image);
    struct outcome outcome = seen(status, image);
    if (outcome.is_complete && imgdl_decoder_info(decoder, &info) == IMGDL_OK)
        outcome.alpha = info.has_alpha;
    if (fed != IMGDL_OK && fed != status)
        snprintf(words, MESSAGE, "feed said %s, finish %s", imgdl_error_name(fed), imgdl_error_name(status));
    else if (outcome.is_complete && outcome.alpha == UNKNOWN)
        snprintf(words, MESSAGE, "the picture is whole, and its header is not told");
    /* Of others it may be that the file has alpha. */
    else if (outcome.is_complete && outcome.frame_count == 1 && imgdl_image_pixel_format(image) != IMGDL_PIXEL_FORMAT_RGB8 &&
             outcome.alpha != is_transparent(image))
        snprintf(words, MESSAGE, "has_alpha is %d, and the pixels say otherwise", outcome.alpha);
    else
        check_looks(image, looks, count, knows && !info.is_progressive, &outcome, words);
    imgdl_image_release(image);
    imgdl_decoder_destroy(decoder);
    return outcome;
}

const char *difference(const struct outcome *one, const struct outcome *other)
{
    if (one->status != other->status)
        return "the code";
    if (strcmp(one->message, other->message) != 0)
        return "the words";
    if (one->has_image != other->has_image)
        return "whether there are pixels";
    if (!one->has_image)
        return NULL;
    if (one->is_complete != other->is_complete || one->width != other->width || one->height != other->height ||
        one->orientation != other->orientation)
        return "what the picture is";
    if (one->frame_count != other->frame_count || one->loop_count != other->loop_count)
        return "what the animation is";
    if (one->notes != other->notes)
        return "what is said of the file";
    if (one->colour_notes != other->colour_notes)
        return "what is said of its colours";
    if (one->alpha != UNKNOWN && other->alpha != UNKNOWN && one->alpha != other->alpha)
        return "whether something is seen through it";
    if (one->pass != other->pass || memcmp(&one->ready, &other->ready, sizeof one->ready) != 0)
        return "which part holds pixels";
    if (one->decoded != other->decoded)
        return "how many frames were decoded";
    for (uint32_t i = 0; i < one->decoded; i++) {
        if (one->pixels[i] != other->pixels[i])
            return i == 0 ? "the pixels" : "the pixels of a later frame";
        if (one->milliseconds[i] != other->milliseconds[i])
            return "how long a frame is shown";
    }
    return NULL;
}
