// What a run has done, so that the next one goes on from there. Lines are only ever added, each in one write: after
// kill -9 at most the last one is cut, and that is passed over. Files stand in it as digests of their addresses and of what
// is made of these, and for a person as addresses without the values of their queries:
//
//     imgdl-journal 1
//     save 8f3a… 803:1a2b:6f30:… photo.jpg       its file, which is whole, will have this name
//     done 8f3a…
//     fail 11c0… IMGDL_ERROR_INVALID_STATUS 404 https://example.org/other.jpg
#ifndef JOURNAL_HPP
#define JOURNAL_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "saved-file.hpp"

/// A picture that is saved. Another size of the same picture is another one.
struct Wanted {
    std::string url;
    std::string kind; ///< kind_of_file() of the arguments
};

class Journal {
  public:
    /// Reads what is there; makes the file where there is none. Throws std::system_error, and std::runtime_error where
    /// the file is something else, or another run has it.
    explicit Journal(const std::string &path);
    ~Journal();
    Journal(const Journal &) = delete;
    Journal &operator=(const Journal &) = delete;

    bool is_done(const Wanted &wanted) const;
    /// Its file, which may not have got its name where a run was killed. Nothing where there was no file, as older versions noted
    /// streams and drawn pictures, and for lines that somebody else has written. Throws std::system_error.
    std::optional<SavedFile> saved(const Wanted &wanted) const;

    /// Whether another file has been saved since in the place of its own. Reads all that was noted since. Throws
    /// std::system_error.
    bool is_replaced(const Wanted &wanted) const;

    /// On the disk when it returns.
    void note_saving(const Wanted &wanted, const SavedFile &file);
    void note_done(const Wanted &wanted);
    void note_failed(const Wanted &wanted, const std::string &why, const std::string &shown);

  private:
    // The names stay in the file: this takes some 60 bytes for each address.
    struct Entry {
        std::int64_t saved = -1; // where its last line of a file begins
        bool is_done = false;    // since that line
    };
    static void note_done(Entry &entry);
    static std::uint64_t digest(const Wanted &wanted);
    void read();
    void take(std::string_view line, std::int64_t offset);
    void append(const std::string &line);

    std::string path_;
    int descriptor_ = -1;
    std::unordered_map<std::uint64_t, Entry> entries_;
};

#endif
