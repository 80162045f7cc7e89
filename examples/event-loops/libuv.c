/* libuv URL…: downloads pictures on a loop of libuv, as in Node.js. The callbacks run on its thread. */
#include <signal.h>
#include <stdio.h>
#include <uv.h>

#include <imgdl.h>

struct program {
    uv_loop_t loop;
    uv_poll_t ready;
    uv_signal_t interrupt;
    imgdl_downloader *downloader;
    imgdl_executor *executor;
    unsigned outstanding, failed;
};

static struct program program;

/* Without handles that are open the loop ends. */
static void close_handles(void)
{
    uv_close((uv_handle_t *)&program.ready, NULL);
    uv_close((uv_handle_t *)&program.interrupt, NULL);
}

static void on_end(const imgdl_event *event, void *user_data)
{
    const char *url = user_data;
    if (event->code == IMGDL_OK) {
        printf("%u x %u %s\n", imgdl_image_width(event->image), imgdl_image_height(event->image), url);
    } else {
        program.failed++;
        fprintf(stderr, "%s\n", event->message);
    }
    if (--program.outstanding == 0)
        close_handles();
}

static void give_up(void)
{
    fprintf(stderr, "%s\n", imgdl_last_error());
    program.failed++;
    uv_stop(&program.loop);
}

/* The descriptor is readable while callbacks wait. A few at a time, so that others on the loop have their turn. */
static void on_ready(uv_poll_t *handle, int status, int events)
{
    (void)handle;
    (void)events;
    if (status == 0 && imgdl_executor_dispatch(program.executor, 64, NULL) != IMGDL_OK)
        give_up();
}

static void on_interrupt(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
    /* Each still has its end, and tells so. */
    if (imgdl_downloader_cancel_all(program.downloader) != IMGDL_OK)
        give_up();
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: libuv URL...\n");
        return 2;
    }
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    if (imgdl_executor_create_pumped(&program.executor) != IMGDL_OK) {
        fprintf(stderr, "%s\n", imgdl_last_error());
        return 1;
    }
    config.executor = program.executor;
    if (imgdl_downloader_create(&config, &program.downloader) != IMGDL_OK) {
        fprintf(stderr, "%s\n", imgdl_last_error());
        return 1;
    }
    uv_loop_init(&program.loop);
    uv_poll_init(&program.loop, &program.ready, imgdl_executor_fd(program.executor));
    uv_poll_start(&program.ready, UV_READABLE, on_ready);
    uv_signal_init(&program.loop, &program.interrupt);
    uv_signal_start(&program.interrupt, on_interrupt, SIGINT);

    for (int i = 1; i < argc; i++) {
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        request.url = argv[i];
        request.callback = on_end;
        request.user_data = argv[i];
        if (imgdl_download(program.downloader, &request, NULL) == IMGDL_OK) {
            program.outstanding++;
        } else {
            program.failed++;
            fprintf(stderr, "%s\n", imgdl_last_error());
        }
    }
    if (program.outstanding == 0)
        close_handles();
    uv_run(&program.loop, UV_RUN_DEFAULT);

    uv_loop_close(&program.loop);
    if (imgdl_downloader_destroy(program.downloader) != IMGDL_OK)
        give_up();
    imgdl_executor_release(program.executor);
    return program.failed > 0;
}
