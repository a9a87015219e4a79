/*
 * A conversation of client/c/client_proto.h for tests: time is a number, and the daemon is what the
 * test says.
 */
#ifndef TESTS_UNIT_DRIVER_H
#define TESTS_UNIT_DRIVER_H

#include "client/c/client_proto.h"
#include "protocol/units.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"
#define OTHER "1123456789abcdef0123456789abcdef01234567"

#define MS      NS_PER_MS
#define TIMEOUT (5000 * MS)

struct client_driver {
    struct client_proto proto; /* with tcp://there:1 */
    int64_t now_ns;            /* begins at a second */
    struct error error;
};

void driver_begin(struct client_driver *client_driver);
void driver_end(struct client_driver *client_driver);

/* Each returns the id; the time to live asked for is 10 s. */
uint64_t driver_ask(struct client_driver *client_driver, const struct client_request *request);
uint64_t driver_acquire(struct client_driver *client_driver, const char *resource,
                        struct redlock_lock_options options);
uint64_t driver_ping(struct client_driver *client_driver);

/* All that is to be sent, as a text that lives until the next call; and it has to be this. */
const char *driver_sent(struct client_driver *client_driver);
__attribute__((format(printf, 2, 3))) void driver_expect_sent(struct client_driver *client_driver,
                                                              const char *form, ...);

/* The daemon says it; may the connection go on? */
__attribute__((format(printf, 2, 3))) bool driver_hear(struct client_driver *client_driver,
                                                       const char *form, ...);

/* The next event; of this kind; an answer to this; and there is none. */
struct redlock_event driver_next(struct client_driver *client_driver);
void driver_expect(struct client_driver *client_driver, enum redlock_event_kind kind);
struct redlock_event driver_expect_answer(struct client_driver *client_driver, uint64_t id,
                                          enum redlock_status status);
void driver_expect_none(struct client_driver *client_driver);

/* Acquired, and taken. */
uint64_t driver_granted(struct client_driver *client_driver, const char *resource,
                        const char *token, bool hold);

#endif
