#include "holding.h"

#include <dirent.h>
#include <malloc.h>

#include "support.h"

/* A line of smaps_rollup, in MiB. */
static double mapped(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    REQUIRE(line);
    return strtod(line + strlen(name), NULL) / 1024;
}

double resident_now(void)
{
    char text[4096];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    REQUIRE(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return mapped(text, "\nRss:") - mapped(text, "\nLazyFree:");
}

static void count_descriptors(struct holding *now)
{
    DIR *directory = opendir("/proc/self/fd");
    REQUIRE(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[300], target[64];
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, target, sizeof target);
        if (length > 0)
            *(length > 7 && !memcmp(target, "socket:", 7) ? &now->sockets : &now->others) += 1;
    }
    closedir(directory);
    now->others--; /* the folder's */
}

struct holding holding_now(void)
{
    struct mallinfo2 heap = mallinfo2();
    struct holding now = {
        .resident = resident_now(),
        .allocated = (double)(heap.uordblks + heap.hblkhd) / (1 << 20),
        .threads = count_in_proc("task"),
    };
    count_descriptors(&now);
    return now;
}

void keep_most(struct holding *most, struct holding now)
{
    most->resident = now.resident > most->resident ? now.resident : most->resident;
    most->allocated = now.allocated > most->allocated ? now.allocated : most->allocated;
    most->threads = now.threads > most->threads ? now.threads : most->threads;
    most->sockets = now.sockets > most->sockets ? now.sockets : most->sockets;
    most->others = now.others > most->others ? now.others : most->others;
}

void print_holding(const char *title, const struct holding *holding)
{
    printf("  %-11s %6.1f MiB resident %6.1f allocated %3u threads %3u sockets %3u other descriptors\n", title,
           holding->resident, holding->allocated, holding->threads, holding->sockets, holding->others);
}
