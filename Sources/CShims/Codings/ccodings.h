/* The libraries that undo content codings, for Swift: what they spell as macros has a function here. */
#ifndef CCODINGS_H
#define CCODINGS_H

#include <brotli/decode.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* `window_bits`: 15 for zlib's format, 15 + 16 for gzip's, -15 for bare deflate. */
static inline int ccodings_inflate_init(z_stream *stream, int window_bits) { return inflateInit2(stream, window_bits); }

/* libbrotlidec does not say how much it holds: its memory is counted in `held`, behind a head of this many bytes. */
enum { ccodings_head = 16 };

static inline void *ccodings_take(void *held, size_t size)
{
    size_t *memory = size > SIZE_MAX - ccodings_head ? NULL : (size_t *)malloc(size + ccodings_head);
    if (!memory)
        return NULL;
    *memory = size;
    *(size_t *)held += size;
    return (char *)memory + ccodings_head;
}

static inline void ccodings_give_back(void *held, void *memory)
{
    if (!memory)
        return;
    size_t *head = (size_t *)(void *)((char *)memory - ccodings_head);
    *(size_t *)held -= *head;
    free(head);
}

/* `held`: bytes, 0 at first; it lives as long as the decoder. */
static inline BrotliDecoderState *ccodings_brotli_create(size_t *held)
{
    return BrotliDecoderCreateInstance(ccodings_take, ccodings_give_back, held);
}

#endif
