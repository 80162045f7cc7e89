/* What the library is given to call. */
#ifndef CALLS_H
#define CALLS_H

#include "player.h"

/* In a ward's mask: its request names the inline executor. */
enum { INLINE_REQUEST = 1 << 16 };

/* Its callbacks run on that executor, whose model it has; or, where it is NULL, where the downloader has them. */
void runs_at(struct ward *ward, imgdl_executor *executor, imgdl_downloader *downloader);
void on_event(const imgdl_event *event, void *ward);
void on_observation(const imgdl_observation *observation, void *ward);
imgdl_hooks_table random_hooks(struct ward *ward);
imgdl_transport_table random_transport(struct ward *ward);
imgdl_coder_table random_coder(struct ward *ward);
extern int allocator_tag; /* their user_data */
void *allocate(uint32_t width, uint32_t height, uint32_t bytes_per_pixel, size_t *stride, void *user_data);
void deallocate(void *pixels, void *user_data);

#endif
