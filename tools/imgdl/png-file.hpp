// A picture as a PNG file.
#ifndef PNG_FILE_HPP
#define PNG_FILE_HPP

#include <string>

#include "imgdl.hpp"

/// RGBA8, straight alpha. Throws std::runtime_error.
std::string png_file(const imgdl::Image &image);

#endif
