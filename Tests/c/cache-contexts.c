/* What one process has stored in one context, another process gets in the same context alone: every pair of contexts that
 * differ in one thing, with real servers and from the header. */
#define SUITE "cache contexts"
#include "contexts.h"

#include <sys/mman.h>
#include <sys/wait.h>

/* What servers say of their answers; only the last is for all credentials. */
static const char *const manners[] = {"max-age=600", "private,must-revalidate,max-age=600", "public,max-age=600"};
enum { MANNERS = sizeof manners / sizeof *manners, FOR_ALL = MANNERS - 1 };
enum { SCHEMES = 2 }; /* http and https */
enum { MOST_FAILURES = 50 };

/* Sums of the bodies that the storing process got, in memory of all processes of the test. */
struct sums {
    uint64_t of[SCHEMES][MANNERS][MAX_CONTEXTS];
};

static struct place place;
static char *directory; /* of the cache */
static struct sums *sums;
static struct context *contexts;
static unsigned count;

static void start(void)
{
    place = start_servers();
    directory = new_folder();
    sums = mmap(NULL, sizeof *sums, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(sums != MAP_FAILED);
}

/* ---- The processes */

/* What a process is to do. The descriptors, or -1: `first` is waited for when the cache is open, `ready` told once it has run
 * and all is written, `after` waited for then, with the cache open still. */
struct work {
    void (*before)(void), (*run)(void);
    int first, ready, after;
};

static imgdl_request request_for(struct context *context, int is_tls, const char *path, imgdl_cache_mode mode)
{
    imgdl_request request = request_of(context, &place, is_tls, path);
    request.cache_mode = mode;
    return request;
}

static void await_byte(int descriptor)
{
    char byte;
    REQUIRE(descriptor < 0 || read(descriptor, &byte, 1) == 1);
}

static pid_t begin(struct work work)
{
    fflush(NULL);
    pid_t child = fork(); /* before the library is used */
    if (child != 0)
        return child;
    if (work.before)
        work.before();
    imgdl_cache *cache = new_cache(directory);
    contexts = open_contexts(&place, cache, &count);
    for (unsigned i = 0; i < count; i++)
        if (contexts[i].asks_for_cookie) {
            imgdl_request request = request_for(&contexts[i], 0, "/cookie", IMGDL_CACHE_OFF);
            CHECK_CODE(ask_with(contexts[i].downloader, &request).code, IMGDL_OK);
        }
    await_byte(work.first);
    work.run();
    REQUIRE_OK(imgdl_cache_flush(cache));
    REQUIRE(work.ready < 0 || write(work.ready, "", 1) == 1);
    await_byte(work.after);
    close_contexts();
    imgdl_cache_release(cache);
    _exit(harness_failures() ? 1 : 0);
}

/* Without a deadline but the test's. */
static void await_success(pid_t child)
{
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void run_alone(void (*before)(void), void (*run)(void))
{
    await_success(begin((struct work){before, run, -1, -1, -1}));
}

/* ---- What is stored, and asked for */

static int is_to_be_stored(const struct context *context, int is_tls)
{
    return !context->is_denied && (is_tls || !context->is_challenged);
}

static imgdl_token *begin_asking(unsigned stored, unsigned asks, int is_tls, int manner, imgdl_cache_mode mode)
{
    char path[128];
    const char *kind = contexts[stored].is_challenged ? "known" : "kept";
    snprintf(path, sizeof path, "/%s/%s/%u", kind, manners[manner], stored);
    imgdl_request request = request_for(&contexts[asks], is_tls, path, mode);
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(contexts[asks].downloader, &request, &token));
    return token;
}

static struct reply ask_for(unsigned stored, unsigned asks, int is_tls, int manner, imgdl_cache_mode mode)
{
    return take_reply(begin_asking(stored, asks, is_tls, manner, mode));
}

static void store_all(void)
{
    for (int is_tls = 0; is_tls < SCHEMES; is_tls++)
        for (int manner = 0; manner < MANNERS; manner++)
            for (unsigned i = 0; i < count; i++) {
                if (!is_to_be_stored(&contexts[i], is_tls))
                    continue;
                struct reply reply = ask_for(i, i, is_tls, manner, IMGDL_CACHE_USE);
                if (reply.code != IMGDL_OK || reply.outcome != IMGDL_CACHE_OUTCOME_NETWORK)
                    FAIL("%s%s: %s, outcome %u", contexts[i].name, is_tls ? " over TLS" : "", imgdl_error_name(reply.code),
                         reply.outcome);
                sums->of[is_tls][manner][i] = reply.sum;
            }
}

static void give_up_after_many(void)
{
    if (harness_failures() >= MOST_FAILURES)
        harness_abandon();
}

/* `is_hit`: it must be what that context has stored; otherwise nothing. */
static void check_reply(struct reply reply, unsigned stored, unsigned asks, int is_tls, int manner, int is_hit)
{
    int is_own = reply.code == IMGDL_OK && reply.sum == sums->of[is_tls][manner][stored];
    if (is_hit ? is_own && reply.outcome == IMGDL_CACHE_OUTCOME_HIT : reply.code == IMGDL_ERROR_NOT_CACHED)
        return;
    FAIL("what was stored by \"%s\", asked for by \"%s\"%s, %s: %s, outcome %u%s, and not %s", contexts[stored].name,
         contexts[asks].name, is_tls ? " over TLS" : "", manners[manner], imgdl_error_name(reply.code), reply.outcome,
         is_own ? " with its bytes" : "", is_hit ? "a hit" : "NOT_CACHED");
    give_up_after_many();
}

static void check_own(unsigned context, int is_tls, int manner, int is_hit)
{
    check_reply(ask_for(context, context, is_tls, manner, IMGDL_CACHE_ONLY), context, context, is_tls, manner, is_hit);
}

/* At once: each is looked up by itself all the same, and a thread that is woken for each alone takes four times as long. */
static unsigned ask_in_all_contexts(unsigned stored, int is_tls, int manner)
{
    imgdl_token *tokens[MAX_CONTEXTS];
    unsigned hits = 0;
    for (unsigned asks = 0; asks < count; asks++)
        tokens[asks] = begin_asking(stored, asks, is_tls, manner, IMGDL_CACHE_ONLY);
    for (unsigned asks = 0; asks < count; asks++) {
        int is_hit = are_to_share(&contexts[stored], &contexts[asks], manner == FOR_ALL);
        check_reply(take_reply(tokens[asks]), stored, asks, is_tls, manner, is_hit);
        hits += is_hit != 0;
    }
    return hits;
}

static void ask_all_pairs(void)
{
    unsigned pairs = 0, hits = 0;
    for (int is_tls = 0; is_tls < SCHEMES; is_tls++)
        for (int manner = 0; manner < MANNERS; manner++)
            for (unsigned stored = 0; stored < count; stored++) {
                if (!is_to_be_stored(&contexts[stored], is_tls))
                    continue;
                hits += ask_in_all_contexts(stored, is_tls, manner);
                pairs += count;
            }
    printf("    %u contexts, %u pairs, %u of them share\n", count, pairs, hits);
    /* Who says who he is once a server asks finds his own then. */
    for (unsigned i = 0; i < count; i++)
        for (int manner = 0; contexts[i].is_challenged && manner < MANNERS; manner++) {
            struct reply reply = ask_for(i, i, 1, manner, IMGDL_CACHE_USE);
            if (reply.outcome != IMGDL_CACHE_OUTCOME_HIT || reply.sum != sums->of[1][manner][i])
                FAIL("\"%s\" finds nothing of its own after a challenge, %s", contexts[i].name, manners[manner]);
        }
}

/* ---- Contexts that are another's because of the process, or of what is in files by now */

static void set_proxy(void)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", place.proxy_port);
    setenv("all_proxy", url, 1);
}

