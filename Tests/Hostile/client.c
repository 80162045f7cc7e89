/* hostile-client NAME=VALUE…: one download of a hostile answer in a process of its own, beside a neighbour's pictures, and
 * what it did to the process, as JSON. Tests/Hostile/run starts it, and says what must have come out.
 *
 *   url, before, after, neighbour   what is downloaded: the answer; a harmless picture of its server first (may be
 *                                   missing); one after it; and those of another server, one after the other, meanwhile
 *   cache                           off, memory, or a folder
 *   lookups                         1: only ask the cache for url, as a process does that comes later
 *   beside                          1: how late total timeouts and cancellations are told meanwhile
 *   others                          options of the request, its decoding and the downloader: `numbers`, `texts`
 */
#include "questions.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATIENCE_MS = 8000, PAUSE_MS = 10, TIMEOUT_MS = 30, BETWEEN_MS = 10 };

static int argument_count;
static char **arguments;

static const char *argument(const char *name)
{
    size_t length = strlen(name);
    for (int i = 1; i < argument_count; i++)
        if (strncmp(arguments[i], name, length) == 0 && arguments[i][length] == '=')
            return arguments[i] + length + 1;
    return NULL;
}

static uint64_t number(const char *name)
{
    const char *text = argument(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static void require(imgdl_status status, const char *what)
{
    if (status == IMGDL_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, imgdl_error_name(status), imgdl_last_error());
    exit(2);
}

static double cpu_ms(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static int is_decoder(const char *thread)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    int is_named = fgets(name, sizeof name, file) && strncmp(name, "imgdl-decode", 12) == 0;
    fclose(file);
    return is_named;
}

/* CPU time of the threads that decode: each has a processor where there are enough, and holds up nobody else. */
static double decoders_ms(void)
{
    double sum = 0;
    DIR *threads = opendir("/proc/self/task");
    struct dirent *entry;
    while (threads && (entry = readdir(threads))) {
        if (entry->d_name[0] == '.' || !is_decoder(entry->d_name))
            continue;
        char path[64];
        snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", entry->d_name);
        FILE *file = fopen(path, "r");
        double nanoseconds = 0;
        if (file && fscanf(file, "%lf", &nanoseconds) == 1)
            sum += nanoseconds / 1e6;
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
    return sum;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* A line of /proc/self/status, in KiB. */
static long memory_kb(const char *name)
{
    char line[256];
    long found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            found = strtol(line + strlen(name) + 1, NULL, 10);
    if (file)
        fclose(file);
    return found;
}

/* The most that was resident is counted from now on. */
static void forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5", file);
        fclose(file);
    }
}

static void print_text(const char *name, const char *text)
{
    printf("\"%s\": \"", name);
    for (const unsigned char *byte = (const unsigned char *)text; *byte; byte++)
        printf("%02x", *byte);
    printf("\", ");
}

static imgdl_decode_options decoding(void)
{
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.flags = (imgdl_decode_flags)number("decode_flags");
    options.colour = (imgdl_colour)number("colour");
    options.pixel_format = (imgdl_pixel_format)number("pixel_format");
    options.target_width = (uint32_t)number("target_width");
    options.target_height = (uint32_t)number("target_height");
    options.max_decode_ms = (uint32_t)number("max_decode_ms");
    if (argument("max_pixels"))
        options.max_pixels = number("max_pixels");
    if (argument("max_memory_bytes"))
        options.max_memory_bytes = number("max_memory_bytes");
    if (argument("max_animation_pixels"))
        options.max_animation_pixels = number("max_animation_pixels");
    if (argument("max_scans"))
        options.max_scans = (uint32_t)number("max_scans");
    if (argument("max_metadata_bytes"))
        options.max_metadata_bytes = number("max_metadata_bytes");
    return options;
}

static imgdl_request request_of(const char *url, const imgdl_decode_options *options)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.retry_count = IMGDL_RETRY_NONE;
    request.decode = options;
    request.flags = (imgdl_request_flags)number("flags") & IMGDL_REQUEST_COOKIES;
    return request;
}

/* The answer's, with all that the row asks for. */
static imgdl_request hostile_request(const char *url, const imgdl_decode_options *options, imgdl_header *header)
{
    imgdl_request request = request_of(url, options);
    request.flags = (imgdl_request_flags)number("flags");
    request.method = argument("method");
    request.idle_timeout_ms = (uint32_t)number("idle_timeout_ms");
    request.connect_timeout_ms = (uint32_t)number("connect_timeout_ms");
    request.total_timeout_ms = (uint32_t)number("total_timeout_ms");
    request.max_body_bytes = number("max_body_bytes");
    request.user = argument("user");
    request.password = argument("password");
    header->name = argument("field");
    header->value = argument("value");
    if (header->name) {
        request.headers = header;
        request.header_count = 1;
    }
    return request;
}

/* Downloads it, gives how it ended, how wide its picture is and its body, where they are asked for. */
static imgdl_status fetch_all(imgdl_downloader *downloader, const imgdl_request *request, uint32_t *width, imgdl_data **body)
{
    imgdl_token *token = NULL;
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    imgdl_status status = imgdl_download(downloader, request, &token);
    if (status != IMGDL_OK)
        return status;
    status = imgdl_token_wait(token, PATIENCE_MS);
    if (status == IMGDL_OK)
        status = imgdl_token_result(token, &result);
    if (status == IMGDL_OK) {
        status = result.code;
        if (width)
            *width = result.image ? imgdl_image_width(result.image) : 0;
        if (body)
            *body = imgdl_data_retain(result.data);
    }
    imgdl_token_release(token);
    return status;
}

static imgdl_status fetch(imgdl_downloader *downloader, const imgdl_request *request, uint32_t *width)
{
    return fetch_all(downloader, request, width, NULL);
}

static imgdl_status fetch_body(imgdl_downloader *downloader, const imgdl_request *request, imgdl_data **body)
{
    return fetch_all(downloader, request, NULL, body);
}

/* What broke off may be continued: then it must be the picture that `after` is. */
static void ask_again(imgdl_downloader *downloader, const imgdl_request *request)
{
    imgdl_request whole = request_of(argument("after"), NULL);
    imgdl_data *expected = NULL, *found = NULL;
    whole.flags = IMGDL_REQUEST_BODY;
    whole.cache_mode = IMGDL_CACHE_OFF;
    fetch_body(downloader, &whole, &expected);
    imgdl_status status = fetch_body(downloader, request, &found);
    int is_whole = imgdl_data_length(found) == imgdl_data_length(expected) && imgdl_data_length(found) > 0 &&
                   memcmp(imgdl_data_bytes(found), imgdl_data_bytes(expected), imgdl_data_length(found)) == 0;
    printf("\"again\": \"%s\", \"again_is_whole\": %s, ", imgdl_error_name(status), is_whole ? "true" : "false");
    imgdl_data_release(expected);
    imgdl_data_release(found);
}

static void look_up(imgdl_downloader *downloader, const char *url)
{
    static const struct { const char *name, *range; } questions[] = {
        {"stored", NULL}, {"stored_last", "bytes=-5"}, {"stored_first", "bytes=0-3"},
        {"stored_far", "bytes=5-9223372036854775807"}};
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        imgdl_decode_options options = decoding();
        imgdl_header unused, range = {"Range", questions[i].range};
        imgdl_request request = hostile_request(url, &options, &unused);
        uint32_t width = 0;
        request.cache_mode = IMGDL_CACHE_ONLY;
        if (range.value) {
            request.headers = &range;
            request.header_count = 1;
            request.flags |= IMGDL_REQUEST_BODY;
            request.flags &= ~(imgdl_request_flags)IMGDL_REQUEST_DECODE;
        }
        printf("\"%s\": \"%s\", ", questions[i].name, imgdl_error_name(fetch(downloader, &request, &width)));
    }
}

