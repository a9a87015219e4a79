/*
 * The simulator: several daemons (the shipped engine and all below it), their clients and a foreign
 * Redlock client, fake masters (tests/fake/master.h) and the network between them, on
 * virtual time. A seed decides all that happens; the same seed writes the same trace.
 *
 *     clients --requests--> daemons --wires--> masters <--wires-- foreign client
 *
 * True time is sim->now_ns; nobody inside can read it. Each daemon, client and master has a clock
 * of its own, which runs at its own rate.
 *
 *     run.c      one schedule: the attack, then the recovery
 *     net.c      the wires between daemons and masters
 *     daemon.c   the engine and what it needs
 *     connection.c  the connections between clients and daemons
 *     client.c   what clients do
 *     turns.c    ... and in a schedule of its own, where all want one lock
 *     foreign.c  a textbook Redlock library
 *     fault.c    what befalls all of them
 *     checker.c    what must hold
 *     sleepers.c no waiter sleeps while its lock is free
 *     bounds.c   how little room there is
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/internal.h"
#include "server/masters/resp.h"
#include "tests/fake/master.h"
#include "tests/fake/pipe.h"
#include "tests/history.h"
#include "tests/prng.h"
#include "tests/sim/bounds.h"
#include "tests/sim/event_queue.h"

enum {
    SIM_MASTERS = 5,
    SIM_DAEMONS = 3,
    SIM_FOREIGN = SIM_DAEMONS, /* its index where owners of wires are counted */
    SIM_OWNERS = SIM_DAEMONS + 1,
    SIM_FEW_CLIENTS = 6,
    SIM_CLIENTS = 12, /* in a crowd: bounds.h */
    SIM_RESOURCES = 8,
    SIM_FEW_RESOURCES = 3,
    SIM_WIRES = 512,
    SIM_CONNECTIONS = 128,
    SIM_REQUESTS = 512,
    SIM_REPLIES = 1024,
    SIM_LINE = 160,
    SIM_TOKENS = 8192,
    SIM_BACKLOG = 8192,
    SIM_FAULTS_MAX = 64,
    SIM_NODE_TIMEOUT_MS = 50,
    SIM_MARGIN_MS = 10,
};

/* A clock that runs at its own rate, and may be set. */
struct sim_clock {
    int64_t true_ns;  /* at this true time ... */
    int64_t shown_ns; /* ... it showed this */
    int64_t rate_ppm; /* how much faster than true time it runs */
};

int64_t clock_at(const struct sim_clock *clock, int64_t true_ns);
/* When it will show at least this. */
int64_t clock_when(const struct sim_clock *clock, int64_t shown_ns);
void clock_set_rate(struct sim_clock *clock, int64_t true_ns, int64_t rate_ppm);

/* --- the network --- */

struct wire {
    bool used;
    uint32_t generation;
    unsigned owner; /* a daemon, or SIM_FOREIGN */
    unsigned master;
    enum channel channel;
    bool open_here;     /* whoever opened it has it still */
    bool connected;     /* ... and was told that it is connected */
    bool reset_sent;    /* the master will learn that it is over */
    enum reason closed; /* EVENT_CLOSED: why */
    int64_t session;    /* at the master; 0: none yet, or not any more */
    struct pipe to_server;
    struct pipe to_client;
};

/* Forth and back again is what no guard sees, unless it looks in between: the first step of a clock
 * decides. */
enum sim_steps { STEPS_NOT_YET, STEPS_SMALL, STEPS_FORWARD, STEPS_BACK, STEPS_AND_BACK };

struct sim_master {
    struct fake_master redis;
    struct sim_clock clock;
    bool dead;
    bool hung;
    unsigned crons; /* generation of its EVENT_CRON */
    int64_t latency_ns[SIM_OWNERS];
    int64_t blocked_ns[SIM_OWNERS][2]; /* until then nothing passes; to and from the master */
    int64_t forgot_ns;                 /* when it last lost what it should have kept */
    int64_t ends_early_ns;             /* when it last lost that, or its clock stepped forward */
    enum sim_steps steps;              /* of its clock */
    bool durable;                      /* so the daemons are told */
    struct fake_data snapshot;
};

/* --- daemons --- */

