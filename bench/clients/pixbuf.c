/* What GTK programs do: libcurl's multi interface, and each body fed to a GdkPixbufLoader as it arrives, on one
 * thread. */
#include "client.h"

#include <curl/curl.h>
#include <gdk-pixbuf/gdk-pixbuf.h>
#include <stdlib.h>

struct transfer {
    CURL *easy;
    GdkPixbufLoader *loader; /* while pictures are decoded */
    gboolean is_broken;
    unsigned long long bytes;
};

struct run {
    struct client client;
    CURLM *multi;
    size_t next_url;
    unsigned running;
};

static size_t receive(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    transfer->bytes += size * count;
    if (transfer->loader && !transfer->is_broken)
        transfer->is_broken = !gdk_pixbuf_loader_write(transfer->loader, (const guchar *)bytes, size * count, NULL);
    return size * count;
}

static void start(struct run *run, struct transfer *transfer)
{
    if (run->next_url == run->client.url_count)
        return;
    transfer->bytes = 0;
    transfer->is_broken = FALSE;
    transfer->loader = run->client.decodes ? gdk_pixbuf_loader_new() : NULL;
    curl_easy_setopt(transfer->easy, CURLOPT_URL, run->client.urls[run->next_url++]);
    curl_multi_add_handle(run->multi, transfer->easy);
    run->running++;
}

static void finish(struct run *run, struct transfer *transfer, CURLcode code)
{
    long status = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(run->multi, transfer->easy);
    run->running--;
    GError *error = NULL;
    if (transfer->loader && !gdk_pixbuf_loader_close(transfer->loader, &error))
        transfer->is_broken = TRUE;
    if (code != CURLE_OK || status != 200 || transfer->is_broken) {
        client_failed(&run->client, error ? error->message
                                    : code != CURLE_OK ? curl_easy_strerror(code) : "not a picture");
    } else {
        run->client.images++;
        run->client.bytes += transfer->bytes;
        /* Of an animation its first frame. */
        GdkPixbuf *picture = transfer->loader ? gdk_pixbuf_loader_get_pixbuf(transfer->loader) : NULL;
        if (picture)
            run->client.pixels += (unsigned long long)gdk_pixbuf_get_width(picture) * gdk_pixbuf_get_height(picture);
    }
    g_clear_error(&error);
    g_clear_object(&transfer->loader);
    start(run, transfer);
}

int main(int count, char **arguments)
{
    struct run run = {0};
    client_begin(&run.client, "pixbuf", count, arguments);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(run.multi = curl_multi_init()))
        return 1;
    curl_multi_setopt(run.multi, CURLMOPT_MAXCONNECTS, (long)run.client.concurrency);
    struct transfer *transfers = calloc(run.client.concurrency, sizeof *transfers);
    for (unsigned i = 0; i < run.client.concurrency; i++) {
        CURL *easy = transfers[i].easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfers[i]);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfers[i]);
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 65536L);
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
        if (run.client.ca_file)
            curl_easy_setopt(easy, CURLOPT_CAINFO, run.client.ca_file);
        start(&run, &transfers[i]);
    }
    while (run.running > 0) {
        int running, left;
        CURLMsg *message;
        curl_multi_perform(run.multi, &running);
        while ((message = curl_multi_info_read(run.multi, &left))) {
            struct transfer *transfer;
            CURLcode code = message->data.result;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
            finish(&run, transfer, code);
        }
        if (running == (int)run.running)
            curl_multi_poll(run.multi, NULL, 0, 1000, NULL);
    }
    for (unsigned i = 0; i < run.client.concurrency; i++)
        curl_easy_cleanup(transfers[i].easy);
    curl_multi_cleanup(run.multi);
    free(transfers);
    return client_end(&run.client);
}
