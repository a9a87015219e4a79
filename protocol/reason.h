/*
 * Why a node could not vote: the names that NOQUORUM, NODES and the log use.
 *
 * The operator acts on these words, so each names one cause. Those from an error reply of Redis
 * bear the first word of that error in lower case.
 */
#ifndef PROTOCOL_REASON_H
#define PROTOCOL_REASON_H

#include <stddef.h>

#define REASON_TABLE(X)                                                                            \
    X(REASON_NONE, "-", "all is well")                                                             \
    X(REASON_CONNECTING, "connecting", "not connected yet")                                        \
    X(REASON_UNRESOLVED, "unresolved", "its name does not resolve")                                \
    X(REASON_REFUSED, "refused", "it refuses the connection: is it running?")                      \
    X(REASON_UNREACHABLE, "unreachable", "the network cannot reach it, or does not answer")        \
    X(REASON_DISCONNECTED, "disconnected", "the connection was lost")                              \
    X(REASON_TIMEOUT, "timeout", "no answer within node_timeout")                                  \
    X(REASON_SUSPECT, "suspect", "a command is unanswered for longer than node_timeout")           \
    X(REASON_HUNG, "hung", "connected, but it has answered nothing for long")                      \
    X(REASON_BACKLOG, "backlog", "too many commands are unanswered")                               \
    X(REASON_GARBAGE, "garbage", "it sent what is not Redis protocol: is it a Redis?")             \
    X(REASON_LOADING, "loading", "it is loading its data")                                         \
    X(REASON_OOM, "oom", "it is out of memory (maxmemory)")                                        \
    X(REASON_MISCONF, "misconf", "it refuses writes: its snapshots fail")                          \
    X(REASON_READONLY, "readonly", "it is a read-only replica")                                    \
    X(REASON_NOREPLICAS, "noreplicas", "it refuses writes: too few replicas")                      \
    X(REASON_MASTERDOWN, "masterdown", "it is a replica without its master")                       \
    X(REASON_BUSY, "busy", "a script blocks it")                                                   \
    X(REASON_NOSCRIPT, "noscript", "it forgot our scripts again and again")                        \
    X(REASON_NOAUTH, "noauth", "it wants a password")                                              \
    X(REASON_WRONGPASS, "wrongpass", "it refuses user name or password")                           \
    X(REASON_NOPERM, "noperm", "its ACL refuses our commands")                                     \
    X(REASON_MOVED, "moved", "it is part of a Redis Cluster")                                      \
    X(REASON_CLUSTERDOWN, "clusterdown", "it is part of a Redis Cluster that is down")             \
    X(REASON_MAXCLIENTS, "maxclients", "it has too many clients")                                  \
    X(REASON_ERROR, "error", "it answered an error that redlockd does not know")

enum reason {
#define X(name, word, text) name,
    REASON_TABLE(X)
#undef X
};

/* The word for the wire, "timeout"; and the sentence for a person. Both static. */
const char *reason_word(enum reason reason);
const char *reason_text(enum reason reason);

/*
 * The reason behind an error reply of Redis, from the first word of its text ("LOADING Redis is
 * loading ..."). Anything unknown is REASON_ERROR. WRONGTYPE is no reason not to vote and must have
 * been handled before.
 */
enum reason reason_of_redis_error(const char *text, size_t len);

#endif
