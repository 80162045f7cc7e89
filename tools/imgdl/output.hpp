// Where pictures are saved. A file has its name when it is whole, and not before; what is no file (a device, a pipe) is
// written to, and left as it is.
#ifndef OUTPUT_HPP
#define OUTPUT_HPP

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "arguments.hpp"
#include "descriptors.hpp"
#include "draft.hpp"
#include "imgdl.hpp"
#include "saved-file.hpp"

class Output {
  public:
    /// Makes the folder, where it is one, and sees whether files can be made there. Throws std::system_error.
    explicit Output(const Arguments &arguments);
    ~Output();
    Output(const Output &) = delete;
    Output &operator=(const Output &) = delete;

    /// False where pictures are drawn, and nothing else is asked for.
    bool is_wanted() const { return kind_ != Kind::nothing; }
    /// Of what goes to a stream, or is drawn, nothing is left that a later run could find.
    bool is_of_files() const { return kind_ == Kind::folder || kind_ == Kind::file; }

    /// Told of a file that is whole, before it has its name.
    using BeforePlacing = std::function<void(const SavedFile &)>;

    /// Saves under that name, or the next number of it that is free. With before_placing, which is told of each file, it is
    /// on the disk when this returns. Gives the path, "" for standard output. Throws std::system_error.
    std::string save(const std::string &name, imgdl::Bytes bytes, const BeforePlacing &before_placing);
    /// Whether that very file is where it was to be; its name is on the disk then. Throws std::system_error.
    bool holds(const SavedFile &saved) const;
    /// Whether what an earlier run saved is where this one would save it: as it was left, or with another content.
    enum class Found { nothing, changed, as_saved };
    Found find(const SavedFile &saved) const;
    /// The path of what is there.
    std::string path_of(const SavedFile &saved) const { return kind_ == Kind::file ? path_ : path_in_folder(saved.name); }

  private:
    enum class Kind { nothing, folder, file, descriptor };
    static void prepare(int folder, const std::string &path);
    std::unique_ptr<Draft> draft(int folder, const std::string &path);
    std::string save_in_folder(const std::string &name, imgdl::Bytes bytes, const BeforePlacing &before_placing);
    std::string path_in_folder(const std::string &name) const;
    void replace(imgdl::Bytes bytes, const BeforePlacing &before_placing);

    Kind kind_ = Kind::folder;
    std::string path_ = "."; // of the folder, or the file
    int descriptor_ = -1;    // of the folder, or what is written to
    // How far the numbers of a name have come, so that not all are tried again. Forgotten when there are many.
    std::unordered_map<std::string, unsigned> numbers_;
    SpareDescriptors spare_;
};

#endif
