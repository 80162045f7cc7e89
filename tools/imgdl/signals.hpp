// Signals that ask this program to end. The first one is noted, and a descriptor becomes readable; the second one, of
// whichever kind, ends the process at once.
#ifndef SIGNALS_HPP
#define SIGNALS_HPP

/// SIGINT, SIGTERM and SIGHUP, where they are not ignored; SIGPIPE becomes an error of write. Throws std::system_error.
void watch_signals();
/// Readable once a signal has come.
int signal_descriptor();
/// The signal that has come; 0 for none.
int signal_that_came();

#endif
