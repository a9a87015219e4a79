/*
 * One line of the daemon -> its tag, its first word, and what is behind it; and what it means for
 * the request it answers. Pure: this is where a deadline is computed, and where it is refused.
 *
 * Strict: what no daemon sends is refused, since what it means can only be guessed.
 *
 * Let sent_ns be the instant before the request was sent, and received_ns one after which its
 * answer arrived, or at which it was there. The daemon granted the lock when elapsed_ms had passed
 * since it read the request, so not before sent + elapsed; and not after the answer was here, so
 * an elapsed_ms beyond that is no reason to believe in a later deadline (docs/protocol.txt, "What a
 * client may conclude").
 */
#ifndef CLIENT_C_CLIENT_VERDICT_H
#define CLIENT_C_CLIENT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/c/client_request.h"
#include "client/c/redlock.h"
#include "protocol/text.h"

/* The first word of an answer; meanings[] in verdict.c has how each is written. */
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

/* Views of the line. */
struct word {
    const char *at;
    size_t len;
};

struct client_reply {
    struct word tag; /* without its #; at is NULL where there is none */
    struct word body;
    enum client_reply_word first; /* of the body */
    struct word rest;             /* of the body, behind its first word and a space */
};

/* A line without its LF. False: no daemon says this. */
__attribute__((warn_unused_result)) bool client_reply_read(const char *line, size_t len,
                                                           struct client_reply *answer);

bool client_reply_is(struct word word, const char *text);

/* Plain digits, of a number up to most; the longest duration there is. */
#define REPLY_MS_MAX INT64_C(999999999999999)
bool client_reply_number(struct word word, int64_t most, int64_t *number);

struct moments {
    int64_t sent_ns;
    int64_t received_ns;
    int64_t now_ns; /* what has its deadline here or before is REDLOCK_LATE */
};

enum client_result {
    RESULT_FINAL,   /* event->status, and what belongs to it, are set */
    RESULT_MORE,    /* a line of a listing: others follow */
    RESULT_GARBLED, /* no answer to this */
};

/*
 * The event keeps what an earlier line has set; it begins as zeros. What there is to say goes into
 * text. event->lock is set with a grant that is LATE, too, so that it can be given back.
 */
__attribute__((warn_unused_result)) enum client_result
client_result_of(const struct client_request *request, const struct moments *moments,
                 const struct client_reply *answer, struct redlock_event *event, struct text *text);

/* A line that the daemon says before it closes a connection it cannot serve, which has no tag; or
 * an answer to AUTH, and not the one that was hoped for. */
bool client_result_is_closing_error(const struct client_reply *answer, bool to_auth,
                                    enum redlock_status *status, struct text *text);

/* "! LOST <resource> <token> <reason>", and WARN likewise. */
enum push { PUSH_IS_LOST, PUSH_IS_WARN, PUSH_IS_UNKNOWN, PUSH_IS_GARBLED };
enum push client_result_of_push(const struct client_reply *answer, struct word *token,
                                struct word *reason);

#endif
