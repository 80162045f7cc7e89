/* tls-peer CA-FILE [FOLDER]: an HTTPS/1.1 origin on 127.0.0.1 with a certificate of its own, written to CA-FILE. One
 * connection at a time; ends when its input does.
 *
 *   GET  /to/URL        302 to URL
 *   GET  /text          200 and a line of text, whatever its query
 *   POST /gone          reads the head of the request and some of the body, then resets the connection
 *
 * With FOLDER it speaks HTTP without TLS on the same port, too, and takes client certificates. There it writes client.pem with
 * client.key, the same key as encrypted.key ("sesame"), another.pem with its key inside, and revoked.pem, the list of those
 * that it has revoked, none. Its second line is pin=sha256//… of its own key.
 *
 *   GET  /kept/FIELD/…  200, Cache-Control: FIELD, and a body that no other answer has
 *   GET  /known/FIELD/… the same; 401 for who says no Authorization
 *   GET  /cookie        200 and Set-Cookie: a=1
 *   GET  /cut/N         200 with a strong ETag, cut off in its middle; from the second time on 502 with a Range, 500 without
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define END "Content-Length: %zu\r\nConnection: close\r\n\r\n%s"

static unsigned answers, was_cut[256]; /* of /kept and /known; of /cut */

static void check(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

static void extend(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    check(extension && X509_add_ext(certificate, extension, -1), "extension");
    X509_EXTENSION_free(extension);
}

/* A certificate that is not signed yet; without an issuer its own. */
static X509 *certify(EVP_PKEY *key, const char *title, X509 *issuer)
{
    static int serial;
    X509 *certificate = X509_new();
    check(key && certificate, "key");
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)title, -1, -1, 0);
    X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer) : name);
    return certificate;
}

