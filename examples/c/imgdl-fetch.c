/* imgdl-fetch --urls FILE [--concurrency N] [--decode 0|1] [--cacert FILE]
 *
 * Downloads every URL of a file (one a line) and keeps nothing, 6 at a time and decoded unless told otherwise. Prints one
 * line of JSON when all have ended, and ends with 0 when all came, with 1 when any failed. The file is read as it is needed
 * and only a window of requests is handed over at a time, so memory does not grow with the file. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imgdl.h"

struct run {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned outstanding;
    unsigned long long images, bytes, pixels, errors;
};

enum { MAX_COMPLAINTS = 10 };

static void count_error(struct run *run, const char *message)
{
    if (run->errors++ < MAX_COMPLAINTS)
        fprintf(stderr, "imgdl-fetch: %s\n", message);
}

static void on_end(const imgdl_event *event, void *user_data)
{
    struct run *run = user_data;
    pthread_mutex_lock(&run->lock);
    if (event->code == IMGDL_OK) {
        run->images++;
        run->bytes += event->data ? imgdl_data_length(event->data) : (unsigned long long)event->received;
        run->pixels += (unsigned long long)imgdl_image_width(event->image) * imgdl_image_height(event->image);
    } else {
        count_error(run, event->message);
    }
    run->outstanding--;
    pthread_cond_signal(&run->ended);
    pthread_mutex_unlock(&run->lock);
}

static int usage(void)
{
    fprintf(stderr, "usage: imgdl-fetch --urls FILE [--concurrency N] [--decode 0|1] [--cacert FILE]\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *urls = NULL, *ca_file = NULL;
    unsigned long concurrency = 6;
    int decode = 1;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = "";
        if (!value)
            return usage();
        if (!strcmp(argv[i], "--urls"))
            urls = value;
        else if (!strcmp(argv[i], "--concurrency"))
            concurrency = strtoul(value, &end, 10);
        else if (!strcmp(argv[i], "--decode"))
            decode = strtol(value, &end, 10) != 0;
        else if (!strcmp(argv[i], "--cacert"))
            ca_file = value;
        else
            return usage();
        if (*end)
            return usage();
    }
    if (!urls || concurrency < 1 || concurrency > IMGDL_MAX_CONCURRENT_LIMIT)
        return usage();
    FILE *file = fopen(urls, "r");
    if (!file) {
        fprintf(stderr, "imgdl-fetch: cannot read %s: %s\n", urls, strerror(errno));
        return 1;
    }

    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.max_concurrent = (uint32_t)concurrency;
    config.ca_file = ca_file;
    config.executor = IMGDL_EXECUTOR_INLINE; /* on_end is quick */
    imgdl_downloader *downloader = NULL;
    if (imgdl_downloader_create(&config, &downloader) != IMGDL_OK) {
        fprintf(stderr, "imgdl-fetch: %s\n", imgdl_last_error());
        fclose(file);
        return 1;
    }

    struct run run = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.flags = decode ? IMGDL_REQUEST_DECODE : IMGDL_REQUEST_BODY;
    request.callback = on_end;
    request.user_data = &run;

    /* Twice what may run: when a transfer ends, the next one already waits. */
    const unsigned window = 2 * (unsigned)concurrency;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, file)) > 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        if (length == 0)
            continue;
        pthread_mutex_lock(&run.lock);
        while (run.outstanding >= window)
            pthread_cond_wait(&run.ended, &run.lock);
        run.outstanding++;
        pthread_mutex_unlock(&run.lock);

        request.url = line;
        if (imgdl_download(downloader, &request, NULL) != IMGDL_OK) {
            pthread_mutex_lock(&run.lock);
            count_error(&run, imgdl_last_error());
            run.outstanding--;
            pthread_mutex_unlock(&run.lock);
        }
    }
    const int reading_failed = ferror(file); /* of a folder already with its first line */
    if (reading_failed)
        fprintf(stderr, "imgdl-fetch: cannot read %s: %s\n", urls, strerror(errno));
    free(line);
    fclose(file);

    pthread_mutex_lock(&run.lock);
    while (run.outstanding > 0)
        pthread_cond_wait(&run.ended, &run.lock);
    pthread_mutex_unlock(&run.lock);
    if (imgdl_downloader_destroy(downloader) != IMGDL_OK) {
        fprintf(stderr, "imgdl-fetch: %s\n", imgdl_last_error());
        return 1;
    }

    printf("{\"images\":%llu,\"bytes\":%llu,\"pixels\":%llu,\"errors\":%llu}\n", run.images, run.bytes, run.pixels,
           run.errors);
    return run.errors > 0 || reading_failed;
}
