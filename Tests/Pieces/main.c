/* imgdl-pieces [--seed N] [--seconds N] [--mutations N | --cases N | --case N] [--found FOLDER] FILE-OR-FOLDER…
 *
 * Plays pictures in ways that must not matter: see README.md. With --mutations every file as it is first, and then so many
 * more cases; otherwise a sample, for 30 s or as long as is said, and of so many cases at most as --cases says. A case that fails can be played again with --seed and --case
 * and the same files; --found keeps its bytes. The seed is IMGDL_SEED where there is one and none is said.
 *
 * Ends with the line `N passed, N failed, N skipped`, a case being one, and the look at whether differences are seen another. */
#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    MOST_TOLD = 40,
    MOST_PIXELS = 4000000,
    /* Most files are chosen smaller: more of them are played. */
    SMALL = 12 << 10,
    /* Each piece costs some calls of the system's. */
    MOST_PIECES = 12 << 10,
};

static uint64_t seed;
static struct files files;
static const char *found_folder;
static unsigned long told;

static void tell(const struct file *file, uint64_t number, const char *way, const char *what, struct bytes bytes)
{
    if (told++ >= MOST_TOLD)
        return;
    printf("FAIL --seed %llu --case %llu, %s, %s: %s\n", (unsigned long long)seed, (unsigned long long)number,
           file->path, way, what);
    fflush(stdout);
    if (!found_folder)
        return;
    char path[4096];
    const char *dot = strrchr(file->path, '.');
    snprintf(path, sizeof path, "%s/%llu-%llu%s", found_folder, (unsigned long long)seed, (unsigned long long)number,
             dot ? dot : "");
    mkdir(found_folder, 0777);
    FILE *out = fopen(path, "wb");
    if (out) {
        fwrite(bytes.start, 1, bytes.size, out);
        fclose(out);
    }
}

/* What the pictures are to be, the same for all ways of a case. */
static void choose_options(imgdl_decode_options *options)
{
    imgdl_decode_options_init(options, sizeof *options);
    options->max_pixels = MOST_PIXELS;
    options->flags = IMGDL_DECODE_SALVAGE;
    if (chance(2) == 0)
        options->pixel_format = chance(IMGDL_PIXEL_FORMAT_RGBA16 + 1);
    if (chance(4) == 0) {
        options->target_width = 1 + chance(64);
        options->target_height = chance(2) ? 1 + chance(64) : 0;
    }
    if (chance(4) == 0)
        options->colour = IMGDL_COLOUR_SRGB;
    if (chance(4) == 0)
        options->flags |= IMGDL_DECODE_IGNORE_ORIENTATION;
    if (chance(8) == 0)
        options->flags |= IMGDL_DECODE_THUMBNAIL_FIRST;
}

static int play_all_ways(
    const struct file *file, uint64_t number, struct bytes bytes, const imgdl_decode_options *options, struct outcome *whole)
{
    const int has_all = (options->flags & IMGDL_DECODE_ALL_FRAMES) != 0;
    const size_t odd[] = {2, 3, 7, 61, 251, 997, 4093, 16381};
    const size_t size = odd[chance(sizeof odd / sizeof *odd)];
    const size_t small = 1 + bytes.size / MOST_PIECES;
    const struct cut cuts[] = {
        {small == 1 ? "single bytes" : "small pieces", small, small, 0},
        {small == 1 ? "single bytes, looked at" : "small pieces, looked at", small, small, 1 + chance(40)},
        {"pieces of one odd size, looked at", size, size, 1 + chance(3)},
        {"pieces of chance", 1, 1 + chance(5000), 0},
    };
    char words[MESSAGE], way[128], what[2 * MESSAGE + 256];
    *whole = decode(bytes, options, (struct cut){"whole", 0, 0, 0}, words);
    int failures = 0;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        struct outcome other = decode(bytes, options, cuts[i], words);
        const char *different = difference(whole, &other);
        /* imgdl_decode does not tell: the others are held against the first of them. */
        if (whole->alpha == UNKNOWN)
            whole->alpha = other.alpha;
        snprintf(way, sizeof way, "%s%s", cuts[i].name, has_all ? ", all frames" : "");
        if (different) {
            snprintf(what, sizeof what, "%s: %s%s%s%s, not %s%s%s%s", different, imgdl_error_name(other.status),
                     *other.message ? " (" : "", other.message, *other.message ? ")" : "", imgdl_error_name(whole->status),
                     *whole->message ? " (" : "", whole->message, *whole->message ? ")" : "");
            tell(file, number, way, what, bytes);
        } else if (*words) {
            tell(file, number, way, words, bytes);
        }
        failures += different || *words;
    }
    return failures;
}

