/* Random requests: README.md says what they leave out, and why. */
#include "calls.h"

#include <stdio.h>

const char *origin, *http2_origin, *http2_ca_file, *scratch_folder;
const struct picture *pictures;
unsigned picture_count;

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
    case 5:
        snprintf(url, size, "%s/auth/%s?user=u&password=p&picture=%s", origin, one_in(2) ? "basic" : "digest", name);
        return;
    case 6: snprintf(url, size, one_in(2) ? "http://127.0.0.1:1/refused" : "no url at all"); return;
    case 7: snprintf(url, size, "%s/garbage", origin); return;
    default: break;
    }
    snprintf(url, size, "%s/pictures/%s?_=%u&%s", one_in(4) ? http2_origin : origin, name, chance(12),
             faults[chance(sizeof faults / sizeof *faults)]);
}

/* What is sent. */
static void set_message(imgdl_request *request)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "two words"};
    static const imgdl_header headers[] = {
        {"X-Played", "1"}, {"Accept", "image/*"}, {"User-Agent", NULL}, {"Range", "bytes=0-999"}, {"Cookie", "a=b"},
        {"Cache-Control", "max-stale=5"}, {"Authorization", "none"}, {"If-None-Match", "\"v1\""}, {"Content-Length", "5"}};
    enum { HEADERS = sizeof headers / sizeof *headers };
    const struct picture *picture = &pictures[chance(picture_count)];
    if (one_in(5))
        request->method = methods[chance(one_in(6) ? 7 : 5)];
    if (request->method && one_in(2)) {
        request->body = picture->bytes;
        request->body_length = chance((uint32_t)(picture->size < 20000 ? picture->size : 20000));
    }
    if (one_in(4)) {
        unsigned first = chance(HEADERS);
        request->headers = headers + first;
        request->header_count = 1 + chance(HEADERS - first < 3 ? HEADERS - first : 3);
    }
    if (one_in(8)) {
        request->user = "u";
        request->password = one_in(3) ? "wrong" : "p";
    }
}

/* Whom it trusts, and as whom it appears: seldom in a way that works nowhere. */
static void set_trust(imgdl_request *request)
{
    if (one_in(8))
        request->ca_file = http2_ca_file;
    if (!one_in(50))
        return;
    switch (chance(5)) {
    case 0: request->ca_file = "/none.pem"; break;
    case 1: request->client_certificate = http2_ca_file; break; /* which is without its key */
    case 2:
        request->client_certificate = http2_ca_file;
        request->client_key = one_in(2) ? "/none.pem" : http2_ca_file;
        request->client_key_password = "p";
        break;
    case 3: request->pinned_public_key = "no pin"; break;
    default: request->pinned_public_key = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="; break;
    }
}

const imgdl_status_range accepted_statuses[2] = {{200, 299}, {404, 404}};
const char *const accepted_types[2] = {"image/png", "image/*"};

static void set_times(imgdl_request *request)
{
    /* A hook that never answers, a server that is silent: it ends all the same, but for those that are cancelled at the end
     * of the round. */
    if (!one_in(10))
        request->total_timeout_ms = 200 + chance(1500);
    request->idle_timeout_ms = 100 + chance(1000);
    if (one_in(4))
        request->connect_timeout_ms = 1 + chance(1000);
    if (one_in(4))
        request->partial_interval_ms = 1 + chance(50);
    if (one_in(3))
        request->retry_count = 1 + chance(2), request->retry_base_ms = 20, request->retry_max_ms = 50;
    else if (one_in(4))
        request->retry_count = IMGDL_RETRY_NONE;
}

imgdl_request random_request(struct ward *ward, imgdl_downloader *downloader)
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
    /* Any of them, also one that there is not. */
    if (one_in(4))
        request.flags |= 1u << chance(one_in(20) ? 32 : 12);
    request.event_mask = chance(64);
    request.priority = (imgdl_priority)chance(3) - 1;
    if (one_in(4))
        request.max_body_bytes = 1 + chance(500000);
    set_message(&request);
    set_trust(&request);
    set_times(&request);
    if (one_in(8)) {
        request.accepted_statuses = accepted_statuses;
        request.accepted_status_count = 1 + chance(2);
    }
    if (one_in(8)) {
        request.accepted_types = accepted_types;
        request.accepted_type_count = 1 + chance(2);
    }
    options = random_decode_options();
    if (one_in(2))
        request.decode = &options;
    request.executor = random_executor(&ward->executor);
    if (one_in(3))
        request.hooks = pick(HOOK_TABLE);
    static const double scales[] = {1, 2, 0.5, -1};
    if (one_in(8))
        request.scale_factor = scales[chance(one_in(4) ? 4 : 3)];
    request.cache_mode = chance(6);
    static const uint64_t stales[] = {1000, 1, IMGDL_STALE_NEVER, IMGDL_NO_LIMIT};
    if (one_in(4))
        request.max_stale_ms = stales[chance(4)];
    if (one_in(4))
        request.partition = one_in(2) ? "one" : "two";
    ward->is_silent = one_in(16);
    request.callback = ward->is_silent ? NULL : on_event;
    request.destructor = ward_destroyed;
    request.user_data = ward;
    ward->mask = request.event_mask | IMGDL_EVENT_TERMINAL;
    runs_at(ward, request.executor, downloader);
    return request;
}