/* Others that nobody answers, beside the hostile answer. */
static struct {
    imgdl_downloader *downloader;
    char silence[64];
    clockid_t engine;
    atomic_int is_over;
    double timeouts, cancellations;
} beside;

static void keep_latest(double *latest, double late) { *latest = late > *latest ? late : *latest; }

static void *look_beside(void *unused)
{
    unsigned count = 0;
    do {
        struct question question;
        char url[96];
        snprintf(url, sizeof url, "%stimeout-%u", beside.silence, count);
        double until = in_ms(CLOCK_MONOTONIC) + TIMEOUT_MS;
        ask(beside.downloader, &question, url, TIMEOUT_MS);
        sleep_until(until);
        keep_latest(&beside.timeouts, lateness(&question, in_ms(beside.engine), IMGDL_ERROR_TOTAL_TIMEOUT, "a total timeout"));
        snprintf(url, sizeof url, "%scancelled-%u", beside.silence, count++);
        ask(beside.downloader, &question, url, 0);
        sleep_until(in_ms(CLOCK_MONOTONIC) + BETWEEN_MS);
        double due = in_ms(beside.engine);
        ensure(imgdl_token_cancel(question.token) == IMGDL_OK, "a cancellation");
        keep_latest(&beside.cancellations, lateness(&question, due, IMGDL_ERROR_CANCELLED, "a cancellation"));
    } while (!atomic_load(&beside.is_over));
    return unused;
}

static void begin_looking_beside(imgdl_downloader *downloader, const char *neighbour)
{
    struct question first;
    ask(downloader, &first, neighbour, 0);
    lateness(&first, 0, IMGDL_OK, "the neighbour alone");
    beside.engine = first.engine;
    beside.downloader = downloader;
    make_silence(beside.silence, sizeof beside.silence);
}

