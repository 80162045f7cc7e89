/* What the library is given to call while it decodes: a codec, and allocators. */
#include "calls.h"

#include <string.h>

/* ---- A codec of pictures that begin with TOY, and a byte for the side */

struct toy {
    struct ward *ward;
    uint8_t side;
    size_t size;
};

static int32_t toy_can_decode(const void *prefix, size_t length, void *ward)
{
    enter_ward(ward, 1);
    play_inside(CODEC);
    leave_ward(ward);
    return length < 4 ? -1 : !memcmp(prefix, "TOY", 3);
}

static void *toy_create(const imgdl_decode_options *options, void *ward)
{
    (void)options;
    struct toy *toy = NULL;
    enter_ward(ward, 1);
    if (!one_in(20)) {
        toy = calloc(1, sizeof *toy);
        toy->ward = ward;
    }
    play_inside(CODEC);
    leave_ward(ward);
    return toy;
}

static imgdl_status toy_feed(void *decoder, const void *bytes, size_t length)
{
    struct toy *toy = decoder;
    enter_ward(toy->ward, 1);
    if (toy->size < 4 && toy->size + length >= 4)
        toy->side = ((const uint8_t *)bytes)[3 - toy->size];
    toy->size += length;
    play_inside(CODEC);
    leave_ward(toy->ward);
    return one_in(30) ? IMGDL_ERROR_BAD_IMAGE_DATA : IMGDL_OK;
}

static imgdl_status toy_info(void *decoder, imgdl_image_info *info)
{
    const struct toy *toy = decoder;
    imgdl_status status = IMGDL_ERROR_NOT_READY;
    enter_ward(toy->ward, 1);
    if (toy->size >= 4) {
        info->width = info->height = 1u + toy->side;
        info->frame_count = 1;
        status = IMGDL_OK;
    }
    play_inside(CODEC);
    leave_ward(toy->ward);
    return status;
}

static imgdl_status toy_image(const struct toy *toy, imgdl_image **image)
{
    if (toy->size < 4)
        return IMGDL_ERROR_TRUNCATED;
    uint32_t side = 1u + toy->side;
    uint8_t *pixels = calloc((size_t)side * side, 4);
    imgdl_status status = imgdl_image_create(side, side, IMGDL_PIXEL_FORMAT_RGBA8, pixels, (size_t)side * 4, image);
    free(pixels);
    return judge(F_imgdl_image_create, status);
}

static imgdl_status toy_partial(void *decoder, imgdl_image **image)
{
    const struct toy *toy = decoder;
    enter_ward(toy->ward, 1);
    imgdl_status status = toy->size < 4 || !one_in(4) ? IMGDL_ERROR_NOT_READY : toy_image(toy, image);
    play_inside(CODEC);
    leave_ward(toy->ward);
    return status;
}

static imgdl_status toy_finish(void *decoder, imgdl_image **image)
{
    const struct toy *toy = decoder;
    enter_ward(toy->ward, 1);
    imgdl_status status = toy_image(toy, image);
    play_inside(CODEC);
    leave_ward(toy->ward);
    return status;
}

static void toy_destroy(void *decoder)
{
    struct toy *toy = decoder;
    enter_ward(toy->ward, 1);
    play_inside(CODEC);
    leave_ward(toy->ward);
    free(toy);
}

imgdl_coder_table random_coder(struct ward *ward)
{
    return (imgdl_coder_table){
        .struct_size = sizeof(imgdl_coder_table), .can_decode = toy_can_decode, .create = toy_create, .feed = toy_feed,
        .info = toy_info, .partial = toy_partial, .finish = toy_finish, .destroy = toy_destroy, .user_data = ward,
        .destructor = ward_destroyed};
}

/* ---- Allocators */

static atomic_long canvases;
int allocator_tag;

void *allocate(uint32_t width, uint32_t height, uint32_t bytes_per_pixel, size_t *stride, void *user_data)
{
    if (user_data != &allocator_tag)
        violation("an allocator without its user_data");
    if (one_in(40))
        return NULL;
    *stride = (size_t)width * bytes_per_pixel + chance(3) * 16;
    void *memory = malloc(*stride * height);
    if (memory)
        atomic_fetch_add(&canvases, 1);
    play_inside(CODEC);
    return memory;
}

void deallocate(void *pixels, void *user_data)
{
    (void)user_data;
    free(pixels);
    play_inside(DESTRUCTOR);
    atomic_fetch_sub(&canvases, 1);
    ring();
}

int are_canvases_back(void) { return !atomic_load(&canvases); }
