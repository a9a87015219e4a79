/*
 * Clients of the daemon for a while, as fast as they are answered: connections, each with some
 * requests under way, in one thread.
 *
 * Apart: each locks and unlocks a resource of its own. Together: all want one resource and wait in
 * line for it; who has it keeps it for a time, and goes to the end of the line.
 */
#ifndef TESTS_BENCH_LOAD_H
#define TESTS_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/bench/spread.h"

enum { LOAD_SLOTS = 1024, LOAD_DAEMONS = 4, LOAD_ANSWER = 160 };

struct load_plan {
    const char *host;
    int ports[LOAD_DAEMONS]; /* of the daemons; their connections take turns. 0 ends it */
    const char *path;        /* a unix socket in place of them; NULL: none */
    unsigned connections;
    unsigned depth;  /* requests under way on each */
    bool together;   /* for one resource */
    int64_t hold_ns; /* how long it is kept */
    int64_t for_ns;  /* how long this goes on, at least until min_pairs are done */
    uint64_t min_pairs;
    uint64_t max_pairs; /* or until so many are done; 0: any number */
    pid_t hangs;        /* 0: none. Else a process, a master, that is stopped at half-time */
    pid_t in_step;      /* 0: as it comes. Else each request is sent when all can be, while this
                           process, the daemon, is stopped: so that every run is the same */
};

struct load_result {
    double seconds;
    uint64_t pairs;            /* of LOCK and UNLOCK */
    uint64_t all_pairs;        /* also those before and after what is measured */
    int64_t client_ns;         /* processor time of whoever asks */
    uint64_t failed;           /* answers that are not OK */
    char failure[LOAD_ANSWER]; /* the first of them */
    struct spread acquire;     /* from LOCK to its OK; together: the time in line */
    struct spread handover;    /* together: from UNLOCK to the OK of whoever is next */
    double jain;               /* together: fairness, 1 if all had the same number of turns */
    double least;              /* together: the fewest turns, of an equal share */
    int64_t longest_ns;        /* the longest of acquire, that of who waits at the end included */
};

/* Fails the running test where a connection cannot be made or is lost. */
void load_run(const struct load_plan *plan, struct load_result *result);

#endif
