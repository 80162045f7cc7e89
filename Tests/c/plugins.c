/* Schemes that the host loads itself, and those of this machine: features K6, T06, T32, R18, B23, L1. */
#define SUITE "plugins"
#include "support.h"

#include <sched.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum answer { INSIDE, ON_A_THREAD, HELD };

/* A loader, what it was asked, and the picture that it answers with. */
struct loader {
    enum answer answer;
    uint8_t *picture;
    size_t size;
    pthread_t thread;
    imgdl_transfer *transfer; /* of the last start */
    unsigned starts, cancels, destroyed;
    char url[256], method[16], agent[64];
    struct flag started, cancelled, resumed;
};

static void loader_init(struct loader *loader, enum answer answer)
{
    *loader = (struct loader){.answer = answer, .started = FLAG_INIT, .cancelled = FLAG_INIT, .resumed = FLAG_INIT};
    loader->picture = read_picture("baseline.jpg", &loader->size);
}

static void report_head(imgdl_transfer *transfer, size_t length)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", length);
    imgdl_header headers[] = {{"Content-Type", "image/jpeg"}, {"content-length", text}};
    CHECK_CODE(imgdl_transfer_response(transfer, 200, headers, 2), IMGDL_OK);
}

static void *report_all(void *context)
{
    struct loader *loader = context;
    imgdl_transfer *transfer = loader->transfer;
    report_head(transfer, loader->size);
    for (size_t at = 0; at < loader->size; at += 1000) {
        size_t count = loader->size - at < 1000 ? loader->size - at : 1000;
        CHECK_CODE(imgdl_transfer_body(transfer, loader->picture + at, count), IMGDL_OK);
    }
    CHECK_CODE(imgdl_transfer_end(transfer, IMGDL_OK, NULL), IMGDL_OK);
    imgdl_transfer_release(transfer);
    return NULL;
}

static void *start(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    struct loader *loader = user_data;
    loader->starts++;
    loader->transfer = transfer;
    snprintf(loader->url, sizeof loader->url, "%s", request->url);
    snprintf(loader->method, sizeof loader->method, "%s", request->method);
    for (size_t i = 0; i < request->header_count; i++)
        if (!strcasecmp(request->headers[i].name, "user-agent"))
            snprintf(loader->agent, sizeof loader->agent, "%s", request->headers[i].value);
    if (loader->answer == INSIDE)
        report_all(loader);
    else if (loader->answer == ON_A_THREAD)
        pthread_create(&loader->thread, NULL, report_all, loader);
    raise_flag(&loader->started);
    return loader;
}

static void cancel(void *started, void *user_data)
{
    struct loader *loader = started;
    CHECK(started == user_data);
    loader->cancels++;
    /* What comes too late goes nowhere, and is no error. */
    imgdl_status late = imgdl_transfer_body(loader->transfer, "x", 1);
    if (late != IMGDL_OK && late != IMGDL_ERROR_INVALID_OPERATION) /* no head was reported */
        FAIL("a late report is %s", imgdl_error_name(late));
    imgdl_transfer_release(loader->transfer);
    raise_flag(&loader->cancelled);
}

static void destroyed(void *user_data) { ((struct loader *)user_data)->destroyed++; }

static imgdl_transport_table table_of(struct loader *loader)
{
    return (imgdl_transport_table){
        .struct_size = sizeof(imgdl_transport_table), .start = start, .cancel = cancel, .user_data = loader,
        .destructor = destroyed};
}

static void register_loader(imgdl_downloader *downloader, const char *scheme, struct loader *loader)
{
    imgdl_transport_table table = table_of(loader);
    REQUIRE_OK(imgdl_transport_register(downloader, scheme, &table));
}

static imgdl_status fetch(imgdl_downloader *downloader, const char *url, struct recorder *recorder)
{
    recorder_init(recorder);
    imgdl_request request = recorded_request(url, recorder);
    return download_and_wait(downloader, &request, recorder);
}

static imgdl_status code_of(imgdl_downloader *downloader, const char *url)
{
    struct recorder recorder;
    imgdl_status code = fetch(downloader, url, &recorder);
    recorder_clear(&recorder);
    return code;
}

static imgdl_status refusal_of(imgdl_downloader *downloader, const char *url)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    return imgdl_download(downloader, &request, NULL);
}

