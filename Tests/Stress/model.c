/* What the library owes: the end of each request, the destructor of all that it was given. */
#include "player.h"

#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ward **wards;
static size_t count, capacity;
atomic_long ward_count;
static const char *const ward_names[WARD_KINDS] = {
    [REQUEST] = "a request", [BATCH] = "a batch", [HOOKS] = "a hook table", [OBSERVING] = "an observer",
    [TRANSPORT] = "a transport table", [CODER] = "a coder table", [CACHE] = "a cache", [DONE] = "a shutdown"};

void hold_wards(void) { pthread_mutex_lock(&lock); }
void let_wards_go(void) { pthread_mutex_unlock(&lock); }

struct ward *new_ward(enum ward_kind kind)
{
    struct ward *ward = calloc(1, sizeof *ward);
    ward->kind = kind;
    ward->born = seconds_now();
    pthread_mutex_lock(&lock);
    if (count == capacity) {
        capacity = capacity ? 2 * capacity : 4096;
        wards = realloc(wards, capacity * sizeof *wards);
    }
    wards[count++] = ward;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&ward_count, 1);
    return ward;
}

static void describe(const struct ward *ward)
{
    const char *executor = !ward->executor                      ? "not pumped"
                           : ward->executor->references > 0 ? "pumped"
                                                            : "pumped, released";
    fprintf(stderr, "  %s %p, %s, accepted %d, terminals %d, destroyed %d, inside %d, calls %d, executor %s, %.2f s old, %s\n",
            ward_names[ward->kind], (const void *)ward, imgdl_error_name(ward->status), ward->accepted, ward->terminals,
            ward->destroyed, ward->inside, ward->calls, executor, seconds_now() - ward->born, ward->url);
}

static _Thread_local const void *outer_about[8];

void enter_ward(struct ward *ward, int may_overlap)
{
    outer_about[depth & 7] = about_now;
    about_now = ward;
    int inside = atomic_fetch_add(&ward->inside, 1);
    atomic_fetch_add(&ward->calls, 1);
    if (atomic_load(&ward->destroyed) || (inside && !may_overlap)) {
        describe(ward);
        violation(inside && !may_overlap ? "functions of %s overlap" : "%s is called after its destructor",
                  ward_names[ward->kind]);
    }
}

void leave_ward(struct ward *ward)
{
    if (atomic_load(&ward->destroyed)) {
        describe(ward);
        violation("the destructor of %s has run while one of its functions did", ward_names[ward->kind]);
    }
    if (atomic_fetch_sub(&ward->inside, 1) == 1)
        ring();
    about_now = outer_about[depth & 7];
}

void ward_destroyed(void *user_data)
{
    struct ward *ward = user_data;
    if (atomic_load(&ward->inside)) {
        describe(ward);
        violation("the destructor of %s runs while one of its functions does", ward_names[ward->kind]);
    }
    if (atomic_fetch_add(&ward->destroyed, 1)) {
        describe(ward);
        violation("a second destructor of %s", ward_names[ward->kind]);
    }
    ring();
    play_inside(DESTRUCTOR);
}

void accept_ward(struct ward *ward, imgdl_status status)
{
    ward->status = status;
    atomic_store(&ward->accepted, status == IMGDL_OK ? 1 : -1);
    ring();
}

/* 0: not yet. What was refused: some functions run the destructor then, others leave it. */
static int is_settled(struct ward *ward)
{
    if (atomic_load(&ward->accepted) <= 0)
        return atomic_load(&ward->accepted) < 0;
    if (ward->kind == DONE)
        return atomic_load(&ward->terminals) > 0 && !atomic_load(&ward->inside);
    return atomic_load(&ward->destroyed) > 0 && !atomic_load(&ward->inside);
}

/* How many it has to have had. Of what is refused a table stays its host's, and all others are given back. */
static int destructors(const struct ward *ward)
{
    switch (ward->kind) {
    case DONE: return 0;
    case HOOKS: case TRANSPORT: case CODER: return ward->accepted > 0;
    default: return 1;
    }
}

static void check(struct ward *ward)
{
    int is_gone = ward->executor && atomic_load(&ward->executor->references) <= 0;
    int owed = ward->accepted > 0 && (ward->kind == REQUEST || ward->kind == BATCH || ward->kind == DONE);
    int least = owed && !is_gone && !ward->is_silent, most = owed && !ward->is_silent;
    const char *problem = NULL;
    if (ward->terminals < least)
        problem = "no end";
    else if (ward->terminals > most)
        problem = "more than one end, or one that was not owed";
    else if (ward->destroyed != destructors(ward))
        problem = "too many destructors, or too few";
    if (problem) {
        describe(ward);
        write_log(0, ward);
        violation("%s has %s", ward_names[ward->kind], problem);
    }
}

void settle_wards(void (*meanwhile)(void), double patience)
{
    double end = seconds_now() + patience;
    for (size_t i = 0; i < count;) {
        if (is_settled(wards[i])) {
            check(wards[i++]);
            continue;
        }
        meanwhile();
        if (is_settled(wards[i]))
            continue;
        if (seconds_now() < end) {
            await_ring(end);
            continue;
        }
        unsigned left = 0;
        for (size_t j = i; j < count; j++)
            if (!is_settled(wards[j]) && ++left <= 20) {
                describe(wards[j]);
                write_log(0, wards[j]);
            }
        violation("%u of %zu have no end after %.0f s", left, count, patience);
    }
}

void forget_wards(void)
{
    for (size_t i = 0; i < count; i++) {
        check(wards[i]);
        free(wards[i]);
    }
    count = 0;
    atomic_store(&ward_count, 0);
}
