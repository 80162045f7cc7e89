/* A thread of the host's with 64 KiB of stack calls every function that it may, on every kind of picture. */
#define SUITE "stacks"
#include "support.h"

#if !UNDER_SANITIZER

#include "animations.h"
#include "test_pictures.h"

enum { SIDE = 150, MOST_PICTURES = 40, LEAST_LEFT = 4 << 10 };

/* ---- Pictures of each kind, and for all that a decoder can be asked for */

static struct picture {
    const char *what;
    uint8_t *bytes;
    size_t size;
} pictures[MOST_PICTURES];
static unsigned picture_count;

static void add_picture(const char *what, uint8_t *bytes, size_t size)
{
    REQUIRE(bytes && picture_count < MOST_PICTURES);
    pictures[picture_count++] = (struct picture){what, bytes, size};
}

/* A JPEG with that profile in it. */
static void add_profile(const char *what, uint32_t kind, const struct picture *jpeg)
{
    size_t size = 0;
    uint8_t *profile = picture_profile(kind, &size);
    size_t length = 2 + 14 + size;
    REQUIRE(length < 65536);
    uint8_t *bytes = malloc(jpeg->size + length + 2);
    const uint8_t segment[] = {0xFF, 0xD8, 0xFF, 0xE2, (uint8_t)(length >> 8), (uint8_t)length, 'I', 'C', 'C', '_', 'P', 'R',
                               'O', 'F', 'I', 'L', 'E', 0, 1, 1};
    memcpy(bytes, segment, sizeof segment);
    memcpy(bytes + sizeof segment, profile, size);
    memcpy(bytes + sizeof segment + size, jpeg->bytes + 2, jpeg->size - 2);
    picture_free(profile);
    add_picture(what, bytes, jpeg->size + length + 2);
}

static void make_pictures(void)
{
    static const struct {
        const char *what;
        uint32_t kind;
    } kinds[] = {
        {"baseline JPEG", PICTURE_JPEG_BASELINE}, {"progressive JPEG", PICTURE_JPEG_PROGRESSIVE},
        {"gray JPEG", PICTURE_JPEG_GRAY}, {"JPEG of inks", PICTURE_JPEG_CMYK}, {"JPEG of YCCK", PICTURE_JPEG_YCCK},
        {"arithmetic JPEG", PICTURE_JPEG_ARITHMETIC}, {"progressive arithmetic JPEG", PICTURE_JPEG_ARITHMETIC_PROGRESSIVE},
        {"JPEG in three scans", PICTURE_JPEG_SEPARATE_SCANS}, {"PNG", PICTURE_PNG_RGB}, {"PNG with alpha", PICTURE_PNG_RGBA},
        {"PNG with a palette", PICTURE_PNG_PALETTE}, {"PNG of 16 bits", PICTURE_PNG_GRAY16}, {"Adam7 PNG", PICTURE_PNG_ADAM7},
        {"Adam7 PNG with alpha", PICTURE_PNG_ADAM7_RGBA}, {"lossy WebP", PICTURE_WEBP_LOSSY},
        {"lossless WebP", PICTURE_WEBP_LOSSLESS}, {"lossy WebP with alpha", PICTURE_WEBP_LOSSY_ALPHA},
        {"lossless WebP with alpha", PICTURE_WEBP_LOSSLESS_ALPHA}, {"animated WebP", PICTURE_WEBP_ANIMATED}};
    size_t size = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct picture_spec spec = {
            .kind = kinds[i].kind, .width = SIDE, .height = SIDE, .seed = 3, .orientation = 6, .exif_thumbnail = 1};
        uint8_t *bytes = picture_encode(&spec, &size);
        add_picture(kinds[i].what, bytes, size);
    }
    uint8_t *bytes = animated_gif(&size);
    add_picture("GIF", bytes, size);
    bytes = animated_png(&size);
    add_picture("APNG", bytes, size);
    add_profile("baseline JPEG with a profile", PICTURE_PROFILE_RGB, &pictures[0]);
    add_profile("gray JPEG with a profile", PICTURE_PROFILE_GRAY, &pictures[2]);
    add_profile("JPEG of inks with a profile", PICTURE_PROFILE_INKS, &pictures[3]);
}

