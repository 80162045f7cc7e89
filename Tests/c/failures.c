/* Everything that can be wrong with a URL, a server, a body or a picture: its code, by name, and a sentence. */
#define SUITE "failures"
#include "support.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum change { NOTHING, FEW_PIXELS, FEW_BYTES, SHORT_TOTAL, ANY_DOWNGRADE, NO_REDIRECTS, BODY_ONLY };

struct failure {
    const char *what;
    const char *url;
    imgdl_status code;
    const char *name;
    int32_t http_status; /* of the last response, 0 if there was none */
    enum change change;
};

#define IS(code) code, #code

static void check_failure(imgdl_downloader *downloader, const struct failure *failure)
{
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(failure->url, &recorder);
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    request.decode = &options;
    switch (failure->change) {
    case NOTHING: break;
    case FEW_PIXELS: options.max_pixels = 1000; break;
    case FEW_BYTES: request.max_body_bytes = 5000; break;
    case SHORT_TOTAL: request.total_timeout_ms = 2000; break;
    case ANY_DOWNGRADE: request.flags = IMGDL_REQUEST_ALLOW_DOWNGRADE; break;
    case NO_REDIRECTS: request.flags = IMGDL_REQUEST_NO_REDIRECTS; break;
    case BODY_ONLY: request.flags = IMGDL_REQUEST_BODY; break;
    }
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    if (!await_end(&recorder, NULL)) {
        FAIL("%s: no end", failure->what);
        harness_abandon();
    }
    check_ending(&recorder);
    if (recorder.code != failure->code || strcmp(imgdl_error_name(recorder.code), failure->name) != 0)
        FAIL("%s: %s (%d), not %s; \"%s\"", failure->what, imgdl_error_name(recorder.code), recorder.code, failure->name,
             recorder.message);
    if (recorder.http_status != failure->http_status)
        FAIL("%s: http_status is %d, not %d", failure->what, recorder.http_status, failure->http_status);
    if (failure->code != IMGDL_OK) {
        CHECK(recorder.image == NULL);
        CHECK(recorder.data == NULL);
        if (!strstr(recorder.message, "://") || strchr(recorder.message, '\n'))
            FAIL("%s: the sentence names no URL, or is several lines: \"%s\"", failure->what, recorder.message);
    }
    recorder_clear(&recorder);
}

/* What ends by a timeout has two seconds for what comes before: as often as not others compute meanwhile. */
enum { USUAL_TIMEOUT = 0, SHORT_IDLE = 2000 };

static void check_failures(const struct failure *failures, size_t count, uint32_t idle_timeout_ms)
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.idle_timeout_ms = idle_timeout_ms;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    for (size_t i = 0; i < count; i++)
        check_failure(downloader, &failures[i]);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

#define CHECK_FAILURES(failures) check_failures(failures, sizeof(failures) / sizeof *(failures), USUAL_TIMEOUT)

TEST("answers that are no picture")
{
    const struct failure failures[] = {
        {"404", at_origin("/status/404"), IS(IMGDL_ERROR_INVALID_STATUS), 404, NOTHING},
        {"500", at_origin("/status/500"), IS(IMGDL_ERROR_INVALID_STATUS), 500, NOTHING},
        {"404 with a picture", at_origin("/pictures/tiny.png?status=404"), IS(IMGDL_ERROR_INVALID_STATUS), 404, NOTHING},
        {"404, body wanted", at_origin("/status/404"), IS(IMGDL_ERROR_INVALID_STATUS), 404, BODY_ONLY},
        {"a page that calls itself a picture", at_origin("/pictures/page.html?type=image/jpeg"),
         IS(IMGDL_ERROR_BAD_IMAGE_DATA), 200, NOTHING},
        {"a page", at_origin("/pictures/page.html"), IS(IMGDL_ERROR_BAD_IMAGE_DATA), 200, NOTHING},
        {"noise", at_origin("/pictures/noise.jpg"), IS(IMGDL_ERROR_BAD_IMAGE_DATA), 200, NOTHING},
        {"an empty body", at_origin("/pictures/tiny.png?empty=1"), IS(IMGDL_ERROR_BAD_IMAGE_DATA), 200, NOTHING},
        {"204", at_origin("/status/204"), IS(IMGDL_ERROR_BAD_IMAGE_DATA), 204, NOTHING},
        {"a picture under a text type", at_origin("/pictures/tiny.png?type=text/html"), IS(IMGDL_OK), 200, NOTHING},
        {"an empty body where a body is wanted", at_origin("/pictures/tiny.png?empty=1"), IS(IMGDL_OK), 200, BODY_ONLY},
    };
    CHECK_FAILURES(failures);
}

