#include "support.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "test_pictures.h"

extern char **environ;

const char *tls_ca_file, *http2_ca_file;
const char *program_folder;
static char folder[4096];
static char root[4200];
static char scratch[4200];
static char origin_base[256], tls_base[256], http2_base[256];
static pid_t children[2];
static int child_inputs[2];

static void give_up(const char *what)
{
    fprintf(stderr, "imgdl-tests: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- The files */

/* In one go: another run of the tests may serve it. */
void write_picture(const char *name, const void *bytes, size_t size)
{
    char whole[4600], path[4400];
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(whole, sizeof whole, "%s.%d", path, (int)getpid());
    FILE *file = fopen(whole, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0 || rename(whole, path) != 0)
        give_up(path);
}

static void draw(const char *name, struct picture_spec spec)
{
    size_t size;
    uint8_t *bytes = picture_encode(&spec, &size);
    if (!bytes)
        give_up(name);
    write_picture(name, bytes, size);
    picture_free(bytes);
}

static void write_pictures(void)
{
    mkdir(root, 0777);
    draw("baseline.jpg", (struct picture_spec){.kind = PICTURE_JPEG_BASELINE, .width = 640, .height = 427, .seed = 1});
    draw("progressive.jpg",
         (struct picture_spec){.kind = PICTURE_JPEG_PROGRESSIVE, .width = 640, .height = 427, .seed = 2});
    draw("truecolour.png", (struct picture_spec){.kind = PICTURE_PNG_RGB, .width = 320, .height = 213, .seed = 3});
    draw("adam7.png", (struct picture_spec){.kind = PICTURE_PNG_ADAM7_RGBA, .width = 320, .height = 213, .seed = 4});
    draw("lossy.webp", (struct picture_spec){.kind = PICTURE_WEBP_LOSSY, .width = 640, .height = 427, .seed = 5});
    draw("lossless.webp",
         (struct picture_spec){.kind = PICTURE_WEBP_LOSSLESS_ALPHA, .width = 200, .height = 133, .seed = 6});
    draw("turned.jpg",
         (struct picture_spec){.kind = PICTURE_JPEG_BASELINE, .width = 300, .height = 200, .seed = 7, .orientation = 6});
    /* Small ones, for the tests that make thousands of downloads. */
    draw("tiny.jpg", (struct picture_spec){.kind = PICTURE_JPEG_BASELINE, .width = 48, .height = 32, .seed = 8});
    draw("tiny.png", (struct picture_spec){.kind = PICTURE_PNG_RGBA, .width = 24, .height = 16, .seed = 9});
    draw("tiny.webp", (struct picture_spec){.kind = PICTURE_WEBP_LOSSY, .width = 48, .height = 32, .seed = 10});
    static const char page[] = "<!DOCTYPE html><html><body>Please sign in.</body></html>\n";
    write_picture("page.html", page, sizeof page - 1);
    uint8_t noise[5000];
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
    write_picture("noise.jpg", noise, sizeof noise);
}

uint8_t *read_picture(const char *name, size_t *size)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file || fstat(fileno(file), &status) != 0)
        give_up(path);
    uint8_t *bytes = malloc((size_t)status.st_size);
    *size = fread(bytes, 1, (size_t)status.st_size, file);
    fclose(file);
    return bytes;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

char *new_folder(void)
{
    char *path = NULL;
    if (asprintf(&path, "%s/XXXXXX", scratch) < 0 || !mkdtemp(path))
        give_up(scratch);
    return path;
}

/* ---- The origins */

/* The next line of a program has to begin with `words`; gives the rest of it. */
static void read_words(FILE *lines, const char *program, const char *words, char value[256])
{
    char line[256] = "";
    if (!lines || !fgets(line, sizeof line, lines) || strncmp(line, words, strlen(words)) != 0)
        give_up(program);
    line[strcspn(line, "\n")] = '\0';
    memmove(value, line + strlen(words), strlen(line + strlen(words)) + 1);
}

/* Starts a program that says in its first line, after `words`, where it listens. It ends when its input does. Gives the lines
 * that follow. */
static FILE *start(unsigned number, char **arguments, const char *words, char base[256])
{
    int input[2], listening[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(listening, O_CLOEXEC) != 0)
        give_up("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, listening[1], STDOUT_FILENO);
    errno = posix_spawn(&children[number], arguments[0], &actions, NULL, arguments, environ);
    if (errno != 0)
        give_up(arguments[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(listening[1]);
    child_inputs[number] = input[1];
    FILE *lines = fdopen(listening[0], "r");
    read_words(lines, arguments[0], words, base);
    return lines;
}

static void find_folders(void)
{
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length < 0)
        give_up("/proc/self/exe");
    folder[length] = '\0';
    *strrchr(folder, '/') = '\0';
    program_folder = folder;
    snprintf(root, sizeof root, "%s/pictures", folder);
}

void support_hand_over(void)
{
    setenv("IMGDL_TESTS_ORIGIN", origin_base, 1);
    setenv("IMGDL_TESTS_TLS", tls_base, 1);
    setenv("IMGDL_TESTS_HTTP2", http2_base, 1);
    setenv("IMGDL_TESTS_HTTP2_CA_FILE", http2_ca_file, 1);
    setenv("IMGDL_TESTS_CA_FILE", tls_ca_file, 1);
    setenv("IMGDL_TESTS_SCRATCH", scratch, 1);
}

void support_take_over(void)
{
    find_folders();
    snprintf(origin_base, sizeof origin_base, "%s", getenv("IMGDL_TESTS_ORIGIN"));
    snprintf(tls_base, sizeof tls_base, "%s", getenv("IMGDL_TESTS_TLS"));
    snprintf(http2_base, sizeof http2_base, "%s", getenv("IMGDL_TESTS_HTTP2"));
    http2_ca_file = getenv("IMGDL_TESTS_HTTP2_CA_FILE");
    snprintf(scratch, sizeof scratch, "%s", getenv("IMGDL_TESTS_SCRATCH"));
    tls_ca_file = getenv("IMGDL_TESTS_CA_FILE");
}

void support_start(void)
{
    find_folders();
    write_pictures();
    snprintf(scratch, sizeof scratch, "%s/scratch-%d", folder, (int)getpid());
    mkdir(scratch, 0777);

    static char origin[4400], peer[4400], ca_file[4400];
    snprintf(origin, sizeof origin, "%s/../bin/imgdl-origin", folder);
    snprintf(peer, sizeof peer, "%s/tls-peer", folder);
    snprintf(ca_file, sizeof ca_file, "%s/tls-peer-%d.pem", folder, (int)getpid());
    tls_ca_file = ca_file;
    static char authority[256];
    FILE *lines = start(0, (char *[]){origin, "--until-eof", "--http2", "--root", root, NULL}, "listening on ", origin_base);
    read_words(lines, origin, "http2=", http2_base);
    read_words(lines, origin, "http2_ca_file=", authority);
    http2_ca_file = authority;
    fclose(lines);
    fclose(start(1, (char *[]){peer, ca_file, NULL}, "listening on ", tls_base));
}

void support_stop(void)
{
    for (unsigned i = 0; i < 2; i++) {
        close(child_inputs[i]);
        waitpid(children[i], NULL, 0);
    }
    unlink(tls_ca_file);
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *join(const char *base, const char *format, va_list values)
{
    char path[2048], *url = NULL;
    vsnprintf(path, sizeof path, format, values);
    if (asprintf(&url, "%s%s", base, path) < 0)
        give_up("asprintf");
    return url;
}

const char *at_origin(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const char *url = join(origin_base, format, values);
    va_end(values);
    return url;
}

const char *at_tls_origin(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const char *url = join(tls_base, format, values);
    va_end(values);
    return url;
}

const char *at_http2_origin(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const char *url = join(http2_base, format, values);
    va_end(values);
    return url;
}

char *ask_origin(const char *format, ...)
{
    char path[1024], request[1200];
    va_list values;
    va_start(values, format);
    vsnprintf(path, sizeof path, format, values);
    va_end(values);
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n", path);

    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)strtol(strrchr(origin_base, ':') + 1, NULL, 10));
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address) != 0 ||
        send(connection, request, (size_t)length, MSG_NOSIGNAL) != length)
        give_up("asking the origin");
    char *answer = NULL;
    size_t size = 0;
    ssize_t count;
    do {
        answer = realloc(answer, size + 65536 + 1);
        count = recv(connection, answer + size, 65536, 0);
        size += count > 0 ? (size_t)count : 0;
    } while (count > 0);
    close(connection);
    answer[size] = '\0';
    char *body = strstr(answer, "\r\n\r\n");
    body = strdup(body ? body + 4 : "");
    free(answer);
    return body;
}