struct daemon {
    struct engine engine;
    struct resp resps[SIM_MASTERS][CHANNELS];
    unsigned wires[SIM_MASTERS][CHANNELS]; /* index; SIM_WIRES: none */
    struct sim_clock clock;
    int64_t wall_ahead_ns; /* of its wall clock to its other one */
    char clock_id[32];
    unsigned host;
    unsigned life; /* counts its starts; also the generation of what is on its way to it */
    bool alive;
    bool paused;
    bool draining;
    int64_t drain_end_ns;
    int64_t timer_ns;                  /* true time of its next EVENT_TIMER */
    int64_t paused_at_ns;              /* last; for what may be late */
    bool busy;                         /* in a slow pass of its loop */
    struct event backlog[SIM_BACKLOG]; /* what happened while it was paused, or busy */
    unsigned backlog_count;
};

/* --- clients --- */

enum request_state { REQUEST_FREE, REQUEST_SENT, REQUEST_ARRIVED };

struct sim_request {
    enum request_state state;
    uint32_t generation;
    unsigned client;
    unsigned daemon;
    unsigned connection;
    uint32_t number; /* of the connection */
    enum verb verb;  /* a PING tells nothing but that the daemon lives */
    unsigned resource;
    int64_t ttl_ms;
    int64_t wait_ms;
    bool fence;
    bool hold;
    bool linger;
    bool aside; /* its client does not wait for the answer */
    char token[LIMIT_TOKEN + 1];
    int64_t sent_ns;
    int64_t arrived_ns; /* by its daemon's clock */
    uint64_t order;     /* of arrival */
};

struct sim_reply {
    bool used;
    uint32_t generation;
    unsigned connection;
    uint32_t number; /* of the connection */
    bool answers;    /* ... to a request: asked */
    struct sim_request asked;
    char line[LIMIT_REPLY + 1];
};

/* A connection of a client to a daemon, until both have let go of it. */
struct sim_connection {
    bool open;          /* its client has it */
    bool daemon_has_it; /* engine_client is in use */
    bool in_order;      /* it was ended so */
    bool quits;         /* ... after a QUIT */
    uint32_t number;    /* counts them: its generation */
    unsigned client;
    unsigned daemon;
    struct engine_client engine_client;
    int64_t to_daemon_ns; /* arrival of the last line */
    int64_t to_client_ns;
};

enum client_state { CLIENT_IDLE, CLIENT_ASKING, CLIENT_HOLDING };

struct sim_client {
    struct sim_clock clock;
    enum client_state state;
    unsigned connections[SIM_DAEMONS]; /* SIM_CONNECTIONS: none */
    unsigned home;                     /* the daemon it asks, as a rule */
    uint32_t acts;                     /* generation of its EVENT_ACT */
    int64_t latency_ns;
    unsigned asked; /* CLIENT_ASKING: by which connection */
    /* CLIENT_HOLDING, and while it asks for an extension: what it holds. */
    bool has_lock;
    unsigned resource;
    char token[LIMIT_TOKEN + 1];
    int64_t ttl_ms;
    char former[LIMIT_TOKEN + 1]; /* what it has released last, and of which resource; "" nothing */
    unsigned former_resource;
    bool lingers;     /* with HOLD LINGER */
    unsigned held_by; /* with HOLD: the connection it lives with; SIM_CONNECTIONS: without, or that
                         is gone */
};

/* --- the foreign client --- */

struct foreign {
    struct sim_clock clock;
    bool plays;
    unsigned wires[SIM_MASTERS]; /* SIM_WIRES: none */
    unsigned due[SIM_MASTERS];   /* answers that are still to come */
    unsigned skip[SIM_MASTERS];  /* ... and the first of them that are of no interest */
    enum { FOREIGN_IDLE, FOREIGN_ASKING, FOREIGN_HOLDING } state;
    uint32_t acts; /* generation of its EVENT_FOREIGN */
    unsigned resource;
    unsigned yes;
    unsigned tokens;
    char token[LIMIT_TOKEN + 1];
    bool broken; /* a daemon has released that token by force */
    int64_t ttl_ms;
    int64_t sent_ns;
};

/* --- what the checker remembers --- */

