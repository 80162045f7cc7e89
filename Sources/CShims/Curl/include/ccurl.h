/* libcurl as Swift can call it: its setters and getters are variadic, so each type of value has a function here. */
#ifndef CCURL_H
#define CCURL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

/* What a password is good for: macros with casts in them. */
static const long CCURL_AUTH_PASSWORD = CURLAUTH_BASIC | CURLAUTH_DIGEST;
/* Digest alone, after a challenge, as with the other: without ONLY curl would send a request without its body first. */
static const long CCURL_AUTH_DIGEST = (long)(CURLAUTH_DIGEST | CURLAUTH_ONLY);

/* OpenSSL takes itself down at exit(), while threads are still in it, unless it is told not to before its first use. What it
 * has then goes with the process. */
void ccurl_keep_openssl(void);

/* curl_global_init, at the first call only. */
CURLcode ccurl_global_init(void);

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value);
/* curl copies the string; NULL resets. For CURLOPT_ERRORBUFFER see ccurl_set_error_buffer. */
CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value);
/* The bytes stay the caller's, and where they are for as long as the handle has them. */
CURLcode ccurl_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count);
/* In place of a URL's text; they stay the caller's and must outlive the transfer. NULL: the text again. */
CURLcode ccurl_set_parts(CURL *easy, CURLU *parts);
/* The list stays the caller's and must outlive the transfer. */
CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *list);
CURLcode ccurl_set_error_buffer(CURL *easy, char *buffer);
/* `context` is what the three callbacks get, and what ccurl_next_done gives back. */
CURLcode ccurl_set_callbacks(CURL *easy, void *context, curl_write_callback body, curl_write_callback header,
                             curl_prereq_callback connected);
/* Has `open_socket` asked for each socket. */
CURLcode ccurl_set_open_socket(CURL *easy, void *context, curl_opensocket_callback open_socket);
/* Has `close_socket` called: until the last connection is closed that was opened with it. */
CURLcode ccurl_set_close_socket(CURL *easy, void *context, curl_closesocket_callback close_socket);
/* A socket that closes on exec. */
curl_socket_t ccurl_open_socket(curlsocktype purpose, struct curl_sockaddr *address);
/* The address without port and family: 4 or 16 bytes, 0 for another family. */
size_t ccurl_address_bytes(const struct curl_sockaddr *address, const uint8_t **bytes);
CURLcode ccurl_set_progress(CURL *easy, void *context, curl_xferinfo_callback progress);
/* What libcurl tells of a transfer's stream of HTTP/2, where no number does. */
struct ccurl_stream {
    /* Its last one; 0: none. */
    uint32_t number;
    /* A GOAWAY said that the server has not looked at it, nor ever will. */
    bool is_turned_away;
};
/* Has *stream, which must stay until the handle is reset or gone, say what becomes of the transfer's stream. It takes the
 * words that libcurl has for people, so each transfer costs some more. */
CURLcode ccurl_watch_stream(CURL *easy, struct ccurl_stream *stream);
/* NULL: none. */
CURLcode ccurl_set_share(CURL *easy, CURLSH *share);
/* curl takes a copy. */
CURLcode ccurl_set_body(CURL *easy, const void *bytes, size_t size);

long ccurl_get_long(CURL *easy, CURLINFO info);
curl_off_t ccurl_get_offset(CURL *easy, CURLINFO info);
/* Borrowed from `easy`; may be NULL. */
const char *ccurl_get_string(CURL *easy, CURLINFO info);
/* A share of TLS sessions alone, for one thread; NULL without memory. */
CURLSH *ccurl_share_of_tls_sessions(void);
/* The file libcurl was built to take certificate authorities from; NULL when it has none. Borrowed from `easy`. */
const char *ccurl_default_ca_file(CURL *easy);

/* The parts of a PEM file that can be asked for. */
enum ccurl_pem_kind {
    CCURL_PEM_AUTHORITIES,
    CCURL_PEM_REVOCATION_LISTS,
    /* A client's own. */
    CCURL_PEM_CERTIFICATE,
    CCURL_PEM_PRIVATE_KEY,
};
/* Counts the parts of one kind in the bytes of a PEM file: client certificates and keys as 1 where there are any. -1: one of
 * them cannot be read. */
int ccurl_count_in_file(const void *bytes, size_t size, enum ccurl_pem_kind kind);

/* Finding about a client's certificate and its key, as libcurl will have OpenSSL read them. */
enum ccurl_pair_finding {
    CCURL_PAIR_FITS,
    CCURL_PAIR_CERTIFICATE_BROKEN,
    CCURL_PAIR_KEY_BROKEN,
    /* In PEM, and of a kind that OpenSSL does not read. */
    CCURL_PAIR_KEY_UNKNOWN,
    /* It is encrypted, and not with this password. */
    CCURL_PAIR_KEY_LOCKED,
    CCURL_PAIR_KEY_OF_ANOTHER,
    /* There is no memory to find it out. */
    CCURL_PAIR_UNKNOWN,
};
/* Bytes of two PEM files, which may be one and the same. password: "" for none. */
enum ccurl_pair_finding ccurl_check_pair(
    const void *certificate, size_t certificate_size, const void *key, size_t key_size, const char *password);

/* SHA-256 of what is in a regular file of 64 MiB at most; false where it cannot be read. */
enum { CCURL_DIGEST_BYTES = 32 };
bool ccurl_digest_file(const char *path, unsigned char *digest);
/* A descriptor of a copy in memory, which is the caller's, and the digest of the same bytes; -1, with errno, where it cannot
 * be read or has more than `limit` bytes (EFBIG). */
