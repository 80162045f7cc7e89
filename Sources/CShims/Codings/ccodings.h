/* The libraries that undo content codings, for Swift: what they spell as macros has a function here. */
#ifndef CCODINGS_H
#define CCODINGS_H

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* `window_bits`: 15 for zlib's format, 15 + 16 for gzip's, -15 for bare deflate. */
static inline int ccodings_inflate_init(z_stream *stream, int window_bits) { return inflateInit2(stream, window_bits); }

#endif