TEST("bodies that end too early, at every quarter and in every way")
{
    static const char *const names[] = {"baseline.jpg", "progressive.jpg", "truecolour.png", "lossy.webp"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        size_t size;
        free(read_picture(names[n], &size));
        for (size_t quarter = 0; quarter < 4; quarter++) {
            size_t at = size * quarter / 4;
            const struct failure failures[] = {
                {"closed before Content-Length", at_origin("/pictures/%s?close_after=%zu", names[n], at),
                 IS(IMGDL_ERROR_TRUNCATED), 200, NOTHING},
                {"reset before Content-Length", at_origin("/pictures/%s?reset_after=%zu", names[n], at),
                 IS(IMGDL_ERROR_CONNECTION_LOST), 200, NOTHING},
                {"closed amid chunks", at_origin("/pictures/%s?chunked=1&close_after=%zu", names[n], at),
                 IS(IMGDL_ERROR_TRUNCATED), 200, NOTHING},
                {"closed, without a length that could tell", at_origin("/pictures/%s?length=none&close_after=%zu", names[n], at),
                 at == 0 ? IMGDL_ERROR_BAD_IMAGE_DATA : IMGDL_ERROR_TRUNCATED,
                 at == 0 ? "IMGDL_ERROR_BAD_IMAGE_DATA" : "IMGDL_ERROR_TRUNCATED", 200, NOTHING},
            };
            CHECK_FAILURES(failures);
        }
        const struct failure others[] = {
            {"a body short by one byte", at_origin("/pictures/%s?short_by=1", names[n]), IS(IMGDL_ERROR_TRUNCATED), 200,
             NOTHING},
            {"no last chunk", at_origin("/pictures/%s?cut_chunked=1", names[n]), IS(IMGDL_ERROR_TRUNCATED), 200, NOTHING},
            {"a Content-Length of half the body", at_origin("/pictures/%s?length=lie", names[n]),
             IS(IMGDL_ERROR_TRUNCATED), 200, NOTHING},
        };
        CHECK_FAILURES(others);
    }
}

TEST("limits of bytes, pixels and headers, announced and met")
{
    const struct failure failures[] = {
        {"too many pixels", at_origin("/pictures/baseline.jpg"), IS(IMGDL_ERROR_PIXEL_LIMIT), 200, FEW_PIXELS},
        {"pixels enough", at_origin("/pictures/tiny.png"), IS(IMGDL_OK), 200, FEW_PIXELS},
        {"too many bytes announced", at_origin("/pictures/baseline.jpg"), IS(IMGDL_ERROR_BODY_LIMIT), 200, FEW_BYTES},
        {"too many bytes announced, none sent", at_origin("/pictures/baseline.jpg?stall_after=0"),
         IS(IMGDL_ERROR_BODY_LIMIT), 200, FEW_BYTES},
        {"too many bytes received", at_origin("/pictures/baseline.jpg?chunked=1"), IS(IMGDL_ERROR_BODY_LIMIT), 200, FEW_BYTES},
        {"bytes enough", at_origin("/pictures/tiny.png"), IS(IMGDL_OK), 200, FEW_BYTES},
        {"a small body that unpacks to a large one", at_origin("/pictures/tiny.png?gzip_bomb=5000000"),
         IS(IMGDL_ERROR_BODY_LIMIT), 200, FEW_BYTES},
        {"a length of a petabyte", at_origin("/pictures/tiny.png?length=huge"), IS(IMGDL_ERROR_BODY_LIMIT), 200, NOTHING},
        {"300 KiB of header", at_origin("/pictures/tiny.png?headers=300"), IS(IMGDL_ERROR_HEADER_LIMIT), 0, NOTHING},
        {"100 KiB of header", at_origin("/pictures/tiny.png?headers=100"), IS(IMGDL_OK), 200, NOTHING},
    };
    CHECK_FAILURES(failures);
}