static imgdl_decode_options options[5];

static void make_options(imgdl_coder *coder)
{
    for (int i = 0; i < 5; i++)
        imgdl_decode_options_init(&options[i], sizeof options[i]);
    options[0].flags = IMGDL_DECODE_ALL_FRAMES;
    options[1].colour = IMGDL_COLOUR_SRGB;
    options[1].target_width = 20;
    options[2].colour = IMGDL_COLOUR_SRGB;
    options[2].pixel_format = IMGDL_PIXEL_FORMAT_RGBA16;
    options[2].flags = IMGDL_DECODE_ALL_FRAMES | IMGDL_DECODE_SALVAGE;
    options[3].pixel_format = IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED;
    options[3].flags = IMGDL_DECODE_ALL_FRAMES | IMGDL_DECODE_STRETCH | IMGDL_DECODE_THUMBNAIL_FIRST;
    options[3].target_width = options[3].target_height = 33;
    options[4].coder = coder;
}

static void look_at(imgdl_image *image)
{
    size_t length = 0;
    imgdl_image *frame = NULL;
    CHECK(imgdl_image_width(image) > 0 && imgdl_image_height(image) > 0 && imgdl_image_pixels(image) != NULL);
    CHECK(imgdl_image_stride(image) > 0 && imgdl_image_format(image) && imgdl_image_pixel_format(image));
    CHECK(imgdl_image_ready(image).width > 0 && imgdl_image_pass(image) > 0 && imgdl_image_scale_factor(image) == 1);
    CHECK(imgdl_image_orientation(image) > 0);
    (void)imgdl_image_is_complete(image), (void)imgdl_image_is_good_enough(image), (void)imgdl_image_notes(image);
    (void)imgdl_image_colour_notes(image), (void)imgdl_image_icc_profile(image, &length);
    (void)imgdl_image_loop_count(image);
    for (uint32_t i = 0; i < imgdl_image_frame_count(image); i++) {
        (void)imgdl_image_frame_duration_ms(image, i);
        CHECK_CODE(imgdl_image_frame(image, i, &frame), IMGDL_OK);
        imgdl_image_release(frame);
    }
    CHECK(imgdl_image_retain(image) == image);
    imgdl_image_release(image);
}

static void decode_in_pieces(const struct picture *picture, const imgdl_decode_options *options)
{
    imgdl_decoder *decoder = NULL;
    imgdl_image_info info;
    imgdl_image *image = NULL;
    imgdl_image_info_init(&info, sizeof info);
    REQUIRE_OK(imgdl_decoder_create(options, &decoder));
    for (size_t at = 0; at < picture->size; at += 4000) {
        size_t left = picture->size - at;
        CHECK_CODE(imgdl_decoder_feed(decoder, picture->bytes + at, left < 4000 ? left : 4000), IMGDL_OK);
        ignore_status(imgdl_decoder_info(decoder, &info));
        if (imgdl_decoder_partial(decoder, &image) == IMGDL_OK)
            imgdl_image_release(image);
    }
    CHECK_CODE(imgdl_decoder_finish(decoder, &image), IMGDL_OK);
    imgdl_image_release(image);
    imgdl_decoder_destroy(decoder);
}

static void decode_all(void)
{
    for (unsigned i = 0; i < picture_count; i++)
        for (int k = 0; k < 4; k++) {
            imgdl_image *image = NULL;
            imgdl_status status = imgdl_decode(pictures[i].bytes, pictures[i].size, &options[k], &image);
            if (status != IMGDL_OK)
                FAIL("%s, options %d: %s", pictures[i].what, k, imgdl_last_error());
            else if (k == 0)
                look_at(image);
            imgdl_image_release(image);
            /* One that is cut: its error is made, and what could be had is there. */
            image = NULL;
            ignore_status(imgdl_decode(pictures[i].bytes, pictures[i].size * 3 / 5, &options[k], &image));
            imgdl_image_release(image);
            decode_in_pieces(&pictures[i], &options[k]);
        }
}

