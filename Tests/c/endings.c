/* Every way to end: shutdown, destroy, and handles released in every order. */
#define SUITE "endings"
#include "support.h"

struct end {
    struct flag done;
    struct recorder *recorders;
    unsigned count;
    unsigned destroyed_at_done;
};

static void on_done(void *user_data)
{
    struct end *end = user_data;
    unsigned destroyed = 0;
    for (unsigned i = 0; i < end->count; i++) {
        pthread_mutex_lock(&end->recorders[i].lock);
        destroyed += end->recorders[i].destroyed;
        pthread_mutex_unlock(&end->recorders[i].lock);
    }
    end->destroyed_at_done = destroyed;
    raise_flag(&end->done);
}

enum { RUNNING = 10 };

/* Some wait at the gate, the others behind them. */
static void start_some(imgdl_downloader *downloader, struct recorder *recorders, const char *gate)
{
    for (unsigned i = 0; i < RUNNING; i++) {
        recorder_init(&recorders[i]);
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?hold_head=1&gate=%s&n=%u", gate, i), &recorders[i]);
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    }
    await_gate(gate, 4);
}

static void check_all_ended(struct recorder *recorders, imgdl_status code)
{
    for (unsigned i = 0; i < RUNNING; i++) {
        check_ending(&recorders[i]);
        if (recorders[i].code != code)
            FAIL("download %u ended with %s, not %s", i, imgdl_error_name(recorders[i].code), imgdl_error_name(code));
    }
}

TEST("shutdown that finishes: no new requests, the old ones run to their end, done comes last")
{
    imgdl_downloader *downloader = new_downloader_with(4, NULL);
    struct recorder recorders[RUNNING];
    struct end end = {.done = FLAG_INIT, .recorders = recorders, .count = RUNNING};
    start_some(downloader, recorders, "finish");
    CHECK_CODE(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_FINISH, on_done, &end), IMGDL_OK);
    struct recorder refused;
    recorder_init(&refused);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=after"), &refused);
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_SHUT_DOWN);
    CHECK_NUMBER(refused.destroyed, 1);
    CHECK_NUMBER(refused.count, 0);
    CHECK_NUMBER(end.done.value, 0);
    open_gate("finish");
    if (!await_flag(&end.done, 1))
        harness_abandon();
    CHECK_NUMBER(end.destroyed_at_done, RUNNING);
    check_all_ended(recorders, IMGDL_OK);
    imgdl_downloader_release(downloader);
}

TEST("shutdown that cancels, and one that hurries a finish up; every done is called")
{
    for (int hurries = 0; hurries < 2; hurries++) {
        imgdl_downloader *downloader = new_downloader_with(4, NULL);
        struct recorder recorders[RUNNING];
        struct end end = {.done = FLAG_INIT, .recorders = recorders, .count = RUNNING};
        start_some(downloader, recorders, hurries ? "hurry" : "cancel");
        if (hurries)
            CHECK_CODE(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_FINISH, on_done, &end), IMGDL_OK);
        CHECK_CODE(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_CANCEL, on_done, &end), IMGDL_OK);
        if (!await_flag(&end.done, 1 + hurries))
            harness_abandon();
        CHECK_NUMBER(end.destroyed_at_done, RUNNING);
        check_all_ended(recorders, IMGDL_ERROR_CANCELLED);
        /* And when it is over, too. */
        CHECK_CODE(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_CANCEL, on_done, &end), IMGDL_OK);
        await_flag(&end.done, 2 + hurries);
        CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    }
}

TEST("destroy cancels and waits: when it has returned every destructor has, too")
{
    imgdl_downloader *downloader = new_downloader_with(4, NULL);
    struct recorder recorders[RUNNING];
    start_some(downloader, recorders, "destroy");
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    check_all_ended(recorders, IMGDL_ERROR_CANCELLED);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_ERROR_INVALID_HANDLE);
}

TEST("cancel_all ends what was accepted so far; the downloader lives on")
{
    imgdl_downloader *downloader = new_downloader_with(4, NULL);
    struct recorder recorders[RUNNING], later;
    start_some(downloader, recorders, "all");
    CHECK_CODE(imgdl_downloader_cancel_all(downloader), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, PATIENCE_MS), IMGDL_OK);
    check_all_ended(recorders, IMGDL_ERROR_CANCELLED);
    recorder_init(&later);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=later"), &later);
    CHECK_CODE(download_and_wait(downloader, &request, &later), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
}

