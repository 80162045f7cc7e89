// Signals that ask this program to end. The first one is noted, and a descriptor becomes readable; the second one, of
// whichever kind, ends the process at once, and so does Ctrl-\\. The terminal is as it was then.
#ifndef SIGNALS_HPP
#define SIGNALS_HPP

#include <termios.h>

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT, where they are not ignored; SIGPIPE and SIGXFSZ become errors of write. Throws
/// std::system_error.
void watch_signals();
/// Readable once a signal has come.
int signal_descriptor();
/// The signal that has come; 0 for none.
int signal_that_came();

/// Whatever ends the process at once gives the terminal these settings back, until leave_terminal_at_signals().
void restore_terminal_at_signals(int terminal, const termios &before);
void leave_terminal_at_signals();
/// From here on what ends the process at once resets the colours of standard output, where that is a terminal.
void end_drawing_at_signals();

#endif
