#include <assert.h>
#include <imgdl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int drawn;

static __attribute__((unused)) void draw(const void *pixels, uint32_t width, uint32_t height)
{
    assert(pixels && width && height);
    drawn++;
}

static __attribute__((unused)) void use(const void *pixels, size_t stride)
{
    assert(pixels && stride);
    drawn++;
}

int main(void)
{
    EXAMPLE
    return drawn ? 0 : 1;
}
