/*
 * A world for the engine: fake masters that speak Redis protocol, on virtual time.
 *
 * The engine's own bytes are executed: SET NX PX, our scripts, the greeting, what the guard asks. A
 * master can be hung (commands pile up and run when it goes on), dead, or slow to forget a
 * connection that was reset, as a real one is. Keys expire by the master's own clock.
 *
 * A world has one daemon. Two worlds can have the same masters: they share all that is the
 * masters' own, by turns (world_share()), and keep each its own connections.
 *
 * It is played by world.c (time, the daemon, what befalls masters), world_clients.c, world_master.c
 * and world_wire.c; what else is in world_*.[ch] is for these alone, but for world_guard.h.
 */
#ifndef TESTS_UNIT_WORLD_H
#define TESTS_UNIT_WORLD_H

#include <stdbool.h>

#include "engine/engine.h"

enum {
    WORLD_NODES = 5,
    WORLD_KEYS = 96,
    WORLD_REPLIES = 2048,
    WORLD_ARRIVALS = 8192,
    WORLD_CLIENTS = 4,
};

struct world_key {
    char key[64]; /* "" is free */
    char value[LIMIT_RECORD];
    int64_t expires_ns;
};

/* A key that somebody wants to be told about, as it was when it was looked at. */
struct world_tracked {
    char key[64]; /* "" is free */
    char value[LIMIT_RECORD];
    int64_t expires_ns;
};

/* Bytes that a connection has brought and the master has not executed. */
struct world_inbox {
    char bytes[5 * 1024 * 1024];
    size_t start; /* of what is left */
    size_t len;   /* of what is left */
    bool open;    /* replies can still be sent */
    int64_t client_id;
    unsigned oks; /* answers of OK that the engine has not got yet */
    /* When what was written arrives: a ring. Positions count all bytes ever written. */
    uint64_t written;
    struct {
        uint64_t end;
        int64_t at_ns;
    } arrivals[WORLD_ARRIVALS];
    unsigned first_arrival;
    unsigned arrival_count;
};

struct world_master {
    bool dead;
    bool hung;
    bool mute;               /* executes, but its replies are lost */
    int64_t delay_ns;        /* how long bytes take to reach it */
    char mark_error[64];     /* answers this to mark.lua, if not "" */
    unsigned marks;          /* how often it was asked to run it */
    char together_error[64]; /* answers this to releases.lua, if not "" */
    const char *version;     /* of INFO: it has DELIFEQ or DELEX by that; NULL has none */
    char native_error[64];   /* answers this to them, if not "" */
    char error[64];          /* answers this to everything but the greeting, if not "" */
    char refused_key[64];    /* answers an error to what would release this one, if not "" */
    char full[64];           /* answers this to what would set a key, if not "" */
    char run_id[41];
    int64_t begun_ns; /* when that run began */
    char replid[41];
    bool replica;
    bool was_replica; /* since it started, of another one */
    bool clustered;
    int replicas;
    char fsync[16]; /* its setting appendfsync */
    bool may_evict;
    int64_t evicted;
    int64_t clock_ns; /* what its wall clock is ahead of the world's; keys expire by it */
    int64_t next_client_id;
    bool untracked; /* it refuses CLIENT TRACKING, as Redis 5 does */
    bool scripts_flushed;
    bool fence_flushed; /* only fence.lua is */
    bool busy;          /* answers BUSY to everything */
    struct world_key keys[WORLD_KEYS];
    unsigned commands; /* executed, of locks only */
    unsigned together; /* commands to release several */
    unsigned native;   /* DELIFEQ, DELEX */

    /* From here on it is the daemon's connection. */
    bool connecting; /* the engine asked for one */
    bool tracker_connecting;
    bool caching;         /* the next command's key is to be tracked */
    int64_t tracker_ids;  /* given out, far from those of the others */
    int64_t redirect;     /* the client id to which changes are told; 0 nobody */
    unsigned status_runs; /* looks, and STATUS */
    struct world_tracked tracked[WORLD_KEYS];
    struct world_inbox tracker;
    struct world_inbox current;
    struct world_inbox zombie; /* the one before, if it was reset while the master hung */
};

struct world {
    struct engine engine;
    struct engine_client client;                /* who sends, if nobody else is named */
    struct engine_client others[WORLD_CLIENTS]; /* more of them */
    struct world_master masters[WORLD_NODES];
    unsigned breaks;   /* that were told of when they began to act */
    unsigned refusals; /* masters that were told of for refusing several releases at once, ... */
    unsigned native_refusals;  /* ... for refusing DELIFEQ or DELEX */
    unsigned refused_commands; /* ... for answering an error to a command, ... */
    unsigned refused_releases; /* ... to one that releases */
    unsigned node_count;
    int64_t now_ns;
    uint32_t durable;                         /* nodes that the next engine is told to be durable */
    const char *reset_set;                    /* the next engine is told that this set is no more */
    const char *cluster;                      /* of the next engine; NULL: "world" */
    bool looks_on;                            /* the next engine is to write nothing by itself */
    int64_t stepped_back_ns[WORLD_NODES];     /* as the daemon has told */
    unsigned trials;                          /* answers to what engine_try() has asked */
    enum reason trial_refused[ENGINE_TRIALS]; /* ... in their order */
    char leases[WORLD_NODES][LIMIT_RECORD];   /* on the names, as the master told that was tried */
    int64_t wall_ns;                          /* what the daemon's wall clock is ahead of now_ns */
    uint64_t random;
    char replies[WORLD_REPLIES][128]; /* the lines the client got */
    unsigned reply_count;
    unsigned replies_read; /* by world_next_reply() */
    unsigned link_changes;
    bool lazy;         /* flushes only when nothing else is left to do */
    bool deaf;         /* the connection for which the next answer is breaks with it */
    bool zombies_wait; /* commands of reset connections run only once this is off */
    /* The answers of these nodes, a bit each, are handed over in place of reaching the engine. */
    uint32_t diverted;
    void (*divert)(struct world *world, unsigned node, enum channel channel,
                   const struct redis_reply *answer);
};

/* All masters are there, all links up, and an operator has said that no lock is held. */
void world_init(struct world *world, unsigned node_count);

/* The same without that word: the masters are new, and nobody knows what they held. */
void world_init_unknown(struct world *world, unsigned node_count);

/* Another daemon on the masters of the other world. */
void world_join(struct world *world, const struct world *other, const char *clock_id);

/* From now on the masters, and the time, are as they are there. */
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