/* ---- A codec and a loader of the host's, hooks that leave their questions to the thread */

static int32_t is_toy(const void *prefix, size_t length, void *user_data)
{
    (void)user_data;
    return length < 3 ? -1 : !memcmp(prefix, "TOY", 3);
}
static void *make_toy(const imgdl_decode_options *options, void *user_data)
{
    (void)options;
    return user_data;
}
static imgdl_status feed_toy(void *decoder, const void *bytes, size_t length)
{
    (void)decoder, (void)bytes, (void)length;
    return IMGDL_OK;
}
static imgdl_status tell_of_toy(void *decoder, imgdl_image_info *info)
{
    (void)decoder;
    info->width = info->height = 2;
    info->frame_count = 1;
    info->orientation = 6;
    return IMGDL_OK;
}
static imgdl_status finish_toy(void *decoder, imgdl_image **image)
{
    static const uint8_t pixels[16];
    (void)decoder;
    return imgdl_image_create(2, 2, IMGDL_PIXEL_FORMAT_RGBA8, pixels, 8, image);
}
static void nothing(void *user_data) { (void)user_data; }

static struct {
    struct flag questions;
    imgdl_continuation *question;
    imgdl_transfer *transfer;
    int answered;
} asked = {FLAG_INIT, NULL, NULL, 0};

static void keep_question(imgdl_continuation *next)
{
    asked.question = next;
    raise_flag(&asked.questions);
}
static void on_request(const imgdl_outgoing *request, imgdl_continuation *next, void *user_data)
{
    (void)request, (void)user_data;
    keep_question(next);
}
static void on_response(const imgdl_response *response, imgdl_continuation *next, void *user_data)
{
    (void)response, (void)user_data;
    keep_question(next);
}
static void on_body(imgdl_data *body, imgdl_continuation *next, void *user_data)
{
    (void)body, (void)user_data;
    keep_question(next);
}
static void *begin_load(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request, (void)user_data;
    asked.transfer = transfer;
    raise_flag(&asked.questions);
    return NULL;
}
static void cancel_load(void *started, void *user_data)
{
    (void)started, (void)user_data;
    imgdl_transfer_release(asked.transfer);
}
static void observe(const imgdl_observation *observation, void *user_data) { (void)observation, (void)user_data; }

static void await_question(void) { await_flag(&asked.questions, ++asked.answered); }

/* ---- The calls */

static imgdl_token *begin(imgdl_downloader *downloader, const imgdl_request *request)
{
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(downloader, request, &token));
    return token;
}

static void check_end(imgdl_token *token, imgdl_status expected)
{
    static imgdl_result result;
    static imgdl_metrics metrics;
    imgdl_result_init(&result, sizeof result);
    imgdl_metrics_init(&metrics, sizeof metrics);
    CHECK_CODE(imgdl_token_wait(token, PATIENCE_MS), IMGDL_OK);
    CHECK_CODE(imgdl_token_result(token, &result), IMGDL_OK);
    if (result.code != expected)
        FAIL("%s in place of %s: %s", imgdl_error_name(result.code), imgdl_error_name(expected), result.message);
    if (result.data)
        CHECK(imgdl_data_bytes(result.data) && imgdl_data_length(result.data) && imgdl_data_retain(result.data));
    imgdl_data_release(result.data);
    ignore_status(imgdl_token_metrics(token, &metrics));
    CHECK(imgdl_token_id(token) > 0 && imgdl_token_retain(token) == token);
    imgdl_token_release(token);
    imgdl_token_release(token);
}

