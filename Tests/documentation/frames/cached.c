#include <assert.h>
#include <imgdl.h>
#include <stddef.h>
#include <stdio.h>

int main(void)
{
    EXAMPLE
    assert(status == IMGDL_OK);
    assert(downloader);
    assert(imgdl_downloader_destroy(downloader) == IMGDL_OK);
    return 0;
}
