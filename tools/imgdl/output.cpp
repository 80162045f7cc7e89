#include "output.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "output-naming.hpp"
#include "output-place.hpp"
#include "stream.hpp"
#include "text.hpp"

[[noreturn]] static void fail(const std::string &name)
{
    const int code = errno;
    throw std::system_error(code, std::generic_category(), printable(name));
}

static std::string resolved(const std::string &path)
{
    char target[PATH_MAX];
    return realpath(path.c_str(), target) ? target : path;
}

// What reads the file later goes by its name.
static void check_name_of_png(const std::string &path)
{
    const std::string name = path.substr(path.rfind('/') + 1);
    const std::string_view format = format_named_by(name);
    if (!format.empty() && format != format_name(IMGDL_FORMAT_PNG))
        throw UsageError("-o: " + printable(path) + " is the name of a " + std::string(format) +
                         ", but with --width or --height a PNG is saved: name it " +
                         printable(with_extension(name, IMGDL_FORMAT_PNG)));
}

Output::Output(const Arguments &arguments)
{
    if (!arguments.output) {
        kind_ = arguments.show == Show::nothing ? Kind::folder : Kind::nothing;
    } else if (*arguments.output == "-") {
        kind_ = Kind::descriptor;
        descriptor_ = STDOUT_FILENO;
        path_ = "";
        return;
    } else {
        path_ = *arguments.output;
        const OutputPlace place = output_place(path_);
        if (place == OutputPlace::stream) {
            kind_ = Kind::descriptor;
            descriptor_ = open_stream(path_);
            return;
        }
        const bool is_there = place != OutputPlace::nothing;
        const bool is_folder =
            is_there ? place == OutputPlace::folder : path_.back() == '/' || arguments.has_many();
        if (!is_folder && arguments.has_many())
            throw std::system_error(ENOTDIR, std::generic_category(), printable(path_));
        kind_ = is_folder ? Kind::folder : Kind::file;
        if (!is_folder && arguments.wants_thumbnails())
            check_name_of_png(path_);
    }
    if (kind_ == Kind::folder) {
        std::error_code error;
        std::filesystem::create_directories(path_, error);
        if (error)
            throw std::system_error(error, printable(path_));
        descriptor_ = open_folder(path_);
        prepare(descriptor_, path_);
    } else if (kind_ == Kind::file) {
        const std::string folder = folder_of(resolved(path_));
        const Folder opened(folder);
        prepare(opened.descriptor(), folder);
    }
}

// That nothing can be written there is to be seen before anything is downloaded.
void Output::prepare(int folder, const std::string &path)
{
    remove_leftovers(folder);
    const Draft draft(folder, path);
}

Output::~Output()
{
    if (descriptor_ > STDERR_FILENO)
        close(descriptor_);
}

std::string Output::save(const std::string &name, imgdl::Bytes bytes, const BeforePlacing &before_placing)
{
    // Whatever becomes of it, the next one has the spare descriptors again.
    struct Holding {
        SpareDescriptors &spare;
        ~Holding() { spare.hold(); }
    } const holding{spare_};
    switch (kind_) {
    case Kind::nothing:
        break;
    case Kind::folder:
        return save_in_folder(name, bytes, before_placing);
    case Kind::file:
        replace(bytes, before_placing);
        return path_;
    case Kind::descriptor:
        write_to_stream(descriptor_, bytes, path_.empty() ? "standard output" : path_);
        return path_;
    }
    return "";
}

std::unique_ptr<Draft> Output::draft(int folder, const std::string &path)
{
    spare_.give();
    for (;;) {
        try {
            return std::make_unique<Draft>(folder, path);
        } catch (const std::system_error &error) {
            const int code = error.code().value();
            if ((code != EMFILE && code != ENFILE) || !spare_.awaits_another())
                throw;
        }
    }
}

// Its bytes are on the disk then.
static SavedFile synced(Draft &draft, int folder, const std::string &path)
{
    draft.sync();
    struct stat status;
    if (fstat(folder, &status) != 0)
        fail(path);
    SavedFile saved;
    saved.file = draft.identity();
    saved.folder_device = status.st_dev;
    saved.folder_number = status.st_ino;
    return saved;
}

std::string Output::save_in_folder(const std::string &name, imgdl::Bytes bytes, const BeforePlacing &before_placing)
{
    std::unique_ptr<Draft> draft = this->draft(descriptor_, path_);
    draft->write(bytes);
    SavedFile saved;
    if (before_placing)
        saved = synced(*draft, descriptor_, path_);
    if (numbers_.size() > 100000)
        numbers_.clear();
    for (unsigned &number = numbers_[name];; number++) {
        saved.name = numbered(name, number);
        struct stat status;
        if (fstatat(descriptor_, saved.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        if (before_placing)
            before_placing(saved);
        if (!draft->place(saved.name))
            continue;
        number++;
        if (before_placing)
            sync_folder(descriptor_, path_);
        draft.reset();
        return path_in_folder(saved.name);
    }
}

std::string Output::path_in_folder(const std::string &name) const
{
    return (path_ == "." ? "" : path_.back() == '/' ? path_ : path_ + "/") + name;
}

bool Output::holds(const SavedFile &saved) const
{
    struct stat folder, file;
    if (kind_ != Kind::folder || fstat(descriptor_, &folder) != 0 || folder.st_dev != saved.folder_device ||
        folder.st_ino != saved.folder_number ||
        fstatat(descriptor_, saved.name.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(file.st_mode) ||
        !(FileIdentity(file) == saved.file))
        return false;
    sync_folder(descriptor_, path_);
    return true;
}

// Numbers of devices may be others after a restart. A folder that was copied whole has its files' sizes and times.
Output::Found Output::find(const SavedFile &saved) const
{
    struct stat folder, status;
    if (kind_ == Kind::folder) {
        if (fstat(descriptor_, &folder) != 0 || fstatat(descriptor_, saved.name.c_str(), &status, 0) != 0)
            return Found::nothing;
    } else {
        const std::string target = resolved(path_);
        if (safe_name(target.substr(target.rfind('/') + 1)) != saved.name || stat(target.c_str(), &status) != 0 ||
            stat(folder_of(target).c_str(), &folder) != 0)
            return Found::nothing;
    }
    if (!S_ISREG(status.st_mode))
        return Found::nothing;
    const FileIdentity file(status);
    if (file.size == saved.file.size && file.changed == saved.file.changed)
        return Found::as_saved;
    return folder.st_ino == saved.folder_number ? Found::changed : Found::nothing;
}

// A link that leads to a file stays one.
void Output::replace(imgdl::Bytes bytes, const BeforePlacing &before_placing)
{
    const std::string target = resolved(path_), folder = folder_of(target), name = target.substr(target.rfind('/') + 1);
    spare_.give();
    const Folder opened(folder);
    {
        const std::unique_ptr<Draft> draft = this->draft(opened.descriptor(), folder);
        draft->write(bytes);
        if (before_placing) {
            SavedFile saved = synced(*draft, opened.descriptor(), folder);
            saved.name = safe_name(name);
            before_placing(saved);
        }
        draft->replace(name);
    }
    if (before_placing)
        sync_folder(opened.descriptor(), folder);
}
