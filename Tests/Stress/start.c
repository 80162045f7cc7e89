/* What a play needs: pictures, an origin, a folder. */
#include "player.h"
#include "../c/animations.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void give_up(const char *what)
{
    perror(what);
    exit(2);
}

static struct picture all[64];

/* Where the origin finds it, too. */
static void add_picture(const char *folder, const char *name, uint8_t *bytes, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        give_up(path);
    all[picture_count++] = (struct picture){strdup(name), bytes, size};
}

const char *read_pictures(const char *folder)
{
    static char served[512];
    snprintf(served, sizeof served, "%s/pictures", scratch_folder);
    if (mkdir(served, 0700) != 0)
        give_up(served);
    DIR *entries = opendir(folder);
    if (!entries)
        give_up(folder);
    for (struct dirent *entry; (entry = readdir(entries)) && picture_count < 60;) {
        char path[4096];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!file || fstat(fileno(file), &status) != 0)
            continue;
        size_t size = (size_t)status.st_size;
        uint8_t *bytes = malloc(size + 1);
        if (fread(bytes, 1, size, file) != size)
            give_up(path);
        fclose(file);
        add_picture(served, entry->d_name, bytes, size);
    }
    closedir(entries);
    if (!picture_count)
        give_up("no pictures");
    size_t size = 0;
    uint8_t *animation = animated_gif(&size);
    add_picture(served, "animated.gif", animation, size);
    animation = animated_png(&size);
    add_picture(served, "animated.png", animation, size);
    pictures = all;
    return served;
}

/* Ends when its input does, as this process ends. */
void start_origin(const char *program, const char *folder)
{
    static char base[256], secure[256], authority[4096];
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
        give_up("pipe");
    if (fork() == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        execl(program, program, "--until-eof", "--http2", "--root", folder, (char *)NULL);
        _exit(127);
    }
    close(input[0]);
    close(output[1]);
    FILE *lines = fdopen(output[0], "r");
    if (!lines || fscanf(lines, "listening on %255s http2=%255s http2_ca_file=%4095s", base, secure, authority) != 3)
        give_up(program);
    fclose(lines);
    origin = base;
    http2_origin = secure;
    http2_ca_file = authority;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

void remove_folder(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }
