#include "harness.hpp"

#include <cstdio>
#include <cstring>
#include <unistd.h>

#include "origin.hpp"

namespace harness {

std::vector<Test> &tests()
{
    static std::vector<Test> all;
    return all;
}

imgdl::Error thrown_by(const std::function<void()> &function)
{
    try {
        function();
    } catch (const imgdl::Error &error) {
        return error;
    }
    throw Failure("nothing was thrown");
}

} // namespace harness

// imgdl-cpp [--only TEXT] [--repeat N]
int main(int argc, char **argv)
{
    std::string only;
    long repeat = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!std::strcmp(argv[i], "--only"))
            only = argv[i + 1];
        else if (!std::strcmp(argv[i], "--repeat"))
            repeat = std::strtol(argv[i + 1], nullptr, 10);
    }
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    alarm(static_cast<unsigned>(120 * repeat)); // a test that hangs ends the program, which no success does
    unsigned passed = 0, failed = 0;
    for (; repeat > 0; repeat--) {
        for (const harness::Test &test : harness::tests()) {
            if (test.name.find(only) == std::string::npos)
                continue;
            std::string problem;
            try {
                origin::start(); // each time anew: gates that were opened stay open
                test.run();
            } catch (const std::exception &error) {
                problem = error.what();
            }
            origin::stop();
            (problem.empty() ? passed : failed) += 1;
            std::printf("%-4s c++: %s%s%s\n", problem.empty() ? "ok" : "FAIL", test.name.c_str(),
                        problem.empty() ? "" : "\n     ", problem.c_str());
        }
    }
    std::printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed || passed == 0;
}
