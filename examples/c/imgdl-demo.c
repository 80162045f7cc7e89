/* imgdl-demo --output DIR --origin PROGRAM --pictures DIR
 * imgdl-demo --output DIR URL
 *
 * The first form starts a throttled origin on this machine and shows what the library does: pictures arrive at once and
 * are seen while they arrive, one is cancelled, and one is asked for twice but served once. The second form does it for
 * one address. Everything that was seen is written as PNG files. All callbacks run on the main thread, in its own event
 * loop: no locks. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "imgdl.h"
#include "png-writer.h"

enum { MAX_DOWNLOADS = 64, AT_ONCE = 8, SECONDS_EACH = 3, PARTIAL_INTERVAL_MS = 400, REDRAW_MS = 50, BAR = 16 };

enum state { WAITING, CONNECTING, ARRIVING, DONE, CANCELLED, FAILED };

struct download {
    char name[NAME_MAX + 1]; /* shown, and the stem of the files */
    char *url;
    imgdl_token *token;
    enum state state;
    int64_t received, expected;
    uint32_t width, height;
    unsigned partials;
    int cancel_half_way;
    char *message;
};

static struct download downloads[MAX_DOWNLOADS];
static unsigned download_count;
static unsigned ended_count;
static unsigned files_written, files_failed;
static const char *output = "build/demo";
static int on_terminal_screen;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- What is shown */

/* "172/333 KiB", or the one that is known. */
static void format_amount(char *text, size_t capacity, int64_t received, int64_t expected)
{
    int64_t largest = expected > received ? expected : received;
    int64_t unit = largest < 1024 ? 1 : largest < 10240 * 1024 ? 1024 : 1024 * 1024;
    const char *name = unit == 1 ? "B" : unit == 1024 ? "KiB" : "MiB";
    long long amount = (received + unit / 2) / unit, of = (expected + unit / 2) / unit;
    if (expected < 0 || expected == received)
        snprintf(text, capacity, "%lld %s", amount, name);
    else
        snprintf(text, capacity, "%lld/%lld %s", amount, of, name);
}

static void describe(const struct download *download, char *text, size_t capacity)
{
    static const char *const words[] = {
        [WAITING] = "waiting", [CONNECTING] = "asking", [ARRIVING] = "arriving",
        [DONE] = "done", [CANCELLED] = "cancelled", [FAILED] = "failed",
    };
    char size[32] = "", partials[32] = "";
    if (download->width)
        snprintf(size, sizeof size, "%ux%u ", download->width, download->height);
    if (download->partials)
        snprintf(partials, sizeof partials, ", %u partial", download->partials);
    snprintf(text, capacity, "%s%s%s", size, words[download->state], partials);
}

static void draw_line(const struct download *download)
{
    char bar[BAR + 1], amount[64] = "", text[96], line[256];
    int64_t of = download->state == DONE ? download->received : download->expected;
    int filled = of > 0 ? (int)(download->received * BAR / of) : 0;
    if (filled > BAR)
        filled = BAR;
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)filled);
    bar[BAR] = '\0';
    if (download->state != WAITING && download->state != CONNECTING)
        format_amount(amount, sizeof amount, download->received, of);
    describe(download, text, sizeof text);
    snprintf(line, sizeof line, "%-17.17s [%s] %12s  %s", download->name, bar, amount, text);
    if (on_terminal_screen) {
        struct winsize size;
        int columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
        printf("%.*s\033[K\n", columns, line); /* a line that wrapped would spoil the redrawing */
    } else {
        printf("%s\n", line);
    }
}

static void draw_all(int again)
{
    if (again)
        printf("\033[%uA\r", download_count);
    for (unsigned i = 0; i < download_count; i++)
        draw_line(&downloads[i]);
    fflush(stdout);
}

/* On a pipe nothing can be redrawn: a line when something begins or ends. */
static void say(const struct download *download)
{
    if (!on_terminal_screen) {
        draw_line(download);
        fflush(stdout);
    }
}

/* ---- What is written */

