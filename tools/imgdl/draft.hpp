// A file that has no name yet. It gets one when it is whole.
#ifndef DRAFT_HPP
#define DRAFT_HPP

#include <string>
#include <unistd.h>

#include "imgdl.hpp"
#include "saved-file.hpp"

/// In a folder that stays open as long as this. Where the file system has files without names nobody has to clean up after
/// it; elsewhere it has a hidden one, which remove_leftovers takes away after a run that was killed. All of it throws
/// std::system_error, with the folder's path.
class Draft {
  public:
    Draft(int folder, std::string path);
    Draft(const Draft &) = delete;
    Draft &operator=(const Draft &) = delete;
    ~Draft() { discard(); }

    void write(imgdl::Bytes bytes);
    /// Its bytes are on the disk when it returns.
    void sync();
    FileIdentity identity() const;

    /// False where there is something of that name.
    bool place(const std::string &name);
    /// In place of what is there.
    void replace(const std::string &name);

  private:
    [[noreturn]] void fail(const std::string &name) const;
    void open_hidden();
    bool is_mine() const;
    void discard() noexcept;

    int folder_, descriptor_ = -1;
    std::string path_, name_; // the hidden name, while there is one
};

/// Drafts of runs of this user's that were killed are removed. What a run still has is locked, and left alone.
void remove_leftovers(int folder);

/// A folder's names are on the disk when it returns. Throws std::system_error.
void sync_folder(int folder, const std::string &path);

/// Throws std::system_error. The caller closes it.
int open_folder(const std::string &path);

/// One that is open for as long as this lives.
class Folder {
  public:
    explicit Folder(const std::string &path) : descriptor_(open_folder(path)) {}
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder() { close(descriptor_); }
    int descriptor() const { return descriptor_; }

  private:
    int descriptor_;
};

/// Where the file is: "." for one without a folder.
std::string folder_of(const std::string &path);

#endif
