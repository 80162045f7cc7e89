/* A call that waits where it has to answer WOULD_DEADLOCK says nothing any more: so a thread looks from outside at those that
 * must not wait, and names the one that does. */
#include "player.h"

#include <string.h>
#include <unistd.h>

enum { MOST_CALLS = 256, MOST_NESTED = 16, LOOKS_PER_SECOND = 10 };

struct call {
    atomic_int is_taken, function, place;
    /* Seconds; 0: nobody looks at it. */
    atomic_int patience;
    /* A function of the host's runs in it, and may take its time. */
    atomic_int is_in_host;
    /* Since it began, or was last in the host's code. Looks and not time: where the process is stopped none are made. */
    atomic_int looks;
};
static struct call calls[MOST_CALLS];
static useconds_t look_interval = 1000000 / LOOKS_PER_SECOND;

/* The thread's own, the innermost last; NULL: one that may wait. */
static _Thread_local struct call *nested[MOST_NESTED];
static _Thread_local unsigned nested_count;

/* NULL: too many at once to look at them all. */
static struct call *take_call(void)
{
    for (unsigned i = 0; i < MOST_CALLS; i++) {
        int is_taken = 0;
        if (atomic_compare_exchange_strong(&calls[i].is_taken, &is_taken, 1))
            return &calls[i];
    }
    return NULL;
}

void begin_call(enum function function)
{
    enum place place = here;
    unsigned patience = patience_with(function, &place);
    struct call *call = patience ? take_call() : NULL;
    if (call) {
        atomic_store(&call->function, (int)function);
        atomic_store(&call->place, (int)place);
        atomic_store(&call->is_in_host, 0);
        atomic_store(&call->looks, 0);
        atomic_store(&call->patience, (int)patience);
    }
    if (nested_count < MOST_NESTED)
        nested[nested_count] = call;
    else if (call)
        atomic_store(&call->patience, 0), atomic_store(&call->is_taken, 0);
    nested_count++;
}

void end_call(void)
{
    nested_count--;
    struct call *call = nested_count < MOST_NESTED ? nested[nested_count] : NULL;
    if (!call)
        return;
    atomic_store(&call->patience, 0);
    atomic_store(&call->is_taken, 0);
}

static struct call *innermost(void)
{
    return nested_count && nested_count <= MOST_NESTED ? nested[nested_count - 1] : NULL;
}

void host_begins(void)
{
    struct call *call = innermost();
    if (call)
        atomic_fetch_add(&call->is_in_host, 1);
}

void host_ends(void)
{
    struct call *call = innermost();
    if (!call)
        return;
    atomic_store(&call->looks, 0);
    atomic_fetch_sub(&call->is_in_host, 1);
}

static void look(struct call *call)
{
    int patience = atomic_load(&call->patience);
    if (!patience || atomic_load(&call->is_in_host))
        return;
    if (atomic_fetch_add(&call->looks, 1) < patience * LOOKS_PER_SECOND)
        return;
    enum function function = (enum function)atomic_load(&call->function);
    enum place place = (enum place)atomic_load(&call->place);
    violation("%s waits in %s, where it is \"%s\": it has not returned for %d s", function_names[function],
              place_names[place], cell_text(function, place), patience);
}

static void *look_at_calls(void *unused)
{
    (void)unused;
    for (;; usleep(look_interval))
        for (unsigned i = 0; i < MOST_CALLS; i++)
            look(&calls[i]);
    return NULL;
}

void waits_start(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, look_at_calls, NULL) != 0)
        give_up("pthread_create");
    pthread_detach(thread);
}

/* ---- Whether it is seen: for test_waits.py */

static imgdl_status wait_for(unsigned milliseconds)
{
    usleep(milliseconds * 1000);
    return IMGDL_OK;
}

static imgdl_status call_the_host(unsigned milliseconds)
{
    enum place before = enter(DISPATCHED);
    imgdl_status status = wait_for(milliseconds);
    leave(before);
    return status;
}

static int number_of(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    give_up(name);
}

/* With a hundredth of each patience. Returns where nobody complains. */
void wait_in(const char *place_name, const char *function_name, const char *milliseconds)
{
    enum place place = (enum place)number_of(place_name, place_names, PLACES), before = here;
    enum function function = (enum function)number_of(function_name, function_names, FUNCTIONS);
    look_interval = 1000;
    waits_start();
    if (place != HOST)
        before = enter(place);
    judge(F_imgdl_executor_dispatch, call_the_host(1000));
    judge(function, wait_for((unsigned)atoi(milliseconds)));
    if (place != HOST)
        leave(before);
}