static void write_picture(const struct download *download, imgdl_image *image)
{
    char path[4096];
    int complete = imgdl_image_is_complete(image);
    if (complete)
        snprintf(path, sizeof path, "%s/%s.png", output, download->name);
    else
        snprintf(path, sizeof path, "%s/%s.partial-%02u.png", output, download->name, download->partials);
    imgdl_rectangle ready = imgdl_image_ready(image);
    struct png_area area = {ready.x, ready.y, ready.width, ready.height};
    /* What came before the end is written at half its size: there is a lot of it. */
    int written = png_write(path, imgdl_image_pixels(image), imgdl_image_stride(image), imgdl_image_width(image),
                            imgdl_image_height(image), area, complete ? 1 : 2);
    if (written == 0) {
        files_written++;
    } else if (files_failed++ == 0) {
        fprintf(stderr, "imgdl-demo: cannot write %s: %s\n", path, strerror(errno));
    }
}

/* ---- What happens */

static void on_event(const imgdl_event *event, void *user_data)
{
    struct download *download = user_data;
    switch (event->kind) {
    case IMGDL_EVENT_STARTED:
        download->state = CONNECTING;
        break;
    case IMGDL_EVENT_RESPONSE:
        download->state = ARRIVING;
        download->expected = event->expected;
        break;
    case IMGDL_EVENT_HEADER:
        download->width = event->info->width;
        download->height = event->info->height;
        say(download);
        break;
    case IMGDL_EVENT_PROGRESS:
        download->received = event->received;
        download->expected = event->expected;
        if (download->cancel_half_way && event->expected > 0 && event->received * 2 >= event->expected)
            download->cancel_half_way = imgdl_token_cancel(event->token) != IMGDL_OK;
        break;
    case IMGDL_EVENT_PARTIAL:
        download->received = event->received;
        download->partials++;
        write_picture(download, event->image);
        break;
    case IMGDL_EVENT_TERMINAL:
        ended_count++;
        if (event->code == IMGDL_OK) {
            download->state = DONE;
            download->received = event->received;
            download->width = imgdl_image_width(event->image);
            download->height = imgdl_image_height(event->image);
            write_picture(download, event->image);
        } else {
            download->state = event->code == IMGDL_ERROR_CANCELLED ? CANCELLED : FAILED;
            download->message = strdup(event->message);
        }
        say(download);
        break;
    default:
        break; /* kinds that a newer library has */
    }
}

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "imgdl-demo: %s: %s\n", what, why);
    return 1;
}

static struct download *add(const char *name, char *url)
{
    struct download *download = &downloads[download_count++];
    *download = (struct download){.url = url, .expected = -1};
    snprintf(download->name, sizeof download->name, "%s", name);
    return download;
}

/* Hands every download over, then runs the callbacks here until each has ended. */
static int run_all(imgdl_downloader *downloader, imgdl_executor *executor)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.event_mask = IMGDL_EVENT_ALL;
    request.partial_interval_ms = PARTIAL_INTERVAL_MS;
    request.executor = executor;
    request.callback = on_event;
    for (unsigned i = 0; i < download_count; i++) {
        request.url = downloads[i].url;
        request.user_data = &downloads[i];
        if (imgdl_download(downloader, &request, &downloads[i].token) != IMGDL_OK) {
            downloads[i].state = FAILED;
            downloads[i].message = strdup(imgdl_last_error());
            ended_count++;
        }
    }
    if (on_terminal_screen)
        draw_all(0);
    struct pollfd waiting = {.fd = imgdl_executor_fd(executor), .events = POLLIN};
    double drawn = now();
    while (ended_count < download_count) {
        if (poll(&waiting, 1, REDRAW_MS) < 0 && errno != EINTR)
            return complain("cannot wait", strerror(errno));
        if (imgdl_executor_dispatch(executor, 0, NULL) != IMGDL_OK)
            return complain("cannot go on", imgdl_last_error());
        if (on_terminal_screen && (ended_count == download_count || now() - drawn >= REDRAW_MS / 1000.0)) {
            draw_all(1);
            drawn = now();
        }
    }
    for (unsigned i = 0; i < download_count; i++)
        imgdl_token_release(downloads[i].token);
    return 0;
}

/* ---- One address */

