/*
 * The environment of one test: a sandbox, masters, and a daemon over them that is ready.
 *
 *     struct stage stage;
 *     stage_open(&stage, __func__, &(struct stage_plan){.masters = 5});
 *     ...
 *     stage_close(&stage);
 *
 * stage_close() checks that the daemon ends without errors, that it removes its socket, and that no
 * child process is left.
 */
#ifndef TESTS_E2E_STAGE_H
#define TESTS_E2E_STAGE_H

#include "tests/e2e/client.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/master.h"
#include "tests/e2e/sandbox.h"

enum { STAGE_MASTERS = 5 };

struct stage_plan {
    unsigned masters;
    bool over_unix; /* masters on unix sockets; faster than TCP */
    bool steppable; /* clocks of the masters can be stepped */
    bool durable;   /* masters keep their data */
    struct daemon_plan daemon;
};

struct stage {
    struct sandbox sandbox;
    struct master masters[STAGE_MASTERS];
    unsigned master_count;
    struct daemon daemon;
    struct client client; /* first connection to the daemon */
};

/* Opens a stage with new masters, bootstraps them, and starts the daemon. */
void stage_open(struct stage *stage, const char *test, const struct stage_plan *plan);
void stage_close(struct stage *stage);

/* Opens or closes a stage without the daemon, for tests that start the daemon differently. */
void stage_open_masters(struct stage *stage, const char *test, const struct stage_plan *plan);
void stage_close_masters(struct stage *stage);

/* Starts a further daemon over the masters of the stage and waits until all masters vote. */
void stage_start_daemon(const struct stage *stage, struct daemon *daemon,
                        const struct daemon_plan *plan);

/* Sends SIGSTOP or SIGCONT to the masters first .. last. */
void stage_stop_masters(struct stage *stage, unsigned first, unsigned last);
void stage_continue_masters(struct stage *stage, unsigned first, unsigned last);

/* Waits until the lines of exactly `count` nodes contain the text ("state=up"). */
void stage_wait_nodes(struct stage *stage, const char *text, unsigned count);

/* Waits until exactly `count` masters have the key. The daemon replies to its client after the
 * deciding vote, and the other masters may execute the command later. */
void stage_wait_key(struct stage *stage, const char *key, unsigned count);

/* Waits until no master has a lock key. All masters must answer. */
void stage_wait_no_keys(struct stage *stage);

/* Waits until the daemon has a request in flight. */
void stage_wait_in_flight(struct stage *stage);

/* Waits until a line of STATS contains the text. The client can be connected to any daemon. */
void stage_wait_stats(struct client *client, const char *text);

/* Waits until a count in STATS that only rises, such as renewals, has reached `count`. On a busy
 * machine, the client can miss the moment at which the two are equal. */
void stage_wait_count(struct client *client, const char *name, long count);

/* Waits until the daemon has exactly this many connections, stage.client included. */
void stage_wait_clients(struct stage *stage, unsigned count);

#endif
