/*
 * The connections of a cluster to the fake masters.
 */
#ifndef TESTS_UNIT_CLUSTER_WIRE_H
#define TESTS_UNIT_CLUSTER_WIRE_H

#include "tests/unit/cluster.h"

/* Open what the engine has asked for; was there anything? */
bool cluster_connect(struct cluster *cluster, unsigned node);

/* The engine's side of it. */
void cluster_close(struct cluster *cluster, unsigned node, enum channel channel);
void cluster_write(struct cluster *cluster, unsigned node, enum channel channel, const char *bytes,
                   size_t len);

/* Execute what has arrived by the two connections, and hear what the master says; was there
 * anything? And what has arrived by a connection that was reset. */
bool cluster_serve(struct cluster *cluster, unsigned node);
void cluster_serve_zombie(struct cluster *cluster, unsigned node);

/* At the end of the daemon, and of the cluster. */
void cluster_close_all(struct cluster *cluster);
void cluster_free_connections(struct cluster *cluster);

#endif
