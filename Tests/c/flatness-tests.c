/* What the soak would say of runs that are made up: ten minutes as they are, and with what it is there to find. */
#define SUITE "flatness"
#include "flatness.h"
#include "harness.h"

static struct run flat_run(void)
{
    struct run run = {
        .before = {.resident = 20, .allocated = 4, .threads = 1, .sockets = 0, .others = 5},
        .after = {.resident = 30, .allocated = 5, .threads = 1, .sockets = 0, .others = 5},
        .explained = {.connections = 256, .idle_connections = 64, .others = 300, .threads = 14},
    };
    for (unsigned i = 0; i < PERIODS; i++)
        run.periods[i] = (struct period){
            .most = {.resident = 80, .allocated = 40, .threads = 8, .sockets = 30 + i * 40 % 227, .others = 70},
            .at_rest = {.resident = 40, .allocated = 9, .threads = 7, .sockets = 5 + i * 37 % 60, .others = 14},
        };
    return run;
}

static void check_flat(const struct run *run)
{
    char text[256];
    const char *found = find_growth(run, text, sizeof text);
    if (found)
        FAIL("a flat run grows: %s", found);
}

static void check_growth(const struct run *run, const char *word)
{
    char text[256];
    const char *found = find_growth(run, text, sizeof text);
    if (!found)
        FAIL("growth of %s is not found", word);
    else if (!strstr(found, word))
        FAIL("not %s but: %s", word, found);
}

TEST("a run that is flat passes, whatever chance does to its connections")
{
    struct run run = flat_run();
    check_flat(&run);
    run.periods[0].at_rest = (struct holding){.resident = 30, .allocated = 5, .threads = 3, .sockets = 1, .others = 8};
    run.periods[1].at_rest.sockets = 0;
    run.periods[PERIODS - 1].at_rest.sockets = 64;
    run.periods[1].most.sockets = 40;
    run.periods[PERIODS - 1].most.sockets = 300;
    check_flat(&run);
}

TEST("a peak of memory that goes back passes")
{
    struct run run = flat_run();
    run.periods[4].most.resident = 400;
    run.periods[4].at_rest.resident = 90;
    run.periods[PERIODS - 1].most.resident = 400;
    check_flat(&run);
}

TEST("a descriptor a minute is found")
{
    struct run run = flat_run();
    for (unsigned i = 0; i < PERIODS; i++)
        run.periods[i].at_rest.others += i;
    check_growth(&run, "descriptors besides sockets in the end");
}

TEST("a socket a minute is found")
{
    /* Not while there are no more than idle connections may be; at the end there are none of those. */
    struct run run = flat_run();
    for (unsigned i = 0; i < PERIODS; i++)
        run.periods[i].at_rest.sockets = i;
    run.after.sockets = PERIODS;
    check_growth(&run, "after the end");
    run.after.sockets = 1;
    check_growth(&run, "after the end");
}

TEST("more sockets than are explained are found")
{
    struct run run = flat_run();
    run.periods[5].at_rest.sockets = 65;
    check_growth(&run, "sockets at rest after tenth 6");
    run = flat_run();
    run.periods[0].most.sockets = 321;
    check_growth(&run, "sockets in tenth 1");
    run = flat_run();
    run.periods[9].most.others = 306;
    check_growth(&run, "besides sockets in tenth 10");
}

TEST("threads that stay are found")
{
    struct run run = flat_run();
    for (unsigned i = 0; i < PERIODS; i++)
        run.periods[i].at_rest.threads += i;
    check_growth(&run, "threads in the end");
    run = flat_run();
    run.periods[3].most.threads = 16;
    check_growth(&run, "threads in tenth 4");
    run = flat_run();
    run.after.threads = 2;
    check_growth(&run, "threads after the end");
}

TEST("memory that stays is found")
{
    struct run run = flat_run();
    for (unsigned i = 0; i < PERIODS; i++)
        run.periods[i].at_rest.allocated += 0.4 * i; /* 14 bytes of each request, at 500 a second */
    check_growth(&run, "MiB are allocated");
    run = flat_run();
    for (unsigned i = 0; i < PERIODS; i++)
        run.periods[i].at_rest.resident += 1.5 * i;
    check_growth(&run, "MiB are resident");
}
