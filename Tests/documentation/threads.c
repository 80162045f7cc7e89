/* Prints who is called on which thread, a line each: what docs/threads.md says. */
#include <imgdl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void tell(const char *what)
{
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    printf("%s: %s\n", what, name);
}

static void on_event(const imgdl_event *event, void *user_data)
{
    (void)event;
    tell(user_data);
}

static void check(imgdl_status status)
{
    if (status == IMGDL_OK)
        return;
    fprintf(stderr, "%s: %s\n", imgdl_error_name(status), imgdl_last_error());
    exit(1);
}

static void modify_request(const imgdl_outgoing *request, imgdl_continuation *next, void *user_data)
{
    (void)request, (void)user_data;
    tell("hooks");
    check(imgdl_continue_unchanged(next));
}

static void on_observation(const imgdl_observation *observation, void *user_data)
{
    (void)observation, (void)user_data;
    tell("the observer");
}

static void *allocate(uint32_t width, uint32_t height, uint32_t bytes_per_pixel, size_t *stride, void *user_data)
{
    (void)width, (void)bytes_per_pixel, (void)user_data;
    tell("allocators");
    return malloc(*stride * height);
}

static void deallocate(void *pixels, void *user_data)
{
    (void)user_data;
    free(pixels);
}

static void *start(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data)
{
    (void)request, (void)user_data;
    tell("loaders");
    imgdl_transfer_release(transfer);
    return NULL;
}

static void cancel(void *started, void *user_data) { (void)started, (void)user_data; }

static void done(void *user_data)
{
    (void)user_data;
    tell("`done`");
}

static void download(imgdl_downloader *downloader, const char *url, imgdl_executor *executor, imgdl_hooks *hooks,
                     char *what)
{
    imgdl_decode_options decode;
    imgdl_request request;
    imgdl_token *token = NULL;
    imgdl_decode_options_init(&decode, sizeof decode);
    decode.allocate = allocate;
    decode.deallocate = deallocate;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.event_mask = IMGDL_EVENT_ALL;
    request.decode = &decode;
    request.executor = executor;
    request.hooks = hooks;
    request.callback = on_event;
    request.user_data = what;
    check(imgdl_download(downloader, &request, &token));
    check(imgdl_token_wait(token, -1));
    imgdl_token_release(token);
}

int main(int count, char **arguments)
{
    imgdl_downloader *downloader = NULL;
    imgdl_hooks *hooks = NULL;
    imgdl_hooks_table questions = {.struct_size = sizeof questions, .modify_request = modify_request};
    imgdl_transport_table loader = {.struct_size = sizeof loader, .start = start, .cancel = cancel};
    if (count != 2)
        return 2;
    check(imgdl_downloader_create(NULL, &downloader));
    check(imgdl_downloader_set_observer(downloader, on_observation, NULL, NULL));
    check(imgdl_transport_register(downloader, "app", &loader));
    check(imgdl_hooks_create(&questions, &hooks));
    download(downloader, arguments[1], NULL, hooks, "callbacks of requests that name none");
    download(downloader, arguments[1], IMGDL_EXECUTOR_INLINE, NULL, "callbacks of the inline executor");
    download(downloader, "app://anything", NULL, NULL, "callbacks of requests that name none");
    imgdl_hooks_release(hooks);
    check(imgdl_downloader_shutdown(downloader, IMGDL_SHUTDOWN_FINISH, done, NULL));
    check(imgdl_downloader_destroy(downloader));
    return 0;
}
