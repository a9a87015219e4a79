/*
 * One client connection (docs/protocol.txt): its state, its input and its output. sessions.c begins
 * and ends it.
 *
 * Waiting requests, unread input and rounds in flight are limited. The daemon stops reading from a
 * client that sends too much. It drops a client that does not read its replies.
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
#include "server/clients/reply_queue.h"
#include "server/clients/turns.h"
#include "server/net/stream.h"

struct clients;
struct session;

LIST_HEAD(session_list, session);
TAILQ_HEAD(session_queue, session);

enum { SESSION_SUBJECT_MAX = 128 };

/* The progress of the connection. Only session_set_state() changes it, and only forward.
 * Authentication is separate, because a reload may grant or revoke it, and RESET revokes it: see
 * struct auth_identity. */
enum session_state {
    SESSION_OPEN,
    SESSION_ENDING,  /* the client has stopped sending; lines may be left to read */
    SESSION_ENDED,   /* all input has been read; LOCKs are undone, other requests get replies */
    SESSION_CLOSING, /* takes no more lines; closed once all output is sent */
    SESSION_DROPPED, /* freed by the next sweep, with any unsent output */
};

struct session {
    struct clients *clients;     /* the owner */
    struct engine_client client; /* the engine's part */
    enum session_state state;
    struct stream stream;           /* over TLS, an end without close_notify is a loss */
    struct evbuffer *pending_input; /* untagged lines that wait for an earlier one; NULL: none */
    int64_t since_ns;
    uint64_t requests;
    struct reply_queue replies; /* RESP: replies that wait for those of earlier commands */
    int64_t lines_ns;          /* when this pass began to take lines; the client sent them before */
    enum dialect dialect;      /* the first byte of a connection decides: line protocol or RESP */
    uint16_t slot;             /* RESP: in `replies`, of the last command passed to the engine */
    bool commands_wait;        /* RESP: the next command waits for replies to earlier ones */
    bool first_line_seen;      /* until then, the peer may speak another protocol */
    bool untagged_pending;     /* the engine has an untagged request without a reply */
    bool discarding;           /* skipping the rest of a line that is too long */
    bool is_deferred;          /* is in clients->deferred */
    bool evicted;              /* a reload has taken its user or rights: the sweep closes it */
    LIST_ENTRY(session) entry; /* in clients->sessions */
    TAILQ_ENTRY(session) deferred;
    struct turn turn;
    struct auth_identity identity;                                   /* its user and its rights */
    char peer[PEER_NAME_MAX + sizeof(",cn=") + SESSION_SUBJECT_MAX]; /* for the log and listings */
};

/* Change to a later state. Also defers the session: session_defer(). */
void session_set_state(struct session *session, enum session_state state);

/* Whether the daemon still takes lines from the client. */
static inline bool session_takes_lines(const struct session *session)
{
    return session->state < SESSION_CLOSING;
}

/* Whether the daemon takes another line or command from the client in this turn. */
static inline bool session_has_budget(const struct session *session)
{
    return session_takes_lines(session) && session->turn.lines_left > 0;
}

/* Whether the client has stopped sending. Over TLS, SESSION_ENDING is no proof: the kernel has
 * reported the end of the TCP connection, which any host on the path can forge. */
static inline bool session_has_ended(const struct session *session)
{
    return session->state == SESSION_ENDING || session->state == SESSION_ENDED;
}

/* Let sessions_on_sweep() handle the session at the end of this pass, or in a later one if many
 * sessions are deferred. */
void session_defer(struct session *session);

/* Log why the session is dropped, and free it after this pass. No effect if it was dropped before.
 * session_drop() logs it as CLIENT_LOG_DROPPED. */
void session_drop(struct session *session, const char *why);
void session_drop_as(struct session *session, enum client_log_kind kind, const char *why);

/* The number of bytes that can be written before the client is dropped for not reading its
 * replies. */
size_t session_room(const struct session *session);

/* In the functions below, the request may be NULL if the session speaks RESP. */

/* Write a part of a reply in the session's dialect. RESP: after the replies to all earlier
 * commands. */
void session_write_bytes(struct session *session, const char *bytes, size_t len);

/* Write one line of the line protocol, prefixed with the tag of the request. */
void session_write_line(struct session *session, const struct request *request, const char *line,
                        size_t len);

/* Write a reply of fixed text: a line, or a simple string of RESP. */
void session_write_text(struct session *session, const struct request *request, const char *text);

/* Count a request that is invalid, and write its reply. */
void session_write_error(struct session *session, const struct request *request,
                         enum request_error error, const char *text);

/* Count a request that the user may not make, and write its reply. */
void session_deny(struct session *session, const struct request *request, enum verb verb,
                  enum acl_answer why);

/* Write the line "<word> <text>", or a RESP error with its own first word. */
void session_write_refusal(struct session *session, const struct request *request, const char *word,
                           const char *resp_word, const char *text);

/* Pass a request to the engine. A RESP command gets a tag for the engine. */
void session_submit(struct session *session, struct request *request);

/* The client callbacks of struct engine_io. */
void session_on_reply(struct session *session, const char *tag, size_t tag_len,
                      const struct reply *reply);
void session_on_undone(struct session *session, const char *tag, size_t tag_len);
void session_on_push(struct session *session, const struct push *push);

/* Set the timer for the oldest unauthenticated connection, if there is one. */
void clients_set_auth_timer(struct clients *clients);

/* The name of the session's user, or `none` if it has no user. */
const char *session_user(const struct session *session, const char *none);

/* Log that the session has authenticated as its user. */
void session_log_authenticated(const struct session *session);

/* Whether the input may contain a secret, so that it must be erased after use. */
bool session_may_send_secret(const struct session *session);

/* Take no more lines, and close the session once all its output is sent. */
void session_close_when_written(struct session *session);

/* --- requests.c: from a line to the handler of its request --- */

enum line_outcome {
    LINE_TAKEN,
    LINE_PENDING, /* it is untagged, and another untagged request is pending */
    LINE_LATER,   /* it has to wait for another pass, and the lines after it too */
};

/* Handle one line without its newline. A RESP command has the form of a line without tag. */
enum line_outcome requests_take_line(struct session *session, const char *line, size_t len);

/* Check the client's secret and write the reply, unless it is accepted. Returns whether it is. Sets
 * credentials->same_user. */
bool requests_authenticate(struct session *session, const struct request *request,
                           struct auth_credentials *credentials);

/* --- lines.c: lines to requests ---
 *
 * Untagged requests are answered in order, and each starts only after the reply to the previous
 * one. Untagged lines that arrive earlier wait in pending_input. Tagged requests start as they
 * arrive. */

void lines_take(struct session *session);

/* Whether a line that waits in pending_input can be taken, and whether another one can wait. */
bool lines_can_start(const struct session *session);
bool lines_have_room(const struct session *session);

/* --- commands.c: RESP commands to requests ---
 *
 * Commands start as they arrive, and their replies are written in order. A command that changes or
 * ends the connection waits for the replies to all earlier ones (commands_wait). */

void commands_take(struct session *session);

/* --- listing.c: the replies to NODES, STATS, LOCKS, CLIENTS and HELP, one line per item --- */

/* Write the reply, including its last line END. A list of all locks or all clients has at most
 * LIMIT_LISTING_LINES lines, and fewer if there is no room for more; then the line before END says
 * how many lines were left out. Such a list makes the session slow, and so does any listing that
 * takes long; either ends the session's turn. */
void listing_write(struct session *session, const struct request *request);

/* Is it a list of all locks or all clients, which turns_may_be_slow() has to allow? */
bool listing_is_limited(const struct request *request);

#endif
