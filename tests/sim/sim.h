/*
 * The simulator: several daemons (the shipped engine and all layers below it), their clients, a
 * foreign Redlock client, fake masters (tests/fake/master.h) and the network between them, on
 * virtual time. A seed decides all events; the same seed writes the same trace.
 *
 *     clients --requests--> daemons --wires--> masters <--wires-- foreign client
 *
 * True time is sim->now_ns. The event queue, the network, the faults and the checker use it.
 * Daemons and masters learn the time only from their own clocks, and what a daemon promises to a
 * client is measured on the client's clock. Each of these clocks runs at its own rate.
 *
 *     run.c      one schedule: the attack, then the recovery
 *     net.c      the wires between daemons and masters
 *     daemon.c   the engine and its environment
 *     connection.c  the connections between clients and daemons
 *     client.c   the clients
 *     turns.c    schedules without faults, in which all clients want one lock
 *     foreign.c  a textbook Redlock library
 *     fault.c    the faults, with fault_clocks.c for steps of the masters' clocks
 *     checker.c  the promises
 *     sleepers.c the promise that no waiter sleeps while its lock is free
 *     bounds.c   limits small enough for schedules to reach
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
    SIM_FOREIGN = SIM_DAEMONS, /* index of the foreign client among the owners of wires */
    SIM_OWNERS = SIM_DAEMONS + 1,
    SIM_FEW_CLIENTS = 6,
    SIM_CLIENTS = 12, /* in a crowded schedule: bounds.h */
    SIM_RESOURCES = 8,
    SIM_FEW_RESOURCES = 3,
    SIM_WIRES = 512,
    SIM_CONNECTIONS = 256,
    SIM_REQUESTS = 512,
    SIM_REPLIES = 1024,
    SIM_LINE = 160,
    SIM_TOKENS = 8192,
    SIM_BACKLOG = 8192,
    SIM_FAULTS_MAX = 64,
    SIM_NODE_TIMEOUT_MS = 50,
    SIM_MARGIN_MS = 10,
    /* Without jitter and faults: a command to a master and the answer, with a slow pass of the
     * daemon's loop for each, and a timer. */
    SIM_ANSWER_MS = 60,
};

/* A clock that runs at its own rate and can be set. */
struct sim_clock {
    int64_t true_ns;  /* true time of the last setting */
    int64_t shown_ns; /* what the clock showed at true_ns */
    int64_t rate_ppm; /* how much faster than true time it runs */
};

int64_t clock_at(const struct sim_clock *clock, int64_t true_ns);
/* The first true time at which the clock shows at least shown_ns. */
int64_t clock_when(const struct sim_clock *clock, int64_t shown_ns);
void clock_set_rate(struct sim_clock *clock, int64_t true_ns, int64_t rate_ppm);

/* --- the network --- */

struct sim_wire {
    bool used;
    uint32_t generation;
    unsigned owner; /* index of a daemon, or SIM_FOREIGN */
    unsigned master;
    enum channel channel;
    bool open_here;     /* the owner has not closed it */
    bool connected;     /* the owner knows that it is connected */
    bool reset_sent;    /* an EVENT_RESET for the master is scheduled */
    enum reason closed; /* reason that EVENT_CLOSED reports */
    int64_t session;    /* id of the master's session; 0: not accepted yet, or closed */
    struct pipe to_server;
    struct pipe to_client;
};

/* No guard can see that a clock stepped forward and back between two samples. To exclude such
 * steps, the first step of a clock decides which kind of steps the clock takes from then on. With
 * STEPS_AND_BACK, the clock steps once, and once more in the other direction only after a daemon
 * has announced the first step. */
enum sim_steps { STEPS_UNDECIDED, STEPS_SMALL, STEPS_FORWARD, STEPS_BACK, STEPS_AND_BACK };

