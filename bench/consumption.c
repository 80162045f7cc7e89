/* consumption OUTPUT COMMAND [ARGUMENT …]: runs a command and writes what it took to the file OUTPUT, as JSON: CPU
 * seconds of the process and of those it waited for, wall seconds, the largest peak of resident memory in KiB, and its
 * exit status.
 * A program of its own because a process begins with the peak of the one that started it: this one's is a megabyte. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
    if (count < 3) {
        fprintf(stderr, "usage: consumption OUTPUT COMMAND [ARGUMENT …]\n");
        return 2;
    }
    double start = now();
    pid_t child = fork();
    if (child == 0) {
        execvp(arguments[2], arguments + 2);
        fprintf(stderr, "consumption: %s: %s\n", arguments[2], strerror(errno));
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror("consumption");
        return 1;
    }
    double wall = now() - start;
    FILE *output = fopen(arguments[1], "w");
    if (!output) {
        perror(arguments[1]);
        return 1;
    }
    fprintf(output, "{\"user\":%.6f,\"system\":%.6f,\"wall\":%.6f,\"peak\":%ld,\"status\":%d}\n",
            seconds(usage.ru_utime), seconds(usage.ru_stime), wall, usage.ru_maxrss,
            WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    return fclose(output) != 0;
}
