/* Moves of sections 6 to 13: executors, downloaders, downloads, batches, observing. */
#include "moves.h"

#include <string.h>

/* ---- Executors */

void move_imgdl_executor_create_pumped(void) { new_executor(); }
void move_imgdl_executor_fd(void) { note(F_imgdl_executor_fd, imgdl_executor_fd(pick(EXECUTOR))); }

void move_imgdl_executor_dispatch(void)
{
    if (dispatching && one_in(2)) {
        /* Inside a callback of its own. */
        uint32_t ran = 7;
        imgdl_status status = judge(F_imgdl_executor_dispatch, imgdl_executor_dispatch(dispatching->handle, 1, &ran));
        if (status != IMGDL_ERROR_WOULD_DEADLOCK && status != IMGDL_ERROR_INVALID_HANDLE)
            violation("a dispatch inside a callback of the same executor gave %d", status);
        return;
    }
    imgdl_executor *executor = pick(EXECUTOR);
    struct executor_model *model = model_of(executor);
    if (model)
        dispatch(model, chance(20));
    else
        judge(F_imgdl_executor_dispatch, imgdl_executor_dispatch(executor, 1, NULL));
}

void move_imgdl_executor_retain(void)
{
    if (!has_feature[EXECUTOR_RELEASES])
        return;
    /* Counted before: who releases it at the same moment counts down. */
    imgdl_executor *executor = pick(EXECUTOR);
    struct executor_model *model = model_of(executor);
    if (!model) {
        note(F_imgdl_executor_retain, imgdl_executor_retain(executor) != NULL);
        return;
    }
    atomic_fetch_add(&model->unreleased, 1);
    atomic_fetch_add(&model->references, 1);
    imgdl_executor *same = imgdl_executor_retain(executor);
    note(F_imgdl_executor_retain, same != NULL);
    if (same) {
        put_or_release(EXECUTOR, same);
        return;
    }
    atomic_fetch_sub(&model->references, 1);
    atomic_fetch_sub(&model->unreleased, 1);
}

void move_imgdl_executor_release(void)
{
    if (has_feature[EXECUTOR_RELEASES] || child_place != HOST)
        release_handle(EXECUTOR, take(EXECUTOR));
    else
        imgdl_executor_release(one_in(2) ? NULL : IMGDL_EXECUTOR_INLINE);
}

/* ---- Downloaders */

void move_imgdl_downloader_create(void)
{
    struct delivery delivery = {NULL, 0};
    imgdl_config config = random_config(&delivery);
    imgdl_downloader *downloader = NULL;
    int has_defaults = one_in(8);
    imgdl_status status =
        judge(F_imgdl_downloader_create, imgdl_downloader_create(has_defaults ? NULL : &config, &downloader));
    if (status != IMGDL_OK)
        return;
    if (!has_defaults)
        note_delivery(downloader, delivery);
    put_or_release(DOWNLOADER, downloader);
}

void move_imgdl_downloader_shared(void)
{
    imgdl_downloader *downloader = NULL;
    if (judge(F_imgdl_downloader_shared, imgdl_downloader_shared(&downloader)) != IMGDL_OK)
        return;
    /* A child's request would name its parent's executors. */
    if (child_place != HOST) {
        imgdl_downloader_release(downloader);
        return;
    }
    struct ward *ward = new_ward(REQUEST);
    imgdl_request request = random_request(ward, downloader);
    accept_ward(ward, judge(F_imgdl_download, imgdl_download(downloader, &request, NULL)));
    if (imgdl_downloader_destroy(imgdl_downloader_retain(downloader)) != IMGDL_ERROR_INVALID_OPERATION)
        violation("the shared downloader can be destroyed");
    imgdl_downloader_release(downloader);
    imgdl_downloader_release(downloader);
}

MOVE_RETAIN(downloader, DOWNLOADER)
void move_imgdl_downloader_release(void) { release_handle(DOWNLOADER, take(DOWNLOADER)); }

void move_imgdl_downloader_set_header(void)
{
    static const char *const values[] = {"1", NULL, "two words", "bad\nvalue"};
    judge(F_imgdl_downloader_set_header,
          imgdl_downloader_set_header(pick(DOWNLOADER), one_in(20) ? NULL : "X-Played", values[chance(4)]));
}

void move_imgdl_downloader_get_header(void)
{
    char text[16];
    size_t length = 0;
    judge(F_imgdl_downloader_get_header,
          imgdl_downloader_get_header(pick(DOWNLOADER), "x-played", text, chance(sizeof text), &length));
}

