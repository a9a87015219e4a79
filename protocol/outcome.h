/*
 * The outcomes of a request: the first word of each reply of the line protocol.
 */
#ifndef PROTOCOL_OUTCOME_H
#define PROTOCOL_OUTCOME_H

#define OUTCOME_TABLE(X)                                                                           \
    X(OUTCOME_OK, "OK")             /* done; for a LOCK or EXTEND, with the validity left */       \
    X(OUTCOME_GONE, "GONE")         /* the token holds nothing any more; final */                  \
    X(OUTCOME_HELD, "HELD")         /* somebody else holds it */                                   \
    X(OUTCOME_FREE, "FREE")         /* nobody can hold it */                                       \
    X(OUTCOME_NOQUORUM, "NOQUORUM") /* too few nodes could vote */                                 \
    X(OUTCOME_LATE, "LATE")         /* a quorum said yes, but no validity was left */              \
    X(OUTCOME_LIMIT, "LIMIT")       /* a bound was met */                                          \
    X(OUTCOME_SHUTDOWN, "SHUTDOWN") /* the daemon is stopping */                                   \
    X(OUTCOME_OUTBID, "-")          /* never told: a quorum would vote for a greater ballot */

enum __attribute__((packed)) outcome {
#define X(name, word) name,
    OUTCOME_TABLE(X)
#undef X
};

#endif
