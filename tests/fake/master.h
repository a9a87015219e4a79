/*
 * A fake Redis master: it answers the bytes that redlockd sends as Redis 7.0 would, by a clock that
 * the caller gives it. No process, no socket; tests/e2e/test_fake.c compares it with a real one.
 *
 * Like Redis it lets keys live by its wall clock, in whole milliseconds, deletes them when they are
 * looked at or by and by, tells those that track a key of each change, and forgets what it held
 * when it is started again, unless it finds a snapshot.
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

#define FAKE_FOREIGN_RELEASE                                                                       \
    "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) "           \
    "else return 0 end"

struct fake_key {
    uint32_t hash;
    uint32_t len;
    char name[FAKE_KEY];
    size_t value_len;
    char value[LIMIT_RECORD];
    int64_t ends_ms; /* by its wall clock; INT64_MAX: never */
};

struct fake_data {
    struct fake_key keys[FAKE_KEYS_MAX];
    unsigned count;
};

/* One connection, as the server sees it. */
struct fake_session {
    int64_t id;          /* 0: there is none */
    struct bytes input;  /* not executed yet */
    struct bytes output; /* to be sent */
    bool subscribed;
    bool tracking;
    bool caching; /* the next command's key is to be tracked */
    int64_t redirect;
    bool killed;   /* by CLIENT KILL: to be closed */
    unsigned wire; /* of the caller, which carries its bytes */
};

struct fake_tracked {
    char key[FAKE_KEY];
    int64_t session;
};

/*
 * What it refuses: fake_master.refusals has the error for each, NULL where it does not refuse. The
 * scripts come first, each by its own number.
 */
enum fake_refusal {
    FAKE_NATIVE = REDIS_SCRIPT_COUNT, /* DELIFEQ, DELEX */
    FAKE_TRACKING,                    /* CLIENT TRACKING, CLIENT CACHING: as Redis 5 does */
    FAKE_SETTING,                     /* whatever would set a key: it has no memory left */
    FAKE_DELETING,                    /* whatever would delete a lock: as by an ACL without +del */
    FAKE_KEYS,                        /* SETs, scripts, DELIFEQ and DELEX */
    FAKE_LOADING,                     /* ... and GET, PING and SCRIPT: it loads its data */
    FAKE_REFUSALS,
};

struct fake_master {
    struct fake_data data;
    struct fake_session sessions[FAKE_SESSIONS];
    unsigned session_end; /* after the last that was ever used */
    struct fake_tracked tracked[FAKE_KEYS_MAX];
    unsigned tracked_count;

    /* From here on fake_init() makes it zero. */
    char run_id[FAKE_ID + 1];
    int64_t begun_us; /* when that run was first asked, by its own clock; 0: not yet */
    char replid[FAKE_ID + 1];
    bool replica;
    bool was_replica; /* since it started */
    unsigned replicas;
    bool clustered;
    bool may_evict; /* maxmemory is set, and a policy that evicts */
    int64_t evicted;
    const char *fsync;   /* the setting appendfsync; NULL: it saves nothing */
    const char *version; /* of INFO; NULL: a Redis 7. It has DELIFEQ or DELEX by that. */
    const char *refusals[FAKE_REFUSALS];
    const char *kept_key; /* what FAKE_DELETING is about; NULL: all */
    bool deaf_to_scripts; /* answers NOSCRIPT whatever was loaded: they are flushed all the time */
    bool scripts[REDIS_SCRIPT_COUNT];  /* loaded */
    int64_t last_session;              /* id given out last */
    unsigned runs[REDIS_SCRIPT_COUNT]; /* how often it was asked to run each */
    unsigned native;                   /* DELIFEQ, DELEX */
    unsigned lock_commands; /* SETs and scripts; each key of several that are released counts */

    /* Told of each change of a lock's key: set for what a token was accepted, before it may be
     * gone again. NULL: nobody is. */
    void *watcher;
    void (*on_set)(void *watcher, const char *key, size_t key_len, const char *value, size_t len,
                   int64_t ends_ms);
};

/* A new one, without connections and faults, starts; the first time its memory must be zero. */
void fake_init(struct fake_master *server, uint64_t number);
void fake_free(struct fake_master *server);

/* It starts, empty; number makes its ids. What was connected must have been closed. */
void fake_start(struct fake_master *server, uint64_t number);

/* A connection; NULL if there are too many. The bytes it brings go into its input. */
struct fake_session *fake_accept(struct fake_master *server);
void fake_close(struct fake_master *server, struct fake_session *session);
void fake_close_all(struct fake_master *server);
struct fake_session *fake_session(struct fake_master *server, int64_t id);

/* Execute the next command that has come in, if it is all there; the answers are in the outputs,
 * also of other sessions. */
bool fake_serve_one(struct fake_master *server, struct fake_session *session, int64_t now_us);

/* Execute all that has come in. */
void fake_serve(struct fake_master *server, struct fake_session *session, int64_t now_us);

/* What it does ten times a second: it deletes what has expired, and tells of it. */
void fake_cron(struct fake_master *server, int64_t now_us);

/* Set a key (ttl_ms 0: for ever), or delete it. */
void fake_set(struct fake_master *server, const char *key, const char *value, int64_t ttl_ms,
              int64_t now_us);
void fake_delete(struct fake_master *server, const char *key, int64_t now_us);

/* FLUSHALL; one key evicted, false if there is none; SCRIPT FLUSH. */
void fake_flush(struct fake_master *server);
bool fake_evict(struct fake_master *server, unsigned number);
void fake_flush_scripts(struct fake_master *server);

/* A new history of replication: it was a replica in between, or another has become one of it. */
void fake_new_replid(struct fake_master *server, uint64_t number);

/* The value of a key that lives, NULL without one, and when it ends. */
const struct fake_key *fake_find(struct fake_master *server, const char *key, size_t key_len,
                                 int64_t now_us);

#endif
