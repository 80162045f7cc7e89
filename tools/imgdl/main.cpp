// imgdl: downloads pictures at the terminal. docs/man/imgdl.1 is its manual.
#include <clocale>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <stdexcept>
#include <unistd.h>

#include "arguments.hpp"
#include "session.hpp"
#include "signals.hpp"
#include "text.hpp"

static int complain(ExitCode code, const std::exception &error)
{
    std::fprintf(stderr, "imgdl: %s\n", printable(error.what()).c_str());
    if (code == ExitCode::usage)
        std::fputs("imgdl: see imgdl --help\n", stderr);
    return static_cast<int>(code);
}

// A value that only the library could judge is the caller's mistake all the same.
static ExitCode blame(const imgdl::Error &error)
{
    const bool is_usage = error.code() == IMGDL_ERROR_INVALID_HEADER || error.code() == IMGDL_ERROR_INVALID_ARGUMENT;
    return is_usage ? ExitCode::usage : ExitCode::machine;
}

// A file that is opened must not become standard output because that was closed. Read-only: writing there is still an
// error.
static void hold_standard_descriptors()
{
    int descriptor = 0;
    while (descriptor >= 0 && descriptor <= STDERR_FILENO)
        descriptor = open("/dev/null", O_RDONLY);
    if (descriptor >= 0)
        close(descriptor);
}

int main(int argc, char **argv)
{
    hold_standard_descriptors();
    std::setlocale(LC_CTYPE, "C.UTF-8"); // how wide characters are; nothing else goes by it
    try {
        const std::optional<Arguments> arguments = parse_arguments(argc, argv);
        if (!arguments)
            return std::fflush(stdout) == 0 ? 0 : static_cast<int>(ExitCode::machine);
        watch_signals();
        return Session(*arguments).run();
    } catch (const UsageError &error) {
        return complain(ExitCode::usage, error);
    } catch (const imgdl::Error &error) {
        return complain(blame(error), std::runtime_error(in_terms_of_options(error.what())));
    } catch (const std::exception &error) {
        return complain(ExitCode::machine, error);
    }
}
