/* Servers that fill memory_budget and then send a byte now and then: they hold up others for an idle timeout at most
 * (issue 19). */
#define SUITE "drips"
#include "support.h"

#include <stdatomic.h>

enum { BUDGET = 1 << 20, IDLE_MS = 2000, DRIP_MS = 100 };

struct drip {
    imgdl_transfer *transfer;
    struct flag started;
    atomic_bool is_over;
    pthread_t thread;
    struct recorder recorder;
};

static const uint8_t filling[2 * BUDGET];

static void *send_drips(void *given)
{
    struct drip *drip = given;
    CHECK_CODE(imgdl_transfer_body(drip->transfer, filling, sizeof filling), IMGDL_OK);
    raise_flag(&drip->started);
    while (!atomic_load(&drip->is_over)) {
        usleep(DRIP_MS * 1000);
        /* From the end on nothing is taken. */
        (void)!imgdl_transfer_body(drip->transfer, "x", 1);
    }
    imgdl_transfer_release(drip->transfer);
    return NULL;
}

static void *start_dripping(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request;
    struct drip *drip = user_data;
    CHECK_CODE(imgdl_transfer_response(transfer, 200, NULL, 0), IMGDL_OK);
    drip->transfer = transfer;
    CHECK(pthread_create(&drip->thread, NULL, send_drips, drip) == 0);
    return transfer;
}

static void stop_dripping(void *started, void *user_data)
{
    (void)started;
    struct drip *drip = user_data;
    atomic_store(&drip->is_over, 1);
}

static void begin(imgdl_downloader *downloader, const char *scheme, struct drip *drip)
{
    *drip = (struct drip){.started = FLAG_INIT};
    imgdl_transport_table table = {
        .struct_size = sizeof table, .start = start_dripping, .cancel = stop_dripping, .user_data = drip};
    REQUIRE_OK(imgdl_transport_register(downloader, scheme, &table));
    recorder_init(&drip->recorder);
    char url[32];
    snprintf(url, sizeof url, "%s://body", scheme);
    imgdl_request request = recorded_request(url, &drip->recorder);
    request.flags = IMGDL_REQUEST_BODY;
    REQUIRE_OK(imgdl_download(downloader, &request, NULL));
    await_flag(&drip->started, 1);
}

TEST("two servers that fill memory_budget and then send a byte now and then hold up the others for an idle timeout, no longer")
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.memory_budget = BUDGET;
    config.idle_timeout_ms = IDLE_MS;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    static struct drip first, second;
    begin(downloader, "first", &first);

    /* Others come meanwhile, once it is seen to be slow: what it holds counts for itself. */
    struct recorder other;
    recorder_init(&other);
    imgdl_request request = recorded_request(at_origin("/pictures/tiny.jpg"), &other);
    CHECK_CODE(download_and_wait(downloader, &request, &other), IMGDL_OK);
    recorder_clear(&other);

    /* So much cannot be slow. Whoever waits for it has a picture all the same. */
    double began = seconds_now();
    begin(downloader, "second", &second);
    recorder_init(&other);
    request = recorded_request(at_origin("/pictures/tiny.jpg?n=1"), &other);
    CHECK_CODE(download_and_wait(downloader, &request, &other), IMGDL_OK);
    CHECK(seconds_now() - began < 3 * IDLE_MS / 1000.0);
    recorder_clear(&other);
    await_end(&second.recorder, NULL);
    check_ending(&second.recorder);
    CHECK_CODE(second.recorder.code, IMGDL_ERROR_IDLE_TIMEOUT);
    CHECK(strstr(second.recorder.message, "less than 16384 bytes a second on average, while others waited for memory, for 2000 ms") != NULL);
    recorder_clear(&second.recorder);

    CHECK(first.recorder.terminals == 0);
    CHECK_CODE(imgdl_transfer_end(first.transfer, IMGDL_OK, NULL), IMGDL_OK);
    atomic_store(&first.is_over, 1);
    await_end(&first.recorder, NULL);
    CHECK_CODE(first.recorder.code, IMGDL_OK);
    recorder_clear(&first.recorder);
    pthread_join(first.thread, NULL);
    pthread_join(second.thread, NULL);
    REQUIRE_OK(imgdl_downloader_destroy(downloader));
}