static void destroy_inside(struct recorder *recorder, const imgdl_event *event)
{
    if (event->kind == IMGDL_EVENT_TERMINAL && recorder->context) {
        CHECK_CODE(imgdl_downloader_destroy(recorder->context), IMGDL_OK);
        recorder->context = NULL;
    }
}

TEST("destroy inside a callback does not wait, on every executor; the others are cancelled")
{
    for (int kind = 0; kind < 3; kind++) {
        imgdl_executor *executor = kind == 1 ? IMGDL_EXECUTOR_INLINE : NULL;
        if (kind == 2)
            REQUIRE_OK(imgdl_executor_create_pumped(&executor));
        imgdl_downloader *downloader = new_downloader_with(8, NULL);
        struct recorder recorders[2];
        for (int i = 0; i < 2; i++) {
            recorder_init(&recorders[i]);
            imgdl_request request = recorded_request(
                i ? at_origin("/pictures/tiny.png?_=destroy%d", kind)
                  : at_origin("/pictures/tiny.png?hold_head=1&gate=never&_=destroy%d", kind), &recorders[i]);
            request.executor = executor;
            if (i == 1) {
                recorders[i].context = downloader;
                recorders[i].hook = destroy_inside;
            }
            REQUIRE_OK(imgdl_download(downloader, &request, NULL));
        }
        for (int i = 1; i >= 0; i--) {
            if (!await_end(&recorders[i], kind == 2 ? executor : NULL))
                harness_abandon();
            check_ending(&recorders[i]);
        }
        CHECK_CODE(recorders[0].code, IMGDL_ERROR_CANCELLED);
        CHECK_CODE(recorders[1].code, IMGDL_OK);
        imgdl_executor_release(executor);
    }
}

/* Each dispatches an executor of its own, and destroys in its callback a downloader that the other one's executor ends. */
struct crossing {
    struct recorder recorder, ended; /* the recorder first: its hook gets its address */
    imgdl_executor *executor;
    imgdl_downloader *downloader, *destroyed;
    struct crossing *opposite;
    struct flag *inside;
};

static void destroy_another(struct recorder *recorder, const imgdl_event *event)
{
    struct crossing *crossing = (struct crossing *)(void *)recorder;
    if (event->kind != IMGDL_EVENT_TERMINAL)
        return;
    raise_flag(crossing->inside);
    if (await_flag(crossing->inside, 2))
        CHECK_CODE(imgdl_downloader_destroy(crossing->destroyed), IMGDL_OK);
}

static void *dispatch_until_ended(void *argument)
{
    struct crossing *crossing = argument;
    if (await_end(&crossing->recorder, crossing->executor))
        await_end(&crossing->opposite->ended, crossing->executor);
    return NULL;
}

TEST("destroy of another downloader inside a callback does not wait: two threads that do so would wait for each other")
{
    struct flag inside = FLAG_INIT;
    struct crossing crossings[2] = {0};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        crossings[i].opposite = &crossings[1 - i];
        crossings[i].inside = &inside;
        crossings[i].downloader = new_downloader();
        crossings[i].destroyed = new_downloader();
        REQUIRE_OK(imgdl_executor_create_pumped(&crossings[i].executor));
    }
    for (int i = 0; i < 2; i++) {
        struct crossing *crossing = &crossings[i];
        recorder_init(&crossing->recorder);
        recorder_init(&crossing->ended);
        crossing->recorder.hook = destroy_another;
        imgdl_request held = recorded_request(at_origin("/pictures/tiny.png?hold_head=1&gate=never&_=crossing%d", i), &crossing->ended);
        held.executor = crossing->opposite->executor;
        REQUIRE_OK(imgdl_download(crossing->destroyed, &held, NULL));
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=crossing%d", i), &crossing->recorder);
        request.executor = crossing->executor;
        REQUIRE_OK(imgdl_download(crossing->downloader, &request, NULL));
        REQUIRE(pthread_create(&threads[i], NULL, dispatch_until_ended, crossing) == 0);
    }
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 2; i++) {
        check_ending(&crossings[i].recorder);
        check_ending(&crossings[i].ended);
        CHECK_CODE(crossings[i].recorder.code, IMGDL_OK);
        CHECK_CODE(crossings[i].ended.code, IMGDL_ERROR_CANCELLED);
        CHECK_CODE(imgdl_downloader_destroy(crossings[i].downloader), IMGDL_OK);
        imgdl_executor_release(crossings[i].executor);
    }
}

