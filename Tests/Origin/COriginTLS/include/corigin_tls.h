/* TLS for the test origins: authorities made for the occasion, and server sessions that never touch a socket.
 * Bytes go in and come out through memory, so the caller keeps its own way to wait and to send. Digests, too. */
#ifndef CORIGIN_TLS_H
#define CORIGIN_TLS_H

#include <stddef.h>
#include <stdint.h>

typedef struct corigin_tls corigin_tls;
typedef struct corigin_tls_session corigin_tls_session;

typedef enum {
    CORIGIN_CERTIFICATE_VALID = 0,    /* for 127.0.0.1 and localhost */
    CORIGIN_CERTIFICATE_EXPIRED = 1,
    CORIGIN_CERTIFICATE_WRONG_HOST = 2,
    CORIGIN_CERTIFICATE_SELF_SIGNED = 3, /* for localhost, and the authority has nothing to do with it */
} corigin_certificate;

typedef enum {
    CORIGIN_CLIENT_UNASKED = 0,  /* the client is not asked for a certificate */
    CORIGIN_CLIENT_OPTIONAL = 1, /* asked; one that is given must be of the clients' authority */
    CORIGIN_CLIENT_REQUIRED = 2,
} corigin_client;

/* Makes an authority, writes its certificate (PEM) to the path, and a server certificate signed by it. */
corigin_tls *corigin_tls_new(const char *authority_path, corigin_certificate kind);
void corigin_tls_free(corigin_tls *tls);
/* The server's certificate and key as PEM files, for a server that is another program. 0 on failure. */
int corigin_tls_write_files(const corigin_tls *tls, const char *certificate_path, const char *key_path);
/* The authority's list of revoked certificates, in PEM, with the server's in it or not; with another issuer's name where one
 * is given. 0 on failure. */
int corigin_tls_write_revocations(const corigin_tls *tls, const char *path, int revokes_server, const char *issuer);
/* SHA-256 of the server key's SubjectPublicKeyInfo: 32 bytes. 0 on failure. */
int corigin_tls_pin(const corigin_tls *tls, unsigned char *digest);
/* Before the first session: protocols as ALPN has them on the wire, the best first; whether clients show certificates,
 * and nothing above TLS 1.2 if that is asked for. */
void corigin_tls_configure(
    corigin_tls *tls, const unsigned char *protocols, unsigned int length, corigin_client client, int tls12);
/* A certificate that this server takes from clients: certificate, key, and the key encrypted with the passphrase, as PEM
 * files. `name` becomes its common name. A stranger's is of an authority that nobody trusts. 0 on failure. */
int corigin_tls_write_client(
    corigin_tls *tls, const char *name, int is_stranger, const char *certificate_path, const char *key_path,
    const char *encrypted_key_path, const char *passphrase);

corigin_tls_session *corigin_tls_session_new(corigin_tls *tls);
void corigin_tls_session_free(corigin_tls_session *session);
/* From and to the client. */
void corigin_tls_put_encrypted(corigin_tls_session *session, const void *bytes, size_t count);
size_t corigin_tls_take_encrypted(corigin_tls_session *session, void *bytes, size_t capacity);
/* 1 when the handshake is done, 0 while more is needed from the client, -1 when it has failed. */
int corigin_tls_handshake(corigin_tls_session *session);
/* Decrypted bytes: more than 0, 0 when there are none yet, -1 at the end or after an error. */
int corigin_tls_read(corigin_tls_session *session, void *bytes, int capacity);
int corigin_tls_write(corigin_tls_session *session, const void *bytes, int count);
/* What a server may say between bytes of its answers: of TLS 1.3 that what follows has another key, and a ticket to resume
 * with; of TLS 1.2 that a handshake shall begin. */
typedef enum { CORIGIN_TLS_KEY_UPDATE, CORIGIN_TLS_TICKET, CORIGIN_TLS_HELLO_REQUEST } corigin_tls_message;
/* 0, or -1. */
int corigin_tls_say(corigin_tls_session *session, corigin_tls_message message);
int corigin_tls_is_in_handshake(corigin_tls_session *session);
void corigin_tls_close_notify(corigin_tls_session *session);

/* What the handshake came to. Texts are cut to the capacity and empty where there is none. */
void corigin_tls_protocol(const corigin_tls_session *session, char *text, size_t capacity);
void corigin_tls_client_name(const corigin_tls_session *session, char *text, size_t capacity);
void corigin_tls_server_name(const corigin_tls_session *session, char *text, size_t capacity);
int corigin_tls_is_resumed(const corigin_tls_session *session);

/* Digest of the bytes by its OpenSSL name; its length, 0 for a name that is none. Room for 64 bytes. */
size_t corigin_digest(const char *name, const void *bytes, size_t count, unsigned char *digest);
/* Base64, with padding and a NUL: room for 4 bytes per 3, rounded up, and one. */
void corigin_base64(const unsigned char *bytes, size_t count, char *text);

#endif
