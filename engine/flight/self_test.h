/*
 * Test whether a master accepts the commands that rounds use. The commands are sent for a key that
 * only this daemon uses. Also read the name leases for all nodes that this master has. For
 * `redlockd -t --probe`.
 */
#ifndef ENGINE_FLIGHT_SELF_TEST_H
#define ENGINE_FLIGHT_SELF_TEST_H

#include "engine/flight/flights.h"

/* The link of the node must be up. Unless the link is lost before, io.self_tested() is called
 * ENGINE_SELF_TESTS times, and io.lease_found() once for each node of the configuration. The keys
 * of the test expire after a few seconds. */
void self_test_start(struct flights *flights, unsigned node, int64_t now_ns);

void self_test_on_reply(struct flights *flights, unsigned node,
                        const struct outstanding *outstanding, const struct redis_reply *reply);

#endif