static void ask_each_with_a_proxy_around(void)
{
    for (int is_tls = 0; is_tls < SCHEMES; is_tls++)
        for (unsigned i = 0; i < count; i++)
            if (is_to_be_stored(&contexts[i], is_tls))
                check_own(i, is_tls, 0, contexts[i].config.proxy && are_to_share(&contexts[i], &contexts[i], 0));
}

static void renew(void) { renew_files(&place); }

static void ask_each_after_renewal(void)
{
    unsigned others = 0;
    for (int is_tls = 0; is_tls < SCHEMES; is_tls++)
        for (unsigned i = 0; i < count; i++)
            if (has_file_renewed(&contexts[i])) {
                check_own(i, is_tls, 0, 0);
                others++;
            }
    CHECK(others >= SCHEMES * 3);
}

/* ---- What broke off */

static struct reply ask_for_cut(unsigned stored, unsigned asks)
{
    char path[32];
    snprintf(path, sizeof path, "/cut/%u", stored);
    imgdl_request request = request_for(&contexts[asks], 0, path, IMGDL_CACHE_USE);
    return ask_with(contexts[asks].downloader, &request);
}

static void store_beginnings(void)
{
    for (unsigned i = 0; i < count; i++)
        if (is_to_be_stored(&contexts[i], 0)) {
            struct reply reply = ask_for_cut(i, i);
            if (reply.code != IMGDL_ERROR_CONNECTION_LOST && reply.code != IMGDL_ERROR_TRUNCATED)
                FAIL("%s: %s", contexts[i].name, imgdl_error_name(reply.code));
        }
}

/* The server answers 502 to who wants the rest, and 500 to who wants all. */
static void continue_all_pairs(void)
{
    unsigned pairs = 0;
    for (unsigned stored = 0; stored < count; stored++)
        for (unsigned asks = 0; is_to_be_stored(&contexts[stored], 0) && asks < count; asks++, pairs++) {
            struct reply reply = ask_for_cut(stored, asks);
            int is_rest = are_to_share(&contexts[stored], &contexts[asks], 0);
            if (contexts[asks].is_denied ? reply.code == IMGDL_ERROR_ADDRESS_REFUSED
                                         : reply.http_status == (is_rest ? 502 : 500))
                continue;
            FAIL("what broke off for \"%s\", asked for by \"%s\": %s, status %d, and not %s", contexts[stored].name,
                 contexts[asks].name, imgdl_error_name(reply.code), reply.http_status, is_rest ? "the rest" : "all");
            give_up_after_many();
        }
    printf("    %u contexts, %u pairs\n", count, pairs);
}

/* ---- Tests */

TEST_WITHIN(60, "two processes, one after the other: what is stored in a context answers the same context alone")
{
    start();
    run_alone(NULL, store_all);
    run_alone(NULL, ask_all_pairs);
    run_alone(set_proxy, ask_each_with_a_proxy_around);
    run_alone(renew, ask_each_after_renewal);
}

TEST_WITHIN(60, "two processes at the same time: what is stored in a context answers the same context alone")
{
    int stored[2], asked[2];
    start();
    REQUIRE(pipe(stored) == 0 && pipe(asked) == 0);
    pid_t asking = begin((struct work){NULL, ask_all_pairs, stored[0], asked[1], -1});
    pid_t storing = begin((struct work){NULL, store_all, -1, stored[1], asked[0]});
    close(stored[1]);
    close(asked[1]);
    await_success(asking);
    await_success(storing);
}

TEST_WITHIN(60, "two processes: what broke off in a context is continued in the same context alone")
{
    start();
    run_alone(NULL, store_beginnings);
    run_alone(NULL, continue_all_pairs);
}
