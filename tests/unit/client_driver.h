/*
 * A driver for tests of client/c/client_proto.h. The tests set the clock (now_ns) and play the
 * daemon.
 */
#ifndef TESTS_UNIT_CLIENT_DRIVER_H
#define TESTS_UNIT_CLIENT_DRIVER_H

#include "client/c/client_proto.h"
#include "protocol/units.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"
#define OTHER "1123456789abcdef0123456789abcdef01234567"

#define MS      NS_PER_MS
#define TIMEOUT (5000 * MS)

struct client_driver {
    struct client_proto proto; /* its peer is tcp://there:1 */
    int64_t now_ns;            /* starts at one second */
    struct error error;
};

void driver_begin(struct client_driver *client_driver);
void driver_end(struct client_driver *client_driver);

/* Send a request and return its id. Locks have a TTL of 10 s. */
uint64_t driver_ask(struct client_driver *client_driver, const struct client_request *request);
uint64_t driver_acquire(struct client_driver *client_driver, const char *resource,
                        struct redlock_lock_options options);
uint64_t driver_ping(struct client_driver *client_driver);

/* driver_sent() takes all bytes that the client has ready to send. It returns them as text, in a
 * buffer that the next call overwrites. driver_expect_sent() asserts that these bytes are the given
 * text. */
const char *driver_sent(struct client_driver *client_driver);
__attribute__((format(printf, 2, 3))) void driver_expect_sent(struct client_driver *client_driver,
                                                              const char *form, ...);

/* Feed these lines to the client as if the daemon had sent them. Returns false if the client ends
 * the connection. */
__attribute__((format(printf, 2, 3))) bool driver_receive(struct client_driver *client_driver,
                                                          const char *form, ...);

/* driver_next() takes the next event. driver_expect() also asserts its kind, and
 * driver_expect_answer() that it answers this request with this status. driver_expect_none()
 * asserts that there is no event. */
struct redlock_event driver_next(struct client_driver *client_driver);
void driver_expect(struct client_driver *client_driver, enum redlock_event_kind kind);
struct redlock_event driver_expect_answer(struct client_driver *client_driver, uint64_t id,
                                          enum redlock_status status);
void driver_expect_none(struct client_driver *client_driver);

/* Send a LOCK, grant it with this token and take the event that reports the grant. Returns the
 * request's id. */
uint64_t driver_acquire_granted(struct client_driver *client_driver, const char *resource,
                                const char *token, bool hold);

#endif
