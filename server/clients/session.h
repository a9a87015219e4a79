/*
 * One client connection (docs/protocol.txt): its state, what is written to it, and what it sends.
 * When it begins and ends is for sessions.c.
 *
 * What waits, what is unread and what is under way is limited: a client that sends too much is not
 * read from, a client that does not read its answers is dropped.
 */
#ifndef SERVER_CLIENTS_SESSION_H
#define SERVER_CLIENTS_SESSION_H

#include <event2/buffer.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/engine.h"
#include "server/clients/auth.h"
#include "server/clients/client_log.h"
#include "server/clients/peer.h"
#include "server/net/stream.h"

struct clients;
struct session;

LIST_HEAD(session_list, session);
TAILQ_HEAD(session_queue, session);

enum { SESSION_SUBJECT_MAX = 128 };

/* How far the connection is; session_set_state() alone changes it, and only forward. Whether the
 * client has authenticated is another matter, since a reload may change that both ways: see
 * struct auth_identity. */
enum session_state {
    SESSION_NEW,     /* no whole line has come yet: it may speak another protocol */
    SESSION_OPEN,    /* the first line has been seen */
    SESSION_ENDING,  /* the client sends no more, but there may be lines left to read */
    SESSION_ENDED,   /* ... and all it sent has been read: what is under way is answered */
    SESSION_CLOSING, /* no line is taken any more; closed once all is written */
    SESSION_DROPPED, /* freed by the next sweep, whatever is unwritten */
};

struct session {
    struct clients *clients;     /* the owner */
    struct engine_client client; /* what the engine keeps */
    enum session_state state;
    struct stream stream;           /* over TLS, its end is one in order only by close_notify */
    struct evbuffer *pending_input; /* untagged lines, while another is under way; NULL: none */
    int64_t since_ns;
    uint64_t requests;
    int64_t lines_ns;          /* what is taken in this pass was sent by then */
    unsigned lines_taken;      /* in this pass, of the read budget */
    bool untagged_pending;     /* the engine has an untagged request that is not answered */
    bool discarding;           /* inside a line that is too long */
    bool is_deferred;          /* it is in clients->deferred */
    bool on_next_pass;         /* it is in clients->next_pass: its read budget is spent */
    LIST_ENTRY(session) entry; /* of clients->sessions */
    LIST_ENTRY(session) deferred;
    TAILQ_ENTRY(session) next_pass;
    struct auth_identity identity; /* which user it is, and what it may do */
    char peer[PEER_NAME_MAX + sizeof(",cn=") + SESSION_SUBJECT_MAX]; /* for people */
};

/* Forward only. Has the session deferred after this pass where the new state asks for it. */
void session_set_state(struct session *session, enum session_state state);

/* May lines be taken? */
static inline bool session_takes_lines(const struct session *session)
{
    return session->state < SESSION_CLOSING;
}

/* The client sends no more; over TLS, as far as the kernel knows. */
static inline bool session_has_ended(const struct session *session)
{
    return session->state == SESSION_ENDING || session->state == SESSION_ENDED;
}

/* Have it looked at after this pass of the loop: see sessions_on_sweep(). */
void session_defer(struct session *session);

/* Go on with its lines in the next pass, after what is ready by then. */
void session_want_next_pass(struct session *session);

/* Free it after this pass, and log why. Nothing if it has been dropped before. */
void session_drop(struct session *session, const char *why);
void session_drop_as(struct session *session, enum client_log_kind kind, const char *why);

/* How many bytes can be written before the client counts as one that does not read its answers. */
size_t session_room(const struct session *session);

/* Write one line, with the tag of its request. */
void session_write_line(struct session *session, const struct request *request, const char *line,
                        size_t len);
void session_write_text(struct session *session, const struct request *request, const char *text);
void session_write_error(struct session *session, enum request_error error, const char *text,
                         const char *tag, size_t tag_len);

/* For struct engine_io. */
void session_on_reply(struct session *session, const char *tag, size_t tag_len,
                      const struct reply *reply);
void session_on_undone(struct session *session, const char *tag, size_t tag_len);
void session_on_push(struct session *session, const struct push *push);

/* The name of its user, or `none` without one. */
const char *session_user(const struct session *session, const char *none);

/* It has become that user: for the log. */
void session_log_authenticated(const struct session *session);

/* --- requests.c: bytes to lines, lines to requests, and each request to whatever answers it ---
 *
 * Untagged requests are answered in order, and one starts only after the one before is answered;
 * the lines that have to wait are kept in pending_input. Tagged ones start as they come. */

/* Take all lines that can be taken now, as far as the read budget goes; and read on, or do not. */
void requests_take(struct session *session);

/* --- listing.c: NODES, STATS, LOCKS, CLIENTS, HELP: one subject a line in key=value words --- */

/* The whole answer, END included. One of all locks or all clients takes the session's whole read
 * budget. */
void listing_write(struct session *session, const struct request *request);

#endif