struct sim_master {
    struct fake_master redis; /* the server to which the master's name leads */
    /* Another server, to which the name led before if it was repointed. Wires from before may still
     * lead there. */
    struct fake_master other;
    /* The server to which the name leads, 0 or 1; and for each of the two, the true time at which a
     * round with its vote last began. The other one does not know the lock of that round. */
    unsigned server;
    int64_t asked_ns[2];
    struct sim_clock clock;
    bool dead;
    bool hung;
    unsigned crons; /* generation of its EVENT_CRON */
    int64_t latency_ns[SIM_OWNERS];
    int64_t blocked_ns[SIM_OWNERS][2]; /* no bytes pass earlier; [0]: to the master, [1]: from it */
    int64_t data_loss_ns;  /* true time at which it last lost data that it should have kept, or its
                              clock made a step that the margin does not cover */
    int64_t ends_early_ns; /* true time at which it last lost data, or its clock last stepped
                              forward by any distance; older keys may end early */
    enum sim_steps steps;  /* the kind of steps that its clock may take */
    bool durable;          /* configured as durable in the daemons */
    bool rewound;          /* its data went back, and its record has not changed since */
    struct fake_data snapshot;
};

/* --- daemons --- */

struct sim_daemon {
    struct engine engine;
    struct resp resps[SIM_MASTERS][CHANNELS];
    unsigned wires[SIM_MASTERS][CHANNELS]; /* index of the wire; SIM_WIRES: none */
    struct sim_clock clock;
    int64_t wall_ahead_ns; /* its wall clock less its monotonic clock */
    char clock_id[32];
    unsigned host;
    unsigned life; /* counts starts and ends; also the generation of EVENT_TIMER and EVENT_PASS */
    bool alive;
    bool paused;
    bool draining;
    int64_t drain_end_ns;
    int64_t timer_ns;     /* true time of its next EVENT_TIMER; INT64_MAX: none */
    int64_t heard_ns;     /* what its clock showed when an EVENT_TIMER found a deadline due; the
                             next one passes it to engine_on_timer(). 0: none was due */
    int64_t paused_at_ns; /* true time at which the last pause began or ended */
    bool busy;            /* in a slow pass of its loop */
    /* True time since which requests wait for their start although there is room, and none starts;
     * 0: no request does. */
    int64_t in_vain_ns;
    uint64_t starts_ended; /* number of requests that had waited for their start by then */
    struct event backlog[SIM_BACKLOG]; /* events that arrived while it was paused or busy */
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
    uint32_t number; /* sim_connection.number of that connection */
    enum verb verb;
    /* A PING is sent without resource, ttl_ms and token; the checker uses them. */
    unsigned resource;
    int64_t ttl_ms;
    int64_t wait_ms;
    bool fence;
    bool hold;
    bool linger;
    unsigned slots; /* LOCK, STATUS: with SLOTS; then the reply names the resource. 0: without */
    /* LOCK with SLOTS: how many that came later were granted before it. */
    unsigned overtaken;
    /* LOCK, STATUS: of the locks that it asks for, those that were free on all masters when it
     * arrived, and that no token was set for since. */
    uint32_t untouched;
    bool ignore_reply; /* the client ignores the reply */
    bool given_up;     /* the client has sent RESET since, so it hears nothing of the reply */
    char token[LIMIT_TOKEN + 1];
    int64_t sent_ns;
    int64_t arrived_ns; /* on its daemon's clock */
    uint64_t order;     /* position in the order of arrival at the daemons */
};

struct sim_reply {
    bool used;
    uint32_t generation;
    unsigned connection;
    uint32_t number; /* sim_connection.number of that connection */
    bool answers;    /* this is the reply to the request `asked`; false: a push */
    struct sim_request asked;
    char line[LIMIT_REPLY + 1];
};

/* How much a daemon knows of the end of a connection. */
enum sim_end {
    END_UNSEEN,
    END_SEEN, /* requests may be unread, of which LOCKs are refused */
    END_READ, /* the daemon has read all requests, and keeps the connection for a while */
};

