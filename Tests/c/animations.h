/* Small animations that no encoder of Tests/Pictures writes, for tests and for the player. */
#ifndef ANIMATIONS_H
#define ANIMATIONS_H

#include <stddef.h>
#include <stdint.h>

enum { ANIMATION_WIDTH = 64, ANIMATION_HEIGHT = 48, ANIMATION_FRAMES = 4 };

/* A GIF: frames that lie on the canvas in part, that are disposed of in each way, the last one interlaced. Free it. */
uint8_t *animated_gif(size_t *size);
/* An APNG of colours with alpha: frames that are blended and disposed of in each way. Free it. */
uint8_t *animated_png(size_t *size);

#endif
