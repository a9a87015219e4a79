/*
 * What the engine of a daemon needs done: bytes to masters and answers to clients, the log of what
 * has become of the masters, clock and random bytes.
 */
#ifndef SERVER_SERVER_IO_H
#define SERVER_SERVER_IO_H

#include "engine/engine.h"
#include "server/server.h"

struct engine_io server_io(struct server *server);

#endif
