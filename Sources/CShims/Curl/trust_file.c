/* Files of certificates and revocation lists, read as libcurl will have OpenSSL read them. */
#include "ccurl.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nobody is asked at the terminal. */
static int no_password(char *buffer, int size, int writes, void *context)
{
    (void)buffer, (void)size, (void)writes, (void)context;
    return 0;
}

static int count_certificates(BIO *file)
{
    STACK_OF(X509_INFO) *infos = PEM_X509_INFO_read_bio(file, NULL, no_password, NULL);
    if (!infos)
        return -1;
    int count = 0;
    for (int index = 0; index < sk_X509_INFO_num(infos); index++)
        count += sk_X509_INFO_value(infos, index)->x509 != NULL;
    sk_X509_INFO_pop_free(infos, X509_INFO_free);
    return count;
}

static int count_lists(BIO *file)
{
    int count = 0;
    X509_CRL *list;
    while ((list = PEM_read_bio_X509_CRL(file, NULL, no_password, NULL))) {
        X509_CRL_free(list);
        count++;
    }
    unsigned long error = ERR_peek_last_error();
    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE ? count : -1;
}

int ccurl_count_in_trust_file(const char *path, bool lists)
{
    /* Errors that the host's thread has met with OpenSSL itself stay to be read there. */
    ERR_set_mark();
    BIO *file = BIO_new_file(path, "r");
    int count = file ? (lists ? count_lists(file) : count_certificates(file)) : -1;
    BIO_free(file);
    ERR_pop_to_mark();
    return count;
}

static bool digest_descriptor(int descriptor, EVP_MD_CTX *digest)
{
    unsigned char bytes[16384];
    for (size_t left = 64 << 20;;) {
        ssize_t count = read(descriptor, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count == 0;
        if ((size_t)count > left || !EVP_DigestUpdate(digest, bytes, (size_t)count))
            return false;
        left -= (size_t)count;
    }
}

bool ccurl_digest_file(const char *path, unsigned char *digest)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    ERR_set_mark();
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_done = context && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)
        && EVP_DigestInit_ex(context, EVP_sha256(), NULL) && digest_descriptor(descriptor, context)
        && EVP_DigestFinal_ex(context, digest, NULL);
    EVP_MD_CTX_free(context);
    ERR_pop_to_mark();
    close(descriptor);
    return is_done;
}
