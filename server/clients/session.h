/*
 * One client connection: lines in, replies out (docs/protocol.txt).
 *
 * Untagged requests are answered in order, and one starts only after the one before is answered;
 * the lines that have to wait are held back. Tagged ones start as they come. What waits, what is
 * unread and what is under way is bounded: a client that sends too much is not read from, one that
 * does not read its answers is dropped.
 */
#ifndef SERVER_CLIENTS_SESSION_H
#define SERVER_CLIENTS_SESSION_H

#include <event2/buffer.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "config/permit.h"
#include "engine/engine.h"
#include "protocol/limits.h"
#include "server/clients/origin.h"
#include "server/net/ends.h"
#include "server/net/stream.h"

struct clients;
struct user;
struct session;

LIST_HEAD(session_list, session);

/* "[0000:0000:0000:0000:0000:0000:0000:0000]:65535", "uid=4294967295,pid=4294967295"; over TLS,
 * ",cn=" and the name in the certificate behind it. */
enum { SESSION_PEER_MAX = 64, SESSION_SUBJECT_MAX = 128 };

/* Who is at the other end. */
struct peer {
    struct origin origin;
    bool local; /* it came by a unix socket */
    bool owner; /* ... as root, or as the user that this daemon runs as */
    char name[SESSION_PEER_MAX];
};

struct session {
    struct clients *clients;     /* the owner */
    struct engine_client client; /* what the engine keeps */
    LIST_ENTRY(session) entry;
    LIST_ENTRY(session) swept;
    TAILQ_ENTRY(session) turn;  /* while has_turn */
    struct stream stream;       /* over TLS, its end is one in order only by close_notify */
    struct evbuffer *held_back; /* untagged lines, while another is under way */
    size_t held_back_len;       /* the bytes in it */
    struct end_watch end_watch; /* while there is more to be read than may be */
    uint64_t requests;
    int64_t since_ns;
    char peer[SESSION_PEER_MAX + sizeof(",cn=") + SESSION_SUBJECT_MAX];
    char subject[SESSION_SUBJECT_MAX]; /* see tls_peer_name(); "" without a certificate */
    struct origin origin;

    /* Who it is, and what it may do; for server/clients/gate.c alone to change. */
    const struct user *user; /* NULL: not known, or there are no users */
    struct permit permit;
    TAILQ_ENTRY(session) waiting; /* while at_gate */
    int64_t at_gate_ns;           /* since when */
    bool at_gate;
    bool by_secret; /* it has authenticated; otherwise the user is that of its unix socket */
    bool owner;
    bool spoken; /* has sent a whole line */
    bool untagged_under_way;
    bool discarding; /* inside a line that is too long */
    bool on_sweep;
    int64_t turn_ns;     /* when this turn began, behind all that is served in it */
    unsigned turn_lines; /* taken in this turn */
    bool has_turn;       /* there is more to be taken in the next pass */
    bool ended;          /* the client will send no more */
    bool end_seen;       /* nor will it here, but there are lines left to read */
    bool quitting;       /* close once all is written */
    bool dropped;        /* to be freed, whatever is unwritten */
    bool local;          /* a unix socket: the client ends it in order, or by a reset */
};

/* Serve a connection that was accepted; owns fd from now on. False if there is no memory for it. */
bool session_new(struct clients *clients, int fd, const struct peer *peer);

/* Close it now, with a last line (and its LF) if it can take one. Not for a callback of its own. */
void session_evict(struct session *session, const char *line, const char *why);

/* The same for one whose TLS handshake is done; owns the connection from now on. */
bool session_new_tls(struct clients *clients, struct bufferevent *tls, const struct peer *peer);

/* Free all of them, as if each client had gone. */
void session_free_all(struct clients *clients);

/* The sessions that wanted attention: see struct clients. */
void session_sweep(struct clients *clients);

/* The sessions that had more to say than one turn takes: see struct clients. */
void session_take_turns(struct clients *clients);

/* For struct engine_io. */
void session_on_reply(struct session *session, const char *tag, size_t tag_len,
                      const struct reply *reply);
void session_on_undone(struct session *session, const char *tag, size_t tag_len);
void session_on_push(struct session *session, const struct push *push);

#endif
