// A picture as text: each character is two pixels, one above the other.
#ifndef HALF_BLOCKS_HPP
#define HALF_BLOCKS_HPP

#include <cstdint>
#include <string>

#include "arguments.hpp"
#include "imgdl.hpp"

struct BlockStyle {
    Colour background{0, 0, 0}; ///< under transparent pixels
    bool has_24_bits = true;    ///< else the 256 colours of xterm
};

/// The lines of the picture, each ending with reset colours, CR and LF; what is right of the last column is left out.
/// Of a partial picture the rest is background. RGBA8, straight alpha.
std::string half_blocks(const imgdl::Image &image, std::uint32_t columns, const BlockStyle &style);

/// How many lines that are.
inline std::uint32_t half_block_rows(std::uint32_t height) { return (height + 1) / 2; }

/// The nearest of xterm's colours 16 to 255.
unsigned nearest_of_256(Colour colour);

#endif
