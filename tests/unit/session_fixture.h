/*
 * Sessions over real kernel sockets, with a virtual clock instead of server/clock.c. No master is
 * up.
 */
#ifndef TESTS_UNIT_SESSION_FIXTURE_H
#define TESTS_UNIT_SESSION_FIXTURE_H

#include "config/config.h"
#include "server/clients/clients.h"
#include "server/log.h"
#include "server/net/pass.h"
#include "server/net/stream.h"
#include "server/random.h"

enum { CLIENTS = 200 };

struct fixture {
    struct config *config;
    struct log log;
    struct random random;
    struct event_base *base;
    struct pass pass;
    struct streams streams;
    struct clients clients;
    int peers[CLIENTS];
};

extern struct fixture fixture;

/* Each reading of the clock takes virtual_step_ns, and so does every piece of work that reads it.
 */
extern int64_t virtual_ns;
extern int64_t virtual_step_ns;

/* How many allocations of libevent succeed before memory runs out; -1: all. */
extern int allocations_left;

void open_fixture(void);
void close_fixture(void);
void run_pass(void);

/* False: the daemon refused the connection. */
bool try_connect(unsigned index);
void connect_clients(unsigned count);

void say(unsigned index, const char *text);

/* What the daemon has sent to this client and the test has not read yet. */
const char *heard(unsigned index);

const char *logged(void);

#endif
