/*
 * An attacking process: it keeps many connections to a daemon open, each hostile in one way, and
 * replaces every connection that has ended.
 */
#ifndef TESTS_E2E_ATTACK_H
#define TESTS_E2E_ATTACK_H

#include <stdatomic.h>
#include <sys/types.h>

#define ATTACK_TABLE(X)                                                                            \
    X(ATTACK_IDLE, "idle")                   /* sends nothing */                                   \
    X(ATTACK_BYTES, "bytes")                 /* one byte at a time */                              \
    X(ATTACK_UNREAD, "unread")               /* sends requests, never reads */                     \
    X(ATTACK_PIPELINE, "pipeline")           /* sends as much as fits, and reads the replies */    \
    X(ATTACK_GARBAGE, "garbage")             /* random bytes */                                    \
    X(ATTACK_HTTP, "http")                   /* HTTP requests */                                   \
    X(ATTACK_TLS, "tls")                     /* the beginning of a TLS handshake */                \
    X(ATTACK_LONG, "long")                   /* an endless line */                                 \
    X(ATTACK_AUTH, "auth")                   /* wrong secrets */                                   \
    X(ATTACK_CHURN, "churn")                 /* connects and resets */                             \
    X(ATTACK_RESP_HALF, "resp-half")         /* half a RESP command, then nothing */               \
    X(ATTACK_RESP_GARBAGE, "resp-garbage")   /* random bytes after '*' */                          \
    X(ATTACK_RESP_LIES, "resp-lies")         /* lengths that lie */                                \
    X(ATTACK_RESP_UNREAD, "resp-unread")     /* sends RESP commands, never reads */                \
    X(ATTACK_RESP_PIPELINE, "resp-pipeline") /* sends as much as fits, and reads the replies */    \
    X(ATTACK_RESP_AUTH, "resp-auth")         /* wrong secrets, by AUTH and HELLO */

enum attack_kind {
#define X(name, word) name,
    ATTACK_TABLE(X)
#undef X
        ATTACK_KINDS
};

/* What the attack has done so far. The counts are shared with the attacking process. */
struct attack_counts {
    atomic_ulong opened;
    atomic_ulong closed; /* by the daemon */
    /* The sends of each kind of connection, or its resets (ATTACK_CHURN). */
    atomic_ulong actions[ATTACK_KINDS];
    atomic_ulong passes; /* how often the process has gone through all connections */
};

struct attack {
    pid_t pid;
    struct attack_counts *counts; /* shared with the process */
};

const char *attack_name(enum attack_kind kind);

/* The size of an attack. */
struct attack_plan {
    unsigned each;     /* connections of each kind except ATTACK_IDLE */
    unsigned idle;     /* connections of the kind ATTACK_IDLE */
    unsigned halves;   /* further connections of the kind ATTACK_RESP_HALF */
    unsigned pause_ms; /* between two actions of a connection */
};

/* The number of all connections. */
unsigned attack_connections(const struct attack_plan *plan);

/* Starts an attack on a port of 127.0.0.1. The connections come from other addresses of the
 * loopback network, so that 127.0.0.1 is left to honest clients. */
void attack_start(struct attack *attack, int port, const struct attack_plan *plan);

/* Kills the process, which ends all its connections. */
void attack_stop(struct attack *attack);

#endif
