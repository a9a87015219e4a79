/*
 * A fake cluster for the engine: fake masters (tests/fake/master.h) execute the bytes that the
 * engine sends, on virtual time. A master can hang (commands pile up and run when it resumes), be
 * dead, or notice a connection reset late, as a real server does.
 *
 * A cluster has one daemon. Two clusters can share their masters; each has its own connections.
 *
 * cluster.c advances time, starts the daemon and makes masters fail. cluster_wire.c carries bytes
 * between the engine and the masters. cluster_clients.c plays the clients, and cluster_io.c
 * implements the callbacks of the engine. cluster_guard.h is for tests of the guard.
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

/* One master, shared by all daemons. */
struct cluster_master {
    struct fake_master redis;
    bool dead;
    bool hung;
    bool mute;          /* the master executes commands, but its replies are lost */
    int64_t delay_ns;   /* transit time of bytes to the master */
    int64_t service_ns; /* time that the master takes for each command */
    int64_t busy_ns;    /* when its present command ends */
    int64_t clock_ns;   /* the master's wall clock minus the cluster's now_ns; keys expire by it */
    unsigned wires;     /* number of connections ever opened to the master */
};

/* One connection of the daemon to a master. */
struct cluster_connection {
    bool opening;  /* the engine has asked for the connection */
    bool open;     /* the connection is up, so the master's replies reach the engine */
    unsigned wire; /* number of this connection at the master */
    struct pipe pipe;
    struct resp resp;
};

struct cluster {
    struct engine engine;
    struct engine_client client;                  /* sends all requests that name no other client */
    struct engine_client others[CLUSTER_CLIENTS]; /* further clients */
    struct cluster_master *masters;               /* own[], or the masters of another cluster */
    unsigned breaks;           /* BREAKs that the engine has announced with io.breaking() */
    unsigned refused_commands; /* number of calls of io.command_refused() */
    unsigned refused_releases; /* how many of these calls were for a release */
    unsigned node_count;
    int64_t now_ns;
    uint32_t durable;                       /* nodes marked durable in the next engine's rules */
    const char *reset_set;                  /* --reset-set of the next engine */
    const char *cluster;                    /* name in the next engine's rules; NULL: "main" */
    bool read_only;                         /* the next engine is read-only, as for -t --probe */
    int64_t stepped_back_ns[CLUSTER_NODES]; /* sum of reported steps back per node */
    unsigned self_tests;                    /* number of results of engine_self_test() */
    enum reason
        self_test_refusals[ENGINE_SELF_TESTS]; /* these results, in order; REASON_NONE: works */
    char leases[CLUSTER_NODES][LIMIT_RECORD];  /* name leases that the self-test reported */
    int64_t wall_ns;                           /* the daemon's wall clock minus now_ns */
    uint64_t random;
    /* The replies and pushes to all clients, without their newlines. A line "undone ..." or
     * "broken ..." stands for a call of io.undone() or io.broken(). */
    char replies[CLUSTER_REPLIES][128];
    unsigned reply_count;
    unsigned replies_read; /* replies that cluster_next_reply() returned */
    unsigned link_changes;
    bool lazy;           /* flush the engine's output only when nothing else is left to do */
    bool reply_fails;    /* the next reply's connection fails during the write */
    bool zombies_paused; /* masters do not execute the commands of reset connections */
    /* A set of nodes, one bit for each. The replies of these nodes go to divert() instead of the
     * engine. Each call of divert() passes the bytes of one reply, or of tracking reports. */
    uint32_t diverted;
    void (*divert)(struct cluster *cluster, unsigned node, enum channel channel, const char *bytes,
                   size_t len);

    /* The fields from here on are not cleared between tests: the next test reuses their memory. */
    struct cluster_master own[CLUSTER_NODES];
    struct cluster_connection connections[CLUSTER_NODES][CHANNELS];
    /* Connections that were reset before the master had read all input. */
    struct cluster_connection zombies[CLUSTER_NODES];
};

/* All masters run, all links are up, and an operator's override (--bootstrap) lets them vote. */
void cluster_init(struct cluster *cluster, unsigned node_count);

/* As cluster_init(), but without the operator's override. The masters are new, so the daemon cannot
 * know whether they have lost locks. */
void cluster_init_unknown(struct cluster *cluster, unsigned node_count);

/* Start another daemon on the masters of the other cluster. */
void cluster_join(struct cluster *cluster, const struct cluster *other, const char *clock_id);

/* Set this cluster's clock to that of the other cluster. The two must already share their
 * masters. */
void cluster_share(struct cluster *cluster, const struct cluster *other);

/* Stop the engine and start another one, on the host that this clock_id names. */
void cluster_restart_engine(struct cluster *cluster, const char *clock_id);

