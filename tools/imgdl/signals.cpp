#include "signals.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

static int descriptors[2] = {-1, -1};
static volatile std::sig_atomic_t came = 0;

static void note(int number)
{
    const int before = errno;
    if (came != 0) {
        // Half a picture may be on the terminal: its escape is ended, its colours are.
        if (isatty(STDOUT_FILENO) && write(STDOUT_FILENO, "\033\\\033[0m\r\n", 8) < 0)
            errno = before;
        _exit(128 + number);
    }
    came = number;
    if (write(descriptors[1], "", 1) < 0)
        errno = before;
    errno = before;
}

void watch_signals()
{
    if (pipe2(descriptors, O_CLOEXEC | O_NONBLOCK) != 0)
        throw std::system_error(errno, std::generic_category(), "pipe");
    struct sigaction action = {}, before = {};
    action.sa_handler = note; // without SA_RESTART: whatever waits is to look around
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        sigaction(number, nullptr, &before);
        if (before.sa_handler != SIG_IGN) // nohup, and what a shell runs in the background
            sigaction(number, &action, nullptr);
    }
    std::signal(SIGPIPE, SIG_IGN);
}

int signal_descriptor() { return descriptors[0]; }
int signal_that_came() { return came; }
