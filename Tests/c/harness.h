/* The frame of the C tests: a test is TEST("what it shows") { … } in any file. Each runs in a process of its own, which
 * is ended at its deadline together with everything it started. Checks print what was found and fail the test;
 * REQUIRE ends it at once. No test may pass because time went by: wait for conditions, with deadlines. */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SKIPPED = 77 };

struct test {
    const char *suite, *name;
    void (*run)(void);
    unsigned deadline; /* seconds */
    struct test *next;
};

void harness_register(struct test *test);
void harness_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
int harness_failures(void); /* so far: for processes that a test forks */
_Noreturn void harness_abandon(void);
_Noreturn void harness_skip(const char *why);
/* The running test once more, as a program that starts now: for what only the environment of its start decides. */
_Noreturn void harness_begin_anew(void);
const char *harness_argument(const char *name, const char *otherwise); /* --name VALUE */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
/* SUITE is defined by the file. */
#define TEST_WITHIN(seconds, text) TEST_(seconds, text, JOIN(test_, __LINE__))
#define TEST(text) TEST_WITHIN(60, text)
#define TEST_(seconds, text, id)                                                                                       \
    static void id(void);                                                                                              \
    static struct test JOIN(entry_of_, id) = {SUITE, text, id, seconds, NULL};                                         \
    __attribute__((constructor)) static void JOIN(register_, id)(void) { harness_register(&JOIN(entry_of_, id)); }     \
    static void id(void)

/* For calls whose status does not matter to the test, as in a stress: compilers warn where nobody looks at it. */
static inline void ignore_status(int32_t status) { (void)status; }

#define FAIL(...) harness_fail(__FILE__, __LINE__, __VA_ARGS__)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            harness_fail(__FILE__, __LINE__, "%s", #condition);                                                              \
    } while (0)

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            harness_fail(__FILE__, __LINE__, "%s", #condition);                                                              \
            harness_abandon();                                                                                         \
        }                                                                                                              \
    } while (0)

#define CHECK_NUMBER(found, expected)                                                                                  \
    do {                                                                                                               \
        long long found_ = (long long)(found), expected_ = (long long)(expected);                                      \
        if (found_ != expected_)                                                                                       \
            FAIL("%s is %lld, not %s (%lld)", #found, found_, #expected, expected_);                                   \
    } while (0)

/* Codes are compared and shown by name: the names are part of the contract. */
#define CHECK_CODE(found, expected)                                                                                    \
    do {                                                                                                               \
        imgdl_status found_ = (found);                                                                                 \
        if (strcmp(imgdl_error_name(found_), #expected) != 0 || found_ != (expected))                                  \
            FAIL("%s is %s (%d), not %s", #found, imgdl_error_name(found_), (int)found_, #expected);                   \
    } while (0)

#define REQUIRE_OK(call)                                                                                               \
    do {                                                                                                               \
        imgdl_status status_ = (call);                                                                                 \
        if (status_ != IMGDL_OK) {                                                                                     \
            FAIL("%s is %s: %s", #call, imgdl_error_name(status_), imgdl_last_error());                                \
            harness_abandon();                                                                                         \
        }                                                                                                              \
    } while (0)

/* What was allocated and can no longer be reached, by AddressSanitizer: 0 where it is not there. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
int __lsan_do_recoverable_leak_check(void);
#define HAS_LEAKS() (__lsan_do_recoverable_leak_check() != 0)
#endif
#endif
#ifndef HAS_LEAKS
#define HAS_LEAKS() 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#ifndef UNDER_SANITIZER
#define UNDER_SANITIZER 0
#endif

#endif
