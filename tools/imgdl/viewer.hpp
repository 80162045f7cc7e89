// Draws pictures on standard output, one after the other; one that arrives is drawn over what was there of it.
#ifndef VIEWER_HPP
#define VIEWER_HPP

#include <cstdint>
#include <string>

#include "arguments.hpp"
#include "imgdl.hpp"

class Viewer {
  public:
    explicit Viewer(const Arguments &arguments);

    /// To decode pictures so that they fit into the terminal.
    imgdl::DecodeOptions decode_options() const;
    /// Whether pictures that are not whole can be drawn over: on a terminal alone.
    bool shows_partial() const { return is_terminal_; }
    void draw(const imgdl::Image &image);
    /// What comes next is drawn below.
    void end_picture();

  private:
    Show show_;
    std::optional<Colour> background_;
    bool is_terminal_;
    std::uint32_t number_;     // kitty's, of the picture that is drawn
    std::uint32_t rows_ = 0;   // of the picture, from the cursor down; 0 when nothing is drawn
    std::uint32_t columns_ = 0; // that it takes
};

#endif
