/* A struct_size that would cut a field in two is refused by every function that takes a struct. */
#define SUITE "sizes"
#include "support.h"

#include <dlfcn.h>
#include <stddef.h>

#define END(type, field) (offsetof(type, field) + sizeof((type *)0)->field)
/* Of a struct of which that is the last field. */
#define SIZE_THROUGH(type, field) ((END(type, field) + _Alignof(type) - 1) / _Alignof(type) * _Alignof(type))

/* Which sizes a program may have for a struct, by what it was compiled with: also a part of the fields that came later. */
struct shape {
    size_t today;
    size_t sizes[64]; /* 0 behind the last */
};
/* shape_of_… for each struct that is given or filled: one that no test takes is an unused variable, which is an error. */
#include "struct-fields.h"

enum { LARGEST = 4096, ROOM = LARGEST + 64 };

/* Each of these has a valid struct of today in `memory`, and gives what its function says of it. */
static union {
    uint32_t struct_size;
    unsigned char bytes[ROOM];
    max_align_t alignment;
} memory;
static imgdl_downloader *downloader;
static imgdl_token *ended;
static imgdl_token *waiting; /* has no result and no metrics yet */
static imgdl_cache *cache;
static imgdl_decoder *decoder;
static imgdl_decoder *empty_decoder;
static imgdl_batch *batch;
static imgdl_continuation *question;
static const char *url;

static imgdl_status give_request(void) { return imgdl_download(downloader, (imgdl_request *)&memory, NULL); }
static imgdl_status give_config(void)
{
    imgdl_downloader *made = NULL;
    imgdl_status status = imgdl_downloader_create((imgdl_config *)&memory, &made);
    if (made)
        ignore_status(imgdl_downloader_destroy(made));
    return status;
}
static imgdl_status give_config_again(void) { return imgdl_downloader_reconfigure(downloader, (imgdl_config *)&memory); }
static imgdl_status give_decode_options(void)
{
    imgdl_image *image = NULL;
    return imgdl_decode("?", 1, (imgdl_decode_options *)&memory, &image);
}
static imgdl_status give_decoder_options(void)
{
    imgdl_decoder *made = NULL;
    imgdl_status status = imgdl_decoder_create((imgdl_decode_options *)&memory, &made);
    imgdl_decoder_destroy(made);
    return status;
}
static imgdl_status give_request_decode(void)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.decode = (imgdl_decode_options *)&memory;
    return imgdl_download(downloader, &request, NULL);
}
static imgdl_status give_batch_request(void)
{
    return imgdl_downloader_prefetch(downloader, (imgdl_request *)&memory, 1, NULL, NULL);
}
static imgdl_status give_batch_options(void)
{
    return imgdl_downloader_prefetch(downloader, NULL, 0, (imgdl_batch_options *)&memory, NULL);
}
static imgdl_status give_hooks(void)
{
    imgdl_hooks *made = NULL;
    return imgdl_hooks_create((imgdl_hooks_table *)&memory, &made);
}
static imgdl_status give_coder(void)
{
    imgdl_coder *made = NULL;
    return imgdl_coder_register((imgdl_coder_table *)&memory, &made);
}
static imgdl_status give_transport(void)
{
    return imgdl_transport_register(downloader, "sizes", (imgdl_transport_table *)&memory);
}
static imgdl_status give_cache_config(void)
{
    imgdl_cache *made = NULL;
    imgdl_status status = imgdl_cache_open((imgdl_cache_config *)&memory, &made);
    imgdl_cache_release(made);
    return status;
}
static imgdl_status give_outgoing(void) { return imgdl_continue_with_request(question, (imgdl_outgoing *)&memory); }
static imgdl_status take_result(void) { return imgdl_token_result(ended, (imgdl_result *)&memory); }
static imgdl_status take_metrics(void) { return imgdl_token_metrics(ended, (imgdl_metrics *)&memory); }
static imgdl_status take_info(void) { return imgdl_decoder_info(decoder, (imgdl_image_info *)&memory); }
static imgdl_status take_stats(void) { return imgdl_downloader_stats(downloader, (imgdl_stats *)&memory); }
static imgdl_status take_progress(void) { return imgdl_batch_progress_get(batch, (imgdl_batch_progress *)&memory); }
static imgdl_status take_entry(void) { return imgdl_cache_query(cache, url, (imgdl_cache_entry *)&memory); }
/* Where there is nothing to fill a struct with. */
static imgdl_status take_no_result(void) { return imgdl_token_result(waiting, (imgdl_result *)&memory); }
static imgdl_status take_no_metrics(void) { return imgdl_token_metrics(waiting, (imgdl_metrics *)&memory); }
static imgdl_status take_no_info(void) { return imgdl_decoder_info(empty_decoder, (imgdl_image_info *)&memory); }
static imgdl_status take_no_entry(void)
{
    return imgdl_cache_query(cache, "http://localhost/never-stored", (imgdl_cache_entry *)&memory);
}
static imgdl_status take_cache_stats(void) { return imgdl_cache_statistics(cache, (imgdl_cache_stats *)&memory); }

