/*
 * imgdl-next.h: what the header will add: the HTTP cache, its section 15. Not installed. Each part goes into imgdl.h with
 * the work that delivers it, and leaves this file.
 */
#ifndef IMGDL_NEXT_H
#define IMGDL_NEXT_H

#include "../../include/imgdl.h"

/* Error code, with those of the network: IMGDL_ERROR_NOT_CACHED = 2216: IMGDL_CACHE_ONLY, and nothing that is stored fits. */
/* Request flag: IMGDL_REQUEST_IGNORE_CACHED = 1u << 10: tell me only if it has changed: what comes from the cache, or has
 * the bytes that were stored when the request began, is NOT_MODIFIED. Needs a cache mode (features O3). */
/* Config flag: IMGDL_CONFIG_FINISH_NEARLY_DONE = 1u << 3: a transfer whose last request is cancelled goes on into the cache
 * when the rest would take less time than the server took to answer (features R33, I31). */
/* At the end of imgdl_config:  imgdl_cache *cache (NULL: none; may be shared by several); imgdl_cache_mode cache_mode, of
 * requests that say DEFAULT (0 there is OFF); uint32_t reserved2.
 * At the end of imgdl_request: imgdl_cache_mode cache_mode; uint32_t reserved2.
 * At the end of imgdl_response: imgdl_cache_outcome cache_outcome; uint32_t reserved. */

typedef struct imgdl_cache imgdl_cache;

/* How a request uses the cache. Without a cache all but OFF and ONLY go to the network as ever, and ONLY is NOT_CACHED. */
typedef uint32_t imgdl_cache_mode;
enum {
    IMGDL_CACHE_DEFAULT = 0, /* as the downloader's config says                                                       */
    IMGDL_CACHE_OFF = 1,     /* neither read nor written                                                              */
    IMGDL_CACHE_USE = 2,     /* as RFC 9111 says: fresh ones are answered without the network, stale ones validated   */
    IMGDL_CACHE_RELOAD = 3,  /* from the server, whatever is stored; the answer is stored                             */
    IMGDL_CACHE_ONLY = 4,    /* what is stored, however old; else NOT_CACHED. Nothing is sent                         */
    IMGDL_CACHE_REFRESH = 5  /* validated with the server even where it is fresh                                      */
};

/* Where a response is from. */
typedef uint32_t imgdl_cache_outcome;
enum {
    IMGDL_CACHE_OUTCOME_NETWORK = 0,   /* from the server                                                             */
    IMGDL_CACHE_OUTCOME_HIT = 1,       /* stored, and fresh                                                           */
    IMGDL_CACHE_OUTCOME_VALIDATED = 2, /* stored; the server said that it is still good                               */
    IMGDL_CACHE_OUTCOME_STALE = 3,     /* stored, and stale: allowed by max-stale, stale-while-revalidate,            */
                                       /* stale-if-error or IMGDL_CACHE_ONLY                                          */
    IMGDL_CACHE_OUTCOME_RESUMED = 4    /* its beginning was kept of a transfer that had broken off                    */
};

/* Something the host may want to know of its cache. The library goes on. */
enum {
    IMGDL_CACHE_MOVED_ASIDE = 1, /* the index was corrupt, foreign or newer: it was renamed, and begun anew           */
    IMGDL_CACHE_UNWRITABLE = 2,  /* the disk is full, read-only or broken: nothing is stored until it works again     */
    IMGDL_CACHE_WRITABLE = 3     /* it works again                                                                    */
};

typedef struct imgdl_cache_event {
    uint32_t struct_size;
    uint32_t kind;
    const char *message; /* names the file and the cause */
} imgdl_cache_event;     /* end of 1.1 */

