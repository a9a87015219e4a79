/*
 * All that one test needs: a sandbox, some masters, and a daemon over them that is ready.
 *
 *     struct stage stage;
 *     stage_open(&stage, __func__, &(struct stage_plan){.masters = 5});
 *     ...
 *     stage_close(&stage);
 *
 * Closing is a test of its own: the daemon must end well, no child may be left, nor a file.
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
    bool over_unix; /* the masters; quicker, where TCP does not matter */
    bool steppable; /* their clocks */
    bool durable;   /* the masters */
    struct daemon_plan daemon;
};

struct stage {
    struct sandbox sandbox;
    struct master masters[STAGE_MASTERS];
    unsigned master_count;
    struct daemon daemon;
    struct client client; /* a first connection to the daemon */
};

/* The masters are new, and the daemon has been told so. */
void stage_open(struct stage *stage, const char *test, const struct stage_plan *plan);
void stage_close(struct stage *stage);

/* The same without the daemon: for tests that start it in another way, or are about its start. */
void stage_open_masters(struct stage *stage, const char *test, const struct stage_plan *plan);
void stage_close_masters(struct stage *stage);

/* A daemon over the masters of the stage, started and ready. */
void stage_start_daemon(const struct stage *stage, struct daemon *daemon,
                        const struct daemon_plan *plan);

/* SIGSTOP or SIGCONT for the masters first .. last. */
void stage_stop_masters(struct stage *stage, unsigned first, unsigned last);
void stage_continue_masters(struct stage *stage, unsigned first, unsigned last);

/* Wait until this many masters are in this state ("state=up"), or have this reason. */
void stage_wait_nodes(struct stage *stage, const char *text, unsigned count);

/* Wait until so many masters have the key: an answer comes with the vote that decides, and other
 * masters may be a moment behind. */
void stage_wait_key(struct stage *stage, const char *key, unsigned count);

/* Wait until no master has any key; all of them must be able to answer. */
void stage_wait_no_keys(struct stage *stage);

/* Wait until some request is under way in the daemon. */
void stage_wait_under_way(struct stage *stage);

/* Wait until STATS has this text, as told to this client of any daemon. */
void stage_wait_stats(struct client *client, const char *text);

/* Wait until the daemon has this many connections, stage.client included. */
void stage_wait_clients(struct stage *stage, unsigned count);

#endif