unsigned times_served(const char *url)
{
    char key[2200];
    snprintf(key, sizeof key, "\"target\":\"%s\"", url + strlen(origin_base));
    char *log = ask_origin("/_log");
    unsigned count = 0;
    for (const char *at = log; (at = strstr(at, key)); at += strlen(key))
        count++;
    free(log);
    return count;
}

void open_gate(const char *name)
{
    free(ask_origin("/_gate/%s/open", name));
}

void close_gate(const char *name)
{
    free(ask_origin("/_gate/%s/close", name));
}

void await_gate(const char *name, unsigned count)
{
    char *answer = ask_origin("/_gate/%s/reached?count=%u&deadline_ms=%d", name, count, PATIENCE_MS);
    if (strcmp(answer, "reached\n") != 0) {
        FAIL("gate %s: %u answers did not come to it", name, count);
        harness_abandon();
    }
    free(answer);
}

/* ---- Recording */

void recorder_init(struct recorder *recorder)
{
    *recorder = (struct recorder){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    recorder->records = calloc(MAX_RECORDS, sizeof *recorder->records);
}

void recorder_clear(struct recorder *recorder)
{
    imgdl_image_release(recorder->image);
    imgdl_data_release(recorder->data);
    free(recorder->records);
    recorder_init(recorder);
}

void on_recorded_event(const imgdl_event *event, void *user_data)
{
    struct recorder *recorder = user_data;
    pthread_mutex_lock(&recorder->lock);
    if (recorder->inside++)
        recorder->overlaps++;
    if (recorder->terminals || recorder->destroyed)
        recorder->late++;
    struct record record = {
        .kind = event->kind, .received = event->received, .expected = event->expected, .code = event->code,
        .http_status = event->http_status, .has_response = event->response != NULL, .token = event->token, .thread = (pid_t)syscall(SYS_gettid),
    };
    if (event->kind == IMGDL_EVENT_HEADER) {
        record.width = event->info->width;
        record.height = event->info->height;
    }
    if (event->kind == IMGDL_EVENT_PARTIAL) {
        record.width = imgdl_image_width(event->image);
        record.height = imgdl_image_height(event->image);
        record.pass = imgdl_image_pass(event->image);
        record.is_complete = imgdl_image_is_complete(event->image);
        recorder->partials++;
    }
    if (event->kind == IMGDL_EVENT_TERMINAL) {
        recorder->code = event->code;
        recorder->http_status = event->http_status;
        snprintf(recorder->message, sizeof recorder->message, "%s", event->message ? event->message : "(null)");
        recorder->image = imgdl_image_retain(event->image);
        recorder->data = imgdl_data_retain(event->data);
    }
    if (recorder->count < MAX_RECORDS)
        recorder->records[recorder->count] = record;
    recorder->count++;
    pthread_mutex_unlock(&recorder->lock);

    if (recorder->hook)
        recorder->hook(recorder, event);

    pthread_mutex_lock(&recorder->lock);
    if (event->kind == IMGDL_EVENT_TERMINAL)
        recorder->terminals++;
    recorder->inside--;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->lock);
}

void on_recorder_destroyed(void *user_data)
{
    struct recorder *recorder = user_data;
    pthread_mutex_lock(&recorder->lock);
    recorder->destroyed++;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->lock);
}

static unsigned seen(const struct recorder *recorder, uint32_t kind)
{
    if (kind == 0)
        return recorder->destroyed;
    for (unsigned i = 0; i < recorder->count && i < MAX_RECORDS; i++)
        if (recorder->records[i].kind == kind)
            return 1;
    return 0;
}

/* kind 0: the destructor. */
static int await(struct recorder *recorder, uint32_t kind, imgdl_executor *pumped)
{
    struct timespec deadline = deadline_in(CLOCK_REALTIME, PATIENCE_MS);
    double end = seconds_now() + PATIENCE_MS / 1000.0;
    int came = 0;
    pthread_mutex_lock(&recorder->lock);
    while (!(came = seen(recorder, kind) > 0)) {
        if (pumped) {
            pthread_mutex_unlock(&recorder->lock);
            struct pollfd waiting = {.fd = imgdl_executor_fd(pumped), .events = POLLIN};
            if (waiting.fd < 0 || seconds_now() > end || poll(&waiting, 1, PATIENCE_MS) <= 0) {
                pthread_mutex_lock(&recorder->lock);
                break;
            }
            ignore_status(imgdl_executor_dispatch(pumped, 0, NULL));
            pthread_mutex_lock(&recorder->lock);
        } else if (pthread_cond_timedwait(&recorder->changed, &recorder->lock, &deadline) == ETIMEDOUT) {
            break;
        }
    }
    came = seen(recorder, kind) > 0;
    pthread_mutex_unlock(&recorder->lock);
    if (!came)
        FAIL("no %s after %d ms; %u events so far", kind ? "such event" : "end", (int)PATIENCE_MS, recorder->count);
    return came;
}