typedef struct imgdl_cache_config {
    uint32_t struct_size;
    uint32_t reserved;
    const char *directory;     /* made when it is not there, for this user alone; any number of processes may use one.
                                  NULL: in memory alone                                                              */
    uint64_t max_bytes;        /* of bodies on disk; 0 is IMGDL_DEFAULT_CACHE_BYTES (256 MiB)                         */
    uint64_t max_memory_bytes; /* of bodies kept in memory, as received; 0: none (without directory:
                                  IMGDL_DEFAULT_CACHE_MEMORY_BYTES, 32 MiB)                                          */
    uint64_t max_image_bytes;  /* of decoded images; 0: none                                                          */
    uint64_t max_partial_bytes; /* of bodies that broke off, kept to be resumed, within max_bytes; 0 is an eighth of it */
    int64_t max_age_s;         /* what has not been used or validated for so long is removed; 0: never for its age    */
    void (*callback)(const imgdl_cache_event *event, void *user_data); /* on a thread of the cache; may be NULL       */
    void *user_data;
    imgdl_destructor destructor; /* of user_data, when nothing is called any more; may be NULL                        */
} imgdl_cache_config;            /* end of 1.1 */

void imgdl_cache_config_init(imgdl_cache_config *config, size_t struct_size);

/* Opens or makes a cache. Never waits for another process for long; a directory that cannot be used is no error but an
 * UNWRITABLE event, and a cache in memory. Gives: *cache, one reference. Returns: IMGDL_OK, INVALID_ARGUMENT,
 * UNSUPPORTED_OPTION, OUT_OF_MEMORY (threads, descriptors). */
imgdl_status imgdl_cache_open(const imgdl_cache_config *config, imgdl_cache **cache);
imgdl_cache *imgdl_cache_retain(imgdl_cache *cache);
/* Gives a reference back; downloaders hold their own. The last one writes what is left and closes, waiting for that unless
 * it is given back inside a callback. */
void imgdl_cache_release(imgdl_cache *cache);

/* What is stored for a URL. */
typedef struct imgdl_cache_entry {
    uint32_t struct_size;
    int32_t status;              /* such as 200                                                                       */
    int64_t body_bytes;          /* stored, Content-Encoding undone                                                   */
    int64_t stored_s, used_s;    /* seconds since 1970                                                                */
    int64_t fresh_s;             /* fresh for so many more seconds; negative: stale for so many                       */
    int32_t is_complete;         /* 0: the beginning of a transfer that broke off                                     */
    uint32_t reserved;
} imgdl_cache_entry;             /* end of 1.1 */

void imgdl_cache_entry_init(imgdl_cache_entry *entry, size_t struct_size);

/* The functions below wait for the disk, never for the network. Inside the cache's own callback: WOULD_DEADLOCK. */

/* The newest that is stored for url, whatever Vary says. Returns: IMGDL_OK, NOT_CACHED, INVALID_URL, INVALID_ARGUMENT, …. */
imgdl_status imgdl_cache_query(imgdl_cache *cache, const char *url, imgdl_cache_entry *entry);
/* Everything stored for url; nothing stored is no error. */
imgdl_status imgdl_cache_remove(imgdl_cache *cache, const char *url);
/* What has not been used or validated for age_s seconds. */
imgdl_status imgdl_cache_remove_older(imgdl_cache *cache, int64_t age_s);
imgdl_status imgdl_cache_clear(imgdl_cache *cache);
/* Writes what has been stored so far to the disk for good: a power cut loses none of it. */
imgdl_status imgdl_cache_flush(imgdl_cache *cache);

typedef struct imgdl_cache_stats {
    uint32_t struct_size;
    uint32_t is_writable;
    uint64_t entries, bytes;               /* on disk, those of all processes                                         */
    uint64_t partial_entries, partial_bytes;
    uint64_t memory_entries, memory_bytes;
    uint64_t image_entries, image_bytes;
    uint64_t hits, memory_hits, image_hits; /* since it was opened, by this process: each answered by one of these    */
    uint64_t validated, stale, misses, resumed;
    uint64_t stored, evicted, damaged;     /* damaged: checksum or length wrong, or file gone: removed                */
} imgdl_cache_stats;                       /* end of 1.1 */

void imgdl_cache_stats_init(imgdl_cache_stats *stats, size_t struct_size);
imgdl_status imgdl_cache_statistics(imgdl_cache *cache, imgdl_cache_stats *stats);

#endif
