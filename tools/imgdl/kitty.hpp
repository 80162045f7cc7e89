// A picture as kitty's graphics protocol has it: https://sw.kovidgoyal.net/kitty/graphics-protocol/
#ifndef KITTY_HPP
#define KITTY_HPP

#include <cstdint>
#include <string>

#include "imgdl.hpp"

/// Sends and shows it where the cursor is, which stays there. What was shown under the same number is replaced. Of a
/// partial picture the rest is transparent. RGBA8, straight alpha.
std::string kitty_picture(const imgdl::Image &image, std::uint32_t number);

std::string base64(imgdl::Bytes bytes);

#endif
