/*
 * A fake Redis master. It replies to the bytes that redlockd sends as Redis 7.0 would. The caller
 * passes in the time of the master's clock. The fake has no process and no socket.
 * tests/e2e/test_fake.c compares it with a real master.
 *
 * Like Redis, the fake expires keys by its wall clock in whole milliseconds, deletes expired keys
 * on access or in the background, reports changes of tracked keys, and loses its data in a restart
 * without a snapshot.
 */
#ifndef TESTS_FAKE_MASTER_H
#define TESTS_FAKE_MASTER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/redis.h"
#include "tests/fake/bytes.h"

enum {
    FAKE_KEYS_MAX = 96,
    FAKE_KEY = 160,
    FAKE_SESSIONS = 64,
    FAKE_BATCH = 64, /* releases in one command */
    FAKE_WORDS = 3 + 2 * FAKE_BATCH,
    FAKE_ID = 40,
};

static_assert((int)LIMIT_BATCH <= (int)FAKE_BATCH, "it takes what daemons send");

/* The release script of the paper, which other libraries send. */
#define FAKE_FOREIGN_RELEASE                                                                       \
    "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) "           \
    "else return 0 end"

struct fake_key {
    uint32_t hash;
    uint32_t len;
    char name[FAKE_KEY];
    size_t value_len;
    char value[LIMIT_RECORD];
    int64_t ends_ms; /* on the master's wall clock; INT64_MAX: never */
};

struct fake_data {
    struct fake_key keys[FAKE_KEYS_MAX];
    unsigned count;
};

/* One connection, as the server sees it. */
struct fake_session {
    int64_t id;          /* 0: unused */
    struct bytes input;  /* not executed yet */
    struct bytes output; /* not sent yet */
    bool subscribed;
    bool tracking;
    bool caching; /* CLIENT CACHING: track the key of the next command */
    int64_t redirect;
    bool killed;   /* by CLIENT KILL; the caller must close it */
    unsigned wire; /* index of the caller's wire, which carries its bytes */
};

struct fake_tracked {
    char key[FAKE_KEY];
    int64_t session;
};

/* Classes of commands that a test can make the master refuse: fake_master.refusals has the error
 * for each class; NULL: not refused. The first classes are the scripts, each with its
 * REDIS_SCRIPT_* number. */
enum fake_refusal {
    FAKE_NATIVE = REDIS_SCRIPT_COUNT, /* DELIFEQ, DELEX */
    FAKE_TRACKING,                    /* CLIENT TRACKING and CLIENT CACHING, as in Redis 5 */
    FAKE_SETTING,                     /* commands that set a key, as without memory */
    FAKE_DELETING,                    /* commands that delete a lock, as by an ACL without +del */
    FAKE_KEYS,                        /* SET, scripts, DELIFEQ and DELEX */
    FAKE_LOADING, /* FAKE_KEYS, and also GET, PING and SCRIPT, as while Redis loads its data */
    FAKE_BY_SHA1, /* EVALSHA */
    FAKE_REFUSALS,
};

struct fake_master {
    struct fake_data data;
    struct fake_session sessions[FAKE_SESSIONS];
    unsigned session_end; /* one after the last session that was ever used */
    struct fake_tracked tracked[FAKE_KEYS_MAX];
    unsigned tracked_count;

    /* fake_init() zeroes all members from here on. */
    char run_id[FAKE_ID + 1];
    int64_t
        begun_us; /* time of the first INFO server of this run, on the master's clock; 0: none */
    char replid[FAKE_ID + 1];
    bool replica;
    bool was_replica; /* it has been a replica since its start */
    unsigned replicas;
    bool clustered;
    bool may_evict; /* maxmemory is set, with a policy that evicts */
    int64_t evicted;
    const char *fsync;   /* the setting appendfsync; NULL: no persistence */
    const char *version; /* version lines of INFO, which also decide whether DELIFEQ or DELEX
                            exists; NULL: those of Redis 7 */
    const char *refusals[FAKE_REFUSALS];
    bool paused; /* commands of FAKE_KEYS wait, and so does all that their session sends later, as
                    after CLIENT PAUSE WRITE */
    const char *kept_key; /* the key that FAKE_DELETING protects; NULL: all keys */
    bool scripts_flushed; /* EVALSHA always fails with NOSCRIPT, as if scripts were flushed again */
    bool scripts[REDIS_SCRIPT_COUNT];  /* loaded scripts */
    int64_t last_session;              /* the last id of a session */
    unsigned runs[REDIS_SCRIPT_COUNT]; /* number of calls of each script */
    unsigned native;                   /* number of DELIFEQ and DELEX commands */
    unsigned lock_commands; /* number of SET NX commands and of scripts for locks; each key of a
                               batch of releases counts */

    /* Called whenever a key is set or its expiry changes. NULL: no callback. */
    void *watcher;
    void (*on_set)(void *watcher, const char *key, size_t key_len, const char *value, size_t len,
                   int64_t ends_ms);
};

/* Make the server one without connections, data and faults, and start it. Before the first call,
 * all its memory must be zero. */
void fake_init(struct fake_master *server, uint64_t number);
void fake_free(struct fake_master *server);

/* Start the server without data, as after a restart. Its run id is made from `number` and its
 * replication id from `number` + 1. Its connections must have been closed. */
void fake_start(struct fake_master *server, uint64_t number);

/* Open a connection; NULL if there are too many. The caller adds the client's bytes to
 * session->input. */
struct fake_session *fake_accept(struct fake_master *server);
void fake_close(struct fake_master *server, struct fake_session *session);
void fake_close_all(struct fake_master *server);
struct fake_session *fake_session(struct fake_master *server, int64_t id);

/* Execute the next command if it is complete; otherwise return false. The reply goes to
 * session->output, and reports of changed keys to the output of other sessions. */
bool fake_serve_one(struct fake_master *server, struct fake_session *session, int64_t now_us);

/* Execute all complete commands. */
void fake_serve(struct fake_master *server, struct fake_session *session, int64_t now_us);

/* The periodic work, ten times a second: delete expired keys, and report them to tracking
 * clients. */
void fake_cron(struct fake_master *server, int64_t now_us);

/* Set a key (ttl_ms 0: without expiry), or delete it. */
void fake_set(struct fake_master *server, const char *key, const char *value, int64_t ttl_ms,
              int64_t now_us);
void fake_delete(struct fake_master *server, const char *key, int64_t now_us);

/* FLUSHALL. */
void fake_flush(struct fake_master *server);
/* Evict one key that has an expiry, chosen by `number`. False if there is none. */
bool fake_evict(struct fake_master *server, unsigned number);
/* SCRIPT FLUSH. */
void fake_flush_scripts(struct fake_master *server);

/* Give the server a new replication id, as after a failover. From then on it counts as a former
 * replica. */
void fake_new_replid(struct fake_master *server, uint64_t number);

/* The key if it exists and has not expired; NULL otherwise. */
const struct fake_key *fake_find(struct fake_master *server, const char *key, size_t key_len,
                                 int64_t now_us);

#endif
