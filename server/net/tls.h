/*
 * TLS by OpenSSL, over libevent's bufferevents: who we are, whom we believe, and what went wrong.
 *
 * TLS 1.2 with forward secrecy or TLS 1.3; no renegotiation, no compression, no early data. What a
 * connection needs it takes when it begins: a context may be replaced at any time, for those that
 * come later.
 */
#ifndef SERVER_NET_TLS_H
#define SERVER_NET_TLS_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "protocol/reason.h"
#include "protocol/text.h"
#include "server/net/pass.h"

/* For the connections to come: to replace it, make a new one, and deinit the old one then. */
struct tls {
    SSL_CTX *context; /* NULL: no TLS */
};

/* Load the files. On failure the error says which one, and there is nothing to deinit. */
bool tls_init_listen(struct tls *tls, const struct config_tls *config, struct error *error);
bool tls_init_node(struct tls *tls, const struct config_tls *config, struct error *error);
void tls_deinit(struct tls *tls);

/* Do both show their peers the same certificate, or none? */
bool tls_is_same_certificate(const struct tls *one, const struct tls *other);

/*
 * What all connections of a loop have in common; it outlives them. Their sockets are a BIO of
 * OpenSSL that limits what is read in one pass of the loop.
 *
 * OpenSSL reads until it has data for its caller. What a peer sends besides (parts of handshakes,
 * changes of keys, empty records) can be endless, and OpenSSL would read it in one call. So a
 * connection may read LIMIT_TLS_READS times in a pass; then the socket looks as if nothing were
 * there, and as it is still readable, the loop comes back to it in its next pass.
 */
struct tls_sockets {
    BIO_METHOD *method;
    struct pass *pass; /* a connection may read again once it has ended */
};

/* False if there is not enough memory. */
bool tls_sockets_init(struct tls_sockets *sockets, struct pass *pass);
void tls_sockets_deinit(struct tls_sockets *sockets);

/*
 * A handshake over a socket that is connected, as server, or as client of `host`, whose certificate
 * has to be for that name or address. Owns the socket, which is closed together with what is
 * returned; NULL if there is no memory, and then the socket is closed. BEV_EVENT_CONNECTED tells of
 * the end of the handshake. Callbacks are deferred, so that whatever came before an end or an error
 * has been read when that is told.
 */
struct bufferevent *tls_accept(const struct tls *tls, struct tls_sockets *sockets,
                               struct event_base *base, int fd);
struct bufferevent *tls_connect(const struct tls *tls, struct tls_sockets *sockets,
                                struct event_base *base, int fd, const char *host);

/* Tell the other side that this is an end in order; for one that has read and written all it
 * wanted. Never waits. */
void tls_shutdown(struct bufferevent *connection);

/* After an error: its reason, and a sentence for people, which is static. Once for each.
 * REASON_DISCONNECTED: the connection was lost, or ended without a word (no close_notify);
 * REASON_UNCERTIFIED: the peer has no certificate; or, to us, refuses ours or wants one. */
enum reason tls_failure(struct bufferevent *connection, const char **why);

/* Has the server that we connect to asked for a certificate of ours? With TLS 1.3 the handshake is
 * over for us before it looks at that, and its word about it may be lost in the reset behind. */
bool tls_was_asked(struct bufferevent *connection);

/*
 * The name in the certificate of the peer, which has been verified: its common name, or else the
 * first of its alternative names. Bytes that could upset a listing are written as %20, so that
 * different names stay different; one that does not fit is "?". "" if the peer has no certificate.
 */
void tls_peer_name(struct bufferevent *connection, char *name, size_t size);

#endif