static void answer_questions(imgdl_downloader *downloader)
{
    static imgdl_hooks_table table;
    static imgdl_request request;
    static imgdl_outgoing outgoing;
    static const imgdl_header header = {"Content-Type", "image/png"};
    table = (imgdl_hooks_table){
        .struct_size = sizeof table, .modify_request = on_request, .modify_response = on_response,
        .transform_body = on_body, .authenticate = on_response, .destructor = nothing};
    imgdl_hooks *hooks = NULL;
    REQUIRE_OK(imgdl_hooks_create(&table, &hooks));
    CHECK(imgdl_hooks_retain(hooks) == hooks);
    imgdl_hooks_release(hooks);
    imgdl_request_init(&request, sizeof request);
    imgdl_outgoing_init(&outgoing, sizeof outgoing);
    request.hooks = hooks;
    request.flags = IMGDL_REQUEST_BODY | IMGDL_REQUEST_DECODE | IMGDL_REQUEST_BASIC_OVER_HTTP;
    outgoing.url = at_origin("/auth/basic?user=u&password=p&picture=tiny.png");
    for (int is_refused = 0; is_refused < 2; is_refused++) {
        request.url = at_origin("/text?_=asked%d", is_refused);
        imgdl_token *token = begin(downloader, &request);
        await_question();
        CHECK_CODE(imgdl_continue_with_request(asked.question, &outgoing), IMGDL_OK);
        await_question();
        if (is_refused) {
            CHECK_CODE(imgdl_continue_refused(asked.question, 0, "no"), IMGDL_OK);
            check_end(token, IMGDL_ERROR_INVALID_STATUS);
            continue;
        }
        CHECK_CODE(imgdl_continue_with_credentials(asked.question, "u", "p"), IMGDL_OK);
        await_question();
        CHECK_CODE(imgdl_continue_with_response(asked.question, 200, &header, 1), IMGDL_OK);
        await_question();
        CHECK_CODE(imgdl_continue_with_data(asked.question, pictures[0].bytes, pictures[0].size), IMGDL_OK);
        CHECK_CODE(imgdl_continue_unchanged(asked.question), IMGDL_ERROR_INVALID_HANDLE);
        check_end(token, IMGDL_OK);
    }
    imgdl_hooks_release(hooks);
}

static void load(imgdl_downloader *downloader)
{
    static imgdl_transport_table table;
    static imgdl_request request;
    table = (imgdl_transport_table){
        .struct_size = sizeof table, .start = begin_load, .cancel = cancel_load, .destructor = nothing};
    REQUIRE_OK(imgdl_transport_register(downloader, "small", &table));
    imgdl_request_init(&request, sizeof request);
    request.url = "small://picture";
    imgdl_token *token = begin(downloader, &request);
    await_question();
    CHECK_CODE(imgdl_transfer_response(asked.transfer, 200, NULL, 0), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_body(asked.transfer, pictures[0].bytes, pictures[0].size), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_end(asked.transfer, IMGDL_OK, NULL), IMGDL_OK);
    imgdl_transfer_release(asked.transfer);
    check_end(token, IMGDL_OK);
    REQUIRE_OK(imgdl_transport_register(downloader, "small", NULL));
}

