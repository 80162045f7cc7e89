#define _GNU_SOURCE
#include "cstore.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int store_open_folder(int folder, const char *name)
{
    return openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int store_open_inside(int folder, const char *path, int access)
{
    struct open_how how = {
        .flags = (uint64_t)access,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

void store_empty_file(const char *path)
{
    int descriptor = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
        return;
    struct stat status;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        char name[32];
        snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
        /* Without /proc it stays as it is. */
        int result = truncate(name, 0);
        (void)result;
    }
    close(descriptor);
}
