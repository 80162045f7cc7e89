/* Executors: each stays known for as long as the process lives, for requests that name it. And which of them a downloader has
 * for requests that name none. */
#include "calls.h"

enum { MOST_EXECUTORS = 32768 };
static struct executor_model models[MOST_EXECUTORS];
static atomic_uint model_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for one that is added */

void hold_executors(void) { pthread_mutex_lock(&lock); }
void let_executors_go(void) { pthread_mutex_unlock(&lock); }

struct executor_model *model_of(imgdl_executor *executor)
{
    /* The newest first: a handle does not come again, its generation does not. */
    for (unsigned i = atomic_load(&model_count); i-- > 0;)
        if (models[i].handle == executor)
            return &models[i];
    return NULL;
}

unsigned count_executors(void)
{
    unsigned count = 0;
    for (unsigned i = atomic_load(&model_count); i-- > 0;)
        count += atomic_load(&models[i].references) > 0;
    return count;
}

void new_executor(void)
{
    imgdl_executor *executor = NULL;
    /* One more than there is room for would have another one released. */
    if (!has_feature[EXECUTOR_RELEASES] && is_full(EXECUTOR))
        return;
    if (judge(F_imgdl_executor_create_pumped, imgdl_executor_create_pumped(&executor)) != IMGDL_OK)
        return;
    pthread_mutex_lock(&lock);
    unsigned index = atomic_load(&model_count);
    if (index < MOST_EXECUTORS) {
        models[index].handle = executor;
        atomic_store(&models[index].references, 1);
        atomic_store(&models[index].unreleased, 1);
        atomic_store(&model_count, index + 1);
    }
    pthread_mutex_unlock(&lock);
    if (index < MOST_EXECUTORS)
        put_or_release(EXECUTOR, executor);
    else
        violation("the player has no room for another executor: play for a shorter time");
}

_Thread_local struct executor_model *dispatching;
static _Thread_local uint32_t begun; /* in the innermost dispatch */

struct executor_model *enter_executor(struct executor_model *model)
{
    struct executor_model *outer = dispatching;
    dispatching = model;
    if (!model)
        return outer;
    begun++;
    if (atomic_load(&model->unreleased) <= 0 && atomic_fetch_add(&model->late, 1))
        violation("a callback begins after the last release of its executor has returned");
    /* Not before: who releases it would take this one for one that had begun. */
    atomic_fetch_add(&model->inside, 1);
    return outer;
}

void leave_executor(struct executor_model *outer)
{
    if (dispatching)
        atomic_fetch_sub(&dispatching->inside, 1);
    dispatching = outer;
}

int dispatch(struct executor_model *model, uint32_t most)
{
    if (atomic_exchange(&model->dispatching, 1))
        return -1;
    uint32_t ran = 0, outer = begun;
    begun = 0;
    begin_call(F_imgdl_executor_dispatch);
    imgdl_status status = imgdl_executor_dispatch(model->handle, most, &ran);
    end_call();
    if (begun != ran || begun > (most ? most : 1024))
        violation("a dispatch of %u ran %u callbacks, and said %u", most, begun, ran);
    begun = outer;
    atomic_store(&model->dispatching, 0);
    ring();
    if (ran || status != IMGDL_OK)
        judge(F_imgdl_executor_dispatch, status);
    return (int)ran;
}

void nobody_dispatches(void)
{
    for (unsigned i = atomic_load(&model_count); i-- > 0;)
        atomic_store(&models[i].dispatching, 0);
    dispatching = NULL;
}

void dispatch_all(void)
{
    for (unsigned i = atomic_load(&model_count); i-- > 0;)
        if (atomic_load(&models[i].references) > 0)
            dispatch(&models[i], 64);
}

unsigned executor_descriptors(struct pollfd *places, unsigned room)
{
    unsigned count = 0;
    for (unsigned i = atomic_load(&model_count); i-- > 0 && count < room;) {
        if (atomic_load(&models[i].references) <= 0 || atomic_load(&models[i].dispatching))
            continue;
        int descriptor = imgdl_executor_fd(models[i].handle);
        if (descriptor >= 0)
            places[count++] = (struct pollfd){.fd = descriptor, .events = POLLIN};
    }
    return count;
}

imgdl_executor *random_executor(struct executor_model **model)
{
    *model = NULL;
    if (child_place != HOST) /* those that are known are its parent's */
        return NULL;
    switch (chance(4)) {
    case 0: return NULL;
    case 1: return IMGDL_EXECUTOR_INLINE;
    default: break;
    }
    void *handle = pick_living(EXECUTOR);
    *model = handle ? model_of(handle) : NULL;
    return *model ? handle : NULL;
}

/* ---- Downloaders: where callbacks run that name no executor. Of those that were made last, whichever live */

enum { MOST_DOWNLOADERS = 1024 };
static struct {
    _Atomic(imgdl_downloader *) handle;
    struct delivery delivery;
} downloaders[MOST_DOWNLOADERS];
static atomic_uint downloader_count;

void note_delivery(imgdl_downloader *downloader, struct delivery delivery)
{
    unsigned index = atomic_fetch_add(&downloader_count, 1) % MOST_DOWNLOADERS;
    atomic_store(&downloaders[index].handle, NULL);
    downloaders[index].delivery = delivery;
    atomic_store(&downloaders[index].handle, downloader);
}

struct delivery delivery_of(imgdl_downloader *downloader)
{
    for (unsigned i = 0; downloader && i < MOST_DOWNLOADERS; i++)
        if (atomic_load(&downloaders[i].handle) == downloader)
            return downloaders[i].delivery;
    return (struct delivery){NULL, 0};
}

void runs_at(struct ward *ward, imgdl_executor *executor, imgdl_downloader *downloader)
{
    struct delivery delivery = {ward->executor, executor == IMGDL_EXECUTOR_INLINE};
    if (!executor)
        delivery = delivery_of(downloader);
    ward->executor = delivery.model;
    if (delivery.is_inline)
        ward->mask |= INLINE_REQUEST;
}
