/* Handles: where moves find them, living ones and others. */
#include "player.h"

enum { ROOM = 48, STALE = 32 };
/* As many of each as there is room for; downloaders have threads. */
static const unsigned room[KINDS] = {
    [IMAGE] = 16, [DATA] = 16, [DECODER] = 8, [EXECUTOR] = 6, [HOOK_TABLE] = 6, [CONTINUATION] = 48, [DOWNLOADER] = 4,
    [TOKEN] = 48, [A_BATCH] = 8, [A_CODER] = 3, [TRANSFER] = 24, [A_CACHE] = 3};

static struct shelf {
    void *living[ROOM], *stale[STALE];
    unsigned count, stale_count;
} shelves[KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(struct shelf *shelf, void *handle) { shelf->stale[shelf->stale_count++ % STALE] = handle; }

static void *any_stale(const struct shelf *shelf)
{
    unsigned known = shelf->stale_count < STALE ? shelf->stale_count : STALE;
    return known ? shelf->stale[chance(known)] : NULL;
}

/* ---- In a child */

static void *inherited[KINDS];

void inherit(void *const handles[KINDS])
{
    for (unsigned i = 0; i < KINDS; i++)
        inherited[i] = handles[i];
    nobody_dispatches();
}

void hold_shelves(void) { pthread_mutex_lock(&lock); }
void let_shelves_go(void) { pthread_mutex_unlock(&lock); }

/* Of these two it may have ended before the fork. */
static void *pick_inherited(enum kind kind)
{
    has_living = inherited[kind] && kind != CONTINUATION && kind != TRANSFER;
    return inherited[kind];
}

/* A reference for who takes it; what has none is there once, but for a question, which no answer of a child's uses up. */
static void *take_inherited(enum kind kind)
{
    void *handle = pick_inherited(kind);
    switch (kind) {
    case IMAGE: return imgdl_image_retain(handle);
    case EXECUTOR: return imgdl_executor_retain(handle);
    case DOWNLOADER: return imgdl_downloader_retain(handle);
    case TOKEN: return imgdl_token_retain(handle);
    case A_BATCH: return imgdl_batch_retain(handle);
    case A_CACHE: return imgdl_cache_retain(handle);
    case CONTINUATION: return handle;
    default: inherited[kind] = NULL; return handle;
    }
}

/* ---- Handles */

_Thread_local void *cache_of_event;

void *pick(enum kind kind)
{
    if (child_place != HOST)
        return pick_inherited(kind);
    if (kind == A_CACHE && cache_of_event && !one_in(4)) {
        has_living = 1;
        return cache_of_event;
    }
    pthread_mutex_lock(&lock);
    struct shelf *shelf = &shelves[kind];
    void *handle = shelf->count ? shelf->living[chance(shelf->count)] : NULL;
    has_living = handle != NULL;
    uint32_t other_way = chance(40);
    if (other_way < 4)
        has_living = 0;
    switch (other_way) {
    case 0: handle = NULL; break;
    case 1: handle = any_stale(shelf); break;
    case 2: {
        const struct shelf *other = &shelves[chance(KINDS)];
        if (other != shelf && other->count)
            handle = other->living[chance(other->count)];
        break;
    }
    case 3: /* no handle at all */
        handle = (void *)(one_in(2) ? (uintptr_t)chance(UINT32_MAX) : ~(uintptr_t)chance(1 << 20));
        break;
    default: break;
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

void *pick_living(enum kind kind)
{
    pthread_mutex_lock(&lock);
    struct shelf *shelf = &shelves[kind];
    void *handle = shelf->count ? shelf->living[chance(shelf->count)] : NULL;
    pthread_mutex_unlock(&lock);
    return handle;
}

int is_full(enum kind kind)
{
    pthread_mutex_lock(&lock);
    int is_full = shelves[kind].count >= room[kind];
    pthread_mutex_unlock(&lock);
    return is_full;
}

void *take(enum kind kind)
{
    if (child_place != HOST)
        return take_inherited(kind);
    pthread_mutex_lock(&lock);
    struct shelf *shelf = &shelves[kind];
    void *handle = NULL;
    if (shelf->count) {
        unsigned index = chance(shelf->count);
        handle = shelf->living[index];
        shelf->living[index] = shelf->living[--shelf->count];
        remember(shelf, handle);
    }
    pthread_mutex_unlock(&lock);
    has_living = handle != NULL;
    return handle;
}

void *put(enum kind kind, void *handle)
{
    if (!handle || child_place != HOST)
        return handle;
    void *excess = NULL;
    pthread_mutex_lock(&lock);
    struct shelf *shelf = &shelves[kind];
    if (shelf->count >= room[kind]) {
        unsigned index = chance(shelf->count);
        excess = shelf->living[index];
        shelf->living[index] = handle;
        remember(shelf, excess);
    } else {
        shelf->living[shelf->count++] = handle;
    }
    pthread_mutex_unlock(&lock);
    ring();
    return excess;
}

void put_or_release(enum kind kind, void *handle)
{
    void *excess = put(kind, handle);
    if (excess)
        release_handle(kind, excess);
}

void forget_handle(enum kind kind, void *handle)
{
    pthread_mutex_lock(&lock);
    struct shelf *shelf = &shelves[kind];
    for (unsigned i = 0; i < shelf->count; i++)
        if (shelf->living[i] == handle) {
            shelf->living[i] = shelf->living[--shelf->count];
            remember(shelf, handle);
            break;
        }
    pthread_mutex_unlock(&lock);
}

void release_handle(enum kind kind, void *handle)
{
    has_living = handle != NULL;
    switch (kind) {
    case IMAGE: note(F_imgdl_image_release, 0); imgdl_image_release(handle); break;
    case DATA: note(F_imgdl_data_release, 0); imgdl_data_release(handle); break;
    case DECODER: note(F_imgdl_decoder_destroy, 0); imgdl_decoder_destroy(handle); break;
    case EXECUTOR: {
        struct executor_model *model = model_of(handle);
        if (model)
            atomic_fetch_sub(&model->references, 1);
        note(F_imgdl_executor_release, 0);
        imgdl_executor_release(handle);
        /* A callback that runs is the one that the dispatch has in hand: another one may not begin. */
        if (model && atomic_fetch_sub(&model->unreleased, 1) == 1 && atomic_load(&model->inside) > 0)
            atomic_store(&model->late, 1);
        break;
    }
    case HOOK_TABLE: note(F_imgdl_hooks_release, 0); imgdl_hooks_release(handle); break;
    case CONTINUATION: answer_continuation(handle); break;
    case DOWNLOADER: note(F_imgdl_downloader_release, 0); imgdl_downloader_release(handle); break;
    case TOKEN: note(F_imgdl_token_release, 0); imgdl_token_release(handle); break;
    case A_BATCH: note(F_imgdl_batch_release, 0); imgdl_batch_release(handle); break;
    case A_CODER: note(F_imgdl_coder_release, 0); imgdl_coder_release(handle); break;
    case TRANSFER: note(F_imgdl_transfer_release, 0); imgdl_transfer_release(handle); break;
    case A_CACHE: note(F_imgdl_cache_release, 0); imgdl_cache_release(handle); break;
    case KINDS: break;
    }
}

void release_all(void)
{
    static const enum kind order[] = {CONTINUATION, TRANSFER, A_BATCH, TOKEN, IMAGE, DATA, DECODER, DOWNLOADER,
                                      HOOK_TABLE, A_CODER, A_CACHE};
    for (unsigned i = 0; i < sizeof order / sizeof *order; i++)
        for (void *handle; (handle = take(order[i]));)
            release_handle(order[i], handle);
}
