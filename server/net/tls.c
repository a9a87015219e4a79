#include "server/net/tls.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <event2/util.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "config/certificate.h"
#include "protocol/limits.h"

/* The ciphers for TLS 1.2. All ciphers of TLS 1.3 are acceptable. */
static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

/* --- contexts --- */

static bool load(SSL_CTX *context, const struct config_tls *config, struct error *error)
{
    const struct {
        const char *path;
        bool (*load)(SSL_CTX *, const char *, struct error *);
    } files[] = {
        {config->certificate, certificate_load},
        {config->key, certificate_load_key},
        {config->ca, certificate_load_ca},
    };
    struct error why;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i].path != NULL && !files[i].load(context, files[i].path, &why))
            return error_set(error, "%.100s %.130s", files[i].path, why.text);
    return true;
}

static bool init(struct tls *tls, const SSL_METHOD *method, const struct config_tls *config,
                 struct error *error)
{
    SSL_CTX *context = SSL_CTX_new(method);
    tls->context = NULL;
    ERR_clear_error();
    if (context == NULL || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(context, ciphers) != 1) {
        SSL_CTX_free(context);
        return error_set(error, "OpenSSL cannot create a TLS context");
    }
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    /* Free the buffers of idle connections. */
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    /* In this mode one SSL_read() would process records without data for as long as they arrive. */
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    /* Clients keep their sessions as tickets. A cache in the daemon would grow with the number of
     * clients. */
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (!load(context, config, error)) {
        SSL_CTX_free(context);
        return false;
    }
    tls->context = context;
    return true;
}

bool tls_init_listen(struct tls *tls, const struct config_tls *config, struct error *error)
{
    if (!init(tls, TLS_server_method(), config, error))
        return false;
    if (config->ca == NULL)
        return true;
    bool required = config->client_certificate == CONFIG_CERTIFICATE_REQUIRED;
    SSL_CTX_set_verify(tls->context,
                       SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
    /* When a ticket resumes a session, the client's certificate is not verified again. A client
     * could connect with an expired certificate, again and again. So no tickets are issued. */
    SSL_CTX_set_options(tls->context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(tls->context, 0);
    return true;
}

/* OpenSSL calls this when a server requests a client certificate. Record the request for
 * tls_certificate_requested(). OpenSSL then sends the configured certificate, if any. */
static int tls_on_certificate_request(SSL *ssl, void *context)
{
    (void)context;
    SSL_set_app_data(ssl, ssl);
    return 1;
}

bool tls_init_node(struct tls *tls, const struct config_tls *config, struct error *error)
{
    if (!init(tls, TLS_client_method(), config, error))
        return false;
    if (config->ca == NULL)
        SSL_CTX_set_default_verify_paths(tls->context);
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_cb(tls->context, tls_on_certificate_request, NULL);
    return true;
}

void tls_deinit(struct tls *tls)
{
    SSL_CTX_free(tls->context);
    tls->context = NULL;
}

static X509 *certificate_of(const struct tls *tls)
{
    return tls->context != NULL ? SSL_CTX_get0_certificate(tls->context) : NULL;
}

bool tls_is_same_certificate(const struct tls *one, const struct tls *other)
{
    const X509 *a = certificate_of(one);
    const X509 *b = certificate_of(other);
    return a == b || (a != NULL && b != NULL && X509_cmp(a, b) == 0);
}

/* --- the socket below a connection --- */

struct tls_socket {
    struct tls_sockets *sockets;
    const SSL *ssl; /* owns this socket */
    int fd;
    unsigned reads; /* reads in this pass */
    uint64_t pass;
    uint64_t advanced; /* the last pass in which it has read for a handshake */
};

/* A handshake with a client is about to read in this pass. False if it has to wait for a later
 * pass. The kernel reports sockets that stay readable in the same order each time. So a handshake
 * that has read waits until the others of that pass have had their turns. */
static bool may_advance(struct tls_socket *socket)
{
    struct tls_sockets *sockets = socket->sockets;
    uint64_t pass = sockets->pass->number;
    if (sockets->counted_pass != pass) {
        sockets->rest = sockets->wanted > 0 ? (sockets->wanted - 1) / LIMIT_HANDSHAKES_A_PASS : 0;
        sockets->wanted = sockets->advanced = 0;
        sockets->counted_pass = pass;
    }
    sockets->wanted++;
    if (sockets->advanced == LIMIT_HANDSHAKES_A_PASS || pass - socket->advanced <= sockets->rest)
        return false;
    sockets->advanced++;
    socket->advanced = pass;
    return true;
}

static bool may_read(struct tls_socket *socket)
{
    struct tls_sockets *sockets = socket->sockets;
    if (socket->pass != sockets->pass->number) {
        bool is_handshake = SSL_is_server(socket->ssl) && !SSL_is_init_finished(socket->ssl);
        socket->pass = sockets->pass->number;
        socket->reads = is_handshake && !may_advance(socket) ? LIMIT_TLS_READS : 0;
    }
    if (socket->reads < LIMIT_TLS_READS) {
        socket->reads++;
        return true;
    }
    pass_want_end(sockets->pass);
    return false;
}

static bool is_passing(int error)
{
    return error == EAGAIN || error == EINTR;
}

static int tls_socket_read(BIO *bio, char *bytes, int len)
{
    struct tls_socket *socket = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!may_read(socket)) {
        BIO_set_retry_read(bio);
        return -1;
    }
    ssize_t got = recv(socket->fd, bytes, (size_t)len, 0);
    if (got < 0 && is_passing(errno))
        BIO_set_retry_read(bio);
    else if (got == 0)
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return (int)got;
}

static int tls_socket_write(BIO *bio, const char *bytes, int len)
{
    const struct tls_socket *socket = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t sent = send(socket->fd, bytes, (size_t)len, MSG_NOSIGNAL);
    if (sent < 0 && is_passing(errno))
        BIO_set_retry_write(bio);
    return (int)sent;
}

/* The BIO control operations that OpenSSL and libevent use. This BIO buffers nothing. */
static long tls_socket_control(BIO *bio, int command, long number, void *pointer)
{
    const struct tls_socket *socket = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    switch (command) {
    case BIO_C_GET_FD:
        return socket->fd;
    case BIO_CTRL_EOF:
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    case BIO_CTRL_FLUSH:
        return 1;
    default:
        return 0;
    }
}

static int tls_socket_free(BIO *bio)
{
    free(BIO_get_data(bio));
    return 1;
}

bool tls_sockets_init(struct tls_sockets *sockets, struct pass *pass)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_DESCRIPTOR | BIO_TYPE_SOURCE_SINK, "redlockd");
    *sockets = (struct tls_sockets){.method = method, .pass = pass};
    return method != NULL && BIO_meth_set_read(method, tls_socket_read) == 1 &&
           BIO_meth_set_write(method, tls_socket_write) == 1 &&
           BIO_meth_set_ctrl(method, tls_socket_control) == 1 &&
           BIO_meth_set_destroy(method, tls_socket_free) == 1;
}

