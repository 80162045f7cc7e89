/* hostile-crowd NAME=VALUE…: one hostile answer of many servers at once, in a process of its own, and how late others hear
 * meanwhile, as JSON. Tests/Hostile/run starts it, and says what must have come out.
 *
 *   url             of the answer, as often as there are servers
 *   partitions      1: each of them is asked with connections of its own kind, as for as many accounts
 *   neighbour       a picture of another server
 *   flags, ca_file  of the requests to the crowd, and of the downloader
 *
 * Late is what the downloader's thread works between the moment in which something is due and the moment in which it is told:
 * no other process adds to that. What is told is told on that thread, which looks at its own time.
 */
#include "questions.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

enum { EACH = 8, PICTURES = 32, TIMEOUT_MS = 100, BETWEEN_MS = 30, MAXIMUM = 256 };

static int argument_count;
static char **arguments;
/* Of the downloader's thread. */
static clockid_t engine;

static const char *argument(const char *name, int *from)
{
    size_t length = strlen(name);
    for (; *from < argument_count; ++*from)
        if (strncmp(arguments[*from], name, length) == 0 && arguments[*from][length] == '=')
            return arguments[(*from)++] + length + 1;
    return NULL;
}

static const char *only_argument(const char *name)
{
    int from = 1;
    return argument(name, &from);
}

static void print_latenesses(const char *name, const double *late, int count)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < count; i++)
        printf("%s%.1f", i ? ", " : "", late[i]);
    printf("], ");
}

static void look_at_timeouts(imgdl_downloader *downloader, const char *silence)
{
    double late[EACH];
    for (int i = 0; i < EACH; i++) {
        struct question question;
        char url[96];
        snprintf(url, sizeof url, "%stimeout-%d", silence, i);
        double until = in_ms(CLOCK_MONOTONIC) + TIMEOUT_MS;
        ask(downloader, &question, url, TIMEOUT_MS);
        sleep_until(until);
        late[i] = lateness(&question, in_ms(engine), IMGDL_ERROR_TOTAL_TIMEOUT, "a total timeout");
    }
    print_latenesses("timeouts_late", late, EACH);
}

static void look_at_cancellations(imgdl_downloader *downloader, const char *silence)
{
    double late[EACH];
    for (int i = 0; i < EACH; i++) {
        struct question question;
        char url[96];
        snprintf(url, sizeof url, "%scancelled-%d", silence, i);
        ask(downloader, &question, url, 0);
        sleep_until(in_ms(CLOCK_MONOTONIC) + BETWEEN_MS);
        double due = in_ms(engine);
        ensure(imgdl_token_cancel(question.token) == IMGDL_OK, "a cancellation");
        late[i] = lateness(&question, due, IMGDL_ERROR_CANCELLED, "a cancellation");
    }
    print_latenesses("cancellations_late", late, EACH);
}

static void look_at_pictures(imgdl_downloader *downloader, const char *url)
{
    double late[PICTURES];
    for (int i = 0; i < PICTURES; i++) {
        struct question question;
        double due = in_ms(engine);
        ask(downloader, &question, url, 0);
        late[i] = lateness(&question, due, IMGDL_OK, "the neighbour's picture");
    }
    print_latenesses("pictures_late", late, PICTURES);
}

/* ---- The crowd */

static struct {
    sem_t answers, ends;
    atomic_uint ended_early, floods;
    int64_t least_received;
    atomic_int is_over;
} crowd;

static void on_crowd_event(const imgdl_event *event, void *user_data)
{
    (void)user_data;
    if (event->kind == IMGDL_EVENT_RESPONSE)
        sem_post(&crowd.answers);
    if (event->kind != IMGDL_EVENT_TERMINAL)
        return;
    if (!atomic_load(&crowd.is_over)) {
        atomic_fetch_add(event->code == IMGDL_ERROR_FLOOD ? &crowd.floods : &crowd.ended_early, 1);
        fprintf(stderr, "one of the crowd: %s: %s\n", imgdl_error_name(event->code), event->message ? event->message : "");
    }
    /* All of them end on one thread. */
    if (event->code != IMGDL_ERROR_FLOOD && event->received < crowd.least_received)
        crowd.least_received = event->received;
    sem_post(&crowd.ends);
}

static unsigned begin_crowd(imgdl_downloader *downloader)
{
    unsigned count = 0;
    int from = 1;
    const char *url, *flags = only_argument("flags");
    sem_init(&crowd.answers, 0, 0);
    sem_init(&crowd.ends, 0, 0);
    crowd.least_received = INT64_MAX;
    while ((url = argument("url", &from))) {
        char partition[16] = "";
        if (only_argument("partitions"))
            snprintf(partition, sizeof partition, "%u", count);
        imgdl_request request = question_request(url, on_crowd_event, NULL);
        request.event_mask = IMGDL_EVENT_RESPONSE;
        request.flags = flags ? (imgdl_request_flags)strtoul(flags, NULL, 10) : 0;
        request.partition = partition;
        ensure(imgdl_download(downloader, &request, NULL) == IMGDL_OK, "the crowd");
        count++;
    }
    wait_for(&crowd.answers, count, "the crowd's answers");
    return count;
}

int main(int count, char **values)
{
    const struct rlimit seconds = {60, 60}, none = {0, 0};
    argument_count = count;
    arguments = values;
    setrlimit(RLIMIT_CPU, &seconds);
    setrlimit(RLIMIT_CORE, &none);
    char silence[64];
    make_silence(silence, sizeof silence);

    imgdl_config config;
    imgdl_downloader *downloader = NULL;
    imgdl_config_init(&config, sizeof config);
    config.ca_file = only_argument("ca_file");
    config.proxy = "";
    config.max_concurrent = config.max_per_host = MAXIMUM;
    ensure(imgdl_downloader_create(&config, &downloader) == IMGDL_OK, "the downloader");
    /* Whatever is used for the first time is used here, and the engine's clock is known then. */
    struct question first;
    ask(downloader, &first, only_argument("neighbour"), 0);
    lateness(&first, 0, IMGDL_OK, "the neighbour alone");
    engine = first.engine;

    printf("{");
    unsigned servers = begin_crowd(downloader);
    double began = in_ms(CLOCK_MONOTONIC), worked = in_ms(engine);
    look_at_timeouts(downloader, silence);
    look_at_cancellations(downloader, silence);
    look_at_pictures(downloader, only_argument("neighbour"));
    printf("\"took_ms\": %.0f, \"worked_ms\": %.0f, ", in_ms(CLOCK_MONOTONIC) - began, in_ms(engine) - worked);
    atomic_store(&crowd.is_over, 1);
    ensure(imgdl_downloader_cancel_all(downloader) == IMGDL_OK, "the end");
    wait_for(&crowd.ends, servers, "the crowd's ends");
    ensure(imgdl_downloader_destroy(downloader) == IMGDL_OK, "the downloader's end");
    printf("\"servers\": %u, \"ended_early\": %u, \"floods\": %u, \"least_received\": %lld}\n", servers,
           atomic_load(&crowd.ended_early), atomic_load(&crowd.floods), (long long)crowd.least_received);
    return 0;
}
