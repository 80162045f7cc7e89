#include "half-blocks.hpp"

#include <algorithm>
#include <cstdlib>

namespace {

// Only what is ready may be read: the rest is being written.
Colour pixel_at(const imgdl::Image &image, const imgdl_rectangle &ready, std::uint32_t x, std::uint32_t y, Colour under)
{
    if (x < ready.x || y < ready.y || x - ready.x >= ready.width || y - ready.y >= ready.height)
        return under;
    const std::uint8_t *pixel = image.row(y) + 4 * static_cast<std::size_t>(x);
    const auto over = [alpha = pixel[3]](std::uint8_t value, std::uint8_t below) {
        return static_cast<std::uint8_t>((value * alpha + below * (255 - alpha) + 127) / 255);
    };
    return {over(pixel[0], under.red), over(pixel[1], under.green), over(pixel[2], under.blue)};
}

std::string colour_code(Colour colour, const BlockStyle &style)
{
    if (!style.has_24_bits)
        return "5;" + std::to_string(nearest_of_256(colour));
    return "2;" + std::to_string(colour.red) + ";" + std::to_string(colour.green) + ";" + std::to_string(colour.blue);
}

} // namespace

unsigned nearest_of_256(Colour colour)
{
    static const int levels[] = {0, 95, 135, 175, 215, 255};
    const auto nearest_level = [](int value) {
        return static_cast<unsigned>(std::min_element(levels, levels + 6, [value](int one, int other) {
                                         return std::abs(one - value) < std::abs(other - value);
                                     }) - levels);
    };
    const auto distance = [&](int red, int green, int blue) {
        const int r = red - colour.red, g = green - colour.green, b = blue - colour.blue;
        return r * r + g * g + b * b;
    };
    const unsigned red = nearest_level(colour.red), green = nearest_level(colour.green);
    const unsigned blue = nearest_level(colour.blue);
    const int mean = (colour.red + colour.green + colour.blue) / 3;
    const int gray = std::clamp((mean - 3) / 10, 0, 23), shade = 8 + 10 * gray;
    if (distance(shade, shade, shade) < distance(levels[red], levels[green], levels[blue]))
        return 232 + static_cast<unsigned>(gray);
    return 16 + 36 * red + 6 * green + blue;
}

std::string half_blocks(const imgdl::Image &image, std::uint32_t columns, const BlockStyle &style)
{
    const imgdl_rectangle ready = image.ready();
    const std::uint32_t width = std::min(image.width(), columns);
    std::string text;
    for (std::uint32_t y = 0; y < image.height(); y += 2) {
        std::string colours; // those of the character before
        for (std::uint32_t x = 0; x < width; x++) {
            const std::string upper = colour_code(pixel_at(image, ready, x, y, style.background), style);
            const std::string lower = y + 1 < image.height()
                ? "48;" + colour_code(pixel_at(image, ready, x, y + 1, style.background), style)
                : "49";
            const std::string wanted = "\033[38;" + upper + ";" + lower + "m";
            text += wanted == colours ? "" : wanted;
            text += "▀";
            colours = wanted;
        }
        text += "\033[0m\r\n";
    }
    return text;
}
