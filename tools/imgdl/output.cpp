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
#include "text.hpp"

namespace {

[[noreturn]] void fail(const std::string &name)
{
    throw std::system_error(errno, std::generic_category(), printable(name));
}

// What has these names is a way to something else, also where a shell has led it to a file.
bool names_a_device(const std::string &path)
{
    return path.compare(0, 5, "/dev/") == 0 || path.compare(0, 6, "/proc/") == 0;
}

int open_device(const std::string &path)
{
    // Opened anew, a file behind /dev/stdout would be written from its beginning.
    if (path == "/dev/stdout")
        return dup(STDOUT_FILENO);
    if (path == "/dev/stderr")
        return dup(STDERR_FILENO);
    if (path.compare(0, 8, "/dev/fd/") == 0)
        return dup(std::atoi(path.c_str() + 8));
    return open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

// A file without a name, which nobody has to clean up after; where the file system has none, one with a hidden name.
class Draft {
  public:
    Draft(int folder, const std::string &path, imgdl::Bytes bytes) : folder_(folder), path_(path)
    {
        if (access("/proc/self/fd", X_OK) == 0)
            descriptor_ = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
        for (unsigned attempt = 0; descriptor_ < 0 && attempt < 100; attempt++) {
            name_ = hidden_name(attempt);
            descriptor_ = openat(folder, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            if (descriptor_ < 0 && errno != EEXIST)
                break;
        }
        if (descriptor_ < 0)
            fail(path);
        try {
            write_all(descriptor_, bytes, path);
        } catch (...) {
            discard();
            throw;
        }
    }
    Draft(const Draft &) = delete;
    Draft &operator=(const Draft &) = delete;
    ~Draft() { discard(); }

    // False where there is something of that name.
    bool place(const std::string &name)
    {
        const std::string source = "/proc/self/fd/" + std::to_string(descriptor_);
        const int code = name_.empty() ? linkat(AT_FDCWD, source.c_str(), folder_, name.c_str(), AT_SYMLINK_FOLLOW)
                                       : linkat(folder_, name_.c_str(), folder_, name.c_str(), 0);
        if (code != 0 && errno != EEXIST)
            fail(path_ + "/" + name);
        return code == 0;
    }
    // In place of what is there.
    void replace(const std::string &name)
    {
        for (unsigned attempt = 0; name_.empty(); attempt++) {
            const std::string hidden = hidden_name(attempt);
            if (place(hidden))
                name_ = hidden;
        }
        if (renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0)
            fail(path_ + "/" + name);
        name_.clear();
    }

  private:
    static std::string hidden_name(unsigned attempt)
    {
        return ".imgdl-" + std::to_string(getpid()) + "-" + std::to_string(attempt);
    }
    void discard() noexcept
    {
        if (!name_.empty())
            unlinkat(folder_, name_.c_str(), 0);
        name_.clear();
        if (descriptor_ >= 0)
            close(descriptor_);
        descriptor_ = -1;
    }

    int folder_, descriptor_ = -1;
    std::string path_, name_; // the hidden name, while there is one
};

int open_folder(const std::string &path)
{
    const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        fail(path);
    return descriptor;
}

} // namespace

void write_all(int descriptor, imgdl::Bytes bytes, const std::string &name)
{
    std::size_t written = 0;
    while (written < bytes.size()) {
        const ssize_t count = write(descriptor, bytes.data() + written, bytes.size() - written);
        if (count < 0 && errno != EINTR)
            fail(name);
        written += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
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
        struct stat status;
        const bool is_there = stat(path_.c_str(), &status) == 0;
        if (names_a_device(path_) ? !(is_there && S_ISDIR(status.st_mode))
                                  : is_there && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
            kind_ = Kind::descriptor;
            descriptor_ = open_device(path_);
            if (descriptor_ < 0)
                fail(path_);
            return;
        }
        const bool is_folder = is_there ? S_ISDIR(status.st_mode) : path_.back() == '/' || arguments.has_many();
        if (!is_folder && arguments.has_many())
            throw std::system_error(ENOTDIR, std::generic_category(), printable(path_));
        kind_ = is_folder ? Kind::folder : Kind::file;
    }
    if (kind_ == Kind::folder) {
        std::error_code error;
        std::filesystem::create_directories(path_, error);
        if (error)
            throw std::system_error(error, printable(path_));
        descriptor_ = open_folder(path_);
    }
}

Output::~Output()
{
    if (descriptor_ > STDERR_FILENO)
        close(descriptor_);
}

std::string Output::save(const std::string &name, imgdl::Bytes bytes, const std::optional<std::string> &again,
                         const std::function<void(const std::string &)> &before_placing)
{
    switch (kind_) {
    case Kind::nothing:
        break;
    case Kind::folder:
        return save_in_folder(name, bytes, again, before_placing);
    case Kind::file:
        replace(path_, bytes);
        return path_;
    case Kind::descriptor:
        write_all(descriptor_, bytes, path_.empty() ? "standard output" : path_);
        return path_;
    }
    return "";
}

std::string Output::save_in_folder(const std::string &name, imgdl::Bytes bytes, const std::optional<std::string> &again,
                                   const std::function<void(const std::string &)> &before_placing)
{
    Draft draft(descriptor_, path_, bytes);
    const std::string prefix = path_ == "." ? "" : path_.back() == '/' ? path_ : path_ + "/";
    if (again) {
        draft.replace(*again);
        return prefix + *again;
    }
    if (numbers_.size() > 100000)
        numbers_.clear();
    for (unsigned &number = numbers_[name];; number++) {
        const std::string candidate = numbered(name, number);
        struct stat status;
        if (fstatat(descriptor_, candidate.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        before_placing(candidate);
        if (draft.place(candidate)) {
            number++;
            return prefix + candidate;
        }
    }
}

// A link that leads to a file stays one.
void Output::replace(const std::string &path, imgdl::Bytes bytes)
{
    char resolved[PATH_MAX];
    const std::string whole = realpath(path.c_str(), resolved) ? resolved : path;
    const std::size_t slash = whole.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : whole.substr(0, slash);
    const int descriptor = open_folder(folder);
    try {
        Draft(descriptor, folder, bytes).replace(whole.substr(slash + 1));
    } catch (...) {
        close(descriptor);
        throw;
    }
    close(descriptor);
}
