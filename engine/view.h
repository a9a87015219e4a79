/*
 * What the engine shows of itself, for listings, the status page, metrics and the log: copies,
 * taken at one moment. Texts are views that live until the engine is called again.
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

/* The id of a set has so many hex digits; a lease on a name, at most so many bytes with its NUL. A
 * daemon that has been stopped is forgotten after so long. */
enum { ENGINE_SET_ID = 16, ENGINE_LEASE_MAX = 96 };
#define ENGINE_LIFE_NS (5 * NS_PER_S)

struct engine;
struct engine_client;
struct engine_rules;

/* The daemon as a whole. */
struct engine_view {
    unsigned node_count;
    unsigned quorum;
    const char *set_id;
    const struct engine_stats *stats;
    size_t rounds;     /* with a command under way */
    size_t locks;      /* granted through this daemon, and remembered */
    size_t holds;      /* ... with HOLD */
    size_t holding;    /* HOLDs that were granted or are asked for */
    size_t waiting;    /* LOCKs with WAIT */
    size_t waited_for; /* resources */
};

struct engine_view engine_view(const struct engine *engine);

/* One master. */
struct master_view {
    enum reason vote;    /* why it has no vote; REASON_NONE: it has */
    int64_t vote_ns;     /* when it has one again; INT64_MAX: that is no matter of time */
    enum reason blocked; /* what the guard has found that waiting does not mend; REASON_NONE */

    /* The connection for commands. */
    enum link_state state;
    enum reason reason; /* why it is not UP */
    bool takes_votes;
    int64_t since_ns; /* since when it is up, suspect, or neither */
    int64_t silence_timeout_ns;
    unsigned attempts; /* since it was last UP */
    bool heartbeat_due;
    int64_t round_trip_ns; /* of the last heartbeat; -1 none */
    const struct histogram *round_trips;
    unsigned unanswered;       /* commands */
    uint64_t pending_releases; /* releases */
    uint64_t forgotten;        /* releases it was pending_releases that could not be remembered */
    bool tracking;             /* it reports changes that waiters wait for */

    /* The guard. */
    bool durable;
    enum reason quarantine_why;
    int64_t quarantine_until_ns;
    unsigned twin;            /* REASON_DUPLICATE: the other node that is the same server */
    const char *alive_daemon; /* of the old set, that has shown itself there; NULL: none */
    const char *their_set;    /* REASON_OTHERSET: of its record */
    const char *their_cluster;
    int64_t their_max_ttl_ms;
    bool clock_compared;  /* else these mean nothing */
    int64_t clock_low_ns; /* its wall clock, less CLOCK_BOOTTIME here: at least, at most */
    int64_t clock_high_ns;
};

struct master_view engine_view_master(const struct engine *engine, unsigned node, int64_t now_ns);

/* What the master has said for this reason, or what the reason means. */
const char *engine_meaning(const struct engine *engine, unsigned node, enum reason reason);

/* What conflicts with this master being used, by this lease on its name, as some master has it;
 * REASON_NONE: nothing. */
enum reason engine_lease_finds(const struct engine *engine, unsigned node, const char *lease,
                               unsigned on);

/* How far an operator's override (--bootstrap, --reset-set) has been carried out. REFUSED: *node is
 * one that conflicts with it. UNDER_WAY: *node is one that is waited for. */
enum engine_progress { ENGINE_UNDER_WAY, ENGINE_DONE, ENGINE_REFUSED };
enum engine_progress engine_progress(const struct engine *engine, unsigned *node);

/* Measure the round trip now, if that is not under way. */
void engine_heartbeat(struct engine *engine, unsigned node, int64_t now_ns);

/* The shortest TTL of a HOLD that can be extended in time. */
int64_t engine_shortest_hold_ms(const struct engine_rules *rules);

/* How long a lock has to be free for a waiter of this daemon to get it, with this round trip to the
 * masters; 0: the usual pauses are long enough. */
int64_t engine_need_ns(int64_t backoff_min_ns, int64_t round_trip_ns);

struct resource;

/* A resource that is locked through this daemon, or waited for here. */
struct resource_view {
    const char *name;
    size_t name_len;
    unsigned queued;    /* requests in its queue */
    unsigned waits;     /* ... that are LOCKs with WAIT */
    bool asking;        /* a round is under way for the first of them */
    bool locked;        /* granted through this daemon; else these mean nothing */
    bool hold;          /* with HOLD */
    const char *token;  /* LIMIT_TOKEN digits: the right to release it, never shown as a whole */
    const char *client; /* by NAME; "" without one */
    uint64_t client_id;
    int64_t since_ns;
    int64_t until_ns;
};

/* The resources, each once: *place is NULL to begin with. False: there are no more. */
bool engine_next_resource(const struct engine *engine, const struct resource **place,
                          struct resource_view *view);
/* The same of those that clients wait for. */
bool engine_next_waited_for(const struct engine *engine, const struct resource **place,
                            struct resource_view *view);
/* The one that a request names. False: nothing is known of it. It costs the masters nothing. */
bool engine_find_resource(const struct engine *engine, const struct request *request,
                          struct resource_view *view, const struct resource **place);

/* The place of a client in its queue, 1 being the next; the first of its places if it waits several
 * times, 0 if it does not. The longer the queue, the longer it takes. */
unsigned engine_place(const struct resource *place, const struct engine_client *client);

/* A client: what the server knows it by; requests that are not answered yet, and locks that are
 * held for the connection. */
uint64_t engine_client_id(const struct engine_client *client);
const char *engine_client_name(const struct engine_client *client);
unsigned engine_client_requests(const struct engine_client *client);
unsigned engine_client_holds(const struct engine_client *client);
void engine_client_set_name(struct engine_client *client, const char *name, size_t len);
/* Is a request with this tag under way for it? */
bool engine_tag_in_use(const struct engine_client *client, const char *tag, size_t tag_len);
/* No answer can reach it any more. */
void engine_client_unreachable(struct engine_client *client);

/* The resources that it holds or waits for, as often as it does. False from `each`: that is enough,
 * and this returns false too. */
bool engine_client_resources(const struct engine_client *client,
                             bool (*each)(const char *name, size_t name_len, const void *context),
                             const void *context);

#endif
