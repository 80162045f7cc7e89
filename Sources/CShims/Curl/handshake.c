/* Facts about a TLS handshake and the connection that it made, from OpenSSL. libcurl puts them into words, which differ from version to version. */
#define _GNU_SOURCE
#include "ccurl.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CLOSE_NOTIFY = 0, USER_CANCELED = 90, FATAL = 2 };

/* Held by the SSL_CTX of a connection, by the handle that began it, and by who asks later how it ended, whichever goes
 * last. Used on the engine's thread only. */
struct ccurl_handshake {
    int references;
    bool is_complete;
    bool is_refused;
    bool is_untrusted;
    bool is_revoked;
    bool is_http2;
    /* An alert that ends a connection, of either side, but for our own goodbye. */
    bool has_alert;
    /* The server's end was read by the time at which the connection was closed. */
    bool has_end;
    bool is_closed;
    /* Until it is closed. */
    SSL *connection;
    /* That of the connection with the proxy which this one's bytes come through, with a reference. NULL: there is none, as for a
     * proxy's own. */
    struct ccurl_handshake *outer;
    /* Bytes after which no more is read for it in a turn of curl, while those that it has brought are fewer than `limited_bytes`.
     * 0: there is no such number. */
    uint64_t most_in_a_turn, limited_bytes;
    /* The last turn in which it was read for, and how many bytes it had brought by then. */
    uint64_t last_turn, bytes_before;
};

/* Turns of curl on this thread; and of the last one, whether it reads nothing where there is a limit, and whether one was come to. */
static _Thread_local uint64_t turns;
static _Thread_local bool is_without_reads, has_come_to_a_limit;

/* A server has ended TLS on one of the connections that this thread reads. */
static _Thread_local bool has_read_goodbye;

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Slots for a handshake: in the SSL_CTX, which has a reference, and in the SSL, which has none. */
static int slot = -1, connection_slot = -1;

static void release(struct ccurl_handshake *handshake)
{
    if (!handshake || --handshake->references > 0)
        return;
    release(handshake->outer);
    free(handshake);
}

static void connection_ends(void *parent, void *handshake, CRYPTO_EX_DATA *data, int index, long number, void *context)
{
    (void)parent, (void)data, (void)index, (void)number, (void)context;
    release(handshake);
}

/* With SSL_OP_IGNORE_UNEXPECTED_EOF the end of TCP counts as one of TLS. */
static bool has_read_end(const SSL *connection)
{
    return SSL_get_shutdown(connection) & SSL_RECEIVED_SHUTDOWN;
}

static void connection_closes(void *parent, void *data, CRYPTO_EX_DATA *all, int index, long number, void *context)
{
    (void)all, (void)index, (void)number, (void)context;
    struct ccurl_handshake *handshake = data;
    if (!handshake)
        return;
    handshake->has_end = has_read_end(parent);
    handshake->is_closed = true;
    if (handshake->most_in_a_turn && SSL_get_rbio(parent))
        BIO_set_callback_ex(SSL_get_rbio(parent), NULL);
    handshake->connection = NULL;
}

static void initialize(void)
{
    /* With LibreSSL or BoringSSL these objects would be another library's. */
    const char *name = curl_version_info(CURLVERSION_NOW)->ssl_version;
    if (name && strncmp(name, "OpenSSL/3", 9) == 0)
        slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, connection_ends);
    if (slot >= 0)
        connection_slot = SSL_get_ex_new_index(0, NULL, NULL, NULL, connection_closes);
}

/* Whatever OpenSSL is asked to make of it: versions of curl judge by themselves. */
static bool is_about_lists(const SSL *connection)
{
    switch (SSL_get_verify_result(connection)) {
    case X509_V_ERR_CERT_REVOKED:
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
    case X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
    case X509_V_ERR_CRL_NOT_YET_VALID:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD:
    case X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD:
    case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
    case X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION:
    case X509_V_ERR_DIFFERENT_CRL_SCOPE:
    case X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
        return true;
    default:
        return false;
    }
}

static void handshake_is_done(struct ccurl_handshake *handshake, SSL *connection)
{
    handshake->is_complete = true;
    /* Newer versions of curl judge the certificate then. */
    handshake->is_revoked = is_about_lists(connection);
    const unsigned char *protocol = NULL;
    unsigned int length = 0;
    SSL_get0_alpn_selected(connection, &protocol, &length);
    handshake->is_http2 = length == 2 && memcmp(protocol, "h2", 2) == 0;
    /* Once: a session ticket that comes later ends a handshake, too. */
    if (!handshake->connection && connection_slot >= 0 && SSL_set_ex_data(connection, connection_slot, handshake))
        handshake->connection = connection;
}

