/*
 * What the engine shows of its state to listings, the status page, metrics and the log. A view is a
 * copy taken at one moment. The strings in it point into the engine and are valid until the next
 * call of an engine function.
 */
#ifndef ENGINE_VIEW_H
#define ENGINE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/histogram.h"
#include "engine/master/link.h"
#include "engine/stats.h"
#include "protocol/limits.h"
#include "protocol/reason.h"
#include "protocol/request.h"
#include "protocol/units.h"

/* ENGINE_SET_ID: number of hex digits in a set's id. ENGINE_LEASE_MAX: enough bytes for the server
 * that a name lease begins with, and a NUL. ENGINE_DAEMON_TIMEOUT_NS: how long the masters remember
 * a daemon that has stopped. */
enum { ENGINE_SET_ID = 16, ENGINE_LEASE_MAX = 96 };
#define ENGINE_DAEMON_TIMEOUT_NS (5 * NS_PER_S)

struct engine;
struct engine_client;
struct engine_rules;

/* The daemon as a whole. */
struct engine_view {
    unsigned node_count;
    unsigned quorum;
    const char *set_id;
    const struct engine_stats *stats;
    size_t rounds;     /* rounds with an outstanding command */
    size_t locks;      /* locks granted through this daemon that it still remembers */
    size_t holds;      /* granted HOLDs */
    size_t holding;    /* granted HOLDs, and LOCKs with HOLD that are not granted yet */
    size_t waiting;    /* LOCKs with WAIT */
    size_t waited_for; /* resources with waiters */
    size_t slots;      /* slots that LOCKs with SLOTS wait for, and how many of them are held */
    size_t slots_held;
    size_t held_back; /* requests that wait for their round to start */
    unsigned limit;   /* of rounds in flight, before requests have to wait for their start */
};

struct engine_view engine_view(const struct engine *engine);

/* One master. */
struct master_view {
    enum reason vote; /* why the master has no vote; REASON_NONE: it has one */
    int64_t vote_ns;  /* when the vote comes back; INT64_MAX: time alone does not bring it back */
    /* Why the master may not vote according to its own answers alone; REASON_NONE: no reason. */
    enum reason blocked;

    /* The connection for commands. */
    enum link_state state;
    enum reason reason; /* why the connection is not UP */
    bool takes_votes;   /* the connection is UP and has room for another vote */
    int64_t since_ns;   /* when the connection last came up, became suspect, or went down */
    int64_t silence_timeout_ns;
    unsigned attempts;     /* how often it has ended or failed since it last lasted for a while */
    bool heartbeat_due;    /* the last heartbeat has not been answered */
    int64_t round_trip_ns; /* round trip of the last heartbeat; -1: none */
    const struct histogram *round_trips;
    unsigned unanswered;       /* outstanding commands */
    uint64_t pending_releases; /* releases that the master has not confirmed */
    /* Pending releases that were dropped, because the list was full or the master refused them for
     * too long. */
    uint64_t forgotten;
    bool tracking; /* the master reports changes of keys that clients wait for */

    /* The guard's state of the master. */
    bool durable;
    enum reason quarantine_why;
    int64_t quarantine_until_ns;
    unsigned duplicate_of; /* with REASON_DUPLICATE: the other node that is the same server */
    /* With --reset-set: id of a daemon of the old set that may still run, because of a sign of life
     * on this master; "": id not known; NULL: no such daemon. */
    const char *old_set_daemon;
    const char *record_set; /* with REASON_OTHERSET: the set id in the master's record */
    const char *record_cluster;
    int64_t record_max_ttl_ms;
    bool clock_compared; /* clock_low_ns and clock_high_ns are valid */
    /* Bounds of the difference: the master's wall clock minus this host's CLOCK_BOOTTIME. */
    int64_t clock_low_ns;
    int64_t clock_high_ns;
};

struct master_view engine_view_master(const struct engine *engine, unsigned node, int64_t now_ns);

/* The error text that the master sent for this reason; without such a text, a description of the
 * reason. */
const char *engine_meaning(const struct engine *engine, unsigned node, enum reason reason);

