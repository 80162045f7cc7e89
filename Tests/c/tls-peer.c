/* tls-peer CA-FILE: an HTTPS/1.1 origin on 127.0.0.1 with a certificate of its own, written to CA-FILE. One connection at
 * a time; ends when its input does.
 *
 *   GET  /to/URL        302 to URL
 *   GET  /text          200 and a line of text, whatever its query
 *   POST /gone          reads the head of the request and some of the body, then resets the connection
 */
#include <arpa/inet.h>
#include <errno.h>
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
#include <sys/socket.h>
#include <unistd.h>

static void check(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

static SSL_CTX *make_context(const char *ca_file)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    check(key && certificate, "key");
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"tls-peer", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    const struct { int nid; const char *value; } extensions[] = {
        {NID_basic_constraints, "critical,CA:TRUE"}, {NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost"}};
    for (int i = 0; i < 2; i++) {
        X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, extensions[i].nid, extensions[i].value);
        check(extension && X509_add_ext(certificate, extension, -1), "extension");
        X509_EXTENSION_free(extension);
    }
    check(X509_sign(certificate, key, EVP_sha256()) > 0, "sign");

    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    check(tls && SSL_CTX_use_certificate(tls, certificate) == 1 && SSL_CTX_use_PrivateKey(tls, key) == 1, "context");
    FILE *file = fopen(ca_file, "w");
    check(file && PEM_write_X509(file, certificate) == 1 && fclose(file) == 0, ca_file);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return tls;
}

static void answer(SSL *ssl, const char *text)
{
    SSL_write(ssl, text, (int)strlen(text));
    SSL_shutdown(ssl);
}

/* One request for each connection: enough here, and nothing of one test is left for the next. */
static void serve(SSL *ssl, int connection)
{
    char head[65536 + 1], text[8192];
    int size = 0;
    if (SSL_accept(ssl) != 1)
        return;
    do {
        int count = SSL_read(ssl, head + size, (int)sizeof head - 1 - size);
        if (count <= 0)
            return;
        head[size += count] = '\0';
    } while (!strstr(head, "\r\n\r\n") && size < (int)sizeof head - 1);

    char method[16], path[4096];
    if (sscanf(head, "%15s %4095s", method, path) != 2)
        return;
    if (!strncmp(path, "/to/", 4)) {
        snprintf(text, sizeof text, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                 path + 4);
        answer(ssl, text);
    } else if (!strcmp(path, "/text") || !strncmp(path, "/text?", 6)) {
        answer(ssl, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
    } else if (!strcmp(path, "/gone")) {
        SSL_read(ssl, text, sizeof text);
        struct linger now = {1, 0};
        setsockopt(connection, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    } else {
        answer(ssl, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    SSL_CTX *tls = make_context(argv[1]);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    check(listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 64) == 0 &&
              getsockname(listener, (struct sockaddr *)&address, &length) == 0,
          "listen");
    printf("listening on https://127.0.0.1:%d\n", ntohs(address.sin_port));
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
        SSL *ssl = SSL_new(tls);
        SSL_set_fd(ssl, connection);
        serve(ssl, connection);
        SSL_free(ssl);
        close(connection);
    }
    SSL_CTX_free(tls);
    return 0;
}
