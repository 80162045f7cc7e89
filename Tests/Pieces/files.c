/* The pictures that are played: every file of the corpus that some decoder takes for its own. */
#include "files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_some_format(const uint8_t *start, size_t size)
{
    return size >= 12 && (memcmp(start, "\xFF\xD8", 2) == 0 || memcmp(start, "\x89PNG", 4) == 0 ||
                          memcmp(start, "GIF8", 4) == 0 || memcmp(start, "RIFF", 4) == 0);
}

static void read_file(struct files *files, const char *path, size_t size)
{
    uint8_t *start = malloc(size + 1);
    FILE *file = fopen(path, "rb");
    if (!start || !file || fread(start, 1, size, file) != size) {
        perror(path);
        exit(2);
    }
    fclose(file);
    if (!is_some_format(start, size)) {
        free(start);
        return;
    }
    if (files->count % 256 == 0) {
        files->all = realloc(files->all, (files->count + 256) * sizeof *files->all);
        if (!files->all)
            abort();
    }
    files->all[files->count++] = (struct file){strdup(path), {start, size}};
}

void read_files(struct files *files, const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0) {
        perror(path);
        exit(2);
    }
    if (!S_ISDIR(about.st_mode)) {
        read_file(files, path, (size_t)about.st_size);
        return;
    }
    struct dirent **entries = NULL;
    /* In the order of their names: the same case is the same everywhere. */
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        perror(path);
        exit(2);
    }
    for (int i = 0; i < count; i++) {
        char inner[4096];
        if (entries[i]->d_name[0] != '.') {
            snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
            read_files(files, inner);
        }
        free(entries[i]);
    }
    free(entries);
}
