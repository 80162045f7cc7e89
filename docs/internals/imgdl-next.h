/*
 * imgdl-next.h: what the header will add, drafted together with the first release.
 *
 * Not installed and not part of the interface. It was written, and read as a manual for C, ctypes and Rust, before the
 * first release, so that nothing delivered has to move for it; each part goes into imgdl.h with the work that delivers
 * it, and leaves this file. New fields of existing structs come at their ends, in the order given here.
 */
#ifndef IMGDL_NEXT_H
#define IMGDL_NEXT_H

#include "../../include/imgdl.h"

/* ---- The HTTP cache ---------------------------------------------------------------------------------------------- */

typedef struct imgdl_cache imgdl_cache;
typedef struct imgdl_cache_config {
    uint32_t struct_size;
    uint32_t flags;
    const char *directory;
    uint64_t max_bytes, max_memory_bytes, max_image_bytes;
    int64_t max_age_s;
} imgdl_cache_config;

/* At the end of imgdl_config: imgdl_cache *cache. At the end of imgdl_request: uint32_t cache_mode. */
enum { IMGDL_CACHE_OFF, IMGDL_CACHE_USE, IMGDL_CACHE_RELOAD, IMGDL_CACHE_ONLY, IMGDL_CACHE_REFRESH };

imgdl_status imgdl_cache_open(const imgdl_cache_config *config, imgdl_cache **cache);
imgdl_status imgdl_cache_remove(imgdl_cache *cache, const char *url);
imgdl_status imgdl_cache_remove_older(imgdl_cache *cache, int64_t age_s);
imgdl_status imgdl_cache_clear(imgdl_cache *cache);
imgdl_status imgdl_cache_stats(imgdl_cache *cache, uint64_t *entries, uint64_t *bytes, uint64_t *hits, uint64_t *misses);
void imgdl_cache_release(imgdl_cache *cache);

#endif
