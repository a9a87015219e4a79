/*
 * The socket below a TLS connection, as a BIO of OpenSSL that limits what is read in one pass of
 * the loop.
 *
 * OpenSSL reads until it has data for its caller. What a peer sends besides (parts of handshakes,
 * changes of keys, empty records) can be endless, and OpenSSL would read it in one call. So a
 * connection may read LIMIT_TLS_READS times in a pass; then the socket looks as if nothing were
 * there, and as it is still readable, the loop comes back to it in its next pass.
 */
#ifndef SERVER_NET_TLS_SOCKET_H
#define SERVER_NET_TLS_SOCKET_H

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/net/pass.h"

/* What all of a loop have in common; it outlives them. */
struct tls_sockets {
    BIO_METHOD *method;
    struct pass *pass; /* a connection may read again once it has ended */
};

/* False if there is not enough memory. */
bool tls_sockets_init(struct tls_sockets *sockets, struct pass *pass);
void tls_sockets_deinit(struct tls_sockets *sockets);

/* Have this connection read from and write to the socket, which it does not own. False if there is
 * not enough memory. */
bool tls_socket_attach(struct tls_sockets *sockets, SSL *ssl, int fd);

#endif