/* Why this master (`node`) must not be used, according to `lease`, the name lease for it that was
 * found on the master `on`; REASON_NONE: no conflict. */
enum reason engine_lease_conflict(const struct engine *engine, unsigned node, const char *lease,
                                  unsigned on);

/* How far an operator override (--bootstrap, --reset-set) has come. ENGINE_REFUSED: *node conflicts
 * with it. ENGINE_UNDER_WAY: the daemon still waits for *node. */
enum engine_progress { ENGINE_UNDER_WAY, ENGINE_DONE, ENGINE_REFUSED };
enum engine_progress engine_progress(const struct engine *engine, unsigned *node);

/* Measure the round trip now, unless a heartbeat is under way. */
void engine_heartbeat(struct engine *engine, unsigned node, int64_t now_ns);

/* The shortest TTL with which a HOLD can be extended in time. */
int64_t engine_shortest_hold_ms(const struct engine_rules *rules);

/* How long a lock must be free for a waiter of this daemon to get it, given this round trip to the
 * masters. 0: the usual pauses after a hand-over streak are long enough. */
int64_t engine_need_ns(int64_t backoff_min_ns, int64_t round_trip_ns);

struct resource;

/* A resource that is locked through this daemon, or that clients of this daemon wait for. */
struct resource_view {
    const char *name;
    size_t name_len;
    unsigned queued; /* requests in the queue */
    unsigned waits;  /* LOCKs with WAIT in the queue */
    /* LOCKs with SLOTS: the largest number of slots that one of them may have, and how many of
     * these slots are held, as far as the daemon knows; 0: there are no such LOCKs. */
    unsigned slots;
    unsigned slots_held;
    bool acquiring; /* an acquire round for the first waiter is under way */
    bool locked;    /* granted through this daemon; the fields below are valid only then */
    bool hold;      /* granted with HOLD */
    /* LIMIT_TOKEN digits. Any client that has the token can release the lock, so it is never shown
     * in full. */
    const char *token;
    const char *client; /* set by NAME; "" without one */
    uint64_t client_id;
    int64_t since_ns; /* start of the granted round */
    int64_t until_ns; /* end of the validity promised to the client */
};

/* Iterate over all resources. Set *place to NULL before the first call. Returns false after the
 * last resource. */
bool engine_next_resource(const struct engine *engine, const struct resource **place,
                          struct resource_view *view);
/* Iterate in the same way over the resources that have waiters. */
bool engine_next_waited_for(const struct engine *engine, const struct resource **place,
                            struct resource_view *view);
/* Find the resource that a request names, without acquiring the masters. Returns false if this
 * daemon knows nothing about it. */
bool engine_find_resource(const struct engine *engine, const struct request *request,
                          struct resource_view *view, const struct resource **place);

/* The position of a client in the queue, counted from 1. If the client has several requests in this
 * queue, the position of the first one; 0 if it has none. It is as exact as queue_position() of
 * engine/locks/queue.h. The cost is linear in the number of the client's pending requests. */
unsigned engine_queue_position(const struct resource *place, const struct engine_client *client,
                               int64_t now_ns);

/* About a client: its id, its name, the number of its pending requests, and the number of its
 * HOLDs. */
uint64_t engine_client_id(const struct engine_client *client);
const char *engine_client_name(const struct engine_client *client);
unsigned engine_client_requests(const struct engine_client *client);
unsigned engine_client_holds(const struct engine_client *client);
void engine_client_set_name(struct engine_client *client, const char *name, size_t len);
/* Does the client have a pending request with this tag? */
bool engine_tag_in_use(const struct engine *engine, const struct engine_client *client,
                       const char *tag, size_t tag_len);
/* Note that no reply can reach the client any more. */
void engine_client_unreachable(struct engine_client *client);

/* Call `each` for every resource that the client holds or has a pending LOCK for; the same resource
 * may come several times. If `each` returns false, the iteration stops and this function returns
 * false. */
bool engine_client_resources(const struct engine_client *client,
                             bool (*each)(const char *name, size_t name_len, const void *context),
                             const void *context);

#endif
