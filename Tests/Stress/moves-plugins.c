/* Moves of sections 9, 14 and 15: hooks, codecs, schemes, the cache. */
#include "moves.h"

#include <stdio.h>
#include <string.h>

/* ---- Hooks */

void move_imgdl_hooks_create(void)
{
    struct ward *ward = new_ward(HOOKS);
    imgdl_hooks_table table = random_hooks(ward);
    imgdl_hooks *hooks = NULL;
    imgdl_status status = judge(F_imgdl_hooks_create, imgdl_hooks_create(&table, &hooks));
    accept_ward(ward, status);
    put_or_release(HOOK_TABLE, hooks);
}
MOVE_RETAIN(hooks, HOOK_TABLE)
void move_imgdl_hooks_release(void) { release_handle(HOOK_TABLE, take(HOOK_TABLE)); }

void move_imgdl_continue_unchanged(void)
{
    imgdl_continuation *next = take(CONTINUATION);
    judge(F_imgdl_continue_unchanged, imgdl_continue_unchanged(next));
    if (judge(F_imgdl_continue_unchanged, imgdl_continue_unchanged(next)) == IMGDL_OK)
        violation("a continuation has been answered twice");
}
#define ANSWER(name)                                                                                                   \
    void move_imgdl_continue_##name(void) { answer_continuation_by(F_imgdl_continue_##name, take(CONTINUATION)); }
ANSWER(with_request)
ANSWER(with_response)
ANSWER(with_data)
ANSWER(with_credentials)
ANSWER(refused)

/* ---- Codecs */

void move_imgdl_coder_register(void)
{
    struct ward *ward = new_ward(CODER);
    imgdl_coder_table table = random_coder(ward);
    imgdl_coder *coder = NULL;
    accept_ward(ward, judge(F_imgdl_coder_register, imgdl_coder_register(&table, &coder)));
    put_or_release(A_CODER, coder);
}
void move_imgdl_coder_release(void) { release_handle(A_CODER, take(A_CODER)); }

/* ---- Schemes */

void move_imgdl_transport_register(void)
{
    static const char *const schemes[] = {"app", "APP", "http", "no scheme", NULL};
    const char *scheme = schemes[one_in(6) ? chance(5) : 0];
    imgdl_downloader *downloader = pick(DOWNLOADER);
    if (one_in(4)) {
        judge(F_imgdl_transport_register, imgdl_transport_register(downloader, scheme, NULL));
        return;
    }
    struct ward *ward = new_ward(TRANSPORT);
    imgdl_transport_table table = random_transport(ward);
    accept_ward(ward, judge(F_imgdl_transport_register, imgdl_transport_register(downloader, scheme, &table)));
}

void move_imgdl_transfer_response(void)
{
    imgdl_transfer *transfer = take(TRANSFER);
    if (transfer)
        report_transfer(transfer);
    else
        judge(F_imgdl_transfer_response, imgdl_transfer_response(NULL, 200, NULL, 0));
}
void move_imgdl_transfer_body(void)
{
    imgdl_transfer *transfer = take(TRANSFER);
    if (transfer)
        report_transfer(transfer);
    else
        judge(F_imgdl_transfer_body, imgdl_transfer_body(NULL, "x", 1));
}
void move_imgdl_transfer_end(void)
{
    imgdl_transfer *transfer = take(TRANSFER);
    judge(F_imgdl_transfer_end, imgdl_transfer_end(transfer, one_in(2) ? IMGDL_ERROR_TRUNCATED : 77, NULL));
    release_handle(TRANSFER, transfer);
}
void move_imgdl_transfer_release(void) { release_handle(TRANSFER, take(TRANSFER)); }

/* ---- The cache */

static void on_cache_event(const imgdl_cache_event *event, void *user_data)
{
    struct ward *ward = user_data;
    enter_ward(ward, 1);
    note(F_imgdl_cache_open, (long)event->kind);
    void *outer = cache_of_event;
    cache_of_event = atomic_load(&ward->handle);
    enum place before = enter(CACHE_EVENT);
    play_missing();
    leave(before);
    play_inside(CACHE_EVENT);
    cache_of_event = outer;
    leave_ward(ward);
}

void move_imgdl_cache_open(void)
{
    char folder[512];
    imgdl_cache_config config;
    imgdl_cache_config_init(&config, sizeof config);
    snprintf(folder, sizeof folder, "%s/cache%u", scratch_folder, chance(2));
    if (one_in(2))
        config.directory = folder;
    config.max_bytes = 100000 + chance(4000000);
    config.max_memory_bytes = chance(2000000);
    config.max_image_bytes = chance(2) * 4000000;
    config.max_partial_bytes = chance(2) * 500000;
    config.max_age_s = (int64_t)chance(4) - (one_in(10) ? 1 : 0);
    struct ward *ward = new_ward(CACHE);
    config.callback = on_cache_event;
    config.destructor = ward_destroyed;
    config.user_data = ward;
    imgdl_cache *cache = NULL;
    imgdl_status status = judge(F_imgdl_cache_open, imgdl_cache_open(&config, &cache));
    atomic_store(&ward->handle, cache);
    accept_ward(ward, status);
    put_or_release(A_CACHE, cache);
}

MOVE_RETAIN(cache, A_CACHE)
void move_imgdl_cache_release(void) { release_handle(A_CACHE, take(A_CACHE)); }

static const char *stored_url(char url[256])
{
    snprintf(url, 256, "%s/pictures/%s?_=%u&header=Cache-Control:max-age=60", origin,
             pictures[chance(picture_count)].name, chance(12));
    return url;
}

void move_imgdl_cache_query(void)
{
    char url[256];
    imgdl_cache_entry entry;
    imgdl_cache_entry_init(&entry, sizeof entry);
    judge(F_imgdl_cache_query, imgdl_cache_query(pick(A_CACHE), stored_url(url), &entry));
}
void move_imgdl_cache_remove(void)
{
    char url[256];
    judge(F_imgdl_cache_remove, imgdl_cache_remove(pick(A_CACHE), stored_url(url)));
}
void move_imgdl_cache_remove_older(void)
{
    judge(F_imgdl_cache_remove_older, imgdl_cache_remove_older(pick(A_CACHE), (int64_t)chance(4) - 1));
}
void move_imgdl_cache_clear(void) { judge(F_imgdl_cache_clear, imgdl_cache_clear(pick(A_CACHE))); }
void move_imgdl_cache_flush(void) { judge(F_imgdl_cache_flush, imgdl_cache_flush(pick(A_CACHE))); }
void move_imgdl_cache_statistics(void)
{
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    judge(F_imgdl_cache_statistics, imgdl_cache_statistics(pick(A_CACHE), &stats));
}
