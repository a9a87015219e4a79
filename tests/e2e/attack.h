/*
 * A process that does to a daemon what the network may do: it keeps many connections open, each
 * hostile in one way, and opens another for each that the daemon closes.
 */
#ifndef TESTS_E2E_ATTACK_H
#define TESTS_E2E_ATTACK_H

#include <stdatomic.h>
#include <sys/types.h>

#define ATTACK_TABLE(X)                                                                            \
    X(ATTACK_IDLE, "idle")         /* says nothing */                                              \
    X(ATTACK_BYTES, "bytes")       /* one byte after the other */                                  \
    X(ATTACK_UNREAD, "unread")     /* asks, and does not read */                                   \
    X(ATTACK_PIPELINE, "pipeline") /* asks as much as goes, and reads */                           \
    X(ATTACK_GARBAGE, "garbage")                                                                   \
    X(ATTACK_HTTP, "http")                                                                         \
    X(ATTACK_TLS, "tls")                                                                           \
    X(ATTACK_LONG, "long")   /* a line without end */                                              \
    X(ATTACK_AUTH, "auth")   /* wrong secrets */                                                   \
    X(ATTACK_CHURN, "churn") /* connects, and resets */

enum attack_kind {
#define X(name, word) name,
    ATTACK_TABLE(X)
#undef X
        ATTACK_KINDS
};

/* What it has done so far. */
struct attack_counts {
    atomic_ulong opened;
    atomic_ulong closed; /* by the daemon */
    atomic_ulong acts[ATTACK_KINDS];
    atomic_ulong passes; /* through all of its connections */
};

struct attack {
    pid_t pid;
    struct attack_counts *counts; /* shared with it */
};

const char *attack_word(enum attack_kind kind);

/* What it is like. */
struct attack_plan {
    unsigned each; /* connections of each kind but idle ones */
    unsigned idle;
    unsigned pause_ms; /* after which each of them acts again */
};

/* So many connections of each kind to this port of 127.0.0.1; idle ones in their place. Its
 * addresses are others of the loopback network than 127.0.0.1. */
void attack_start(struct attack *attack, int port, const struct attack_plan *plan);

/* Kill it: all of its connections end. */
void attack_stop(struct attack *attack);

#endif
