/*
 * Parses one line of the daemon and decides what it means for the request that it answers. The
 * deadline of a lock is computed and checked here. Pure: no I/O, no clock.
 *
 * The parser is strict: it rejects every line that no daemon sends, because the meaning of such a
 * line could only be guessed.
 *
 * Deadlines. sent_ns is the instant before the request was sent; received_ns is the instant before
 * the answer was read. The daemon granted the lock elapsed_ms after it had read the request, so not
 * before sent_ns + elapsed_ms. The validity counts from that instant. If it is after received_ns,
 * elapsed_ms cannot be true, and the validity counts from received_ns (docs/protocol.txt, "What a
 * client may conclude").
 */
#ifndef CLIENT_C_CLIENT_RESULT_H
#define CLIENT_C_CLIENT_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/c/client_request.h"
#include "client/c/redlock.h"
#include "protocol/text.h"

/* The first word of an answer. The table in client_result.c has the spelling of each word. */
enum client_reply_word {
    REPLY_OK,
    REPLY_GONE,
    REPLY_HELD,
    REPLY_FREE,
    REPLY_NOQUORUM,
    REPLY_LATE,
    REPLY_LIMIT,
    REPLY_SHUTDOWN,
    REPLY_DENIED,
    REPLY_ERR,
    REPLY_PONG,
    REPLY_VERSION,
    REPLY_END,
    REPLY_PUSH,
    REPLY_OTHER
};

/* A view into the line; no NUL at its end. */
struct word {
    const char *at;
    size_t len;
};

struct client_reply {
    struct word tag;              /* without the "#"; at is NULL if the line has no tag */
    struct word body;             /* the line after the tag */
    enum client_reply_word first; /* first word of the body */
    struct word rest;             /* the body after its first word and one space */
};

/* Splits a line, given without its LF. False: no daemon sends this line. */
__attribute__((warn_unused_result)) bool client_reply_read(const char *line, size_t len,
                                                           struct client_reply *answer);

bool client_reply_is(struct word word, const char *text);

/* The longest duration that is accepted, in milliseconds. */
#define REPLY_MS_MAX INT64_C(999999999999999)

/* Parses a number from 0 to `most`: digits only, without leading zeros. */
bool client_reply_number(struct word word, int64_t most, int64_t *number);

struct moments {
    int64_t sent_ns;
    int64_t received_ns;
    int64_t now_ns; /* a grant whose deadline is not after this is REDLOCK_LATE */
};

enum client_result {
    RESULT_FINAL,   /* the answer is complete: event->status and its fields are set */
    RESULT_MORE,    /* a line of a listing: more lines follow */
    RESULT_GARBLED, /* not a possible answer to this request */
};

/*
 * Applies one line of the answer to the event. The caller starts with an event of zeros and passes
 * the same event for each line of a listing. An error message goes to text. A late grant sets
 * event->lock as well, so that the caller can release it.
 */
__attribute__((warn_unused_result)) enum client_result
client_result_of(const struct client_request *request, const struct moments *moments,
                 const struct client_reply *answer, struct redlock_event *event, struct text *text);

/* True if the daemon closes the connection after this line: either an untagged error, or, with
 * to_auth, an answer to AUTH other than OK. */
bool client_result_is_closing_error(const struct client_reply *answer, bool to_auth,
                                    enum redlock_status *status, struct text *text);

/* Parses "! LOST <resource> <token> <reason>" and "! WARN <resource> <token> <reason>". */
enum push { PUSH_IS_LOST, PUSH_IS_WARN, PUSH_IS_UNKNOWN, PUSH_IS_GARBLED };
enum push client_result_of_push(const struct client_reply *answer, struct word *token,
                                struct word *reason);

#endif