TEST("redirects that lead nowhere, or where they must not")
{
    const struct failure failures[] = {
        {"a loop", at_origin("/redirect-loop"), IS(IMGDL_ERROR_TOO_MANY_REDIRECTS), 302, NOTHING},
        {"eleven hops", at_origin("/redirect/11?to=/pictures/tiny.png"), IS(IMGDL_ERROR_TOO_MANY_REDIRECTS), 302, NOTHING},
        {"ten hops", at_origin("/redirect/10?to=/pictures/tiny.png"), IS(IMGDL_OK), 200, NOTHING},
        {"to a file", at_origin("/redirect?to=file:///etc/passwd"), IS(IMGDL_ERROR_REDIRECT_REFUSED), 302, NOTHING},
        {"to ftp", at_origin("/redirect?to=ftp://127.0.0.1/"), IS(IMGDL_ERROR_REDIRECT_REFUSED), 302, NOTHING},
        {"without Location", at_origin("/status/302"), IS(IMGDL_ERROR_REDIRECT_REFUSED), 302, NOTHING},
        {"not wanted", at_origin("/redirect?to=/pictures/tiny.png"), IS(IMGDL_ERROR_INVALID_STATUS), 302, NO_REDIRECTS},
    };
    CHECK_FAILURES(failures);
}

TEST("servers that take their time, or do not answer, or not in HTTP")
{
    size_t tiny;
    free(read_picture("tiny.png", &tiny));
    const struct failure failures[] = {
        {"a byte at a time", at_origin("/pictures/baseline.jpg?drip_ms=20"), IS(IMGDL_ERROR_TOTAL_TIMEOUT), 200, SHORT_TOTAL},
        {"no answer within the request's own time", at_origin("/pictures/tiny.png?first_byte=never"),
         IS(IMGDL_ERROR_TOTAL_TIMEOUT), 0, SHORT_TOTAL},
        {"not HTTP", at_origin("/garbage"), IS(IMGDL_ERROR_PROTOCOL), 0, NOTHING},
    };
    CHECK_FAILURES(failures);
    const struct failure silences[] = {
        {"no answer at all", at_origin("/pictures/tiny.png?first_byte=never"), IS(IMGDL_ERROR_IDLE_TIMEOUT), 0, NOTHING},
        {"silence after half the body", at_origin("/pictures/baseline.jpg?stall_after=20000"),
         IS(IMGDL_ERROR_IDLE_TIMEOUT), 200, NOTHING},
        {"pauses shorter than the idle timeout", at_origin("/pictures/tiny.png?chunk=%zu&pause_ms=250", tiny / 10 + 1),
         IS(IMGDL_OK), 200, NOTHING},
    };
    check_failures(silences, sizeof silences / sizeof *silences, SHORT_IDLE);
}

TEST("hosts that are not there")
{
    /* A port that was just free: bound, so that nobody else takes it, and not listening. */
    int holder = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    REQUIRE(bind(holder, (struct sockaddr *)&address, length) == 0);
    REQUIRE(getsockname(holder, (struct sockaddr *)&address, &length) == 0);
    char refused[64];
    snprintf(refused, sizeof refused, "http://127.0.0.1:%d/a.png", ntohs(address.sin_port));
    const struct failure failures[] = {
        {"nobody listens", refused, IS(IMGDL_ERROR_CONNECT_FAILED), 0, NOTHING},
        {"no such name", "http://nosuch.invalid/a.png", IS(IMGDL_ERROR_RESOLVE_FAILED), 0, NOTHING},
    };
    CHECK_FAILURES(failures);
    close(holder);
}

