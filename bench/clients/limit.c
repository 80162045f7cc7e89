/* The limit program: what is left when nothing is done but the transfers and the decoding. libcurl's multi interface
 * on one thread (perform and poll, the cheaper of its two for so few transfers), easy handles, connections, bodies and
 * canvases used again; the codecs called by hand, with one call for a whole body, on two threads. No queue, no
 * sharing, no cancelling, no limits; a picture that cannot be decoded ends it.
 *
 * As imgdl's client it has up to twice as many requests in work as transfers may run: the others are decoded, or wait
 * for it. Each body is collected, from one end to the other, and each picture decoded to RGBA8.
 *
 * With SENDS_FIELDS it asks for pictures as imgdl does by default, with two header fields more and a longer Accept: what
 * these cost is libcurl's, and no part of what rows are held against. */
#include "../hand.h"
#include "client.h"
#ifdef SENDS_FIELDS
#include <imgdl.h>
#endif

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DECODERS = 2, BUFFER = 64 * 1024 };

struct body {
    unsigned char *bytes;
    size_t length, capacity;
    CURL *easy; /* while it arrives */
    struct body *next;
};

struct stack {
    struct body *first;
};

static void push(struct stack *stack, struct body *body)
{
    body->next = stack->first;
    stack->first = body;
}

static struct body *pop(struct stack *stack)
{
    struct body *body = stack->first;
    if (body)
        stack->first = body->next;
    return body;
}

struct run {
    struct client client;
    CURLM *multi;
    size_t next_url;
    unsigned running;
    struct stack idle; /* the network thread's own */
    CURL **easies;     /* those without a transfer */
    unsigned easy_count;

    pthread_mutex_t lock;
    pthread_cond_t has_work;
    struct body *first, **last; /* to decode, in order */
    struct stack decoded;
    int is_over, is_starved; /* the network thread waits for a body */
    unsigned long long pixels, failures;
};

static void fail(const char *what)
{
    fprintf(stderr, "limit: %s\n", what);
    exit(1);
}

/* ---- Transfers */

static void reserve(struct body *body, size_t capacity)
{
    if (capacity <= body->capacity)
        return;
    body->bytes = realloc(body->bytes, capacity);
    if (!body->bytes)
        fail("no memory");
    body->capacity = capacity;
}

static size_t collect(char *bytes, size_t size, size_t count, void *context)
{
    struct body *body = context;
    count *= size;
    if (body->length + count > body->capacity) {
        curl_off_t announced = -1;
        curl_easy_getinfo(body->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
        size_t needed = body->length + count;
        reserve(body, announced > (curl_off_t)needed ? (size_t)announced : 2 * needed);
    }
    memcpy(body->bytes + body->length, bytes, count);
    body->length += count;
    return count;
}

#ifdef SENDS_FIELDS
static struct curl_slist *fields(void)
{
    static struct curl_slist user_agent = {"User-Agent: imgdl/" IMGDL_VERSION_STRING, NULL},
                             coding = {"Accept-Encoding: gzip, br, zstd", &user_agent},
                             accept = {"Accept: image/*,*/*;q=0.8", &coding};
    return &accept;
}
#endif

static CURL *new_easy(const struct client *client)
{
    CURL *easy = curl_easy_init();
    if (!easy)
        fail("no memory");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
#ifdef SENDS_FIELDS
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields());
#endif
    if (client->ca_file) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_file);
        /* With a folder libcurl reads the file anew for each connection. */
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    return easy;
}

/* Whether it is a body that is missing to start more. */
static int start_transfers(struct run *run)
{
    while (run->easy_count > 0 && run->next_url < run->client.url_count) {
        struct body *body = pop(&run->idle);
        if (!body) {
            pthread_mutex_lock(&run->lock);
            run->idle = run->decoded;
            run->decoded.first = NULL;
            run->is_starved = !run->idle.first;
            pthread_mutex_unlock(&run->lock);
            body = pop(&run->idle);
        }
        if (!body)
            return 1;
        body->length = 0;
        body->easy = run->easies[--run->easy_count];
        curl_easy_setopt(body->easy, CURLOPT_URL, run->client.urls[run->next_url++]);
        curl_easy_setopt(body->easy, CURLOPT_WRITEDATA, body);
        curl_easy_setopt(body->easy, CURLOPT_PRIVATE, body);
        curl_multi_add_handle(run->multi, body->easy);
        run->running++;
    }
    return 0;
}