int ccurl_copy_file(const char *path, unsigned char *digest, size_t limit);

/* The bytes of a file, for free(), and their digest. NULL: errno says why; EFBIG for more than limit bytes. */
void *ccurl_read_file(const char *path, unsigned char *digest, size_t limit, size_t *count);

/* A TLS handshake that a handle began, for as long as the handle or the connection has it. */
struct ccurl_handshake;
enum ccurl_handshake_end {
    /* None was begun, or libcurl has another TLS library than OpenSSL 3. */
    CCURL_HANDSHAKE_UNKNOWN,
    /* It is under way, or ended without a word from either side: the connection was lost. */
    CCURL_HANDSHAKE_CUT_OFF,
    /* The server refused it, or sent what is no TLS; also after its end, where TLS 1.3 judges the client's certificate. */
    CCURL_HANDSHAKE_REFUSED,
    /* It failed where the server's certificate was verified. */
    CCURL_HANDSHAKE_UNTRUSTED,
    CCURL_HANDSHAKE_COMPLETE,
};
/* Has *place point to the handshake that `easy` began last. *place must stay until the handle is reset or gone. */
CURLcode ccurl_watch_handshakes(CURL *easy, struct ccurl_handshake **place);
void ccurl_forget_handshake(struct ccurl_handshake **place);
enum ccurl_handshake_end ccurl_handshake_end(const struct ccurl_handshake *handshake);
/* Whether it is untrusted because of revocation lists: the certificate is in one, or one is missing or of no use. */
bool ccurl_is_revoked(const struct ccurl_handshake *handshake);

/* The side that has ended the connection that a handshake made. */
enum ccurl_secure_end {
    /* None was made, or libcurl has another TLS library than OpenSSL 3. */
    CCURL_SECURE_UNKNOWN,
    /* Nobody, as far as has been read. */
    CCURL_SECURE_OPEN,
    /* This side: it has closed it without having read that the server ends it. */
    CCURL_SECURE_LEFT,
    /* The server, with close_notify or without, or TLS itself failed. */
    CCURL_SECURE_ENDED,
};
enum ccurl_secure_end ccurl_secure_end(const struct ccurl_handshake *handshake);
/* Whether the two sides have agreed on HTTP/2. */
bool ccurl_secure_is_http2(const struct ccurl_handshake *handshake);
/* Says that it goes through no proxy's TLS: the handle made another connection just before, which has nothing to do with it. */
void ccurl_leave_outer(struct ccurl_handshake *handshake);
/* Whether the handle that made it had made another one just before, that was open: with a proxy over TLS, the proxy's. */
bool ccurl_secure_is_in_tls(const struct ccurl_handshake *handshake);
/* Whether TLS has ended on it, or on the proxy's connection that it goes through. */
bool ccurl_secure_has_goodbye(const struct ccurl_handshake *handshake);
/* Whether bytes lie decrypted in OpenSSL, on the connection or on the proxy's that it goes through. */
bool ccurl_secure_has_decrypted(const struct ccurl_handshake *handshake);
/* Whether OpenSSL has taken bytes of either from the socket that nobody has read, in whatever state. */
bool ccurl_secure_has_unread(const struct ccurl_handshake *handshake);
/* Has OpenSSL read what has come on the socket of a connection that rests, such as session tickets and new keys. True for what
 * else has come: bytes of an answer, an end, the half of a record; and where that cannot be found out, through a proxy's TLS. */
bool ccurl_secure_has_answer(const struct ccurl_handshake *handshake, int socket);
/* How many encrypted bytes have been read for it, until it is closed. */
uint64_t ccurl_secure_read_bytes(const struct ccurl_handshake *handshake);
/* Has OpenSSL find no more for it in a turn of curl once it has read so many encrypted bytes; the record that it is at then comes
 * as a whole. What is left waits on the socket, or decrypted on the proxy's connection. */
void ccurl_secure_limit_reads(struct ccurl_handshake *handshake, uint64_t bytes);
/* Has that hold no longer once so many encrypted bytes have been read for it altogether. At first it holds for good. */
void ccurl_secure_limit_reads_until(struct ccurl_handshake *handshake, uint64_t bytes);
/* A turn of curl begins on this thread. */
void ccurl_begin_turn(void);
/* Another one, in which nothing is read for connections with such a limit: those get out what has been read for them that had no
 * chance to. False: nobody has come to such a limit in the last turn, and there is no need for another. */
bool ccurl_begin_turn_without_reads(void);
/* Whether this thread has read an alert that ends TLS, such as its goodbye (close_notify), since it was asked last. */
bool ccurl_take_goodbye(void);
/* The server's name as libcurl has sent it, by which it knows the server; "" for an address. Until the connection is closed. */
const char *ccurl_secure_server(const struct ccurl_handshake *handshake);
bool ccurl_secure_is_closed(const struct ccurl_handshake *handshake);
/* Another reference, for `ccurl_forget_handshake`. */
struct ccurl_handshake *ccurl_keep_handshake(struct ccurl_handshake *handshake);

CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value);
CURLMcode ccurl_multi_set_socket_callback(CURLM *multi, void *context, curl_socket_callback socket);
/* Takes the next finished transfer off the multi's messages: false when there is none. */
bool ccurl_next_done(CURLM *multi, void **context, CURLcode *result);

#endif
