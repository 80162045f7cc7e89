#include "saved-file.hpp"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <system_error>

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
    std::uint64_t *const numbers[] = {&saved.file.device, &saved.file.number, &saved.file.size,
                                      &saved.file.changed, &saved.folder_device, &saved.folder_number};
    for (std::uint64_t *const number : numbers) {
        const char *const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, *number, 16);
        if (error != std::errc() || rest == end || *rest != (number == &saved.folder_number ? ' ' : ':'))
            return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
    }
    // Somebody may have changed the journal: a name in it is trusted no more than one from the network.
    saved.name = text;
    return is_safe_name(text) ? std::optional(saved) : std::nullopt;
}
