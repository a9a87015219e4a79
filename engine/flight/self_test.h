/*
 * Whether a master does what rounds ask of it: each command once, on a key of this daemon alone;
 * and what it says of the names of all masters. For `redlockd -t --probe`.
 */
#ifndef ENGINE_FLIGHT_SELF_TEST_H
#define ENGINE_FLIGHT_SELF_TEST_H

#include "engine/flight/flights.h"

/* The node's link is up. io.tried() hears ENGINE_SELF_TESTS answers, io.leased() one for each node,
 * unless the link is lost before. Nothing is left of it after some seconds. */
void self_test_start(struct flights *flights, unsigned node, int64_t now_ns);

void self_test_on_reply(struct flights *flights, unsigned node,
                        const struct outstanding *outstanding, const struct redis_reply *reply);

#endif
