/* Loaders and servers that begin and then say nothing: they hold up themselves alone (issue 21, 3). */
#define SUITE "pace"
#include "support.h"

#define BUDGET (8u << 20)
#define STILL 6

static uint8_t bytes[3 << 20];

/* Nobody's idle timeout ends within the test. */
static imgdl_downloader *new_patient_downloader(void)
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.memory_budget = BUDGET;
    config.max_concurrent = 20;
    config.idle_timeout_ms = 3600 * 1000;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    return downloader;
}

static void begin(imgdl_downloader *downloader, const char *url, struct recorder *recorder)
{
    recorder_init(recorder);
    imgdl_request request = recorded_request(url, recorder);
    request.flags = IMGDL_REQUEST_BODY;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
}

/* A picture of somebody else comes, and the next as well. */
static void check_others(imgdl_downloader *downloader, const char *begin_of_url)
{
    for (int i = 0; i < 2; i++) {
        char url[256];
        snprintf(url, sizeof url, "%s%d", begin_of_url, i);
        struct recorder recorder;
        recorder_init(&recorder);
        imgdl_request request = recorded_request(url, &recorder);
        CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
        recorder_clear(&recorder);
    }
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
    CHECK(stats.memory <= 3 * BUDGET);
}

struct resting {
    imgdl_transfer *transfers[STILL];
    unsigned count;
    struct flag started;
};

static void *begin_to_rest(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request;
    struct resting *resting = user_data;
    CHECK_CODE(imgdl_transfer_response(transfer, 200, NULL, 0), IMGDL_OK);
    CHECK_CODE(imgdl_transfer_body(transfer, bytes, sizeof bytes), IMGDL_OK);
    resting->transfers[resting->count++] = transfer;
    raise_flag(&resting->started);
    return transfer;
}

static void give_up(void *started, void *user_data)
{
    (void)user_data;
    imgdl_transfer_release(started);
}

TEST("loaders that push bytes and then rest fill memory_budget, and the pictures of others come all the same (B20)")
{
    imgdl_downloader *downloader = new_patient_downloader();
    struct resting resting = {.started = FLAG_INIT};
    imgdl_transport_table table = {
        .struct_size = sizeof table, .start = begin_to_rest, .cancel = give_up, .user_data = &resting};
    REQUIRE_OK(imgdl_transport_register(downloader, "app", &table));
    struct recorder still[STILL];
    for (int i = 0; i < STILL; i++) {
        char url[32];
        snprintf(url, sizeof url, "app://%d", i);
        begin(downloader, url, &still[i]);
    }
    await_flag(&resting.started, 3);
    check_others(downloader, at_origin("/pictures/tiny.jpg?n="));
    for (unsigned i = 0; i < STILL; i++) {
        await_flag(&resting.started, i + 1); /* some may have waited for their own */
        CHECK_CODE(imgdl_transfer_end(resting.transfers[i], IMGDL_OK, NULL), IMGDL_OK);
        imgdl_transfer_release(resting.transfers[i]);
    }
    for (int i = 0; i < STILL; i++) {
        await_end(&still[i], NULL);
        check_ending(&still[i]);
        CHECK_CODE(still[i].code, IMGDL_OK);
        recorder_clear(&still[i]);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

TEST("a server that stands still in bodies that fill memory_budget holds up no other server's (B20)")
{
    write_picture("still.bin", bytes, sizeof bytes);
    imgdl_downloader *downloader = new_patient_downloader();
    struct recorder still[STILL];
    for (int i = 0; i < STILL; i++)
        begin(downloader, at_origin("/pictures/still.bin?hold_after=%zu&gate=pace&n=%d", sizeof bytes - 1000, i), &still[i]);
    await_gate("pace", 1);
    const char *own = at_origin("/pictures/tiny.jpg?n="); /* http://127.0.0.1:… */
    char other[256];
    snprintf(other, sizeof other, "http://localhost%s", strrchr(own, ':'));
    check_others(downloader, other);
    open_gate("pace");
    for (int i = 0; i < STILL; i++) {
        await_end(&still[i], NULL);
        check_ending(&still[i]);
        CHECK_CODE(still[i].code, IMGDL_OK);
        recorder_clear(&still[i]);
    }
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}

#define FRAMES 20
#define SIDE 1000

/* A GIF of SIDE pixels a side: each frame draws one pixel, and all of them lie in memory whole. */
static size_t write_frames(uint8_t *to)
{
    static const uint8_t head[] = {'G', 'I', 'F', '8', '9', 'a', SIDE & 255, SIDE >> 8, SIDE & 255, SIDE >> 8, 0x80, 0, 0,
                                   0, 0, 0, 255, 255, 255};
    static const uint8_t frame[] = {0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 0x01, 0};
    size_t size = sizeof head;
    memcpy(to, head, sizeof head);
    for (int i = 0; i < FRAMES; i++, size += sizeof frame)
        memcpy(to + size, frame, sizeof frame);
    to[size] = 0x3B;
    return size + 1;
}

TEST("all frames of an animation count for memory_budget, though its first bytes name one canvas (B20)")
{
    write_picture("frames.gif", bytes, write_frames(bytes));
    imgdl_downloader *downloader = new_patient_downloader();
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(at_origin("/pictures/frames.gif"), &recorder);
    imgdl_decode_options decode;
    imgdl_decode_options_init(&decode, sizeof decode);
    decode.flags = IMGDL_DECODE_ALL_FRAMES;
    request.decode = &decode;
    CHECK_CODE(download_and_wait(downloader, &request, &recorder), IMGDL_OK);
    recorder_clear(&recorder);
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
    CHECK(stats.memory_peak >= (uint64_t)FRAMES * SIDE * SIDE * 4);
    /* What was counted is given back. */
    for (int i = 0; i < 500 && stats.memory > 0; i++) {
        usleep(10000);
        REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
    }
    CHECK(stats.memory == 0);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}