struct sim_token {
    unsigned resource; /* SIM_RESOURCES until it was set somewhere */
    unsigned daemon;
    unsigned life;
    int64_t made_ns;
    /* When each master took it last, and until when it would have it; 0: never. */
    int64_t set_ns[SIM_MASTERS];
    int64_t ends_ns[SIM_MASTERS];
    bool good[SIM_MASTERS]; /* ... and whether it was fit to vote then */
    bool granted;
    bool lost;            /* ... and ! LOST was pushed */
    bool given_up;        /* its client has heard GONE, and relies on no PONG after that */
    bool asked_release;   /* somebody has asked for its release */
    unsigned released_by; /* the daemon that has answered that; SIM_DAEMONS: none */
    unsigned released_life;
    bool loose; /* it may rest on masters until it expires, by design */
    /* An operator has had it released by force, last by this daemon; 0: never. What was promised
     * before does not count any more; what is promised from then on does. */
    int64_t broken_ns;
    unsigned broken_by;
    unsigned broken_life;
};

/* Counts that a summary adds up. */
enum sim_count {
    COUNT_GRANTS,
    COUNT_HOLDS,
    COUNT_HANDOVERS,
    COUNT_BATCH,  /* commands of several releases, each on one master */
    COUNT_NATIVE, /* DELIFEQ and DELEX, each on one master */
    COUNT_EXTENSIONS,
    COUNT_LOST,
    COUNT_BROKEN,
    COUNT_FOREIGN,
    COUNT_EXCUSED, /* foreign grants beside a hold, where masters had forgotten */
    COUNT_FAULTS,
    COUNT_EVENTS,
    COUNT_VIRTUAL_MS,
    COUNTS,
};

struct sim_tally {
    uint64_t counts[COUNTS];
    uint64_t outcomes[VERB_COUNT][OUTCOME_COUNT];
    uint64_t faults[SIM_FAULTS_MAX];
    uint64_t met[BOUNDS];
    uint64_t limited[LIMITED];
};

struct sim_fault_run {
    bool active;
    uint32_t generation;
    unsigned kind;
    unsigned master;
    unsigned owner;
    unsigned resource;
    int64_t distance_ns; /* of a step; negative: back */
    int64_t begun_ns;
    char told[32]; /* the last one that was told of before */
};

enum { SIM_ACTIVE_FAULTS = 64 };

/* A schedule in which all clients want one lock, in which nothing goes wrong. */
struct sim_turns {
    unsigned daemons;
    unsigned clients[SIM_DAEMONS];
    int64_t round_trips_ns[SIM_DAEMONS]; /* to the masters */
    int64_t hold_ns;
    int64_t for_ns;
    unsigned grants[SIM_DAEMONS]; /* what came of it */
};

struct sim {
    int64_t now_ns;
    uint64_t seed;
    struct prng prng;
    struct event_queue event_queue;
    FILE *trace; /* NULL: none */

    unsigned node_count;
    unsigned daemon_count;
    unsigned client_count;
    unsigned resource_count;
    unsigned fenced;     /* of four LOCKs, on average */
    unsigned asks_aside; /* a client asks for more at once as often as one in so many; 0: never */
    int64_t max_ttl_ms;
    int64_t fence_ttl_ms;
    struct drift drift;      /* what daemons allow for */
    struct sim_turns *turns; /* NULL: another schedule */
    bool bootstrapped;
    int64_t attack_ns; /* how long */
    int64_t strike_every_ns;
    uint64_t faults; /* those that may happen, by bit */
    bool recovering; /* faults have ceased */
    bool finishing;  /* clients do nothing by themselves any more */

    struct sim_master masters[SIM_MASTERS];
    struct daemon daemons[SIM_DAEMONS];
    struct sim_client clients[SIM_CLIENTS];
    struct foreign foreign;
    struct wire wires[SIM_WIRES];
    struct sim_connection connections[SIM_CONNECTIONS];
    struct sim_request requests[SIM_REQUESTS];
    struct sim_reply replies[SIM_REPLIES];
    struct sim_fault_run fault_runs[SIM_ACTIVE_FAULTS];
    uint64_t ids; /* of masters' runs */
    uint64_t order;
    uint32_t connection_number;
    struct request_limits limits;

    struct history history;
    struct sim_token tokens[SIM_TOKENS];
    unsigned token_count;
    /* While somebody waits through this daemon: since when a master has had the key free, and was
     * well and voting; 0: it is not so. */
    int64_t free_ns[SIM_DAEMONS][SIM_RESOURCES][SIM_MASTERS];
    unsigned failures[SIM_DAEMONS][SIM_RESOURCES]; /* rounds in vain, as of the last sample */
    int64_t sampled_ns;                            /* when that was */
    int64_t foreign_doubt_ns;                      /* until then no foreign hold can be relied on */
    const char *violation;                         /* the first; NULL: none */
    char violation_text[256];

