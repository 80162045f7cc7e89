/* imgdl's client in C: the same work as limit.c. Executor inline, event mask TERMINAL. As many requests are in work as
 * there as are there; each that ends hands over the next, from its callback. */
#include "client.h"

#include <imgdl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct run {
    struct client client;
    imgdl_downloader *downloader;
    imgdl_request request;
    /* Callbacks come on several threads when pictures are decoded. */
    pthread_mutex_t lock;
    pthread_cond_t has_ended;
    size_t next_url, outstanding;
};

static void hand_over(struct run *run);

static void on_end(const imgdl_event *event, void *context)
{
    struct run *run = context;
    pthread_mutex_lock(&run->lock);
    if (event->code == IMGDL_OK) {
        run->client.images++;
        run->client.bytes += event->data ? imgdl_data_length(event->data) : (unsigned long long)event->received;
        if (event->image)
            run->client.pixels +=
                (unsigned long long)imgdl_image_width(event->image) * imgdl_image_height(event->image);
    } else {
        client_failed(&run->client, event->message);
    }
    run->outstanding--;
    hand_over(run);
    if (run->outstanding == 0)
        pthread_cond_signal(&run->has_ended);
    pthread_mutex_unlock(&run->lock);
}

/* The next request, if there is one. Under the lock: no callback comes inside imgdl_download. */
static void hand_over(struct run *run)
{
    if (run->next_url == run->client.url_count)
        return;
    imgdl_request request = run->request;
    request.url = run->client.urls[run->next_url++];
    if (imgdl_download(run->downloader, &request, NULL) == IMGDL_OK)
        run->outstanding++;
    else
        client_failed(&run->client, imgdl_last_error());
}

int main(int count, char **arguments)
{
    struct run run = {.lock = PTHREAD_MUTEX_INITIALIZER, .has_ended = PTHREAD_COND_INITIALIZER};
    client_begin(&run.client, "imgdl", count, arguments);
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.max_concurrent = run.client.concurrency;
    config.ca_file = run.client.ca_file;
    config.decode_threads = 2;
    config.executor = IMGDL_EXECUTOR_INLINE;
    if (imgdl_downloader_create(&config, &run.downloader) != IMGDL_OK) {
        fprintf(stderr, "imgdl: %s\n", imgdl_last_error());
        return 1;
    }
    imgdl_request_init(&run.request, sizeof run.request);
    run.request.flags = run.client.decodes ? IMGDL_REQUEST_DECODE : IMGDL_REQUEST_BODY;
    run.request.event_mask = IMGDL_EVENT_TERMINAL;
    run.request.callback = on_end;
    run.request.user_data = &run;

    pthread_mutex_lock(&run.lock);
    for (size_t window = 2 * run.client.concurrency; window > 0; window--)
        hand_over(&run);
    while (run.outstanding > 0)
        pthread_cond_wait(&run.has_ended, &run.lock);
    pthread_mutex_unlock(&run.lock);
    if (imgdl_downloader_destroy(run.downloader) != IMGDL_OK)
        client_failed(&run.client, imgdl_last_error());
    return client_end(&run.client);
}