#define SETTING(name, value)                                                                                           \
    void move_imgdl_downloader_##name(void)                                                                            \
    {                                                                                                                  \
        judge(F_imgdl_downloader_##name, imgdl_downloader_##name(pick(DOWNLOADER), value));                            \
    }
SETTING(set_max_concurrent, chance(20))
SETTING(set_max_per_host, chance(4))
SETTING(set_order, chance(3))
SETTING(set_suspended, one_in(3))
SETTING(enter_background, one_in(2) ? 0 : chance(200))
SETTING(invalidate, (int32_t)chance(2))

void move_imgdl_downloader_max_concurrent(void)
{
    note(F_imgdl_downloader_max_concurrent, imgdl_downloader_max_concurrent(pick(DOWNLOADER)));
}
void move_imgdl_downloader_is_suspended(void)
{
    note(F_imgdl_downloader_is_suspended, imgdl_downloader_is_suspended(pick(DOWNLOADER)));
}
void move_imgdl_downloader_current_count(void)
{
    note(F_imgdl_downloader_current_count, (long)imgdl_downloader_current_count(pick(DOWNLOADER)));
}
void move_imgdl_downloader_enter_foreground(void)
{
    judge(F_imgdl_downloader_enter_foreground, imgdl_downloader_enter_foreground(pick(DOWNLOADER)));
}
void move_imgdl_downloader_network_changed(void)
{
    judge(F_imgdl_downloader_network_changed, imgdl_downloader_network_changed(pick(DOWNLOADER)));
}
void move_imgdl_downloader_cancel_all(void)
{
    judge(F_imgdl_downloader_cancel_all, imgdl_downloader_cancel_all(pick(DOWNLOADER)));
}

void move_imgdl_downloader_reconfigure(void)
{
    struct delivery unused; /* its executor stays */
    imgdl_config config = random_config(&unused);
    judge(F_imgdl_downloader_reconfigure, imgdl_downloader_reconfigure(pick(DOWNLOADER), &config));
}

void move_imgdl_downloader_wait_idle(void)
{
    if (has_feature[HOST_THREADS_WAIT] || here != HOST)
        judge(F_imgdl_downloader_wait_idle, imgdl_downloader_wait_idle(pick(DOWNLOADER), chance(20)));
}

static void on_done(void *user_data)
{
    struct ward *ward = user_data;
    enter_ward(ward, 0);
    if (atomic_fetch_add(&ward->terminals, 1))
        violation("done is called twice");
    play_inside(DESTRUCTOR);
    leave_ward(ward);
}

void move_imgdl_downloader_shutdown(void)
{
    struct ward *ward = new_ward(DONE);
    accept_ward(ward, judge(F_imgdl_downloader_shutdown,
                            imgdl_downloader_shutdown(pick(DOWNLOADER), chance(3), on_done, ward)));
}

void move_imgdl_downloader_destroy(void)
{
    if (here != HOST && !has_feature[DESTROYS_INSIDE])
        return;
    imgdl_downloader *downloader = take(DOWNLOADER);
    imgdl_status status = judge(F_imgdl_downloader_destroy, imgdl_downloader_destroy(downloader));
    if (status != IMGDL_OK && status != IMGDL_ERROR_INVALID_HANDLE && child_place == HOST)
        violation("destroy gave %d", status);
}

/* ---- Downloads */

void move_imgdl_download(void)
{
    struct ward *ward = new_ward(REQUEST);
    imgdl_downloader *downloader = pick(DOWNLOADER);
    int lives = has_living;
    imgdl_request request = random_request(ward, downloader);
    imgdl_token *token = NULL;
    /* Of such a struct nothing can be read, the destructor neither. */
    int is_unreadable = one_in(100);
    if (is_unreadable) {
        request.struct_size = chance(8);
        atomic_store(&ward->destroyed, 1);
    }
    has_living = lives;
    imgdl_status status = judge(F_imgdl_download, imgdl_download(downloader, &request, one_in(4) ? NULL : &token));
    accept_ward(ward, status);
    if (status != IMGDL_OK && token)
        violation("a token of a request that was refused");
    put_or_release(TOKEN, token);
}

void move_imgdl_token_cancel(void) { judge(F_imgdl_token_cancel, imgdl_token_cancel(pick(TOKEN))); }
void move_imgdl_token_set_priority(void)
{
    judge(F_imgdl_token_set_priority, imgdl_token_set_priority(pick(TOKEN), (imgdl_priority)chance(4) - 1));
}
void move_imgdl_token_wait(void)
{
    if (has_feature[HOST_THREADS_WAIT] || here != HOST)
        judge(F_imgdl_token_wait, imgdl_token_wait(pick(TOKEN), chance(20)));
}

void move_imgdl_token_result(void)
{
    imgdl_token *token = imgdl_token_retain(pick(TOKEN));
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    if (judge(F_imgdl_token_result, imgdl_token_result(token, &result)) == IMGDL_OK) {
        note(F_imgdl_token_result, (long)strlen(result.message));
        put_or_release(IMAGE, imgdl_image_retain(result.image));
    }
    imgdl_token_release(token);
}

void move_imgdl_token_id(void) { note(F_imgdl_token_id, (long)imgdl_token_id(pick(TOKEN))); }
MOVE_RETAIN(token, TOKEN)
void move_imgdl_token_release(void) { release_handle(TOKEN, take(TOKEN)); }

void move_imgdl_token_metrics(void)
{
    imgdl_metrics metrics;
    imgdl_metrics_init(&metrics, sizeof metrics);
    imgdl_token *token = imgdl_token_retain(pick(TOKEN));
    if (judge(F_imgdl_token_metrics, imgdl_token_metrics(token, &metrics)) == IMGDL_OK)
        note(F_imgdl_token_metrics, (long)strlen(metrics.address));
    imgdl_token_release(token);
}

/* ---- Batches */

static void on_progress(const imgdl_batch_progress *progress, void *user_data)
{
    struct ward *ward = user_data;
    /* An inline one comes where a request of it ended: also where that was dispatched, or its executor released. */
    enum place inline_place = is_players_thread ? DISPATCHED : INLINE;
    /* That of a downloader that delivers inline, too, which comes in place of a thread of the library's then. */
    enum place otherwise = is_players_thread ? DISPATCHED : DELIVERY;
    enum place before = enter(ward->executor ? DISPATCHED : ward->mask & INLINE_REQUEST ? inline_place : otherwise);
    struct executor_model *outer = enter_executor(ward->executor);
    enter_ward(ward, 0);
    if (atomic_load(&ward->terminals))
        violation("progress of a batch after it was finished");
    if (progress->finished > progress->total || progress->failed + progress->cancelled > progress->finished)
        violation("progress of a batch that cannot be");
    if (progress->is_finished)
        atomic_fetch_add(&ward->terminals, 1);
    play_here(8);
    leave_ward(ward);
    leave_executor(outer);
    leave(before);
}

void move_imgdl_downloader_prefetch(void)
{
    enum { MOST = 5 };
    struct ward *wards[MOST], *own = new_ward(BATCH);
    imgdl_request requests[MOST];
    unsigned count = chance(MOST + 1);
    imgdl_downloader *downloader = pick(DOWNLOADER);
    int lives = has_living;
    for (unsigned i = 0; i < count; i++) {
        wards[i] = new_ward(REQUEST);
        requests[i] = random_request(wards[i], downloader);
        requests[i].decode = NULL; /* the thread has one of them */
    }
    imgdl_batch_options options;
    imgdl_batch_options_init(&options, sizeof options);
    options.max_concurrent = chance(4);
    options.executor = random_executor(&own->executor);
    runs_at(own, options.executor, downloader);
    options.progress = on_progress;
    options.destructor = ward_destroyed;
    options.user_data = own;
    options.keeps_priority = chance(2);
    imgdl_batch *batch = NULL;
    has_living = lives;
    imgdl_status status = judge(F_imgdl_downloader_prefetch,
                                imgdl_downloader_prefetch(downloader, requests, count, &options, &batch));
    for (unsigned i = 0; i < count; i++)
        accept_ward(wards[i], status);
    accept_ward(own, status);
    put_or_release(A_BATCH, batch);
}

void move_imgdl_batch_cancel(void) { judge(F_imgdl_batch_cancel, imgdl_batch_cancel(pick(A_BATCH))); }
void move_imgdl_batch_set_paused(void)
{
    judge(F_imgdl_batch_set_paused, imgdl_batch_set_paused(pick(A_BATCH), one_in(3)));
}
void move_imgdl_batch_set_priority(void)
{
    judge(F_imgdl_batch_set_priority, imgdl_batch_set_priority(pick(A_BATCH), (imgdl_priority)chance(4) - 1));
}
void move_imgdl_batch_progress_get(void)
{
    imgdl_batch_progress progress = {.struct_size = sizeof progress};
    judge(F_imgdl_batch_progress_get, imgdl_batch_progress_get(pick(A_BATCH), &progress));
}
MOVE_RETAIN(batch, A_BATCH)
void move_imgdl_batch_release(void) { release_handle(A_BATCH, take(A_BATCH)); }

/* ---- Observing */

void move_imgdl_downloader_set_observer(void)
{
    imgdl_downloader *downloader = pick(DOWNLOADER);
    if (one_in(4)) {
        judge(F_imgdl_downloader_set_observer, imgdl_downloader_set_observer(downloader, NULL, NULL, NULL));
        return;
    }
    struct ward *ward = new_ward(OBSERVING);
    accept_ward(ward, judge(F_imgdl_downloader_set_observer,
                            imgdl_downloader_set_observer(downloader, on_observation, ward, ward_destroyed)));
}

void move_imgdl_downloader_stats(void)
{
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    if (judge(F_imgdl_downloader_stats, imgdl_downloader_stats(pick(DOWNLOADER), &stats)) != IMGDL_OK)
        return;
    if (stats.succeeded + stats.failed + stats.cancelled > stats.submitted)
        violation("more downloads have ended than were asked for");
}

void move_imgdl_histogram_quantile(void)
{
    static const double parts[] = {0.5, -1, 2, 0, 1};
    imgdl_histogram histogram = {.count = 3, .sum_us = 30, .buckets = {0, 0, 1, 2}};
    note(F_imgdl_histogram_quantile, (long)imgdl_histogram_quantile(one_in(8) ? NULL : &histogram, parts[chance(5)]));
}

void move_imgdl_trim(void) { note(F_imgdl_trim, (long)imgdl_trim(chance(5))); }
