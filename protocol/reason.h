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
    X(REASON_TLS, "tls", "the TLS handshake failed: does it speak TLS at this port?")              \
    X(REASON_EXPIRED, "expired", "its certificate has expired, or is not valid yet")               \
    X(REASON_UNTRUSTED, "untrusted", "its certificate is of no CA that we believe")                \
    X(REASON_WRONGNAME, "wrongname", "its certificate is for another name")                        \
    X(REASON_CERTIFICATE, "certificate", "its certificate cannot be used")                         \
    X(REASON_UNCERTIFIED, "uncertified", "it wants a certificate of us, or refuses ours")          \
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
    X(REASON_ERROR, "error", "it answered an error that redlockd does not know")                   \
    /* The guard takes its vote (engine/guard/guard.h). */                                         \
    X(REASON_UNCHECKED, "unchecked", "the guard has not looked at it yet")                         \
    X(REASON_NEW, "new", "it bears no record: it is new, or lost all its data")                    \
    X(REASON_FLUSHED, "flushed", "its record is gone: it was flushed")                             \
    X(REASON_RESTARTED, "restarted",                                                               \
      "it is another process than before: a restart, or a failover")                               \
    X(REASON_FAILEDOVER, "failedover",                                                             \
      "a failover, or a first replica: its replication id changed")                                \
    X(REASON_OLDDATA, "olddata", "its record is older than one seen before: an old snapshot?")     \
    X(REASON_EVICTED, "evicted", "it has evicted keys, locks perhaps among them")                  \
    X(REASON_EVICTION, "eviction", "it may evict locks: set maxmemory-policy noeviction")          \
    X(REASON_STEPPED, "stepped", "its clock was stepped forward: locks may have ended early")      \
    X(REASON_CLOCK, "clock", "answers too slow to tell a stepped clock: raise clock_drift_margin") \
    X(REASON_CLOCK_UNPROVEN, "clockunproven", "its clock has not been watched for max_ttl yet")    \
    X(REASON_OWN_CLOCK, "ownclock",                                                                \
      "most clocks stepped at once: this host's own clock is in doubt")                            \
    X(REASON_REPLICA, "replica", "it is a replica, not a master")                                  \
    X(REASON_CLUSTER, "cluster", "it runs in cluster or sentinel mode")                            \
    X(REASON_DUPLICATE, "duplicate", "another node of the list is the same Redis server")          \
    X(REASON_REPOINTED, "repointed", "other daemons know another Redis server by this name")       \
    X(REASON_OTHERPROCESS, "otherprocess",                                                         \
      "same data, another process: another daemon may still use the process before it")            \
    X(REASON_OTHERSET, "otherset",                                                                 \
      "it serves daemons of another set: another cluster, other nodes, or another max_ttl, "       \
      "fence_ttl or clock drift")                                                                  \
    X(REASON_RECORD, "record", "its record is of another version of redlockd, or damaged")         \
    X(REASON_DURABLE, "durable", "it restarted with all its data, or its durability has changed")  \
    X(REASON_RESET, "reset", "an operator changed the set (--reset-set)")                          \
    X(REASON_BOOTSTRAP, "bootstrap", "an operator said that no lock is held")

enum __attribute__((packed)) reason {
#define X(name, word, text) name,
    REASON_TABLE(X)
#undef X
        REASON_COUNT
};

/* The word for the wire, "timeout"; and the sentence for a person. Both static. */
const char *reason_word(enum reason reason);
const char *reason_text(enum reason reason);

/* The reason with this word; REASON_ERROR if there is none. */
enum reason reason_of_word(const char *word);

/*
 * The reason behind an error reply of Redis, from the first word of its text ("LOADING Redis is
 * loading ..."). Anything unknown is REASON_ERROR. WRONGTYPE is no reason not to vote and must have
 * been handled before.
 */
enum reason reason_of_redis_error(const char *text, size_t len);

#endif
