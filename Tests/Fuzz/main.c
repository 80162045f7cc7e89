/* libFuzzer's entry to one target: TARGET names it. */
#include <stddef.h>
#include <stdint.h>

void fuzz_run(const char *name, const void *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    fuzz_run(TARGET, bytes, length);
    return 0;
}
