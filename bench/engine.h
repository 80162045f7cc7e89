/* What is measured of the engine, each in a process of its own: the rows of bench/engine.c call these, and read what
 * they print, numbers with spaces between them. */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

/* Beside `standing` requests that wait, a burst of 10,000. Prints microseconds of CPU of all threads for each:
 * download() until the engine has it in its queue; one token's cancel to its terminal; the terminal of one among all that
 * are cancelled at once. Then bytes for each that waits (0 where there are few), allocated and resident. */
void measure_waiting(int standing);
/* Downloads that a registered transport answers at once with no bytes. Prints microseconds of CPU for each. */
void measure_answered(int count);
/* Subscribers that join one running transfer of a registered transport, until their terminals. Prints microseconds of
 * CPU and bytes for each. */
void measure_joining(int count);
/* Prints the medians of microseconds from the send() of the last byte to the terminal, and to the end that libcurl tells
 * a program that drives it by hand. */
void measure_latency(int rounds);
/* For bench/chunk-instructions: `transfers` over HTTP/1.1 get `rounds` chunks of 1,000 bytes each, in turn. */
void run_chunks(int transfers, int rounds);

#endif