/* An alert after which the connection goes on. In TLS 1.3 there is but one, and nobody looks at levels (RFC 8446 section 6). */
static bool is_warning(const SSL *connection, int alert)
{
    int description = alert & 0xFF;
    if (description == CLOSE_NOTIFY)
        return false;
    /* Until the server has chosen a version, OpenSSL names the newest one that was offered. "TWCH": its client hello is
     * written. The number of that state is another in OpenSSL 3.2 than when this was built with 3.0. */
    bool is_13 = SSL_version(connection) >= TLS1_3_VERSION && strcmp(SSL_state_string(connection), "TWCH") != 0;
    return description == USER_CANCELED || (!is_13 && alert >> 8 != FATAL);
}

static void handshake_says(const SSL *connection, int where, int value)
{
    struct ccurl_handshake *handshake = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), slot);
    if (!handshake)
        return;
    if (where == SSL_CB_READ_ALERT) {
        if (is_warning(connection, value))
            return;
        has_read_goodbye = true;
        if ((value & 0xFF) != CLOSE_NOTIFY)
            handshake->is_refused = handshake->has_alert = true;
    } else if (where == SSL_CB_WRITE_ALERT) {
        handshake->has_alert = handshake->has_alert || value >> 8 == FATAL;
    } else if (where == SSL_CB_HANDSHAKE_DONE) {
        handshake_is_done(handshake, (SSL *)connection);
    } else if (where == SSL_CB_CONNECT_EXIT && value <= 0) {
        /* A connection that was lost is no error of OpenSSL's, but for one that has a reason of its own. */
        unsigned long error = ERR_peek_last_error();
        if (error && ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) != SSL_R_UNEXPECTED_EOF_WHILE_READING)
            handshake->is_refused = true;
        /* Certificates and revocation lists that are refused: curl calls some of them that, and others a broken handshake. */
        if (SSL_get_verify_mode(connection) != SSL_VERIFY_NONE && SSL_get_verify_result(connection) != X509_V_OK)
            handshake->is_untrusted = true;
        handshake->is_revoked = is_about_lists(connection);
    }
}

static CURLcode connection_begins(CURL *easy, void *tls, void *context)
{
    (void)easy;
    struct ccurl_handshake **place = context, *handshake = calloc(1, sizeof *handshake);
    if (!handshake)
        return CURLE_OUT_OF_MEMORY;
    handshake->references = 1;
    if (!SSL_CTX_set_ex_data(tls, slot, handshake)) {
        free(handshake);
        return CURLE_OUT_OF_MEMORY;
    }
    SSL_CTX_set_info_callback(tls, handshake_says);
    /* A server that closes without a word (close_notify) has closed, as over plain TCP: newer versions of libcurl make a
     * failed connection of it, and no number tells the two apart. Framing says what is missing. */
    SSL_CTX_set_options(tls, SSL_OP_IGNORE_UNEXPECTED_EOF);
    /* A handle makes a proxy's first, and the server's within it. */
    if (*place && (*place)->connection && !(*place)->outer)
        handshake->outer = *place;
    else
        release(*place);
    handshake->references++;
    *place = handshake;
    return CURLE_OK;
}

CURLcode ccurl_watch_handshakes(CURL *easy, struct ccurl_handshake **place)
{
    pthread_once(&once, initialize);
    if (slot < 0)
        return CURLE_OK;
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, place);
    if (!code)
        code = curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, connection_begins);
    return code;
}

void ccurl_forget_handshake(struct ccurl_handshake **place)
{
    release(*place);
    *place = NULL;
}

bool ccurl_is_revoked(const struct ccurl_handshake *handshake) { return handshake && handshake->is_revoked; }

enum ccurl_handshake_end ccurl_handshake_end(const struct ccurl_handshake *handshake)
{
    if (!handshake)
        return CCURL_HANDSHAKE_UNKNOWN;
    if (handshake->is_untrusted)
        return CCURL_HANDSHAKE_UNTRUSTED;
    if (handshake->is_refused)
        return CCURL_HANDSHAKE_REFUSED;
    return handshake->is_complete ? CCURL_HANDSHAKE_COMPLETE : CCURL_HANDSHAKE_CUT_OFF;
}

struct ccurl_handshake *ccurl_keep_handshake(struct ccurl_handshake *handshake)
{
    handshake->references++;
    return handshake;
}

static bool is_ended(const struct ccurl_handshake *handshake)
{
    return handshake->has_alert || handshake->has_end
        || (handshake->connection && has_read_end(handshake->connection));
}

enum ccurl_secure_end ccurl_secure_end(const struct ccurl_handshake *handshake)
{
    if (!handshake->connection && !handshake->is_closed)
        return CCURL_SECURE_UNKNOWN;
    if (is_ended(handshake))
        return CCURL_SECURE_ENDED;
    return handshake->is_closed ? CCURL_SECURE_LEFT : CCURL_SECURE_OPEN;
}

bool ccurl_secure_is_http2(const struct ccurl_handshake *handshake)
{
    return handshake->is_http2;
}

