#include <assert.h>
#include <imgdl.h>
#include <stddef.h>
#include <stdio.h>

int main(void)
{
    const char *url = "http://[::1]/";
    imgdl_result result;
    EXAMPLE
    assert(status == IMGDL_OK);
    assert(imgdl_token_wait(token, -1) == IMGDL_OK);
    imgdl_result_init(&result, sizeof result);
    assert(imgdl_token_result(token, &result) == IMGDL_OK);
    assert(result.code == IMGDL_ERROR_ADDRESS_REFUSED);
    imgdl_token_release(token);
    assert(imgdl_downloader_destroy(downloader) == IMGDL_OK);
    return 0;
}
