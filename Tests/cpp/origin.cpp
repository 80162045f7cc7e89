#include "origin.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include "imgdl.hpp"

extern char **environ;

namespace origin {
namespace {

namespace fs = std::filesystem;

pid_t child;
int child_input = -1;
std::string base;
fs::path pictures, scratch;

fs::path programs() { return fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin"; }

fs::path temporary()
{
    std::string path = (fs::temp_directory_path() / "imgdl-cpp-XXXXXX").string();
    if (!mkdtemp(path.data()))
        throw std::runtime_error("cannot make a folder");
    return path;
}

void draw_pictures()
{
    static const struct Folder {
        fs::path path = temporary();
        ~Folder() { fs::remove_all(path); }
    } folder;
    if (!pictures.empty())
        return;
    if (std::system(("'" + (programs() / "imgdl-pictures").string() + "' '" + folder.path.string() + "'").c_str()) != 0)
        throw std::runtime_error("imgdl-pictures failed");
    pictures = folder.path;
}

} // namespace

void start()
{
    draw_pictures();
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
        throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    std::string program = (programs() / "imgdl-origin").string(), root = pictures.string();
    std::string until = "--until-eof", root_option = "--root";
    char *arguments[] = {program.data(), until.data(), root_option.data(), root.data(), nullptr};
    const int code = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    child_input = input[1];
    char line[256] = "", address[256] = "";
    FILE *lines = fdopen(output[0], "r");
    const bool is_read = code == 0 && std::fgets(line, sizeof line, lines);
    std::fclose(lines);
    if (!is_read || std::sscanf(line, "listening on %255s", address) != 1)
        throw std::runtime_error("the origin does not start");
    base = address;
}

void stop()
{
    if (child_input < 0)
        return;
    close(child_input);
    child_input = -1;
    waitpid(child, nullptr, 0);
    if (!scratch.empty())
        fs::remove_all(scratch);
    scratch.clear();
}

std::string url(const std::string &path) { return base + path; }
std::string picture(const std::string &name_and_faults) { return url("/pictures/" + name_and_faults); }

std::string ask(const std::string &path)
{
    imgdl::Downloader downloader;
    imgdl::Request request;
    request.url = url(path);
    request.flags = IMGDL_REQUEST_BODY;
    const imgdl::Data body = downloader.get(request).data();
    return std::string(body.text());
}

void open_gate(const std::string &name) { ask("/_gate/" + name + "/open"); }
void await_gate(const std::string &name) { ask("/_gate/" + name + "/reached"); }

void serve(const std::string &name, const std::string &bytes)
{
    std::ofstream file(pictures / name, std::ios::binary);
    if (!(file << bytes) || !file.flush())
        throw std::runtime_error("cannot write " + name);
}

std::string read_picture(const std::string &name)
{
    std::ifstream file(pictures / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string new_folder()
{
    if (scratch.empty())
        scratch = temporary();
    return scratch.string();
}

} // namespace origin