void ccurl_leave_outer(struct ccurl_handshake *handshake)
{
    release(handshake->outer);
    handshake->outer = NULL;
}

bool ccurl_secure_is_in_tls(const struct ccurl_handshake *handshake)
{
    return handshake->outer;
}

static const SSL *outer(const struct ccurl_handshake *handshake)
{
    return handshake->outer ? handshake->outer->connection : NULL;
}

bool ccurl_secure_has_goodbye(const struct ccurl_handshake *handshake)
{
    return is_ended(handshake) || (handshake->outer && is_ended(handshake->outer));
}

bool ccurl_secure_has_decrypted(const struct ccurl_handshake *handshake)
{
    const SSL *own = handshake->connection, *proxys = outer(handshake);
    return own && ((proxys && SSL_pending(proxys) > 0) || SSL_pending(own) > 0);
}

bool ccurl_secure_has_unread(const struct ccurl_handshake *handshake)
{
    const SSL *own = handshake->connection, *proxys = outer(handshake);
    return own && ((proxys && SSL_has_pending(proxys)) || SSL_has_pending(own));
}

bool ccurl_secure_has_answer(const struct ccurl_handshake *handshake, int socket)
{
    SSL *own = handshake->connection;
    if (!own || handshake->outer)
        return true;
    /* libcurl's own BIOs want a transfer to read for. */
    BIO *raw = BIO_new_socket(socket, BIO_NOCLOSE), *reader = SSL_get_rbio(own), *writer = SSL_get_wbio(own);
    if (!raw || !BIO_up_ref(raw) || !BIO_up_ref(reader) || !BIO_up_ref(writer))
        return true; /* There is no such failure but of the first, and nothing has been lost then. */
    SSL_set0_rbio(own, raw);
    SSL_set0_wbio(own, raw);
    char byte;
    int got = SSL_peek(own, &byte, 1);
    bool is_waiting = got <= 0 && SSL_get_error(own, got) == SSL_ERROR_WANT_READ;
    SSL_set0_rbio(own, reader);
    SSL_set0_wbio(own, writer);
    ERR_clear_error();
    return !is_waiting || SSL_in_init(own) || SSL_has_pending(own);
}

uint64_t ccurl_secure_read_bytes(const struct ccurl_handshake *handshake)
{
    return handshake->connection ? BIO_number_read(SSL_get_rbio(handshake->connection)) : 0;
}

static long refuses_more_in_a_turn(
    BIO *reader, int what, const char *bytes, size_t count, int value, long number, int result, size_t *done)
{
    (void)bytes, (void)count, (void)value, (void)number, (void)done;
    if (what != BIO_CB_READ)
        return result;
    struct ccurl_handshake *handshake = (void *)BIO_get_callback_arg(reader);
    if (handshake->last_turn != turns) {
        handshake->last_turn = turns;
        handshake->bytes_before = BIO_number_read(reader);
    }
    uint64_t all = BIO_number_read(reader);
    if (all >= handshake->limited_bytes)
        return result;
    if (!is_without_reads && all - handshake->bytes_before < handshake->most_in_a_turn)
        return result;
    has_come_to_a_limit = true;
    /* As if nothing more had come. */
    BIO_clear_retry_flags(reader);
    BIO_set_retry_read(reader);
    return -1;
}

void ccurl_secure_limit_reads(struct ccurl_handshake *handshake, uint64_t bytes)
{
    BIO *reader = handshake->connection ? SSL_get_rbio(handshake->connection) : NULL;
    if (!reader)
        return;
    handshake->most_in_a_turn = bytes;
    handshake->limited_bytes = UINT64_MAX;
    BIO_set_callback_arg(reader, (char *)handshake);
    BIO_set_callback_ex(reader, refuses_more_in_a_turn);
}

void ccurl_secure_limit_reads_until(struct ccurl_handshake *handshake, uint64_t bytes) { handshake->limited_bytes = bytes; }

static void begin_turn(bool reads)
{
    turns++;
    is_without_reads = !reads;
    has_come_to_a_limit = false;
}

void ccurl_begin_turn(void) { begin_turn(true); }

bool ccurl_begin_turn_without_reads(void)
{
    bool is_needed = has_come_to_a_limit;
    begin_turn(!is_needed);
    return is_needed;
}

bool ccurl_take_goodbye(void)
{
    bool is_read = has_read_goodbye;
    has_read_goodbye = false;
    return is_read;
}

const char *ccurl_secure_server(const struct ccurl_handshake *handshake)
{
    const char *name = handshake->connection ? SSL_get_servername(handshake->connection, TLSEXT_NAMETYPE_host_name) : NULL;
    return name ? name : "";
}

bool ccurl_secure_is_closed(const struct ccurl_handshake *handshake)
{
    return handshake->is_closed;
}
