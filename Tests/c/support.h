/* What the C tests share: a scripted origin as a child process, pictures made for it, a second origin that speaks TLS,
 * and a recorder of events. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "imgdl.h"
#include "harness.h"

enum { PATIENCE_MS = 20000 }; /* a bound on failure: what succeeds does not wait for it */

/* Once, by the harness: starts the origins and writes the pictures. */
void support_start(void);
void support_stop(void);
/* For a program that takes this one's place: where all that is, by the environment, and there. */
void support_hand_over(void);
void support_take_over(void);

/* A URL on the origin, from a format for its path; kept until the process ends. */
const char *at_origin(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same on the origin that speaks TLS, whose certificate is in tls_ca_file. */
const char *at_tls_origin(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern const char *tls_ca_file;
/* The origin's pictures by TLS and HTTP/2; its certificate is in http2_ca_file. */
const char *at_http2_origin(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern const char *http2_ca_file;
extern const char *program_folder; /* where the tests' own programs are */

/* The body of the answer to a GET of the origin, by a bare socket. Free it. */
char *ask_origin(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How many requests came for a URL, as made by at_origin, by the origin's log. */
unsigned times_served(const char *url);
void open_gate(const char *name);
void close_gate(const char *name);
/* Until `count` answers have come to the gate. */
void await_gate(const char *name, unsigned count);

/* One of the files that the origin serves. Free it. */
uint8_t *read_picture(const char *name, size_t *size);
/* Another one. */
void write_picture(const char *name, const void *bytes, size_t size);

/* An empty folder of the test's own, which goes with the harness. Free it. */
char *new_folder(void);

/* ---- Recording */

struct record {
    uint32_t kind;
    int64_t received, expected;
    imgdl_status code;
    int32_t http_status;
    uint32_t width, height, pass;
    int32_t is_complete;
    int32_t has_response;
    imgdl_token *token;
    pid_t thread;
};

enum { MAX_RECORDS = 4096 };

/* Counts and keeps what a subscriber is told. Zero it, set the hook if wanted, pass it as user_data. */
struct recorder {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned count; /* events, also those beyond MAX_RECORDS */
    struct record *records;
    unsigned terminals, destroyed, partials;
    int inside; /* callbacks running now */
    unsigned overlaps, late; /* callbacks at the same time; callbacks after the terminal or the destructor */
    imgdl_status code;
    int32_t http_status;
    char message[2048];
    imgdl_image *image; /* retained */
    imgdl_data *data;
    void (*hook)(struct recorder *recorder, const imgdl_event *event); /* inside the callback */
    void *context;
};

void recorder_init(struct recorder *recorder);
void recorder_clear(struct recorder *recorder);
void on_recorded_event(const imgdl_event *event, void *recorder);
void on_recorder_destroyed(void *recorder);
/* Waits for the destructor; a pumped executor is dispatched meanwhile. 0 after PATIENCE_MS, and the test has failed. */
int await_end(struct recorder *recorder, imgdl_executor *pumped);
/* Waits until an event of that kind has come. */
int await_event(struct recorder *recorder, uint32_t kind, imgdl_executor *pumped);
/* Exactly one terminal, one destructor, the terminal last, no overlap. */
void check_ending(struct recorder *recorder);
/* The order that section 7 of the header promises. */
void check_order(const struct recorder *recorder, imgdl_event_mask mask);

/* ---- Shorthands */

/* A request for the URL that tells everything to the recorder. */
imgdl_request recorded_request(const char *url, struct recorder *recorder);
imgdl_downloader *new_downloader(void);
imgdl_downloader *new_downloader_with(uint32_t max_concurrent, imgdl_executor *executor);
/* Downloads a URL, waits, and gives back the code; the request may be NULL. */
imgdl_status download_and_wait(imgdl_downloader *downloader, const imgdl_request *request, struct recorder *recorder);

/* ---- The cache */

struct reply {
    imgdl_status code;
    int32_t http_status;
    imgdl_cache_outcome outcome; /* UINT32_MAX: there was no response */
    size_t length;               /* of the body, with IMGDL_REQUEST_BODY */
    uint64_t sum;                /* of its bytes, as by sum_of */
    uint32_t width;              /* of the picture, without */
};

uint64_t sum_of(const void *bytes, size_t length);
/* Opens a cache in that folder, or in memory alone. */
imgdl_cache *new_cache(const char *directory);
/* With IMGDL_CACHE_USE for what says nothing else. */
imgdl_downloader *new_caching_downloader(imgdl_cache *cache);
/* Downloads a URL without a callback, and waits. */
struct reply ask(imgdl_downloader *downloader, const char *url, imgdl_cache_mode mode, imgdl_request_flags flags);
struct reply ask_with(imgdl_downloader *downloader, const imgdl_request *request);
/* Waits for a download without a callback, and releases its token. */
struct reply take_reply(imgdl_token *token);
/* Waits until something is stored, or the whole body. */
imgdl_cache_entry await_stored(imgdl_cache *cache, const char *url, int is_complete);

/* A flag that one thread raises and others wait for. */
struct flag {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int value;
};
#define FLAG_INIT {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}
void raise_flag(struct flag *flag);      /* adds one */
int await_flag(struct flag *flag, int value); /* at least; 0 after PATIENCE_MS, and the test has failed */
void ignore_event(const imgdl_event *event, void *user_data);
void on_end_raise(void *flag);           /* a destructor, or what shutdown calls, whose user_data is a flag */

/* Waits until a downloader's statistics are so: the library's own thread changes them. After PATIENCE_MS the test has
 * failed, and ends. */
imgdl_stats await_stats(imgdl_downloader *downloader, int (*are_so)(const imgdl_stats *stats, uint64_t number),
                        uint64_t number);
int have_ended_well(const imgdl_stats *stats, uint64_t number); /* at least so many requests, or were cancelled */

/* Entries of a folder of /proc/self: threads ("task") and descriptors ("fd"). */
unsigned count_in_proc(const char *folder);
/* The same until it is at most `limit`: a thread that was joined stays in /proc for an instant. */
unsigned settle_in_proc(const char *folder, unsigned limit);
/* Of this process. */
uint64_t resident_bytes(void);
struct timespec deadline_in(clockid_t clock, unsigned milliseconds);
double seconds_now(void);

#endif
