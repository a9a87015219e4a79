/* State shared by the parts of a torture: the cluster under test, and the ledger of all clients. */
#ifndef TESTS_TORTURE_TORTURE_H
#define TESTS_TORTURE_TORTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/daemon.h"
#include "tests/e2e/stage.h"
#include "tests/torture/ledger.h"
#include "tests/torture/net.h"
#include "tests/torture/proxy.h"

enum {
    TORTURE_DAEMONS = LEDGER_DAEMONS,
    TORTURE_RESOURCES = 6, /* r#0 to r#5; all but the first are slots of the semaphore r */
    TORTURE_MAX_TTL_MS = 1000,
    TORTURE_NODE_TIMEOUT_MS = 50,
};

/* Each daemon reaches the masters in a different way, so each meets different faults. */
enum {
    DAEMON_PROXIED = 0,   /* reaches the masters through the proxy */
    DAEMON_ROUTED = 1,    /* in its own network namespace, if the test may create one */
    DAEMON_ELSEWHERE = 2, /* on unix sockets, and as if on another host */
};

/* Counts of the clients' actions. They are atomic, since the threads of the players and of the
 * faults share them. */
struct tally {
    atomic_uint requests;
    atomic_uint extensions;
    atomic_uint slots; /* grants of LOCKs with SLOTS */
    atomic_uint holds;
    atomic_uint holds_kept; /* released by their clients, not lost */
    atomic_uint holds_lost;
    atomic_uint renewed; /* PONGs that confirmed a HOLD */
    atomic_uint cut;     /* connections that the client did not end */
    atomic_uint silences;
    atomic_uint deaths;
    atomic_uint handovers[TORTURE_DAEMONS]; /* of the running daemons, as STATS last reported */
    atomic_uint handovers_before;           /* sum over the daemons that have exited */
};

struct torture {
    uint64_t seed;
    int64_t seconds;
    uint32_t faults;      /* bit set of enum fault */
    const char *packages; /* guests play, with the programs of this folder; NULL: players */
    bool durable;         /* a killed master restarts with its data */

    struct stage stage; /* masters and sandbox; the daemon of the stage is not used */
    struct master spare;
    struct daemon daemons[TORTURE_DAEMONS];
    char daemon_host[16]; /* address on which DAEMON_ROUTED listens */
    struct proxy proxy;
    struct net net;

    struct ledger ledger;
    struct tally tally;
    atomic_bool ending; /* clients begin nothing new */
};

#endif