static int is_raised(struct flag *flag)
{
    pthread_mutex_lock(&flag->lock);
    int value = flag->value;
    pthread_mutex_unlock(&flag->lock);
    return value > 0;
}

static void take_time(void *user_data)
{
    usleep(50000);
    raise_flag(user_data);
}

TEST("destroy waits for a done that was given after the end")
{
    imgdl_downloader *downloader = new_downloader();
    struct flag first = FLAG_INIT, late = FLAG_INIT;
    REQUIRE_OK(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_CANCEL, on_end_raise, &first));
    await_flag(&first, 1);
    usleep(50000); /* the downloader's last thread ends behind it; a late one that comes before passes as well */
    REQUIRE_OK(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_CANCEL, take_time, &late));
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    CHECK(is_raised(&late));
}

static void *destroy_there(void *downloader)
{
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    return NULL;
}

TEST("each of two that destroy one downloader at once waits for its last thread")
{
    for (int i = 0; i < 50; i++) {
        imgdl_downloader *downloader = new_downloader();
        struct flag done = FLAG_INIT;
        pthread_t thread;
        REQUIRE(imgdl_downloader_retain(downloader) == downloader);
        REQUIRE_OK(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_CANCEL, i % 2 ? take_time : on_end_raise, &done));
        REQUIRE(pthread_create(&thread, NULL, destroy_there, downloader) == 0);
        CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
        CHECK(is_raised(&done));
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
}

TEST("the shared downloader is one, and cannot be shut down or destroyed")
{
    imgdl_downloader *first = NULL, *second = NULL;
    REQUIRE_OK(imgdl_downloader_shared(&first));
    REQUIRE_OK(imgdl_downloader_shared(&second));
    CHECK(first == second);
    CHECK_CODE(imgdl_downloader_shared(NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_downloader_shutdown(first, IMGDL_SHUTDOWN_CANCEL, NULL, NULL), IMGDL_ERROR_INVALID_OPERATION);
    CHECK_CODE(imgdl_downloader_destroy(first), IMGDL_ERROR_INVALID_OPERATION);
    imgdl_downloader_release(second);
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=shared-one"), &recorder);
    CHECK_CODE(download_and_wait(first, &request, &recorder), IMGDL_OK);
    imgdl_downloader_release(first);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_shared(&first));
    CHECK_CODE(download_and_wait(first, &request, &recorder), IMGDL_OK);
    imgdl_downloader_release(first);
}

TEST("the shared downloader outlives whoever releases it too often")
{
    imgdl_downloader *careless = NULL, *other = NULL, *again = NULL;
    REQUIRE_OK(imgdl_downloader_shared(&careless));
    REQUIRE_OK(imgdl_downloader_shared(&other));
    for (int i = 0; i < 10; i++)
        imgdl_downloader_release(careless);
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=shared-death"), &recorder);
    CHECK_CODE(download_and_wait(other, &request, &recorder), IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_shared(&again));
    CHECK(again == other);
    for (int i = 0; i < 10; i++) /* destroy releases a reference of others, and never of this one */
        CHECK_CODE(imgdl_downloader_destroy(again), IMGDL_ERROR_INVALID_OPERATION);
    recorder_clear(&recorder);
    CHECK_CODE(download_and_wait(other, &request, &recorder), IMGDL_OK);
}

/* ---- Handles in every order */