    struct sim_tally *tally;
};

/* --- run.c --- */

struct sim_options {
    uint64_t faults; /* allowed, by bit */
    FILE *trace;
};

/* One schedule. NULL if all was well, or what was violated; it lives until the next. */
const char *sim_run(struct sim *sim, uint64_t seed, const struct sim_options *options,
                    struct sim_tally *tally);
const char *sim_run_turns(struct sim *sim, uint64_t seed, struct sim_turns *turns,
                          struct sim_tally *tally);
void sim_free(struct sim *sim);

unsigned sim_below(struct sim *sim, unsigned count);
/* A duration between these, often a short one. */
int64_t sim_between(struct sim *sim, int64_t least_ns, int64_t most_ns);

void sim_note(struct sim *sim, const char *form, ...) __attribute__((format(printf, 2, 3)));

/* --- net.c --- */

unsigned net_open(struct sim *sim, unsigned owner, unsigned master, enum channel channel);
void net_write(struct sim *sim, unsigned wire, const char *bytes, size_t len);
/* What has been written goes out. */
void net_seal(struct sim *sim, unsigned wire);
/* Whoever opened it resets it; or lets it end in peace, what was written still arrives. */
void net_reset(struct sim *sim, unsigned wire);
void net_end(struct sim *sim, unsigned wire);
/* Whoever opened it has been told that it is closed. */
void net_drop(struct sim *sim, unsigned wire);
/* The network resets it. */
void net_cut(struct sim *sim, unsigned wire);
/* The master dies: all its connections end. */
void net_kill_master(struct sim *sim, unsigned master);
/* It goes on after it hung: it does first what was sent to it. */
void net_serve_all(struct sim *sim, unsigned master);
/* Something has happened in the master of its own: what it has to say goes out. */
void net_say(struct sim *sim, unsigned master);
void net_on_event(struct sim *sim, const struct event *event);
void net_clear(struct sim *sim);
int64_t master_wall_us(const struct sim *sim, unsigned master);
bool wire_exists(const struct sim *sim, unsigned wire, uint32_t generation);
/* The bytes that have arrived for whoever opened it. */
size_t net_arrived(struct sim *sim, unsigned wire);

/* --- daemon.c --- */

void daemon_start(struct sim *sim, unsigned daemon, bool bootstrap);
/* It is killed; or it has ended, after it was told to. */
void daemon_die(struct sim *sim, unsigned daemon, bool in_peace);
void daemon_pause(struct sim *sim, unsigned daemon);
void daemon_go_on(struct sim *sim, unsigned daemon);
void daemon_drain(struct sim *sim, unsigned daemon);
/* An event of a wire of its own, a request, the end of a connection, its timer. */
void daemon_on_event(struct sim *sim, const struct event *event);
int64_t daemon_clock_ns(const struct sim *sim, unsigned daemon);

/* --- client.c --- */

void client_start(struct sim *sim, unsigned client);
void client_on_event(struct sim *sim, const struct event *event);
/* It lets go of all it has, and does no more. */
void client_retire(struct sim *sim, unsigned client);
/* Once all is over: ask for a lock through this daemon; and never think of it again. */
void client_ask_last(struct sim *sim, unsigned client, unsigned daemon, unsigned resource,
                     int64_t ttl_ms);
void client_forget(struct sim *sim, unsigned client);
void client_release(struct sim *sim, unsigned client);

/* --- turns.c --- */

void turns_start(struct sim *sim, unsigned client, unsigned daemon);
void turns_on_event(struct sim *sim, const struct event *event);

/* --- connection.c --- */

/* The client's connection to the daemon, opened if there is none; SIM_CONNECTIONS: nobody listens.
 */
unsigned connection_to(struct sim *sim, unsigned client, unsigned daemon);
/* Ask for something; the fields of the request that are about it are filled. */
void connection_send(struct sim *sim, unsigned connection, const struct sim_request *request);
/* Its client ends it, in order or without a word. */
void connection_close(struct sim *sim, unsigned connection, bool in_order);
/* The daemon is gone: all connections to it end. */
void connection_lose_daemon(struct sim *sim, unsigned daemon);
/* A request, or the end of a connection, arrives at the daemon; an answer at the client. */
void connection_submit(struct sim *sim, const struct event *event);
void connection_on_hangup(struct sim *sim, const struct event *event);
struct sim_reply *connection_reply(struct sim *sim, const struct event *event);
void connection_clear(struct sim *sim);
/* The client hears that its connection is over. */
void client_on_closed(struct sim *sim, unsigned client, unsigned connection);

