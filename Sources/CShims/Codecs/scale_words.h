/* The scaler of pictures whose channels have 16 bits: what codec_scaler does for them. */
#ifndef SCALE_WORDS_H
#define SCALE_WORDS_H

#include "ccodecs.h"

struct word_scaler;

/* NULL: no memory. The sizes have been checked. Takes 48 bytes for each column of the input. */
struct word_scaler *word_scaler_create(const codec_scaling *scaling);
void word_scaler_destroy(struct word_scaler *scaler);
void word_scaler_begin(struct word_scaler *scaler, codec_placement placement);
void word_scaler_push(struct word_scaler *scaler, const uint8_t *row);
size_t word_scaler_rows(const struct word_scaler *scaler);

#endif