int await_end(struct recorder *recorder, imgdl_executor *pumped)
{
    return await(recorder, 0, pumped);
}

int await_event(struct recorder *recorder, uint32_t kind, imgdl_executor *pumped)
{
    return await(recorder, kind, pumped);
}

void check_ending(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    CHECK_NUMBER(recorder->terminals, 1);
    CHECK_NUMBER(recorder->destroyed, 1);
    CHECK_NUMBER(recorder->overlaps, 0);
    CHECK_NUMBER(recorder->late, 0);
    pthread_mutex_unlock(&recorder->lock);
}

void check_order(const struct recorder *recorder, imgdl_event_mask mask)
{
    /* STARTED, RESPONSE, HEADER, then PROGRESS and PARTIAL in any order, then TERMINAL; bytes never become fewer. */
    uint32_t before = 0;
    int64_t received = 0;
    for (unsigned i = 0; i < recorder->count && i < MAX_RECORDS; i++) {
        const struct record *record = &recorder->records[i];
        if (!(record->kind & (mask | IMGDL_EVENT_TERMINAL)))
            FAIL("event %u of kind %u is not in mask %u", i, record->kind, mask);
        uint32_t rank = record->kind == IMGDL_EVENT_PARTIAL ? IMGDL_EVENT_PROGRESS : record->kind;
        if (rank < before || (rank == before && rank != IMGDL_EVENT_PROGRESS))
            FAIL("event %u of kind %u comes after kind %u", i, record->kind, before);
        if (record->kind == IMGDL_EVENT_STARTED)
            CHECK(record->received == 0 && record->expected == -1);
        if (record->received < received)
            FAIL("event %u of kind %u: received goes back from %lld to %lld", i, record->kind, (long long)received,
                 (long long)record->received);
        if (record->token != recorder->records[0].token)
            FAIL("event %u has another token", i);
        before = rank;
        received = record->received;
    }
    CHECK_NUMBER(before, IMGDL_EVENT_TERMINAL);
}

/* ---- Shorthands */

imgdl_request recorded_request(const char *url, struct recorder *recorder)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.event_mask = IMGDL_EVENT_ALL;
    request.callback = on_recorded_event;
    request.destructor = on_recorder_destroyed;
    request.user_data = recorder;
    return request;
}

imgdl_downloader *new_downloader_with(uint32_t max_concurrent, imgdl_executor *executor)
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.max_concurrent = max_concurrent;
    config.executor = executor;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    return downloader;
}

imgdl_downloader *new_downloader(void)
{
    return new_downloader_with(0, NULL);
}

imgdl_status download_and_wait(imgdl_downloader *downloader, const imgdl_request *request, struct recorder *recorder)
{
    REQUIRE_OK(imgdl_download(downloader, request, NULL));
    if (!await_end(recorder, NULL))
        harness_abandon();
    check_ending(recorder);
    return recorder->code;
}

/* ---- The cache */

uint64_t sum_of(const void *bytes, size_t length)
{
    uint64_t sum = 0xCBF29CE484222325;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * 0x100000001B3;
    return sum;
}

imgdl_cache *new_cache(const char *directory)
{
    imgdl_cache_config config;
    imgdl_cache_config_init(&config, sizeof config);
    config.directory = directory;
    imgdl_cache *cache = NULL;
    REQUIRE_OK(imgdl_cache_open(&config, &cache));
    return cache;
}

imgdl_downloader *new_caching_downloader(imgdl_cache *cache)
{
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.cache = cache;
    config.cache_mode = IMGDL_CACHE_USE;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&config, &downloader));
    return downloader;
}