static int show_one(imgdl_downloader *downloader, imgdl_executor *executor, const char *url)
{
    /* The file is called as the URL's path ends, if that makes a name. */
    char name[64] = "picture";
    const char *path = strstr(url, "://") ? strchr(strstr(url, "://") + 3, '/') : NULL;
    if (path) {
        size_t length = strcspn(path, "?#");
        while (length > 0 && path[length - 1] == '/')
            length--;
        size_t start = length;
        while (start > 0 && path[start - 1] != '/')
            start--;
        size_t kept = 0;
        for (size_t i = start; i < length && kept + 1 < sizeof name; i++) {
            char byte = path[i];
            int is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                           (byte >= '0' && byte <= '9') || byte == '-' || (byte == '.' && kept > 0);
            name[kept++] = is_plain ? byte : '_';
        }
        if (kept)
            name[kept] = '\0';
    }
    struct download *download = add(name, strdup(url));
    int failed = run_all(downloader, executor);
    if (!failed && download->state == DONE)
        printf("\nThe picture is %s/%s.png.\n", output, download->name);
    else if (!failed)
        printf("\nThere is no picture: %s\n", download->message);
    return failed || download->state != DONE || files_failed > 0;
}

/* ---- The origin on this machine */

struct origin {
    pid_t process;
    int until_closed; /* the origin ends when this does, also if we crash */
    char base[128];
};

extern char **environ;

