// The frame of the C++ tests: TEST("what it shows") { … } in any file. A check that fails, or an exception, fails the
// test. Nothing waits for time to go by: the origin has gates, and every wait is for something that comes.
#ifndef HARNESS_HPP
#define HARNESS_HPP

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "imgdl.hpp"

namespace harness {

struct Test {
    std::string name;
    void (*run)();
};
std::vector<Test> &tests();

struct Registration {
    Registration(const char *name, void (*run)()) { tests().push_back({name, run}); }
};

struct Failure : std::runtime_error {
    using runtime_error::runtime_error;
};

/// What the function throws; fails where it throws nothing.
imgdl::Error thrown_by(const std::function<void()> &function);

} // namespace harness

#define TEST_JOIN_(a, b) a##b
#define TEST_JOIN(a, b) TEST_JOIN_(a, b)
#define TEST(text) TEST_NAMED(text, TEST_JOIN(test_, __LINE__))
#define TEST_NAMED(text, id)                                                                                           \
    static void id();                                                                                                  \
    static const harness::Registration TEST_JOIN(registration_of_, id)(text, id);                                      \
    static void id()

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            throw harness::Failure(std::string(__FILE__ ":") + std::to_string(__LINE__) + ": " #condition);            \
    } while (0)

#define CHECK_CODE(found, expected) CHECK(std::string(imgdl_error_name(found)) == #expected)

#endif