/* Everything that a request may name, over each protocol. */
static void download_all(imgdl_downloader *downloader, imgdl_executor *executor)
{
    static imgdl_request request;
    static struct recorder recorder;
    static const imgdl_header header = {"X-Small", "1"};
    static const imgdl_status_range statuses = {200, 299};
    static const char *const types[] = {"*/*"};
    const char *const urls[] = {
        at_origin("/pictures/baseline.jpg?_=small"), at_tls_origin("/text"), at_http2_origin("/pictures/progressive.jpg"),
        at_origin("/redirect/2?to=%s", at_origin("/pictures/lossless.webp")),
        at_origin("/pictures/tiny.png?gzip=1&chunk=50"), at_origin("/auth/digest?user=u&password=p&picture=tiny.png"),
        at_origin("/pictures/tiny.png?header=Cache-Control:max-age=600&_=small"),
        at_origin("/pictures/tiny.png?header=Cache-Control:max-age=600&_=small"),
        "data:image/gif;base64,R0lGODdhAQABAIAAAAAAAAAAACwAAAAAAQABAAACAkQBADs="};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        recorder_init(&recorder);
        request = recorded_request(urls[i], &recorder);
        request.executor = executor;
        request.flags = IMGDL_REQUEST_BODY | (i == 1 ? 0 : IMGDL_REQUEST_DECODE) | IMGDL_REQUEST_COOKIES;
        request.headers = &header;
        request.header_count = 1;
        request.user = "u";
        request.password = "p";
        request.retry_count = 1;
        request.accepted_statuses = &statuses;
        request.accepted_status_count = 1;
        request.accepted_types = types;
        request.accepted_type_count = 1;
        request.ca_file = i == 2 ? http2_ca_file : tls_ca_file;
        request.partition = "small";
        request.decode = &options[i % 4];
        REQUIRE_OK(imgdl_download(downloader, &request, NULL));
        await_end(&recorder, executor);
        if (recorder.code != IMGDL_OK)
            FAIL("%s: %s", urls[i], recorder.message);
        recorder_clear(&recorder);
    }
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/echo");
    request.method = "POST";
    request.body = "body";
    request.body_length = 4;
    request.flags = IMGDL_REQUEST_BODY;
    check_end(begin(downloader, &request), IMGDL_OK);
    request.client_certificate = request.client_key = tls_ca_file; /* no key is in it */
    request.client_key_password = "p";
    check_end(begin(downloader, &request), IMGDL_ERROR_TLS_FAILED);
    request.client_certificate = request.client_key = request.client_key_password = NULL;
    request.url = at_tls_origin("/text?_=pinned");
    request.ca_file = tls_ca_file;
    request.pinned_public_key = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    check_end(begin(downloader, &request), IMGDL_ERROR_TLS_PIN);
    request.url = "no url";
    CHECK_CODE(imgdl_download(downloader, &request, NULL), IMGDL_ERROR_INVALID_URL);
}

/* What is asked of downloads, batches and the downloader while something runs. */
static void steer(imgdl_downloader *downloader, imgdl_executor *executor)
{
    static imgdl_request request;
    static imgdl_batch_options batched;
    static imgdl_batch_progress progress;
    static imgdl_stats stats;
    char value[16];
    size_t length = 0;
    imgdl_batch *batch = NULL;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/tiny.png?hold_head=1&gate=small");
    CHECK_CODE(imgdl_downloader_set_observer(downloader, observe, NULL, nothing), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_set_header(downloader, "X-Small", "2"), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_get_header(downloader, "X-Small", value, sizeof value, &length), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_set_max_concurrent(downloader, 7), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_set_max_per_host(downloader, 7), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_set_order(downloader, IMGDL_ORDER_LIFO), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_set_suspended(downloader, 1), IMGDL_OK);
    imgdl_token *token = begin(downloader, &request);
    CHECK_CODE(imgdl_token_set_priority(token, IMGDL_PRIORITY_HIGH), IMGDL_OK);
    CHECK_CODE(imgdl_token_wait(token, 1), IMGDL_ERROR_WAIT_TIMEOUT);
    CHECK_CODE(imgdl_downloader_set_suspended(downloader, 0), IMGDL_OK);
    imgdl_batch_options_init(&batched, sizeof batched);
    batched.executor = executor;
    batched.destructor = nothing;
    REQUIRE_OK(imgdl_downloader_prefetch(downloader, &request, 1, &batched, &batch));
    CHECK_CODE(imgdl_batch_set_paused(batch, 1), IMGDL_OK);
    CHECK_CODE(imgdl_batch_set_priority(batch, IMGDL_PRIORITY_NORMAL), IMGDL_OK);
    progress.struct_size = sizeof progress;
    CHECK_CODE(imgdl_batch_progress_get(batch, &progress), IMGDL_OK);
    CHECK(imgdl_batch_retain(batch) == batch);
    imgdl_batch_release(batch);
    await_gate("small", 1);
    CHECK_CODE(imgdl_downloader_enter_background(downloader, 1000), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_enter_foreground(downloader), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_network_changed(downloader), IMGDL_OK);
    CHECK(imgdl_downloader_max_concurrent(downloader) == 7 && !imgdl_downloader_is_suspended(downloader));
    CHECK(imgdl_downloader_current_count(downloader) > 0);
    CHECK_CODE(imgdl_batch_cancel(batch), IMGDL_OK);
    CHECK_CODE(imgdl_token_cancel(token), IMGDL_OK);
    check_end(token, IMGDL_ERROR_CANCELLED);
    CHECK_CODE(imgdl_downloader_cancel_all(downloader), IMGDL_OK);
    imgdl_batch_release(batch);
    /* The batch's progress waits for this very thread. */
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, -1), IMGDL_ERROR_WOULD_DEADLOCK);
    while (imgdl_downloader_wait_idle(downloader, 10) != IMGDL_OK)
        CHECK_CODE(imgdl_executor_dispatch(executor, 0, NULL), IMGDL_OK);
    imgdl_stats_init(&stats, sizeof stats);
    CHECK_CODE(imgdl_downloader_stats(downloader, &stats), IMGDL_OK);
    CHECK(imgdl_histogram_quantile(&stats.total, 0.5) >= 0);
    for (imgdl_trim_level level = IMGDL_TRIM_UNUSED; level <= IMGDL_TRIM_CACHES; level++)
        (void)imgdl_trim(level);
}

