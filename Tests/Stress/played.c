/* What was played: each function, and each answer that a place forces, at least once in time enough for all. */
#include "player.h"

#include <stdio.h>

/* Of a minute with everything switched on each function, and each answer that is a code in a child; of ten minutes each
 * WOULD_DEADLOCK, too. On a busy machine it takes longer. */
enum { LONG_ENOUGH = 60, LONG_ENOUGH_FOR_EACH_PLACE = 600 };

/* ---- How requests ended: a play that is refused nearly everywhere shows here */

enum { CODES = 3000 };
static atomic_ulong ends[CODES];

void note_end(imgdl_status code)
{
    if (code >= 0 && code < CODES)
        atomic_fetch_add(&ends[code], 1);
}

void print_ends(void)
{
    printf("ends:");
    for (imgdl_status code = 0; code < CODES; code++)
        if (atomic_load(&ends[code]))
            printf(" %lu %s", atomic_load(&ends[code]), code ? imgdl_error_name(code) + sizeof "IMGDL_ERROR_" - 1 : "OK");
    printf("\n");
}

/* ---- What is missing */

static unsigned is_missing(enum place place, enum function function, int is_said)
{
    if (has_answered(place, function))
        return 0;
    if (is_said)
        printf("not played %s%s: %s\n", place < AFTER_FORK ? "in " : "", place_names[place], function_names[function]);
    return 1;
}

/* A child's answers only where there are children. */
unsigned count_missing(double seconds, int is_said)
{
    unsigned long all = 0;
    unsigned missing = 0;
    for (enum function i = 0; i < FUNCTIONS; i++) {
        all += atomic_load(&played[i]);
        if (!atomic_load(&played[i]) && ++missing && is_said)
            printf("not played: %s\n", function_names[i]);
        for (enum place place = HOST; place < AFTER_FORK && seconds >= LONG_ENOUGH_FOR_EACH_PLACE; place++)
            if (is_deadlock_there(place, i))
                missing += is_missing(place, i, is_said);
        if (has_feature[FORKS] && is_answered_by_code(AFTER_FORK, i))
            missing += is_missing(AFTER_FORK, i, is_said);
        if (has_feature[EXITS] && is_answered_by_code(AFTER_EXIT, i))
            missing += is_missing(AFTER_EXIT, i, is_said);
    }
    if (is_said)
        printf("%lu calls\n", all);
    return missing;
}

int is_long_enough(double seconds)
{
    for (enum feature i = 0; i < FEATURES; i++)
        if (!has_feature[i] && i != FORKS && i != EXITS)
            return 0;
    return seconds >= LONG_ENOUGH;
}