void tls_sockets_deinit(struct tls_sockets *sockets)
{
    BIO_meth_free(sockets->method);
    sockets->method = NULL;
}

/* Make the SSL object read and write through a BIO of this module. The BIO does not own the socket.
 * False if there is not enough memory. */
static bool attach(struct tls_sockets *sockets, SSL *ssl, int fd)
{
    struct tls_socket *socket = calloc(1, sizeof(*socket));
    BIO *bio = BIO_new(sockets->method);
    if (socket == NULL || bio == NULL) {
        free(socket);
        BIO_free(bio);
        return false;
    }
    socket->sockets = sockets;
    socket->ssl = ssl;
    socket->fd = fd;
    BIO_set_data(bio, socket);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    return true;
}

/* --- connections --- */

/* Create the bufferevent of a connection. Takes over the socket and `ssl`, which is NULL if there
 * was not enough memory for it. If bufferevent_openssl_socket_new() fails, libevent frees `ssl`. */
static struct bufferevent *begin(struct tls_sockets *sockets, struct event_base *base, int fd,
                                 SSL *ssl, enum bufferevent_ssl_state state)
{
    struct bufferevent *connection = NULL;
    ERR_clear_error();
    if (ssl != NULL && !attach(sockets, ssl, fd))
        SSL_free(ssl);
    else if (ssl != NULL)
        connection = bufferevent_openssl_socket_new(
            base, fd, ssl, state, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (connection == NULL)
        evutil_closesocket(fd);
    return connection;
}

struct bufferevent *tls_accept(const struct tls *tls, struct tls_sockets *sockets,
                               struct event_base *base, int fd)
{
    return begin(sockets, base, fd, SSL_new(tls->context), BUFFEREVENT_SSL_ACCEPTING);
}

/* Require that the server's certificate names the host. Certificates have a separate field for IP
 * addresses, and an IP address is not sent as a server name (SNI). */
static bool expect_host(SSL *ssl, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    char number[INET6_ADDRSTRLEN]; /* without the zone, which certificates do not have */
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    snprintf(number, sizeof(number), "%.*s", (int)strcspn(host, "%"), host);
    if (inet_pton(AF_INET, number, address) == 1 || inet_pton(AF_INET6, number, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, number) == 1;
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct bufferevent *tls_connect(const struct tls *tls, struct tls_sockets *sockets,
                                struct event_base *base, int fd, const char *host)
{
    SSL *ssl = SSL_new(tls->context);
    if (ssl != NULL && !expect_host(ssl, host)) {
        SSL_free(ssl);
        ssl = NULL;
    }
    return begin(sockets, base, fd, ssl, BUFFEREVENT_SSL_CONNECTING);
}

void tls_shutdown(struct bufferevent *connection)
{
    ERR_clear_error();
    SSL_shutdown(bufferevent_openssl_get_ssl(connection));
    ERR_clear_error();
}

/* --- failures --- */

/* The first of the OpenSSL errors that libevent has kept; 0: none. libevent returns the last error
 * first. After the errors it returns a number that is not an error, which the check of the library
 * skips. */
static unsigned long first_error(struct bufferevent *connection)
{
    unsigned long error;
    unsigned long first = 0;
    while ((error = bufferevent_get_openssl_error(connection)) != 0)
        if (ERR_GET_LIB(error) == ERR_LIB_SSL)
            first = error;
    return first;
}

static enum reason reason_of_verify(long result)
{
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return REASON_EXPIRED;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return REASON_WRONGNAME;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_CERT_UNTRUSTED:
        return REASON_UNTRUSTED;
    default:
        return REASON_CERTIFICATE;
    }
}

/* Errors for which the daemon has its own reason and text. All others keep OpenSSL's text. */
static const struct {
    int error; /* OpenSSL's reason code */
    enum reason reason;
    const char *why;
} failures[] = {
    {SSL_R_UNEXPECTED_EOF_WHILE_READING, REASON_DISCONNECTED,
     "the peer closed the connection without close_notify"},
    {SSL_R_HTTP_REQUEST, REASON_TLS, "the peer speaks HTTP instead of TLS"},
    {SSL_R_HTTPS_PROXY_REQUEST, REASON_TLS, "the peer speaks HTTP instead of TLS"},
    {SSL_R_WRONG_VERSION_NUMBER, REASON_TLS, "the peer does not speak TLS"},
    {SSL_R_PACKET_LENGTH_TOO_LONG, REASON_TLS, "the peer does not speak TLS"},
    {SSL_R_RECORD_LENGTH_MISMATCH, REASON_TLS, "the peer does not speak TLS"},
    {SSL_R_UNSUPPORTED_PROTOCOL, REASON_TLS, "the peer supports neither TLS 1.2 nor TLS 1.3"},
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, REASON_UNCERTIFIED, "the client sent no certificate"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, REASON_UNCERTIFIED,
     "the server requires a client certificate"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, REASON_UNCERTIFIED,
     "the peer does not trust the CA of this daemon's certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, REASON_UNCERTIFIED,
     "the peer rejected this daemon's certificate as expired"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, REASON_UNCERTIFIED,
     "the peer rejected this daemon's certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, REASON_UNCERTIFIED,
     "the peer rejected this daemon's certificate"},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, REASON_UNCERTIFIED,
     "the peer rejected this daemon's certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, REASON_UNCERTIFIED,
     "the peer rejected this daemon's certificate as revoked"},
};

