/*
 * Why a master has no vote: the words and texts that NOQUORUM, NODES, the log and the status page
 * show.
 *
 * Operators act on these words, so each word names one cause. A reason that comes from an error
 * reply of Redis has the first word of that error in lower case.
 */
#ifndef PROTOCOL_REASON_H
#define PROTOCOL_REASON_H

#include <stdbool.h>
#include <stddef.h>

#define REASON_TABLE(X)                                                                            \
    X(REASON_NONE, "-", "the master can vote")                                                     \
    X(REASON_CONNECTING, "connecting", "not connected yet")                                        \
    X(REASON_UNRESOLVED, "unresolved", "the name of the master does not resolve")                  \
    X(REASON_REFUSED, "refused", "the master refuses the connection; is it running?")              \
    X(REASON_UNREACHABLE, "unreachable", "the master cannot be reached, or does not answer")       \
    X(REASON_DISCONNECTED, "disconnected", "the connection was lost")                              \
    X(REASON_TIMEOUT, "timeout", "no answer within node_timeout")                                  \
    X(REASON_SUSPECT, "suspect", "a command has been unanswered for longer than node_timeout")     \
    X(REASON_HUNG, "hung", "connected, but the master has not answered for a long time")           \
    X(REASON_BACKLOG, "backlog", "too many commands are unanswered")                               \
    X(REASON_GARBAGE, "garbage", "the server does not speak the Redis protocol; check the port")   \
    X(REASON_TLS, "tls", "the TLS handshake failed; does the master speak TLS on this port?")      \
    X(REASON_EXPIRED, "expired", "the master's certificate has expired or is not valid yet")       \
    X(REASON_UNTRUSTED, "untrusted", "the master's certificate is not signed by a trusted CA")     \
    X(REASON_WRONGNAME, "wrongname", "the master's certificate is for another name")               \
    X(REASON_CERTIFICATE, "certificate", "the master's certificate cannot be used")                \
    X(REASON_UNCERTIFIED, "uncertified",                                                           \
      "the master requires a client certificate, or rejects the one it was given")                 \
    X(REASON_LOADING, "loading", "the master is loading its data")                                 \
    X(REASON_OOM, "oom", "the master is out of memory (maxmemory)")                                \
    X(REASON_MISCONF, "misconf", "the master refuses writes: its snapshots or its AOF fail")       \
    X(REASON_READONLY, "readonly", "the server is a read-only replica")                            \
    X(REASON_NOREPLICAS, "noreplicas", "the master refuses writes: it has too few replicas")       \
    X(REASON_MASTERDOWN, "masterdown", "the server is a replica without its master")               \
    X(REASON_BUSY, "busy", "a script blocks the master")                                           \
    X(REASON_NOSCRIPT, "noscript", "the master repeatedly lost the scripts of redlockd")           \
    X(REASON_NOAUTH, "noauth", "the master requires a password")                                   \
    X(REASON_WRONGPASS, "wrongpass", "the master rejects the user name or password")               \
    X(REASON_NOPERM, "noperm", "the master's ACL refuses a command of redlockd")                   \
    X(REASON_MOVED, "moved", "the master is part of a Redis Cluster")                              \
    X(REASON_CLUSTERDOWN, "clusterdown", "the master is part of a Redis Cluster that is down")     \
    X(REASON_MAXCLIENTS, "maxclients", "the master has too many clients")                          \
    X(REASON_ERROR, "error", "the master replied with an error that redlockd does not know")       \
    /* Reasons of the guard (engine/guard/guard.h). */                                             \
    X(REASON_UNCHECKED, "unchecked", "the guard has not checked the master yet")                   \
    X(REASON_NEW, "new", "the master has no record: it is new, or lost all its data")              \
    X(REASON_FLUSHED, "flushed", "the master lost its record: it was flushed")                     \
    X(REASON_RESTARTED, "restarted",                                                               \
      "the master is another process than before: it restarted or failed over")                    \
    X(REASON_FAILEDOVER, "failedover",                                                             \
      "the replication id changed: a failover, or a first replica")                                \
    X(REASON_OLDDATA, "olddata",                                                                   \
      "the master's record is older than one seen before: an old snapshot?")                       \
    X(REASON_EVICTED, "evicted", "the master has evicted keys, possibly locks")                    \
    X(REASON_EVICTION, "eviction", "the master can evict locks; set maxmemory-policy noeviction")  \
    X(REASON_STEPPED, "stepped",                                                                   \
      "the master's clock was stepped forward: locks may have ended early")                        \
    X(REASON_CLOCK, "clock",                                                                       \
      "answers are too slow to detect a stepped clock; raise clock_drift_margin")                  \
    X(REASON_CLOCK_UNPROVEN, "clockunproven",                                                      \
      "the master's clock has not been watched for max_ttl yet")                                   \
    X(REASON_OWN_CLOCK, "ownclock",                                                                \
      "most clocks stepped at once: this host's own clock is suspect")                             \
    X(REASON_REPLICA, "replica", "the server is a replica, not a master")                          \
    X(REASON_CLUSTER, "cluster", "the server runs in cluster or sentinel mode")                    \
    X(REASON_DUPLICATE, "duplicate", "another node of the list is the same Redis server")          \
    X(REASON_REPOINTED, "repointed", "other daemons found another Redis server under this name")   \
    X(REASON_OTHERPROCESS, "otherprocess",                                                         \
      "the master is another process with the same data, and another daemon may still use the "    \
      "previous process")                                                                          \
    X(REASON_OTHERSET, "otherset",                                                                 \
      "the master serves daemons of another set: another cluster, other nodes, or another "        \
      "max_ttl, fence_ttl or clock drift")                                                         \
    X(REASON_RECORD, "record", "the master's record is damaged or of another version of redlockd") \
    X(REASON_DURABLE, "durable",                                                                   \
      "the master restarted with all its data, or its durability has changed")                     \
    X(REASON_RESET, "reset", "an operator changed the set (--reset-set)")                          \
    X(REASON_BOOTSTRAP, "bootstrap", "an operator confirmed that no lock is held (--bootstrap)")

enum __attribute__((packed)) reason {
#define X(name, word, text) name,
    REASON_TABLE(X)
#undef X
        REASON_COUNT
};

/* The word on the wire, for example "timeout", and the text for people. Both are static. */
const char *reason_word(enum reason reason);
const char *reason_text(enum reason reason);

/* Whether the reason ends without an operator, because the guard writes a record and waits for its
 * quarantine. True for REASON_NONE too. */
bool reason_ends_by_waiting(enum reason reason);

/* The reason with this word; REASON_ERROR if there is none. */
enum reason reason_of_word(const char *word);

/*
 * The reason for an error reply of Redis, from the first word of its text ("LOADING Redis is
 * loading ..."). REASON_ERROR if the error is unknown. The caller handles WRONGTYPE itself, because
 * a master that replies WRONGTYPE can vote.
 */
enum reason reason_of_redis_error(const char *text, size_t len);

#endif