TEST("a scheme of the host's own: started once, from any thread, the right picture (T06)")
{
    imgdl_downloader *downloader = new_downloader();
    CHECK_CODE(refusal_of(downloader, "app://pictures/1"), IMGDL_ERROR_UNSUPPORTED_SCHEME);
    static const enum answer answers[] = {INSIDE, ON_A_THREAD};
    for (int i = 0; i < 2; i++) {
        struct loader loader;
        loader_init(&loader, answers[i]);
        register_loader(downloader, "App", &loader);
        struct recorder recorder;
        CHECK_CODE(fetch(downloader, "APP://user:secret@1/Picture one?id=5#f", &recorder), IMGDL_OK);
        if (loader.answer == ON_A_THREAD)
            pthread_join(loader.thread, NULL);
        check_ending(&recorder);
        check_order(&recorder, IMGDL_EVENT_ALL);
        CHECK_NUMBER(imgdl_image_width(recorder.image), 640);
        CHECK(strcmp(loader.url, "app://1/Picture%20one?id=5") == 0);
        CHECK(strcmp(loader.method, "GET") == 0);
        CHECK(strncmp(loader.agent, "imgdl/", 6) == 0);
        CHECK_NUMBER(loader.starts, 1);
        CHECK_NUMBER(loader.cancels, 0);
        recorder_clear(&recorder);
        REQUIRE_OK(imgdl_transport_register(downloader, "app", NULL));
        CHECK_NUMBER(loader.destroyed, 1);
        /* At once, also for a URL that was asked for before. */
        CHECK_CODE(refusal_of(downloader, "APP://user:secret@1/Picture one?id=5#f"), IMGDL_ERROR_UNSUPPORTED_SCHEME);
        free(loader.picture);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("a loader in place of the built-in one, and NULL restores that (T06)")
{
    imgdl_downloader *downloader = new_downloader();
    struct loader loader;
    loader_init(&loader, INSIDE);
    const char *url = at_origin("/pictures/truecolour.png?_=own");
    register_loader(downloader, "http", &loader);
    struct recorder recorder;
    CHECK_CODE(fetch(downloader, url, &recorder), IMGDL_OK);
    CHECK_NUMBER(imgdl_image_width(recorder.image), 640);
    recorder_clear(&recorder);
    CHECK_NUMBER(loader.starts, 1);
    CHECK_NUMBER(times_served(url), 0);
    REQUIRE_OK(imgdl_transport_register(downloader, "HTTP", NULL));
    CHECK_CODE(fetch(downloader, url, &recorder), IMGDL_OK);
    CHECK_NUMBER(imgdl_image_width(recorder.image), 320);
    recorder_clear(&recorder);
    CHECK_NUMBER(loader.starts, 1);
    CHECK_NUMBER(loader.destroyed, 1);
    CHECK_NUMBER(times_served(url), 1);
    free(loader.picture);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("tables and schemes that are wrong are refused, and nothing of them is called (T06)")
{
    imgdl_downloader *downloader = new_downloader();
    struct loader loader;
    loader_init(&loader, INSIDE);
    imgdl_transport_table table = table_of(&loader);
    static const char *const wrong[] = {NULL, "", "1app", "app:", "a pp", "\xC3\xA4pp", "-x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_CODE(imgdl_transport_register(downloader, wrong[i], &table), IMGDL_ERROR_INVALID_ARGUMENT);
    imgdl_transport_table without = table;
    without.start = NULL;
    CHECK_CODE(imgdl_transport_register(downloader, "app", &without), IMGDL_ERROR_INVALID_ARGUMENT);
    without = table;
    without.cancel = NULL;
    CHECK_CODE(imgdl_transport_register(downloader, "app", &without), IMGDL_ERROR_INVALID_ARGUMENT);
    without = table;
    without.struct_size = 8;
    CHECK_CODE(imgdl_transport_register(downloader, "app", &without), IMGDL_ERROR_UNSUPPORTED_OPTION);
    without = table;
    without.reserved = 1;
    CHECK_CODE(imgdl_transport_register(downloader, "app", &without), IMGDL_ERROR_UNSUPPORTED_OPTION);
    struct { imgdl_transport_table today; uint64_t tomorrow; } newer = {table, 1};
    newer.today.struct_size = sizeof newer;
    CHECK_CODE(imgdl_transport_register(downloader, "app", &newer.today), IMGDL_ERROR_UNSUPPORTED_OPTION);
    CHECK_CODE(imgdl_transport_register(NULL, "app", &table), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(refusal_of(downloader, "app://x"), IMGDL_ERROR_UNSUPPORTED_SCHEME);
    CHECK_CODE(imgdl_transport_register(downloader, "never-there", NULL), IMGDL_OK);
    CHECK_NUMBER(loader.destroyed, 0);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    CHECK_CODE(imgdl_transport_register(downloader, "app", &table), IMGDL_ERROR_INVALID_HANDLE);
    free(loader.picture);
}

TEST("two requests share one start; the last cancel gives it up, and what is reported then goes nowhere (T06, K12)")
{
    imgdl_downloader *downloader = new_downloader();
    struct loader loader;
    loader_init(&loader, HELD);
    register_loader(downloader, "app", &loader);
    struct recorder recorders[2];
    imgdl_token *tokens[2];
    for (int i = 0; i < 2; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request("app:shared/picture", &recorders[i]);
        REQUIRE_OK(imgdl_download(downloader, &request, &tokens[i]));
    }
    await_flag(&loader.started, 1);
    report_head(loader.transfer, loader.size);
    CHECK_CODE(imgdl_transfer_body(loader.transfer, loader.picture, loader.size / 2), IMGDL_OK);
    await_event(&recorders[1], IMGDL_EVENT_PROGRESS, NULL);
    REQUIRE_OK(imgdl_token_cancel(tokens[0]));
    await_end(&recorders[0], NULL);
    CHECK_NUMBER(loader.cancels, 0);
    REQUIRE_OK(imgdl_token_cancel(tokens[1]));
    await_end(&recorders[1], NULL);
    await_flag(&loader.cancelled, 1);
    CHECK_NUMBER(loader.starts, 1);
    for (int i = 0; i < 2; i++) {
        CHECK_CODE(recorders[i].code, IMGDL_ERROR_CANCELLED);
        imgdl_token_release(tokens[i]);
        recorder_clear(&recorders[i]);
    }
    CHECK_CODE(imgdl_transfer_body(loader.transfer, "x", 1), IMGDL_ERROR_INVALID_HANDLE);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    CHECK_NUMBER(loader.destroyed, 1);
    free(loader.picture);
}

/* A request that the loader has been told of, and nothing reported. */
static imgdl_downloader *begin_held(struct loader *loader, struct recorder *recorder)
{
    imgdl_downloader *downloader = new_downloader();
    loader_init(loader, HELD);
    register_loader(downloader, "app", loader);
    recorder_init(recorder);
    imgdl_request request = recorded_request("app:x", recorder);
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_flag(&loader->started, 1);
    return downloader;
}

TEST("what is reported out of order or wrong is an error of the call, and the transfer goes on (B23)")
{
    struct loader loader;
    struct recorder recorder;
    imgdl_downloader *downloader = begin_held(&loader, &recorder);
    imgdl_transfer *transfer = loader.transfer;
    CHECK_CODE(imgdl_transfer_body(transfer, "x", 1), IMGDL_ERROR_INVALID_OPERATION);
    CHECK_CODE(imgdl_transfer_end(transfer, IMGDL_OK, NULL), IMGDL_ERROR_INVALID_OPERATION);
    CHECK_CODE(imgdl_transfer_response(transfer, 100, NULL, 0), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_transfer_response(transfer, 1000, NULL, 0), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_transfer_response(transfer, 200, NULL, 1), IMGDL_ERROR_INVALID_ARGUMENT);
    imgdl_header header = {"Bad\r\nName", "x"};
    CHECK_CODE(imgdl_transfer_response(transfer, 200, &header, 1), IMGDL_ERROR_INVALID_HEADER);
    header = (imgdl_header){"Content-Length", "-1"};
    CHECK_CODE(imgdl_transfer_response(transfer, 200, &header, 1), IMGDL_ERROR_INVALID_HEADER);
    report_head(transfer, loader.size);
    CHECK_CODE(imgdl_transfer_response(transfer, 200, NULL, 0), IMGDL_ERROR_INVALID_OPERATION);
    CHECK_CODE(imgdl_transfer_body(transfer, NULL, 1), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_transfer_body(transfer, "x", SIZE_MAX), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_transfer_body(transfer, NULL, 0), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_end(transfer, -5, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_transfer_body(transfer, loader.picture, loader.size), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_end(transfer, IMGDL_OK, NULL), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_end(transfer, IMGDL_OK, NULL), IMGDL_ERROR_INVALID_OPERATION);
    CHECK_CODE(imgdl_transfer_body(transfer, "x", 1), IMGDL_ERROR_INVALID_OPERATION);
    await_end(&recorder, NULL);
    CHECK_CODE(recorder.code, IMGDL_OK);
    recorder_clear(&recorder);
    CHECK_CODE(imgdl_transfer_body((imgdl_transfer *)downloader, "x", 1), IMGDL_ERROR_INVALID_HANDLE);
    /* It outlives its downloader. */
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    CHECK_NUMBER(loader.destroyed, 1);
    CHECK_NUMBER(loader.cancels, 0);
    CHECK_CODE(imgdl_transfer_body(transfer, "x", 1), IMGDL_ERROR_INVALID_OPERATION);
    imgdl_transfer_release(transfer);
    imgdl_transfer_release(transfer);
    free(loader.picture);
}

/* ---- A body that comes faster than it is wanted */

static int is_paused(const imgdl_stats *stats, uint64_t unused)
{
    (void)unused;
    return stats->paused == 1;
}

static int holds(const imgdl_stats *stats, uint64_t bytes) { return stats->memory == bytes; }

static void resume(void *started, void *user_data)
{
    CHECK(started == user_data);
    raise_flag(&((struct loader *)started)->resumed);
}

/* Held, of a request for its body, and paused. */
static imgdl_downloader *begin_paused(struct loader *loader, struct recorder *recorder, uint64_t max_body_bytes, int waits)
{
    imgdl_downloader *downloader = new_downloader();
    loader_init(loader, HELD);
    imgdl_transport_table table = table_of(loader);
    if (waits)
        table.resume = resume;
    REQUIRE_OK(imgdl_transport_register(downloader, "app", &table));
    recorder_init(recorder);
    imgdl_request request = recorded_request("app:x", recorder);
    request.flags = IMGDL_REQUEST_BODY;
    request.max_body_bytes = max_body_bytes;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_flag(&loader->started, 1);
    CHECK_CODE(imgdl_transfer_response(loader->transfer, 200, NULL, 0), IMGDL_OK);
    await_event(recorder, IMGDL_EVENT_RESPONSE, NULL);
    REQUIRE_OK(imgdl_downloader_enter_background(downloader, 0));
    await_stats(downloader, is_paused, 0);
    return downloader;
}

TEST("600 MiB pushed at a paused request of 10 MiB: 1 MiB is held, the rest waits, and all of it counts (T06, B20)")
{
    static uint8_t piece[64 << 10];
    struct loader loader;
    struct recorder recorder;
    imgdl_downloader *downloader = begin_paused(&loader, &recorder, 10 << 20, 1);
    unsigned taken = 0, refused = 0;
    for (int i = 0; i < 9600; i++) {
        imgdl_status status = imgdl_transfer_body(loader.transfer, piece, sizeof piece);
        if (status == IMGDL_OK)
            taken++;
        else if (status == IMGDL_ERROR_NOT_READY)
            refused++;
        else
            FAIL("%s", imgdl_error_name(status));
    }
    CHECK_NUMBER(taken, 16);
    CHECK_NUMBER(refused, 9584);
    await_stats(downloader, holds, 1 << 20);
    CHECK_NUMBER(loader.resumed.value, 0);
    REQUIRE_OK(imgdl_downloader_enter_foreground(downloader));
    await_flag(&loader.resumed, 1);
    /* A host that goes on regardless, until nobody wants it. */
    for (int resumes = 1; taken < 200 && !loader.cancelled.value;) {
        imgdl_status status = imgdl_transfer_body(loader.transfer, piece, sizeof piece);
        if (status == IMGDL_OK)
            taken++;
        else if (status == IMGDL_ERROR_NOT_READY && taken < 160) /* with this one it is not too much yet */
            await_flag(&loader.resumed, ++resumes);
        else
            break;
    }
    await_flag(&loader.cancelled, 1);
    await_end(&recorder, NULL);
    check_ending(&recorder);
    CHECK_CODE(recorder.code, IMGDL_ERROR_BODY_LIMIT);
    await_stats(downloader, holds, 0);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    free(loader.picture);
}

TEST("what is held is more than the request takes: it ends at once, also while it is paused (T06, B10)")
{
    static uint8_t piece[64 << 10];
    struct loader loader;
    struct recorder recorder;
    imgdl_downloader *downloader = begin_paused(&loader, &recorder, 100000, 1);
    CHECK_CODE(imgdl_transfer_body(loader.transfer, piece, sizeof piece), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_body(loader.transfer, piece, sizeof piece), IMGDL_OK);
    await_flag(&loader.cancelled, 1);
    await_end(&recorder, NULL);
    CHECK_CODE(recorder.code, IMGDL_ERROR_BODY_LIMIT);
    CHECK_NUMBER(loader.resumed.value, 0);
    await_stats(downloader, holds, 0);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    free(loader.picture);
}

static struct flag response_asked = FLAG_INIT;
static imgdl_continuation *response_question;

static void owe_answer(const imgdl_response *response, imgdl_continuation *next, void *user_data)
{
    (void)user_data;
    CHECK_NUMBER(response->status, 200);
    response_question = next;
    raise_flag(&response_asked);
}

static int runs_nothing(const imgdl_stats *stats, uint64_t unused)
{
    (void)unused;
    return stats->running == 0 && stats->memory == 0;
}

/* waits: what is held is more than the request takes; otherwise more than can be held. */
static void overflow_while_hook_is_silent(int waits)
{
    imgdl_downloader *downloader = new_downloader();
    struct loader loader;
    loader_init(&loader, HELD);
    imgdl_transport_table table = table_of(&loader);
    if (waits)
        table.resume = resume;
    REQUIRE_OK(imgdl_transport_register(downloader, "app", &table));
    imgdl_hooks_table hooks = {.struct_size = sizeof hooks, .modify_response = owe_answer};
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request("app:x", &recorder);
    request.flags = IMGDL_REQUEST_BODY;
    if (waits)
        request.max_body_bytes = 64 << 10;
    REQUIRE_OK(imgdl_hooks_create(&hooks, &request.hooks));
    response_asked = (struct flag)FLAG_INIT;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    imgdl_hooks_release(request.hooks);
    await_flag(&loader.started, 1);
    CHECK_CODE(imgdl_transfer_response(loader.transfer, 200, NULL, 0), IMGDL_OK);
    await_flag(&response_asked, 1);
    size_t size = waits ? 100000 : 64 << 20;
    uint8_t *piece = calloc(1, size);
    CHECK_CODE(imgdl_transfer_body(loader.transfer, piece, size), IMGDL_OK);
    if (!waits)
        CHECK_CODE(imgdl_transfer_body(loader.transfer, piece, 1), IMGDL_ERROR_BODY_LIMIT);
    await_end(&recorder, NULL);
    check_ending(&recorder);
    CHECK_CODE(recorder.code, IMGDL_ERROR_BODY_LIMIT);
    await_stats(downloader, runs_nothing, 0);
    if (waits)
        await_flag(&loader.cancelled, 1);
    else
        imgdl_transfer_release(loader.transfer);
    CHECK_NUMBER(loader.cancels, waits);
    CHECK_NUMBER(loader.resumed.value, 0);
    /* As after a cancel: it goes nowhere, and is no error. */
    CHECK_CODE(imgdl_continue_unchanged(response_question), IMGDL_OK);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    free(loader.picture);
    free(piece);
}

TEST("a body that is too large ends while a hook owes its answer, with and without resume (T06, B10, R2)")
{
    overflow_while_hook_is_silent(1);
    overflow_while_hook_is_silent(0);
}

TEST("a loader that cannot be told to wait fails beyond 64 MiB, older tables too (T06, B10)")
{
    uint8_t *piece = calloc(1, 16 << 20);
    struct loader loader;
    struct recorder recorder;
    imgdl_downloader *downloader = begin_paused(&loader, &recorder, 1 << 30, 0);
    for (int i = 0; i < 4; i++)
        CHECK_CODE(imgdl_transfer_body(loader.transfer, piece, 16 << 20), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_body(loader.transfer, piece, 1), IMGDL_ERROR_BODY_LIMIT);
    CHECK_CODE(imgdl_transfer_body(loader.transfer, piece, 1), IMGDL_ERROR_INVALID_OPERATION);
    /* It is in the background still, and stays there until it has ended. */
    await_end(&recorder, NULL);
    CHECK_CODE(recorder.code, IMGDL_ERROR_BODY_LIMIT);
    await_stats(downloader, holds, 0);
    CHECK_NUMBER(loader.cancelled.value, 0);
    imgdl_transfer_release(loader.transfer);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_enter_foreground(downloader));

    imgdl_transport_table older = table_of(&loader);
    older.struct_size = offsetof(imgdl_transport_table, resume);
    older.resume = resume; /* beyond it: not read */
    REQUIRE_OK(imgdl_transport_register(downloader, "app", &older));
    recorder_init(&recorder);
    imgdl_request request = recorded_request("app:y", &recorder);
    request.flags = IMGDL_REQUEST_BODY;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_flag(&loader.started, 2);
    CHECK_CODE(imgdl_transfer_response(loader.transfer, 200, NULL, 0), IMGDL_OK);
    for (int i = 0; i < 3; i++)
        CHECK_CODE(imgdl_transfer_body(loader.transfer, piece, 1 << 20), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_end(loader.transfer, IMGDL_OK, NULL), IMGDL_OK);
    imgdl_transfer_release(loader.transfer);
    await_end(&recorder, NULL);
    CHECK_CODE(recorder.code, IMGDL_OK);
    CHECK_NUMBER(loader.resumed.value, 0);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    free(loader.picture);
    free(piece);
}

/* What a held transfer is told, and how the download ends. */
static void check_report(imgdl_downloader *downloader, struct loader *loader, const char *what,
                         void (*report)(struct loader *), imgdl_status code, int32_t status, const char *words)
{
    unsigned before = loader->starts;
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request("app://h/x?token=secret", &recorder);
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_flag(&loader->started, (int)before + 1);
    report(loader);
    await_end(&recorder, NULL);
    check_ending(&recorder);
    if (recorder.code != code || recorder.http_status != status || !strstr(recorder.message, words))
        FAIL("%s: %s, status %d, “%s”", what, imgdl_error_name(recorder.code), recorder.http_status,
             recorder.message);
    CHECK(!strstr(recorder.message, "secret"));
    recorder_clear(&recorder);
}

static void end_with_error(struct loader *loader)
{
    CHECK_CODE(imgdl_transfer_end(loader->transfer, IMGDL_ERROR_RESOLVE_FAILED, "no such shelf"), IMGDL_OK);
    imgdl_transfer_release(loader->transfer);
}

static void give_back(struct loader *loader) { imgdl_transfer_release(loader->transfer); }

static void say_404(struct loader *loader)
{
    CHECK_CODE(imgdl_transfer_response(loader->transfer, 404, NULL, 0), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_end(loader->transfer, IMGDL_OK, NULL), IMGDL_OK);
    imgdl_transfer_release(loader->transfer);
}

static void say_less(struct loader *loader)
{
    report_head(loader->transfer, loader->size);
    CHECK_CODE(imgdl_transfer_body(loader->transfer, loader->picture, loader->size / 2), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_end(loader->transfer, IMGDL_OK, NULL), IMGDL_OK);
    imgdl_transfer_release(loader->transfer);
}

static void say_more(struct loader *loader)
{
    report_head(loader->transfer, 10);
    CHECK_CODE(imgdl_transfer_body(loader->transfer, loader->picture, loader->size), IMGDL_OK);
    await_flag(&loader->cancelled, 1); /* which gives it back */
}

static void redirect_to(struct loader *loader, const char *location)
{
    imgdl_header header = {"Location", location};
    CHECK_CODE(imgdl_transfer_response(loader->transfer, 302, &header, 1), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_end(loader->transfer, IMGDL_OK, NULL), IMGDL_OK);
    imgdl_transfer_release(loader->transfer);
}

static void redirect_to_network(struct loader *loader) { redirect_to(loader, at_origin("/pictures/tiny.png?_=app")); }
static void redirect_to_itself(struct loader *loader) { redirect_to(loader, "app://h/y"); }
static void redirect_nearby(struct loader *loader) { redirect_to(loader, "y"); }

TEST("how transfers of a loader end: its own error, a status, too little, too much, no end, redirects (T06)")
{
    imgdl_downloader *downloader = new_downloader();
    struct loader loader;
    loader_init(&loader, HELD);
    register_loader(downloader, "app", &loader);
#define CHECK_REPORT(report, code, status, words)                                                                      \
    check_report(downloader, &loader, #report, report, code, status, words)
    CHECK_REPORT(end_with_error, IMGDL_ERROR_RESOLVE_FAILED, 0, "no such shelf");
    CHECK_REPORT(give_back, IMGDL_ERROR_CONNECTION_LOST, 0, "token=…");
    CHECK_REPORT(say_404, IMGDL_ERROR_INVALID_STATUS, 404, "404");
    CHECK_REPORT(say_less, IMGDL_ERROR_TRUNCATED, 200, "ends after");
    CHECK_REPORT(say_more, IMGDL_ERROR_PROTOCOL, 200, "longer");
    CHECK_REPORT(redirect_to_network, IMGDL_OK, 200, "");
    CHECK_REPORT(redirect_to_itself, IMGDL_ERROR_REDIRECT_REFUSED, 302, "app");
    CHECK_REPORT(redirect_nearby, IMGDL_ERROR_REDIRECT_REFUSED, 302, "app");
    CHECK_NUMBER(loader.cancels, 1);
    /* A server does not choose from what the host loads. */
    CHECK_CODE(code_of(downloader, at_origin("/redirect?to=app://h/x")), IMGDL_ERROR_REDIRECT_REFUSED);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    CHECK_NUMBER(loader.destroyed, 1);
    free(loader.picture);
}

TEST("a downloader that ends gives up what a loader still has; a fork's child hears FORKED (T06)")
{
    struct loader loader;
    struct recorder recorder;
    imgdl_downloader *downloader = begin_held(&loader, &recorder);
    pid_t child = fork();
    if (child == 0) {
        imgdl_transport_table table = table_of(&loader);
        CHECK_CODE(imgdl_transport_register(downloader, "app", &table), IMGDL_ERROR_FORKED);
        CHECK_CODE(imgdl_transfer_response(loader.transfer, 200, NULL, 0), IMGDL_ERROR_FORKED);
        CHECK_CODE(imgdl_transfer_end(loader.transfer, IMGDL_OK, NULL), IMGDL_ERROR_FORKED);
        imgdl_transfer_release(loader.transfer);
        CHECK_NUMBER(loader.destroyed, 0);
        _exit(harness_failures() ? 1 : 0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_NUMBER(status, 0);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    await_end(&recorder, NULL);
    CHECK_CODE(recorder.code, IMGDL_ERROR_CANCELLED);
    CHECK_NUMBER(loader.cancels, 1);
    CHECK_NUMBER(loader.destroyed, 1);
    recorder_clear(&recorder);
    free(loader.picture);
}

/* ---- Races */

struct library {
    uint8_t *picture;
    size_t size;
    unsigned starts, cancels;
    struct flag ended; /* transfers whose thread is done with them */
};

struct lending {
    struct library *library;
    imgdl_transfer *transfer;
    int is_cancelled;
};

static void *lend(void *context)
{
    struct lending *lending = context;
    struct library *library = lending->library;
    report_head(lending->transfer, library->size);
    for (size_t at = 0; at < library->size && !__atomic_load_n(&lending->is_cancelled, __ATOMIC_RELAXED); at += 4000) {
        size_t count = library->size - at < 4000 ? library->size - at : 4000;
        CHECK_CODE(imgdl_transfer_body(lending->transfer, library->picture + at, count), IMGDL_OK);
    }
    if (!__atomic_load_n(&lending->is_cancelled, __ATOMIC_RELAXED))
        CHECK_CODE(imgdl_transfer_end(lending->transfer, IMGDL_OK, NULL), IMGDL_OK);
    imgdl_transfer_release(lending->transfer);
    /* From here on cancel neither runs nor begins. */
    memset(lending, 0xAA, sizeof *lending);
    free(lending);
    raise_flag(&library->ended);
    return NULL;
}

static void *begin_lending(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request;
    struct lending *lending = malloc(sizeof *lending);
    ((struct library *)user_data)->starts++;
    *lending = (struct lending){.library = user_data, .transfer = transfer};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, lend, lending) == 0);
    pthread_detach(thread);
    return lending;
}

static void stop_lending(void *started, void *user_data)
{
    struct lending *lending = started;
    __atomic_store_n(&lending->is_cancelled, 1, __ATOMIC_RELAXED);
    ((struct library *)user_data)->cancels++;
}

TEST("cancels and ends that cross: what a loader has started can be freed after its end (T06, B1)")
{
    struct library library = {.ended = FLAG_INIT};
    library.picture = read_picture("baseline.jpg", &library.size);
    imgdl_downloader *downloader = new_downloader();
    imgdl_transport_table table = {
        .struct_size = sizeof table, .start = begin_lending, .cancel = stop_lending, .user_data = &library};
    REQUIRE_OK(imgdl_transport_register(downloader, "app", &table));
    enum { DOWNLOADS = 300 };
    unsigned cancelled = 0, succeeded = 0, seed = 1;
    for (int i = 0; i < DOWNLOADS; i++) {
        struct recorder recorder;
        recorder_init(&recorder);
        char url[32];
        snprintf(url, sizeof url, "app:%d", i);
        imgdl_request request = recorded_request(url, &recorder);
        request.flags = IMGDL_REQUEST_BODY;
        imgdl_token *token = NULL;
        REQUIRE_OK(imgdl_download(downloader, &request, &token));
        /* Any moment of the transfer. No yielding: while others compute each yield costs a slice of theirs, and all of
         * them a minute. */
        for (volatile unsigned spin = (seed = seed * 1664525 + 1013904223) >> 13; spin > 0; spin--) {}
        REQUIRE_OK(imgdl_token_cancel(token));
        await_end(&recorder, NULL);
        check_ending(&recorder);
        if (recorder.code == IMGDL_OK)
            CHECK_NUMBER(imgdl_data_length(recorder.data), library.size);
        succeeded += recorder.code == IMGDL_OK;
        cancelled += recorder.code == IMGDL_ERROR_CANCELLED;
        imgdl_token_release(token);
        recorder_clear(&recorder);
    }
    CHECK_NUMBER(cancelled + succeeded, DOWNLOADS);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    await_flag(&library.ended, (int)library.starts);
    CHECK(library.cancels <= library.starts);
    free(library.picture);
}

/* ---- file: and data: */

static imgdl_downloader *local_downloader(imgdl_config_flags flags)
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.flags = flags;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    return downloader;
}

static const char *in_pictures(const char *format, const char *name)
{
    static char url[4500];
    char place[4400];
    snprintf(place, sizeof place, "%s/pictures/%s", program_folder, name);
    snprintf(url, sizeof url, format, place);
    return url;
}

TEST("file: URLs, where they are allowed: pictures, and what is no file of this machine (L1, T32)")
{
    imgdl_downloader *downloader = new_downloader();
    CHECK_CODE(refusal_of(downloader, in_pictures("file://%s", "baseline.jpg")), IMGDL_ERROR_UNSUPPORTED_SCHEME);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));

    downloader = local_downloader(IMGDL_CONFIG_ALLOW_FILE_URLS);
    static const char *const forms[] = {"file://%s", "file://localhost%s", "FILE:%s", "file://%s?x=1#y"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct recorder recorder;
        CHECK_CODE(fetch(downloader, in_pictures(forms[i], "%70rogressive.jpg"), &recorder), IMGDL_OK);
        check_order(&recorder, IMGDL_EVENT_ALL);
        CHECK_NUMBER(recorder.http_status, 200);
        CHECK_NUMBER(imgdl_image_width(recorder.image), 640);
        recorder_clear(&recorder);
    }
    static const char *const invalid[] = {"file:x",        "file://server/x", "file:///%00",
                                          "file:///%zz", "file:",           "file://"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        CHECK_CODE(refusal_of(downloader, invalid[i]), IMGDL_ERROR_INVALID_URL);
    CHECK_CODE(refusal_of(downloader, "data:,x"), IMGDL_ERROR_UNSUPPORTED_SCHEME);

    char pipe[4400];
    snprintf(pipe, sizeof pipe, "%s/pipe-%d", program_folder, (int)getpid());
    REQUIRE(mkfifo(pipe, 0600) == 0);
    char pipe_url[4500];
    snprintf(pipe_url, sizeof pipe_url, "file://%s", pipe);
    const struct { const char *url; int32_t status; } refused[] = {
        {in_pictures("file://%s", "not-there.jpg"), 404},
        {"file:///", 403},
        {"file:///dev/null", 403},
        {pipe_url, 403}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct recorder recorder;
        CHECK_CODE(fetch(downloader, refused[i].url, &recorder), IMGDL_ERROR_INVALID_STATUS);
        CHECK_NUMBER(recorder.http_status, refused[i].status);
        recorder_clear(&recorder);
    }
    unlink(pipe);
    CHECK_CODE(code_of(downloader, at_origin("/redirect?to=file:///etc/passwd")), IMGDL_ERROR_REDIRECT_REFUSED);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("data: URLs, where they are allowed; limits hold for them as for any body (R18, T32)")
{
    imgdl_downloader *downloader = local_downloader(IMGDL_CONFIG_ALLOW_DATA_URLS);
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t size;
    uint8_t *bytes = read_picture("baseline.jpg", &size);
    char *url = malloc(size * 2 + 100), *end = url + sprintf(url, "data:image/jpeg;base64,");
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < size ? bytes[i + 1] << 8 : 0) |
                         (i + 2 < size ? bytes[i + 2] : 0);
        for (int c = 0; c < 4; c++)
            *end++ = i + (size_t)c > size ? '=' : letters[three >> (18 - 6 * c) & 63];
    }
    *end = '\0';
    struct recorder recorder;
    CHECK_CODE(fetch(downloader, url, &recorder), IMGDL_OK);
    check_order(&recorder, IMGDL_EVENT_ALL);
    CHECK_NUMBER(imgdl_image_width(recorder.image), 640);
    recorder_clear(&recorder);

    recorder_init(&recorder);
    imgdl_request request = recorded_request(url, &recorder);
    request.max_body_bytes = 1000;
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_ERROR_BODY_LIMIT);
    CHECK(strstr(recorder.message, "data:image/jpeg;base64,…") != NULL);
    CHECK(strlen(recorder.message) < 200);
    recorder_clear(&recorder);

    static const char *const invalid[] = {"data:", "data:image/png", "data:;base64,A", "data:;base64,A?==", "data:,%4"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        CHECK_CODE(refusal_of(downloader, invalid[i]), IMGDL_ERROR_INVALID_URL);
    CHECK_CODE(refusal_of(downloader, "file:///x"), IMGDL_ERROR_UNSUPPORTED_SCHEME);
    CHECK_CODE(code_of(downloader, "data:,no%20picture"), IMGDL_ERROR_BAD_IMAGE_DATA);
    CHECK_CODE(code_of(downloader, "data:,"), IMGDL_ERROR_BAD_IMAGE_DATA);
    CHECK_CODE(code_of(downloader, at_origin("/redirect?to=data:,x")), IMGDL_ERROR_REDIRECT_REFUSED);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    free(url);
    free(bytes);
}