static void run(imgdl_downloader *downloader, const char *url)
{
    const char *before = argument("before"), *neighbour_url = argument("neighbour");
    imgdl_request neighbour = request_of(neighbour_url, NULL);
    neighbour.flags = 0;
    neighbour.cache_mode = IMGDL_CACHE_OFF;
    uint32_t width = 0;
    /* Whatever is used for the first time is used here, and not on the answer's account. */
    require(fetch(downloader, &neighbour, &width), "the neighbour alone");
    if (number("beside"))
        begin_looking_beside(downloader, neighbour_url);
    if (before) {
        imgdl_request request = request_of(before, NULL);
        request.cache_mode = IMGDL_CACHE_OFF;
        require(fetch(downloader, &request, &width), "the picture before");
    }

    imgdl_decode_options options = decoding();
    imgdl_header header;
    imgdl_request request = hostile_request(url, &options, &header);
    forget_peak();
    long resident = memory_kb("VmRSS");
    double cpu = cpu_ms(), began = now_ms();
    imgdl_token *token = NULL;
    require(imgdl_download(downloader, &request, &token), "the download");
    pthread_t looker;
    if (beside.downloader)
        ensure(pthread_create(&looker, NULL, look_beside, NULL) == 0, "a thread");
    double slowest = 0, most_held = 0;
    unsigned neighbours = 0;
    imgdl_status waited, unharmed = IMGDL_OK;
    do {
        double start = now_ms(), spent = cpu_ms() - decoders_ms();
        imgdl_status status = fetch(downloader, &neighbour, &width);
        double took = now_ms() - start, held = cpu_ms() - decoders_ms() - spent;
        held = held < took ? held : took;
        most_held = held > most_held ? held : most_held;
        unharmed = unharmed == IMGDL_OK ? status : unharmed;
        slowest = took > slowest ? took : slowest;
        neighbours++;
        waited = imgdl_token_wait(token, PAUSE_MS);
    } while (waited == IMGDL_ERROR_WAIT_TIMEOUT && now_ms() - began < 30000);

    if (beside.downloader) {
        atomic_store(&beside.is_over, 1);
        pthread_join(looker, NULL);
        printf("\"timeouts_late\": %.1f, \"cancellations_late\": %.1f, ", beside.timeouts, beside.cancellations);
    }
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    if (imgdl_token_result(token, &result) != IMGDL_OK) {
        printf("\"code\": \"none\", \"took_ms\": %.0f, ", now_ms() - began);
    } else {
        printf("\"code\": \"%s\", \"status\": %d, \"width\": %u, \"height\": %u, \"notes\": %u, \"frames\": %u, \"length\": %zu, ",
               imgdl_error_name(result.code), result.http_status, result.image ? imgdl_image_width(result.image) : 0,
               result.image ? imgdl_image_height(result.image) : 0,
               result.image ? imgdl_image_colour_notes(result.image) : 0,
               result.image ? imgdl_image_frame_count(result.image) : 0, result.data ? imgdl_data_length(result.data) : 0);
        printf("\"took_ms\": %.1f, ", result.metrics ? result.metrics->total_ns / 1e6 : 0);
        print_text("message", result.message ? result.message : "");
        print_text("general", imgdl_error_message(result.code));
    }
    printf("\"neighbour\": \"%s\", \"neighbour_ms\": %.1f, \"held_ms\": %.1f, \"neighbours\": %u, ",
           imgdl_error_name(unharmed), slowest, most_held, neighbours);
    if (number("again"))
        ask_again(downloader, &request);
    imgdl_request after = request_of(argument("after"), NULL);
    after.cache_mode = IMGDL_CACHE_OFF;
    width = 0;
    imgdl_status end = fetch(downloader, &after, &width);
    printf("\"after\": \"%s\", \"after_width\": %u, ", imgdl_error_name(end), width);
    printf("\"cpu_ms\": %.1f, \"memory_kb\": %ld, ", cpu_ms() - cpu, memory_kb("VmHWM") - resident);
    imgdl_token_release(token);
}

/* What goes wrong is not to take the machine with it. */
static void limit(void)
{
    const struct rlimit memory = {(rlim_t)2 << 30, (rlim_t)2 << 30}, seconds = {30, 30}, none = {0, 0};
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CPU, &seconds);
    setrlimit(RLIMIT_CORE, &none);
}

int main(int count, char **values)
{
    argument_count = count;
    arguments = values;
    limit();
    imgdl_config config;
    imgdl_cache *cache = NULL;
    imgdl_downloader *downloader = NULL;
    const char *folder = argument("cache"), *url = argument("url");

    imgdl_config_init(&config, sizeof config);
    config.ca_file = argument("ca_file");
    config.proxy = argument("proxy") ? argument("proxy") : "";
    config.max_redirects = (uint32_t)number("max_redirects");
    config.flags = (imgdl_config_flags)number("config_flags");
    if (folder && strcmp(folder, "off") != 0) {
        imgdl_cache_config options;
        imgdl_cache_config_init(&options, sizeof options);
        options.directory = strcmp(folder, "memory") == 0 ? NULL : folder;
        require(imgdl_cache_open(&options, &cache), "the cache");
        config.cache = cache;
        config.cache_mode = IMGDL_CACHE_USE;
    }
    require(imgdl_downloader_create(&config, &downloader), "the downloader");
    printf("{");
    if (!number("lookups"))
        run(downloader, url);
    if (cache)
        look_up(downloader, url);
    double close = now_ms();
    imgdl_cache_release(cache);
    if (imgdl_downloader_destroy(downloader) != IMGDL_OK)
        return 1;
    printf("\"close_ms\": %.1f}\n", now_ms() - close);
    return 0;
}
