#include "kitty.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

// The protocol allows no more of a picture in one escape.
static const std::size_t chunk_size = 4096;

std::string base64(imgdl::Bytes bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; k++)
            group = group << 8 | (k < count ? bytes.data()[i + k] : 0u);
        for (std::size_t k = 0; k < 4; k++)
            text += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
    return text;
}

std::string kitty_picture(const imgdl::Image &image, std::uint32_t number)
{
    const std::size_t row = 4 * static_cast<std::size_t>(image.width());
    std::vector<std::uint8_t> pixels(row * image.height());
    const imgdl_rectangle ready = image.ready();
    for (std::uint32_t y = ready.y; y < ready.y + ready.height; y++)
        std::memcpy(&pixels[y * row + 4 * static_cast<std::size_t>(ready.x)],
                    image.row(y) + 4 * static_cast<std::size_t>(ready.x), 4 * static_cast<std::size_t>(ready.width));
    const std::string encoded = base64({pixels.data(), pixels.size()});

    std::string text;
    for (std::size_t at = 0; at < encoded.size(); at += chunk_size) {
        const bool is_last = encoded.size() - at <= chunk_size;
        text += "\033_G";
        if (at == 0)
            text += "a=T,f=32,s=" + std::to_string(image.width()) + ",v=" + std::to_string(image.height()) +
                    ",i=" + std::to_string(number) + ",p=1,C=1,q=2,";
        text += is_last ? "m=0;" : "m=1;";
        text.append(encoded, at, chunk_size);
        text += "\033\\";
    }
    return text;
}
