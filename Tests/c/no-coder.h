/* What a codec has besides can_decode that decodes nothing. */
#ifndef NO_CODER_H
#define NO_CODER_H

#include "imgdl.h"

static inline void *create_no_decoder(const imgdl_decode_options *options, void *user_data)
{
    (void)options, (void)user_data;
    return NULL;
}
static inline imgdl_status feed_no_decoder(void *decoder, const void *bytes, size_t length)
{
    (void)decoder, (void)bytes, (void)length;
    return IMGDL_ERROR_BAD_IMAGE_DATA;
}
static inline imgdl_status tell_no_info(void *decoder, imgdl_image_info *info)
{
    (void)decoder, (void)info;
    return IMGDL_ERROR_BAD_IMAGE_DATA;
}
static inline imgdl_status finish_no_decoder(void *decoder, imgdl_image **image)
{
    (void)decoder, (void)image;
    return IMGDL_ERROR_BAD_IMAGE_DATA;
}
static inline void destroy_no_decoder(void *decoder) { (void)decoder; }

#endif
