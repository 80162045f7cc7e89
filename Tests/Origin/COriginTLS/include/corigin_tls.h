/* TLS for the test origins: an authority made for the occasion, and server sessions that never touch a socket.
 * Bytes go in and come out through memory, so the caller keeps its own way to wait and to send. */
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

/* Makes an authority, writes its certificate (PEM) to the path, and a server certificate signed by it. */
corigin_tls *corigin_tls_new(const char *authority_path, corigin_certificate kind);
void corigin_tls_free(corigin_tls *tls);
/* The server's certificate and key as PEM files, for a server that is another program. 0 on failure. */
int corigin_tls_write_files(const corigin_tls *tls, const char *certificate_path, const char *key_path);

corigin_tls_session *corigin_tls_session_new(corigin_tls *tls);
void corigin_tls_session_free(corigin_tls_session *session);
/* From and to the client. */
void corigin_tls_put_encrypted(corigin_tls_session *session, const void *bytes, size_t count);
size_t corigin_tls_take_encrypted(corigin_tls_session *session, void *bytes, size_t capacity);
/* Decrypted bytes: more than 0, 0 when there are none yet, -1 at the end or after an error. Does the handshake, too. */
int corigin_tls_read(corigin_tls_session *session, void *bytes, int capacity);
int corigin_tls_write(corigin_tls_session *session, const void *bytes, int count);
/* 1 once the handshake is done and the client agreed on h2, else 0; nothing may be written before. */
int corigin_tls_is_ready(const corigin_tls_session *session);

#endif