struct reply take_reply(imgdl_token *token)
{
    REQUIRE_OK(imgdl_token_wait(token, PATIENCE_MS));
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    REQUIRE_OK(imgdl_token_result(token, &result));
    struct reply answer = {
        .code = result.code,
        .http_status = result.http_status,
        .outcome = result.response ? result.response->cache_outcome : UINT32_MAX,
        .length = imgdl_data_length(result.data),
        .sum = sum_of(imgdl_data_bytes(result.data), imgdl_data_length(result.data)),
        .width = imgdl_image_width(result.image),
    };
    imgdl_token_release(token);
    return answer;
}

struct reply ask_with(imgdl_downloader *downloader, const imgdl_request *request)
{
    imgdl_token *token = NULL;
    REQUIRE_OK(imgdl_download(downloader, request, &token));
    return take_reply(token);
}

struct reply ask(imgdl_downloader *downloader, const char *url, imgdl_cache_mode mode, imgdl_request_flags flags)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.cache_mode = mode;
    request.flags = flags;
    return ask_with(downloader, &request);
}

imgdl_cache_entry await_stored(imgdl_cache *cache, const char *url, int is_complete)
{
    imgdl_cache_entry entry;
    imgdl_cache_entry_init(&entry, sizeof entry);
    double end = seconds_now() + PATIENCE_MS / 1000.0;
    while (imgdl_cache_query(cache, url, &entry) != IMGDL_OK || entry.is_complete < is_complete) {
        if (seconds_now() > end) {
            FAIL("%s is not stored after %d ms", url, (int)PATIENCE_MS);
            harness_abandon();
        }
        sched_yield();
    }
    return entry;
}

void raise_flag(struct flag *flag)
{
    pthread_mutex_lock(&flag->lock);
    flag->value++;
    pthread_cond_broadcast(&flag->changed);
    pthread_mutex_unlock(&flag->lock);
}

void ignore_event(const imgdl_event *event, void *user_data) { (void)event, (void)user_data; }

void on_end_raise(void *flag) { raise_flag(flag); }

int await_flag(struct flag *flag, int value)
{
    struct timespec deadline = deadline_in(CLOCK_REALTIME, PATIENCE_MS);
    pthread_mutex_lock(&flag->lock);
    while (flag->value < value && pthread_cond_timedwait(&flag->changed, &flag->lock, &deadline) != ETIMEDOUT) {}
    int raised = flag->value >= value;
    pthread_mutex_unlock(&flag->lock);
    if (!raised)
        FAIL("a flag was not raised %d times in %d ms", value, (int)PATIENCE_MS);
    return raised;
}

unsigned count_in_proc(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/%s", name);
    DIR *directory = opendir(path);
    unsigned count = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    if (directory)
        closedir(directory);
    return count;
}

unsigned settle_in_proc(const char *name, unsigned limit)
{
    double end = seconds_now() + PATIENCE_MS / 1000.0;
    unsigned count;
    while ((count = count_in_proc(name)) > limit && seconds_now() < end)
        sched_yield();
    return count;
}

imgdl_stats await_stats(imgdl_downloader *downloader, int (*are_so)(const imgdl_stats *stats, uint64_t number),
                        uint64_t number)
{
    imgdl_stats stats;
    imgdl_stats_init(&stats, sizeof stats);
    double end = seconds_now() + PATIENCE_MS / 1000.0;
    for (;;) {
        REQUIRE_OK(imgdl_downloader_stats(downloader, &stats));
        if (are_so(&stats, number))
            return stats;
        if (seconds_now() > end) {
            FAIL("the statistics are not so after %d ms: %llu succeeded, %llu failed, %llu cancelled, %llu paused, memory %llu",
                 (int)PATIENCE_MS, (unsigned long long)stats.succeeded, (unsigned long long)stats.failed,
                 (unsigned long long)stats.cancelled, (unsigned long long)stats.paused, (unsigned long long)stats.memory);
            harness_abandon();
        }
        sched_yield();
    }
}

int have_ended_well(const imgdl_stats *stats, uint64_t number) { return stats->succeeded + stats->cancelled >= number; }

uint64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long all = 0, resident = 0;
    REQUIRE(file && fscanf(file, "%lu %lu", &all, &resident) == 2);
    fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

struct timespec deadline_in(clockid_t clock, unsigned milliseconds)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += milliseconds / 1000;
    time.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
