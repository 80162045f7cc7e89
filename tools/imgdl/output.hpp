// Where pictures are saved. A file has its name when it is whole, and not before; what is no file (a device, a pipe) is
// written to, and left as it is.
#ifndef OUTPUT_HPP
#define OUTPUT_HPP

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "arguments.hpp"
#include "imgdl.hpp"

class Output {
  public:
    /// Makes the folder, where it is one. Throws std::system_error.
    explicit Output(const Arguments &arguments);
    ~Output();
    Output(const Output &) = delete;
    Output &operator=(const Output &) = delete;

    /// False where pictures are drawn, and nothing else is asked for.
    bool is_wanted() const { return kind_ != Kind::nothing; }

    /// Saves under that name, or the next number of it that is free; with `again` under that one, in place of what is
    /// there. before_placing is told the name before there is such a file. Gives the path, "" for standard output.
    /// Throws std::system_error.
    std::string save(const std::string &name, imgdl::Bytes bytes, const std::optional<std::string> &again,
                     const std::function<void(const std::string &)> &before_placing);

  private:
    enum class Kind { nothing, folder, file, descriptor };
    std::string save_in_folder(const std::string &name, imgdl::Bytes bytes, const std::optional<std::string> &again,
                               const std::function<void(const std::string &)> &before_placing);
    void replace(const std::string &path, imgdl::Bytes bytes);

    Kind kind_ = Kind::folder;
    std::string path_ = "."; // of the folder, or the file
    int descriptor_ = -1;    // of the folder, or what is written to
    // How far the numbers of a name have come, so that not all are tried again. Forgotten when there are many.
    std::unordered_map<std::string, unsigned> numbers_;
};

/// Writes everything; throws std::system_error.
void write_all(int descriptor, imgdl::Bytes bytes, const std::string &name);

#endif