TEST("compressed bodies: right ones are unpacked, broken ones are an error")
{
    const struct failure failures[] = {
        {"gzip", at_origin("/pictures/truecolour.png?gzip=1"), IS(IMGDL_OK), 200, NOTHING},
        {"deflate", at_origin("/pictures/truecolour.png?deflate=1"), IS(IMGDL_OK), 200, NOTHING},
        {"gzip in chunks", at_origin("/pictures/truecolour.png?gzip=1&chunked=1&chunk=700"), IS(IMGDL_OK), 200, NOTHING},
        {"says gzip and is not", at_origin("/pictures/tiny.png?header=Content-Encoding:gzip"),
         IS(IMGDL_ERROR_CONTENT_ENCODING), 200, NOTHING},
        {"cut gzip", at_origin("/pictures/truecolour.png?gzip=1&close_after=500"), IS(IMGDL_ERROR_TRUNCATED), 200,
         NOTHING},
        {"gzip that ends early, well framed", at_origin("/pictures/truecolour.png?gzip=1&coding_cut=100"),
         IS(IMGDL_ERROR_TRUNCATED), 200, NOTHING},
        {"gzip that ends early, in chunks", at_origin("/pictures/truecolour.png?gzip=1&coding_cut=1&chunked=1"),
         IS(IMGDL_ERROR_TRUNCATED), 200, NOTHING},
        {"deflate that ends early", at_origin("/pictures/truecolour.png?deflate=1&coding_cut=1"),
         IS(IMGDL_ERROR_TRUNCATED), 200, NOTHING},
        {"a few bytes behind gzip", at_origin("/pictures/truecolour.png?gzip=1&coding_tail=100"), IS(IMGDL_OK), 200, NOTHING},
        {"many bytes behind gzip", at_origin("/pictures/truecolour.png?gzip=1&coding_tail=100000"),
         IS(IMGDL_ERROR_CONTENT_ENCODING), 200, NOTHING},
        {"a coding that nobody knows", at_origin("/pictures/tiny.png?header=Content-Encoding:rot13"),
         IS(IMGDL_ERROR_CONTENT_ENCODING), 200, NOTHING},
        {"more codings than anybody needs",
         at_origin("/pictures/tiny.png?header=Content-Encoding:gzip,gzip,gzip,gzip,gzip,gzip"),
         IS(IMGDL_ERROR_CONTENT_ENCODING), 200, NOTHING},
    };
    CHECK_FAILURES(failures);
}

/* Takes one connection, says something that is not TLS, and hangs up. */
static void *greet(void *listener)
{
    int connection = accept(*(int *)listener, NULL, NULL);
    char hello[512];
    if (recv(connection, hello, sizeof hello, 0) > 0)
        send(connection, "220 welcome\r\n", 13, MSG_NOSIGNAL);
    close(connection);
    return NULL;
}

