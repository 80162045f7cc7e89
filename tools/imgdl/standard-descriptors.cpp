#include "standard-descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

static bool is_input_there = true;

// Read-only: writing there is still an error.
void hold_standard_descriptors()
{
    is_input_there = fcntl(STDIN_FILENO, F_GETFD) >= 0;
    int descriptor = 0;
    while (descriptor >= 0 && descriptor <= STDERR_FILENO)
        descriptor = open("/dev/null", O_RDONLY);
    if (descriptor >= 0)
        close(descriptor);
}

bool has_standard_input() { return is_input_there; }
