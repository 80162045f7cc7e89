/* Every function with every wrong handle, and the rules of structs: a code, never damage. */
#define SUITE "handles"
#include "support.h"

static const unsigned char some_bytes[64];

/* Handles that are none: NULL, small and large numbers, addresses of real memory. */
static void *const nonsense[] = {NULL, (void *)2, (void *)0x12345678, (void *)UINTPTR_MAX, (void *)some_bytes};
enum { NONSENSE = sizeof nonsense / sizeof *nonsense };

static void never(const imgdl_event *event, void *user_data)
{
    (void)event;
    (void)user_data;
    FAIL("a callback of a refused request was called");
}

static void count_one(void *user_data)
{
    __atomic_add_fetch((int *)user_data, 1, __ATOMIC_SEQ_CST);
}

static void check_wrong_downloader(void *wrong)
{
    int destroyed = 0;
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = "http://127.0.0.1:9/";
    request.callback = never;
    request.destructor = count_one;
    request.user_data = &destroyed;
    imgdl_token *token = (imgdl_token *)(void *)some_bytes;
    CHECK_CODE(imgdl_download(wrong, &request, &token), IMGDL_ERROR_INVALID_HANDLE);
    CHECK(token == (imgdl_token *)(void *)some_bytes);
    CHECK_NUMBER(destroyed, 1);
    CHECK_CODE(imgdl_downloader_set_header(wrong, "X-A", "b"), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_downloader_set_max_concurrent(wrong, 3), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_downloader_set_order(wrong, IMGDL_ORDER_LIFO), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_downloader_set_suspended(wrong, 1), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_downloader_cancel_all(wrong), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_NUMBER(imgdl_downloader_current_count(wrong), 0);
    CHECK_CODE(imgdl_downloader_wait_idle(wrong, 0), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_downloader_shutdown(wrong, IMGDL_SHUTDOWN_CANCEL, NULL, NULL), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_downloader_destroy(wrong), IMGDL_ERROR_INVALID_HANDLE);
    CHECK(imgdl_downloader_retain(wrong) == NULL);
    imgdl_downloader_release(wrong);
}

static void check_wrong_token(void *wrong)
{
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    CHECK_CODE(imgdl_token_cancel(wrong), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_token_set_priority(wrong, IMGDL_PRIORITY_HIGH), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_token_wait(wrong, 0), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_token_result(wrong, &result), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_NUMBER(imgdl_token_id(wrong), 0);
    CHECK(imgdl_token_retain(wrong) == NULL);
    imgdl_token_release(wrong);
}

static void check_wrong_executor(void *wrong)
{
    uint32_t dispatched = 77;
    CHECK_NUMBER(imgdl_executor_fd(wrong), -1);
    CHECK_CODE(imgdl_executor_dispatch(wrong, 0, &dispatched), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_NUMBER(dispatched, 77);
    if (wrong != IMGDL_EXECUTOR_INLINE)
        CHECK(imgdl_executor_retain(wrong) == NULL);
    imgdl_executor_release(wrong);
}

/* In a request and in a config NULL means the default, so it is not wrong there. */
static void check_wrong_executor_in_structs(void *wrong, imgdl_downloader *good)
{
    int destroyed = 0;
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.executor = wrong;
    imgdl_downloader *downloader = NULL;
    CHECK_CODE(imgdl_downloader_create(&config, &downloader), IMGDL_ERROR_INVALID_HANDLE);
    CHECK(downloader == NULL);
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = "http://127.0.0.1:9/";
    request.callback = never;
    request.destructor = count_one;
    request.user_data = &destroyed;
    request.executor = wrong;
    CHECK_CODE(imgdl_download(good, &request, NULL), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_NUMBER(destroyed, 1);
}

static void check_wrong_decoder(void *wrong)
{
    imgdl_image_info info;
    imgdl_image_info_init(&info, sizeof info);
    imgdl_image *image = (imgdl_image *)(void *)some_bytes;
    CHECK_CODE(imgdl_decoder_feed(wrong, some_bytes, sizeof some_bytes), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_decoder_info(wrong, &info), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_decoder_partial(wrong, &image), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(imgdl_decoder_finish(wrong, &image), IMGDL_ERROR_INVALID_HANDLE);
    CHECK(image == (imgdl_image *)(void *)some_bytes);
    imgdl_decoder_destroy(wrong);
}

static void check_wrong_image(void *wrong)
{
    CHECK_NUMBER(imgdl_image_width(wrong), 0);
    CHECK_NUMBER(imgdl_image_height(wrong), 0);
    CHECK_NUMBER(imgdl_image_stride(wrong), 0);
    CHECK_NUMBER(imgdl_image_format(wrong), 0);
    CHECK_NUMBER(imgdl_image_pixel_format(wrong), 0);
    CHECK(imgdl_image_pixels(wrong) == NULL);
    CHECK_NUMBER(imgdl_image_frame_count(wrong), 0);
    CHECK_NUMBER(imgdl_image_orientation(wrong), 0);
    CHECK_NUMBER(imgdl_image_is_complete(wrong), 0);
    CHECK_NUMBER(imgdl_image_pass(wrong), 0);
    imgdl_rectangle ready = imgdl_image_ready(wrong);
    CHECK(ready.x == 0 && ready.y == 0 && ready.width == 0 && ready.height == 0);
    CHECK(imgdl_image_retain(wrong) == NULL);
    imgdl_image_release(wrong);
}

static void check_wrong_data(void *wrong)
{
    CHECK(imgdl_data_bytes(wrong) == NULL);
    CHECK_NUMBER(imgdl_data_length(wrong), 0);
    CHECK(imgdl_data_retain(wrong) == NULL);
    imgdl_data_release(wrong);
}

static void check_all_wrong(void *wrong)
{
    check_wrong_downloader(wrong);
    check_wrong_token(wrong);
    check_wrong_executor(wrong);
    check_wrong_decoder(wrong);
    check_wrong_image(wrong);
    check_wrong_data(wrong);
}

TEST("what is no handle is an error for every function, before the first downloader too")
{
    for (int i = 0; i < NONSENSE; i++)
        check_all_wrong(nonsense[i]);
    imgdl_downloader *downloader = new_downloader();
    for (int i = 0; i < NONSENSE; i++) {
        check_all_wrong(nonsense[i]);
        if (nonsense[i])
            check_wrong_executor_in_structs(nonsense[i], downloader);
    }
    check_all_wrong(IMGDL_EXECUTOR_INLINE);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

struct handles {
    imgdl_downloader *downloader;
    imgdl_executor *executor;
    imgdl_token *image_token, *data_token;
    imgdl_decoder *decoder;
    imgdl_image *image;
    imgdl_data *data;
};

static void make_one_of_each(struct handles *handles)
{
    size_t size;
    uint8_t *bytes = read_picture("tiny.png", &size);
    handles->downloader = new_downloader();
    REQUIRE_OK(imgdl_executor_create_pumped(&handles->executor));
    REQUIRE_OK(imgdl_decoder_create(NULL, &handles->decoder));
    REQUIRE_OK(imgdl_decode(bytes, size, NULL, &handles->image));
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png");
    request.flags = IMGDL_REQUEST_BODY;
    REQUIRE_OK(imgdl_download(handles->downloader, &request, &handles->data_token));
    REQUIRE_OK(imgdl_token_wait(handles->data_token, PATIENCE_MS));
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    REQUIRE_OK(imgdl_token_result(handles->data_token, &result));
    handles->data = imgdl_data_retain(result.data);
    REQUIRE(handles->data != NULL);
    CHECK_NUMBER(imgdl_data_length(handles->data), size);
    CHECK(memcmp(imgdl_data_bytes(handles->data), bytes, size) == 0);
    free(bytes);
}

TEST("a handle of another type is an error for every function, and stays whole")
{
    struct handles handles;
    make_one_of_each(&handles);
    void *all[] = {handles.downloader, handles.executor, handles.data_token, handles.decoder, handles.image, handles.data};
    for (int i = 0; i < 6; i++) {
        if (i != 0) check_wrong_downloader(all[i]);
        if (i != 1) check_wrong_executor(all[i]), check_wrong_executor_in_structs(all[i], handles.downloader);
        if (i != 2) check_wrong_token(all[i]);
        if (i != 3) check_wrong_decoder(all[i]);
        if (i != 4) check_wrong_image(all[i]);
        if (i != 5) check_wrong_data(all[i]);
    }
    CHECK_NUMBER(imgdl_image_width(handles.image), 24);
    CHECK(imgdl_executor_fd(handles.executor) >= 0);
    CHECK(imgdl_token_id(handles.data_token) != 0);
    CHECK(imgdl_data_length(handles.data) > 0);
    imgdl_decoder_destroy(handles.decoder);
    imgdl_image_release(handles.image);
    imgdl_data_release(handles.data);
    imgdl_token_release(handles.data_token);
    imgdl_executor_release(handles.executor);
    REQUIRE_OK(imgdl_downloader_destroy(handles.downloader));
}

TEST("a released handle is an error for every function, and may be released again")
{
    struct handles handles;
    make_one_of_each(&handles);
    imgdl_decoder_destroy(handles.decoder);
    imgdl_image_release(handles.image);
    imgdl_data_release(handles.data);
    imgdl_token_release(handles.data_token);
    imgdl_executor_release(handles.executor);
    REQUIRE_OK(imgdl_downloader_destroy(handles.downloader));
    for (int again = 0; again < 2; again++) {
        check_wrong_downloader(handles.downloader);
        check_wrong_executor(handles.executor);
        check_wrong_token(handles.data_token);
        check_wrong_decoder(handles.decoder);
        check_wrong_image(handles.image);
        /* The token held the body, too. */
        check_wrong_data(handles.data);
    }
}

TEST("a new handle in the place of an old one is not the old one")
{
    size_t size;
    uint8_t *bytes = read_picture("tiny.png", &size);
    imgdl_image *old = NULL;
    REQUIRE_OK(imgdl_decode(bytes, size, NULL, &old));
    imgdl_image_release(old);
    for (int i = 0; i < 5000; i++) {
        imgdl_image *image = NULL;
        REQUIRE_OK(imgdl_decode(bytes, size, NULL, &image));
        if (image == old) {
            FAIL("handle %p came back after %d others", (void *)old, i);
            break;
        }
        imgdl_image_release(old);
        CHECK_NUMBER(imgdl_image_width(image), 24);
        imgdl_image_release(image);
    }
    free(bytes);
}

TEST("references are counted, and retain gives the same handle")
{
    struct handles handles;
    make_one_of_each(&handles);
    CHECK(imgdl_image_retain(handles.image) == handles.image);
    CHECK(imgdl_token_retain(handles.data_token) == handles.data_token);
    CHECK(imgdl_executor_retain(handles.executor) == handles.executor);
    CHECK(imgdl_downloader_retain(handles.downloader) == handles.downloader);
    imgdl_image_release(handles.image);
    imgdl_token_release(handles.data_token);
    imgdl_executor_release(handles.executor);
    imgdl_downloader_release(handles.downloader);
    CHECK_NUMBER(imgdl_image_width(handles.image), 24);
    CHECK(imgdl_token_id(handles.data_token) != 0);
    CHECK(imgdl_executor_fd(handles.executor) >= 0);
    CHECK_CODE(imgdl_downloader_set_max_concurrent(handles.downloader, 2), IMGDL_OK);
    imgdl_token_release(handles.data_token);
    CHECK(imgdl_data_length(handles.data) > 0); /* outlives the token it came from */
    imgdl_data_release(handles.data);
    imgdl_image_release(handles.image);
    imgdl_decoder_destroy(handles.decoder);
    imgdl_executor_release(handles.executor);
    REQUIRE_OK(imgdl_downloader_destroy(handles.downloader));
}

/* ---- Structs */

/* What a caller of a newer header has: the struct of today and fields that are not known yet. */
#define NEWER(type)                                                                                                    \
    struct {                                                                                                           \
        type today;                                                                                                    \
        uint64_t tomorrow[4];                                                                                          \
    }

/* The sizes that programs have compiled in: of version 1.0, and, where it has grown, of 1.1. */
_Static_assert(sizeof(imgdl_rectangle) == 16, "imgdl_rectangle");
_Static_assert(sizeof(imgdl_image_info) == 32, "imgdl_image_info");
_Static_assert(sizeof(imgdl_header) == 2 * sizeof(void *), "imgdl_header");
_Static_assert(sizeof(imgdl_metrics) == 128, "imgdl_metrics");
_Static_assert(sizeof(imgdl_stats) == 2840, "imgdl_stats");
_Static_assert(sizeof(imgdl_batch_options) == 48, "imgdl_batch_options");
_Static_assert(sizeof(imgdl_batch_progress) == 40, "imgdl_batch_progress");
_Static_assert(sizeof(imgdl_outgoing) == 56, "imgdl_outgoing");
_Static_assert(sizeof(imgdl_hooks_table) == 64, "imgdl_hooks_table");
_Static_assert(sizeof(imgdl_coder_table) == 80, "imgdl_coder_table");
_Static_assert(sizeof(imgdl_transport_table) == 48, "imgdl_transport_table");
_Static_assert(sizeof(imgdl_observation) == 48, "imgdl_observation");
_Static_assert(sizeof(imgdl_cache_event) == 16, "imgdl_cache_event");
_Static_assert(sizeof(imgdl_cache_config) == 80, "imgdl_cache_config");
_Static_assert(sizeof(imgdl_cache_entry) == 48, "imgdl_cache_entry");
_Static_assert(sizeof(imgdl_cache_stats) == 168, "imgdl_cache_stats");
#define GREW(type, first, size1, size2)                                                                                \
    _Static_assert(offsetof(type, first) == size1 && sizeof(type) == size2, #type)
GREW(imgdl_decode_options, target_width, 24, 128);
GREW(imgdl_response, hops, 48, 72);
GREW(imgdl_event, content_type, 80, 112);
GREW(imgdl_request, user, 120, 272);
GREW(imgdl_config, flags, 56, 256);
GREW(imgdl_result, content_type, 48, 80);

TEST("an init does nothing for a struct smaller than that of 1.0")
{
    unsigned char bytes[256];
    memset(bytes, 0xAA, sizeof bytes);
    imgdl_request_init((imgdl_request *)(void *)bytes, 119);
    imgdl_config_init((imgdl_config *)(void *)bytes, 55);
    imgdl_decode_options_init((imgdl_decode_options *)(void *)bytes, 23);
    imgdl_image_info_init((imgdl_image_info *)(void *)bytes, 31);
    imgdl_result_init((imgdl_result *)(void *)bytes, 47);
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != 0xAA) {
            FAIL("byte %zu was written", i);
            break;
        }
    imgdl_request_init(NULL, sizeof(imgdl_request));
    imgdl_config_init(NULL, sizeof(imgdl_config));
    imgdl_decode_options_init(NULL, sizeof(imgdl_decode_options));
    imgdl_image_info_init(NULL, sizeof(imgdl_image_info));
    imgdl_result_init(NULL, sizeof(imgdl_result));
}

TEST("a request's struct_size: too small, today's, newer with nothing new set, newer with something set")
{
    imgdl_downloader *downloader = new_downloader();
    int destroyed = 0;
    NEWER(imgdl_request) request;
    memset(&request, 0xAA, sizeof request);
    imgdl_request_init(&request.today, sizeof request.today);
    CHECK_NUMBER(request.today.struct_size, sizeof request.today);
    CHECK(request.tomorrow[0] == 0xAAAAAAAAAAAAAAAA); /* an init does not write past the caller's struct */
    imgdl_request_init(&request.today, sizeof request);
    CHECK_NUMBER(request.tomorrow[0] | request.tomorrow[3], 0);
    request.today.url = at_origin("/pictures/tiny.png");
    request.today.flags = IMGDL_REQUEST_BODY;
    request.today.destructor = count_one;
    request.today.user_data = &destroyed;
    imgdl_token *untouched = (imgdl_token *)(void *)some_bytes, *token = untouched;

    request.today.struct_size = sizeof request;
    request.tomorrow[3] = 1;
    CHECK_CODE(imgdl_download(downloader, &request.today, &token), IMGDL_ERROR_UNSUPPORTED_OPTION);
    CHECK_NUMBER(destroyed, 1);
    request.tomorrow[3] = 0;
    CHECK_CODE(imgdl_download(downloader, &request.today, NULL), IMGDL_OK);
    request.today.struct_size = sizeof request.today;
    request.tomorrow[0] = 1; /* not part of what the caller says it has */
    CHECK_CODE(imgdl_download(downloader, &request.today, NULL), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, PATIENCE_MS), IMGDL_OK);
    CHECK_NUMBER(destroyed, 3);

    /* A destructor cannot be found in a struct whose size is wrong. */
    request.today.destructor = NULL;
    const uint32_t wrong[] = {0, 1, 4, 112, 119, 0xFFFFFFFF};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        request.today.struct_size = wrong[i];
        CHECK_CODE(imgdl_download(downloader, &request.today, &token), IMGDL_ERROR_UNSUPPORTED_OPTION);
    }
    CHECK_CODE(imgdl_download(downloader, NULL, &token), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK(token == untouched);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("a config's struct_size, and values out of range")
{
    imgdl_downloader *untouched = (imgdl_downloader *)(void *)some_bytes, *downloader = untouched;
    NEWER(imgdl_config) config;
    memset(&config, 0, sizeof config);
    imgdl_config_init(&config.today, sizeof config);
    config.tomorrow[1] = 5;
    CHECK_CODE(imgdl_downloader_create(&config.today, &downloader), IMGDL_ERROR_UNSUPPORTED_OPTION);
    config.tomorrow[1] = 0;
    config.today.struct_size = 3;
    CHECK_CODE(imgdl_downloader_create(&config.today, &downloader), IMGDL_ERROR_UNSUPPORTED_OPTION);

    imgdl_config_init(&config.today, sizeof config.today);
    config.today.max_concurrent = IMGDL_MAX_CONCURRENT_LIMIT + 1;
    CHECK_CODE(imgdl_downloader_create(&config.today, &downloader), IMGDL_ERROR_INVALID_ARGUMENT);
    imgdl_config_init(&config.today, sizeof config.today);
    config.today.decode_threads = 257;
    CHECK_CODE(imgdl_downloader_create(&config.today, &downloader), IMGDL_ERROR_INVALID_ARGUMENT);
    imgdl_config_init(&config.today, sizeof config.today);
    config.today.max_redirects = 101;
    CHECK_CODE(imgdl_downloader_create(&config.today, &downloader), IMGDL_ERROR_INVALID_ARGUMENT);
    imgdl_config_init(&config.today, sizeof config.today);
    config.today.order = 2;
    CHECK_CODE(imgdl_downloader_create(&config.today, &downloader), IMGDL_ERROR_INVALID_ARGUMENT);
    imgdl_config_init(&config.today, sizeof config.today);
    config.today.user_agent = "two\r\nlines";
    CHECK_CODE(imgdl_downloader_create(&config.today, &downloader), IMGDL_ERROR_INVALID_HEADER);
    imgdl_config_init(&config.today, sizeof config.today);
    config.today.ca_file = "/nonexistent/ca.pem";
    CHECK_CODE(imgdl_downloader_create(&config.today, &downloader), IMGDL_ERROR_INVALID_OPERATION);
    CHECK(strstr(imgdl_last_error(), "/nonexistent/ca.pem") != NULL);
    CHECK_CODE(imgdl_downloader_create(NULL, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK(downloader == untouched);

    imgdl_config_init(&config.today, sizeof config);
    CHECK_CODE(imgdl_downloader_create(&config.today, &downloader), IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    REQUIRE_OK(imgdl_downloader_create(NULL, &downloader));
    CHECK_CODE(imgdl_downloader_set_max_concurrent(downloader, 0), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_downloader_set_max_concurrent(downloader, IMGDL_MAX_CONCURRENT_LIMIT + 1), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_downloader_set_order(downloader, 9), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_downloader_set_header(downloader, NULL, "x"), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_downloader_set_header(downloader, "", "x"), IMGDL_ERROR_INVALID_HEADER);
    CHECK_CODE(imgdl_downloader_set_header(downloader, "A b", "x"), IMGDL_ERROR_INVALID_HEADER);
    CHECK_CODE(imgdl_downloader_set_header(downloader, "A:", "x"), IMGDL_ERROR_INVALID_HEADER);
    CHECK_CODE(imgdl_downloader_set_header(downloader, "A", "x\r\nB: y"), IMGDL_ERROR_INVALID_HEADER);
    CHECK_CODE(imgdl_downloader_set_header(downloader, "A\n", "x"), IMGDL_ERROR_INVALID_HEADER);
    CHECK_CODE(imgdl_downloader_shutdown(downloader, 7, NULL, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("the structs of decoding and results, too")
{
    size_t size;
    uint8_t *bytes = read_picture("tiny.png", &size);
    imgdl_image *untouched = (imgdl_image *)(void *)some_bytes, *image = untouched;
    imgdl_decoder *decoder = NULL;
    NEWER(imgdl_decode_options) options;
    memset(&options, 0, sizeof options);
    imgdl_decode_options_init(&options.today, sizeof options);
    options.tomorrow[0] = 1;
    CHECK_CODE(imgdl_decode(bytes, size, &options.today, &image), IMGDL_ERROR_UNSUPPORTED_OPTION);
    CHECK_CODE(imgdl_decoder_create(&options.today, &decoder), IMGDL_ERROR_UNSUPPORTED_OPTION);
    options.tomorrow[0] = 0;
    options.today.struct_size = 8;
    CHECK_CODE(imgdl_decode(bytes, size, &options.today, &image), IMGDL_ERROR_UNSUPPORTED_OPTION);
    imgdl_decode_options_init(&options.today, sizeof options.today);
    options.today.flags = 1u << 30;
    CHECK_CODE(imgdl_decode(bytes, size, &options.today, &image), IMGDL_ERROR_UNSUPPORTED_OPTION);
    imgdl_decode_options_init(&options.today, sizeof options.today);
    options.today.reserved = 1;
    CHECK_CODE(imgdl_decode(bytes, size, &options.today, &image), IMGDL_ERROR_UNSUPPORTED_OPTION);
    imgdl_decode_options_init(&options.today, sizeof options.today);
    options.today.pixel_format = 99;
    CHECK_CODE(imgdl_decode(bytes, size, &options.today, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_decode(NULL, 5, NULL, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_decode(bytes, SIZE_MAX, NULL, &image), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_decode(bytes, size, NULL, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_decode(bytes, 0, NULL, &image), IMGDL_ERROR_BAD_IMAGE_DATA);
    CHECK_CODE(imgdl_decode(bytes, size - 28, NULL, &image), IMGDL_ERROR_TRUNCATED);
    CHECK(image == untouched && decoder == NULL);

    REQUIRE_OK(imgdl_decoder_create(NULL, &decoder));
    NEWER(imgdl_image_info) info;
    memset(&info, 0xAA, sizeof info);
    imgdl_image_info_init(&info.today, sizeof info.today);
    CHECK(info.tomorrow[0] == 0xAAAAAAAAAAAAAAAA);
    CHECK_CODE(imgdl_decoder_info(decoder, &info.today), IMGDL_ERROR_NOT_READY);
    CHECK_CODE(imgdl_decoder_partial(decoder, &image), IMGDL_ERROR_NOT_READY);
    CHECK_CODE(imgdl_decoder_feed(decoder, bytes, size), IMGDL_OK);
    CHECK_CODE(imgdl_decoder_info(decoder, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK_CODE(imgdl_decoder_info(decoder, &info.today), IMGDL_OK);
    CHECK_NUMBER(info.today.width, 24);
    CHECK_NUMBER(info.today.height, 16);
    CHECK_NUMBER(info.today.format, IMGDL_FORMAT_PNG);
    CHECK_NUMBER(info.today.struct_size, sizeof info.today);
    CHECK(info.tomorrow[0] == 0xAAAAAAAAAAAAAAAA);
    CHECK_CODE(imgdl_decoder_finish(decoder, &image), IMGDL_OK);
    CHECK_NUMBER(imgdl_image_width(image), 24);
    imgdl_decoder_destroy(decoder);
    CHECK_NUMBER(imgdl_image_height(image), 16); /* lives on */
    imgdl_image_release(image);
    free(bytes);

    imgdl_downloader *downloader = new_downloader();
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png?hold_head=1&gate=results");
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(downloader, &request, &token));
    imgdl_result result;
    memset(&result, 0xAA, sizeof result);
    imgdl_result_init(&result, 4); /* less than 1.0: does nothing */
    CHECK_NUMBER(result.struct_size, 0xAAAAAAAA);
    imgdl_result_init(&result, sizeof result);
    CHECK_CODE(imgdl_token_result(token, &result), IMGDL_ERROR_NOT_READY);
    /* What nobody has filled is no success, and can be printed. */
    CHECK_CODE(result.code, IMGDL_ERROR_NOT_READY);
    CHECK(result.message && strstr(result.message, "imgdl_last_error"));
    CHECK(!result.image && !result.data);
    result.code = IMGDL_OK;
    imgdl_result_init(&result, 48); /* as in 1.0 */
    CHECK_CODE(result.code, IMGDL_ERROR_NOT_READY);
    imgdl_result_init(&result, sizeof result);
    CHECK_CODE(imgdl_token_result(NULL, &result), IMGDL_ERROR_INVALID_HANDLE);
    CHECK_CODE(result.code, IMGDL_ERROR_NOT_READY);
    CHECK_CODE(imgdl_token_wait(token, 0), IMGDL_ERROR_WAIT_TIMEOUT);
    CHECK_CODE(imgdl_token_set_priority(token, 5), IMGDL_ERROR_INVALID_ARGUMENT);
    open_gate("results");
    CHECK_CODE(imgdl_token_wait(token, PATIENCE_MS), IMGDL_OK);
    CHECK_CODE(imgdl_token_result(token, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    result.struct_size = 8;
    CHECK_CODE(imgdl_token_result(token, &result), IMGDL_ERROR_UNSUPPORTED_OPTION);
    result.struct_size = sizeof result;
    CHECK_CODE(imgdl_token_result(token, &result), IMGDL_OK);
    CHECK_CODE(result.code, IMGDL_OK);
    CHECK_NUMBER(result.http_status, 200);
    CHECK_NUMBER(imgdl_image_width(result.image), 24);
    REQUIRE(result.response != NULL);
    CHECK_NUMBER(result.response->status, 200);
    CHECK(strcmp(result.message, "") == 0);
    imgdl_token_release(token);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

struct refusal {
    const char *url;
    imgdl_status code;
    const char *name;
};

TEST("a request that is refused writes no token and calls its destructor once, before the return")
{
    imgdl_downloader *downloader = new_downloader();
    const struct refusal refusals[] = {
        {NULL, IMGDL_ERROR_INVALID_URL, "IMGDL_ERROR_INVALID_URL"},
        {"", IMGDL_ERROR_INVALID_URL, "IMGDL_ERROR_INVALID_URL"},
        {"http://", IMGDL_ERROR_INVALID_URL, "IMGDL_ERROR_INVALID_URL"},
        {"not a url", IMGDL_ERROR_INVALID_URL, "IMGDL_ERROR_INVALID_URL"},
        {"http://host/a\nb", IMGDL_ERROR_INVALID_URL, "IMGDL_ERROR_INVALID_URL"},
        {"http://host:99999/", IMGDL_ERROR_INVALID_URL, "IMGDL_ERROR_INVALID_URL"},
        {"ftp://host/file", IMGDL_ERROR_UNSUPPORTED_SCHEME, "IMGDL_ERROR_UNSUPPORTED_SCHEME"},
        {"file:///etc/passwd", IMGDL_ERROR_UNSUPPORTED_SCHEME, "IMGDL_ERROR_UNSUPPORTED_SCHEME"},
        {"data:image/png;base64,AA", IMGDL_ERROR_UNSUPPORTED_SCHEME, "IMGDL_ERROR_UNSUPPORTED_SCHEME"},
    };
    imgdl_request request;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        int destroyed = 0;
        imgdl_token *untouched = (imgdl_token *)(void *)some_bytes, *token = untouched;
        imgdl_request_init(&request, sizeof request);
        request.url = refusals[i].url;
        request.callback = never;
        request.destructor = count_one;
        request.user_data = &destroyed;
        imgdl_status status = imgdl_download(downloader, &request, &token);
        if (status != refusals[i].code || strcmp(imgdl_error_name(status), refusals[i].name) != 0)
            FAIL("%s gives %s, not %s", refusals[i].url ? refusals[i].url : "NULL", imgdl_error_name(status),
                 refusals[i].name);
        CHECK(token == untouched);
        CHECK_NUMBER(destroyed, 1);
    }

    static const imgdl_header bad_headers[] = {
        {"X-A", "1\r\nX-B: 2"}, {"X-A\r\n", "1"}, {"X A", "1"}, {"", "1"}, {"X-A:", "1"}, {"X-A", "1\n"}};
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
        int destroyed = 0;
        imgdl_request_init(&request, sizeof request);
        request.url = at_origin("/echo");
        request.headers = &bad_headers[i];
        request.header_count = 1;
        request.destructor = count_one;
        request.user_data = &destroyed;
        CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_INVALID_HEADER);
        CHECK_NUMBER(destroyed, 1);
    }
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/echo");
    request.method = "GET /other";
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_INVALID_HEADER);
    request.method = NULL;
    request.header_count = 1;
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    request.header_count = 0;
    request.body_length = 5;
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    request.body_length = 0;
    request.flags = 1u << 30;
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_UNSUPPORTED_OPTION);
    request.flags = 0;
    request.event_mask = 1u << 20;
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_UNSUPPORTED_OPTION);
    request.event_mask = 0;
    request.priority = 3;
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_INVALID_ARGUMENT);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("every code has its name and a sentence; unknown ones say so")
{
    const struct { imgdl_status code; const char *name; } codes[] = {
#define CODE(name) {name, #name}
        CODE(IMGDL_OK), CODE(IMGDL_ERROR_INVALID_URL), CODE(IMGDL_ERROR_BAD_IMAGE_DATA), CODE(IMGDL_ERROR_NOT_MODIFIED),
        CODE(IMGDL_ERROR_INVALID_OPERATION), CODE(IMGDL_ERROR_INVALID_STATUS), CODE(IMGDL_ERROR_CANCELLED),
        CODE(IMGDL_ERROR_INVALID_RESPONSE), CODE(IMGDL_ERROR_INVALID_CONTENT_TYPE), CODE(IMGDL_ERROR_INVALID_ARGUMENT),
        CODE(IMGDL_ERROR_INVALID_HANDLE), CODE(IMGDL_ERROR_UNSUPPORTED_OPTION), CODE(IMGDL_ERROR_WOULD_DEADLOCK),
        CODE(IMGDL_ERROR_SHUT_DOWN), CODE(IMGDL_ERROR_FORKED), CODE(IMGDL_ERROR_OUT_OF_MEMORY),
        CODE(IMGDL_ERROR_WAIT_TIMEOUT), CODE(IMGDL_ERROR_NOT_READY), CODE(IMGDL_ERROR_INTERNAL),
        CODE(IMGDL_ERROR_INVALID_HEADER), CODE(IMGDL_ERROR_UNSUPPORTED_SCHEME), CODE(IMGDL_ERROR_RESOLVE_FAILED),
        CODE(IMGDL_ERROR_CONNECT_FAILED), CODE(IMGDL_ERROR_CONNECTION_LOST), CODE(IMGDL_ERROR_TLS_FAILED),
        CODE(IMGDL_ERROR_TLS_CERTIFICATE), CODE(IMGDL_ERROR_PROTOCOL), CODE(IMGDL_ERROR_TRUNCATED),
        CODE(IMGDL_ERROR_CONNECT_TIMEOUT), CODE(IMGDL_ERROR_IDLE_TIMEOUT), CODE(IMGDL_ERROR_TOTAL_TIMEOUT),
        CODE(IMGDL_ERROR_PROXY_FAILED), CODE(IMGDL_ERROR_TOO_MANY_REDIRECTS), CODE(IMGDL_ERROR_REDIRECT_REFUSED),
        CODE(IMGDL_ERROR_CONTENT_ENCODING), CODE(IMGDL_ERROR_BODY_LIMIT), CODE(IMGDL_ERROR_HEADER_LIMIT),
        CODE(IMGDL_ERROR_PIXEL_LIMIT), CODE(IMGDL_ERROR_FRAME_LIMIT), CODE(IMGDL_ERROR_BLACKLISTED),
        CODE(IMGDL_ERROR_BACKGROUND_EXPIRED), CODE(IMGDL_ERROR_ADDRESS_REFUSED), CODE(IMGDL_ERROR_TLS_PIN),
        CODE(IMGDL_ERROR_NOT_CACHED), CODE(IMGDL_ERROR_CACHE_BUSY), CODE(IMGDL_ERROR_DISK_FULL),
        CODE(IMGDL_ERROR_READ_ONLY), CODE(IMGDL_ERROR_DISK_FAILED), CODE(IMGDL_ERROR_UNSAFE_DIRECTORY)
#undef CODE
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strcmp(imgdl_error_name(codes[i].code), codes[i].name) != 0)
            FAIL("%d is called %s, not %s", codes[i].code, imgdl_error_name(codes[i].code), codes[i].name);
        CHECK(imgdl_error_message(codes[i].code) != NULL && (codes[i].code == 0 || *imgdl_error_message(codes[i].code)));
        CHECK(imgdl_error_name(codes[i].code) == imgdl_error_name(codes[i].code)); /* static */
    }
    const imgdl_status unknown[] = {-1, 1, 999, 1004, 2005, 2099, 5000, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        CHECK(strcmp(imgdl_error_name(unknown[i]), "IMGDL_ERROR_UNKNOWN") == 0);
        CHECK(imgdl_error_message(unknown[i]) != NULL);
    }
    CHECK(imgdl_last_error() != NULL);
    CHECK_NUMBER(imgdl_version(), IMGDL_VERSION_NUMBER);
    CHECK(strcmp(imgdl_version_string(), IMGDL_VERSION_STRING) == 0);
}