static void use_cache(imgdl_cache *cache)
{
    static imgdl_cache_stats stats;
    static imgdl_cache_entry entry;
    const char *url = at_origin("/pictures/tiny.png?header=Cache-Control:max-age=600&_=small");
    imgdl_cache_entry_init(&entry, sizeof entry);
    imgdl_cache_stats_init(&stats, sizeof stats);
    CHECK_CODE(imgdl_cache_flush(cache), IMGDL_OK);
    CHECK_CODE(imgdl_cache_query(cache, url, &entry), IMGDL_OK);
    CHECK_CODE(imgdl_cache_statistics(cache, &stats), IMGDL_OK);
    CHECK_CODE(imgdl_cache_remove(cache, url), IMGDL_OK);
    CHECK_CODE(imgdl_cache_remove_older(cache, 0), IMGDL_OK);
    CHECK_CODE(imgdl_cache_clear(cache), IMGDL_OK);
    CHECK_CODE(imgdl_cache_query(cache, url, &entry), IMGDL_ERROR_NOT_CACHED);
    CHECK(imgdl_cache_retain(cache) == cache);
    imgdl_cache_release(cache);
}

static imgdl_config small_config(imgdl_cache *cache, const char *folder)
{
    static char cookies[512];
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    snprintf(cookies, sizeof cookies, "%s/cookies", folder);
    config.cookie_file = cookies;
    config.cache = cache;
    config.cache_mode = IMGDL_CACHE_USE;
    config.flags = IMGDL_CONFIG_ALLOW_DATA_URLS | IMGDL_CONFIG_ALLOW_FILE_URLS;
    config.ca_file = tls_ca_file;
    config.dns_servers = "127.0.0.1:1";
    config.failure_ttl_ms = 1000;
    return config;
}

