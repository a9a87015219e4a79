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

/* What all of a loop have in common; it outlives them. */
struct tls_sockets {
    BIO_METHOD *method;
    uint64_t pass; /* counted by tls_sockets_next_pass() */
    void (*wants_flush)(void *context);
    void *context;
};

/* wants_flush: have tls_sockets_next_pass() called in this pass of the loop, or the next. It is
 * asked for by a connection that may read no more. False if there is not enough memory. */
bool tls_sockets_init(struct tls_sockets *sockets, void (*wants_flush)(void *context),
                      void *context);
void tls_sockets_deinit(struct tls_sockets *sockets);

/* Each connection may read again. */
void tls_sockets_next_pass(struct tls_sockets *sockets);

/* Have this connection read from and write to the socket, which it does not own. False if there is
 * not enough memory. */
bool tls_socket_attach(struct tls_sockets *sockets, SSL *ssl, int fd);

#endif
