/*
 * A world for the engine: fake masters (tests/fake/master.h), which execute the engine's own bytes,
 * on virtual time. A master can be hung (commands pile up and run when it goes on), dead, or slow
 * to forget a connection that was reset, as a real one is.
 *
 * A world has one daemon. Two worlds can have the same masters, and keep each its own connections.
 *
 * It is played by world.c (time, the daemon, what befalls masters), world_wire.c (connections),
 * world_clients.c and world_io.c; world_guard.h is for tests of the guard.
 */
#ifndef TESTS_UNIT_WORLD_H
#define TESTS_UNIT_WORLD_H

#include <stdbool.h>

#include "engine/internal.h"
#include "server/masters/resp.h"
#include "tests/fake/master.h"
#include "tests/fake/pipe.h"

enum {
    WORLD_NODES = 5,
    WORLD_REPLIES = 2048,
    WORLD_CLIENTS = 4,
};

/* What all daemons share. */
struct world_master {
    struct fake_master redis;
    bool dead;
    bool hung;
    bool mute;        /* executes, but its replies are lost */
    int64_t delay_ns; /* how long bytes take to reach it */
    int64_t clock_ns; /* what its wall clock is ahead of the world's; keys expire by it */
    unsigned wires;   /* counts the connections to it */
};

/* One connection of the daemon to a master. */
struct world_connection {
    bool opening;  /* the engine asked for it */
    bool open;     /* the engine has it: replies can still be sent */
    unsigned wire; /* of the session at the master */
    struct pipe pipe;
    struct resp resp;
};

struct world {
    struct engine engine;
    struct engine_client client;                /* who sends, if nobody else is named */
    struct engine_client others[WORLD_CLIENTS]; /* more of them */
    struct world_master *masters;               /* its own, or those of another world */
    unsigned breaks;                            /* that were told of when they began to act */
    unsigned refused_commands; /* masters that were told of for answering an error to a command */
    unsigned refused_releases; /* ... to one that releases */
    unsigned node_count;
    int64_t now_ns;
    uint32_t durable;                     /* nodes that the next engine is told to be durable */
    const char *reset_set;                /* the next engine is told that this set is no more */
    const char *cluster;                  /* of the next engine; NULL: "world" */
    bool read_only;                       /* the next engine is to write nothing by itself */
    int64_t stepped_back_ns[WORLD_NODES]; /* as the daemon has told */
    unsigned trials;                      /* answers to what engine_self_test() has asked */
    enum reason trial_refused[ENGINE_SELF_TESTS]; /* ... in their order */
    char leases[WORLD_NODES][LIMIT_RECORD]; /* on the names, as the master told that was tried */
    int64_t wall_ns;                        /* what the daemon's wall clock is ahead of now_ns */
    uint64_t random;
    char replies[WORLD_REPLIES][128]; /* the lines the client got */
    unsigned reply_count;
    unsigned replies_read; /* by world_next_reply() */
    unsigned link_changes;
    bool lazy;         /* flushes only when nothing else is left to do */
    bool deaf;         /* the connection for which the next answer is breaks with it */
    bool zombies_wait; /* commands of reset connections run only once this is off */
    /* The answers of these nodes, a bit each, are handed over, each as bytes, in place of reaching
     * the engine. */
    uint32_t diverted;
    void (*divert)(struct world *world, unsigned node, enum channel channel, const char *bytes,
                   size_t len);

    /* From here on memory is used again and again. */
    struct world_master own[WORLD_NODES];
    struct world_connection connections[WORLD_NODES][CHANNELS];
    struct world_connection zombies[WORLD_NODES]; /* reset before the master had read all */
};

/* All masters are there, all links up, and an operator has said that no lock is held. */
void world_init(struct world *world, unsigned node_count);

/* The same without that word: the masters are new, and nobody knows what they held. */
void world_init_unknown(struct world *world, unsigned node_count);

/* Another daemon on the masters of the other world. */
void world_join(struct world *world, const struct world *other, const char *clock_id);

/* From now on the time is as it is there; the masters are the same, and always were. */
void world_share(struct world *world, const struct world *other);

/* The engine stops, and another starts, on this host or on another one. */
void world_restart_engine(struct world *world, const char *clock_id);

/* Why the node has no vote: its word, "-" if it votes. */
const char *world_vote(const struct world *world, unsigned node);

/* Lose all data, as FLUSHALL does. */
void world_flush(struct world *world, unsigned node);
void world_deinit(struct world *world);

/* Let everything that can happen now happen. */
void world_settle(struct world *world);

/* Let time pass, timers included. */
void world_pass_ms(struct world *world, int64_t ms);

/* One request line, as printf() makes it; the reply's line is the next of world->replies. */
__attribute__((format(printf, 2, 3))) void world_send(struct world *world, const char *form, ...);
__attribute__((format(printf, 3, 4))) void
world_send_as(struct world *world, struct engine_client *client, const char *form, ...);

/* The next reply or push that has not been looked at yet; NULL if there is none. */
const char *world_next_reply(struct world *world);

/* ... or "(nothing)"; and it has to be this. */
const char *world_heard(struct world *world);
__attribute__((format(printf, 2, 3))) void world_expect(struct world *world, const char *form, ...);

/* It is "#<tag> OK ..."; its token, in a buffer that the next call overwrites. */
const char *world_expect_grant(struct world *world, const char *tag);

/* Send, and let happen what can. */
__attribute__((format(printf, 2, 3))) void world_say(struct world *world, const char *form, ...);

/* The first so many masters hang, or go on. */
void world_hang(struct world *world, unsigned count, bool hung);

/* The client ends its connection in order, or is gone without a word. */
void world_end_client(struct world *world, struct engine_client *client);
void world_lose_client(struct world *world, struct engine_client *client);

/* Send, settle, and return the one reply it brought. */
__attribute__((format(printf, 2, 3))) const char *world_ask(struct world *world, const char *form,
                                                            ...);

/* Is it OK, and has no tag? Then its token, likewise. */
bool world_granted(const char *reply);
const char *world_token(const char *reply);

/* A master's wall clock. */
int64_t world_clock_us(const struct world *world, unsigned node);

/* How much of what a reset connection has brought a master has not read. */
size_t world_unread(struct world *world, unsigned node);

/* The engine reads what a master says, or somebody in its place. */
void world_feed(struct world *world, unsigned node, enum channel channel, const char *bytes,
                size_t len);

/* The network resets the connection; what the master has not read yet it may still execute. */
void world_cut(struct world *world, unsigned node);
void world_cut_tracker(struct world *world, unsigned node);

/* It is dead, with all its data; and there again, as another process. */
void world_kill(struct world *world, unsigned node);
void world_restart(struct world *world, unsigned node);

/* The value of a lock's key on a node, or NULL. */
const char *world_value(struct world *world, unsigned node, const char *resource);

/* On how many nodes the resource's key exists. */
unsigned world_count(struct world *world, const char *resource);

/* Put a key there as a foreign client would. */
void world_set(struct world *world, unsigned node, const char *resource, const char *value,
               int64_t ttl_ms);
void world_delete(struct world *world, unsigned node, const char *resource);

/* Somebody who asks no daemon has it on all masters, as "foreign"; and releases it. */
void world_occupy(struct world *world, const char *resource, int64_t ttl_ms);
void world_vacate(struct world *world, const char *resource);

/* How many commands about locks all masters together have executed. */
unsigned world_commands(const struct world *world);

#endif
