/* Memory that goes back to the system when somebody asks for that. */
#define SUITE "trim"
#include "support.h"

#include "test_pictures.h"

/* Made and let go: 4096 × 3072 pixels. */
static void use_canvas(uint64_t *canvas)
{
    enum { WIDTH = 4096, HEIGHT = 3072 };
    uint32_t *pixels = calloc((size_t)WIDTH * HEIGHT, 4);
    imgdl_image *image = NULL;
    REQUIRE_OK(imgdl_image_create(WIDTH, HEIGHT, IMGDL_PIXEL_FORMAT_RGBA8, pixels, WIDTH * 4, &image));
    free(pixels);
    *canvas = (uint64_t)imgdl_image_stride(image) * HEIGHT;
    imgdl_image_release(image);
}

TEST("memory that nobody has goes back, and is counted, once")
{
    uint64_t canvas = 0;
    imgdl_trim(IMGDL_TRIM_UNUSED);
    use_canvas(&canvas);
    uint64_t before = resident_bytes();
    CHECK(imgdl_trim(0) == 0);
    uint64_t given = imgdl_trim(IMGDL_TRIM_UNUSED);
    if (given == 0) { /* of an address sanitizer's memory none is kept */
        CHECK(resident_bytes() + canvas / 2 < before + canvas);
    } else {
        CHECK(given >= canvas);
        CHECK(resident_bytes() + canvas / 2 < before);
    }
    CHECK(imgdl_trim(IMGDL_TRIM_UNUSED) == 0);
    use_canvas(&canvas);
    CHECK(imgdl_trim(UINT32_MAX) >= given);
}

static imgdl_cache_stats stats_of(imgdl_cache *cache)
{
    imgdl_cache_stats stats;
    imgdl_cache_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_cache_statistics(cache, &stats));
    return stats;
}

TEST("what caches have in memory goes with the last level, and their disks answer")
{
    char *folder = new_folder();
    imgdl_cache_config config;
    imgdl_cache_config_init(&config, sizeof config);
    config.directory = folder;
    config.max_memory_bytes = config.max_image_bytes = 8 << 20;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(imgdl_cache_open(&config, &cache));
    imgdl_downloader *downloader = new_caching_downloader(cache);
    const char *fresh = at_origin("/pictures/tiny.png?header=Cache-Control:max-age=1000");
    CHECK_CODE(ask(downloader, fresh, IMGDL_CACHE_USE, 0).code, IMGDL_OK);
    await_stored(cache, fresh, 1);
    REQUIRE_OK(imgdl_cache_flush(cache));
    imgdl_cache_stats before = stats_of(cache);
    CHECK(before.memory_bytes > 0);
    CHECK(before.image_bytes > 0);
    imgdl_trim(IMGDL_TRIM_CONNECTIONS);
    CHECK(stats_of(cache).memory_bytes == before.memory_bytes);
    imgdl_trim(IMGDL_TRIM_CACHES);
    imgdl_cache_stats after = stats_of(cache);
    CHECK(after.memory_bytes == 0 && after.image_bytes == 0 && after.memory_entries == 0 && after.image_entries == 0);
    CHECK(after.entries == before.entries);
    struct reply reply = ask(downloader, fresh, IMGDL_CACHE_ONLY, 0);
    CHECK_CODE(reply.code, IMGDL_OK);
    CHECK_NUMBER(reply.outcome, IMGDL_CACHE_OUTCOME_HIT);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
    free(folder);
}

enum { PICTURES = 8 };

static imgdl_token *token_of(imgdl_downloader *downloader, unsigned number)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = at_origin("/pictures/held.jpg?_=%u&header=Cache-Control:max-age=1000", number);
    request.flags = IMGDL_REQUEST_BODY | IMGDL_REQUEST_DECODE;
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(downloader, &request, &token));
    REQUIRE_OK(imgdl_token_wait(token, PATIENCE_MS));
    return token;
}

static imgdl_result result_of(imgdl_token *token)
{
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    REQUIRE_OK(imgdl_token_result(token, &result));
    REQUIRE_OK(result.code);
    return result;
}

