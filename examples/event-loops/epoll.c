/* epoll URL…: downloads pictures on a loop of one's own, without a thread that waits.
 *
 * The executor has a descriptor that is readable while callbacks wait. The loop watches it beside its own descriptors
 * (here: one that tells of Ctrl-C) and runs the callbacks itself: everything below runs on one thread. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <imgdl.h>

static int outstanding, failed;

static void on_end(const imgdl_event *event, void *user_data)
{
    const char *url = user_data;
    outstanding--;
    if (event->code != IMGDL_OK) {
        failed++;
        fprintf(stderr, "%s\n", event->message);
        return;
    }
    printf("%u x %u %s\n", imgdl_image_width(event->image), imgdl_image_height(event->image), url);
}

static void watch(int epoll, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

static int complain(void)
{
    fprintf(stderr, "%s\n", imgdl_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: epoll URL...\n");
        return 2;
    }
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, NULL);
    int signals = signalfd(-1, &interrupt, SFD_CLOEXEC);
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    imgdl_executor *executor = NULL;
    imgdl_downloader *downloader = NULL;
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    if (signals < 0 || epoll < 0 || imgdl_executor_create_pumped(&executor) != IMGDL_OK) {
        perror("epoll");
        return 1;
    }
    config.executor = executor;
    if (imgdl_downloader_create(&config, &downloader) != IMGDL_OK) {
        fprintf(stderr, "%s\n", imgdl_last_error());
        return 1;
    }
    watch(epoll, signals);
    watch(epoll, imgdl_executor_fd(executor));

    for (int i = 1; i < argc; i++) {
        imgdl_request request;
        imgdl_request_init(&request, sizeof request);
        request.url = argv[i];
        request.callback = on_end;
        request.user_data = argv[i];
        if (imgdl_download(downloader, &request, NULL) == IMGDL_OK) {
            outstanding++;
        } else {
            failed++;
            fprintf(stderr, "%s\n", imgdl_last_error());
        }
    }

    while (outstanding > 0) {
        struct epoll_event ready[4];
        int count = epoll_wait(epoll, ready, 4, -1);
        if (count < 0 && errno != EINTR) {
            perror("epoll_wait");
            return 1;
        }
        for (int i = 0; i < count; i++) {
            if (ready[i].data.fd == signals) {
                struct signalfd_siginfo info;
                if (read(signals, &info, sizeof info) != sizeof info)
                    continue;
                /* Each still has its end, and tells so. */
                if (imgdl_downloader_cancel_all(downloader) != IMGDL_OK)
                    return complain();
            } else if (imgdl_executor_dispatch(executor, 64, NULL) != IMGDL_OK) { /* the rest in the next round */
                return complain();
            }
        }
    }

    if (imgdl_downloader_destroy(downloader) != IMGDL_OK)
        return complain();
    imgdl_executor_release(executor);
    close(epoll);
    close(signals);
    return failed > 0;
}
