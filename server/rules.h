/*
 * Derives the limits of the engine, the request parser and the listeners from the configuration.
 */
#ifndef SERVER_RULES_H
#define SERVER_RULES_H

#include "engine/engine.h"
#include "protocol/request.h"

struct config;
struct log;

/* The rules point into the configuration, which must outlive them. The caller sets the fields that
 * depend on the command line. */
struct engine_rules rules_of(const struct config *config);

/* The limits by which the parser rejects requests before the engine sees them. */
struct request_limits rules_request_limits(const struct engine_rules *rules);

/*
 * The number of clients to accept: limits.clients, or fewer if there are too few descriptors, which
 * is logged. Some descriptors are kept free for the connections to the masters. Otherwise, when the
 * daemon loses a connection to a master, the next client in the listen queue would take its
 * descriptor. This function also raises the process's limit of open files as far as allowed.
 */
unsigned rules_clients(const struct config *config, const struct log *log);

#endif
