/* What a play needs: pictures, an origin, a folder. */
#include "player.h"

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

void read_pictures(const char *folder)
{
    static struct picture all[64];
    DIR *entries = opendir(folder);
    if (!entries)
        give_up(folder);
    for (struct dirent *entry; (entry = readdir(entries)) && picture_count < 64;) {
        char path[4096];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!file || fstat(fileno(file), &status) != 0)
            continue;
        struct picture *picture = &all[picture_count++];
        *picture = (struct picture){strdup(entry->d_name), malloc((size_t)status.st_size + 1), (size_t)status.st_size};
        if (fread(picture->bytes, 1, picture->size, file) != picture->size)
            give_up(path);
        fclose(file);
    }
    closedir(entries);
    pictures = all;
    if (!picture_count)
        give_up("no pictures");
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