static void hand_to_decoders(struct run *run, struct body *body)
{
    body->next = NULL;
    pthread_mutex_lock(&run->lock);
    *run->last = body;
    run->last = &body->next;
    pthread_cond_signal(&run->has_work);
    pthread_mutex_unlock(&run->lock);
}

static void finish_transfers(struct run *run)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(run->multi, &left))) {
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        struct body *body;
        long status = 0;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &body);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_multi_remove_handle(run->multi, easy);
        run->easies[run->easy_count++] = easy;
        run->running--;
        if (code != CURLE_OK || status != 200) {
            client_failed(&run->client, code != CURLE_OK ? curl_easy_strerror(code) : "not status 200");
            push(&run->idle, body);
            continue;
        }
        run->client.images++;
        run->client.bytes += body->length;
        if (run->client.decodes)
            hand_to_decoders(run, body);
        else
            push(&run->idle, body);
    }
}

static void transfer_all(struct run *run)
{
    for (;;) {
        int is_starved = start_transfers(run);
        if (!run->running && run->next_url == run->client.url_count)
            return;
        int still_running;
        curl_multi_perform(run->multi, &still_running);
        finish_transfers(run);
        /* Also for a decoder that gives a body back. */
        if (is_starved || (run->running && (run->easy_count == 0 || run->next_url == run->client.url_count)))
            curl_multi_poll(run->multi, NULL, 0, 1000, NULL);
    }
}

/* ---- Decoding */

static void *decode_bodies(void *context)
{
    struct run *run = context;
    struct hand_canvas canvas = {0};
    unsigned long long pixels = 0, failures = 0;
    pthread_mutex_lock(&run->lock);
    for (;;) {
        while (!run->first && !run->is_over)
            pthread_cond_wait(&run->has_work, &run->lock);
        struct body *body = run->first;
        if (!body)
            break;
        run->first = body->next;
        if (!run->first)
            run->last = &run->first;
        pthread_mutex_unlock(&run->lock);
        size_t decoded = hand_decode_into(&canvas, body->bytes, body->length);
        pixels += decoded;
        failures += decoded == 0;
        pthread_mutex_lock(&run->lock);
        push(&run->decoded, body);
        if (run->is_starved) {
            run->is_starved = 0;
            curl_multi_wakeup(run->multi);
        }
    }
    run->pixels += pixels;
    run->failures += failures;
    pthread_mutex_unlock(&run->lock);
    hand_canvas_free(&canvas);
    return NULL;
}

int main(int count, char **arguments)
{
    struct run run = {.lock = PTHREAD_MUTEX_INITIALIZER, .has_work = PTHREAD_COND_INITIALIZER};
    run.last = &run.first;
    client_begin(&run.client, "limit", count, arguments);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(run.multi = curl_multi_init()))
        fail("libcurl does not start");
    curl_multi_setopt(run.multi, CURLMOPT_MAXCONNECTS, (long)run.client.concurrency);

    unsigned body_count = run.client.decodes ? 2 * run.client.concurrency : run.client.concurrency;
    run.easies = calloc(run.client.concurrency, sizeof(CURL *));
    struct body *bodies = calloc(body_count, sizeof *bodies);
    if (!run.easies || !bodies)
        fail("no memory");
    while (run.easy_count < run.client.concurrency)
        run.easies[run.easy_count++] = new_easy(&run.client);
    for (unsigned i = body_count; i-- > 0;)
        push(&run.idle, &bodies[i]);

    pthread_t decoders[DECODERS];
    for (int i = 0; run.client.decodes && i < DECODERS; i++)
        if (pthread_create(&decoders[i], NULL, decode_bodies, &run))
            fail("no thread");
    transfer_all(&run);
    pthread_mutex_lock(&run.lock);
    run.is_over = 1;
    pthread_cond_broadcast(&run.has_work);
    pthread_mutex_unlock(&run.lock);
    for (int i = 0; run.client.decodes && i < DECODERS; i++)
        pthread_join(decoders[i], NULL);

    while (run.easy_count > 0)
        curl_easy_cleanup(run.easies[--run.easy_count]);
    curl_multi_cleanup(run.multi);
    for (unsigned i = 0; i < body_count; i++)
        free(bodies[i].bytes);
    free(bodies);
    free(run.easies);
    run.client.pixels = run.pixels;
    run.client.errors += run.failures;
    return client_end(&run.client);
}
