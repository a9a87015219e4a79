/*
 * A conversation of client/c/talk.h for tests: time is a number, and the daemon is what the test
 * says.
 */
#ifndef TESTS_UNIT_TALKER_H
#define TESTS_UNIT_TALKER_H

#include "client/c/talk.h"
#include "protocol/units.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"
#define OTHER "1123456789abcdef0123456789abcdef01234567"

#define MS      NS_PER_MS
#define TIMEOUT (5000 * MS)

struct talker {
    struct talk talk; /* with tcp://there:1 */
    int64_t now_ns;   /* begins at a second */
    struct error error;
};

void talker_begin(struct talker *talker);
void talker_end(struct talker *talker);

/* Each returns the id; the time to live asked for is 10 s. */
uint64_t talker_ask(struct talker *talker, const struct question *question);
uint64_t talker_acquire(struct talker *talker, const char *resource,
                        struct redlock_lock_options options);
uint64_t talker_ping(struct talker *talker);

/* All that is to be sent, as a text that lives until the next call; and it has to be this. */
const char *talker_sent(struct talker *talker);
__attribute__((format(printf, 2, 3))) void talker_expect_sent(struct talker *talker,
                                                              const char *form, ...);

/* The daemon says it; may the connection go on? */
__attribute__((format(printf, 2, 3))) bool talker_hear(struct talker *talker, const char *form,
                                                       ...);

/* The next event; of this kind; an answer to this; and there is none. */
struct redlock_event talker_next(struct talker *talker);
void talker_expect(struct talker *talker, enum redlock_event_kind kind);
struct redlock_event talker_expect_answer(struct talker *talker, uint64_t id,
                                          enum redlock_status status);
void talker_expect_none(struct talker *talker);

/* Acquired, and taken. */
uint64_t talker_granted(struct talker *talker, const char *resource, const char *token, bool hold);

#endif
