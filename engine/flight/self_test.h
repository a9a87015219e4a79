/*
 * Whether a master accepts the commands that rounds use: each command once, on a key that only this
 * daemon uses. Also reads the leases on all names. For `redlockd -t --probe`.
 */
#ifndef ENGINE_FLIGHT_SELF_TEST_H
#define ENGINE_FLIGHT_SELF_TEST_H

#include "engine/flight/flights.h"

/* The node's link must be up. io.self_tested() is called ENGINE_SELF_TESTS times and
 * io.lease_found() once for each node, unless the link is lost before. The keys of the test expire
 * after some seconds. */
void self_test_start(struct flights *flights, unsigned node, int64_t now_ns);

void self_test_on_reply(struct flights *flights, unsigned node,
                        const struct outstanding *outstanding, const struct redis_reply *reply);

#endif
