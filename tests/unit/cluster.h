/*
 * A cluster for the engine: fake masters (tests/fake/master.h), which execute the engine's own
 * bytes, on virtual time. A master can be hung (commands pile up and run when it goes on), dead, or
 * slow to forget a connection that was reset, as a real one is.
 *
 * A cluster has one daemon. Two worlds can have the same masters, and keep each its own
 * connections.
 *
 * It is played by cluster.c (time, the daemon, what befalls masters), cluster_wire.c (connections),
 * cluster_clients.c and cluster_io.c; cluster_guard.h is for tests of the guard.
 */
#ifndef TESTS_UNIT_CLUSTER_H
#define TESTS_UNIT_CLUSTER_H

#include <stdbool.h>

#include "engine/internal.h"
#include "server/masters/resp.h"
#include "tests/fake/master.h"
#include "tests/fake/pipe.h"

enum {
    CLUSTER_NODES = 5,
    CLUSTER_REPLIES = 2048,
    CLUSTER_CLIENTS = 4,
};

/* What all daemons share. */
struct cluster_master {
    struct fake_master redis;
    bool dead;
    bool hung;
    bool mute;        /* executes, but its replies are lost */
    int64_t delay_ns; /* how long bytes take to reach it */
    int64_t clock_ns; /* what its wall clock is ahead of the cluster's; keys expire by it */
    unsigned wires;   /* counts the connections to it */
};

/* One connection of the daemon to a master. */
struct cluster_connection {
    bool opening;  /* the engine asked for it */
    bool open;     /* the engine has it: replies can still be sent */
    unsigned wire; /* of the session at the master */
    struct pipe pipe;
    struct resp resp;
};

struct cluster {
    struct engine engine;
    struct engine_client client;                  /* who sends, if nobody else is named */
    struct engine_client others[CLUSTER_CLIENTS]; /* more of them */
    struct cluster_master *masters;               /* its own, or those of another cluster */
    unsigned breaks;                              /* that were told of when they began to act */
    unsigned refused_commands; /* masters that were told of for answering an error to a command */
    unsigned refused_releases; /* ... to one that releases */
    unsigned node_count;
    int64_t now_ns;
    uint32_t durable;                       /* nodes that the next engine is told to be durable */
    const char *reset_set;                  /* the next engine is told that this set is no more */
    const char *cluster;                    /* of the next engine; NULL: "cluster" */
    bool read_only;                         /* the next engine is to write nothing by itself */
    int64_t stepped_back_ns[CLUSTER_NODES]; /* as the daemon has told */
    unsigned trials;                        /* answers to what engine_self_test() has asked */
    enum reason trial_refused[ENGINE_SELF_TESTS]; /* ... in their order */
    char leases[CLUSTER_NODES][LIMIT_RECORD]; /* on the names, as the master told that was tried */
    int64_t wall_ns;                          /* what the daemon's wall clock is ahead of now_ns */
    uint64_t random;
    char replies[CLUSTER_REPLIES][128]; /* the lines the client got */
    unsigned reply_count;
    unsigned replies_read; /* by cluster_next_reply() */
    unsigned link_changes;
    bool lazy;         /* flushes only when nothing else is left to do */
    bool deaf;         /* the connection for which the next answer is breaks with it */
    bool zombies_wait; /* commands of reset connections run only once this is off */
    /* The answers of these nodes, a bit each, are handed over, each as bytes, in place of reaching
     * the engine. */
    uint32_t diverted;
    void (*divert)(struct cluster *cluster, unsigned node, enum channel channel, const char *bytes,
                   size_t len);

    /* From here on memory is used again and again. */
    struct cluster_master own[CLUSTER_NODES];
    struct cluster_connection connections[CLUSTER_NODES][CHANNELS];
    struct cluster_connection zombies[CLUSTER_NODES]; /* reset before the master had read all */
};

/* All masters are there, all links up, and an operator has said that no lock is held. */
void cluster_init(struct cluster *cluster, unsigned node_count);

/* The same without that word: the masters are new, and nobody knows what they held. */
void cluster_init_unknown(struct cluster *cluster, unsigned node_count);

