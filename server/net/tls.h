/*
 * TLS by OpenSSL, over libevent's bufferevents: contexts, handshakes, and the reasons of failures.
 *
 * TLS 1.2 with forward secrecy or TLS 1.3; no renegotiation, no compression, no early data. A
 * connection takes its parameters from the context when it begins, so a context may be replaced at
 * any time for later connections.
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

/* The context for new connections. To replace it, initialise a new one and deinit the old one. */
struct tls {
    SSL_CTX *context; /* NULL: no TLS */
};

/* Create the context for the clients of a listener or for the connections to a node, and load its
 * files. If a file cannot be loaded, the error names it. After a failure there is nothing to
 * deinit. */
bool tls_init_listen(struct tls *tls, const struct config_tls *config, struct error *error);
bool tls_init_node(struct tls *tls, const struct config_tls *config, struct error *error);
void tls_deinit(struct tls *tls);

/* Whether both contexts present the same certificate to peers, or neither presents one. */
bool tls_is_same_certificate(const struct tls *one, const struct tls *other);

/*
 * What all TLS connections of a loop share; it must outlive them. Their sockets use a custom
 * OpenSSL BIO that limits the reads in one pass of the event loop.
 *
 * OpenSSL reads until it has data for its caller. A peer can send endless handshake fragments, key
 * updates or empty records, and OpenSSL would read all of them in one call. So a connection may
 * read LIMIT_TLS_READS times per pass, and only LIMIT_HANDSHAKES_A_PASS clients may read for their
 * handshakes. After that the BIO reports that no data is available. The socket is still readable,
 * so the loop returns to it in the next pass.
 */
struct tls_sockets {
    BIO_METHOD *method;
    struct pass *pass;     /* reads are limited per pass */
    uint64_t counted_pass; /* the pass of the next two fields */
    unsigned wanted;       /* clients that were about to read for their handshakes */
    unsigned advanced;     /* those that were allowed to */
    unsigned rest;         /* passes for which a handshake that has read waits */
};

/* False if there is not enough memory. */
bool tls_sockets_init(struct tls_sockets *sockets, struct pass *pass);
void tls_sockets_deinit(struct tls_sockets *sockets);

/*
 * Start a handshake over a connected socket, as the server or as a client of `host`, which the
 * certificate must name. The returned bufferevent owns the socket. If there is not enough memory,
 * the socket is closed and NULL is returned. BEV_EVENT_CONNECTED reports that the handshake is
 * complete. Callbacks are deferred: when the connection ends or fails, the read callback gets the
 * remaining input first, and then the event callback reports the end or the error.
 */
struct bufferevent *tls_accept(const struct tls *tls, struct tls_sockets *sockets,
                               struct event_base *base, int fd);
struct bufferevent *tls_connect(const struct tls *tls, struct tls_sockets *sockets,
                                struct event_base *base, int fd, const char *host);

/* Send close_notify, on a connection whose input and output are complete. Never blocks. */
void tls_shutdown(struct bufferevent *connection);

/* Returns the reason of an error, and in *why a static sentence for the operator. Call it once per
 * error, because it takes the error off the connection. REASON_DISCONNECTED: the connection was
 * lost, or ended without close_notify. REASON_UNCERTIFIED: the client sent no certificate; or the
 * peer, a server or a client, rejected this daemon's certificate; or the server requires one. */
enum reason tls_failure(struct bufferevent *connection, const char **why);

/* Whether the server has requested a client certificate. With TLS 1.3, the handshake is complete
 * for the client before the server checks the client's certificate. If the server then rejects the
 * certificate, its alert can be lost in the reset that follows, and only this request hints at the
 * reason. */
bool tls_certificate_requested(struct bufferevent *connection);

/* The peer's verified certificate, for as long as the connection lives; NULL: it has none. */
const X509 *tls_peer_certificate(struct bufferevent *connection);

/*
 * The name in the peer's verified certificate: its common name, or else its first alternative name
 * that is a DNS name, a URI or an email address. Bytes that would break a listing are
 * percent-encoded, as in %20, so different names stay different. "?" if the certificate has no such
 * name or the name does not fit; "" if the peer has no certificate.
 */
void tls_peer_name(struct bufferevent *connection, char *name, size_t size);

#endif
