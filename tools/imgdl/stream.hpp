// Writing to somebody who reads: a pipe, a terminal, a socket, also one that others have made not to wait.
#ifndef STREAM_HPP
#define STREAM_HPP

#include <string>

#include "imgdl.hpp"

/// Writes everything, and waits for who reads, whether or not the descriptor waits by itself. Once one of signals.hpp has come,
/// whoever reads has half a second to take what there is, for all streams, from the first call that waits as it comes, or begins after;
/// after that only what is taken at once is written. Throws std::system_error, with EINTR for what was not taken then.
void write_to_stream(int descriptor, imgdl::Bytes bytes, const std::string &name);

#endif
