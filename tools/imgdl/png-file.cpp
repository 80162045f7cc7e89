#include "png-file.hpp"

#include <png.h>
#include <stdexcept>

std::string png_file(const imgdl::Image &image)
{
    png_image png = {};
    png.version = PNG_IMAGE_VERSION;
    png.width = image.width();
    png.height = image.height();
    png.format = PNG_FORMAT_RGBA;
    const auto stride = static_cast<png_int_32>(image.stride());
    png_alloc_size_t size = 0;
    std::string file;
    bool is_written = png_image_write_to_memory(&png, nullptr, &size, 0, image.pixels(), stride, nullptr) != 0;
    if (is_written) {
        file.resize(size);
        is_written = png_image_write_to_memory(&png, file.data(), &size, 0, image.pixels(), stride, nullptr) != 0;
    }
    if (!is_written)
        throw std::runtime_error(std::string("no PNG can be made of it: ") + png.message);
    file.resize(size);
    return file;
}
