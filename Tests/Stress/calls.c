/* What the library is given to call: callbacks, hooks, observers, loaders. codecs.c has codecs and allocators. */
#include "player.h"
#include "calls.h"

#include <stdio.h>
#include <string.h>

/* ---- Events */

static void keep_some(const imgdl_event *event)
{
    if (!begin_move())
        return;
    if (event->image && one_in(4))
        put_or_release(IMAGE, imgdl_image_retain(event->image));
    /* Bodies come seldom, and hardly ever where the machine has much else to do. */
    if (event->data)
        put_or_release(DATA, imgdl_data_retain(event->data));
    if (one_in(16))
        put_or_release(TOKEN, imgdl_token_retain(event->token));
    if (one_in(32))
        judge(F_imgdl_token_cancel, imgdl_token_cancel(event->token));
    end_move();
}

void on_event(const imgdl_event *event, void *user_data)
{
    struct ward *ward = user_data;
    enum place place = ward->executor ? DISPATCHED : ward->mask & INLINE_REQUEST ? INLINE : DELIVERY;
    enum place before = enter(place);
    struct executor_model *outer = enter_executor(ward->executor);
    enter_ward(ward, 0);
    if (atomic_load(&ward->terminals))
        violation("an event (%u) after the end: %s", event->kind, ward->url);
    if (event->kind == IMGDL_EVENT_TERMINAL) {
        atomic_fetch_add(&ward->terminals, 1);
        note_end(event->code);
    } else if (!(event->kind & ward->mask))
        violation("an event (%u) that the mask %u does not have: %s", event->kind, ward->mask, ward->url);
    if (event->kind == IMGDL_EVENT_TERMINAL && event->code == IMGDL_OK && !event->image && !event->data)
        violation("a success without anything: %s", ward->url);
    if (event->kind == IMGDL_EVENT_TERMINAL && event->code == IMGDL_ERROR_INTERNAL)
        violation("INTERNAL: %s", event->message);
    keep_some(event);
    play_here(8);
    leave_ward(ward);
    leave_executor(outer);
    leave(before);
}

/* ---- Hooks */

static void ask(imgdl_continuation *next, struct ward *ward)
{
    enter_ward(ward, 1);
    enum place before = enter(HOOK);
    if (one_in(2))
        answer_continuation(next);
    else
        put_or_release(CONTINUATION, next);
    play_here(8);
    leave(before);
    leave_ward(ward);
}

static void modify_request(const imgdl_outgoing *request, imgdl_continuation *next, void *ward)
{
    (void)request;
    ask(next, ward);
}

static void modify_response(const imgdl_response *response, imgdl_continuation *next, void *ward)
{
    (void)response;
    ask(next, ward);
}

static void transform_body(imgdl_data *body, imgdl_continuation *next, void *ward)
{
    if (one_in(4) && begin_move()) {
        put_or_release(DATA, imgdl_data_retain(body));
        end_move();
    }
    ask(next, ward);
}

static void redirect(const imgdl_response *response, const char *url, imgdl_continuation *next, void *ward)
{
    (void)response, (void)url;
    ask(next, ward);
}

imgdl_hooks_table random_hooks(struct ward *ward)
{
    return (imgdl_hooks_table){
        .struct_size = sizeof(imgdl_hooks_table),
        .modify_request = one_in(2) ? modify_request : NULL,
        .modify_response = one_in(2) ? modify_response : NULL,
        .transform_body = one_in(2) ? transform_body : NULL,
        .redirect = one_in(2) ? redirect : NULL,
        .authenticate = one_in(2) ? modify_response : NULL,
        .user_data = ward,
        .destructor = ward_destroyed};
}

void answer_continuation_by(enum function function, imgdl_continuation *next)
{
    static const imgdl_header headers[] = {{"Content-Type", "image/png"}, {"X-Played", "1"}};
    const struct picture *picture = &pictures[chance(picture_count)];
    imgdl_outgoing outgoing;
    char url[256];
    switch (function) {
    case F_imgdl_continue_with_request:
        imgdl_outgoing_init(&outgoing, sizeof outgoing);
        snprintf(url, sizeof url, "%s/pictures/%s?_=hook%u", origin, picture->name, chance(8));
        outgoing.url = one_in(8) ? "no url" : url;
        outgoing.method = one_in(8) ? "POST" : NULL;
        outgoing.headers = one_in(4) ? headers : NULL;
        outgoing.header_count = outgoing.headers ? 2 : 0;
        outgoing.body = one_in(8) ? url : NULL;
        outgoing.body_length = outgoing.body ? sizeof url : 0;
        judge(function, imgdl_continue_with_request(next, &outgoing));
        break;
    case F_imgdl_continue_with_response:
        judge(function, imgdl_continue_with_response(next, one_in(4) ? 99 : 200, headers, 2));
        break;
    case F_imgdl_continue_with_data: judge(function, imgdl_continue_with_data(next, picture->bytes, picture->size)); break;
    case F_imgdl_continue_with_credentials: judge(function, imgdl_continue_with_credentials(next, "u", "p")); break;
    case F_imgdl_continue_refused: {
        static const imgdl_status codes[] = {0, IMGDL_ERROR_INVALID_RESPONSE, 77};
        judge(function, imgdl_continue_refused(next, codes[chance(3)], one_in(2) ? "refused" : NULL));
        break;
    }
    default: break;
    }
    /* What was no answer to its question can still be answered; what was answered is no handle any more. */
    has_living = 0;
    judge(F_imgdl_continue_unchanged, imgdl_continue_unchanged(next));
}