/* Another daemon on the masters of the other cluster. */
void cluster_join(struct cluster *cluster, const struct cluster *other, const char *clock_id);

/* From now on the time is as it is there; the masters are the same, and always were. */
void cluster_share(struct cluster *cluster, const struct cluster *other);

/* The engine stops, and another starts, on this host or on another one. */
void cluster_restart_engine(struct cluster *cluster, const char *clock_id);

/* Why the node has no vote: its word, "-" if it votes. */
const char *cluster_vote(const struct cluster *cluster, unsigned node);

/* Lose all data, as FLUSHALL does. */
void cluster_flush(struct cluster *cluster, unsigned node);
void cluster_deinit(struct cluster *cluster);

/* Let everything that can happen now happen. */
void cluster_settle(struct cluster *cluster);

/* Let time pass, timers included. */
void cluster_pass_ms(struct cluster *cluster, int64_t ms);

/* One request line, as printf() makes it; the reply's line is the next of cluster->replies. */
__attribute__((format(printf, 2, 3))) void cluster_send(struct cluster *cluster, const char *form,
                                                        ...);
__attribute__((format(printf, 3, 4))) void
cluster_send_as(struct cluster *cluster, struct engine_client *client, const char *form, ...);

/* The next reply or push that has not been looked at yet; NULL if there is none. */
const char *cluster_next_reply(struct cluster *cluster);

/* ... or "(nothing)"; and it has to be this. */
const char *cluster_heard(struct cluster *cluster);
__attribute__((format(printf, 2, 3))) void cluster_expect(struct cluster *cluster, const char *form,
                                                          ...);

/* It is "#<tag> OK ..."; its token, in a buffer that the next call overwrites. */
const char *cluster_expect_grant(struct cluster *cluster, const char *tag);

/* Send, and let happen what can. */
__attribute__((format(printf, 2, 3))) void cluster_say(struct cluster *cluster, const char *form,
                                                       ...);

/* The first so many masters hang, or go on. */
void cluster_hang(struct cluster *cluster, unsigned count, bool hung);

/* The client ends its connection in order, or is gone without a word. */
void cluster_end_client(struct cluster *cluster, struct engine_client *client);
void cluster_lose_client(struct cluster *cluster, struct engine_client *client);

/* Send, settle, and return the one reply it brought. */
__attribute__((format(printf, 2, 3))) const char *cluster_ask(struct cluster *cluster,
                                                              const char *form, ...);

/* Is it OK, and has no tag? Then its token, likewise. */
bool cluster_granted(const char *reply);
const char *cluster_token(const char *reply);

/* A master's wall clock. */
int64_t cluster_clock_us(const struct cluster *cluster, unsigned node);

/* How much of what a reset connection has brought a master has not read. */
size_t cluster_unread(struct cluster *cluster, unsigned node);

/* The engine reads what a master says, or somebody in its place. */
void cluster_feed(struct cluster *cluster, unsigned node, enum channel channel, const char *bytes,
                  size_t len);

/* The network resets the connection; what the master has not read yet it may still execute. */
void cluster_cut(struct cluster *cluster, unsigned node);
void cluster_cut_tracker(struct cluster *cluster, unsigned node);

/* It is dead, with all its data; and there again, as another process. */
void cluster_kill(struct cluster *cluster, unsigned node);
void cluster_restart(struct cluster *cluster, unsigned node);

/* The value of a lock's key on a node, or NULL. */
const char *cluster_value(struct cluster *cluster, unsigned node, const char *resource);

/* On how many nodes the resource's key exists. */
unsigned cluster_count(struct cluster *cluster, const char *resource);

/* Put a key there as a foreign client would. */
void cluster_set(struct cluster *cluster, unsigned node, const char *resource, const char *value,
                 int64_t ttl_ms);
void cluster_delete(struct cluster *cluster, unsigned node, const char *resource);

/* Somebody who asks no daemon has it on all masters, as "foreign"; and releases it. */
void cluster_occupy(struct cluster *cluster, const char *resource, int64_t ttl_ms);
void cluster_vacate(struct cluster *cluster, const char *resource);

/* How many commands about locks all masters together have executed. */
unsigned cluster_commands(const struct cluster *cluster);

#endif
