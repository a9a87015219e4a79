/*
 * One request of a client that has not been answered yet: whose it is, its tag, and what has to
 * outlive the rounds that are run for it. What the engine keeps; nobody else looks inside.
 */
#ifndef ENGINE_LOCKS_CALL_H
#define ENGINE_LOCKS_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/client.h"
#include "engine/locks/queue.h"
#include "engine/pool.h"
#include "protocol/limits.h"
#include "protocol/request.h"

struct flight;
struct lock;
struct resource;

struct call {
    struct engine_client *client; /* the owner */
    struct flight *flight;        /* the round that is run for it; NULL while a LOCK waits */
    struct resource *resource;    /* LOCK */
    LIST_ENTRY(call) of_client;
    int64_t received_ns;
    int64_t ttl_ns; /* LOCK */
    bool outbid;    /* LOCK: its last round was */
    bool waits;     /* LOCK: with WAIT */
    bool fenced;    /* LOCK */
    bool hold;      /* LOCK */
    bool lingers;   /* LOCK with HOLD */
    bool tagged;
    unsigned char tag_len;
    int64_t ballot_seen;  /* LOCK: the greatest it was outbid by */
    char tag[LIMIT_TAG];  /* zeros behind it */
    struct waiter waiter; /* LOCK: its place in the queue of its resource, once it has joined */
};

/* NULL if there is no room. */
struct call *call_open(struct pool *calls, struct engine_client *client,
                       const struct request *request, int64_t now_ns);

/* It has been answered, or its client has left. */
void call_close(struct pool *calls, struct call *call);

/* This round is run for it. */
void call_set_flight(struct call *call, struct flight *flight);
/* ... and has settled, or been cancelled. */
void call_leave_flight(struct call *call);

/* NULL without one. */
const char *call_tag(const struct call *call);

#endif
