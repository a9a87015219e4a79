/*
 * The protocol state of a handle: requests under way, answers, and events for the caller. This
 * module has no socket and no clock: handle.c passes in the time and the bytes that it has read.
 *
 *     proto_ask() -> outgoing -> proto_write() -> sent -> proto_receive() -> notice -> proto_take()
 *
 * Confirming a late grant. The deadline of a lock allows for the clock drift during the whole wait
 * in the queue. So after a long wait, a grant can arrive past its deadline although the masters
 * still hold the lock (docs/protocol.txt, "What a client may conclude"). The library then sends
 * EXTEND by itself. The answer shows whether the lock is still held, and gives it a new deadline.
 *
 * Giving up. The daemon may still grant a request that has timed out or was cancelled. The library
 * keeps waiting for the answer and releases such a grant with UNLOCK. If the connection has no
 * other purpose (proto_is_spent()), handle.c closes it instead, which also makes the daemon undo
 * the request, unless a grant without HOLD is in transit at that moment. The exception is an EXTEND
 * that confirms a late grant without HOLD: closing the connection would not release that lock, so
 * the library waits for the answer with a new timeout.
 *
 * Request numbers are never reused, so a duplicate answer is recognized.
 */
#ifndef CLIENT_C_CLIENT_PROTO_H
#define CLIENT_C_CLIENT_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client/c/client_request.h"
#include "client/c/hold.h"
#include "client/c/redlock.h"
#include "protocol/limits.h"

enum { PROTO_TEXT = 640, PROTO_PEER = LIMIT_URL };

enum exchange_state { EXCHANGE_IDLE, EXCHANGE_QUEUED, EXCHANGE_SENT };

/* Where the answer goes: to the caller, to the library itself, or nowhere. */
enum exchange_for { TO_CALLER, TO_LIBRARY, TO_NONE };

/* A request and its answer. It returns to the idle list when the caller has taken the answer. */
struct exchange {
    struct notice notice;
    TAILQ_ENTRY(exchange) entry; /* in the idle list or the outgoing list */
    unsigned index;
    uint64_t id;
    enum exchange_state state;
    enum exchange_for recipient;
    struct client_request request;
    struct client_hold *hold; /* allocated in advance for the lock to acquire; NULL without HOLD */
    bool confirms;            /* the request is an EXTEND that confirms a late grant */
    bool lost;                /* LOST arrived while a late grant was being confirmed */
    int64_t sent_ns;
    int64_t until_ns;           /* the request times out then */
    struct redlock_event event; /* its id is the one the caller got, even after `id` has changed */
    char text[PROTO_TEXT];      /* error message that goes with the event */
    void (*line)(void *context, const char *text); /* LIST, VERSION */
    void *context;
};
TAILQ_HEAD(exchange_list, exchange);

struct client_proto {
    const char *peer;   /* address of the daemon, for messages */
    int64_t timeout_ns; /* time limit of a request, without its wait */
    struct exchange *exchange[LIMIT_CLIENT_REQUESTS];
    unsigned made; /* how many exchanges are allocated */
    uint64_t sequence;
    unsigned living;    /* exchanges queued or sent whose answer is wanted */
    unsigned abandoned; /* exchanges sent whose answer will be discarded */
    struct exchange_list idle;
    struct exchange_list outgoing;
    struct notices notices;
    struct client_holds holds;
    struct notice closed;
    bool lingers;         /* LINGER was requested on this connection: QUIT must release the locks */
    bool ended_on_holds;  /* the connection that proto_end() ended last had HOLDs */
    bool closed_on_holds; /* a connection that `closed` reports had HOLDs */
    char label[REDLOCK_LABEL_MAX + 1];
    char secret[LIMIT_SECRET + 1];
    bool auth_due;           /* AUTH must be sent, before all else */
    bool auth_sent;          /* AUTH was sent and is not answered yet */
    bool name_due;           /* NAME must be sent */
    bool name_sent;          /* NAME was sent and is not answered yet */
    int64_t last_input_ns;   /* last time that the daemon sent anything */
    bool silent;             /* a request timed out, and nothing has arrived since it was sent */
    int64_t silent_since_ns; /* while silent: when the first such request was sent */
    int64_t longest_hold_ns; /* longest TTL of a HOLD of this connection */
    char input[LIMIT_REPLY]; /* an incomplete line */
    size_t input_len;
    char error[PROTO_TEXT]; /* for redlock_error() */
};

void proto_init(struct client_proto *proto);
void proto_free(struct client_proto *proto);

/* Starts a new connection. */
void proto_begin(struct client_proto *proto);

/* Ends the connection: the caller gets this status as the answer to each request under way. With
 * `notify`, the caller also gets REDLOCK_EVENT_CLOSED. */
void proto_end(struct client_proto *proto, enum redlock_status status, const char *why,
               bool notify);

/* In a forked child: locks that were granted belong to the parent, so OK answers that were not
 * taken yet become REDLOCK_BROKEN. */
void proto_disown_answers(struct client_proto *proto, const char *why);

/* Sets the secret for the next connection; NULL removes it. */
void proto_set_secret(struct client_proto *proto, const char *secret);

/* Sets the label. If `connected`, NAME is also sent on the present connection. */
void proto_set_label(struct client_proto *proto, const char *label, bool connected);

/* Queues a request. Returns REDLOCK_OK, REDLOCK_LIMIT (too many requests are under way or not
 * taken yet) or REDLOCK_MEMORY. line() gets the lines of a listing; NULL for other requests. */
enum redlock_status proto_ask(struct client_proto *proto, const struct client_request *request,
                              int64_t now_ns, void (*line)(void *context, const char *text),
                              void *context, uint64_t *id);

/* Gives up one request or all: the caller gets no answer, and a lock that is granted is released.
 */
void proto_cancel(struct client_proto *proto, uint64_t id, int64_t now_ns);
void proto_cancel_all(struct client_proto *proto, int64_t now_ns);

/* proto_has_output() says whether proto_write() has anything to write. proto_write() fills buf with
 * as many whole lines as fit and returns their length. The requests count as sent at now_ns. */
bool proto_has_output(const struct client_proto *proto);
size_t proto_write(struct client_proto *proto, int64_t now_ns, char *buf, size_t size);

/* Handles bytes that were read after received_ns. False: the connection is unusable. Then each
 * request under way has got its answer, and proto_end() need not be called. */
bool proto_receive(struct client_proto *proto, const char *bytes, size_t len, int64_t received_ns,
                   int64_t now_ns);

/* Answers requests that have timed out. */
void proto_expire(struct client_proto *proto, int64_t now_ns);

/* When the next request times out; INT64_MAX: never. */
int64_t proto_until_ns(const struct client_proto *proto);

/* True if the connection has only abandoned requests and no HOLD: the caller should close it. */
bool proto_is_spent(const struct client_proto *proto);

/* True if the daemon has been silent for at least the longest TTL of the HOLDs. Each of them may
 * have expired then, so the caller should reset the connection and make a new one. */
bool proto_is_dead(const struct client_proto *proto, int64_t now_ns);

/* Take the next event, or the answer to request `id`. False: there is none. */
bool proto_take(struct client_proto *proto, struct redlock_event *event);
bool proto_take_answer(struct client_proto *proto, uint64_t id, struct redlock_event *event);

/* Sets the text of redlock_error() and returns the status. */
enum redlock_status proto_fail(struct client_proto *proto, enum redlock_status status,
                               const char *form, ...) __attribute__((format(printf, 3, 4)));

#endif
