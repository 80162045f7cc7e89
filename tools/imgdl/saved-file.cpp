#include "saved-file.hpp"

#include <cinttypes>
#include <cstdio>

#include "output-naming.hpp"

FileIdentity::FileIdentity(const struct stat &status)
    : device(status.st_dev), number(status.st_ino), size(static_cast<std::uint64_t>(status.st_size)),
      changed(static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1000000000u +
              static_cast<std::uint64_t>(status.st_mtim.tv_nsec))
{
}

std::string SavedFile::text() const
{
    char numbers[128];
    std::snprintf(numbers, sizeof numbers, "%" PRIx64 ":%" PRIx64 ":%" PRIx64 ":%" PRIx64 ":%" PRIx64 ":%" PRIx64 " ",
                  file.device, file.number, file.size, file.changed, folder_device, folder_number);
    return numbers + name;
}

std::optional<SavedFile> SavedFile::from(std::string_view text)
{
    SavedFile saved;
    const std::string line(text);
    int used = 0;
    const int count = std::sscanf(
        line.c_str(), "%" SCNx64 ":%" SCNx64 ":%" SCNx64 ":%" SCNx64 ":%" SCNx64 ":%" SCNx64 "%n", &saved.file.device,
        &saved.file.number, &saved.file.size, &saved.file.changed, &saved.folder_device, &saved.folder_number, &used);
    if (count != 6 || line.compare(static_cast<std::size_t>(used), 1, " ") != 0)
        return std::nullopt;
    // Somebody may have changed the journal: a name in it is trusted no more than one from the network.
    saved.name = line.substr(static_cast<std::size_t>(used) + 1);
    return safe_name(saved.name) == saved.name ? std::optional(saved) : std::nullopt;
}
