/* Whether the player sees what it is there to see: most promises are broken once, by the player itself. For test_sees.py. */
#include "calls.h"

#include <string.h>

static struct ward *accepted(enum ward_kind kind)
{
    struct ward *ward = new_ward(kind);
    ward->mask = IMGDL_EVENT_TERMINAL | IMGDL_EVENT_RESPONSE;
    accept_ward(ward, IMGDL_OK);
    return ward;
}

static void tell(struct ward *ward, uint32_t kind, imgdl_status code)
{
    imgdl_event event = {.struct_size = sizeof event, .kind = kind, .code = code, .message = ""};
    on_event(&event, ward);
}

static void tell_end(struct ward *ward) { tell(ward, IMGDL_EVENT_TERMINAL, IMGDL_ERROR_CANCELLED); }

static void nothing(void) {}

/* As at the end of a round. */
static void settle(void)
{
    settle_wards(nothing, 0.1);
    forget_wards();
}

static struct ward *ended(enum ward_kind kind)
{
    struct ward *ward = accepted(kind);
    if (kind == REQUEST)
        tell_end(ward);
    ward_destroyed(ward);
    return ward;
}

static struct executor_model *released_executor(void)
{
    static struct executor_model model;
    return &model;
}

/* ---- What is as it should be */

static void see_nothing(void)
{
    struct ward *request = accepted(REQUEST), *silent = accepted(REQUEST), *refused = new_ward(REQUEST);
    tell(request, IMGDL_EVENT_RESPONSE, IMGDL_OK);
    tell_end(request);
    ward_destroyed(request);
    silent->is_silent = 1;
    ward_destroyed(silent);
    ward_destroyed(refused);
    accept_ward(refused, IMGDL_ERROR_INVALID_URL);
    /* One callback may have been in hand as its executor was released; and nobody is told of what is lost with one. */
    struct ward *in_hand = accepted(REQUEST), *lost = accepted(REQUEST);
    in_hand->executor = lost->executor = released_executor();
    tell_end(in_hand);
    ward_destroyed(in_hand);
    ward_destroyed(lost);
    ended(HOOKS);
    for (long round = 0; round < 20; round++)
        note_allocated(round == 3 ? 90000 : 4000 + 500 * round);
    judge(F_imgdl_cache_flush, IMGDL_OK);
    judge(F_imgdl_download, IMGDL_ERROR_SHUT_DOWN);
    settle();
}

/* ---- What is not */

static void see_second_end(void)
{
    struct ward *ward = accepted(REQUEST);
    tell_end(ward);
    tell_end(ward);
}
static void see_event_after_end(void)
{
    struct ward *ward = accepted(REQUEST);
    tell_end(ward);
    tell(ward, IMGDL_EVENT_RESPONSE, IMGDL_OK);
}
static void see_late_callback(void) { tell(ended(OBSERVING), IMGDL_EVENT_RESPONSE, IMGDL_OK); }
static void see_masked_event(void) { tell(accepted(REQUEST), IMGDL_EVENT_PARTIAL, IMGDL_OK); }
static void see_empty_success(void) { tell(accepted(REQUEST), IMGDL_EVENT_TERMINAL, IMGDL_OK); }
static void see_overlap(void)
{
    struct ward *ward = accepted(REQUEST);
    enter_ward(ward, 0);
    tell_end(ward);
}
static void see_destructor_in_callback(void)
{
    struct ward *ward = accepted(REQUEST);
    enter_ward(ward, 0);
    ward_destroyed(ward);
}
static void see_second_destructor(void) { ward_destroyed(ended(REQUEST)); }
static void see_lost_request(void)
{
    accepted(REQUEST);
    settle();
}
static void see_request_without_end(void)
{
    ward_destroyed(accepted(REQUEST));
    settle();
}
static void see_lost_table(void)
{
    ended(HOOKS);
    accepted(TRANSPORT);
    settle();
}
static void see_end_of_a_refused_request(void)
{
    struct ward *ward = new_ward(REQUEST);
    tell_end(ward);
    ward_destroyed(ward);
    accept_ward(ward, IMGDL_ERROR_INVALID_URL);
    settle();
}
static void see_end_of_a_silent_request(void)
{
    struct ward *ward = accepted(REQUEST);
    ward->is_silent = 1;
    tell_end(ward);
    ward_destroyed(ward);
    settle();
}
static void see_released_executor(void)
{
    for (int i = 0; i < 2; i++) {
        struct ward *ward = accepted(REQUEST);
        ward->executor = released_executor();
        tell_end(ward);
    }
}

