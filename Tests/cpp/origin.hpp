// The scripted origin (Tests/Origin/README.md) as a child process, with the pictures that imgdl-pictures draws.
#ifndef ORIGIN_HPP
#define ORIGIN_HPP

#include <string>
#include <vector>

namespace origin {

void start();
void stop();
/// A URL on it, for a path with its query.
std::string url(const std::string &path);
std::string picture(const std::string &name_and_faults);
/// The body of a control path's answer; waits where that waits.
std::string ask(const std::string &path);
void open_gate(const std::string &name);
void await_gate(const std::string &name);
/// From now on it serves this, too.
void serve(const std::string &name, const std::string &bytes);
/// A file that it serves.
std::string read_picture(const std::string &name);
/// An empty folder of the test's own, which goes when the origin stops.
std::string new_folder();

} // namespace origin

#endif
