/*
 * Records all replies to the clients of a torture, in one order and by one clock, and checks
 * whether all promises in them can be true.
 *
 * Several threads of one process play the clients. A client records a reply after it has read the
 * reply, and the end of a hold before it sends the release. A mutex orders these records. So the
 * order in the ledger is a possible order of events, and each holder in the ledger is a client that
 * believes that it holds the lock.
 *
 * A foreign client has no guard. After masters lost data, it may be granted a lock that is held,
 * through no fault of redlockd. So in a run with faults that lose data, a foreign grant of a held
 * lock is not recorded, but counted as excused. A recorded foreign grant is excused later if a
 * grant or extension by redlockd overlaps it and may have been decided before the foreign grant.
 */
#ifndef TESTS_TORTURE_LEDGER_H
#define TESTS_TORTURE_LEDGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/history.h"

enum {
    LEDGER_DAEMONS = 3,
    LEDGER_FOREIGN = 2,
    LEDGER_FOREIGN_HOLDS = 256, /* more than there can be in the longest TTL */
    LEDGER_FILE_MAX = 16 * 1024 * 1024,
    LEDGER_TEXT = 256,
};

/* A reply says that its client holds a resource. */
struct claim {
    unsigned resource;
    const char *token;
    int64_t fence; /* 0: none */
    int64_t until_ns;
    int64_t begun_ns; /* its votes were requested after this time */
    int64_t told_ns;  /* its client knew of it at this time, not before that of earlier records; 0:
                         now */
};

/* A hold of a foreign client, which may be valid although the client has died. */
struct foreign_hold {
    char token[HISTORY_TOKEN + 1];
    int64_t granted_ns;
};

struct ledger {
    pthread_mutex_t mutex;
    struct history history;
    struct foreign_hold foreign[LEDGER_FOREIGN_HOLDS]; /* ring of the latest */
    bool masters_lose_data; /* some faults of this run make masters lose data */
    int64_t began_ns;

    /* The history as text. A file that gets too long becomes PATH.1, and a new one begins. */
    FILE *notes;
    char path[LEDGER_TEXT];
    long notes_len;

    atomic_bool violated;
    char why[LEDGER_TEXT];

    uint64_t granted_by[LEDGER_DAEMONS];
    uint64_t foreign_grants;
    uint64_t foreign_excused;
    uint64_t late; /* grants whose validity was over when the reply was read */

    int64_t last_grant_ns;
    int64_t longest_ns;       /* the longest time without a grant */
    char broken[LEDGER_TEXT]; /* the faults in that longest time */
    char broken_since_grant[LEDGER_TEXT];
};

/* The history is written to the file `path`. */
void ledger_init(struct ledger *ledger, bool masters_lose_data, const char *path);
void ledger_free(struct ledger *ledger);

int64_t ledger_now_ns(void);

/* Record an action or a line that was sent or read. */
void ledger_note(struct ledger *ledger, const char *form, ...)
    __attribute__((format(printf, 2, 3)));

/* Record a fault. The report names the faults that struck in the longest time without a grant. */
void ledger_broken(struct ledger *ledger, const char *fault, const char *form, ...)
    __attribute__((format(printf, 3, 4)));

/* Record a violation. Only the first is kept. */
void ledger_violated(struct ledger *ledger, const char *form, ...)
    __attribute__((format(printf, 2, 3)));

/* A daemon granted a lock. False if its client must stop at once, because the validity is over. */
bool ledger_granted(struct ledger *ledger, unsigned daemon, const struct claim *claim);

/* A daemon has confirmed that the lock is held at least until claim->until_ns. False if that time
 * is over. */
bool ledger_prolonged(struct ledger *ledger, const struct claim *claim);

/* The greatest fencing token that was granted for this resource. */
int64_t ledger_fence(struct ledger *ledger, unsigned resource);

/* The token of the present holder; false, and "", without a holder. `token` has HISTORY_TOKEN + 1
 * bytes. */
bool ledger_holder(struct ledger *ledger, unsigned resource, char *token);

/* The holder no longer relies on the lock. Call this before any other client can learn of it. */
void ledger_ended(struct ledger *ledger, unsigned resource, const char *token);

/* A foreign client believes that it was granted a lock. */
void ledger_foreign_granted(struct ledger *ledger, unsigned foreign, const struct claim *claim);

/* End the measurement of the longest time without a grant. */
void ledger_close_gap(struct ledger *ledger);

#endif