enum reason tls_failure(struct bufferevent *connection, const char **why)
{
    SSL *ssl = bufferevent_openssl_get_ssl(connection);
    unsigned long error = first_error(connection);
    *why = "the connection was lost";
    if (error == 0)
        return REASON_DISCONNECTED;
    if (ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        long result = SSL_get_verify_result(ssl);
        *why = X509_verify_cert_error_string(result);
        return reason_of_verify(result);
    }
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
        if (failures[i].error == ERR_GET_REASON(error)) {
            *why = failures[i].why;
            return failures[i].reason;
        }
    const char *text = ERR_reason_error_string(error);
    *why = text != NULL ? text : "the handshake failed";
    return REASON_TLS;
}

bool tls_certificate_requested(struct bufferevent *connection)
{
    return SSL_get_app_data(bufferevent_openssl_get_ssl(connection)) != NULL;
}

/* --- names --- */

static void write_name(const unsigned char *bytes, int len, char *name, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < len; i++) {
        bool plain = isascii(bytes[i]) && (isalnum(bytes[i]) || strchr("_.:@/+=*-", bytes[i]));
        size_t needed = plain && bytes[i] != '\0' ? 1 : 3;
        if (used + needed >= size) {
            used = 0;
            break;
        }
        snprintf(name + used, needed + 1, needed == 1 ? "%c" : "%%%02X", bytes[i]);
        used += needed;
    }
    if (used == 0)
        snprintf(name, size, "?");
}

/* False if the certificate has no common name. */
static bool write_common_name(const X509 *certificate, char *name, size_t size)
{
    unsigned char *text = NULL;
    X509_NAME *subject = X509_get_subject_name(certificate);
    int index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    const X509_NAME_ENTRY *entry = index >= 0 ? X509_NAME_get_entry(subject, index) : NULL;
    int len = entry != NULL ? ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry)) : -1;
    if (len > 0)
        write_name(text, len, name, size);
    OPENSSL_free(text);
    return len > 0;
}

static void write_alternative_name(const X509 *certificate, char *name, size_t size)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    snprintf(name, size, "?");
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        int type;
        const ASN1_STRING *text = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
        if (type != GEN_DNS && type != GEN_URI && type != GEN_EMAIL)
            continue;
        write_name(ASN1_STRING_get0_data(text), ASN1_STRING_length(text), name, size);
        break;
    }
    GENERAL_NAMES_free(names);
}

const X509 *tls_peer_certificate(struct bufferevent *connection)
{
    return SSL_get0_peer_certificate(bufferevent_openssl_get_ssl(connection));
}

void tls_peer_name(struct bufferevent *connection, char *name, size_t size)
{
    const X509 *certificate = tls_peer_certificate(connection);
    name[0] = '\0';
    if (certificate != NULL && !write_common_name(certificate, name, size))
        write_alternative_name(certificate, name, size);
    ERR_clear_error();
}
