/* Downloaders come and go, and leave nothing behind. */
#define SUITE "lifecycle"
#include "support.h"

static long resident_kilobytes(void) { return (long)(resident_bytes() / 1024); }

static void cycle(unsigned number)
{
    static const char *const names[] = {"tiny.png", "tiny.jpg", "tiny.webp"};
    imgdl_downloader *downloader = new_downloader();
    struct recorder recorder;
    recorder_init(&recorder);
    imgdl_request request = recorded_request(NULL, &recorder);
    request.url = at_origin("/pictures/%s?n=%u", names[number % 3], number);
    imgdl_executor *executor = NULL;
    if (number % 4 == 1)
        executor = IMGDL_EXECUTOR_INLINE;
    if (number % 4 == 2)
        REQUIRE_OK(imgdl_executor_create_pumped(&executor));
    request.executor = executor;
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(downloader, &request, &token));
    if (number % 5 == 4)
        ignore_status(imgdl_token_cancel(token));
    if (!await_end(&recorder, number % 4 == 2 ? executor : NULL))
        harness_abandon();
    check_ending(&recorder);
    imgdl_token_release(token);
    imgdl_executor_release(executor);
    CHECK_CODE(imgdl_downloader_destroy(downloader), IMGDL_OK);
    imgdl_image_release(recorder.image);
    free(recorder.records);
    free((char *)(uintptr_t)request.url);
}

TEST_WITHIN(UNDER_SANITIZER ? 600 : 180, "a thousand times create, download, destroy: threads, descriptors and memory stay flat")
{
    const unsigned cycles = (unsigned)strtoul(harness_argument("cycles", "1000"), NULL, 10), warm = 100;
    for (unsigned i = 0; i < warm; i++)
        cycle(i);
    /* A sanitizer has threads of its own. */
    unsigned threads = UNDER_SANITIZER ? count_in_proc("task") : settle_in_proc("task", 1);
    unsigned descriptors = count_in_proc("fd");
    CHECK(threads == 1 || UNDER_SANITIZER);
    long before = resident_kilobytes();
    for (unsigned i = 0; i < cycles; i++)
        cycle(warm + i);
    CHECK_NUMBER(settle_in_proc("task", threads), threads);
    CHECK_NUMBER(count_in_proc("fd"), descriptors);
    CHECK(!HAS_LEAKS());
    long grown = resident_kilobytes() - before;
    printf("     resident memory: %ld KiB after %u cycles, %+ld KiB after %u more\n", before, warm, grown, cycles);
    /* A leak of one request's smallest part, a URL, in each cycle would be more than this. */
    if (!UNDER_SANITIZER && grown > 2048)
        FAIL("resident memory has grown by %ld KiB in %u cycles", grown, cycles);
}

TEST("a downloader that is only created and released leaves nothing, and starts no more than it says")
{
    if (UNDER_SANITIZER) /* whose own thread is started with the first one */
        ignore_status(imgdl_downloader_destroy(new_downloader()));
    unsigned threads = count_in_proc("task"), descriptors = count_in_proc("fd");
    imgdl_version();
    ignore_status(imgdl_token_cancel(NULL));
    CHECK_NUMBER(count_in_proc("task"), threads); /* no thread before the first downloader */
    CHECK_NUMBER(count_in_proc("fd"), descriptors);
    for (int i = 0; i < 20; i++)
        imgdl_downloader_release(new_downloader());
    CHECK_NUMBER(settle_in_proc("task", threads), threads);
    unsigned after = settle_in_proc("fd", descriptors + 2);
    for (int i = 0; i < 20; i++)
        imgdl_downloader_release(new_downloader());
    CHECK_NUMBER(settle_in_proc("task", threads), threads);
    CHECK(settle_in_proc("fd", after) <= after);
}

TEST_WITHIN(180, "a thousand images in flight at once are released with their last reference")
{
    size_t size;
    uint8_t *bytes = read_picture("baseline.jpg", &size);
    imgdl_image *images[20];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++)
            REQUIRE_OK(imgdl_decode(bytes, size, NULL, &images[i]));
        for (int i = 0; i < 20; i++)
            imgdl_image_release(images[i]);
    }
    long before = resident_kilobytes();
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 20; i++)
            REQUIRE_OK(imgdl_decode(bytes, size, NULL, &images[i]));
        for (int i = 0; i < 20; i++)
            imgdl_image_release(images[i]);
    }
    long grown = resident_kilobytes() - before;
    if (!UNDER_SANITIZER && grown > 4096)
        FAIL("resident memory has grown by %ld KiB", grown);
    free(bytes);
}
