#include <assert.h>
#include <imgdl.h>
#include <stddef.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    const char *url = count > 1 ? arguments[1] : "http://[::1]/";
    imgdl_result result;
    EXAMPLE
    if (status != IMGDL_OK) {
        imgdl_downloader_destroy(downloader);
        return 1;
    }
    assert(imgdl_token_wait(token, -1) == IMGDL_OK);
    imgdl_result_init(&result, sizeof result);
    assert(imgdl_token_result(token, &result) == IMGDL_OK);
    assert(count > 1 || result.code == IMGDL_ERROR_ADDRESS_REFUSED);
    if (count > 1)
        printf("%s %s\n", imgdl_error_name(result.code), result.message ? result.message : "");
    imgdl_token_release(token);
    assert(imgdl_downloader_destroy(downloader) == IMGDL_OK);
    return 0;
}
