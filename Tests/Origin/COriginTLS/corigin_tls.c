#include "corigin_tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct corigin_tls {
    SSL_CTX *context;
};

struct corigin_tls_session {
    SSL *ssl;
    BIO *from_client;
    BIO *to_client;
};

static int extend(X509 *certificate, X509 *issuer, int nid, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    if (extension == NULL) return 0;
    int added = X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

/* A certificate for `key`, valid between the two offsets from now in seconds. Without an issuer it signs itself, and is an
 * authority unless it is for localhost. */
static X509 *certify(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *issuer_key, long from, long to) {
    X509 *certificate = X509_new();
    if (certificate == NULL) return NULL;
    uint64_t serial = 0;
    X509_set_version(certificate, 2);
    RAND_bytes((unsigned char *)&serial, sizeof serial);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), from);
    X509_gmtime_adj(X509_getm_notAfter(certificate), to);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(
        X509_get_subject_name(certificate), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer != NULL ? issuer : certificate));
    if (issuer == NULL && strcmp(name, "localhost") != 0) {
        extend(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
        extend(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
        extend(certificate, certificate, NID_subject_key_identifier, "hash");
    } else {
        issuer = issuer != NULL ? issuer : certificate;
        extend(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE");
        extend(certificate, issuer, NID_subject_alt_name,
               strcmp(name, "localhost") == 0 ? "DNS:localhost,IP:127.0.0.1" : "DNS:elsewhere.invalid");
    }
    X509_sign(certificate, issuer_key != NULL ? issuer_key : key, EVP_sha256());
    return certificate;
}

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_length, const unsigned char *in,
                     unsigned int in_length, void *unused) {
    (void)ssl;
    (void)unused;
    for (unsigned int at = 0; at < in_length && at + in[at] < in_length; at += in[at] + 1u) {
        if (in[at] == 2 && memcmp(in + at + 1, "h2", 2) == 0) {
            *out = in + at + 1;
            *out_length = 2;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

corigin_tls *corigin_tls_new(const char *authority_path, corigin_certificate kind) {
    const long day = 24 * 3600;
    corigin_tls *tls = calloc(1, sizeof *tls);
    EVP_PKEY *authority_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    X509 *authority = NULL, *certificate = NULL;
    FILE *file = NULL;
    int done = 0;
    if (tls == NULL || authority_key == NULL || key == NULL) goto end;
    authority = certify(authority_key, "test origin authority", NULL, NULL, -10 * day, 10 * day);
    if (authority == NULL) goto end;
    certificate = kind == CORIGIN_CERTIFICATE_SELF_SIGNED
                      ? certify(key, "localhost", NULL, NULL, -5 * day, 5 * day)
                      : certify(key, kind == CORIGIN_CERTIFICATE_WRONG_HOST ? "elsewhere.invalid" : "localhost",
                                authority, authority_key, -5 * day, kind == CORIGIN_CERTIFICATE_EXPIRED ? -day : 5 * day);
    tls->context = SSL_CTX_new(TLS_server_method());
    if (certificate == NULL || tls->context == NULL) goto end;
    SSL_CTX_set_alpn_select_cb(tls->context, choose_h2, NULL);
    if (SSL_CTX_use_certificate(tls->context, certificate) != 1 || SSL_CTX_use_PrivateKey(tls->context, key) != 1)
        goto end;
    file = fopen(authority_path, "w");
    if (file == NULL) goto end;
    done = PEM_write_X509(file, authority);
end:
    if (file != NULL && fclose(file) != 0) done = 0;
    X509_free(certificate);
    X509_free(authority);
    EVP_PKEY_free(key);
    EVP_PKEY_free(authority_key);
    if (!done) {
        corigin_tls_free(tls);
        return NULL;
    }
    return tls;
}

void corigin_tls_free(corigin_tls *tls) {
    if (tls == NULL) return;
    SSL_CTX_free(tls->context);
    free(tls);
}

int corigin_tls_write_files(const corigin_tls *tls, const char *certificate_path, const char *key_path) {
    FILE *certificate = fopen(certificate_path, "w"), *key = fopen(key_path, "w");
    int done = certificate != NULL && key != NULL &&
               PEM_write_X509(certificate, SSL_CTX_get0_certificate(tls->context)) &&
               PEM_write_PrivateKey(key, SSL_CTX_get0_privatekey(tls->context), NULL, NULL, 0, NULL, NULL);
    if (certificate != NULL && fclose(certificate) != 0) done = 0;
    if (key != NULL && fclose(key) != 0) done = 0;
    return done;
}

corigin_tls_session *corigin_tls_session_new(corigin_tls *tls) {
    corigin_tls_session *session = calloc(1, sizeof *session);
    if (session == NULL) return NULL;
    session->ssl = SSL_new(tls->context);
    session->from_client = BIO_new(BIO_s_mem());
    session->to_client = BIO_new(BIO_s_mem());
    SSL_set_bio(session->ssl, session->from_client, session->to_client);
    SSL_set_accept_state(session->ssl);
    return session;
}

void corigin_tls_session_free(corigin_tls_session *session) {
    if (session == NULL) return;
    SSL_free(session->ssl);
    free(session);
}

void corigin_tls_put_encrypted(corigin_tls_session *session, const void *bytes, size_t count) {
    BIO_write(session->from_client, bytes, (int)count);
}

size_t corigin_tls_take_encrypted(corigin_tls_session *session, void *bytes, size_t capacity) {
    int count = BIO_read(session->to_client, bytes, (int)capacity);
    return count > 0 ? (size_t)count : 0;
}

int corigin_tls_read(corigin_tls_session *session, void *bytes, int capacity) {
    ERR_clear_error();
    int count = SSL_read(session->ssl, bytes, capacity);
    if (count > 0) return count;
    return SSL_get_error(session->ssl, count) == SSL_ERROR_WANT_READ ? 0 : -1;
}

int corigin_tls_write(corigin_tls_session *session, const void *bytes, int count) {
    ERR_clear_error();
    return SSL_write(session->ssl, bytes, count) == count ? 0 : -1;
}

int corigin_tls_is_ready(const corigin_tls_session *session) {
    if (!SSL_is_init_finished(session->ssl)) return 0;
    const unsigned char *name = NULL;
    unsigned int length = 0;
    SSL_get0_alpn_selected(session->ssl, &name, &length);
    return length == 2 && memcmp(name, "h2", 2) == 0;
}
