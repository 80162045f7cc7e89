/* What decoding costs while the bytes come, against the codecs called by hand on the whole file (features B6).
 *
 *   decode [--rounds N] [CASE …]    CPU time, medians of one run, as ratios
 *   decode --run CASE WAY           once, for a counter of instructions around it (see bench/instructions)
 *   decode --list                   the cases
 *   decode --thumbnails [N]         time and memory of 400 pixels' width of 24 megapixels against the whole, N rounds
 *
 * Pictures are drawn and kept in the folder that IMGDL_BENCH_PICTURES names, or build/bench. */
#include "hand.h"
#include "pictures.h"

#include <imgdl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <test_pictures.h>

enum { MOST_ROUNDS = 99, SHOWN_EVERY = 64 * 1024 };

struct picture {
    const char *name;
    unsigned kind;
    int width, height;
    double allowed, for_each_partial; /* what issue and tests hold a chunked decode to, as a ratio; 0: nothing */
};

static const struct picture pictures[] = {
    {"baseline.jpg", PICTURE_JPEG_BASELINE, 4000, 3000, 1.10, 0},
    {"progressive.jpg", PICTURE_JPEG_PROGRESSIVE, 4000, 3000, 1.20, 0.12},
    {"rgb.png", PICTURE_PNG_RGB, 3000, 2000, 1.10, 0},
    {"adam7.png", PICTURE_PNG_ADAM7, 3000, 2000, 1.10, 0},
    {"lossy.webp", PICTURE_WEBP_LOSSY, 4000, 3000, 1.10, 0},
    {"lossless.webp", PICTURE_WEBP_LOSSLESS, 3000, 2000, 1.25, 0},
    {"photo.gif", PICTURE_GIF, 3000, 2000, 1.10, 0},
};
enum { PICTURES = sizeof pictures / sizeof *pictures };

static void fail(const char *what)
{
    fprintf(stderr, "decode: %s\n", what);
    exit(1);
}

static struct bytes load(const struct picture *picture)
{
    return bench_picture(picture->name, picture->kind, picture->width, picture->height);
}

/* ---- Ways to decode */

enum way { NOTHING, BY_HAND, WHOLE, FED, SHOWN, SHOWN_SMALL, WAYS };
static const char *const way_names[WAYS] = {"nothing", "hand", "whole", "fed", "shown", "shown-1000"};

static void check(imgdl_status status)
{
    if (status != IMGDL_OK)
        fail(imgdl_error_name(status));
}

/* Partial images at every 64 KiB, whatever the chunks; returns how many there were. */
static int decode_in_chunks(struct bytes bytes, size_t chunk, int shows)
{
    imgdl_decoder *decoder;
    check(imgdl_decoder_create(NULL, &decoder));
    imgdl_image *image = NULL;
    int shown = 0;
    size_t unshown = 0;
    for (size_t start = 0; start < bytes.size; start += chunk) {
        size_t size = bytes.size - start < chunk ? bytes.size - start : chunk;
        check(imgdl_decoder_feed(decoder, bytes.data + start, size));
        unshown += size;
        if (shows && unshown >= SHOWN_EVERY) {
            unshown -= SHOWN_EVERY;
            imgdl_image *next;
            if (imgdl_decoder_partial(decoder, &next) == IMGDL_OK) {
                /* The last one is on show until the next is there. */
                imgdl_image_release(image);
                image = next;
                shown++;
            }
        }
    }
    imgdl_image *final;
    check(imgdl_decoder_finish(decoder, &final));
    imgdl_image_release(image);
    imgdl_image_release(final);
    imgdl_decoder_destroy(decoder);
    return shown;
}

static int decode(struct bytes bytes, enum way way)
{
    imgdl_image *image;
    switch (way) {
    case BY_HAND:
        if (!hand_decode(bytes.data, bytes.size))
            fail("a codec called by hand has failed");
        return 0;
    case WHOLE:
        check(imgdl_decode(bytes.data, bytes.size, NULL, &image));
        imgdl_image_release(image);
        return 0;
    case FED: return decode_in_chunks(bytes, 64 * 1024, 0);
    case SHOWN: return decode_in_chunks(bytes, 64 * 1024, 1);
    case SHOWN_SMALL: return decode_in_chunks(bytes, 1000, 1);
    default: return 0;
    }
}

/* ---- Measuring */

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

/* Any file's median is beyond what is allowed: the program fails. */
static int is_too_much;