/* A connection of a client to a daemon. The slot is free once both sides have closed it. */
struct sim_connection {
    bool open;          /* the client has not closed it */
    bool daemon_has_it; /* engine_client is in use */
    bool clean;         /* the client ended it cleanly, not by a loss */
    bool quits;         /* the client sent QUIT before it closed */
    bool seen_early;    /* the daemon will see the end while requests are unread */
    enum sim_end end;
    int64_t end_ns;  /* when the daemon saw the end, on its clock; valid after END_UNSEEN */
    uint32_t number; /* generation of the slot: counts connections */
    unsigned client;
    unsigned daemon;
    struct engine_client engine_client;
    int64_t to_daemon_ns; /* true time at which the last line sent to the daemon arrives there */
    int64_t to_client_ns;
};

enum client_state { CLIENT_IDLE, CLIENT_ASKING, CLIENT_HOLDING };

struct sim_client {
    struct sim_clock clock;
    enum client_state state;
    unsigned connections[SIM_DAEMONS]; /* SIM_CONNECTIONS: none */
    unsigned home;                     /* the daemon that it usually asks */
    uint32_t actions;                  /* generation of its EVENT_ACT */
    int64_t latency_ns;
    unsigned asked; /* in CLIENT_ASKING: the connection that carries the request */
    /* The lock that the client holds, valid if has_lock. */
    bool has_lock;
    unsigned resource;
    char token[LIMIT_TOKEN + 1];
    int64_t ttl_ms;
    char released_token[LIMIT_TOKEN + 1]; /* the token that it released last; "" for none */
    unsigned released_resource;
    bool lingers; /* held with HOLD LINGER */
    unsigned
        hold_connection; /* with HOLD: the connection that holds the lock; SIM_CONNECTIONS: none */
};

/* --- the foreign client --- */

struct sim_foreign {
    struct sim_clock clock;
    bool plays;
    unsigned wires[SIM_MASTERS]; /* SIM_WIRES: none */
    unsigned due[SIM_MASTERS];   /* outstanding replies */
    unsigned skip[SIM_MASTERS];  /* how many of the next replies it ignores */
    enum { FOREIGN_IDLE, FOREIGN_ASKING, FOREIGN_HOLDING } state;
    uint32_t actions; /* generation of its EVENT_FOREIGN */
    unsigned resource;
    unsigned yes;    /* votes of the present round */
    unsigned tokens; /* number of the last token */
    char token[LIMIT_TOKEN + 1];
    bool broken; /* a daemon has broken the lock with this token */
    int64_t ttl_ms;
    int64_t sent_ns;
};

/* --- the records of the checker --- */

struct sim_token {
    unsigned resource; /* SIM_RESOURCES before the first SET */
    unsigned daemon;
    unsigned life;
    int64_t made_ns;
    /* True times: when each master last set the token, and when that key ends; 0: never set. */
    int64_t set_ns[SIM_MASTERS];
    int64_t first_ns[SIM_MASTERS]; /* when each master first set the token; valid if set_ns is */
    int64_t ends_ns[SIM_MASTERS];
    /* ends_ns of the SET before, if the master had lost its data when it set the token again. */
    int64_t lost_end_ns[SIM_MASTERS];
    bool was_fit[SIM_MASTERS]; /* whether the master was fit to vote at set_ns */
    bool granted;
    int64_t granted_ns;     /* valid if granted */
    bool lost;              /* the daemon has pushed ! LOST for it */
    bool given_up;          /* an EXTEND got GONE; after that, no PONG confirms the lock */
    bool release_requested; /* a client has asked for its release */
    bool hold_ended;        /* the daemon knows that the connection of its HOLD ended cleanly */
    unsigned released_by; /* the daemon that answered UNLOCK or ended the HOLD; SIM_DAEMONS: none */
    unsigned released_life;
    uint32_t held_by; /* number of the connection that holds it with HOLD; 0: none */
    /* For each daemon: the EXTENDs of the token that have arrived in that life of the daemon. */
    unsigned extends[SIM_DAEMONS];
    unsigned extends_life[SIM_DAEMONS];
    bool may_stay; /* masters are allowed to keep it until it expires */
    /* Time of the last BREAK of the lock; 0: none. A reply to a request from before the BREAK no
     * longer promises anything; a reply to a later request does. */
    int64_t broken_ns;
    unsigned broken_by;
    unsigned broken_life;
};