/* Why the node has no vote, as a reason word; "-" if it votes. */
const char *cluster_vote(const struct cluster *cluster, unsigned node);

/* Delete all keys of the master, as FLUSHALL does. */
void cluster_flush(struct cluster *cluster, unsigned node);
void cluster_deinit(struct cluster *cluster);

/* Run everything that is due now. */
void cluster_settle(struct cluster *cluster);

/* Advance time; timers fire on the way. */
void cluster_pass_ms(struct cluster *cluster, int64_t ms);

/* Advance time for two daemons on the same masters, a millisecond each in turn. */
void cluster_pass_both_ms(struct cluster *cluster, struct cluster *other, int64_t ms);

/* Send one request line, formatted as by printf(). The reply is appended to cluster->replies. */
__attribute__((format(printf, 2, 3))) void cluster_send(struct cluster *cluster, const char *form,
                                                        ...);
__attribute__((format(printf, 3, 4))) void
cluster_send_as(struct cluster *cluster, struct engine_client *client, const char *form, ...);

/* The next line of cluster->replies that was not yet returned; NULL if there is none. */
const char *cluster_next_reply(struct cluster *cluster);

/* cluster_take_reply() returns the next reply, or "(nothing)" if there is none. cluster_expect()
 * asserts that the next reply is this line. */
const char *cluster_take_reply(struct cluster *cluster);
__attribute__((format(printf, 2, 3))) void cluster_expect(struct cluster *cluster, const char *form,
                                                          ...);

/* Assert that the next reply is "#<tag> OK ...". Returns its token in a buffer that the next call
 * overwrites. */
const char *cluster_expect_grant(struct cluster *cluster, const char *tag);

/* Send a request and run everything that is due. */
__attribute__((format(printf, 2, 3))) void cluster_submit(struct cluster *cluster, const char *form,
                                                          ...);

/* The first `count` masters hang, or resume. */
void cluster_hang(struct cluster *cluster, unsigned count, bool hung);

/* cluster_end_client(): the client half-closes its connection and then closes it.
 * cluster_lose_client(): the connection is lost. */
void cluster_end_client(struct cluster *cluster, struct engine_client *client);
void cluster_lose_client(struct cluster *cluster, struct engine_client *client);

/* Send a request, run everything that is due, and return the only reply. If there is no reply yet,
 * let 50 ms pass first. */
__attribute__((format(printf, 2, 3))) const char *cluster_ask(struct cluster *cluster,
                                                              const char *form, ...);

/* cluster_granted(): is the untagged reply OK? cluster_token(): its token, in a buffer that the
 * next call overwrites. */
bool cluster_granted(const char *reply);
const char *cluster_token(const char *reply);

/* The master's wall clock. */
int64_t cluster_clock_us(const struct cluster *cluster, unsigned node);

/* The number of bytes of a reset connection that the master has not yet read. */
size_t cluster_unread(struct cluster *cluster, unsigned node);

/* Feed bytes to the engine as the master's reply. */
void cluster_feed(struct cluster *cluster, unsigned node, enum channel channel, const char *bytes,
                  size_t len);

/* cluster_cut(): the network resets the command connection. The master may still execute what it
 * has not yet read. cluster_cut_tracker(): the tracking connection is lost, and with it all that
 * was not yet read. */
void cluster_cut(struct cluster *cluster, unsigned node);
void cluster_cut_tracker(struct cluster *cluster, unsigned node);

/* cluster_kill(): the process dies and its data are lost. cluster_restart(): a new process without
 * data starts; if the old one still runs, it is killed first. */
void cluster_kill(struct cluster *cluster, unsigned node);
void cluster_restart(struct cluster *cluster, unsigned node);

/* The value of a resource's key on one node, or NULL. */
const char *cluster_value(struct cluster *cluster, unsigned node, const char *resource);

/* The number of nodes on which the resource's key exists. */
unsigned cluster_count(struct cluster *cluster, const char *resource);

/* Set or delete a key directly on the master, as a client that bypasses the daemon would. */
void cluster_set(struct cluster *cluster, unsigned node, const char *resource, const char *value,
                 int64_t ttl_ms);
void cluster_delete(struct cluster *cluster, unsigned node, const char *resource);

/* Hold the resource on all masters with the value "foreign", or release it, bypassing the
 * daemon. cluster_vacate() then runs everything that is due, as cluster_settle() does. */
void cluster_occupy(struct cluster *cluster, const char *resource, int64_t ttl_ms);
void cluster_vacate(struct cluster *cluster, const char *resource);

/* The number of lock commands that all masters together have executed. */
unsigned cluster_commands(const struct cluster *cluster);

#endif
