/*
 * The connections of a world to the fake masters.
 */
#ifndef TESTS_UNIT_WORLD_WIRE_H
#define TESTS_UNIT_WORLD_WIRE_H

#include "tests/unit/world.h"

/* Open what the engine has asked for; was there anything? */
bool world_connect(struct world *world, unsigned node);

/* The engine's side of it. */
void world_close(struct world *world, unsigned node, enum channel channel);
void world_write(struct world *world, unsigned node, enum channel channel, const char *bytes,
                 size_t len);

/* Execute what has arrived by the two connections, and hear what the master says; was there
 * anything? And what has arrived by a connection that was reset. */
bool world_serve(struct world *world, unsigned node);
void world_serve_zombie(struct world *world, unsigned node);

/* At the end of the daemon, and of the world. */
void world_close_all(struct world *world);
void world_free_connections(struct world *world);

#endif
