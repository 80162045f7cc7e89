#include "progress.hpp"

#include <algorithm>
#include <system_error>
#include <unistd.h>

#include "stream.hpp"
#include "terminal.hpp"
#include "text.hpp"

Progress::Progress(bool has_bars) : has_bars_(has_bars && isatty(STDERR_FILENO) && terminal_obeys()) {}

void Progress::write(const std::string &text)
{
    try {
        if (!is_gone_)
            write_to_stream(STDERR_FILENO, imgdl::Bytes(text), "standard error");
    } catch (const std::system_error &) {
        is_gone_ = true; // downloads go on without an audience
    }
}

// Terminals break lines again when they become narrower: each then takes more rows than it did.
std::string Progress::erased()
{
    const std::size_t columns = terminal_size(STDERR_FILENO).columns;
    std::size_t rows = 0;
    for (const std::size_t width : drawn_)
        rows += std::max<std::size_t>(1, (width + columns - 1) / columns);
    drawn_.clear();
    return rows > 0 ? "\033[" + std::to_string(rows) + "A\r\033[J" : "";
}

void Progress::say(const std::string &line) { write(erased() + line + "\n"); }

void Progress::clear() { write(erased()); }

void Progress::draw(const std::vector<Bar> &bars, const std::string &total)
{
    if (!has_bars_)
        return;
    std::string text = erased();
    const TerminalSize size = terminal_size(STDERR_FILENO);
    const std::size_t columns = std::max(size.columns, 2u) - 1; // a line in the last column may be a line more
    const std::size_t room = std::max(size.rows, 4u) - 3;
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < std::min(bars.size(), room); i++)
        lines.push_back(bar_line(bars[i], columns));
    lines.push_back(cut_to(total, columns));
    for (const std::string &line : lines) {
        text += line + "\n";
        drawn_.push_back(columns_of(line));
    }
    write(text);
}

std::string bar_line(const Bar &bar, std::size_t columns)
{
    const std::size_t name_width = std::min<std::size_t>(32, std::max<std::size_t>(columns / 3, 8));
    const std::string name = cut_to(bar.name, name_width);
    std::string amount = bar.received > 0 ? amount_of(bar.received) : "";
    if (bar.expected > 0)
        amount += (amount.empty() ? "" : " of ") + amount_of(bar.expected);
    const std::size_t taken = name_width + 3 + 20;
    const std::size_t width = columns > taken + 8 ? std::min<std::size_t>(40, columns - taken) : 0;
    std::string line = name + std::string(name_width - columns_of(name), ' ') + " ";
    if (width > 0) {
        const double whole = bar.expected > 0 ? static_cast<double>(bar.expected) : 1e300;
        const double part = std::clamp(static_cast<double>(bar.received) / whole, 0.0, 1.0);
        const std::size_t filled = static_cast<std::size_t>(part * static_cast<double>(width));
        line += "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
    }
    return cut_to(line + amount, columns);
}
