#include "draft.hpp"

#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "text.hpp"
#include "write-all.hpp"

static const char prefix[] = ".imgdl-";

static std::string hidden_name(pid_t process, unsigned attempt)
{
    return prefix + std::to_string(process) + "-" + std::to_string(attempt);
}

void Draft::fail(const std::string &name) const
{
    const int code = errno;
    throw std::system_error(code, std::generic_category(), printable(name.empty() ? path_ : path_ + "/" + name));
}

Draft::Draft(int folder, std::string path) : folder_(folder), path_(std::move(path))
{
    if (access("/proc/self/fd", X_OK) == 0)
        descriptor_ = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EMFILE && errno != ENFILE)
        open_hidden();
    if (descriptor_ < 0)
        fail("");
}

// Locked from the beginning; one that somebody took for a leftover before that is made anew.
void Draft::open_hidden()
{
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        name_ = hidden_name(getpid(), attempt);
        descriptor_ = openat(folder_, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor_ < 0 && errno == EEXIST)
            continue;
        if (descriptor_ < 0 || flock(descriptor_, LOCK_EX | LOCK_NB) != 0 || is_mine())
            return;
        close(std::exchange(descriptor_, -1));
    }
    errno = EEXIST;
}

bool Draft::is_mine() const
{
    struct stat own, there;
    return fstat(descriptor_, &own) == 0 && fstatat(folder_, name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

void Draft::write(imgdl::Bytes bytes) { write_all(descriptor_, bytes, path_); }

void Draft::sync()
{
    if (fsync(descriptor_) != 0)
        fail("");
}

FileIdentity Draft::identity() const
{
    struct stat status;
    if (fstat(descriptor_, &status) != 0)
        fail("");
    return FileIdentity(status);
}

bool Draft::place(const std::string &name)
{
    if (!name_.empty()) {
        if (renameat2(folder_, name_.c_str(), folder_, name.c_str(), RENAME_NOREPLACE) == 0) {
            name_.clear();
            return true;
        }
        if (errno == EEXIST)
            return false;
    }
    const std::string source = "/proc/self/fd/" + std::to_string(descriptor_);
    const int code = name_.empty() ? linkat(AT_FDCWD, source.c_str(), folder_, name.c_str(), AT_SYMLINK_FOLLOW)
                                   : linkat(folder_, name_.c_str(), folder_, name.c_str(), 0);
    if (code != 0 && errno != EEXIST)
        fail(name);
    return code == 0;
}

void Draft::replace(const std::string &name)
{
    if (name_.empty()) {
        // Without a lock, too, it only has to be gone sooner than somebody looks.
        (void)flock(descriptor_, LOCK_EX | LOCK_NB);
        for (unsigned attempt = 0; name_.empty(); attempt++) {
            const std::string hidden = hidden_name(getpid(), attempt);
            if (place(hidden))
                name_ = hidden;
        }
    }
    if (renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0)
        fail(name);
    name_.clear();
}

void Draft::discard() noexcept
{
    if (!name_.empty() && descriptor_ >= 0)
        unlinkat(folder_, name_.c_str(), 0);
    name_.clear();
    if (descriptor_ >= 0)
        close(std::exchange(descriptor_, -1));
}

// Nothing else than hidden_name() makes: what only looks like it is somebody's.
static bool is_hidden_name(std::string_view name)
{
    pid_t process = 0;
    unsigned attempt = 0;
    const std::size_t dash = name.rfind('-');
    if (dash == name.npos || dash < sizeof prefix - 1)
        return false;
    std::from_chars(name.data() + sizeof prefix - 1, name.data() + dash, process);
    std::from_chars(name.data() + dash + 1, name.data() + name.size(), attempt);
    return process > 0 && name == hidden_name(process, attempt);
}

void remove_leftovers(int folder)
{
    const int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR *)> entries(listed < 0 ? nullptr : fdopendir(listed), closedir);
    if (!entries && listed >= 0)
        close(listed);
    for (const dirent *entry; entries && (entry = readdir(entries.get()));) {
        if (!is_hidden_name(entry->d_name))
            continue;
        const int file = openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (file < 0)
            continue;
        struct stat status, there;
        if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
            flock(file, LOCK_EX | LOCK_NB) == 0 &&
            fstatat(folder, entry->d_name, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_ino == status.st_ino &&
            there.st_dev == status.st_dev)
            unlinkat(folder, entry->d_name, 0);
        close(file);
    }
}

void sync_folder(int folder, const std::string &path)
{
    // Some file systems have no such thing, and need none.
    if (fsync(folder) != 0 && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        throw std::system_error(errno, std::generic_category(), printable(path));
}

int open_folder(const std::string &path)
{
    const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        throw std::system_error(errno, std::generic_category(), printable(path));
    return descriptor;
}

std::string folder_of(const std::string &path)
{
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}
