/* Requests beside hostile answers, and how late they hear: included by one file of a program. */
#ifndef QUESTIONS_H
#define QUESTIONS_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "imgdl.h"

enum { QUESTION_PATIENCE_S = 20 };

static inline void ensure(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s: %s\n", what, imgdl_last_error());
    exit(2);
}

static inline double in_ms(clockid_t clock)
{
    struct timespec time;
    ensure(clock_gettime(clock, &time) == 0, "a clock");
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static inline void sleep_until(double ms)
{
    struct timespec until = {(time_t)(ms / 1e3), 0};
    until.tv_nsec = (long)((ms - (double)until.tv_sec * 1e3) * 1e6);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static inline void wait_for(sem_t *semaphore, unsigned count, const char *what)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += QUESTION_PATIENCE_S;
    for (unsigned i = 0; i < count; i++)
        while (sem_timedwait(semaphore, &until) != 0)
            ensure(errno == EINTR, what);
}

/* What is asked for meanwhile: how late it is told is the time of the downloader's thread until then. */
struct question {
    imgdl_token *token;
    sem_t ended;
    imgdl_status code;
    clockid_t engine;
    double told; /* of the engine's time */
};

static inline void on_answer(const imgdl_event *event, void *user_data)
{
    struct question *question = user_data;
    if (event->kind != IMGDL_EVENT_TERMINAL)
        return;
    ensure(pthread_getcpuclockid(pthread_self(), &question->engine) == 0, "the thread's clock");
    question->told = in_ms(question->engine);
    question->code = event->code;
    sem_post(&question->ended);
}

static inline imgdl_request question_request(const char *url, imgdl_event_callback callback, void *user_data)
{
    imgdl_request request;
    imgdl_request_init(&request, sizeof request);
    request.url = url;
    request.retry_count = IMGDL_RETRY_NONE;
    request.executor = IMGDL_EXECUTOR_INLINE;
    request.callback = callback;
    request.user_data = user_data;
    return request;
}

static inline void ask(imgdl_downloader *downloader, struct question *question, const char *url, uint32_t total_timeout_ms)
{
    imgdl_request request = question_request(url, on_answer, question);
    request.total_timeout_ms = total_timeout_ms;
    sem_init(&question->ended, 0, 0);
    ensure(imgdl_download(downloader, &request, &question->token) == IMGDL_OK, "the request");
}

/* How late it was told, where it was due at that time of the engine's. */
static inline double lateness(struct question *question, double due, imgdl_status code, const char *what)
{
    wait_for(&question->ended, 1, what);
    imgdl_token_release(question->token);
    if (question->code != code)
        fprintf(stderr, "%s: %s\n", what, imgdl_error_name(question->code));
    ensure(question->code == code, what);
    return question->told > due ? question->told - due : 0;
}

/* A server that takes connections, and says nothing. */
static inline void make_silence(char *url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ensure(listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 64) == 0 &&
            getsockname(listener, (struct sockaddr *)&address, &length) == 0, "a server that is silent");
    snprintf(url, size, "http://127.0.0.1:%d/", ntohs(address.sin_port));
}

#endif