static int is_possible(size_t size, const struct shape *shape)
{
    for (const size_t *possible = shape->sizes; *possible; possible++)
        if (size == *possible)
            return 1;
    return size >= shape->today && size <= LARGEST;
}

/* What a message says to do can be done. */
static void check_remedy(const char *name, const char *message)
{
    char function[64];
    const char *call = strstr(message, "call ");
    if (!call && strstr(message, "set it to sizeof("))
        return;
    if (!call || sscanf(call, "call %63[a-z_]", function) != 1 || !dlsym(RTLD_DEFAULT, function))
        FAIL("%s: no such function: %s", name, message);
}

/* The memory beyond today's size is zero, as if a newer header had nothing set there. */
static void try_sizes(const char *name, imgdl_status (*function)(void), const struct shape *shape, size_t alignment)
{
    for (size_t size = 0; size < ROOM; size += size < shape->today + 16 || size > LARGEST - 16 ? 1 : 61) {
        memory.struct_size = (uint32_t)size;
        int is_refused = function() == IMGDL_ERROR_UNSUPPORTED_OPTION;
        if (is_refused == (size % alignment == 0 && is_possible(size, shape)))
            FAIL("%s: a struct_size of %zu is %s: %s", name, size, is_refused ? "refused" : "taken", imgdl_last_error());
    }
    memory.struct_size = UINT32_MAX;
    if (function() != IMGDL_ERROR_UNSUPPORTED_OPTION)
        FAIL("%s: a struct_size of UINT32_MAX is taken", name);
    check_remedy(name, imgdl_last_error());
    memset(&memory, 0, sizeof memory);
}

#define TRY(function, type) try_sizes(#function, function, &shape_of_##type, 1)

static void try_init(const char *name, void (*init)(void *, size_t), const struct shape *shape)
{
    for (size_t size = 0; size < shape->today + 16; size++) {
        memset(&memory, 0xAA, sizeof memory);
        init(&memory, size);
        int is_filled = memory.struct_size == size;
        if (is_filled != is_possible(size, shape))
            FAIL("%s of %zu bytes %s", name, size, is_filled ? "fills the struct" : "does nothing");
        if (is_filled != (memory.bytes[4] != 0xAA))
            FAIL("%s of %zu bytes fills a part", name, size);
    }
    memset(&memory, 0, sizeof memory);
}

#define TRY_INIT(type) try_init(#type "_init", (void (*)(void *, size_t))(void (*)(void))type##_init, &shape_of_##type);

TEST("an init does nothing for a size that ends inside a field")
{
    EACH_WITH_INIT(TRY_INIT)
}