/* Ratios of times taken in the same round: what else the machine did then slowed both. */
static void measure(const struct picture *picture, int rounds)
{
    struct bytes bytes = load(picture);
    double times[WAYS][MOST_ROUNDS], ratios[WAYS][MOST_ROUNDS], small[MOST_ROUNDS];
    int partials = 0;
    for (int round = -1; round < rounds; round++) {
        for (enum way way = BY_HAND; way < WAYS; way++) {
            double start = cpu_ms();
            int shown = decode(bytes, way);
            if (way == SHOWN)
                partials = shown;
            if (round >= 0)
                times[way][round] = cpu_ms() - start;
        }
        if (round < 0)
            continue;
        for (enum way way = WHOLE; way < WAYS; way++)
            ratios[way][round] = times[way][round] / times[BY_HAND][round];
        small[round] = times[SHOWN_SMALL][round] / times[SHOWN][round];
    }
    double shown = median(ratios[SHOWN], rounds), allowed = picture->allowed + picture->for_each_partial * partials;
    printf("| %-16s | %8.1f | %5.2f | %5.2f | %5.2f | %8d | %6.2f | ", picture->name, median(times[BY_HAND], rounds),
           median(ratios[WHOLE], rounds), median(ratios[FED], rounds), shown, partials, median(small, rounds));
    if (picture->allowed > 0) {
        printf("%7.2f |%s\n", allowed, shown > allowed ? " too much" : "");
        if (shown > allowed)
            is_too_much = 1;
    } else {
        printf("%7s |\n", "-");
    }
    fflush(stdout);
    free(bytes.data);
}

static const struct picture *find(const char *name)
{
    for (int i = 0; i < PICTURES; i++)
        if (!strcmp(pictures[i].name, name))
            return &pictures[i];
    fail("no such case");
    return NULL;
}

/* ---- Thumbnails */

struct cost {
    double ms, mib;
};

/* In a process of its own, whose largest size can be asked for. Width 0: as stored; negative: nothing is decoded. */
static struct cost cost_of(struct bytes bytes, int width)
{
    pid_t child = fork();
    if (child == 0) {
        imgdl_decode_options options;
        imgdl_decode_options_init(&options, sizeof options);
        options.target_width = width > 0 ? (uint32_t)width : 0;
        imgdl_image *image;
        if (width >= 0 && imgdl_decode(bytes.data, bytes.size, &options, &image) != IMGDL_OK)
            _exit(1);
        _exit(0);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
        fail("a child process has failed");
    double seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return (struct cost){1e3 * seconds, (double)usage.ru_maxrss / 1024};
}

static void measure_thumbnail(const char *name, unsigned kind, int rounds)
{
    struct picture picture = {name, kind, 6000, 4000, 0, 0};
    struct bytes bytes = load(&picture);
    double time[MOST_ROUNDS], memory[MOST_ROUNDS], whole_ms[MOST_ROUNDS], whole_mib[MOST_ROUNDS];
    for (int i = 0; i < rounds; i++) {
        struct cost none = cost_of(bytes, -1), whole = cost_of(bytes, 0), small = cost_of(bytes, 400);
        whole_ms[i] = whole.ms - none.ms;
        whole_mib[i] = whole.mib - none.mib;
        time[i] = (small.ms - none.ms) / whole_ms[i];
        memory[i] = (small.mib - none.mib) / whole_mib[i];
    }
    printf("| %-18s | %5.0f | %5.0f | %4.2f | %5.3f |\n", name, median(whole_ms, rounds), median(whole_mib, rounds),
           median(time, rounds), median(memory, rounds));
    free(bytes.data);
}

static int run_once(const char *name, const char *way_name)
{
    const struct picture *picture = find(name);
    struct bytes bytes = load(picture);
    for (enum way way = NOTHING; way < WAYS; way++)
        if (!strcmp(way_names[way], way_name)) {
            printf("%d\n", decode(bytes, way));
            return 0;
        }
    fail("no such way");
    return 1;
}

int main(int count, char **arguments)
{
    int rounds = 9, first = 1;
    if (count == 2 && !strcmp(arguments[1], "--list")) {
        for (int i = 0; i < PICTURES; i++)
            puts(pictures[i].name);
        return 0;
    }
    if (count == 4 && !strcmp(arguments[1], "--run"))
        return run_once(arguments[2], arguments[3]);
    if (count > 1 && !strcmp(arguments[1], "--thumbnails")) {
        rounds = count > 2 ? atoi(arguments[2]) : rounds;
        if (rounds < 1 || rounds > MOST_ROUNDS)
            fail("rounds: 1 to 99");
        puts("| 24 megapixels      | whole, ms | whole, MiB | 400 pixels: time | memory |\n"
             "|--------------------|----------:|-----------:|-----------------:|-------:|");
        measure_thumbnail("baseline-24.jpg", PICTURE_JPEG_BASELINE, rounds);
        measure_thumbnail("progressive-24.jpg", PICTURE_JPEG_PROGRESSIVE, rounds);
        return 0;
    }
    if (count > 2 && !strcmp(arguments[1], "--rounds")) {
        rounds = atoi(arguments[2]);
        first = 3;
    }
    if (rounds < 1 || rounds > MOST_ROUNDS)
        fail("rounds: 1 to 99");
    puts("| file             | by hand, | whole | 64 K, |  with | partials | 1000 / | allowed |\n"
         "|                  |       ms |       | unseen | partials |     |  64 K  |         |\n"
         "|------------------|---------:|------:|------:|------:|---------:|-------:|--------:|");
    if (first < count)
        for (int i = first; i < count; i++)
            measure(find(arguments[i]), rounds);
    else
        for (int i = 0; i < PICTURES; i++)
            measure(&pictures[i], rounds);
    return is_too_much;
}
