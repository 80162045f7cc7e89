/* What one downloader's requests of one security context share, with a real server and from the header: a transfer that runs,
 * and a failure that is remembered; and that those of another context share neither. */
#define SUITE "context sharing"
#include "support.h"

enum { MOST_FIELDS = 3 };

/* How something is asked for. */
struct spelling {
    imgdl_header fields[MOST_FIELDS];
    const char *login; /* in the URL */
    const char *user, *password, *partition;
    imgdl_request_flags flags;
};

static const struct pair {
    const char *name;
    int are_alike; /* they are of one context, and ask for the same */
    struct spelling one, other;
} pairs[] = {
    {"names in another order", 1, {.fields = {{"Accept", "image/png"}, {"X-Key", "1"}, {"Authorization", "b"}}},
     {.fields = {{"Authorization", "b"}, {"X-Key", "1"}, {"Accept", "image/png"}}}},
    {"letters of names", 1, {.fields = {{"Accept", "image/png"}, {"X-Key", "1"}, {"Cookie", "a=1"}}},
     {.fields = {{"ACCEPT", "image/png"}, {"x-key", "1"}, {"cookie", "a=1"}}}},
    {"a user in the URL and beside it", 1, {.login = "u:p@"}, {.user = "u", .password = "p"}},
    {"the empty partition", 1, {.partition = ""}, {.partition = NULL}},
    {"lines of one name in another order", 0, {.fields = {{"X-Key", "1"}, {"X-Key", "2"}}},
     {.fields = {{"X-Key", "2"}, {"X-Key", "1"}}}},
    {"letters of a value", 0, {.fields = {{"X-Key", "a"}}}, {.fields = {{"X-Key", "A"}}}},
    {"spaces of a value", 0, {.fields = {{"X-Key", "1,2"}}}, {.fields = {{"X-Key", "1, 2"}}}},
    {"Accept", 0, {.fields = {{"Accept", "image/png"}}}, {.fields = {{"Accept", "image/webp"}}}},
    {"User-Agent", 0, {.fields = {{"User-Agent", "a"}}}, {.fields = {{"User-Agent", "b"}}}},
    {"Cookie", 0, {.fields = {{"Cookie", "a=1"}}}, {.fields = {{"Cookie", "a=2"}}}},
    {"Authorization", 0, {.fields = {{"Authorization", "1"}}}, {.fields = {{"Authorization", "2"}}}},
    {"Host", 0, {.fields = {{"Host", "images.invalid"}}}, {.fields = {{"Host", "pictures.invalid"}}}},
    {"two users", 0, {.login = "u:p@"}, {.user = "v", .password = "p"}},
    {"two passwords", 0, {.user = "u", .password = "p"}, {.user = "u", .password = "q"}},
    {"Basic over http", 0, {.flags = IMGDL_REQUEST_BASIC_OVER_HTTP}, {.flags = 0}},
    {"a partition", 0, {.partition = "1"}, {.partition = "2"}},
    {"any certificate", 0, {.flags = IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES}, {.flags = 0}},
    {"redirects", 0, {.flags = IMGDL_REQUEST_NO_REDIRECTS}, {.flags = 0}},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* `url`: without a user. The text is kept until the process ends. */
static imgdl_request spelled(const struct spelling *spelling, const char *url, struct recorder *recorder)
{
    const char *rest = url + strlen("http://");
    char *text = NULL;
    REQUIRE(asprintf(&text, "http://%s%s", spelling->login ? spelling->login : "", rest) > 0);
    imgdl_request request = recorded_request(text, recorder);
    while (request.header_count < MOST_FIELDS && spelling->fields[request.header_count].name)
        request.header_count++;
    request.headers = request.header_count > 0 ? spelling->fields : NULL;
    request.user = spelling->user;
    request.password = spelling->password;
    request.partition = spelling->partition;
    request.flags |= spelling->flags;
    return request;
}

TEST("requests of one context that ask for the same are one GET, however they are spelled; all others are two")
{
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorders[2], last;
    for (int i = 0; i < 2; i++)
        recorder_init(&recorders[i]);
    recorder_init(&last);
    for (int pair = 0; pair < PAIRS; pair++) {
        char gate[32];
        snprintf(gate, sizeof gate, "spelled-%d", pair);
        const char *url = at_origin("/pictures/tiny.png?hold_head=1&gate=%s&_=%s", gate, gate);
        for (int i = 0; i < 2; i++) {
            recorder_clear(&recorders[i]);
            imgdl_request request = spelled(i == 0 ? &pairs[pair].one : &pairs[pair].other, url, &recorders[i]);
            REQUIRE_OK(imgdl_download(downloader, &request, NULL));
        }
        /* Once this one has come back, both are on their way. */
        recorder_clear(&last);
        imgdl_request request = recorded_request(at_origin("/pictures/tiny.png?_=after-%s", gate), &last);
        CHECK_CODE(download_and_wait(downloader, &request, &last), IMGDL_OK);
        unsigned expected = pairs[pair].are_alike ? 1 : 2;
        await_gate(gate, expected);
        open_gate(gate);
        for (int i = 0; i < 2; i++) {
            await_end(&recorders[i], NULL);
            CHECK_CODE(recorders[i].code, IMGDL_OK);
        }
        if (times_served(url) != expected)
            FAIL("%s: the server was asked %u times", pairs[pair].name, times_served(url));
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("what failed for a request is told to all of its context that ask for the same, and to nobody else")
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.failure_ttl_ms = 600000;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    struct recorder recorder;
    recorder_init(&recorder);
    for (int pair = 0; pair < PAIRS; pair++) {
        const char *url = at_origin("/pictures/page.html?_=failed-%d", pair);
        for (int i = 0; i < 2; i++) {
            recorder_clear(&recorder);
            imgdl_request request = spelled(i == 0 ? &pairs[pair].one : &pairs[pair].other, url, &recorder);
            int is_told = i == 1 && pairs[pair].are_alike;
            imgdl_status code = download_and_wait(downloader, &request, &recorder);
            if (code != (is_told ? IMGDL_ERROR_BLACKLISTED : IMGDL_ERROR_BAD_IMAGE_DATA))
                FAIL("%s: %s", pairs[pair].name, imgdl_error_name(code));
        }
        CHECK_NUMBER(times_served(url), pairs[pair].are_alike ? 1 : 2);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}
