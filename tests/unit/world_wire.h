/*
 * The connections to the fake masters: bytes on their way, commands taken off them, answers back.
 */
#ifndef TESTS_UNIT_WORLD_WIRE_H
#define TESTS_UNIT_WORLD_WIRE_H

#include "tests/unit/world.h"

void world_clear_inbox(struct world_inbox *inbox);

/* Open what the engine has asked for; was there anything? */
bool world_connect(struct world *world, unsigned node);

/* The engine's side of it. */
void world_close(struct world *world, unsigned node, enum channel channel);
void world_write(struct world *world, unsigned node, enum channel channel, const char *bytes,
                 size_t len);

/* Without a word to the engine. */
void world_close_tracker(struct world_master *master);

/* Execute one command that has arrived by this connection; was there any? */
bool world_serve(struct world *world, unsigned node, struct world_inbox *inbox);

/* When the next command arrives by the connection for commands; INT64_MAX: never. */
int64_t world_arrival_ns(const struct world_master *master);

/* To the engine, unless the answer is lost. */
void world_deliver(struct world *world, unsigned node, struct world_inbox *inbox,
                   struct redis_reply answer);

#endif
