/* Random requests, configurations and decode options. */
#include "player.h"
#include "calls.h"

#include <stdio.h>

const char *origin, *http2_origin, *http2_ca_file, *scratch_folder;
const struct picture *pictures;
unsigned picture_count;

imgdl_decode_options random_decode_options(void)
{
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.pixel_format = chance(4);
    if (one_in(3))
        options.flags = IMGDL_DECODE_SALVAGE;
    if (one_in(4))
        options.target_width = 1 + chance(400);
    if (one_in(8))
        options.max_pixels = 1 + chance(1000000);
    if (one_in(4))
        options.colour = IMGDL_COLOUR_SRGB;
    if (one_in(6))
        options.coder = pick(A_CODER);
    if (one_in(4)) {
        options.allocate = allocate;
        options.deallocate = deallocate;
        options.allocator_user_data = &allocator_tag;
    }
    return options;
}

/* ---- Requests */

static void random_url(char *url, size_t size)
{
    static const char *const faults[] = {
        "", "", "", "", "", "", "status=503", "status=404", "type=text/html", "etag=v1", "range=wrong", "keepalive=0",
        "empty=1", "length=lie", "length=none", "short_by=100", "chunked=1", "cut_chunked=1", "gzip=1", "delay_ms=20",
        "first_byte=never", "stall_after=1000", "reset_after=2000", "close_after=3000", "chunk=700", "rate=200000",
        "header=Cache-Control:max-age=60", "header=Cache-Control:no-store", "header=Cache-Control:max-age=0&etag=v2"};
    const char *name = pictures[chance(picture_count)].name;
    switch (chance(24)) {
    case 0: case 8: snprintf(url, size, "app://played/%u", chance(20)); return;
    case 1: snprintf(url, size, "data:image/png;base64,iVBORw0KGgo="); return;
    case 2: snprintf(url, size, "file://%s/none", scratch_folder); return;
    case 3: snprintf(url, size, "%s/redirect/%u?to=%s/pictures/%s", origin, 1 + chance(3), origin, name); return;
    case 4: snprintf(url, size, "%s/flaky?id=%u&fail=1&picture=%s", origin, chance(1000), name); return;
    case 5: snprintf(url, size, "%s/auth/basic?user=u&password=p&picture=%s", origin, name); return;
    case 6: snprintf(url, size, one_in(2) ? "http://127.0.0.1:1/refused" : "no url at all"); return;
    case 7: snprintf(url, size, "%s/garbage", origin); return;
    default: break;
    }
    snprintf(url, size, "%s/pictures/%s?_=%u&%s", one_in(4) ? http2_origin : origin, name, chance(12),
             faults[chance(sizeof faults / sizeof *faults)]);
}

imgdl_request random_request(struct ward *ward)
{
    static _Thread_local imgdl_decode_options options;
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    random_url(ward->url, sizeof ward->url);
    request.url = ward->url;
    static const imgdl_request_flags flags[] = {
        0, IMGDL_REQUEST_BODY, IMGDL_REQUEST_BODY | IMGDL_REQUEST_DECODE, IMGDL_REQUEST_NO_REDIRECTS,
        IMGDL_REQUEST_CONTINUE_IN_BACKGROUND, IMGDL_REQUEST_ANY_STATUS, IMGDL_REQUEST_COOKIES};
    request.flags = flags[chance(7)] | (one_in(4) ? IMGDL_REQUEST_CONTINUE_IN_BACKGROUND : 0);
    request.event_mask = chance(64);
    request.priority = (imgdl_priority)chance(3) - 1;
    if (one_in(4))
        request.max_body_bytes = 1 + chance(500000);
    /* A hook that never answers, a server that is silent: it ends all the same, but for those that are cancelled at the end
     * of the round. */
    if (!one_in(10))
        request.total_timeout_ms = 200 + chance(1500);
    request.idle_timeout_ms = 100 + chance(1000);
    if (one_in(3))
        request.retry_count = 1 + chance(2), request.retry_base_ms = 20, request.retry_max_ms = 50;
    options = random_decode_options();
    if (one_in(2))
        request.decode = &options;
    request.executor = random_executor(&ward->executor);
    if (one_in(3))
        request.hooks = pick(HOOK_TABLE);
    request.cache_mode = chance(6);
    if (one_in(4))
        request.partition = one_in(2) ? "one" : "two";
    request.callback = on_event;
    request.destructor = ward_destroyed;
    request.user_data = ward;
    ward->mask = request.event_mask | IMGDL_EVENT_TERMINAL;
    if (request.executor == IMGDL_EXECUTOR_INLINE)
        ward->mask |= INLINE_REQUEST;
    return request;
}

imgdl_config random_config(void)
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.max_concurrent = 1 + chance(12);
    config.order = chance(2);
    config.decode_threads = chance(4);
    config.connect_timeout_ms = 1000;
    config.idle_timeout_ms = 1000;
    config.flags = IMGDL_CONFIG_ALLOW_DATA_URLS | IMGDL_CONFIG_ALLOW_FILE_URLS |
                   (one_in(3) ? IMGDL_CONFIG_FINISH_NEARLY_DONE : 0);
    config.max_per_host = chance(4);
    if (one_in(3))
        config.memory_budget = 200000 + chance(4000000);
    config.proxy = "";
    /* Few trust nobody there. */
    config.ca_file = one_in(12) ? NULL : http2_ca_file;
    if (one_in(3))
        config.failure_ttl_ms = 500;
    if (one_in(3))
        config.hooks = pick(HOOK_TABLE);
    /* A child's would be its parent's. */
    if (one_in(2) && child_place == HOST) {
        config.cache = pick(A_CACHE);
        config.cache_mode = chance(6);
    }
    if (one_in(4))
        config.executor = IMGDL_EXECUTOR_INLINE;
    return config;
}
