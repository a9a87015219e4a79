/*
 * The connections of a fake cluster to its masters.
 */
#ifndef TESTS_UNIT_CLUSTER_WIRE_H
#define TESTS_UNIT_CLUSTER_WIRE_H

#include "tests/unit/cluster.h"

/* Open the connections that the engine asked for. Returns whether there were any. */
bool cluster_connect(struct cluster *cluster, unsigned node);

/* Called for the engine: close a connection, or write to it. */
void cluster_close(struct cluster *cluster, unsigned node, enum channel channel);
void cluster_write(struct cluster *cluster, unsigned node, enum channel channel, const char *bytes,
                   size_t len);

/* Execute what has arrived on the connections for commands and for tracking, and deliver the
 * replies. Returns whether there was anything. cluster_serve_zombie() executes what is left on a
 * connection that was reset. */
bool cluster_serve(struct cluster *cluster, unsigned node);
void cluster_serve_zombie(struct cluster *cluster, unsigned node);

/* Close all connections when the daemon ends; free them when the cluster ends. */
void cluster_close_all(struct cluster *cluster);
void cluster_free_connections(struct cluster *cluster);

#endif
