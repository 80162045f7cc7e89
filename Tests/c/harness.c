#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "support.h"

static struct test *first, **last = &first;
static int argument_count;
static char **arguments;
static volatile int failures; /* of the running test; several threads may add */

void harness_register(struct test *test)
{
    *last = test;
    last = &test->next;
}

void harness_fail(const char *file, int line, const char *format, ...)
{
    __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    char text[4096];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fprintf(stderr, "    %s:%d: %s\n", file, line, text);
}

int harness_failures(void)
{
    return failures;
}

_Noreturn void harness_abandon(void)
{
    _exit(1);
}

_Noreturn void harness_skip(const char *why)
{
    fprintf(stderr, "    test skipped: %s\n", why);
    _exit(SKIPPED);
}

const char *harness_argument(const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argument_count; i++)
        if (!strncmp(arguments[i], "--", 2) && !strcmp(arguments[i] + 2, name))
            return arguments[i + 1];
    return otherwise;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static _Noreturn void run_here(const struct test *test)
{
    test->run();
    fflush(NULL);
    _exit(failures ? 1 : 0);
}

/* Sanitizers take Swift's dynamic runtime, whose locks go by a thread number that fork() makes wrong: two threads that want
 * one of them would wait for ever (Sources/CShims/System/fork.c). */
static const struct test *running;

_Noreturn void harness_begin_anew(void)
{
    char **values = calloc((size_t)argument_count + 3, sizeof *values);
    memcpy(values, arguments, (size_t)argument_count * sizeof *values);
    values[argument_count] = "--alone";
    char title[256];
    snprintf(title, sizeof title, "%s: %s", running->suite, running->name);
    values[argument_count + 1] = title;
    support_hand_over();
    execv("/proc/self/exe", values);
    harness_abandon();
}

/* In a process group of its own, so that what it forks ends with it. SIGALRM is the deadline. */
static int run(const struct test *test, char *ending, size_t capacity)
{
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) {
        running = test;
        setpgid(0, 0);
        alarm(test->deadline);
        if (UNDER_SANITIZER)
            harness_begin_anew();
        run_here(test);
    }
    setpgid(process, process);
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {}
    kill(-process, SIGKILL);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(ending, capacity, "not done after %u s", test->deadline);
    else if (WIFSIGNALED(status))
        snprintf(ending, capacity, "ended by %s", strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) > 1 && WEXITSTATUS(status) != SKIPPED)
        snprintf(ending, capacity, "exit status %d", WEXITSTATUS(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Whether a title holds one of the texts between the bars of `texts`. */
static bool holds_one(const char *title, const char *texts)
{
    for (;;) {
        size_t length = strcspn(texts, "|");
        char text[128];
        snprintf(text, sizeof text, "%.*s", (int)length, texts);
        if (strstr(title, text))
            return true;
        if (!texts[length])
            return false;
        texts += length + 1;
    }
}

/* imgdl-tests [--only TEXT[|TEXT…]] [--not TEXT[|TEXT…]] [--repeat N] [--NAME VALUE for the tests] */
int main(int argc, char **argv)
{
    argument_count = argc;
    arguments = argv;
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *alone = harness_argument("alone", NULL);
    if (alone) {
        support_take_over();
        for (const struct test *test = first; test; test = test->next) {
            char title[256];
            snprintf(title, sizeof title, "%s: %s", test->suite, test->name);
            if (strcmp(title, alone))
                continue;
            running = test;
            run_here(test);
        }
    }
    const char *only = harness_argument("only", ""), *except = harness_argument("not", NULL);
    long repeat = strtol(harness_argument("repeat", "1"), NULL, 10);
    unsigned passed = 0, failed = 0, skipped = 0;
    for (; repeat > 0; repeat--) {
        support_start(); /* each time anew: gates that were opened stay open */
        for (const struct test *test = first; test; test = test->next) {
            char title[256], ending[128] = "";
            snprintf(title, sizeof title, "%s: %s", test->suite, test->name);
            if (!holds_one(title, only) || (except && holds_one(title, except)))
                continue;
            double start = now();
            int result = run(test, ending, sizeof ending);
            *(result == 0 ? &passed : result == SKIPPED ? &skipped : &failed) += 1;
            printf("%-4s %s (%.2f s)%s%s\n", result == 0 ? "ok" : result == SKIPPED ? "skip" : "FAIL", title,
                   now() - start, ending[0] ? ": " : "", ending);
        }
        support_stop();
    }
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed || passed + skipped == 0;
}
