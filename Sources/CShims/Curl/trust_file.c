/* Files of certificates and revocation lists, read as libcurl will have OpenSSL read them. */
#define _GNU_SOURCE
#include "ccurl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nobody is asked at the terminal. */
static int no_password(char *buffer, int size, int writes, void *context)
{
    (void)buffer, (void)size, (void)writes, (void)context;
    return 0;
}

/* Where no further block was found, and none is broken. */
static bool is_at_end(void)
{
    unsigned long error = ERR_peek_last_error();
    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
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
    return is_at_end() ? count : -1;
}

static bool is_certificate(const char *name)
{
    return strcmp(name, PEM_STRING_X509) == 0 || strcmp(name, PEM_STRING_X509_OLD) == 0
        || strcmp(name, PEM_STRING_X509_TRUSTED) == 0;
}

static bool is_private_key(const char *name)
{
    static const char end[] = "PRIVATE KEY";
    size_t length = strlen(name), count = sizeof end - 1;
    return length >= count && strcmp(name + length - count, end) == 0;
}

/* 1 where there is a block of that name, whatever is in it: a key may need its password. */
static int find_block(BIO *file, bool (*is_wanted)(const char *name))
{
    char *name, *header;
    unsigned char *bytes;
    long count;
    bool is_found = false;
    while (!is_found && PEM_read_bio(file, &name, &header, &bytes, &count)) {
        is_found = is_wanted(name);
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_clear_free(bytes, (size_t)count);
    }
    if (is_found)
        return 1;
    return is_at_end() ? 0 : -1;
}

static int count_kind(BIO *file, enum ccurl_pem_kind kind)
{
    switch (kind) {
    case CCURL_PEM_AUTHORITIES:
        return count_certificates(file);
    case CCURL_PEM_REVOCATION_LISTS:
        return count_lists(file);
    case CCURL_PEM_CERTIFICATE:
        return find_block(file, is_certificate);
    case CCURL_PEM_PRIVATE_KEY:
        return find_block(file, is_private_key);
    }
    return -1;
}

int ccurl_count_in_file(const void *bytes, size_t size, enum ccurl_pem_kind kind)
{
    if (size > INT_MAX)
        return -1;
    /* Errors that the host's thread has met with OpenSSL itself stay to be read there. */
    ERR_set_mark();
    BIO *file = BIO_new_mem_buf(bytes, (int)size);
    int count = file ? count_kind(file, kind) : -1;
    BIO_free(file);
    ERR_pop_to_mark();
    return count;
}

struct password {
    const char *text;
    bool is_asked;
};

/* As libcurl gives it: one that does not fit is none. */
static int give_password(char *buffer, int size, int writes, void *context)
{
    struct password *password = context;
    (void)writes;
    password->is_asked = true;
    size_t length = strlen(password->text);
    if (size <= 0 || length >= (size_t)size)
        return 0;
    memcpy(buffer, password->text, length + 1);
    return (int)length;
}

/* Whether a key was not read for being one of OpenSSH's own, or for its cipher, which OpenSSL has no more. */
static bool is_unsupported(void)
{
    unsigned long error = ERR_peek_last_error();
    int reason = ERR_GET_REASON(error);
    switch (ERR_GET_LIB(error)) {
    case ERR_LIB_EVP:
    case ERR_LIB_OSSL_DECODER:
        return reason == ERR_R_UNSUPPORTED;
    case ERR_LIB_PEM:
        return reason == PEM_R_UNSUPPORTED_CIPHER || reason == PEM_R_UNSUPPORTED_ENCRYPTION;
    default:
        return false;
    }
}

/* The first certificate of a file; NULL where it or one of those after it, which are sent with it, is broken. */
static X509 *read_certificate(BIO *file, struct password *password)
{
    X509 *certificate = PEM_read_bio_X509_AUX(file, NULL, give_password, password);
    if (!certificate)
        return NULL;
    X509 *next;
    while ((next = PEM_read_bio_X509(file, NULL, give_password, password)))
        X509_free(next);
    if (is_at_end() && X509_get0_pubkey(certificate))
        return certificate;
    X509_free(certificate);
    return NULL;
}

static enum ccurl_pair_finding check_key(X509 *certificate, BIO *file, struct password *password)
{
    password->is_asked = false;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(file, NULL, give_password, password);
    if (!key)
        return is_unsupported() ? CCURL_PAIR_KEY_UNKNOWN
            : password->is_asked ? CCURL_PAIR_KEY_LOCKED
                                 : CCURL_PAIR_KEY_BROKEN;
    bool fits = X509_check_private_key(certificate, key) == 1;
    EVP_PKEY_free(key);
    return fits ? CCURL_PAIR_FITS : CCURL_PAIR_KEY_OF_ANOTHER;
}

