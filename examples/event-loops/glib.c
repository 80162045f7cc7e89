/* glib URL…: downloads pictures on the main loop of GLib, where GTK draws. The callbacks run on its thread. */
#include <glib-unix.h>
#include <glib.h>

#include <imgdl.h>

struct program {
    GMainLoop *loop;
    imgdl_downloader *downloader;
    imgdl_executor *executor;
    guint outstanding, failed;
};

struct picture {
    struct program *program;
    const char *url;
};

static void on_end(const imgdl_event *event, void *user_data)
{
    struct picture *picture = user_data;
    struct program *program = picture->program;
    if (event->code == IMGDL_OK) {
        g_print("%u x %u %s\n", imgdl_image_width(event->image), imgdl_image_height(event->image), picture->url);
    } else {
        program->failed++;
        g_printerr("%s\n", event->message);
    }
    if (--program->outstanding == 0)
        g_main_loop_quit(program->loop);
}

static void give_up(struct program *program)
{
    g_printerr("%s\n", imgdl_last_error());
    program->failed++;
    g_main_loop_quit(program->loop);
}

/* The descriptor is readable while callbacks wait. A few at a time, so that drawing has its turn. */
static gboolean on_ready(gint descriptor, GIOCondition condition, gpointer user_data)
{
    struct program *program = user_data;
    (void)descriptor;
    (void)condition;
    if (imgdl_executor_dispatch(program->executor, 16, NULL) != IMGDL_OK)
        give_up(program);
    return G_SOURCE_CONTINUE;
}

static gboolean on_interrupt(gpointer user_data)
{
    struct program *program = user_data;
    /* Each still has its end, and tells so. */
    if (imgdl_downloader_cancel_all(program->downloader) != IMGDL_OK)
        give_up(program);
    return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        g_printerr("usage: glib URL...\n");
        return 2;
    }
    struct program program = {.loop = g_main_loop_new(NULL, FALSE)};
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    if (imgdl_executor_create_pumped(&program.executor) != IMGDL_OK) {
        g_printerr("%s\n", imgdl_last_error());
        return 1;
    }
    config.executor = program.executor;
    if (imgdl_downloader_create(&config, &program.downloader) != IMGDL_OK) {
        g_printerr("%s\n", imgdl_last_error());
        return 1;
    }
    guint ready = g_unix_fd_add(imgdl_executor_fd(program.executor), G_IO_IN, on_ready, &program);
    guint interrupt = g_unix_signal_add(SIGINT, on_interrupt, &program);

    for (int i = 1; i < argc; i++) {
        struct picture *picture = g_new(struct picture, 1);
        *picture = (struct picture){.program = &program, .url = argv[i]};
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        request.url = picture->url;
        request.callback = on_end;
        request.user_data = picture;
        request.destructor = g_free; /* also when the request is refused */
        if (imgdl_download(program.downloader, &request, NULL) == IMGDL_OK) {
            program.outstanding++;
        } else {
            program.failed++;
            g_printerr("%s\n", imgdl_last_error());
        }
    }
    if (program.outstanding > 0)
        g_main_loop_run(program.loop);

    g_source_remove(interrupt);
    g_source_remove(ready);
    if (imgdl_downloader_destroy(program.downloader) != IMGDL_OK)
        give_up(&program);
    imgdl_executor_release(program.executor);
    g_main_loop_unref(program.loop);
    return program.failed > 0;
}
