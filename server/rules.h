/*
 * What the engine, the parser of requests and the listeners take from the configuration.
 */
#ifndef SERVER_RULES_H
#define SERVER_RULES_H

#include "engine/engine.h"
#include "protocol/request.h"

struct config;
struct log;

/* The rules point into the configuration, which outlives them. What a server is started for is the
 * caller's to add. */
struct engine_rules rules_of(const struct config *config);

/* Which requests are refused unseen, by these rules. */
struct request_limits rules_request_limits(const struct engine_rules *rules);

/*
 * How many clients there may be, so that the connections to the masters always find a descriptor:
 * when all are taken, the one that a lost master's connection frees would go to the next client in
 * the queue. limits.clients, or fewer where descriptors do not allow as many; then the log says so.
 * Raises the limit of open files of this process as far as it may.
 */
unsigned rules_clients(const struct config *config, const struct log *log);

#endif
