#include "cstore.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

bool store_keyed_digest(const void *key, size_t key_size, const void *message, size_t size, void *digest)
{
    unsigned char whole[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    /* Errors that the host's thread has met with OpenSSL itself stay to be read there. */
    ERR_set_mark();
    bool is_done = HMAC(EVP_sha256(), key, (int)key_size, message, size, whole, &length) && length >= STORE_DIGEST_BYTES;
    ERR_pop_to_mark();
    if (is_done)
        memcpy(digest, whole, STORE_DIGEST_BYTES);
    return is_done;
}