/* Counts for the summary. */
enum sim_count {
    COUNT_GRANTS,
    COUNT_HOLDS,
    COUNT_SLOTS, /* grants of LOCKs with SLOTS */
    COUNT_HANDOVERS,
    COUNT_BATCH,  /* batches of releases, counted once for each master that executes them */
    COUNT_NATIVE, /* DELIFEQ and DELEX commands, summed over all masters */
    COUNT_EXTENSIONS,
    COUNT_LOST,
    COUNT_BROKEN,
    COUNT_RESETS,
    COUNT_SLOW_ENDS, /* ended connections that the daemon kept for a while */
    COUNT_FOREIGN,
    COUNT_EXCUSED, /* foreign grants of a held lock, excused because masters had lost data */
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
    int64_t distance_ns; /* of a step; negative: backwards */
    int64_t begun_ns;
    char announced[32]; /* id of the last step that a daemon had announced before this fault */
};

enum { SIM_ACTIVE_FAULTS = 64 };

/* A schedule without faults in which all clients want one lock. */
struct sim_turns {
    unsigned daemons;
    unsigned clients[SIM_DAEMONS];
    int64_t round_trips_ns[SIM_DAEMONS]; /* round trip to the masters */
    int64_t hold_ns;                     /* how long a client keeps the lock */
    int64_t for_ns;                      /* length of the schedule */
    unsigned grants[SIM_DAEMONS];        /* result: grants of each daemon */
};

struct sim {
    int64_t now_ns;
    uint64_t seed;
    struct prng prng;
    struct event_queue event_queue;
    FILE *trace; /* NULL: no trace */

    unsigned node_count;
    unsigned daemon_count;
    unsigned client_count;
    unsigned resource_count;
    bool semaphores;           /* half of the LOCKs and STATUSes are with SLOTS */
    bool slow_ends;            /* connections end slowly, and clients send RESET */
    unsigned fenced;           /* how many of four LOCKs ask for a fencing token, on average */
    unsigned extra_request_in; /* one request in this many comes with extra requests; 0: none */
    int64_t max_ttl_ms;
    int64_t fence_ttl_ms;
    struct drift drift;      /* clock drift that the daemons allow for */
    struct sim_turns *turns; /* NULL: a schedule with faults */
    bool bootstrapped;
    int64_t attack_ns; /* length of the attack */
    int64_t strike_every_ns;
    uint64_t faults;    /* bit set of the faults that may happen */
    unsigned repointed; /* the master whose name is repointed; SIM_MASTERS: none */
    /* Daemon 0 does not reach this master while a name is repointed; SIM_MASTERS: it does. */
    unsigned unreached;
    bool recovering; /* the faults have ended */
    bool finishing;  /* clients start nothing by themselves any more */

    struct sim_master masters[SIM_MASTERS];
    struct sim_daemon daemons[SIM_DAEMONS];
    struct sim_client clients[SIM_CLIENTS];
    struct sim_foreign foreign;
    struct sim_wire wires[SIM_WIRES];
    struct sim_connection connections[SIM_CONNECTIONS];
    struct sim_request requests[SIM_REQUESTS];
    struct sim_reply replies[SIM_REPLIES];
    struct sim_fault_run fault_runs[SIM_ACTIVE_FAULTS];
    uint64_t ids; /* counter for the run ids and replication ids of masters */
    uint64_t order;
    uint32_t connection_number;
    struct request_limits limits;

    struct history history;
    struct sim_token tokens[SIM_TOKENS];
    unsigned token_count;
    /* For each daemon, each resource that its clients wait for, and each master: the true time
     * since which the master has been healthy and voting and has not had the key. 0 if it is not
     * healthy, does not vote or has the key, or if the daemon has just tried a round. */
    int64_t free_ns[SIM_DAEMONS][SIM_RESOURCES][SIM_MASTERS];
    unsigned failures[SIM_DAEMONS][SIM_RESOURCES]; /* failed rounds, as of the last sample */
    int64_t sampled_ns;                            /* true time of the last sample */
    int64_t foreign_doubt_ns; /* before this true time a foreign client may get a held lock, because
                                 a master lost data or its clock stepped */
    const char *violation;    /* the first violation; NULL: none */
    char violation_text[256];