static enum ccurl_pair_finding check_pair(BIO *certificate_file, BIO *key_file, const char *text)
{
    struct password password = { .text = text };
    X509 *certificate = read_certificate(certificate_file, &password);
    if (!certificate)
        return CCURL_PAIR_CERTIFICATE_BROKEN;
    enum ccurl_pair_finding finding = check_key(certificate, key_file, &password);
    X509_free(certificate);
    return finding;
}

enum ccurl_pair_finding ccurl_check_pair(
    const void *certificate, size_t certificate_size, const void *key, size_t key_size, const char *password)
{
    if (certificate_size > INT_MAX || key_size > INT_MAX)
        return CCURL_PAIR_UNKNOWN;
    ERR_set_mark();
    BIO *certificate_file = BIO_new_mem_buf(certificate, (int)certificate_size);
    BIO *key_file = BIO_new_mem_buf(key, (int)key_size);
    enum ccurl_pair_finding finding = CCURL_PAIR_UNKNOWN;
    if (certificate_file && key_file)
        finding = check_pair(certificate_file, key_file, password);
    BIO_free(certificate_file);
    BIO_free(key_file);
    ERR_pop_to_mark();
    return finding;
}

static bool write_all(int descriptor, const unsigned char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(descriptor, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}

/* `copy`: where the bytes go as well; -1: nowhere. */
static bool digest_descriptor(int descriptor, EVP_MD_CTX *digest, int copy, size_t left)
{
    unsigned char bytes[16384];
    for (;;) {
        ssize_t count = read(descriptor, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count == 0;
        if ((size_t)count > left || !EVP_DigestUpdate(digest, bytes, (size_t)count)) {
            errno = EFBIG;
            return false;
        }
        if (copy >= 0 && !write_all(copy, bytes, (size_t)count))
            return false;
        left -= (size_t)count;
    }
}

static bool digest_file(const char *path, unsigned char *digest, int copy, size_t limit)
{
    ccurl_keep_openssl(); /* this may be its first use */
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    ERR_set_mark();
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_file = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    if (!is_file || !context)
        errno = is_file ? ENOMEM : EINVAL;
    bool is_done = is_file && context && EVP_DigestInit_ex(context, EVP_sha256(), NULL)
        && digest_descriptor(descriptor, context, copy, limit) && EVP_DigestFinal_ex(context, digest, NULL);
    int cause = errno;
    EVP_MD_CTX_free(context);
    ERR_pop_to_mark();
    close(descriptor);
    errno = cause;
    return is_done;
}

bool ccurl_digest_file(const char *path, unsigned char *digest) { return digest_file(path, digest, -1, 64 << 20); }

int ccurl_copy_file(const char *path, unsigned char *digest, size_t limit)
{
    int copy = memfd_create("imgdl", MFD_CLOEXEC);
    if (copy < 0)
        return -1;
    if (digest_file(path, digest, copy, limit))
        return copy;
    int cause = errno;
    close(copy);
    errno = cause;
    return -1;
}

static unsigned char *read_all(int descriptor, size_t limit, size_t *count)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        errno = EINVAL;
        return NULL;
    }
    if (status.st_size > (off_t)limit) {
        errno = EFBIG;
        return NULL;
    }
    /* One more: a file that grows meanwhile is not taken for a whole one. */
    size_t room = (size_t)status.st_size + 1;
    unsigned char *bytes = malloc(room);
    *count = 0;
    while (bytes && *count < room) {
        ssize_t part = read(descriptor, bytes + *count, room - *count);
        if (part < 0 && errno == EINTR)
            continue;
        if (part == 0)
            return bytes;
        if (part < 0)
            break;
        *count += (size_t)part;
    }
    int cause = bytes && *count == room ? EAGAIN : errno;
    if (bytes)
        explicit_bzero(bytes, room);
    free(bytes);
    errno = cause;
    return NULL;
}

void *ccurl_read_file(const char *path, unsigned char *digest, size_t limit, size_t *count)
{
    ccurl_keep_openssl(); /* this may be its first use */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return NULL;
    unsigned char *bytes = read_all(descriptor, limit, count);
    int cause = errno;
    close(descriptor);
    ERR_set_mark();
    if (bytes && !EVP_Digest(bytes, *count, digest, NULL, EVP_sha256(), NULL)) {
        explicit_bzero(bytes, *count);
        free(bytes);
        bytes = NULL;
        cause = ENOMEM;
    }
    ERR_pop_to_mark();
    errno = cause;
    return bytes;
}