/* What a daemon has to say. */
void connection_take_reply(struct sim *sim, unsigned daemon, struct engine_client *client,
                           const char *line, size_t len);
void connection_take_push(struct sim *sim, unsigned daemon, struct engine_client *client,
                          const char *line, size_t len);
void connection_take_undone(struct sim *sim, unsigned daemon, const char *tag, size_t tag_len);

/* --- foreign.c --- */

void foreign_start(struct sim *sim);
void foreign_on_event(struct sim *sim, const struct event *event);
/* Clocks were stepped so little that no guard looks: what it holds may end early. */
void foreign_give_up(struct sim *sim);
/* A fault: a client of another library has died halfway. Its key is on masters until it is removed
 * from one after the other, or expires; nobody relies on it. */
bool foreign_leave_keys(struct sim *sim, struct sim_fault_run *run);
void foreign_remove_key(struct sim *sim, struct sim_fault_run *run);

/* --- fault.c --- */

/* By bit, in sim->faults. Those of the table are in fault.c; these are consulted elsewhere. */
enum { FAULT_CLIENTS, FAULT_BREAKS, FAULT_FOREIGN, FAULT_RATES, FAULT_JITTER, FAULT_STRUCK };
bool fault_may(const struct sim *sim, unsigned fault);

const char *fault_name(unsigned fault); /* NULL behind the last */
uint64_t fault_all(void);               /* their bits */
void fault_plan(struct sim *sim);       /* which of those allowed happen in this run */
void fault_strike(struct sim *sim);
void fault_mend(struct sim *sim, const struct event *event);
/* All that lasts ceases. */
void fault_mend_all(struct sim *sim);

/* --- checker.c --- */

void checker_violation(struct sim *sim, const char *form, ...)
    __attribute__((format(printf, 2, 3)));
/* The file of a token that a daemon makes: its number. */
unsigned checker_new_token(struct sim *sim, unsigned daemon);
/* NULL if it is none of a daemon. */
/* The token, or a frozen form of it, is that of a daemon; NULL: of nobody that it knows. */
enum { CHECKER_FROZEN = 0x80 }; /* set in the byte with which a number begins where that is kept */
struct sim_token *checker_token(struct sim *sim, const char *token);
void checker_on_set(struct sim *sim, unsigned master, const char *key, size_t key_len,
                    const char *value, size_t len, int64_t ends_ms);
/* A master has forgotten what it should have kept. */
void checker_on_forgot(struct sim *sim, unsigned master);
/* What was released may be there again. */
void checker_on_old_data(struct sim *sim, const struct fake_data *data);
/* A daemon answers a request; its client will hear of it, or not. */
void checker_on_reply(struct sim *sim, const struct sim_request *request, const char *line,
                      bool heard);
/* An EXTEND has arrived at its daemon. */
void checker_on_extend(struct sim *sim, const struct sim_request *request);
void checker_on_push(struct sim *sim, unsigned daemon, const char *line);
/* The daemon is about to release it, because the connection it lived with has ended in order. */
void checker_on_hold_ended(struct sim *sim, unsigned daemon, const char *token);
/* The daemon is about to release it by force. */
void checker_on_break(struct sim *sim, unsigned daemon, unsigned resource, const char *token);
/* True time at which the client's clock has advanced this much since it sent the request. */
int64_t checker_deadline_ns(const struct sim *sim, const struct sim_request *request, int64_t ms);
void checker_on_foreign(struct sim *sim, unsigned resource, const char *token, int64_t until_ns);
/* No token that failed or was released rests on a master. */
void checker_leftovers(struct sim *sim);
/* Nobody waits, nothing is kept, every node votes. */
void checker_end(struct sim *sim, unsigned daemon);

/* --- sleepers.c --- */

void sleepers_clear(struct sim *sim);
/* A master has accepted a token for the resource. */
void sleepers_on_set(struct sim *sim, unsigned master, unsigned resource);
/* After each event: no waiter may sleep for long while a quorum has its lock free. */
void sleepers_sample(struct sim *sim);

#endif