    struct sim_tally *tally;
};

/* --- run.c --- */

struct sim_options {
    uint64_t faults; /* bit set of the allowed faults */
    FILE *trace;
};

/* Run one schedule. Returns NULL, or the violation; the text is valid until the next call. */
const char *sim_run(struct sim *sim, uint64_t seed, const struct sim_options *options,
                    struct sim_tally *tally);
/* Run a schedule without faults, and count the grants in `turns`. Returns as sim_run() does. */
const char *sim_run_turns(struct sim *sim, uint64_t seed, struct sim_turns *turns,
                          struct sim_tally *tally);
void sim_free(struct sim *sim);

unsigned sim_below(struct sim *sim, unsigned count);
/* A random duration in this range. Short durations are more frequent. */
int64_t sim_between(struct sim *sim, int64_t least_ns, int64_t most_ns);

/* The resources are r0 to r7. In schedules with semaphores they are r#0 to r#7, so that all but the
 * first are also the slots of the semaphore r. */
struct sim_name {
    char text[4];
    size_t len;
};
struct sim_name sim_name(const struct sim *sim, unsigned resource);
/* The resource with this name; SIM_RESOURCES: none. */
unsigned sim_resource(const struct sim *sim, const char *name, size_t len);

/* Write a line to the trace. */
void sim_note(struct sim *sim, const char *form, ...) __attribute__((format(printf, 2, 3)));

/* --- net.c --- */

unsigned net_open(struct sim *sim, unsigned owner, unsigned master, enum channel channel);
void net_write(struct sim *sim, unsigned wire, const char *bytes, size_t len);
/* Send the bytes written so far. */
void net_seal(struct sim *sim, unsigned wire);
/* The owner resets the wire. Bytes in flight may be lost. */
void net_reset(struct sim *sim, unsigned wire);
/* The owner closes the wire in order. The written bytes still arrive. */
void net_end(struct sim *sim, unsigned wire);
/* The owner has learned that the wire is closed. */
void net_drop(struct sim *sim, unsigned wire);
/* The network resets the wire. */
void net_cut(struct sim *sim, unsigned wire);
/* The network resets the owner's wires to the master; only_other: those to its other server. */
void net_cut_all(struct sim *sim, unsigned owner, unsigned master, bool only_other);
/* The master dies: all its connections end. */
void net_kill_master(struct sim *sim, unsigned master);
/* The master continues after a hang: it first executes the commands that have arrived. */
void net_serve_all(struct sim *sim, unsigned master);
/* Send the output of the master's sessions, after an event inside the master. */
void net_send_output(struct sim *sim, unsigned master);
void net_on_event(struct sim *sim, const struct event *event);
void net_clear(struct sim *sim);
int64_t master_wall_us(const struct sim *sim, unsigned master);
bool wire_exists(const struct sim *sim, unsigned wire, uint32_t generation);
/* The number of bytes that have arrived for the owner. */
size_t net_arrived(struct sim *sim, unsigned wire);

/* --- daemon.c --- */

void daemon_start(struct sim *sim, unsigned daemon, bool bootstrap);
/* The daemon is killed or, with `orderly`, exits after a drain. */
void daemon_die(struct sim *sim, unsigned daemon, bool orderly);
void daemon_pause(struct sim *sim, unsigned daemon);
void daemon_resume(struct sim *sim, unsigned daemon);
void daemon_drain(struct sim *sim, unsigned daemon);
/* The daemon applies a configuration with other limits of HOLDs, extensions and waiters. */
void daemon_reload(struct sim *sim, unsigned daemon);
/* Handle an event of the daemon: of a wire, a request, the end of a connection, its timer. */
void daemon_on_event(struct sim *sim, const struct event *event);
int64_t daemon_clock_ns(const struct sim *sim, unsigned daemon);

