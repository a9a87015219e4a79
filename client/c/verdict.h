/*
 * What an answer means for the question it answers. Pure: this is where a deadline is computed, and
 * where it is refused.
 *
 * Let sent_ns be the instant before the question was sent, and received_ns one after which its
 * answer arrived, or at which it was there. The daemon granted the lock when elapsed_ms had passed
 * since it read the question, so not before sent + elapsed; and not after the answer was here, so
 * an elapsed_ms beyond that is no reason to believe in a later deadline (docs/protocol.txt, "What a
 * client may conclude").
 */
#ifndef CLIENT_C_VERDICT_H
#define CLIENT_C_VERDICT_H

#include "client/c/answer.h"
#include "client/c/question.h"
#include "client/c/redlock.h"
#include "protocol/text.h"

struct moments {
    int64_t sent_ns;
    int64_t received_ns;
    int64_t now_ns; /* what has its deadline here or before is REDLOCK_LATE */
};

enum verdict {
    VERDICT_FINAL,   /* event->status, and what belongs to it, are set */
    VERDICT_MORE,    /* a line of a listing: others follow */
    VERDICT_GARBLED, /* no answer to this */
};

/*
 * The event keeps what an earlier line has set; it begins as zeros. What there is to say goes into
 * text. event->lock is set with a grant that is LATE, too, so that it can be given back.
 */
__attribute__((warn_unused_result)) enum verdict
verdict_on(const struct question *question, const struct moments *moments,
           const struct answer *answer, struct redlock_event *event, struct text *text);

/* A line that the daemon says before it closes a connection it cannot serve, which has no tag; or
 * an answer to AUTH, and not the one that was hoped for. */
bool verdict_is_farewell(const struct answer *answer, bool to_auth, enum redlock_status *status,
                         struct text *text);

/* "! LOST <resource> <token> <reason>", and WARN likewise. */
enum push { PUSH_IS_LOST, PUSH_IS_WARN, PUSH_IS_UNKNOWN, PUSH_IS_GARBLED };
enum push verdict_on_push(const struct answer *answer, struct word *token, struct word *reason);

#endif