void answer_continuation(imgdl_continuation *next)
{
    static const enum function functions[] = {
        F_imgdl_continue_with_request, F_imgdl_continue_with_response, F_imgdl_continue_with_data,
        F_imgdl_continue_with_credentials, F_imgdl_continue_refused};
    unsigned function = chance(12);
    answer_continuation_by(function < 5 ? functions[function] : F_imgdl_continue_unchanged, next);
}

/* ---- Observers */

void on_observation(const imgdl_observation *observation, void *user_data)
{
    enter_ward(user_data, 0);
    if (observation->kind < IMGDL_OBSERVED_STARTED || observation->kind > IMGDL_OBSERVED_FINISHED)
        violation("an observation of kind %u", observation->kind);
    play_inside(OBSERVER);
    leave_ward(user_data);
}

/* ---- Loaders */

struct load {
    struct ward *ward;
    imgdl_transfer *transfer;
    atomic_int is_cancelled;
};

void report_transfer(imgdl_transfer *transfer)
{
    const struct picture *picture = &pictures[chance(picture_count)];
    static uint8_t much[3 << 20];
    if (one_in(20)) {
        judge(F_imgdl_transfer_end, imgdl_transfer_end(transfer, IMGDL_ERROR_CONNECTION_LOST, "played"));
    } else {
        judge(F_imgdl_transfer_response, imgdl_transfer_response(transfer, one_in(8) ? 404 : 200, NULL, 0));
        size_t at = 0;
        for (unsigned i = 0; i < 40 && at < picture->size; i++) {
            size_t size = 1 + chance(32768), left = picture->size - at;
            size = size < left ? size : left;
            imgdl_status status = judge(F_imgdl_transfer_body, imgdl_transfer_body(transfer, picture->bytes + at, size));
            if (status != IMGDL_OK)
                break;
            at += size;
        }
        for (unsigned i = 0; one_in(6) && i < 8; i++)
            judge(F_imgdl_transfer_body, imgdl_transfer_body(transfer, much, chance(sizeof much)));
        if (!one_in(10))
            judge(F_imgdl_transfer_end, imgdl_transfer_end(transfer, IMGDL_OK, NULL));
    }
    note(F_imgdl_transfer_release, 0);
    imgdl_transfer_release(transfer);
}

static void *start_load(const imgdl_outgoing *request, imgdl_transfer *transfer, void *ward)
{
    (void)request;
    enter_ward(ward, 1);
    enum place before = enter(HOOK);
    /* A transfer goes to the shelf while no child has reported one: the next child finds it there. */
    int is_for_child = has_feature[FORKS] && !(has_answered(AFTER_FORK, F_imgdl_transfer_response) &&
                                               has_answered(AFTER_FORK, F_imgdl_transfer_body) &&
                                               has_answered(AFTER_FORK, F_imgdl_transfer_end));
    if (one_in(2) && !is_for_child)
        report_transfer(transfer);
    else
        put_or_release(TRANSFER, transfer);
    if (is_for_child)
        atomic_store(&awaits_child, 1);
    play_here(8);
    leave(before);
    leave_ward(ward);
    /* The handle itself stands for what was started: cancel_load needs nothing else. */
    return transfer;
}

static void cancel_load(void *started, void *ward)
{
    enter_ward(ward, 1);
    enum place before = enter(HOOK);
    forget_handle(TRANSFER, started);
    note(F_imgdl_transfer_release, 0);
    imgdl_transfer_release(started);
    leave(before);
    leave_ward(ward);
}

static void resume_load(void *started, void *ward)
{
    /* Another thread may be reporting: what it does next is its own affair. */
    (void)started;
    enter_ward(ward, 1);
    play_inside(HOOK);
    leave_ward(ward);
}

imgdl_transport_table random_transport(struct ward *ward)
{
    return (imgdl_transport_table){
        .struct_size = sizeof(imgdl_transport_table), .start = start_load, .cancel = cancel_load, .user_data = ward,
        .destructor = ward_destroyed, .resume = one_in(4) ? NULL : resume_load};
}