static FILE *begin_file(const char *folder, const char *name)
{
    char path[4600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    check(file != NULL, path);
    return file;
}

static void write_key(FILE *file, EVP_PKEY *key, const char *password)
{
    int length = password ? (int)strlen(password) : 0;
    check(PEM_write_PKCS8PrivateKey(file, key, password ? EVP_aes_256_cbc() : NULL, password, length, NULL, NULL), "key");
}

static void write_client(const char *folder, const char *name, const char *key_name, X509 *authority, EVP_PKEY *authority_key)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = certify(key, name, authority);
    check(X509_sign(certificate, authority_key, EVP_sha256()) > 0, "sign");
    FILE *file = begin_file(folder, name);
    check(PEM_write_X509(file, certificate) == 1, name);
    FILE *key_file = key_name ? begin_file(folder, key_name) : file;
    write_key(key_file, key, NULL);
    check((key_file == file || fclose(key_file) == 0) && fclose(file) == 0, name);
    if (key_name) {
        file = begin_file(folder, "encrypted.key");
        write_key(file, key, "sesame");
        check(fclose(file) == 0, "encrypted.key");
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void write_list(const char *folder, X509 *authority, EVP_PKEY *key)
{
    X509_CRL *list = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, -60), *later = X509_gmtime_adj(NULL, 86400);
    check(list && X509_CRL_set_version(list, 1) && X509_CRL_set_issuer_name(list, X509_get_subject_name(authority)) &&
              X509_CRL_set1_lastUpdate(list, now) && X509_CRL_set1_nextUpdate(list, later) &&
              X509_CRL_sign(list, key, EVP_sha256()) > 0,
          "list");
    FILE *file = begin_file(folder, "revoked.pem");
    check(PEM_write_X509_CRL(file, list) && fclose(file) == 0, "revoked.pem");
    ASN1_TIME_free(now);
    ASN1_TIME_free(later);
    X509_CRL_free(list);
}

static void take_clients(SSL_CTX *tls, const char *folder, X509 *authority, EVP_PKEY *key)
{
    write_client(folder, "client.pem", "client.key", authority, key);
    write_client(folder, "another.pem", NULL, authority, key);
    write_list(folder, authority, key);
    check(SSL_CTX_add_client_CA(tls, authority) && X509_STORE_add_cert(SSL_CTX_get_cert_store(tls), authority), "clients");
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_id_context(tls, (const unsigned char *)"tls-peer", 8);
}

static SSL_CTX *make_context(const char *ca_file, const char *folder)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = certify(key, "tls-peer", NULL);
    extend(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
    extend(certificate, certificate, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
    check(X509_sign(certificate, key, EVP_sha256()) > 0, "sign");

    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    check(tls && SSL_CTX_use_certificate(tls, certificate) == 1 && SSL_CTX_use_PrivateKey(tls, key) == 1, "context");
    FILE *file = fopen(ca_file, "w");
    check(file && PEM_write_X509(file, certificate) == 1 && fclose(file) == 0, ca_file);
    if (folder)
        take_clients(tls, folder, certificate, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return tls;
}

static void print_pin(SSL_CTX *tls)
{
    unsigned char *encoded = NULL, digest[32], text[48];
    int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(SSL_CTX_get0_certificate(tls)), &encoded);
    check(length > 0 && EVP_Digest(encoded, (size_t)length, digest, NULL, EVP_sha256(), NULL), "pin");
    EVP_EncodeBlock(text, digest, sizeof digest);
    printf("pin=sha256//%s\n", text);
    OPENSSL_free(encoded);
}

static void answer(BIO *client, const char *text)
{
    BIO_write(client, text, (int)strlen(text));
    BIO_ssl_shutdown(client);
}

static void answer_whole(BIO *client, const char *status, const char *fields, const char *body)
{
    char text[8192];
    snprintf(text, sizeof text, "HTTP/1.1 %s\r\n%sContent-Type: text/plain\r\n" END, status, fields, strlen(body), body);
    answer(client, text);
}

/* `path`: behind the first part. */
static void answer_kept(BIO *client, const char *path)
{
    char fields[300], body[64];
    snprintf(fields, sizeof fields, "Cache-Control: %.*s\r\nETag: \"%u\"\r\n", (int)strcspn(path, "/"), path, ++answers);
    snprintf(body, sizeof body, "answer %u\n", answers);
    answer_whole(client, "200 OK", fields, body);
}

static void answer_cut(BIO *client, unsigned char number, int has_range)
{
    if (was_cut[number])
        answer_whole(client, has_range ? "502 Range" : "500 No Range", "", "no\n");
    else
        answer(client, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 40\r\nAccept-Ranges: bytes\r\n"
                       "ETag: \"cut\"\r\nCache-Control: public, max-age=600\r\nConnection: close\r\n\r\n01234567890123456789");
    was_cut[number] = 1;
}

/* What is closed with something unread would be reset. */
static void read_body(BIO *client, const char *head, long there)
{
    const char *field = strcasestr(head, "\r\nContent-Length:");
    char text[1024];
    for (long rest = field ? strtol(field + 17, NULL, 10) - there : 0; rest > 0;) {
        int count = BIO_read(client, text, rest < (long)sizeof text ? (int)rest : (int)sizeof text);
        rest = count > 0 ? rest - count : 0;
    }
}

/* One request for each connection: enough here, and nothing of one test is left for the next. */
static void serve(BIO *client, int connection)
{
    char head[65536 + 1], text[8192], *end;
    int size = 0;
    do {
        int count = BIO_read(client, head + size, (int)sizeof head - 1 - size);
        if (count <= 0)
            return;
        head[size += count] = '\0';
    } while (!(end = strstr(head, "\r\n\r\n")) && size < (int)sizeof head - 1);

    char method[16], path[4096];
    if (!end || sscanf(head, "%15s %4095s", method, path) != 2)
        return;
    if (strcmp(path, "/gone"))
        read_body(client, head, head + size - (end + 4));
    if (!strncmp(path, "/to/", 4)) {
        snprintf(text, sizeof text, "Location: %s\r\n", path + 4);
        answer_whole(client, "302 Found", text, "");
    } else if (!strcmp(path, "/text") || !strncmp(path, "/text?", 6)) {
        answer_whole(client, "200 OK", "", "hello\n");
    } else if (!strncmp(path, "/kept/", 6)) {
        answer_kept(client, path + 6);
    } else if (!strncmp(path, "/known/", 7)) {
        if (strcasestr(head, "\r\nAuthorization:"))
            answer_kept(client, path + 7);
        else
            answer_whole(client, "401 Unauthorized", "WWW-Authenticate: Basic realm=\"tls-peer\"\r\n", "");
    } else if (!strcmp(path, "/cookie")) {
        answer_whole(client, "200 OK", "Set-Cookie: a=1; Path=/\r\n", "set\n");
    } else if (!strncmp(path, "/cut/", 5)) {
        answer_cut(client, (unsigned char)atoi(path + 5), strcasestr(head, "\r\nRange:") != NULL);
    } else if (!strcmp(path, "/gone")) {
        BIO_read(client, text, sizeof text);
        struct linger now = {1, 0};
        setsockopt(connection, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    } else {
        answer_whole(client, "404 Not Found", "", "");
    }
}

/* With TLS, or where `is_plain_known` and it does not begin as TLS does, without. */
static void serve_either(SSL_CTX *tls, int is_plain_known, int connection)
{
    unsigned char first = 0;
    int is_plain = is_plain_known && recv(connection, &first, 1, MSG_PEEK) == 1 && first != 22;
    SSL *ssl = is_plain ? NULL : SSL_new(tls);
    BIO *client = is_plain ? BIO_new_socket(connection, BIO_NOCLOSE) : BIO_new(BIO_f_ssl());
    if (ssl) {
        SSL_set_fd(ssl, connection);
        BIO_set_ssl(client, ssl, BIO_CLOSE);
    }
    if (!ssl || SSL_accept(ssl) == 1)
        serve(client, connection);
    BIO_free(client);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    const char *folder = argc == 3 ? argv[2] : NULL;
    SSL_CTX *tls = make_context(argv[1], folder);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    check(listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 64) == 0 &&
              getsockname(listener, (struct sockaddr *)&address, &length) == 0,
          "listen");
    printf("listening on https://127.0.0.1:%d\n", ntohs(address.sin_port));
    if (folder)
        print_pin(tls);
    fflush(stdout);
    for (;;) {
        struct pollfd waiting[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
        if (poll(waiting, 2, -1) < 0 && errno != EINTR)
            break;
        if (waiting[0].revents)
            break;
        if (!waiting[1].revents)
            continue;
        int connection = accept(listener, NULL, NULL);
        if (connection < 0)
            continue;
        struct timeval patience = {10, 0};
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        /* What is sent in two parts would wait for the client to say that it has the first. */
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        serve_either(tls, folder != NULL, connection);
        close(connection);
    }
    SSL_CTX_free(tls);
    return 0;
}
