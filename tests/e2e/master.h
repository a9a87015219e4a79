/*
 * A real Redis master: a redis-server process that keeps nothing on disk.
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

/* Files of certificates in the sandbox; certs.h makes them. */
struct master_tls {
    const char *own;   /* NAME.crt and NAME.key */
    const char *ca;    /* NAME.crt: whose clients it believes */
    const char *host;  /* as the daemon names it; NULL: its address */
    bool wants_client; /* they have to show a certificate */
};

struct master {
    const struct sandbox *sandbox;
    unsigned index;
    pid_t pid; /* 0 while it is down */
    bool over_tcp;
    bool steppable;
    bool durable;
    struct clock_file clock;
    int64_t ahead_ms;       /* what it is ahead */
    char host[MASTER_HOST]; /* where it listens by TCP, if it does */
    int port;
    unsigned database; /* that daemons are told of, over TCP */
    const struct master_tls *tls;
    char socket[SANDBOX_FILE];
    redisContext *context; /* ours, for the commands of the test */
    char text[MASTER_TEXT];
};

struct master_plan {
    bool over_tcp; /* loopback; or on unix sockets */
    /* Over TCP: each at an address of its own, this and its number: "10.0.0.1". NULL: loopback. */
    const char *network;
    bool steppable; /* its clock can be stepped: tests/shim/clock.c */
    bool durable;   /* keeps every command on disk */
    /* It listens by TLS at a loopback address, and for the test on its unix socket; lives as long
     * as the masters. NULL: no TLS. */
    const struct master_tls *tls;
    unsigned first; /* number of the first of them; different ones for those of one sandbox */
};

/* Start some masters, at once, and wait until each answers. */
void masters_start(struct master *masters, unsigned count, const struct sandbox *sandbox,
                   const struct master_plan *plan);

/* Step its clock. */
void master_step(struct master *master, int64_t seconds);
void master_step_ms(struct master *master, int64_t ms);

/* Kill and reap it, if it is not down. */
void master_kill(struct master *master);

/* Stop it in its tracks: it accepts connections (the kernel does) and answers nothing. */
void master_stop(struct master *master);
/* Go on: it does first what has been sent to it meanwhile. */
void master_continue(struct master *master);

/* Start it again where it was: empty, or with what SAVE left on its disk, or durably. */
void master_restart(struct master *master);

/* As the configuration of the daemon wants it. */
void master_url(const struct master *master, char *url);

/*
 * Run a command on it. The test fails if there is no answer, or an error. Text lives until the next
 * command; NULL is nil.
 */
int64_t master_integer(struct master *master, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *master_text(struct master *master, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A command, given as one line of words, to several of them; the answers do not matter. */
void masters_run(struct master *masters, unsigned count, const char *line);

/* On how many of them does this key exist? */
unsigned masters_with(struct master *masters, unsigned count, const char *key);

/* How many keys, in all; those of the guard aside. */
int64_t masters_keys(struct master *masters, unsigned count);

#endif
