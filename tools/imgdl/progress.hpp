// What is said on standard error: lines that stay, and on a terminal, below them, bars that move.
#ifndef PROGRESS_HPP
#define PROGRESS_HPP

#include <cstdint>
#include <string>
#include <vector>

struct Bar {
    std::string name; ///< fit for a terminal
    std::int64_t received = 0, expected = -1;
};

class Progress {
  public:
    /// has_bars: where standard error is a terminal that can move its cursor.
    explicit Progress(bool has_bars);

    bool has_bars() const { return has_bars_; }
    /// A line that stays.
    void say(const std::string &line);
    /// Bars as they are now, as many as there is room for, and a last line about all of them.
    void draw(const std::vector<Bar> &bars, const std::string &total);
    /// Takes the bars away.
    void clear();

  private:
    std::string erased();
    void write(const std::string &text);

    bool has_bars_;
    bool is_gone_ = false;              // nobody reads any more
    std::vector<std::size_t> drawn_;    // columns of the lines that are there
};

/// One line of at most so many columns.
std::string bar_line(const Bar &bar, std::size_t columns);

#endif
