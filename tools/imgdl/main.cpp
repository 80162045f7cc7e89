// imgdl: downloads pictures at the terminal. docs/man/imgdl.1 is its manual.
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <system_error>

#include "arguments.hpp"
#include "file-conflicts.hpp"
#include "session.hpp"
#include "signals.hpp"
#include "standard-descriptors.hpp"
#include "text.hpp"

static int complain(ExitCode code, const std::exception &error)
{
    std::fprintf(stderr, "imgdl: %s\n", printable(error.what()).c_str());
    if (code == ExitCode::usage)
        std::fputs("imgdl: see imgdl --help\n", stderr);
    return static_cast<int>(code);
}

// A value that only the library could judge is the caller's mistake all the same. Of a command line's only --proxy is a URL
// that a run cannot begin with: those of pictures fail each for itself.
static ExitCode blame(const imgdl::Error &error)
{
    const bool is_usage = error.code() == IMGDL_ERROR_INVALID_HEADER || error.code() == IMGDL_ERROR_INVALID_ARGUMENT ||
                          error.code() == IMGDL_ERROR_INVALID_URL;
    return is_usage ? ExitCode::usage : ExitCode::machine;
}

int main(int argc, char **argv)
{
    hold_standard_descriptors();
    std::setlocale(LC_CTYPE, "C.UTF-8"); // how wide characters are; nothing else goes by it
    try {
        const std::optional<Arguments> arguments = parse_arguments(argc, argv);
        if (!arguments)
            return std::fflush(stdout) == 0 ? 0 : static_cast<int>(ExitCode::machine);
        refuse_files_that_are_named_twice(*arguments);
        watch_signals();
        return Session(*arguments).run();
    } catch (const UsageError &error) {
        return complain(ExitCode::usage, error);
    } catch (const imgdl::Error &error) {
        return complain(blame(error), std::runtime_error(in_terms_of_options(error.what())));
    } catch (const std::system_error &error) {
        // What was waited for has not come: there is nothing to say.
        if (error.code().value() == EINTR && signal_that_came())
            return 128 + signal_that_came();
        return complain(ExitCode::machine, error);
    } catch (const std::exception &error) {
        return complain(ExitCode::machine, error);
    }
}