TEST("TLS: an unknown authority, a host that speaks none, and the way back to http")
{
    const char *to_http = at_tls_origin("/to/%s", at_origin("/pictures/tiny.png"));
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    REQUIRE(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
    REQUIRE(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    char plain_port[64];
    snprintf(plain_port, sizeof plain_port, "https://127.0.0.1:%d/a.png", ntohs(address.sin_port));
    pthread_t greeter;
    REQUIRE(pthread_create(&greeter, NULL, greet, &listener) == 0);
    const struct failure untrusted[] = {
        {"an unknown authority", at_tls_origin("/text"), IS(IMGDL_ERROR_TLS_CERTIFICATE), 0, BODY_ONLY},
        {"no TLS there", plain_port, IS(IMGDL_ERROR_TLS_FAILED), 0, NOTHING},
    };
    CHECK_FAILURES(untrusted);
    pthread_join(greeter, NULL);
    close(listener);

    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.ca_file = tls_ca_file;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    const struct failure trusted[] = {
        {"a known authority", at_tls_origin("/text"), IS(IMGDL_OK), 200, BODY_ONLY},
        {"from https to http", to_http, IS(IMGDL_ERROR_REDIRECT_REFUSED), 302, NOTHING},
        {"from https to http, allowed", to_http, IS(IMGDL_OK), 200, ANY_DOWNGRADE},
    };
    for (size_t i = 0; i < sizeof trusted / sizeof *trusted; i++)
        check_failure(downloader, &trusted[i]);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

/* A request's header has come to its end; 0: the connection has. */
static int reads_header(int connection)
{
    char last[4] = {0};
    while (memcmp(last, "\r\n\r\n", 4) != 0) {
        memmove(last, last + 1, 3);
        if (recv(connection, last + 3, 1, 0) != 1)
            return 0;
    }
    return 1;
}

/* A proxy that asks for Digest in chunks, and then once more without a body. It stays until the other side has gone. */
static void *ask_for_digest(void *listener)
{
    static const char *const answers[] = {
        "HTTP/1.1 407 X\r\nProxy-Authenticate: Digest realm=\"x\", nonce=\"n\", qop=\"auth\"\r\n"
        "Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
        "HTTP/1.1 407 X\r\nProxy-Authenticate: Digest realm=\"x\", nonce=\"m\", qop=\"auth\", stale=true\r\n"
        "Content-Length: 0\r\n\r\n",
        "HTTP/1.1 502 X\r\nContent-Length: 0\r\n\r\n",
    };
    int connection = accept(*(int *)listener, NULL, NULL);
    for (size_t i = 0; i < sizeof answers / sizeof *answers && reads_header(connection); i++)
        send(connection, answers[i], strlen(answers[i]), MSG_NOSIGNAL);
    while (reads_header(connection))
        ;
    close(connection);
    return NULL;
}

TEST("a proxy that asks for Digest in chunks, and again without: an answer, or the connect timeout")
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    REQUIRE(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
    REQUIRE(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    char proxy[64];
    snprintf(proxy, sizeof proxy, "http://me:x@127.0.0.1:%d", ntohs(address.sin_port));
    pthread_t server;
    REQUIRE(pthread_create(&server, NULL, ask_for_digest, &listener) == 0);

    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.proxy = proxy;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request("https://pictures.example/a.png", &recorder);
    request.connect_timeout_ms = 500;
    int code = download_and_wait(downloader, &request, &recorder);
    /* curl issue 23069: up to 8.22.0 it waits for chunks that never come. */
    if (code != IMGDL_ERROR_PROXY_FAILED)
        CHECK_CODE(code, IMGDL_ERROR_CONNECT_TIMEOUT);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    pthread_join(server, NULL);
    close(listener);
}

TEST("messages keep passwords and the values of query strings to themselves")
{
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorder;
    recorder_init(&recorder);
    const char *plain = at_origin("/status/403?token=SECRET-A");
    char url[512];
    snprintf(url, sizeof url, "http://user:SECRET-B@%s", plain + strlen("http://"));
    imgdl_request request = recorded_request(url, &recorder);
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_ERROR_INVALID_STATUS);
    CHECK(strstr(recorder.message, "/status/403") != NULL);
    CHECK(strstr(recorder.message, "403") != NULL);
    if (strstr(recorder.message, "SECRET"))
        FAIL("\"%s\" tells a secret", recorder.message);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("salvage: the error stays an error, and the pixels that could be had come with it")
{
    size_t size;
    free(read_picture("truecolour.png", &size));
    imgdl_downloader *downloader = new_downloader();
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.flags = IMGDL_DECODE_SALVAGE;
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request =
        recorded_request(at_origin("/pictures/truecolour.png?length=none&close_after=%zu", size / 2), &recorder);
    request.decode = &options;
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_ERROR_TRUNCATED);
    CHECK_NUMBER(imgdl_image_width(recorder.image), 320);
    CHECK_NUMBER(imgdl_image_is_complete(recorder.image), 0);
    imgdl_rectangle ready = imgdl_image_ready(recorder.image);
    CHECK(ready.height > 20 && ready.height < 213);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}