enum { DOWNLOADER, EXECUTOR, TOKEN, KINDS };
static const int orders[6][KINDS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

static void release_one(int kind, imgdl_downloader *downloader, imgdl_executor *executor, imgdl_token *token)
{
    switch (kind) {
    case DOWNLOADER: imgdl_downloader_release(downloader); break;
    case EXECUTOR: imgdl_executor_release(executor); break;
    case TOKEN: imgdl_token_release(token); break;
    }
}

TEST("handles released in every order while the download runs: with a thread the end comes as always")
{
    for (int order = 0; order < 6; order++) {
        imgdl_downloader *downloader = new_downloader();
        struct recorder recorder;
        recorder_init(&recorder);
        imgdl_token *token = NULL;
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?hold_head=1&gate=order%d", order), &recorder);
        REQUIRE_OK(imgdl_download(downloader, &request, &token));
        char gate[16];
        snprintf(gate, sizeof gate, "order%d", order);
        await_gate(gate, 1);
        for (int i = 0; i < KINDS; i++)
            release_one(orders[order][i], downloader, NULL, token);
        open_gate(gate);
        if (!await_end(&recorder, NULL))
            harness_abandon();
        check_ending(&recorder);
        CHECK_CODE(recorder.code, IMGDL_OK); /* releasing is not cancelling */
        recorder_clear(&recorder);
    }
}

TEST("handles released in every order: with a pumped executor gone, callbacks do not run and destructors do")
{
    for (int order = 0; order < 6; order++) {
        imgdl_downloader *downloader = new_downloader();
        imgdl_executor *executor = NULL;
        REQUIRE_OK(imgdl_executor_create_pumped(&executor));
        struct recorder recorder;
        recorder_init(&recorder);
        imgdl_token *token = NULL;
        imgdl_request request =
            recorded_request(at_origin("/pictures/tiny.png?hold_head=1&gate=pumped-order%d", order), &recorder);
        request.executor = executor;
        REQUIRE_OK(imgdl_download(downloader, &request, &token));
        char gate[24];
        snprintf(gate, sizeof gate, "pumped-order%d", order);
        await_gate(gate, 1);
        for (int i = 0; i < KINDS; i++)
            release_one(orders[order][i], downloader, executor, token);
        open_gate(gate);
        if (!await_end(&recorder, NULL))
            harness_abandon();
        CHECK_NUMBER(recorder.destroyed, 1);
        CHECK_NUMBER(recorder.count, 0);
    }
}

static void release_inside(struct recorder *recorder, const imgdl_event *event)
{
    (void)event;
    void **handles = recorder->context;
    if (!handles)
        return;
    recorder->context = NULL;
    imgdl_token_release(handles[TOKEN]);
    imgdl_executor_release(handles[EXECUTOR]);
    imgdl_downloader_release(handles[DOWNLOADER]);
}

TEST("all handles released in the first callback")
{
    for (int kind = 0; kind < 2; kind++) {
        void *handles[KINDS] = {new_downloader(), NULL, NULL};
        struct recorder recorder;
        recorder_init(&recorder);
        recorder.hook = release_inside;
        imgdl_request request =
            recorded_request(at_origin("/pictures/tiny.png?hold_head=1&gate=inside%d", kind), &recorder);
        request.executor = kind ? IMGDL_EXECUTOR_INLINE : NULL;
        request.event_mask = IMGDL_EVENT_RESPONSE;
        imgdl_token *token = NULL;
        REQUIRE_OK(imgdl_download(handles[DOWNLOADER], &request, &token));
        handles[TOKEN] = token;
        recorder.context = handles; /* before the gate opens nothing comes */
        char gate[16];
        snprintf(gate, sizeof gate, "inside%d", kind);
        open_gate(gate);
        if (!await_end(&recorder, NULL))
            harness_abandon();
        check_ending(&recorder);
        CHECK_CODE(recorder.code, IMGDL_OK);
        recorder_clear(&recorder);
    }
}

TEST("images and bodies outlive everything they came from")
{
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?_=outlives"), &recorder);
    request.flags = IMGDL_REQUEST_BODY | IMGDL_REQUEST_DECODE;
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_image *again = NULL;
    REQUIRE_OK(imgdl_decode(imgdl_data_bytes(recorder.data), imgdl_data_length(recorder.data), NULL, &again));
    CHECK(memcmp(imgdl_image_pixels(again), imgdl_image_pixels(recorder.image),
                 imgdl_image_stride(again) * imgdl_image_height(again)) == 0);
    imgdl_image_release(again);
    recorder_clear(&recorder);
}
