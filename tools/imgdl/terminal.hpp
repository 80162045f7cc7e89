// What the terminal is like.
#ifndef TERMINAL_HPP
#define TERMINAL_HPP

#include <cstdint>
#include <optional>

#include "arguments.hpp"

struct TerminalSize {
    std::uint32_t columns, rows;
    std::uint32_t cell_width, cell_height; ///< in pixels, guessed where the terminal does not say
};

/// Of the terminal behind a descriptor; as the environment says (COLUMNS, LINES), or 80 x 24, where there is none.
TerminalSize terminal_size(int descriptor);

/// False for one without escape sequences, or of which nothing is known: TERM is dumb, or not set.
bool terminal_obeys();

struct TerminalAnswers {
    bool has_kitty_graphics = false;
    std::optional<Colour> background;
};

/// Asks the terminal of this process, and waits for its answer, half a second at most. Its settings are as before when
/// this returns; a signal ends the wait.
TerminalAnswers ask_terminal();

/// How to draw where the arguments leave it open; fills in the background, too. Throws UsageError where standard output is a
/// terminal that draws nothing.
Show choose_show(Show asked, std::optional<Colour> &background);

#endif