/* Each function of a codec, on a decoder that is left when the table has gone. */
static void see_late_codec(enum function function)
{
    struct ward *ward = accepted(CODER);
    imgdl_coder_table table = random_coder(ward);
    void *decoder = NULL;
    imgdl_image_info info;
    imgdl_image *image = NULL;
    while (!(decoder = table.create(NULL, ward)))
        continue;
    ward_destroyed(ward);
    switch (function) {
    case F_imgdl_decoder_create: table.create(NULL, ward); break;
    case F_imgdl_decoder_feed: table.feed(decoder, "TOY", 3); break;
    case F_imgdl_decoder_info: table.info(decoder, &info); break;
    case F_imgdl_decoder_partial: table.partial(decoder, &image); break;
    case F_imgdl_decoder_finish: table.finish(decoder, &image); break;
    default: table.destroy(decoder); break;
    }
}
static void see_late_create(void) { see_late_codec(F_imgdl_decoder_create); }
static void see_late_feed(void) { see_late_codec(F_imgdl_decoder_feed); }
static void see_late_info(void) { see_late_codec(F_imgdl_decoder_info); }
static void see_late_partial(void) { see_late_codec(F_imgdl_decoder_partial); }
static void see_late_finish(void) { see_late_codec(F_imgdl_decoder_finish); }
static void see_late_destroy(void) { see_late_codec(F_imgdl_decoder_destroy); }

static void see_memory(void)
{
    for (long round = 0; round < 20; round++)
        note_allocated(4000 + (round == 15) * 21000);
}
static void see_shut_down_cache(void) { judge(F_imgdl_cache_query, IMGDL_ERROR_SHUT_DOWN); }
static void see_shut_down_wait(void) { judge(F_imgdl_downloader_wait_idle, IMGDL_ERROR_SHUT_DOWN); }
static void see_deadlock(void) { judge(F_imgdl_download, IMGDL_ERROR_WOULD_DEADLOCK); }
static void see_forked(void) { judge(F_imgdl_token_cancel, IMGDL_ERROR_FORKED); }
static void see_internal(void) { judge(F_imgdl_decode, IMGDL_ERROR_INTERNAL); }
static void see_wait(void)
{
    enter(OBSERVER);
    judge(F_imgdl_token_wait, IMGDL_ERROR_WAIT_TIMEOUT);
}
static void see_child(void)
{
    become_child(AFTER_FORK);
    judge(F_imgdl_downloader_cancel_all, IMGDL_OK);
}
static void see_child_after_exit(void)
{
    become_child(AFTER_EXIT);
    judge(F_imgdl_cache_open, IMGDL_OK);
}

static const struct {
    const char *name;
    void (*happens)(void);
} things[] = {
    {"nothing", see_nothing}, {"second end", see_second_end}, {"event after the end", see_event_after_end},
    {"late callback", see_late_callback}, {"masked event", see_masked_event}, {"empty success", see_empty_success},
    {"overlap", see_overlap}, {"destructor in a callback", see_destructor_in_callback},
    {"second destructor", see_second_destructor}, {"lost request", see_lost_request},
    {"request without an end", see_request_without_end}, {"lost table", see_lost_table},
    {"end of a refused request", see_end_of_a_refused_request}, {"end of a silent request", see_end_of_a_silent_request},
    {"released executor", see_released_executor}, {"late create", see_late_create}, {"late feed", see_late_feed},
    {"late info", see_late_info}, {"late partial", see_late_partial}, {"late finish", see_late_finish},
    {"late destroy", see_late_destroy},
    {"memory", see_memory}, {"shut down cache", see_shut_down_cache}, {"shut down wait", see_shut_down_wait},
    {"deadlock", see_deadlock}, {"forked", see_forked}, {"internal", see_internal}, {"wait", see_wait},
    {"child", see_child}, {"child after exit", see_child_after_exit}, {"hanging child", see_hanging_child},
};

/* Returns where nobody complains. */
void see(const char *what)
{
    bell_start();
    prepare_answers();
    has_living = 1;
    for (unsigned i = 0; i < sizeof things / sizeof *things; i++)
        if (!strcmp(things[i].name, what)) {
            things[i].happens();
            return;
        }
    give_up(what);
}
