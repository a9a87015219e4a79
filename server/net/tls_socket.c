#include "server/net/tls_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "protocol/limits.h"

struct tls_socket {
    struct tls_sockets *sockets;
    int fd;
    unsigned reads; /* in this pass */
    uint64_t pass;
};

static bool may_read(struct tls_socket *socket)
{
    struct tls_sockets *sockets = socket->sockets;
    if (socket->pass != sockets->pass->number) {
        socket->pass = sockets->pass->number;
        socket->reads = 0;
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

/* What OpenSSL and libevent ask for; nothing is buffered here. */
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

bool tls_socket_attach(struct tls_sockets *sockets, SSL *ssl, int fd)
{
    struct tls_socket *socket = calloc(1, sizeof(*socket));
    BIO *bio = BIO_new(sockets->method);
    if (socket == NULL || bio == NULL) {
        free(socket);
        BIO_free(bio);
        return false;
    }
    socket->sockets = sockets;
    socket->fd = fd;
    BIO_set_data(bio, socket);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    return true;
}