static int start_origin(struct origin *origin, const char *program, const char *pictures)
{
    int input[2], listening[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(listening, O_CLOEXEC) != 0)
        return complain("cannot make a pipe", strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, listening[1], STDOUT_FILENO);
    char *arguments[] = {(char *)program, "--until-eof", "--root", (char *)pictures, NULL};
    int code = posix_spawn(&origin->process, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(listening[1]);
    if (code != 0)
        return complain(program, strerror(code));
    origin->until_closed = input[1];
    FILE *lines = fdopen(listening[0], "r");
    int understood = lines && fscanf(lines, "listening on %127s", origin->base) == 1;
    if (lines)
        fclose(lines);
    return understood ? 0 : complain(program, "does not say where it listens");
}

static void stop_origin(struct origin *origin)
{
    close(origin->until_closed);
    waitpid(origin->process, NULL, 0);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Each picture at a rate that makes it take some seconds. */
static int add_pictures(const char *base, const char *pictures)
{
    struct dirent **entries;
    int count = scandir(pictures, &entries, is_visible, alphasort);
    if (count <= 0)
        return complain(pictures, count < 0 ? strerror(errno) : "no pictures there");
    for (int i = 0; i < count; i++) {
        char path[4096];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", pictures, entries[i]->d_name);
        if (stat(path, &status) == 0 && S_ISREG(status.st_mode) && download_count + 1 < MAX_DOWNLOADS) {
            char *url = NULL;
            long long rate = status.st_size / SECONDS_EACH + 1;
            if (asprintf(&url, "%s/pictures/%s?rate=%lld", base, entries[i]->d_name, rate) < 0)
                return complain("asprintf", strerror(errno));
            add(entries[i]->d_name, url);
        }
        free(entries[i]);
    }
    free(entries);
    return 0;
}

/* How often the origin was asked for a path, by its own log, which is fetched through the library as any body is. */
static long served(imgdl_downloader *downloader, const char *base, const char *path)
{
    char url[256], key[128];
    snprintf(url, sizeof url, "%s/_log", base);
    snprintf(key, sizeof key, "\"%s\":", path);
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.flags = IMGDL_REQUEST_BODY;
    imgdl_token *token = NULL;
    imgdl_result result;
    imgdl_result_init(&result, sizeof result);
    long count = -1;
    if (imgdl_download(downloader, &request, &token) == IMGDL_OK && imgdl_token_wait(token, 10000) == IMGDL_OK &&
        imgdl_token_result(token, &result) == IMGDL_OK && result.code == IMGDL_OK) {
        char *log = strndup(imgdl_data_bytes(result.data), imgdl_data_length(result.data));
        const char *counts = log ? strstr(log, "\"counts\":") : NULL;
        const char *found = counts ? strstr(counts, key) : NULL;
        if (found)
            count = strtol(found + strlen(key), NULL, 10);
        free(log);
    }
    imgdl_token_release(token);
    return count;
}

static struct download *find(const char *name)
{
    for (unsigned i = 0; i < download_count; i++)
        if (!strcmp(downloads[i].name, name))
            return &downloads[i];
    return NULL;
}

static int show_many(imgdl_downloader *downloader, imgdl_executor *executor, const char *program, const char *pictures)
{
    static const char twice[] = "progressive.jpg", cancelled[] = "lossless.webp";
    struct origin origin;
    if (start_origin(&origin, program, pictures) != 0 || add_pictures(origin.base, pictures) != 0)
        return 1;
    if (!find(twice) || !find(cancelled))
        return complain(pictures, "progressive.jpg and lossless.webp are missing");
    add("progressive.jpg-2", strdup(find(twice)->url));
    find(cancelled)->cancel_half_way = 1;

    printf("imgdl %s: %u downloads from %s, %d at a time\n\n", imgdl_version_string(), download_count, origin.base,
           (int)AT_ONCE);
    fflush(stdout);
    double start = now();
    int failed = run_all(downloader, executor);
    double seconds = now() - start;

    unsigned counts[FAILED + 1] = {0}, partials = 0;
    for (unsigned i = 0; i < download_count; i++) {
        counts[downloads[i].state]++;
        partials += downloads[i].partials;
    }
    printf("\n%u pictures in %.1f s; %u partial images of them were seen before they were complete.\n", counts[DONE], seconds,
           partials);
    printf("%s was cancelled half way: %s\n", cancelled,
           find(cancelled)->state == CANCELLED ? "its transfer ended there and then." : "but it was not!");
    long gets = served(downloader, origin.base, "/pictures/progressive.jpg");
    printf("%s was asked for twice; the origin served it %s.\n", twice,
           gets == 1 ? "once" : gets < 0 ? "an unknown number of times" : "more than once");
    printf("Everything that was seen is in %s (%u PNG files).\n", output, files_written);
    for (unsigned i = 0; i < download_count; i++)
        if (downloads[i].state == FAILED)
            printf("%s failed: %s\n", downloads[i].name, downloads[i].message);
    stop_origin(&origin);
    return failed || counts[FAILED] || counts[CANCELLED] != 1 || gets != 1 || files_failed;
}

static int make_folder(const char *path)
{
    char *copy = strdup(path);
    for (char *slash = copy ? strchr(copy + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(copy, 0777);
        *slash = '/';
    }
    free(copy);
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : complain(path, strerror(errno));
}

int main(int argc, char **argv)
{
    const char *program = NULL, *pictures = NULL, *url = NULL;
    int understood = 1;
    for (int i = 1; i < argc; i++) {
        const char **value = !strcmp(argv[i], "--output")     ? &output
                             : !strcmp(argv[i], "--origin")   ? &program
                             : !strcmp(argv[i], "--pictures") ? &pictures
                                                              : NULL;
        if (value && i + 1 < argc)
            *value = argv[++i];
        else if (!value && argv[i][0] != '-' && !url)
            url = argv[i];
        else
            understood = 0;
    }
    if (!understood || !(url ? !program && !pictures : program && pictures)) {
        fprintf(stderr, "usage: imgdl-demo [--output DIR] URL\n"
                        "       imgdl-demo [--output DIR] --origin PROGRAM --pictures DIR\n");
        return 2;
    }
    if (make_folder(output) != 0)
        return 1;
    on_terminal_screen = isatty(STDOUT_FILENO);

    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.max_concurrent = AT_ONCE;
    imgdl_downloader *downloader = NULL;
    imgdl_executor *executor = NULL;
    if (imgdl_downloader_create(&config, &downloader) != IMGDL_OK || imgdl_executor_create_pumped(&executor) != IMGDL_OK)
        return complain("cannot begin", imgdl_last_error());

    int failed = url ? show_one(downloader, executor, url) : show_many(downloader, executor, program, pictures);

    imgdl_executor_release(executor);
    if (imgdl_downloader_destroy(downloader) != IMGDL_OK)
        failed = complain("cannot end", imgdl_last_error());
    for (unsigned i = 0; i < download_count; i++) {
        free(downloads[i].url);
        free(downloads[i].message);
    }
    return failed;
}