TEST("what a caller gives: a struct_size that ends inside a field is UNSUPPORTED_OPTION for every function")
{
    downloader = new_downloader();
    url = at_origin("/pictures/tiny.png?_=sizes");
    REQUIRE_OK(imgdl_downloader_set_suspended(downloader, 1));
    /* What is taken fails for another reason: no URL, no executor, no function, no picture. */
    TRY(give_request, imgdl_request);
    try_sizes("give_batch_request", give_batch_request, &shape_of_imgdl_request,
              _Alignof(imgdl_request)); /* in an array the next one follows */
    TRY(give_request_decode, imgdl_decode_options);
    TRY(give_decode_options, imgdl_decode_options);
    TRY(give_decoder_options, imgdl_decode_options);
    ((imgdl_config *)&memory)->executor = (imgdl_executor *)&memory;
    TRY(give_config, imgdl_config);
    ((imgdl_config *)&memory)->executor = (imgdl_executor *)&memory;
    TRY(give_config_again, imgdl_config);
    TRY(give_batch_options, imgdl_batch_options);
    TRY(give_hooks, imgdl_hooks_table);
    TRY(give_coder, imgdl_coder_table);
    TRY(give_transport, imgdl_transport_table);
    TRY(give_cache_config, imgdl_cache_config);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("what nobody has initialised is UNSUPPORTED_OPTION, and nothing in it is called: every struct that is given")
{
    static const struct {
        const char *name;
        imgdl_status (*give)(void);
    } all[] = {
        {"request", give_request}, {"batch request", give_batch_request}, {"request's decode", give_request_decode},
        {"decode options", give_decode_options}, {"decoder options", give_decoder_options}, {"config", give_config},
        {"config again", give_config_again}, {"batch options", give_batch_options}, {"hooks", give_hooks},
        {"coder", give_coder}, {"transport", give_transport}, {"cache config", give_cache_config},
    };
    downloader = new_downloader();
    url = at_origin("/pictures/tiny.png?_=garbage");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        memset(&memory, 0xA5, sizeof memory);
        imgdl_status status = all[i].give();
        if (status != IMGDL_ERROR_UNSUPPORTED_OPTION)
            FAIL("%s: %d: %s", all[i].name, (int)status, imgdl_last_error());
        check_remedy(all[i].name, imgdl_last_error());
    }
    /* Of several, too. */
    memset(&memory, 0xA5, sizeof memory);
    CHECK_CODE(imgdl_downloader_prefetch(downloader, (imgdl_request *)&memory, 3, NULL, NULL),
               IMGDL_ERROR_UNSUPPORTED_OPTION);
    memset(&memory, 0, sizeof memory);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

static void on_question(const imgdl_outgoing *outgoing, imgdl_continuation *next, void *user_data)
{
    (void)outgoing;
    (void)user_data;
    question = next;
    /* What is taken has a URL that is none, and leaves the question open. */
    memory.struct_size = sizeof(imgdl_outgoing);
    ((imgdl_outgoing *)&memory)->url = "?";
    TRY(give_outgoing, imgdl_outgoing);
    CHECK_CODE(imgdl_continue_unchanged(next), IMGDL_OK);
}

static void on_response(const imgdl_response *response, imgdl_continuation *next, void *user_data)
{
    (void)response;
    (void)user_data;
    question = next;
    /* No answer to this question: what is taken is INVALID_OPERATION. */
    TRY(give_outgoing, imgdl_outgoing);
    CHECK_CODE(imgdl_continue_unchanged(next), IMGDL_OK);
}

TEST("what a caller takes: a struct_size that ends inside a field is UNSUPPORTED_OPTION for every function")
{
    size_t size;
    uint8_t *picture = read_picture("tiny.png", &size);
    REQUIRE_OK(imgdl_decoder_create(NULL, &decoder));
    REQUIRE_OK(imgdl_decoder_feed(decoder, picture, size));
    cache = new_cache(NULL);
    downloader = new_caching_downloader(cache);
    url = at_origin("/pictures/tiny.png?header=Cache-Control:max-age=600&_=taken");
    imgdl_hooks_table table;
    memset(&table, 0, sizeof table);
    table.struct_size = sizeof table;
    table.modify_request = on_question;
    table.modify_response = on_response;
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    REQUIRE_OK(imgdl_hooks_create(&table, &request.hooks));
    REQUIRE_OK(imgdl_download(downloader, &request, &ended));
    REQUIRE_OK(imgdl_token_wait(ended, PATIENCE_MS));
    REQUIRE(question != NULL);
    imgdl_hooks_release(request.hooks);
    REQUIRE_OK(imgdl_downloader_prefetch(downloader, NULL, 0, NULL, &batch));
    ask(downloader, url, IMGDL_CACHE_DEFAULT, 0);
    await_stored(cache, url, 1);

    TRY(take_result, imgdl_result);
    TRY(take_metrics, imgdl_metrics);
    TRY(take_info, imgdl_image_info);
    TRY(take_stats, imgdl_stats);
    TRY(take_progress, imgdl_batch_progress);
    TRY(take_cache_stats, imgdl_cache_stats);
    TRY(take_entry, imgdl_cache_entry);

    REQUIRE_OK(imgdl_downloader_set_suspended(downloader, 1));
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png?_=waiting");
    REQUIRE_OK(imgdl_download(downloader, &request, &waiting));
    REQUIRE_OK(imgdl_decoder_create(NULL, &empty_decoder));
    TRY(take_no_result, imgdl_result);
    TRY(take_no_metrics, imgdl_metrics);
    TRY(take_no_info, imgdl_image_info);
    TRY(take_no_entry, imgdl_cache_entry);
    imgdl_decoder_destroy(empty_decoder);
    imgdl_token_release(waiting);
    imgdl_batch_release(batch);
    imgdl_decoder_destroy(decoder);
    imgdl_token_release(ended);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    free(picture);
}
