#include "signals.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <system_error>
#include <termios.h>
#include <unistd.h>

static int descriptors[2] = {-1, -1};
static volatile std::sig_atomic_t came = 0, is_drawing = 0, changed_terminal = -1;
static termios settings_before;

// Half a picture may be on the terminal: its escape is ended, its colours are.
static void leave_terminal_as_it_was()
{
    if (changed_terminal >= 0)
        tcsetattr(changed_terminal, TCSANOW, &settings_before);
    if (is_drawing && write(STDOUT_FILENO, "\033\\\033[0m\r\n", 8) < 0)
        return;
}

static void note(int number)
{
    const int before = errno;
    if (came != 0) {
        leave_terminal_as_it_was();
        _exit(128 + number);
    }
    came = number;
    [[maybe_unused]] const ssize_t written = write(descriptors[1], "", 1); // one byte in the pipe is enough
    errno = before;
}

// It ends the process as ever, with a core where there is to be one.
static void quit(int number)
{
    leave_terminal_as_it_was();
    std::signal(number, SIG_DFL);
    std::raise(number);
}

static void watch(int number, void (*handler)(int))
{
    struct sigaction action = {}, before = {};
    action.sa_handler = handler; // without SA_RESTART: whatever waits is to look around
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) // nohup, and what a shell runs in the background
        sigaction(number, &action, nullptr);
}

void watch_signals()
{
    if (pipe2(descriptors, O_CLOEXEC | O_NONBLOCK) != 0)
        throw std::system_error(errno, std::generic_category(), "pipe");
    for (const int number : {SIGINT, SIGTERM, SIGHUP})
        watch(number, note);
    watch(SIGQUIT, quit);
    for (const int number : {SIGPIPE, SIGXFSZ})
        std::signal(number, SIG_IGN);
}

int signal_descriptor() { return descriptors[0]; }
int signal_that_came() { return came; }

void restore_terminal_at_signals(int terminal, const termios &before)
{
    settings_before = before;
    // A signal that comes between finds all of them, or no terminal.
    std::atomic_signal_fence(std::memory_order_release);
    changed_terminal = terminal;
}
void leave_terminal_at_signals() { changed_terminal = -1; }
void end_drawing_at_signals() { is_drawing = isatty(STDOUT_FILENO); }
