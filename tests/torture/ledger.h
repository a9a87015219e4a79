/*
 * What all clients of a torture were told, in one order and by one clock, and whether it can be
 * true.
 *
 * Clients are played by several threads of one process. Each writes here, under one lock, what it
 * was told after it has read it, and what it gives up before it says so. So the ledger's order is
 * one in which it can have happened, and whoever is in it as a holder believes that it is one.
 *
 * A foreign client has no guard. Where masters forget, it may be granted what somebody else holds
 * still, through no fault of redlockd. Then its grant is not recorded, and counted as excused; so
 * is a recorded one that a grant of redlockd overlaps which may have been decided before it.
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
    LEDGER_FOREIGN_HOLDS = 256, /* more than there are in the longest time to live */
    LEDGER_FILE_MAX = 16 * 1024 * 1024,
    LEDGER_TEXT = 256,
};

/* Somebody was told that it holds a resource. */
struct claim {
    unsigned resource;
    const char *token;
    int64_t fence; /* 0: without one */
    int64_t until_ns;
    int64_t begun_ns; /* the votes behind it were asked for after this */
};

/* Of a foreign client; it may have died since, and its hold be valid still. */
struct foreign_hold {
    char token[HISTORY_TOKEN + 1];
    int64_t granted_ns;
};

struct ledger {
    pthread_mutex_t mutex;
    struct history history;
    struct foreign_hold foreign[LEDGER_FOREIGN_HOLDS]; /* the last ones */
    bool forgetting;                                   /* masters are made to forget in this run */
    int64_t began_ns;

    /* What happened, as text. When it gets too long it becomes PATH.1, and another begins. */
    FILE *notes;
    char path[LEDGER_TEXT];
    long notes_len;

    atomic_bool violated;
    char why[LEDGER_TEXT];

    uint64_t granted_by[LEDGER_DAEMONS];
    uint64_t foreign_grants;
    uint64_t foreign_excused;
    uint64_t late; /* granted, but over when it was read */

    /* The longest time without a grant, and the events noted in it that `event` says. */
    int64_t last_grant_ns;
    int64_t longest_ns;
    char broken[LEDGER_TEXT];
    char broken_since_grant[LEDGER_TEXT];
};

/* The history is written to this file. */
void ledger_init(struct ledger *ledger, bool forgetting, const char *path);
void ledger_free(struct ledger *ledger);

int64_t ledger_now_ns(void);

/* Write down what was sent, read or done. */
void ledger_note(struct ledger *ledger, const char *form, ...)
    __attribute__((format(printf, 2, 3)));

/* The same of what was broken: it is named where nothing could be granted for long. */
void ledger_broken(struct ledger *ledger, const char *fault, const char *form, ...)
    __attribute__((format(printf, 3, 4)));

/* Something happened that must not. The first that is said stands. */
void ledger_violated(struct ledger *ledger, const char *form, ...)
    __attribute__((format(printf, 2, 3)));

/* A daemon granted a lock. False if its client has to stop at once: the time is over. */
bool ledger_granted(struct ledger *ledger, unsigned daemon, const struct claim *claim);

/* It is held until claim->until_ns at least. */
bool ledger_prolonged(struct ledger *ledger, const struct claim *claim);

/* The greatest fence of those who have held this resource. */
int64_t ledger_fence(struct ledger *ledger, unsigned resource);

/* Who holds it now; false, and "" (HISTORY_TOKEN + 1 bytes), if that is nobody. */
bool ledger_holder(struct ledger *ledger, unsigned resource, char *token);

/* Its holder relies on it no more; to be called before anybody else hears of it. */
void ledger_ended(struct ledger *ledger, unsigned resource, const char *token);

/* A foreign client believes that it was granted a lock. */
void ledger_foreign_granted(struct ledger *ledger, unsigned foreign, const struct claim *claim);

/* Counting for the longest time without a grant ends. */
void ledger_close_gap(struct ledger *ledger);

#endif
