// One certain file, which a name alone is not: another program may have put its own there.
#ifndef SAVED_FILE_HPP
#define SAVED_FILE_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>

/// Numbers are used again, by file systems at once: what has a file's number, and was written at another time or is longer
/// or shorter, is another one, or is not as it was left.
struct FileIdentity {
    std::uint64_t device = 0, number = 0, size = 0, changed = 0; ///< changed: nanoseconds since 1970

    explicit FileIdentity(const struct stat &status);
    FileIdentity() = default;
    bool operator==(const FileIdentity &other) const
    {
        return device == other.device && number == other.number && size == other.size && changed == other.changed;
    }
};

struct SavedFile {
    FileIdentity file;
    std::uint64_t folder_device = 0, folder_number = 0;
    std::string name; ///< in the folder

    /// For a line of a journal; without control characters.
    std::string text() const;
    /// Nothing for what text() has not written, and for names that lead elsewhere.
    static std::optional<SavedFile> from(std::string_view text);
};

#endif
