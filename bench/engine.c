/* What our own engine costs, beside what is allowed (docs/performance.md): the processor's time and memory of requests
 * that wait, are cancelled, are answered and join; how late a terminal comes; how soon the first request is out.
 *
 *   engine table FIRST-REQUEST LIBRARY   medians of several processes for each row
 *   engine ROW NUMBER…                   one of them, as bench/engine.h says */
#include "engine.h"
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RUNS = 5, MOST_NUMBERS = 5 };

static const char *self;

/* The medians of what several runs of the command print. */
static void run(const char *command, int runs, double medians[MOST_NUMBERS])
{
    double numbers[MOST_NUMBERS][RUNS] = {0};
    for (int i = 0; i < runs; i++) {
        FILE *output = popen(command, "r");
        for (int n = 0; n < MOST_NUMBERS && fscanf(output, "%lf", &numbers[n][i]) == 1; n++)
            ;
        if (pclose(output) != 0)
            fail(command);
    }
    for (int n = 0; n < MOST_NUMBERS; n++)
        medians[n] = median(numbers[n], runs);
}

static void row(const char *what, double value, const char *unit, double allowed)
{
    printf("| %-58s | %8.2f %-2s | %7.2f |\n", what, value, unit, allowed);
    fflush(stdout);
}

static void numbers(const char *name, int count, int runs, double medians[MOST_NUMBERS])
{
    char command[4096];
    snprintf(command, sizeof command, "'%s' %s %d", self, name, count);
    run(command, runs, medians);
}

static void waiting_rows(void)
{
    static const int standing[] = {10, 1000, 100000, 1000000};
    double first[MOST_NUMBERS] = {0}, last[MOST_NUMBERS] = {0};
    for (size_t i = 0; i < sizeof standing / sizeof *standing; i++) {
        double *now = i == 0 ? first : last;
        numbers("waiting", standing[i], standing[i] > 100000 ? 3 : RUNS, now);
        char what[100];
        snprintf(what, sizeof what, "enqueue, beside %d that wait; all cancelled at once", standing[i]);
        row(what, now[0] + now[2], "us", standing[i] > 100000 ? 2 * (first[0] + first[2]) : 3);
        snprintf(what, sizeof what, "cancel one of %d that wait, to its terminal", standing[i] + 10000);
        row(what, now[1], "us", 2);
        if (now[3] > 0) {
            snprintf(what, sizeof what, "memory of one of %d that wait (resident: %.0f)", standing[i], now[4]);
            row(what, now[3], "B", 500);
        }
    }
    double decades = log(1000000.0 / 10);
    printf("|   exponents from 10 to 1000000: enqueue %.3f, cancel %.3f\n",
           log((last[0] + last[2]) / (first[0] + first[2])) / decades, log(last[1] / first[1]) / decades);
}

static void joining_rows(void)
{
    static const int counts[] = {10, 1000, 100000};
    double first = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        double medians[MOST_NUMBERS];
        char what[100];
        numbers("joining", counts[i], RUNS, medians);
        snprintf(what, sizeof what, "join a running transfer, %d do, to the terminal", counts[i]);
        row(what, medians[0], "us", 3);
        if (i == 0)
            first = medians[0];
        else
            row("  memory of one that has joined", medians[1], "B", 300);
        if (counts[i] == 100000)
            printf("|   exponent from 10 to 100000: %.3f\n", log(medians[0] / first) / log(10000));
    }
}

static void table(const char *first_request, const char *library)
{
    double medians[MOST_NUMBERS];
    printf("| %-58s | %11s | allowed |\n|%.60s|%.12s:|--------:|\n", "", "median",
           "------------------------------------------------------------", "------------------");
    waiting_rows();
    numbers("answered", 10000, RUNS, medians);
    printf("| %-58s | %8.2f us |         |\n", "download() to terminal, a transport that answers at once", medians[0]);
    joining_rows();
    numbers("latency", 1000, RUNS, medians);
    char what[100];
    snprintf(what, sizeof what, "terminal after the last byte (%.0f) less libcurl's (%.0f)", medians[0], medians[1]);
    row(what, medians[0] - medians[1], "us", 20);
    run(first_request, RUNS, medians);
    row("dlopen to the first request on the wire, http", medians[0], "ms", 15);
    struct stat status;
    if (stat(library, &status))
        fail(library);
    row("size of the library, stripped", (double)status.st_size / 1e6, "MB", 10);
}

static int number(char *text)
{
    int value = text ? atoi(text) : 0;
    if (value < 1)
        fail("a number is missing");
    return value;
}

int main(int count, char **arguments)
{
    self = arguments[0];
    if (count == 3 && strcmp(arguments[1], "table") != 0) {
        int value = number(arguments[2]);
        const char *name = arguments[1];
        if (strcmp(name, "waiting") == 0)
            measure_waiting(value);
        else if (strcmp(name, "answered") == 0)
            measure_answered(value);
        else if (strcmp(name, "joining") == 0)
            measure_joining(value);
        else if (strcmp(name, "latency") == 0)
            measure_latency(value);
        else
            fail("no such row");
    } else if (count == 4 && strcmp(arguments[1], "chunks") == 0) {
        run_chunks(number(arguments[2]), number(arguments[3]));
    } else if (count == 4 && strcmp(arguments[1], "table") == 0) {
        table(arguments[2], arguments[3]);
    } else {
        fail("table FIRST-REQUEST LIBRARY, or ROW NUMBER");
    }
}
