/*
 * All that a handle decides: what is asked, what came back, and what its caller is to be told. It
 * knows no socket and no clock; whoever has them says what has been read and what time it is.
 *
 *     proto_ask() -> outgoing -> proto_write() -> sent -> proto_receive() -> a notice ->
 * proto_take()
 *
 * A grant that comes after a long wait in line may be past its deadline on arrival, by the drift of
 * the clocks that is taken off the wait, and not be lost at all (docs/protocol.txt, "What a client
 * may conclude"). An EXTEND of our own tells, and gives it a deadline that is counted anew.
 *
 * What the caller has given up, by a time-out or a cancel, can still be granted. Its answer is
 * waited for, and a grant is given back by an UNLOCK of our own; or, where nothing else lives on
 * the connection (proto_is_spent()), the connection is to be closed, which releases it as well. Not
 * so what was granted without HOLD, and is being confirmed: that answer has a time-out of its own.
 *
 * Numbers of requests are never used again, so an answer that comes twice is known for what it is.
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

/* Who wants the answer: the caller, ourselves, or nobody any more. */
enum exchange_for { FOR_CALLER, FOR_US, FOR_NOBODY };

/* A request, and its answer until that is taken. Not reused before both are done with. */
struct exchange {
    struct notice notice;
    TAILQ_ENTRY(exchange) entry; /* of those that are idle, or of those to be sent */
    unsigned index;
    uint64_t id;
    enum exchange_state state;
    enum exchange_for whom;
    struct client_request request;
    struct hold *hold; /* for the lock to be acquired; NULL without HOLD */
    bool confirms;     /* it was granted, and nothing is left of that: by an EXTEND, is it ours? */
    bool lost;         /* ... and the daemon has said meanwhile that it cannot hold it */
    int64_t sent_ns;
    int64_t until_ns;
    struct redlock_event event; /* for the caller; its id is that of the caller */
    char text[PROTO_TEXT];
    void (*line)(void *context, const char *text); /* LIST, VERSION */
    void *context;
};
TAILQ_HEAD(exchange_list, exchange);

struct client_proto {
    const char *peer; /* its address, for messages */
    int64_t timeout_ns;
    struct exchange *exchange[LIMIT_CLIENT_REQUESTS]; /* the first `made` of them */
    unsigned made;
    uint64_t sequence;
    unsigned living;    /* queued or sent, and somebody wants the answer */
    unsigned abandoned; /* sent, and nobody does */
    struct exchange_list idle;
    struct exchange_list outgoing;
    struct notices notices;
    struct holds holds;
    struct notice closed;
    bool lingers;         /* locks were asked for on this connection that QUIT has to release */
    bool closed_on_holds; /* the connection that `closed` is about had some */
    char label[REDLOCK_LABEL_MAX + 1];
    char secret[LIMIT_SECRET + 1];
    bool to_authenticate;
    bool authenticating;
    bool to_be_named;
    bool being_named;
    int64_t heard_ns;        /* when something came last */
    bool silent;             /* nothing has, since a request was sent that is out of time, ... */
    int64_t asked_ns;        /* ... the first of them, then */
    int64_t longest_hold_ns; /* the longest time to live of those held for this connection */
    char input[LIMIT_REPLY]; /* a line that is not complete yet */
    size_t input_len;
    char error[PROTO_TEXT]; /* what went wrong last, for the caller */
};

void proto_init(struct client_proto *proto);
void proto_free(struct client_proto *proto);

/* A new connection. */
void proto_begin(struct client_proto *proto);

/*
 * The connection is gone, or is about to be closed: what is under way is answered with this. With
 * `told` the caller has an event of it.
 */
void proto_end(struct client_proto *proto, enum redlock_status status, const char *why, bool told);

/* In a process that was forked since: what was granted is its parent's, so answers that
 * were not taken yet become REDLOCK_BROKEN. */
void proto_disown_answers(struct client_proto *proto, const char *why);

/* For connections from the next one on; NULL: none. */
void proto_set_secret(struct client_proto *proto, const char *secret);

void proto_set_label(struct client_proto *proto, const char *label, bool connected);

/* REDLOCK_OK: queued. REDLOCK_LIMIT: too many are under way, or not taken yet. REDLOCK_MEMORY.
 * line() gets the lines of a listing; NULL for all else. */
enum redlock_status proto_ask(struct client_proto *proto, const struct client_request *request,
                              int64_t now_ns, void (*line)(void *context, const char *text),
                              void *context, uint64_t *id);

/* There will be no answer, and what was granted is given back. */
void proto_cancel(struct client_proto *proto, uint64_t id, int64_t now_ns);
void proto_cancel_all(struct client_proto *proto, int64_t now_ns);

/* Is there anything to send? And as many whole lines as there is room for, which begin to be sent
 * now. */
bool proto_has_output(const struct client_proto *proto);
size_t proto_write(struct client_proto *proto, int64_t now_ns, char *buf, size_t size);

/* Bytes that were there at received_ns. False: the connection is of no use any more, all has been
 * answered, and proto_end() need not be called. */
bool proto_receive(struct client_proto *proto, const char *bytes, size_t len, int64_t received_ns,
                   int64_t now_ns);

/* Answer what is out of time. And when that is for the next, INT64_MAX: never. */
void proto_expire(struct client_proto *proto, int64_t now_ns);
int64_t proto_until_ns(const struct client_proto *proto);

/* Nothing lives on this connection but what nobody wants any more: close it. */
bool proto_is_spent(const struct client_proto *proto);

/* It seems to lead nowhere any more, and for so long that nothing proves a lock held for it: have
 * it reset, so that another one can be made. */
bool proto_is_dead(const struct client_proto *proto, int64_t now_ns);

/* The next event, or the answer to this very request. False: there is none. */
bool proto_take(struct client_proto *proto, struct redlock_event *event);
bool proto_take_answer(struct client_proto *proto, uint64_t id, struct redlock_event *event);

/* Set what redlock_error() says. Returns the status. */
enum redlock_status proto_fail(struct client_proto *proto, enum redlock_status status,
                               const char *form, ...) __attribute__((format(printf, 3, 4)));

#endif