static int play(const struct file *file, uint64_t number, struct bytes bytes)
{
    imgdl_decode_options options;
    choose_options(&options);
    struct outcome first, all;
    int failures = play_all_ways(file, number, bytes, &options, &first);
    options.flags |= IMGDL_DECODE_ALL_FRAMES;
    failures += play_all_ways(file, number, bytes, &options, &all);
    if (first.status == IMGDL_OK && all.status == IMGDL_OK && first.pixels[0] != all.pixels[0]) {
        tell(file, number, "the first frame alone", "other pixels than among all", bytes);
        failures++;
    }
    return failures;
}

/* The first cases are the files as they are; of the others most are damaged. */
static int play_case(uint64_t number)
{
    begin_case(seed, number);
    if (number < files.count)
        return play(&files.all[number], number, files.all[number].bytes);
    uint32_t tries = chance(8) > 0 ? 20 : 0;
    const struct file *file;
    do
        file = &files.all[chance((uint32_t)files.count)];
    while (file->bytes.size > SMALL && tries-- > 0);
    if (chance(5) == 0)
        return play(file, number, file->bytes);
    struct bytes bytes = damaged(file->bytes);
    int failures = play(file, number, bytes);
    free(bytes.start);
    return failures;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int usage(void)
{
    fputs("usage: imgdl-pieces [--seed N] [--seconds N] [--mutations N | --cases N | --case N] [--found FOLDER] FILE-OR-FOLDER…\n", stderr);
    return 2;
}

int main(int count, char **arguments)
{
    double seconds = 0;
    uint64_t mutations = 0, cases = UINT64_MAX, only = UINT64_MAX;
    const char *given = getenv("IMGDL_SEED");
    seed = given && *given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    for (int i = 1; i < count; i++) {
        const char *argument = arguments[i], *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (strncmp(argument, "--", 2) != 0) {
            read_files(&files, argument);
            continue;
        }
        if (!value)
            return usage();
        i++;
        if (!strcmp(argument, "--seed"))
            seed = strtoull(value, NULL, 0);
        else if (!strcmp(argument, "--seconds"))
            seconds = strtod(value, NULL);
        else if (!strcmp(argument, "--mutations"))
            mutations = strtoull(value, NULL, 0);
        else if (!strcmp(argument, "--cases"))
            cases = strtoull(value, NULL, 0);
        else if (!strcmp(argument, "--case"))
            only = strtoull(value, NULL, 0);
        else if (!strcmp(argument, "--found"))
            found_folder = value;
        else
            return usage();
    }
    if (files.count == 0)
        return usage();
    printf("seed %llu, %zu files\n", (unsigned long long)seed, files.count);
    fflush(stdout);
    const double start = now();
    const int is_one = only < UINT64_MAX, is_sample = !is_one && mutations == 0;
    if (seconds == 0)
        seconds = is_sample ? 30 : 1e9;
    const uint64_t first = is_one ? only : is_sample ? files.count : 0;
    const uint64_t sampled = cases < UINT64_MAX - files.count ? files.count + cases : UINT64_MAX;
    const uint64_t end = is_one ? only + 1 : is_sample ? sampled : files.count + mutations;
    const char *unseen = blindness();
    if (unseen)
        printf("FAIL a difference is not seen: %s\n", unseen);
    unsigned long passed = unseen == NULL, failed = unseen != NULL;
    for (uint64_t number = first; number < end && now() - start < seconds; number++) {
        int failures = play_case(number);
        passed += failures == 0;
        failed += failures != 0;
    }
    printf("%lu passed, %lu failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
