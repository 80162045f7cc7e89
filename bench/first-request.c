/* From dlopen() to the first request on the wire, over http: prints milliseconds, until the server has read the request.
 * Not linked with the library, nor with what that is linked with.
 *
 *   first-request LIBRARY */
#include "measure.h"
#include "origin.h"

#include <dlfcn.h>
#include <imgdl.h>
#include <stdio.h>

static int64_t request_read;

static void answer(int socket, void *argument)
{
    (void)argument;
    if (!origin_read_request(socket))
        return;
    request_read = now();
    static const char response[] = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    origin_send(socket, response, sizeof response - 1);
}

/* ISO C has no conversion from an object pointer. */
#define FUNCTION(name, symbol)                                                                                         \
    __typeof__(symbol) *name;                                                                                          \
    *(void **)&name = dlsym(library, #symbol)

int main(int count, char **arguments)
{
    if (count != 2)
        fail("which library?");
    struct origin origin;
    origin_start(&origin, answer, NULL);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", origin.port);

    int64_t start = now();
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library)
        fail(dlerror());
    FUNCTION(create, imgdl_downloader_create);
    FUNCTION(destroy, imgdl_downloader_destroy);
    FUNCTION(wait_idle, imgdl_downloader_wait_idle);
    FUNCTION(init, imgdl_request_init);
    FUNCTION(download, imgdl_download);
    imgdl_downloader *downloader;
    imgdl_request request;
    init(&request, sizeof request);
    request.url = url;
    request.flags = IMGDL_REQUEST_BODY;
    if (create(NULL, &downloader) != IMGDL_OK || download(downloader, &request, NULL) != IMGDL_OK ||
        wait_idle(downloader, -1) != IMGDL_OK)
        fail("no download");
    printf("%f\n", (double)(request_read - start) / 1e6);
    if (destroy(downloader) != IMGDL_OK)
        fail("no end");
}
