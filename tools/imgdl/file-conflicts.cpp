#include "file-conflicts.hpp"

#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "draft.hpp"
#include "output-place.hpp"
#include "text.hpp"

namespace {

struct NamedFile {
    const char *option;
    std::string path;
    int descriptor = -1; // in place of the path
};

bool has_status(const NamedFile &file, struct stat &status)
{
    return file.descriptor < 0 ? stat(file.path.c_str(), &status) == 0 : fstat(file.descriptor, &status) == 0;
}

bool is_same_entry(const struct stat &one, const struct stat &other)
{
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// A device takes what is written, and keeps what is read.
bool is_same_file(const NamedFile &one, const NamedFile &other)
{
    struct stat status, other_status;
    const bool is_there = has_status(one, status), is_other_there = has_status(other, other_status);
    if (is_there && is_other_there)
        return S_ISREG(status.st_mode) && is_same_entry(status, other_status);
    if (is_there || is_other_there || one.descriptor >= 0 || other.descriptor >= 0)
        return false;
    const std::string path = path_behind_links(one.path), other_path = path_behind_links(other.path);
    return path.substr(path.rfind('/') + 1) == other_path.substr(other_path.rfind('/') + 1) &&
           stat(folder_of(path).c_str(), &status) == 0 && stat(folder_of(other_path).c_str(), &other_status) == 0 &&
           is_same_entry(status, other_status);
}

void refuse(const NamedFile &written, const NamedFile &other)
{
    if (is_same_file(written, other))
        throw UsageError(std::string(written.option) + ": " +
                         (written.descriptor < 0 ? printable(written.path) : "standard output") + " is the file of " +
                         other.option + ", too");
}

} // namespace

void refuse_files_that_are_named_twice(const Arguments &arguments)
{
    std::vector<NamedFile> written, others;
    if (arguments.output == "-")
        written.push_back({"-o", "", STDOUT_FILENO});
    else if (arguments.output)
        written.push_back({"-o", *arguments.output});
    if (arguments.json)
        written.push_back({"--json", "", STDOUT_FILENO});
    if (arguments.show != Show::nothing)
        written.push_back({"--show", "", STDOUT_FILENO});
    if (arguments.list)
        others.push_back({"-i", *arguments.list, *arguments.list == "-" ? STDIN_FILENO : -1});
    if (arguments.ca_file)
        others.push_back({"--cacert", *arguments.ca_file});
    if (arguments.crl_file)
        others.push_back({"--crlfile", *arguments.crl_file});
    if (arguments.journal) {
        const NamedFile journal{"--journal", *arguments.journal};
        for (const NamedFile &read : others)
            refuse(journal, read);
        others.push_back(journal);
    }
    for (const NamedFile &one : written)
        for (const NamedFile &other : others)
            refuse(one, other);
}
