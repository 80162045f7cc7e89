// What a path of -o leads to.
#ifndef OUTPUT_PLACE_HPP
#define OUTPUT_PLACE_HPP

#include <string>

enum class OutputPlace {
    nothing, ///< there is nothing yet
    file,
    folder,
    stream ///< a device, a pipe, a descriptor: it is written to, and left as it is
};

/// By what the system says of it, not by its name: /dev/shm is a folder like others. What a process has open, as
/// /dev/stdout, is a stream also where a shell has led it to a file.
OutputPlace output_place(const std::string &path);

/// The path that links lead to, also where there is nothing yet.
std::string path_behind_links(std::string path);

/// Opens a stream for writing; waits for the reader of a pipe with a name. Throws std::system_error, with EINTR where one of
/// signals.hpp came meanwhile.
int open_stream(const std::string &path);

#endif
