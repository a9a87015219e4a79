/*
 * The daemon under test: the program $REDLOCKD (build/redlockd by default), with a configuration, a
 * socket and a log in the sandbox.
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
 * The default node_timeout is generous: on a busy machine a healthy master must not be taken for a
 * silent one. Tests that wait for a timeout set a short one.
 */
enum { DAEMON_NODE_TIMEOUT_MS = 800 };

/* The default clock_drift_margin is also generous: with it, the guard can check a master's clock
 * even if a busy machine delays the reply. */
enum { DAEMON_MARGIN_MS = 40 };

struct daemon_plan {
    const char *name;       /* base name of its files; NULL: "redlockd" */
    const char *tcp_host;   /* also listen on TCP: "127.0.0.1", "[::1]"; NULL: unix socket only */
    const char *tls_fields; /* YAML fields of the TCP listener, which then uses TLS */
    const char *listen_fields; /* YAML fields of the unix listener: ", mode: \"0600\"" */
    const char *node_fields;   /* YAML fields of each node: ", username: app" */
    const char *locks;         /* YAML fields of the section `locks`: ", max_ttl: 1s" */
    const char *yaml;          /* further YAML sections; NULL: log level debug */
    unsigned node_timeout_ms;
    unsigned margin_ms;    /* clock_drift_margin; 0: DAEMON_MARGIN_MS */
    int64_t clock_ahead_s; /* offset of its wall clock */
    bool other_host;       /* simulate another host: a different clock since boot */
    const char *network;   /* path of its network namespace; NULL: the test's */
    rlim_t open_files;     /* RLIMIT_NOFILE; 0: as the test */
};

struct daemon {
    const struct sandbox *sandbox;
    pid_t pid; /* 0: not running */
    bool other_host;
    const char *network;
    int64_t clock_ahead_s;
    /* Set by tests before the start; see struct process_plan. */
    const char *const *environment;
    const int *sockets;
    unsigned socket_count;
    char config[SANDBOX_FILE];
    char socket[SANDBOX_FILE];
    char log[SANDBOX_FILE];
    int port; /* TCP port, if tcp_host is set */
};

/* Chooses the paths of the daemon's files and its TCP port, and writes its configuration. */
void daemon_prepare(struct daemon *daemon, const struct sandbox *sandbox,
                    const struct master *masters, unsigned master_count,
                    const struct daemon_plan *plan);

/* Replaces a text in the configuration, which must contain it. */
void daemon_edit(const struct daemon *daemon, const char *from, const char *to);

/* Runs redlockd --bootstrap, which must succeed. */
void daemon_bootstrap(const struct daemon *daemon);

/* Runs the program with the daemon's configuration and further arguments (ending with NULL) to its
 * end. Its output goes to the daemon's log. Returns the exit status. */
int daemon_run(const struct daemon *daemon, const char *const *words);

/* Starts the daemon and does not wait until it listens. */
void daemon_start(struct daemon *daemon, rlim_t open_files);

/* Waits until the daemon accepts connections. */
void daemon_wait_listening(struct daemon *daemon);

/* Waits until exactly `up` nodes vote. */
void daemon_wait_up(struct daemon *daemon, unsigned up);

/* Sends SIGTERM. The daemon must exit with status 0, without a sanitizer report or a token in its
 * log. */
void daemon_stop(struct daemon *daemon);
/* Waits for the end of a daemon that the test itself has signalled, and makes the same checks as
 * daemon_stop(). */
void daemon_check_end(struct daemon *daemon);

/* Sends SIGHUP and waits for one more line of the log that contains this event. */
void daemon_reload(const struct daemon *daemon, const char *event);

/* Starts a daemon that is expected to refuse to start, and waits for its end. Returns the exit
 * status, which the caller checks. */
int daemon_refuses(struct daemon *daemon);

/* Connects to the unix socket of the daemon. */
void daemon_connect(const struct daemon *daemon, struct client *client);

/* Waits until a line of the log contains both texts. */
void daemon_wait_log(const struct daemon *daemon, const char *first, const char *second);
/* Waits until the daemon has logged this many refusals of a master's vote for this reason. The log
 * is read because NODES is not enough: on a busy machine, a refusal can be over before the test
 * reads NODES. */
void daemon_wait_refused(const struct daemon *daemon, unsigned master, const char *reason,
                         unsigned times);
/* Whether the text contains a token. A token is the right to release a lock, so no log and no page
 * may contain one. Nothing else there has 40 hexadecimal digits. */
bool daemon_shows_token(const char *text);
/* Fails if the log has a sanitizer report or a token. */
void daemon_check_log(const struct daemon *daemon);
/* Returns the number of log lines that contain the text. */
unsigned daemon_count_log(const struct daemon *daemon, const char *text);

/* The path of the program under test. */
const char *daemon_program(void);

#endif
