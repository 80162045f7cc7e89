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
    X509 *authority;
    EVP_PKEY *authority_key;
    X509 *client_authority;
    EVP_PKEY *client_authority_key;
    unsigned char protocols[32];
    unsigned int protocols_length;
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
 * authority unless it is for localhost. With one, every name but localhost is good for no server here. */
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
        // Newer clients want to see who has signed, and by which key.
        if (issuer != NULL) extend(certificate, issuer, NID_authority_key_identifier, "keyid:always");
        issuer = issuer != NULL ? issuer : certificate;
        extend(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE");
        extend(certificate, issuer, NID_subject_alt_name,
               strcmp(name, "localhost") == 0 ? "DNS:localhost,IP:127.0.0.1" : "DNS:elsewhere.invalid");
    }
    X509_sign(certificate, issuer_key != NULL ? issuer_key : key, EVP_sha256());
    return certificate;
}

/* The best of ours that the client knows, too; without any there is no connection. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_length, const unsigned char *in,
                           unsigned int in_length, void *argument) {
    const corigin_tls *tls = argument;
    unsigned char *chosen = NULL;
    (void)ssl;
    int found = SSL_select_next_proto(&chosen, out_length, tls->protocols, tls->protocols_length, in, in_length);
    *out = chosen;
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
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
    SSL_CTX_set_alpn_select_cb(tls->context, choose_protocol, tls);
    // Without it a session that showed a client certificate could not be resumed.
    SSL_CTX_set_session_id_context(tls->context, (const unsigned char *)"origin", 6);
    if (SSL_CTX_use_certificate(tls->context, certificate) != 1 || SSL_CTX_use_PrivateKey(tls->context, key) != 1)
        goto end;
    file = fopen(authority_path, "w");
    if (file == NULL) goto end;
    done = PEM_write_X509(file, authority);
end:
    if (file != NULL && fclose(file) != 0) done = 0;
    X509_free(certificate);
    EVP_PKEY_free(key);
    if (tls != NULL) {
        tls->authority = authority;
        tls->authority_key = authority_key;
    } else {
        X509_free(authority);
        EVP_PKEY_free(authority_key);
    }
    if (!done) {
        corigin_tls_free(tls);
        return NULL;
    }
    return tls;
}

void corigin_tls_free(corigin_tls *tls) {
    if (tls == NULL) return;
    SSL_CTX_free(tls->context);
    X509_free(tls->authority);
    EVP_PKEY_free(tls->authority_key);
    X509_free(tls->client_authority);
    EVP_PKEY_free(tls->client_authority_key);
    free(tls);
}

void corigin_tls_configure(
    corigin_tls *tls, const unsigned char *protocols, unsigned int length, corigin_client client, int tls12) {
    if (length <= sizeof tls->protocols) {
        memcpy(tls->protocols, protocols, length);
        tls->protocols_length = length;
    }
    if (tls12) SSL_CTX_set_max_proto_version(tls->context, TLS1_2_VERSION);
    if (client == CORIGIN_CLIENT_UNASKED) return;
    SSL_CTX_set_verify(
        tls->context,
        SSL_VERIFY_PEER | (client == CORIGIN_CLIENT_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
}

int corigin_tls_write_revocations(const corigin_tls *tls, const char *path, int revokes_server, const char *issuer) {
    X509_CRL *list = X509_CRL_new();
    X509_NAME *name = X509_NAME_dup(X509_get_subject_name(tls->authority));
    ASN1_TIME *now = X509_gmtime_adj(NULL, -60), *later = X509_gmtime_adj(NULL, 24 * 3600);
    if (issuer != NULL)
        X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)issuer, -1, -1, 0);
    int done = list != NULL && name != NULL && now != NULL && later != NULL && X509_CRL_set_version(list, 1) &&
               X509_CRL_set_issuer_name(list, name) &&
               X509_CRL_set1_lastUpdate(list, now) && X509_CRL_set1_nextUpdate(list, later);
    if (done && revokes_server) {
        X509_REVOKED *revoked = X509_REVOKED_new();
        done = revoked != NULL &&
               X509_REVOKED_set_serialNumber(revoked, X509_get_serialNumber(SSL_CTX_get0_certificate(tls->context))) &&
               X509_REVOKED_set_revocationDate(revoked, now) && X509_CRL_add0_revoked(list, revoked);
        if (!done) X509_REVOKED_free(revoked);
    }
    done = done && X509_CRL_sort(list) && X509_CRL_sign(list, tls->authority_key, EVP_sha256());
    FILE *file = done ? fopen(path, "w") : NULL;
    done = file != NULL && PEM_write_X509_CRL(file, list);
    if (file != NULL && fclose(file) != 0) done = 0;
    X509_NAME_free(name);
    ASN1_TIME_free(now);
    ASN1_TIME_free(later);
    X509_CRL_free(list);
    return done;
}

int corigin_tls_pin(const corigin_tls *tls, unsigned char *digest) {
    unsigned char *encoded = NULL;
    int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(SSL_CTX_get0_certificate(tls->context)), &encoded);
    if (length <= 0) return 0;
    int done = EVP_Digest(encoded, (size_t)length, digest, NULL, EVP_sha256(), NULL);
    OPENSSL_free(encoded);
    return done;
}

static int make_client_authority(corigin_tls *tls) {
    const long day = 24 * 3600;
    if (tls->client_authority != NULL) return 1;
    tls->client_authority_key = EVP_EC_gen("P-256");
    if (tls->client_authority_key == NULL) return 0;
    tls->client_authority = certify(tls->client_authority_key, "test client authority", NULL, NULL, -10 * day, 10 * day);
    if (tls->client_authority == NULL) return 0;
    SSL_CTX_add_client_CA(tls->context, tls->client_authority);
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(tls->context), tls->client_authority);
}

static int write_key(const char *path, EVP_PKEY *key, const char *passphrase) {
    FILE *file = fopen(path, "w");
    if (file == NULL) return 0;
    int done = PEM_write_PKCS8PrivateKey(
        file, key, passphrase != NULL ? EVP_aes_256_cbc() : NULL, passphrase,
        passphrase != NULL ? (int)strlen(passphrase) : 0, NULL, NULL);
    return fclose(file) == 0 && done;
}

static int write_certificate(const char *path, X509 *certificate) {
    FILE *file = fopen(path, "w");
    if (file == NULL) return 0;
    int done = PEM_write_X509(file, certificate);
    return fclose(file) == 0 && done;
}

int corigin_tls_write_client(
    corigin_tls *tls, const char *name, int is_stranger, const char *certificate_path, const char *key_path,
    const char *encrypted_key_path, const char *passphrase) {
    const long day = 24 * 3600;
    if (!make_client_authority(tls)) return 0;
    EVP_PKEY *key = EVP_EC_gen("P-256"), *other_key = is_stranger ? EVP_EC_gen("P-256") : NULL;
    if (key == NULL || (is_stranger && other_key == NULL)) return 0;
    // It bears the name of the authority that the server asks for, or the client would not send it.
    X509 *other =
        is_stranger ? certify(other_key, "test client authority", NULL, NULL, -10 * day, 10 * day) : NULL;
    X509 *certificate = certify(
        key, name, other != NULL ? other : tls->client_authority,
        other != NULL ? other_key : tls->client_authority_key, -5 * day, 5 * day);
    int done = certificate != NULL && write_certificate(certificate_path, certificate) &&
               write_key(key_path, key, NULL) &&
               (encrypted_key_path == NULL || write_key(encrypted_key_path, key, passphrase));
    X509_free(certificate);
    X509_free(other);
    EVP_PKEY_free(other_key);
    EVP_PKEY_free(key);
    return done;
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

int corigin_tls_handshake(corigin_tls_session *session) {
    ERR_clear_error();
    int result = SSL_do_handshake(session->ssl);
    if (result == 1) return 1;
    return SSL_get_error(session->ssl, result) == SSL_ERROR_WANT_READ ? 0 : -1;
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

int corigin_tls_say(corigin_tls_session *session, corigin_tls_message message) {
    ERR_clear_error();
    int is_said = 0;
    switch (message) {
    case CORIGIN_TLS_KEY_UPDATE: is_said = SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED); break;
    case CORIGIN_TLS_TICKET: is_said = SSL_new_session_ticket(session->ssl); break;
    case CORIGIN_TLS_HELLO_REQUEST: is_said = SSL_renegotiate(session->ssl); break;
    }
    return is_said == 1 && SSL_do_handshake(session->ssl) == 1 ? 0 : -1;
}

int corigin_tls_is_in_handshake(corigin_tls_session *session) { return SSL_in_init(session->ssl) != 0; }

void corigin_tls_close_notify(corigin_tls_session *session) {
    ERR_clear_error();
    SSL_shutdown(session->ssl);
}

static void copy(char *text, size_t capacity, const void *bytes, size_t count) {
    if (capacity == 0) return;
    if (count > capacity - 1) count = capacity - 1;
    if (count > 0) memcpy(text, bytes, count);
    text[count] = 0;
}

void corigin_tls_protocol(const corigin_tls_session *session, char *text, size_t capacity) {
    const unsigned char *name = NULL;
    unsigned int length = 0;
    SSL_get0_alpn_selected(session->ssl, &name, &length);
    copy(text, capacity, name, length);
}

void corigin_tls_client_name(const corigin_tls_session *session, char *text, size_t capacity) {
    copy(text, capacity, NULL, 0);
    X509 *certificate = SSL_get0_peer_certificate(session->ssl);
    if (certificate == NULL) return;
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text, (int)capacity);
}

void corigin_tls_server_name(const corigin_tls_session *session, char *text, size_t capacity) {
    const char *name = SSL_get_servername(session->ssl, TLSEXT_NAMETYPE_host_name);
    copy(text, capacity, name, name != NULL ? strlen(name) : 0);
}

int corigin_tls_is_resumed(const corigin_tls_session *session) { return SSL_session_reused(session->ssl); }

size_t corigin_digest(const char *name, const void *bytes, size_t count, unsigned char *digest) {
    const EVP_MD *kind = EVP_get_digestbyname(name);
    unsigned int length = 0;
    if (kind == NULL || !EVP_Digest(bytes, count, digest, &length, kind, NULL)) return 0;
    return length;
}

void corigin_base64(const unsigned char *bytes, size_t count, char *text) {
    EVP_EncodeBlock((unsigned char *)text, bytes, (int)count);
}
