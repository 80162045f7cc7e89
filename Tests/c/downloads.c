/* What a download tells, on every executor, and what requests share. */
#define SUITE "downloads"
#include "support.h"

#include <poll.h>
#include <sys/syscall.h>

enum { ON_THREAD, ON_INLINE, ON_PUMP, EXECUTORS };
static const char *const executor_names[] = {"thread", "inline", "pumped"};

static imgdl_executor *make_executor(int kind)
{
    imgdl_executor *executor = NULL;
    if (kind == ON_INLINE)
        executor = IMGDL_EXECUTOR_INLINE;
    else if (kind == ON_PUMP)
        REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    return executor;
}

static unsigned count_kind(const struct recorder *recorder, uint32_t kind)
{
    unsigned count = 0;
    for (unsigned i = 0; i < recorder->count && i < MAX_RECORDS; i++)
        count += recorder->records[i].kind == kind;
    return count;
}

/* The same pixels as decoding the file here gives. */
static void check_pixels(imgdl_image *image, const char *name)
{
    size_t size;
    uint8_t *bytes = read_picture(name, &size);
    imgdl_image *expected = NULL;
    REQUIRE_OK(imgdl_decode(bytes, size, NULL, &expected));
    CHECK_NUMBER(imgdl_image_width(image), imgdl_image_width(expected));
    CHECK_NUMBER(imgdl_image_height(image), imgdl_image_height(expected));
    CHECK_NUMBER(imgdl_image_stride(image), 4 * imgdl_image_width(image));
    CHECK_NUMBER(imgdl_image_format(image), imgdl_image_format(expected));
    CHECK_NUMBER(imgdl_image_pixel_format(image), IMGDL_PIXEL_FORMAT_RGBA8);
    CHECK_NUMBER(imgdl_image_is_complete(image), 1);
    imgdl_rectangle ready = imgdl_image_ready(image);
    CHECK(ready.x == 0 && ready.y == 0 && ready.width == imgdl_image_width(image) &&
          ready.height == imgdl_image_height(image));
    if (memcmp(imgdl_image_pixels(image), imgdl_image_pixels(expected),
               imgdl_image_stride(expected) * imgdl_image_height(expected)) != 0)
        FAIL("%s: other pixels than imgdl_decode gives", name);
    imgdl_image_release(expected);
    free(bytes);
}

TEST("every format on every executor: events in order, the right pixels, callbacks on the right thread")
{
    static const char *const names[] = {"baseline.jpg", "progressive.jpg", "truecolour.png",
                                        "adam7.png",    "lossy.webp",      "lossless.webp", "turned.jpg"};
    for (int kind = 0; kind < EXECUTORS; kind++) {
        imgdl_downloader *downloader = new_downloader();
        imgdl_executor *executor = make_executor(kind);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            struct recorder recorder;
            recorder_init(&recorder);
            const char *url = at_origin("/pictures/%s?chunk=3000&_=%s", names[i], executor_names[kind]);
            imgdl_request request = recorded_request(url, &recorder);
            request.executor = executor;
            imgdl_token *token = NULL;
            REQUIRE_OK(imgdl_download(downloader, &request, &token));
            if (!await_end(&recorder, kind == ON_PUMP ? executor : NULL))
                harness_abandon();
            check_ending(&recorder);
            check_order(&recorder, IMGDL_EVENT_ALL);
            CHECK_CODE(recorder.code, IMGDL_OK);
            CHECK_NUMBER(recorder.http_status, 200);
            CHECK(strcmp(recorder.message, "") == 0);
            CHECK(recorder.records[0].token == token);
            CHECK_NUMBER(count_kind(&recorder, IMGDL_EVENT_STARTED), 1);
            CHECK_NUMBER(count_kind(&recorder, IMGDL_EVENT_RESPONSE), 1);
            CHECK_NUMBER(count_kind(&recorder, IMGDL_EVENT_HEADER), 1);
            CHECK(count_kind(&recorder, IMGDL_EVENT_PROGRESS) > 0);
            CHECK(recorder.data == NULL);
            check_pixels(recorder.image, names[i]);
            size_t size;
            free(read_picture(names[i], &size));
            const struct record *end = &recorder.records[recorder.count - 1];
            CHECK_NUMBER(end->received, size);
            CHECK_NUMBER(end->expected, size);
            for (unsigned r = 0; r < recorder.count && r < MAX_RECORDS; r++) {
                int here = recorder.records[r].thread == (pid_t)syscall(SYS_gettid);
                if (here != (kind == ON_PUMP))
                    FAIL("%s, %s: event %u came on %s thread", names[i], executor_names[kind], r,
                         here ? "the caller's" : "another");
                if (recorder.records[r].kind == IMGDL_EVENT_HEADER) {
                    CHECK_NUMBER(recorder.records[r].width, imgdl_image_width(recorder.image));
                    CHECK_NUMBER(recorder.records[r].height, imgdl_image_height(recorder.image));
                }
            }
            imgdl_token_release(token);
            recorder_clear(&recorder);
        }
        imgdl_executor_release(executor);
        REQUIRE_OK(imgdl_downloader_destroy(downloader));
    }
}

