/*
 * The checker: what clients were told about locks, in the order of true time, and whether two of
 * them could believe at once that they hold the same one.
 *
 * A hold begins when a client is told so, and ends when the validity is over, or when its holder
 * gives it up: before it asks for a release, or closes its connection. The simulator feeds it true
 * time that nobody inside can see; tests on real masters feed it the one clock of their process.
 *
 * Times are nanoseconds of any one clock. Events have to come in their order.
 */
#ifndef TESTS_HISTORY_H
#define TESTS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_TOKEN = 64, HISTORY_RESOURCES = 64, HISTORY_HOLDS = 1024 };

struct history_hold {
    unsigned resource; /* < HISTORY_RESOURCES */
    char token[HISTORY_TOKEN + 1];
    int64_t until_ns;
};

enum history_result {
    HISTORY_FINE,
    HISTORY_TWO_HOLDERS, /* history->other is the one that was there before */
    HISTORY_FENCE_FELL,  /* it is not greater than history->fences[resource] */
};

struct history {
    struct history_hold holds[HISTORY_HOLDS]; /* valid still, or not yet swept */
    unsigned hold_count;
    struct history_hold other;
    int64_t fences[HISTORY_RESOURCES]; /* the last of each */
    uint64_t grants;
};

void history_init(struct history *history);

/*
 * Somebody holds the resource from now on; fence 0: without one. A hold whose end has passed is a
 * grant, but no hold. What is not fine is not recorded: if it is excusable, go on.
 */
enum history_result history_granted(struct history *history, unsigned resource, const char *token,
                                    int64_t fence, int64_t now_ns, int64_t until_ns);

/* It is held until then at least; also one that had ended. */
enum history_result history_prolonged(struct history *history, unsigned resource, const char *token,
                                      int64_t now_ns, int64_t until_ns);

/* Its holder relies on it no more. */
void history_ended(struct history *history, unsigned resource, const char *token);

/* Until when it is held; INT64_MIN if nobody was told, or it has ended. */
int64_t history_until(const struct history *history, unsigned resource, const char *token);

/* "two holders at once" and the like; NULL if it is fine. */
const char *history_words(enum history_result verdict);

#endif
