/* What loading and unloading the library does to a process: nothing. Not linked with it. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned passed, failed;

static void report(int holds, const char *what)
{
    *(holds ? &passed : &failed) += 1;
    printf("%-4s loading: %s\n", holds ? "ok" : "FAIL", what);
}

static unsigned count_in(const char *path)
{
    DIR *directory = opendir(path);
    unsigned count = 0;
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

enum { SIGNALS = 65 };

static void read_dispositions(struct sigaction actions[SIGNALS], stack_t *stack)
{
    memset(actions, 0, SIGNALS * sizeof *actions);
    for (int number = 1; number < SIGNALS; number++)
        sigaction(number, NULL, &actions[number]);
    memset(stack, 0, sizeof *stack);
    sigaltstack(NULL, stack);
}

int main(int argc, char **argv)
{
    char self[4096], path[4200], folder[PATH_MAX], folder_after[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return 2;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(path, sizeof path, "%s/../lib/libimgdl.so.1", self);
    if (argc > 1)
        snprintf(path, sizeof path, "%s", argv[1]);

    struct sigaction before[SIGNALS], after[SIGNALS];
    stack_t stack_before, stack_after;
    sigset_t mask_before, mask_after;
    read_dispositions(before, &stack_before);
    sigprocmask(SIG_SETMASK, NULL, &mask_before);
    unsigned threads = count_in("/proc/self/task"), descriptors = count_in("/proc/self/fd");
    char *locale = strdup(setlocale(LC_ALL, NULL));
    int has_folder = getcwd(folder, sizeof folder) != NULL;

    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("FAIL loading: %s\n0 passed, 1 failed, 0 skipped\n", dlerror());
        return 1;
    }
    uint32_t (*version)(void);
    *(void **)&version = dlsym(library, "imgdl_version");
    report(version && version() >= 1000000, "the version can be asked for");

    for (int again = 0; again < 2; again++) {
        read_dispositions(after, &stack_after);
        int same = 1;
        for (int number = 1; number < SIGNALS; number++)
            if (before[number].sa_handler != after[number].sa_handler ||
                before[number].sa_flags != after[number].sa_flags) {
                printf("     signal %d has another disposition\n", number);
                same = 0;
            }
        report(same, again ? "unloading changes no signal disposition" : "loading changes no signal disposition");
        report(stack_before.ss_flags == stack_after.ss_flags, "no alternate signal stack is set");
        sigprocmask(SIG_SETMASK, NULL, &mask_after);
        report(memcmp(&mask_before, &mask_after, sizeof mask_after) == 0, "the signal mask is as it was");
        report(count_in("/proc/self/task") == threads, "no thread is started");
        report(count_in("/proc/self/fd") == descriptors, "no descriptor is left open");
        report(strcmp(locale, setlocale(LC_ALL, NULL)) == 0, "the locale is as it was");
        report(has_folder && getcwd(folder_after, sizeof folder_after) && !strcmp(folder, folder_after),
               "the working directory is as it was");
        if (!again)
            report(dlclose(library) == 0, "dlclose does no harm");
    }
    report(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == library, "the library stays where it is (NODELETE)");
    free(locale);
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