TEST("a request gets the kinds of its mask and no others")
{
    imgdl_downloader *downloader = new_downloader();
    static const imgdl_event_mask masks[] = {0, IMGDL_EVENT_TERMINAL, IMGDL_EVENT_PROGRESS, IMGDL_EVENT_HEADER,
                                             IMGDL_EVENT_STARTED | IMGDL_EVENT_RESPONSE, IMGDL_EVENT_ALL};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        struct recorder recorder;
        recorder_init(&recorder);
        imgdl_request request =
            recorded_request(at_origin("/pictures/baseline.jpg?chunk=4096&_=mask%zu", i), &recorder);
        request.event_mask = masks[i];
        CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
        check_order(&recorder, masks[i]);
        if (masks[i] <= IMGDL_EVENT_TERMINAL && masks[i] != IMGDL_EVENT_PROGRESS && masks[i] != IMGDL_EVENT_HEADER)
            CHECK_NUMBER(recorder.count, 1 + (masks[i] & IMGDL_EVENT_STARTED) + (masks[i] & IMGDL_EVENT_RESPONSE ? 1 : 0));
        recorder_clear(&recorder);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

/* The transfer stands still after a part of the body: what can be seen of it must be seen, without a byte more. */
TEST("a partial image is there before the rest of the body, and says which part is ready")
{
    static const struct { const char *name; int whole_canvas; } pictures[] = {
        {"baseline.jpg", 0}, {"progressive.jpg", 1}, {"truecolour.png", 0}, {"adam7.png", 1}, {"lossy.webp", 0}};
    imgdl_downloader *downloader = new_downloader();
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        size_t size;
        free(read_picture(pictures[i].name, &size));
        struct recorder recorder;
        recorder_init(&recorder);
        imgdl_request request = recorded_request(
            at_origin("/pictures/%s?hold_after=%zu&gate=partial%zu", pictures[i].name, size * 7 / 10, i), &recorder);
        request.partial_interval_ms = 1;
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
        if (!await_event(&recorder, IMGDL_EVENT_PARTIAL, NULL))
            FAIL("%s: no partial image", pictures[i].name);
        char gate[16];
        snprintf(gate, sizeof gate, "partial%zu", i);
        open_gate(gate);
        if (!await_end(&recorder, NULL))
            harness_abandon();
        check_ending(&recorder);
        check_order(&recorder, IMGDL_EVENT_ALL);
        CHECK_CODE(recorder.code, IMGDL_OK);
        check_pixels(recorder.image, pictures[i].name);
        for (unsigned r = 0; r < recorder.count && r < MAX_RECORDS; r++)
            if (recorder.records[r].kind == IMGDL_EVENT_PARTIAL) {
                CHECK_NUMBER(recorder.records[r].is_complete, 0);
                CHECK_NUMBER(recorder.records[r].width, imgdl_image_width(recorder.image));
                CHECK_NUMBER(recorder.records[r].height, imgdl_image_height(recorder.image));
                CHECK(recorder.records[r].pass >= 1);
            }
        recorder_clear(&recorder);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

static void check_ready_pixels(struct recorder *recorder, const imgdl_event *event)
{
    if (event->kind != IMGDL_EVENT_PARTIAL)
        return;
    const uint8_t *expected = imgdl_image_pixels(recorder->context), *found = imgdl_image_pixels(event->image);
    imgdl_rectangle ready = imgdl_image_ready(event->image);
    uint32_t width = imgdl_image_width(event->image), height = imgdl_image_height(event->image);
    CHECK(ready.width > 0 && ready.height > 0 && ready.x + ready.width <= width && ready.y + ready.height <= height);
    for (uint32_t y = ready.y; y < ready.y + ready.height; y++)
        if (memcmp(found + ((size_t)y * width + ready.x) * 4, expected + ((size_t)y * width + ready.x) * 4,
                   4 * (size_t)ready.width) != 0) {
            FAIL("row %u of the ready %u + %u is not that of the whole picture", y, ready.y, ready.height);
            return;
        }
}

TEST("the ready rows of a picture that comes row by row are final")
{
    size_t size;
    uint8_t *bytes = read_picture("truecolour.png", &size);
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_image *whole = NULL;
    REQUIRE_OK(imgdl_decode(bytes, size, NULL, &whole));
    recorder.context = whole;
    recorder.hook = check_ready_pixels;
    imgdl_request request = recorded_request(
        at_origin("/pictures/truecolour.png?hold_after=%zu&gate=rows", size / 2), &recorder);
    request.partial_interval_ms = 1;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_event(&recorder, IMGDL_EVENT_PARTIAL, NULL);
    open_gate("rows");
    if (!await_end(&recorder, NULL))
        harness_abandon();
    CHECK_CODE(recorder.code, IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_image_release(whole);
    recorder_clear(&recorder);
    free(bytes);
}

TEST("two requests for the same bytes are one GET; other options of decoding do not divide them, another header does")
{
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorders[4];
    for (int i = 0; i < 4; i++)
        recorder_init(&recorders[i]);
    const char *url = at_origin("/pictures/baseline.jpg?hold_head=1&gate=shared&_=shared");
    imgdl_request request = recorded_request(url, &recorders[0]);
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_gate("shared", 1);
    request.user_data = &recorders[1];
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.pixel_format = IMGDL_PIXEL_FORMAT_BGRA8;
    request.decode = &options;
    request.user_data = &recorders[2];
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    request.flags = IMGDL_REQUEST_BODY;
    request.user_data = &recorders[3];
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    CHECK_NUMBER(imgdl_downloader_current_count(downloader), 4);
    open_gate("shared");
    for (int i = 0; i < 4; i++) {
        if (!await_end(&recorders[i], NULL))
            harness_abandon();
        check_ending(&recorders[i]);
        check_order(&recorders[i], IMGDL_EVENT_ALL);
        CHECK_CODE(recorders[i].code, IMGDL_OK);
    }
    CHECK_NUMBER(times_served(url), 1);
    check_pixels(recorders[0].image, "baseline.jpg");
    check_pixels(recorders[1].image, "baseline.jpg");
    CHECK_NUMBER(imgdl_image_pixel_format(recorders[2].image), IMGDL_PIXEL_FORMAT_BGRA8);
    const uint8_t *rgba = imgdl_image_pixels(recorders[0].image), *bgra = imgdl_image_pixels(recorders[2].image);
    REQUIRE(rgba && bgra);
    CHECK(rgba[0] == bgra[2] && rgba[1] == bgra[1] && rgba[2] == bgra[0] && rgba[3] == bgra[3]);
    size_t size;
    uint8_t *bytes = read_picture("baseline.jpg", &size);
    CHECK(recorders[3].image == NULL);
    CHECK_NUMBER(imgdl_data_length(recorders[3].data), size);
    CHECK(recorders[3].data && memcmp(imgdl_data_bytes(recorders[3].data), bytes, size) == 0);
    free(bytes);

    url = at_origin("/pictures/tiny.png?hold_head=1&gate=divided&_=divided");
    const imgdl_header header = {"X-Who", "another"};
    for (int i = 0; i < 2; i++) {
        recorder_clear(&recorders[i]);
        request = recorded_request(url, &recorders[i]);
        request.headers = &header;
        request.header_count = (size_t)i;
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
    await_gate("divided", 2);
    open_gate("divided");
    for (int i = 0; i < 2; i++)
        await_end(&recorders[i], NULL);
    CHECK_NUMBER(times_served(url), 2);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("cancelling one of two leaves the other its download")
{
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorders[2];
    imgdl_token *tokens[2] = {NULL, NULL};
    const char *url = at_origin("/pictures/baseline.jpg?hold_after=1000&gate=one-of-two&_=one-of-two");
    for (int i = 0; i < 2; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(url, &recorders[i]);
        REQUIRE_OK(imgdl_download(downloader, &request, &tokens[i]));
    }
    await_gate("one-of-two", 1);
    CHECK_CODE(imgdl_token_cancel(tokens[0]), IMGDL_OK);
    CHECK_CODE(imgdl_token_cancel(tokens[0]), IMGDL_OK);
    if (!await_end(&recorders[0], NULL)) /* while the transfer still stands still */
        harness_abandon();
    CHECK_CODE(recorders[0].code, IMGDL_ERROR_CANCELLED);
    CHECK_NUMBER(recorders[1].terminals, 0);
    open_gate("one-of-two");
    if (!await_end(&recorders[1], NULL))
        harness_abandon();
    CHECK_CODE(recorders[1].code, IMGDL_OK);
    for (int i = 0; i < 2; i++) {
        check_ending(&recorders[i]);
        CHECK_CODE(imgdl_token_cancel(tokens[i]), IMGDL_OK);
        imgdl_token_release(tokens[i]);
        recorder_clear(&recorders[i]);
    }
    CHECK_NUMBER(times_served(url), 1);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("the last cancel closes the connection, and a request made at once does not inherit the dying transfer")
{
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorders[2];
    imgdl_token *tokens[2] = {NULL, NULL};
    const char *url = at_origin("/pictures/tiny.png?hold_after=100&gate=again&_=again");
    for (int i = 0; i < 2; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(url, &recorders[i]);
        REQUIRE_OK(imgdl_download(downloader, &request, &tokens[i]));
        await_gate("again", (unsigned)i + 1);
        if (i == 0)
            CHECK_CODE(imgdl_token_cancel(tokens[i]), IMGDL_OK);
    }
    char *log = ask_origin("/_wait?abandoned=1&deadline_ms=%d", PATIENCE_MS);
    /* At least: what a test before this one left behind may be noted only now. */
    const char *abandoned = strstr(log, "\"abandoned\":");
    CHECK(abandoned && strtol(abandoned + strlen("\"abandoned\":"), NULL, 10) >= 1);
    free(log);
    open_gate("again");
    for (int i = 0; i < 2; i++) {
        if (!await_end(&recorders[i], NULL))
            harness_abandon();
        check_ending(&recorders[i]);
        imgdl_token_release(tokens[i]);
    }
    CHECK_CODE(recorders[0].code, IMGDL_ERROR_CANCELLED);
    CHECK_CODE(recorders[1].code, IMGDL_OK);
    CHECK_NUMBER(times_served(url), 2);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

static void cancel_on_progress(struct recorder *recorder, const imgdl_event *event)
{
    (void)recorder;
    if (event->kind == IMGDL_EVENT_PROGRESS || event->kind == IMGDL_EVENT_TERMINAL)
        CHECK_CODE(imgdl_token_cancel(event->token), IMGDL_OK);
}

TEST("cancel inside a callback: the next event is the terminal, on every executor")
{
    for (int kind = 0; kind < EXECUTORS; kind++) {
        imgdl_downloader *downloader = new_downloader();
        imgdl_executor *executor = make_executor(kind);
        struct recorder recorder;
        recorder_init(&recorder);
        recorder.hook = cancel_on_progress;
        imgdl_request request = recorded_request(
            at_origin("/pictures/baseline.jpg?chunk=1000&hold_after=5000&gate=never&_=%d", kind), &recorder);
        request.executor = executor;
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
        if (!await_end(&recorder, kind == ON_PUMP ? executor : NULL))
            harness_abandon();
        check_ending(&recorder);
        CHECK_CODE(recorder.code, IMGDL_ERROR_CANCELLED);
        CHECK_NUMBER(count_kind(&recorder, IMGDL_EVENT_PROGRESS), 1);
        CHECK(recorder.count >= 2 && recorder.records[recorder.count - 2].kind == IMGDL_EVENT_PROGRESS);
        CHECK(recorder.image == NULL);
        imgdl_executor_release(executor);
        REQUIRE_OK(imgdl_downloader_destroy(downloader));
        recorder_clear(&recorder);
    }
}

TEST("a cancel in the terminal callback of a success changes nothing")
{
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=late-cancel"), &recorder);
    request.event_mask = IMGDL_EVENT_TERMINAL;
    recorder.hook = cancel_on_progress;
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    CHECK_NUMBER(recorder.count, 1);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("body mode takes any type and decodes nothing; both can be asked for")
{
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(at_origin("/pictures/page.html"), &recorder);
    request.flags = IMGDL_REQUEST_BODY;
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    CHECK(recorder.image == NULL);
    CHECK(imgdl_data_length(recorder.data) > 20 && memcmp(imgdl_data_bytes(recorder.data), "<!DOCTYPE", 9) == 0);
    CHECK_NUMBER(count_kind(&recorder, IMGDL_EVENT_HEADER), 0);
    recorder_clear(&recorder);

    request = recorded_request(at_origin("/pictures/turned.jpg"), &recorder);
    request.flags = IMGDL_REQUEST_BODY | IMGDL_REQUEST_DECODE;
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    size_t size;
    free(read_picture("turned.jpg", &size));
    CHECK_NUMBER(imgdl_data_length(recorder.data), size);
    check_pixels(recorder.image, "turned.jpg");
    CHECK_NUMBER(imgdl_image_width(recorder.image), 200); /* 300 × 200, turned by its orientation */
    CHECK_NUMBER(imgdl_image_orientation(recorder.image), 6);
    recorder_clear(&recorder);

    request = recorded_request(at_origin("/status/404"), &recorder);
    request.flags = IMGDL_REQUEST_BODY | IMGDL_REQUEST_ANY_STATUS;
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    CHECK_NUMBER(recorder.http_status, 404);
    CHECK(imgdl_data_length(recorder.data) > 0);
    recorder_clear(&recorder);

    request = recorded_request(at_origin("/redirect?to=/pictures/tiny.png"), &recorder);
    request.flags = IMGDL_REQUEST_BODY | IMGDL_REQUEST_ANY_STATUS | IMGDL_REQUEST_NO_REDIRECTS;
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    CHECK_NUMBER(recorder.http_status, 302);
    recorder_clear(&recorder);

    request = recorded_request(at_origin("/echo"), &recorder);
    request.flags = IMGDL_REQUEST_BODY;
    request.method = "POST";
    request.body = "two words";
    request.body_length = 9;
    const imgdl_header headers[] = {{"X-Mine", "yes"}, {"User-Agent", NULL}};
    request.headers = headers;
    request.header_count = 2;
    REQUIRE_OK(imgdl_downloader_set_header(downloader, "X-All", "everywhere"));
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    char *echo = strndup(imgdl_data_bytes(recorder.data), imgdl_data_length(recorder.data));
    CHECK(strstr(echo, "\"method\":\"POST\"") && strstr(echo, "two words"));
    CHECK(strstr(echo, "[\"X-Mine\",\"yes\"]") && strstr(echo, "[\"X-All\",\"everywhere\"]"));
    CHECK(strstr(echo, "User-Agent") == NULL && strstr(echo, "\"Accept\"") != NULL);
    CHECK(strstr(echo, "Expect") == NULL);
    free(echo);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("redirects are followed, and the response tells where they led")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/redirect/3?to=/pictures/tiny.png");
    imgdl_token *token = NULL;
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    REQUIRE_OK(imgdl_download(downloader, &request, &token));
    REQUIRE_OK(imgdl_token_wait(token, PATIENCE_MS));
    REQUIRE_OK(imgdl_token_result(token, &result));
    CHECK_CODE(result.code, IMGDL_OK);
    REQUIRE(result.response != NULL);
    CHECK_NUMBER(result.response->redirect_count, 3);
    CHECK(strcmp(result.response->url, at_origin("/pictures/tiny.png")) == 0);
    CHECK_NUMBER(result.response->http_version, 11);
    int found = 0;
    for (size_t i = 0; i < result.response->header_count; i++)
        found |= !strcasecmp(result.response->headers[i].name, "Content-Type") &&
                 !strcmp(result.response->headers[i].value, "image/png");
    CHECK(found);
    imgdl_token_release(token);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("max_concurrent bounds what runs; suspended nothing starts; priority and order decide who is next")
{
    imgdl_downloader *downloader = new_downloader_with(1, NULL);
    struct recorder recorders[4];
    static const imgdl_priority priorities[] = {IMGDL_PRIORITY_NORMAL, IMGDL_PRIORITY_LOW, IMGDL_PRIORITY_NORMAL,
                                                IMGDL_PRIORITY_HIGH};
    free(ask_origin("/_reset"));
    REQUIRE_OK(imgdl_downloader_set_suspended(downloader, 1));
    for (int i = 0; i < 4; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=order%d", i), &recorders[i]);
        request.priority = priorities[i];
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
    CHECK_NUMBER(imgdl_downloader_current_count(downloader), 4);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, 0), IMGDL_ERROR_WAIT_TIMEOUT);
    REQUIRE_OK(imgdl_downloader_set_suspended(downloader, 0));
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, PATIENCE_MS), IMGDL_OK);
    CHECK_NUMBER(imgdl_downloader_current_count(downloader), 0);
    char *log = ask_origin("/_log");
    static const int expected[] = {3, 0, 2, 1};
    const char *at = log;
    for (int i = 0; i < 4; i++) {
        char key[32];
        snprintf(key, sizeof key, "_=order%d\"", expected[i]);
        const char *found = strstr(at, key);
        if (!found)
            FAIL("%s is not number %d", key, i);
        else
            at = found;
    }
    CHECK(strstr(log, "\"max_in_flight\":1,") != NULL);
    free(log);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("a slow subscriber holds up neither the network nor another executor")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_executor *slow = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&slow));
    struct recorder stuck, quick;
    recorder_init(&stuck);
    recorder_init(&quick);
    const char *url = at_origin("/pictures/baseline.jpg?chunk=2000&_=slow");
    imgdl_request request = recorded_request(url, &stuck);
    request.executor = slow; /* which nobody dispatches */
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    request.user_data = &quick;
    request.executor = NULL;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    if (!await_end(&quick, NULL))
        harness_abandon();
    CHECK_CODE(quick.code, IMGDL_OK);
    CHECK_NUMBER(stuck.count, 0);
    /* Newer progress took the place of older; nothing else is lost, and the order holds. */
    if (!await_end(&stuck, slow))
        harness_abandon();
    CHECK_CODE(stuck.code, IMGDL_OK);
    check_order(&stuck, IMGDL_EVENT_ALL);
    CHECK_NUMBER(count_kind(&stuck, IMGDL_EVENT_STARTED), 1);
    CHECK_NUMBER(count_kind(&stuck, IMGDL_EVENT_HEADER), 1);
    CHECK(count_kind(&stuck, IMGDL_EVENT_PROGRESS) <= 1);
    imgdl_executor_release(slow);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("dispatch runs no more callbacks than asked, and the descriptor stays readable while there are more")
{
    imgdl_downloader *downloader = new_downloader();
    imgdl_executor *executor = NULL;
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    struct recorder recorders[3];
    struct pollfd waiting = {.fd = imgdl_executor_fd(executor), .events = POLLIN};
    uint32_t dispatched = 9;
    REQUIRE_OK(imgdl_executor_dispatch(executor, 0, &dispatched));
    CHECK_NUMBER(dispatched, 0);
    CHECK_NUMBER(poll(&waiting, 1, 0), 0);
    for (int i = 0; i < 3; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=dispatch%d", i), &recorders[i]);
        request.executor = executor;
        request.event_mask = IMGDL_EVENT_TERMINAL;
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
    for (int ran = 0; ran < 3; ran++) {
        CHECK_NUMBER(poll(&waiting, 1, PATIENCE_MS), 1);
        REQUIRE_OK(imgdl_executor_dispatch(executor, 1, &dispatched));
        CHECK_NUMBER(dispatched, 1);
        CHECK_NUMBER(recorders[0].terminals + recorders[1].terminals + recorders[2].terminals, ran + 1);
    }
    for (int i = 0; i < 3; i++)
        if (!await_end(&recorders[i], executor))
            harness_abandon();
    CHECK_NUMBER(poll(&waiting, 1, 0), 0);
    imgdl_executor_release(executor);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}
