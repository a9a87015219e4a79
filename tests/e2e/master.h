/*
 * A real Redis master: a redis-server process, without persistence unless `durable` is set.
 */
#ifndef TESTS_E2E_MASTER_H
#define TESTS_E2E_MASTER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/e2e/clock.h"
#include "tests/e2e/sandbox.h"

enum { MASTER_TEXT = 4096, MASTER_URL = 128, MASTER_HOST = 16 };

/* Certificates in the sandbox, made by tests/certs.h. */
struct master_tls {
    const char *own;   /* NAME.crt and NAME.key */
    const char *ca;    /* NAME.crt: CA of its clients */
    const char *host;  /* host in the daemon's configuration; NULL: its address */
    bool wants_client; /* requires client certificates */
};

struct master {
    const struct sandbox *sandbox;
    unsigned index;
    pid_t pid; /* 0: not running */
    bool over_tcp;
    bool steppable;
    bool durable;
    struct clock_file clock;
    int64_t ahead_ms;       /* offset of its clock */
    char host[MASTER_HOST]; /* TCP address, if any */
    int port;
    unsigned database; /* database in the URL that daemons get, TCP only */
    const struct master_tls *tls;
    char socket[SANDBOX_FILE];
    redisContext *context; /* connection for commands of the test */
    char text[MASTER_TEXT];
};

struct master_plan {
    bool over_tcp; /* loopback TCP; otherwise unix sockets */
    /* Address prefix for TCP: each master listens on the prefix followed by its number, as in
     * "10.0.0.1". NULL: loopback. */
    const char *network;
    bool steppable; /* preload a clock that can be stepped: tests/shim/clock.c */
    bool durable;   /* append-only file with fsync for every command */
    /* TLS on a loopback address; the test itself uses the unix socket. Must stay valid as long as
     * the masters. NULL: no TLS. */
    const struct master_tls *tls;
    unsigned first; /* number of the first master; unique in a sandbox */
};

/* Starts `count` masters at once and waits until each answers. */
void masters_start(struct master *masters, unsigned count, const struct sandbox *sandbox,
                   const struct master_plan *plan);

/* Steps the clock of the master. */
void master_step(struct master *master, int64_t seconds);
void master_step_ms(struct master *master, int64_t ms);

/* Kills and reaps the master, if it runs. */
void master_kill(struct master *master);

/* Stops the process: the kernel still accepts connections for it, but it answers nothing. */
void master_stop(struct master *master);
/* Resumes the process, which first executes the commands that arrived meanwhile. */
void master_continue(struct master *master);

/* Kills the master and starts it again at its address. A durable master then has all its data. Any
 * other master has the data of its last SAVE, or none. */
void master_restart(struct master *master);

/* Formats the URL of the master for the daemon's configuration. */
void master_url(const struct master *master, char *url);

/*
 * Runs a command. The test fails if the master does not reply or replies with an error. The text
 * that master_text() returns is valid until the next command; NULL stands for nil.
 */
int64_t master_integer(struct master *master, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *master_text(struct master *master, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Runs a command, given as one line, on several masters. The test fails if a master replies with an
 * error; other replies are ignored. */
void masters_run(struct master *masters, unsigned count, const char *line);

/* Returns the number of masters that have the key. */
unsigned masters_with(struct master *masters, unsigned count, const char *key);

/* Returns the total number of keys on the masters, without those of the guard. */
int64_t masters_keys(struct master *masters, unsigned count);

#endif