/* Each way in which a downloader ends, and what cannot be one. */
static void end_downloaders(imgdl_downloader *downloader, imgdl_config *config)
{
    imgdl_downloader *other = NULL;
    struct flag done = FLAG_INIT;
    config->cookie_file = NULL;
    CHECK_CODE(imgdl_downloader_reconfigure(downloader, config), IMGDL_OK);
    REQUIRE_OK(imgdl_downloader_create(config, &other));
    CHECK_CODE(imgdl_downloader_invalidate(other, 1), IMGDL_OK);
    CHECK(imgdl_downloader_retain(other) == other);
    imgdl_downloader_release(other);
    imgdl_downloader_release(other);
    config->crl_file = tls_ca_file; /* which has no list */
    CHECK_CODE(imgdl_downloader_create(config, &other), IMGDL_ERROR_INVALID_OPERATION);
    config->crl_file = NULL;
    config->client_certificate = tls_ca_file; /* nor a key */
    CHECK_CODE(imgdl_downloader_create(config, &other), IMGDL_ERROR_INVALID_OPERATION);
    REQUIRE_OK(imgdl_downloader_shared(&other));
    CHECK_CODE(imgdl_downloader_destroy(other), IMGDL_ERROR_INVALID_OPERATION);
    imgdl_downloader_release(other);
    CHECK_CODE(imgdl_downloader_wait_idle(downloader, PATIENCE_MS), IMGDL_OK);
    CHECK_CODE(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_FINISH, on_end_raise, &done), IMGDL_OK);
    await_flag(&done, 1);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
}

/* The first of all there is in the process. */
static void *use_everything(void *argument)
{
    static imgdl_coder_table table;
    static imgdl_config config;
    imgdl_coder *coder = NULL;
    imgdl_image *image = NULL;
    imgdl_executor *executor = NULL;
    imgdl_downloader *downloader = NULL;
    CHECK(imgdl_version() == IMGDL_VERSION_NUMBER && imgdl_version_string() && imgdl_error_name(2100));
    CHECK(*imgdl_error_message(2100) != 0);
    table = (imgdl_coder_table){
        .struct_size = sizeof table, .can_decode = is_toy, .create = make_toy, .feed = feed_toy, .info = tell_of_toy,
        .finish = finish_toy, .destroy = nothing, .user_data = &table, .destructor = nothing};
    REQUIRE_OK(imgdl_coder_register(&table, &coder));
    make_options(coder);
    CHECK_CODE(imgdl_decode("TOY", 3, &options[4], &image), IMGDL_OK);
    imgdl_image_release(image);
    decode_all();
    CHECK_CODE(imgdl_decode("TOY", 3, &options[2], &image), IMGDL_OK);
    imgdl_image_release(image);
    imgdl_coder_release(coder);

    char *folder = new_folder();
    imgdl_cache *cache = new_cache(folder);
    config = small_config(cache, folder);
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    CHECK(imgdl_executor_fd(executor) >= 0 && imgdl_executor_retain(executor) == executor);
    imgdl_executor_release(executor);
    download_all(downloader, executor);
    use_cache(cache);
    answer_questions(downloader);
    load(downloader);
    steer(downloader, executor);
    end_downloaders(downloader, &config);
    imgdl_executor_release(executor);
    imgdl_cache_release(cache);
    free(folder);
    return argument;
}

TEST("64 KiB of stack are enough for every call on every picture, the first ones too, and 4 KiB are left")
{
    static unsigned char stack[64 << 10] __attribute__((aligned(4096)));
    pthread_attr_t attributes;
    pthread_t thread;
    void *ended = NULL;
    make_pictures();
    memset(stack, 0xA5, sizeof stack);
    pthread_attr_init(&attributes);
    REQUIRE(pthread_attr_setstack(&attributes, stack, sizeof stack) == 0);
    REQUIRE(pthread_create(&thread, &attributes, use_everything, stack) == 0);
    REQUIRE(pthread_join(thread, &ended) == 0);
    CHECK(ended != NULL);
    size_t unused = 0;
    while (unused < sizeof stack && stack[unused] == 0xA5)
        unused++;
    printf("     %zu bytes of it were never used\n", unused);
    CHECK(unused >= LEAST_LEFT);
    for (unsigned i = 0; i < picture_count; i++)
        free(pictures[i].bytes);
}

#endif
