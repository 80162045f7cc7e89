#include <assert.h>
#include <imgdl.h>
#include <stddef.h>

int main(void)
{
    EXAMPLE
    return 0;
}