/* --- client.c --- */

void client_start(struct sim *sim, unsigned client);
void client_on_event(struct sim *sim, const struct event *event);
/* The client releases its lock, closes its connections, and starts nothing more. */
void client_retire(struct sim *sim, unsigned client);
/* After the recovery: request a lock through this daemon. */
void client_ask_last(struct sim *sim, unsigned client, unsigned daemon, unsigned resource,
                     int64_t ttl_ms);
/* The client falls silent: it keeps its lock on the masters, and sends no UNLOCK. */
void client_forget(struct sim *sim, unsigned client);
void client_release(struct sim *sim, unsigned client);

/* --- turns.c --- */

void sim_turns_start(struct sim *sim, unsigned client, unsigned daemon);
void sim_turns_on_event(struct sim *sim, const struct event *event);

/* --- connection.c --- */

/* The client's connection to the daemon, opened if necessary; SIM_CONNECTIONS if the daemon does
 * not listen. */
unsigned connection_to(struct sim *sim, unsigned client, unsigned daemon);
/* Send a request. The caller fills in verb, resource, durations, options and token. */
void connection_send(struct sim *sim, unsigned connection, const struct sim_request *request);
/* The client closes the connection cleanly, or the connection is lost. */
void connection_close(struct sim *sim, unsigned connection, bool clean);
/* The client sends RESET: it gives up its HOLDs and its requests, and goes on. */
void connection_reset(struct sim *sim, unsigned connection);
/* The daemon is gone: all connections to it end. */
void connection_lose_daemon(struct sim *sim, unsigned daemon);
/* A request arrives at the daemon. */
void connection_submit(struct sim *sim, const struct event *event);
/* The end of a connection arrives at the daemon, or the daemon frees an ended connection. */
void connection_on_hangup(struct sim *sim, const struct event *event);
/* A reply arrives at the client. NULL: the client has closed the connection. */
struct sim_reply *connection_reply(struct sim *sim, const struct event *event);
void connection_clear(struct sim *sim);
/* The client learns that its connection has ended, or has sent RESET. */
void client_on_closed(struct sim *sim, unsigned client, unsigned connection);

/* A daemon sends a reply or a push, or ends a request without a reply. */
void connection_take_reply(struct sim *sim, unsigned daemon, struct engine_client *client,
                           const char *line, size_t len);
void connection_take_push(struct sim *sim, unsigned daemon, struct engine_client *client,
                          const char *line, size_t len);
void connection_take_undone(struct sim *sim, unsigned daemon, const char *tag, size_t tag_len);

/* --- foreign.c --- */

void foreign_start(struct sim *sim);
void foreign_on_event(struct sim *sim, const struct event *event);
/* A master's clock has stepped forward, so a foreign hold can end early. The foreign client does
 * not notice this, so its hold counts no longer. */
void foreign_give_up(struct sim *sim);
/* A fault: a client of another library died halfway and left its key on masters. No client relies
 * on this key. */
bool foreign_leave_keys(struct sim *sim, struct sim_fault_run *run);
/* Remove the key from one master, and usually plan the removal from the next one. If none is
 * planned, the key expires. */
void foreign_remove_key(struct sim *sim, struct sim_fault_run *run);

/* --- fault.c --- */

/* Bits of sim->faults. The faults before FAULT_STRUCK are properties of the whole run, which other
 * files read with fault_may(). All later bits belong to the faults that fault_strike() begins at
 * random times. Only the table in fault.c names these. */
enum {
    FAULT_CLIENTS,
    FAULT_BREAKS,
    FAULT_FOREIGN,
    FAULT_RATES,
    FAULT_JITTER,
    FAULT_REPOINT,
    FAULT_LOST_LEASE,
    FAULT_STRUCK
};
bool fault_may(const struct sim *sim, unsigned fault);

const char *fault_name(unsigned fault); /* NULL after the last */
uint64_t fault_all(void);               /* bit set of all faults */
void fault_plan(struct sim *sim);       /* draws which of the allowed faults this run may have */
void fault_strike(struct sim *sim);
/* The name of sim->repointed leads to the other server. Some daemons lose their connections. With
 * FAULT_LOST_LEASE this happens once; the next time, another master loses its leases. */
