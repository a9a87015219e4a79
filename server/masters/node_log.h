/*
 * What the log says of masters, as struct engine_io tells it.
 */
#ifndef SERVER_MASTERS_NODE_LOG_H
#define SERVER_MASTERS_NODE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/view.h"

struct connections;

void node_log_link(struct connections *connections, unsigned node, enum link_state before);

/* Counts the votes, too. False if the daemon must not go on, because the configuration names a
 * master twice. */
bool node_log_vote(struct connections *connections, unsigned node, enum reason before,
                   enum reason reason, int64_t now_ns);

void node_log_clock_back(const struct connections *connections, unsigned node, int64_t back_ns);
void node_log_refused(const struct connections *connections, unsigned node, enum reason reason,
                      bool release);
void node_log_releases_refused(const struct connections *connections, unsigned node,
                               enum redis_form form);

#endif