TEST("what somebody holds leaves the caches, and counts as given back only when it is")
{
    size_t size = 0;
    struct picture_spec spec = {.kind = PICTURE_JPEG_BASELINE, .width = 1280, .height = 960, .seed = 4};
    uint8_t *bytes = picture_encode(&spec, &size);
    write_picture("held.jpg", bytes, size);
    picture_free(bytes);
    imgdl_cache_config config;
    imgdl_cache_config_init(&config, sizeof config);
    config.max_memory_bytes = 64 << 20;
    config.max_image_bytes = 256 << 20;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(imgdl_cache_open(&config, &cache));
    imgdl_downloader *downloader = new_caching_downloader(cache);
    uint64_t pixels = 0, bodies = 0, sum = 0;
    for (int are_held = 1; are_held >= 0; are_held--) {
        imgdl_token *tokens[PICTURES];
        for (unsigned i = 0; i < PICTURES; i++) {
            tokens[i] = token_of(downloader, i);
            imgdl_result result = result_of(tokens[i]);
            pixels = (uint64_t)imgdl_image_stride(result.image) * imgdl_image_height(result.image);
            bodies = imgdl_data_length(result.data);
            sum = sum_of(imgdl_image_pixels(result.image), pixels);
            if (!are_held)
                imgdl_token_release(tokens[i]);
        }
        REQUIRE(pixels > 2 << 20);
        REQUIRE_OK(imgdl_downloader_wait_idle(downloader, PATIENCE_MS));
        imgdl_trim(IMGDL_TRIM_CONNECTIONS);
        imgdl_cache_stats stats = stats_of(cache);
        CHECK(stats.image_bytes >= PICTURES * pixels);
        CHECK(stats.memory_bytes >= PICTURES * bodies);
        uint64_t before = resident_bytes(), given = imgdl_trim(IMGDL_TRIM_CACHES);
        stats = stats_of(cache);
        CHECK(stats.image_entries == 0 && stats.memory_entries == 0);
        if (are_held) {
            /* The last decoder may let go of what it worked with only now. */
            CHECK(given < bodies + pixels);
            for (unsigned i = 0; i < PICTURES; i++) {
                CHECK(sum_of(imgdl_image_pixels(result_of(tokens[i]).image), pixels) == sum);
                imgdl_token_release(tokens[i]);
            }
        } else {
            CHECK(given >= PICTURES * (pixels + bodies));
            /* A huge page has room for the end of a picture, and nothing is counted twice. */
            CHECK(given <= PICTURES * (pixels + (2 << 20) + 2 * bodies));
            CHECK(resident_bytes() + PICTURES * pixels * 9 / 10 < before);
        }
        imgdl_trim(IMGDL_TRIM_UNUSED);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
    imgdl_cache_release(cache);
}

static void trim_inside(struct recorder *recorder, const imgdl_event *event)
{
    (void)recorder, (void)event;
    imgdl_trim(IMGDL_TRIM_CACHES);
}

static uint64_t connections_after(imgdl_downloader *downloader, unsigned request)
{
    imgdl_stats stats;
    CHECK_CODE(ask(downloader, at_origin("/pictures/tiny.png?_=trim%u", request), IMGDL_CACHE_OFF, 0).code, IMGDL_OK);
    imgdl_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
    return stats.connections;
}

TEST("idle connections go with the second level and not with the first: the next request makes a new one")
{
    imgdl_downloader *downloader = new_downloader();
    CHECK_NUMBER(connections_after(downloader, 0), 1);
    unsigned descriptors = count_in_proc("fd");
    CHECK_NUMBER(connections_after(downloader, 1), 1);
    imgdl_trim(IMGDL_TRIM_UNUSED);
    CHECK_NUMBER(connections_after(downloader, 2), 1);
    imgdl_trim(IMGDL_TRIM_CONNECTIONS);
    CHECK_NUMBER(settle_in_proc("fd", descriptors - 1), descriptors - 1);
    CHECK_NUMBER(connections_after(downloader, 3), 2);
    CHECK_NUMBER(connections_after(downloader, 4), 2);
    imgdl_trim(IMGDL_TRIM_CACHES);
    CHECK_NUMBER(settle_in_proc("fd", descriptors - 1), descriptors - 1);
    CHECK_NUMBER(connections_after(downloader, 5), 3);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("memory is given back from any thread and inside callbacks, and what runs is not disturbed")
{
    imgdl_downloader *downloader = new_downloader();
    CHECK_CODE(ask(downloader, at_origin("/pictures/tiny.png?_=1"), IMGDL_CACHE_OFF, 0).code, IMGDL_OK);
    struct recorder recorder;
    recorder_init(&recorder);
    recorder.hook = trim_inside;
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg?hold_head=1&gate=trim"), &recorder);
    request.event_mask = IMGDL_EVENT_ALL;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_gate("trim", 1);
    for (int i = 0; i < 100; i++)
        imgdl_trim(IMGDL_TRIM_CACHES);
    CHECK_CODE(ask(downloader, at_origin("/pictures/tiny.png?_=2"), IMGDL_CACHE_OFF, 0).code, IMGDL_OK);
    open_gate("trim");
    await_end(&recorder, NULL);
    check_ending(&recorder);
    CHECK_CODE(recorder.code, IMGDL_OK);
    recorder_clear(&recorder);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}
