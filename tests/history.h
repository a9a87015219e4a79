/*
 * Checks what clients were told about locks, in the order of true time: no two clients may believe
 * at once that they hold the same resource.
 *
 * A hold begins when a client receives its grant. The hold ends when its validity ends or when the
 * client gives it up. A client gives it up before it requests a release or closes its connection.
 * The simulator passes true time, which no simulated process can see. Tests on real masters pass
 * the clock of their process.
 *
 * Times are nanoseconds of any one clock. Events must be passed in order.
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
    HISTORY_TWO_HOLDERS, /* history->other is the earlier holder */
    HISTORY_FENCE_FELL,  /* not greater than history->fences[resource] */
};

struct history {
    struct history_hold holds[HISTORY_HOLDS]; /* valid, or expired and not yet removed */
    unsigned hold_count;
    struct history_hold other;
    int64_t fences[HISTORY_RESOURCES]; /* last fence of each resource */
    uint64_t grants;
};

void history_init(struct history *history);

/*
 * Records a grant at now_ns that is valid until until_ns. fence 0: none. A grant whose validity has
 * passed already makes no hold. A grant that violates a rule is not recorded, so a caller that
 * excuses the violation can continue.
 */
enum history_result history_granted(struct history *history, unsigned resource, const char *token,
                                    int64_t fence, int64_t now_ns, int64_t until_ns);

/* Records an extension: the token holds the resource at least until until_ns, even if its hold had
 * ended. */
enum history_result history_prolonged(struct history *history, unsigned resource, const char *token,
                                      int64_t now_ns, int64_t until_ns);

/* The holder no longer relies on the lock. */
void history_ended(struct history *history, unsigned resource, const char *token);

/* Returns when the validity of the hold ends, or INT64_MIN if no hold of the token is recorded. */
int64_t history_until(const struct history *history, unsigned resource, const char *token);

/* Returns a description such as "two holders at once"; NULL for HISTORY_FINE. */
const char *history_words(enum history_result result);

#endif
