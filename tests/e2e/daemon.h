/*
 * The daemon under test: the program that $REDLOCKD names (build/redlockd without it), with a
 * configuration, a socket and a log of its own in the sandbox.
 */
#ifndef TESTS_E2E_DAEMON_H
#define TESTS_E2E_DAEMON_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "tests/e2e/client.h"
#include "tests/e2e/master.h"
#include "tests/e2e/sandbox.h"

/*
 * A wide node_timeout, since no test is about speed: a busy machine must not turn a healthy master
 * into a silent one. Tests that wait for a time-out set a short one.
 */
enum { DAEMON_NODE_TIMEOUT_MS = 800 };

/* Likewise, for the guard: answers that are late on a busy machine still tell a clock. */
enum { DAEMON_MARGIN_MS = 40 };

struct daemon_plan {
    const char *name;          /* of its files; NULL: "redlockd" */
    const char *tcp_host;      /* listen there, too: "127.0.0.1", "[::1]"; NULL: unix socket only */
    const char *tls_fields;    /* it is a tls:// address, with these added in YAML */
    const char *listen_fields; /* added to the unix socket in YAML: ", mode: \"0600\"" */
    const char *node_fields;   /* added to each node in YAML: ", username: app" */
    const char *locks;         /* added to the section `locks` in YAML: ", max_ttl: 1s" */
    const char *yaml;          /* further sections; NULL: log everything */
    unsigned node_timeout_ms;
    int64_t clock_ahead_s; /* of its wall clock */
    bool elsewhere;        /* as if on another host: its clock since boot is another one */
    const char *network;   /* a file of the network namespace to run in; NULL: ours */
    rlim_t open_files;     /* 0: as ours */
};

struct daemon {
    const struct sandbox *sandbox;
    pid_t pid; /* 0 while it is down */
    bool elsewhere;
    const char *network;
    int64_t clock_ahead_s;
    /* For tests to set before the start; see process.h. */
    const char *const *environment;
    const int *sockets;
    unsigned socket_count;
    char config[SANDBOX_FILE];
    char socket[SANDBOX_FILE];
    char log[SANDBOX_FILE];
    int port; /* of tcp_host */
};

/* Name its files, write its configuration. */
void daemon_prepare(struct daemon *daemon, const struct sandbox *sandbox,
                    const struct master *masters, unsigned master_count,
                    const struct daemon_plan *plan);

/* Say that its masters are new (redlockd --bootstrap): it must work. */
void daemon_bootstrap(const struct daemon *daemon);

/* Run the program with the daemon's configuration and these further words, NULL last, to its end;
 * what it says goes to the daemon's log. Returns its status. */
int daemon_run(const struct daemon *daemon, const char *const *words);

/* Start it, without waiting for anything. */
void daemon_start(struct daemon *daemon, rlim_t open_files);

/* Wait until it accepts connections. */
void daemon_wait_listening(struct daemon *daemon);

/* Wait until NODES says that this many vote. */
void daemon_wait_up(struct daemon *daemon, unsigned up);

/* SIGTERM, and it must end well: status 0, no complaint of a sanitizer, no token in its log. */
void daemon_stop(struct daemon *daemon);
/* The same after it was told in another way. */
void daemon_check_end(struct daemon *daemon);

/* Start it where it must refuse: returns its exit status. */
int daemon_refuses(struct daemon *daemon);

/* A connection to its unix socket. */
void daemon_connect(const struct daemon *daemon, struct client *client);

/* Wait until a line of its log contains both texts. */
void daemon_wait_log(const struct daemon *daemon, const char *first, const char *second);
/* Wait until it has refused this master's vote so many times, for this reason. The log tells of a
 * refusal that is over before a busy machine lets the test look. */
void daemon_wait_refused(const struct daemon *daemon, unsigned master, const char *reason,
                         unsigned times);
/* No sanitizer has complained so far, and no token is in its log. */
void daemon_check_log(const struct daemon *daemon);
/* How many lines of the log contain this text? */
unsigned daemon_count_log(const struct daemon *daemon, const char *text);

/* The program under test. */
const char *daemon_program(void);

#endif