void fault_repoint(struct sim *sim);
void fault_end(struct sim *sim, const struct event *event);
/* End all faults that are still in effect. */
void fault_end_all(struct sim *sim);

/* --- checker.c --- */

void checker_violation(struct sim *sim, const char *form, ...)
    __attribute__((format(printf, 2, 3)));
/* Register a token that a daemon makes, and return its number. */
unsigned checker_new_token(struct sim *sim, unsigned daemon);
/* The record of a token, which may be frozen; NULL if no daemon has made it. A token contains its
 * number twice: at the beginning, and in the part that stays when the token is frozen. In this
 * second copy, CHECKER_FROZEN is set in the first byte (io_random() in daemon.c). */
enum { CHECKER_FROZEN = 0x80 };
struct sim_token *checker_token(struct sim *sim, const char *token);
void checker_on_set(struct sim *sim, unsigned master, unsigned server, const char *key,
                    size_t key_len, const char *value, size_t len, int64_t ends_ms);
/* A master has lost data that it should have kept. */
void checker_on_data_loss(struct sim *sim, unsigned master);
/* A master has old data, so released tokens may be back. */
void checker_on_old_data(struct sim *sim, const struct fake_data *data);
/* A daemon answers a request. `heard`: the client will receive the reply. */
void checker_on_reply(struct sim *sim, const struct sim_request *request, const char *line,
                      bool heard);
/* An EXTEND has arrived at its daemon. */
void checker_on_extend(struct sim *sim, const struct sim_request *request);
/* A LOCK or a STATUS arrives at its daemon. */
void checker_on_lock(struct sim *sim, struct sim_request *request);
/* A LOCK or a STATUS was answered HELD. */
void checker_on_held(struct sim *sim, const struct sim_request *request, const char *line);
/* A master has set a token of this lock, so the requests for it were tried. */
void checker_touch(struct sim *sim, unsigned resource);
void checker_on_push(struct sim *sim, unsigned daemon, const char *line);
/* The daemon is about to release the token, because the connection of its HOLD ended cleanly. */
void checker_on_hold_ended(struct sim *sim, unsigned daemon, const char *token);
/* The daemon is about to release the token by force. */
void checker_on_break(struct sim *sim, unsigned daemon, unsigned resource, const char *token);
/* The true time at which `ms` milliseconds have passed on the client's clock since the client sent
 * the request. */
int64_t checker_deadline_ns(const struct sim *sim, const struct sim_request *request, int64_t ms);
void checker_on_foreign(struct sim *sim, unsigned resource, const char *token, int64_t until_ns);
/* Check that no token of a failed round and no released token is left on a master. */
void checker_leftovers(struct sim *sim);
/* Check that the daemon has no waiters, leaks nothing, and gets every master's vote. */
void checker_end(struct sim *sim, unsigned daemon);

/* --- checker_replies.c --- */

/* Does docs/protocol.txt allow this line, byte for byte, as a reply to this request? */
bool checker_allows(const struct sim_request *request, const char *line);
enum outcome checker_outcome(const char *line);
/* Do both want the same lock, or a slot of the semaphore? */
bool checker_is_rival(const struct sim_request *a, const struct sim_request *b);
/* A request was answered LIMIT: check that the limit with this name is reached. */
void checker_on_limit(struct sim *sim, const struct sim_request *request, const char *word);

/* --- sleepers.c --- */

void sleepers_clear(struct sim *sim);
/* A master has accepted a token for the resource. */
void sleepers_on_set(struct sim *sim, unsigned master, unsigned resource);
/* Called after each event. Check that no waiter sleeps for long while its lock is free on a
 * quorum. */
void sleepers_sample(struct sim *sim);
/* Does a quorum answer this daemon within SIM_ANSWER_MS? */
bool sleepers_have_quorum(struct sim *sim, unsigned daemon);

#endif
