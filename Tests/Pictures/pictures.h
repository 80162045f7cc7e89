/* What the encoders share. */
#ifndef PICTURES_H
#define PICTURES_H

#include "test_pictures.h"

uint8_t *picture_encode_jpeg(const struct picture_spec *spec, size_t *size);
uint8_t *picture_encode_png(const struct picture_spec *spec, size_t *size);
uint8_t *picture_encode_webp(const struct picture_spec *spec, size_t *size);

/* What the picture shows, as picture_draw gives it. */
uint8_t *picture_pixels(const struct picture_spec *spec, int32_t has_alpha);

/* Memory that grows; ends the process when there is none. */
struct picture_bytes {
    uint8_t *bytes;
    size_t size, capacity;
};
void picture_append(struct picture_bytes *to, const void *bytes, size_t size);

#endif
