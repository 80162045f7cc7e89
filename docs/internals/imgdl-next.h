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

/* ---- Everything of SDWebImage's downloader ---------------------------------------------------------------------- */

/* At the end of imgdl_request: */
struct imgdl_request_next {
    int64_t background_flags;        /* IMGDL_REQUEST_CONTINUE_IN_BACKGROUND … become flags of imgdl_request           */
    uint32_t retry_count;            /* 0: none; transient failures only                                               */
    uint32_t retry_base_ms;          /* exponential backoff with full jitter                                           */
    const char *user, *password;     /* Basic or Digest                                                                */
    const int32_t *accepted_statuses; /* pairs of first and last                                                       */
    size_t accepted_status_count;
    const char *const *accepted_types; /* "image/…", wildcards allowed                                                 */
    size_t accepted_type_count;
    uint32_t connect_timeout_ms, idle_timeout_ms;
    const char *pinned_public_key, *client_certificate, *client_key;
    const struct imgdl_hooks *hooks; /* in place of the downloader's                                                   */
};

/* A hook gets a continuation; it may answer inside the call or later, from any thread, once. Not answering is covered
 * by the request's total timeout. */
typedef struct imgdl_continuation imgdl_continuation;

typedef struct imgdl_hooks {
    uint32_t struct_size;
    uint32_t reserved;
    void (*modify_request)(const imgdl_request *request, imgdl_continuation *next, void *user_data);
    void (*modify_response)(const imgdl_response *response, imgdl_continuation *next, void *user_data);
    void (*transform_body)(imgdl_data *body, imgdl_continuation *next, void *user_data);
    void (*redirect)(const imgdl_response *from, const char *to, imgdl_continuation *next, void *user_data);
    void (*authenticate)(const imgdl_response *challenge, imgdl_continuation *next, void *user_data);
    void *user_data;
    imgdl_destructor destructor;
} imgdl_hooks;

imgdl_status imgdl_continue_unchanged(imgdl_continuation *next);
imgdl_status imgdl_continue_with_request(imgdl_continuation *next, const imgdl_request *request);
imgdl_status imgdl_continue_with_data(imgdl_continuation *next, const void *bytes, size_t length);
imgdl_status imgdl_continue_refused(imgdl_continuation *next, imgdl_status code, const char *message);

/* A host-supplied loader for a scheme, and a host-supplied codec; NULL takes it out again. Wrong tables are refused. */
typedef struct imgdl_transport_table {
    uint32_t struct_size;
    uint32_t reserved;
    void *(*start)(const imgdl_request *request, void *transfer, void *user_data);
    void (*cancel)(void *started, void *user_data);
    void *user_data;
    imgdl_destructor destructor;
} imgdl_transport_table;

imgdl_status imgdl_transport_register(imgdl_downloader *downloader, const char *scheme, const imgdl_transport_table *table);
imgdl_status imgdl_transport_response(void *transfer, const imgdl_response *response);
imgdl_status imgdl_transport_body(void *transfer, const void *bytes, size_t length);
imgdl_status imgdl_transport_end(void *transfer, imgdl_status code, const char *message);

typedef struct imgdl_coder_table {
    uint32_t struct_size;
    uint32_t reserved;
    int32_t (*can_decode)(const void *prefix, size_t length, void *user_data);
    void *(*create)(const imgdl_decode_options *options, void *user_data);
    imgdl_status (*feed)(void *decoder, const void *bytes, size_t length);
    imgdl_status (*info)(void *decoder, imgdl_image_info *info);
    imgdl_status (*partial)(void *decoder, imgdl_image **image);
    imgdl_status (*finish)(void *decoder, imgdl_image **image);
    void (*destroy)(void *decoder);
    void *user_data;
    imgdl_destructor destructor;
} imgdl_coder_table;

imgdl_status imgdl_coder_register(const imgdl_coder_table *table);

/* Observer, counters, metrics of one transfer. */
typedef void (*imgdl_observer)(const imgdl_event *event, const char *url, void *user_data);
imgdl_status imgdl_downloader_set_observer(imgdl_downloader *downloader, imgdl_observer observer, void *user_data,
                                           imgdl_destructor destructor);
typedef struct imgdl_metrics {
    uint32_t struct_size;
    uint32_t flags;
    int64_t queue_ns, resolve_ns, connect_ns, tls_ns, first_byte_ns, transfer_ns, decode_ns;
    int64_t bytes_received, bytes_sent, resumed_bytes;
    uint32_t hops, retries;
    const char *address;
} imgdl_metrics;
imgdl_status imgdl_token_metrics(imgdl_token *token, imgdl_metrics *metrics);
typedef struct imgdl_stats imgdl_stats;
imgdl_status imgdl_downloader_stats(imgdl_downloader *downloader, imgdl_stats *stats);

/* Background (O4), invalidation (M5), batches (F1 to F6). */
imgdl_status imgdl_downloader_enter_background(imgdl_downloader *downloader, uint32_t grace_ms);
imgdl_status imgdl_downloader_enter_foreground(imgdl_downloader *downloader);
imgdl_status imgdl_downloader_invalidate(imgdl_downloader *downloader, int32_t cancels);
typedef struct imgdl_batch imgdl_batch;
imgdl_status imgdl_downloader_prefetch(imgdl_downloader *downloader, const imgdl_request *requests, size_t count,
                                       void (*progress)(size_t finished, size_t skipped, size_t total, void *user_data),
                                       void *user_data, imgdl_batch **batch);
imgdl_status imgdl_batch_cancel(imgdl_batch *batch);
imgdl_status imgdl_batch_set_paused(imgdl_batch *batch, int32_t paused);
void imgdl_batch_release(imgdl_batch *batch);

/* ---- Decoding ---------------------------------------------------------------------------------------------------- */

/* At the end of imgdl_decode_options: */
struct imgdl_decode_options_next {
    uint32_t target_width, target_height; /* 0: as stored; never enlarged                                              */
    uint32_t resize;                      /* fit or stretch                                                            */
    uint32_t max_frames, max_scans, max_side;
    uint64_t max_animation_pixels, max_metadata_bytes, max_memory_bytes;
    uint32_t max_decode_ms;
    uint32_t colour;                      /* as stored, or converted to sRGB                                           */
    void *(*allocate)(uint32_t width, uint32_t height, size_t *stride, void *user_data);
    void (*deallocate)(void *pixels, void *user_data);
    void *allocator_user_data;
};

imgdl_status imgdl_image_frame(imgdl_image *image, uint32_t index, imgdl_image **frame);
uint32_t imgdl_image_frame_duration_ms(const imgdl_image *image, uint32_t index);
uint32_t imgdl_image_loop_count(const imgdl_image *image);
const void *imgdl_image_icc_profile(const imgdl_image *image, size_t *length);

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
