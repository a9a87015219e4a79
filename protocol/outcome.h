/*
 * The outcomes of a request. Each but OUTBID is the first word of a reply of the line protocol.
 */
#ifndef PROTOCOL_OUTCOME_H
#define PROTOCOL_OUTCOME_H

#define OUTCOME_TABLE(X)                                                                           \
    X(OUTCOME_OK, "OK")             /* done; for LOCK and EXTEND, the validity follows */          \
    X(OUTCOME_GONE, "GONE")         /* the token does not hold the lock, and never will again */   \
    X(OUTCOME_HELD, "HELD")         /* another client holds the lock */                            \
    X(OUTCOME_FREE, "FREE")         /* no client can hold the lock */                              \
    X(OUTCOME_NOQUORUM, "NOQUORUM") /* too few masters could vote */                               \
    X(OUTCOME_LATE, "LATE")         /* a quorum agreed, but no validity was left */                \
    X(OUTCOME_LIMIT, "LIMIT")       /* a limit was reached */                                      \
    X(OUTCOME_SHUTDOWN, "SHUTDOWN") /* the daemon is stopping */                                   \
    X(OUTCOME_OUTBID, "-")          /* never a reply: a greater ballot would get a quorum */

enum __attribute__((packed)) outcome {
#define X(name, word) name,
    OUTCOME_TABLE(X)
#undef X
};

#endif
