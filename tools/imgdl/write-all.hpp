// Writing to a file, which takes everything or fails.
#ifndef WRITE_ALL_HPP
#define WRITE_ALL_HPP

#include <string>

#include "imgdl.hpp"

/// Writes everything; throws std::system_error. What somebody reads meanwhile is for write_to_stream.
void write_all(int descriptor, imgdl::Bytes bytes, const std::string &name);

#endif
