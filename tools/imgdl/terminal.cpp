#include "terminal.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "signals.hpp"

static std::string environment(const char *name)
{
    const char *value = std::getenv(name);
    return value ? value : "";
}

static std::uint32_t number_in(const char *name, std::uint32_t otherwise)
{
    const long value = std::strtol(environment(name).c_str(), nullptr, 10);
    return value > 0 && value < 10000 ? static_cast<std::uint32_t>(value) : otherwise;
}

TerminalSize terminal_size(int descriptor)
{
    winsize size = {};
    if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return {number_in("COLUMNS", 80), number_in("LINES", 24), 8, 16};
    const bool has_pixels = size.ws_xpixel >= size.ws_col && size.ws_ypixel >= size.ws_row;
    return {size.ws_col, size.ws_row, has_pixels ? static_cast<std::uint32_t>(size.ws_xpixel / size.ws_col) : 8,
            has_pixels ? static_cast<std::uint32_t>(size.ws_ypixel / size.ws_row) : 16};
}

namespace {

// The terminal without echo and without waiting for a line, for as long as this lives. Signals come as ever, but for Ctrl-Z,
// which waits for the end of this: the shell would have a terminal without echo.
class Unechoed {
  public:
    explicit Unechoed(int descriptor) : descriptor_(descriptor), is_set_(tcgetattr(descriptor, &before_) == 0)
    {
        sigset_t stop;
        sigemptyset(&stop);
        sigaddset(&stop, SIGTSTP);
        pthread_sigmask(SIG_BLOCK, &stop, &mask_before_);
        if (is_set_)
            restore_terminal_at_signals(descriptor, before_);
        termios settings = before_;
        settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        settings.c_cc[VMIN] = 0;
        settings.c_cc[VTIME] = 0;
        is_set_ = is_set_ && tcsetattr(descriptor, TCSADRAIN, &settings) == 0;
    }
    Unechoed(const Unechoed &) = delete;
    Unechoed &operator=(const Unechoed &) = delete;
    ~Unechoed()
    {
        if (is_set_)
            tcsetattr(descriptor_, TCSADRAIN, &before_);
        leave_terminal_at_signals();
        pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    }
    bool is_set() const { return is_set_; }

  private:
    int descriptor_;
    termios before_ = {};
    sigset_t mask_before_ = {};
    bool is_set_;
};

// "rgb:2020/2525/2b2b": two digits of each are enough.
std::optional<Colour> colour_in(const std::string &answer)
{
    const std::size_t start = answer.find("\033]11;rgb:");
    unsigned red, green, blue;
    char digits[64];
    if (start == std::string::npos)
        return std::nullopt;
    std::snprintf(digits, sizeof digits, "%s", answer.c_str() + start + 9);
    if (std::sscanf(digits, "%2x%*[0-9a-fA-F]/%2x%*[0-9a-fA-F]/%2x", &red, &green, &blue) != 3)
        return std::nullopt;
    return Colour{static_cast<std::uint8_t>(red), static_cast<std::uint8_t>(green), static_cast<std::uint8_t>(blue)};
}

// The last question is one that every terminal answers: what has not come before its answer does not come.
bool is_whole(const std::string &answer)
{
    const std::size_t start = answer.find("\033[?");
    return start != std::string::npos && answer.find('c', start) != std::string::npos;
}

} // namespace

TerminalAnswers ask_terminal()
{
    static const char questions[] = "\033_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\033\\"
                                    "\033]11;?\033\\"
                                    "\033[c";
    TerminalAnswers answers;
    const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0)
        return answers;
    // In the background, asking would stop this process.
    if (tcgetpgrp(terminal) == getpgrp()) {
        const Unechoed unechoed(terminal);
        std::string answer;
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
        bool goes_on = unechoed.is_set() && write(terminal, questions, sizeof questions - 1) > 0;
        while (goes_on && !is_whole(answer)) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                deadline - std::chrono::steady_clock::now()).count();
            pollfd waiting = {terminal, POLLIN, 0};
            char bytes[256];
            goes_on = left > 0 && poll(&waiting, 1, static_cast<int>(left)) > 0;
            const ssize_t count = goes_on ? read(terminal, bytes, sizeof bytes) : 0;
            goes_on = count > 0 && answer.size() < 4096;
            answer.append(bytes, count > 0 ? static_cast<std::size_t>(count) : 0);
        }
        answers.has_kitty_graphics = answer.find("\033_Gi=31;OK") != std::string::npos;
        answers.background = colour_in(answer);
    }
    close(terminal);
    return answers;
}

static bool has_24_bit_colours()
{
    const std::string colours = environment("COLORTERM"), terminal = environment("TERM");
    return colours == "truecolor" || colours == "24bit" || terminal.find("direct") != std::string::npos ||
           terminal.find("kitty") != std::string::npos || terminal.find("ghostty") != std::string::npos;
}

bool terminal_obeys()
{
    const std::string terminal = environment("TERM");
    return !terminal.empty() && terminal != "dumb";
}

Show choose_show(Show asked, std::optional<Colour> &background)
{
    if (asked != Show::automatic)
        return asked;
    if (isatty(STDOUT_FILENO) && !terminal_obeys())
        throw UsageError("--show: this terminal draws nothing, as TERM has it; --show=blocks draws all the same");
    const Show blocks = has_24_bit_colours() ? Show::blocks : Show::blocks_of_256;
    // What runs between us and the terminal passes no graphics on.
    const bool is_between = !environment("TMUX").empty() || !environment("STY").empty();
    if (!isatty(STDOUT_FILENO) || is_between)
        return blocks;
    const std::string terminal = environment("TERM"), program = environment("TERM_PROGRAM");
    if (!environment("KITTY_WINDOW_ID").empty() || terminal == "xterm-kitty" || terminal == "xterm-ghostty" ||
        program == "ghostty" || program == "WezTerm")
        return Show::kitty;
    const TerminalAnswers answers = ask_terminal();
    if (!background)
        background = answers.background;
    return answers.has_kitty_graphics ? Show::kitty : blocks;
}
