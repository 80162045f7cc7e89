#define _GNU_SOURCE
#include "ccurl.h"

#include <netinet/in.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode global_status;

void ccurl_keep_openssl(void) { (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }

static void initialize(void)
{
    ccurl_keep_openssl();
    global_status = curl_global_init(CURL_GLOBAL_DEFAULT);
}

CURLcode ccurl_global_init(void)
{
    pthread_once(&once, initialize);
    return global_status;
}

/* curl 7.88 opens sockets that programs started by the host would inherit. */
curl_socket_t ccurl_open_socket(curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) { return curl_easy_setopt(easy, option, value); }

CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value)
{
    return curl_easy_setopt(easy, option, value);
}

CURLcode ccurl_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count)
{
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_NOCOPY};
    return curl_easy_setopt(easy, option, &blob);
}

CURLcode ccurl_set_parts(CURL *easy, CURLU *parts) { return curl_easy_setopt(easy, CURLOPT_CURLU, parts); }

CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *list)
{
    return curl_easy_setopt(easy, option, list);
}

CURLcode ccurl_set_error_buffer(CURL *easy, char *buffer)
{
    return curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, buffer);
}

CURLcode ccurl_set_callbacks(CURL *easy, void *context, curl_write_callback body, curl_write_callback header,
                             curl_prereq_callback connected)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PRIVATE, context);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, connected);
    return code;
}

CURLcode ccurl_set_open_socket(CURL *easy, void *context, curl_opensocket_callback open_socket)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    return code;
}

CURLcode ccurl_set_close_socket(CURL *easy, void *context, curl_closesocket_callback close_socket)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, context);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    return code;
}

size_t ccurl_address_bytes(const struct curl_sockaddr *address, const uint8_t **bytes)
{
    switch (address->family) {
    case AF_INET:
        *bytes = (const uint8_t *)&((const struct sockaddr_in *)&address->addr)->sin_addr;
        return 4;
    case AF_INET6:
        *bytes = (const uint8_t *)&((const struct sockaddr_in6 *)&address->addr)->sin6_addr;
        return 16;
    default:
        return 0;
    }
}

CURLcode ccurl_set_progress(CURL *easy, void *context, curl_xferinfo_callback progress)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_XFERINFODATA, context);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, progress);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    return code;
}

/* The number behind `name` in a text that no zero ends. */
static bool find_number(const char *text, size_t length, const char *name, uint32_t *number)
{
    const char *at = memmem(text, length, name, strlen(name));
    if (!at)
        return false;
    const char *const end = text + length;
    uint64_t value = 0;
    at += strlen(name);
    if (at == end || *at < '0' || *at > '9')
        return false;
    for (; at < end && *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    *number = (uint32_t)value;
    return value <= UINT32_MAX;
}

static int read_words(CURL *easy, curl_infotype type, char *text, size_t length, void *context)
{
    (void)easy;
    struct ccurl_stream *stream = context;
    uint32_t number;
    if (type != CURLINFO_TEXT)
        return 0;
    if (find_number(text, length, "Using Stream ID: ", &number)) {
        stream->number = number;
        stream->is_turned_away = false;
    } else if (memmem(text, length, "GOAWAY", 6) && find_number(text, length, "last_stream=", &number)) {
        stream->is_turned_away = stream->number > number;
    }
    return 0;
}

CURLcode ccurl_watch_stream(CURL *easy, struct ccurl_stream *stream)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_DEBUGDATA, stream);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, read_words);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    return code;
}

CURLcode ccurl_set_share(CURL *easy, CURLSH *share) { return curl_easy_setopt(easy, CURLOPT_SHARE, share); }

CURLcode ccurl_set_body(CURL *easy, const void *bytes, size_t size)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_POST, 1L);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, size ? bytes : "");
    return code;
}

long ccurl_get_long(CURL *easy, CURLINFO info)
{
    long value = 0;
    return curl_easy_getinfo(easy, info, &value) ? 0 : value;
}

curl_off_t ccurl_get_offset(CURL *easy, CURLINFO info)
{
    curl_off_t value = 0;
    return curl_easy_getinfo(easy, info, &value) ? 0 : value;
}

const char *ccurl_get_string(CURL *easy, CURLINFO info)
{
    char *value = NULL;
    return curl_easy_getinfo(easy, info, &value) ? NULL : value;
}

CURLSH *ccurl_share_of_tls_sessions(void)
{
    CURLSH *share = curl_share_init();
    if (share && curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION)) {
        curl_share_cleanup(share);
        return NULL;
    }
    return share;
}

const char *ccurl_default_ca_file(CURL *easy) { return ccurl_get_string(easy, CURLINFO_CAINFO); }

CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value)
{
    return curl_multi_setopt(multi, option, value);
}

CURLMcode ccurl_multi_set_socket_callback(CURLM *multi, void *context, curl_socket_callback socket)
{
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    if (!code)
        code = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket);
    return code;
}

bool ccurl_next_done(CURLM *multi, void **context, CURLcode *result)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        char *private_pointer = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private_pointer);
        *context = private_pointer;
        *result = message->data.result;
        return true;
    }
    return false;
}
