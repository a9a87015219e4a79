/*
 * What the engine, and the parser of requests, take from the configuration.
 */
#ifndef SERVER_RULES_H
#define SERVER_RULES_H

#include "engine/engine.h"
#include "protocol/request.h"

struct config;

/* The rules point into the configuration, which outlives them. What a server is started for is the
 * caller's to add. */
struct engine_rules rules_of(const struct config *config);

/* Which requests are refused unseen, by these rules. */
struct request_limits rules_request_limits(const struct engine_rules *rules);

#endif
