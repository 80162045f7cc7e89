#include "journal.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "text.hpp"
#include "write-all.hpp"

static const std::string first_line = "imgdl-journal 1\n";

Journal::Journal(const std::string &path) : path_(printable(path))
{
    descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (descriptor_ < 0)
        throw std::system_error(errno, std::generic_category(), path_);
    try {
        struct stat status;
        if (fstat(descriptor_, &status) != 0)
            throw std::system_error(errno, std::generic_category(), path_);
        if (!S_ISREG(status.st_mode))
            throw std::runtime_error(path_ + " is no file, and cannot be a journal");
        if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
            throw std::runtime_error(path_ + " is the journal of another run that goes on");
        read();
    } catch (...) {
        close(descriptor_);
        throw;
    }
}

Journal::~Journal() { close(descriptor_); }

// FNV-1a, and its bits mixed once more: two of a million addresses are the same about once in forty million runs.
// No address has a NUL, which stands before the kind where there is one.
std::uint64_t Journal::digest(const Wanted &wanted)
{
    std::uint64_t value = 0xCBF29CE484222325u;
    for (const char byte : wanted.kind.empty() ? wanted.url : wanted.url + '\0' + wanted.kind)
        value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
    value = (value ^ (value >> 33)) * 0xFF51AFD7ED558CCDu;
    return value ^ (value >> 33);
}

void Journal::read()
{
    std::string text;
    std::int64_t offset = 0; // of text
    bool is_first = true;
    for (;;) {
        char bytes[65536];
        const ssize_t count = ::read(descriptor_, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            throw std::system_error(errno, std::generic_category(), path_);
        text.append(bytes, static_cast<std::size_t>(count));
        if (is_first && text.size() >= first_line.size()) {
            if (text.compare(0, first_line.size(), first_line) != 0)
                throw std::runtime_error(path_ + " is something else than a journal");
            is_first = false;
        }
        std::size_t used = 0;
        for (std::size_t end; !is_first && (end = text.find('\n', used)) != std::string::npos; used = end + 1)
            take(std::string_view(text).substr(used, end - used), offset + static_cast<std::int64_t>(used));
        text.erase(0, used);
        offset += static_cast<std::int64_t>(used);
        if (count == 0)
            break;
    }
    if (is_first && first_line.compare(0, text.size(), text) != 0)
        throw std::runtime_error(path_ + " is something else than a journal");
    // A first line that was cut is completed; any other is ended, and so that it is no entry: half a name is none.
    if (is_first)
        append(first_line.substr(text.size()));
    else if (!text.empty())
        append("/cut\n");
}

void Journal::take(std::string_view line, std::int64_t offset)
{
    if (line.size() < 21 || line[4] != ' ')
        return;
    const char *const digits = line.data() + 5;
    std::uint64_t key = 0;
    if (std::from_chars(digits, digits + 16, key, 16).ptr != digits + 16 || (line.size() > 21 && line[21] != ' '))
        return;
    const std::string_view kind = line.substr(0, 4);
    if (kind == "done" && line.size() == 21)
        note_done(entries_[key]);
    else if (kind == "save" && line.size() > 22)
        entries_[key] = {offset, false};
}

// A file has a line before it is done: what is done without one, once more, is none.
void Journal::note_done(Entry &entry)
{
    if (entry.is_done)
        entry.saved = -1;
    entry.is_done = true;
}

bool Journal::is_done(const Wanted &wanted) const
{
    const auto found = entries_.find(digest(wanted));
    return found != entries_.end() && found->second.is_done;
}

std::optional<SavedFile> Journal::saved(const Wanted &wanted) const
{
    const auto found = entries_.find(digest(wanted));
    if (found == entries_.end() || found->second.saved < 0)
        return std::nullopt;
    char bytes[1024]; // a name has 255 at most
    const ssize_t count = pread(descriptor_, bytes, sizeof bytes, found->second.saved);
    if (count < 0)
        throw std::system_error(errno, std::generic_category(), path_);
    const std::string_view text(bytes, static_cast<std::size_t>(count));
    const std::string_view line = text.substr(0, text.find('\n'));
    // Names alone, as older versions noted them, say nothing of whose the file is.
    return line.size() > 22 ? SavedFile::from(line.substr(22)) : std::nullopt;
}

bool Journal::is_replaced(const Wanted &wanted) const
{
    const std::uint64_t key = digest(wanted);
    const std::optional<SavedFile> own = saved(wanted);
    if (!own)
        return false;
    std::string text;
    for (off_t offset = entries_.at(key).saved;;) {
        char bytes[65536];
        const ssize_t count = pread(descriptor_, bytes, sizeof bytes, offset);
        if (count < 0 && errno != EINTR)
            throw std::system_error(errno, std::generic_category(), path_);
        if (count == 0)
            return false;
        offset += std::max<ssize_t>(count, 0);
        text.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        std::size_t used = 0;
        for (std::size_t end; (end = text.find('\n', used)) != std::string::npos; used = end + 1) {
            const std::string_view line = std::string_view(text).substr(used, end - used);
            const std::optional<SavedFile> other =
                line.substr(0, 5) == "save " && line.size() > 22 ? SavedFile::from(line.substr(22)) : std::nullopt;
            if (other && other->name == own->name && other->folder_number == own->folder_number &&
                !(other->file == own->file))
                return true;
        }
        text.erase(0, used);
    }
}

static std::string entry(const char *kind, std::uint64_t key, const std::string &rest)
{
    char text[32];
    std::snprintf(text, sizeof text, "%s %016" PRIx64, kind, key);
    return text + (rest.empty() ? "" : " " + rest) + "\n";
}

void Journal::note_saving(const Wanted &wanted, const SavedFile &file)
{
    const off_t end = lseek(descriptor_, 0, SEEK_END);
    if (end < 0)
        throw std::system_error(errno, std::generic_category(), path_);
    entries_[digest(wanted)] = {end, false};
    append(entry("save", digest(wanted), file.text()));
    if (fdatasync(descriptor_) != 0)
        throw std::system_error(errno, std::generic_category(), path_);
}

void Journal::note_done(const Wanted &wanted)
{
    note_done(entries_[digest(wanted)]);
    append(entry("done", digest(wanted), ""));
}

void Journal::note_failed(const Wanted &wanted, const std::string &why, const std::string &shown)
{
    append(entry("fail", digest(wanted), why + " " + shown));
}

void Journal::append(const std::string &line) { write_all(descriptor_, imgdl::Bytes(line), path_); }
