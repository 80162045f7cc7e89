#include "viewer.hpp"

#include <algorithm>
#include <unistd.h>

#include "half-blocks.hpp"
#include "kitty.hpp"
#include "signals.hpp"
#include "stream.hpp"
#include "terminal.hpp"

Viewer::Viewer(const Arguments &arguments)
    : background_(arguments.background), is_terminal_(isatty(STDOUT_FILENO)),
      // Numbers are the terminal's, and other programs draw on it, too.
      number_(static_cast<std::uint32_t>(getpid()) << 8)
{
    show_ = choose_show(arguments.show, background_);
    end_drawing_at_signals();
}

imgdl::DecodeOptions Viewer::decode_options() const
{
    const TerminalSize size = terminal_size(STDOUT_FILENO);
    const std::uint32_t rows = std::max(size.rows, 3u) - 2; // one is the caption's, one the cursor's
    imgdl::DecodeOptions options;
    options.colour = IMGDL_COLOUR_SRGB;
    options.target_width = show_ == Show::kitty ? size.columns * size.cell_width : size.columns;
    options.target_height = rows * (show_ == Show::kitty ? size.cell_height : 2);
    return options;
}

void Viewer::draw(const imgdl::Image &image)
{
    const TerminalSize size = terminal_size(STDOUT_FILENO);
    // In a terminal that has become narrower the lines of before have been broken: it is drawn anew, below.
    if (rows_ > 0 && columns_ > size.columns)
        end_picture();
    const bool is_kitty = show_ == Show::kitty;
    const std::uint32_t rows = is_kitty ? (image.height() + size.cell_height - 1) / size.cell_height
                                        : half_block_rows(image.height());
    // One that a window has become too low for cannot be drawn over: its top is out of reach.
    if (is_terminal_ && rows >= size.rows && !image.is_complete())
        return;
    columns_ = is_kitty ? (image.width() + size.cell_width - 1) / size.cell_width : image.width();
    columns_ = std::min(columns_, size.columns);
    std::string text;
    if (is_kitty) {
        // Room below the cursor, which stays where it is.
        if (rows_ == 0)
            text += std::string(rows, '\n') + "\033[" + std::to_string(rows) + "A\r";
        text += kitty_picture(image, number_);
    } else {
        const BlockStyle style{background_.value_or(Colour{0, 0, 0}), show_ == Show::blocks};
        text = half_blocks(image, columns_, style);
        if (is_terminal_)
            text += "\033[" + std::to_string(rows) + "A";
    }
    rows_ = rows;
    write_to_stream(STDOUT_FILENO, imgdl::Bytes(text), "standard output");
}

void Viewer::end_picture()
{
    if (rows_ > 0 && (is_terminal_ || show_ == Show::kitty)) {
        const std::string text = "\033[" + std::to_string(rows_) + "B\r";
        write_to_stream(STDOUT_FILENO, imgdl::Bytes(text), "standard output");
    }
    rows_ = 0;
    number_++;
}
