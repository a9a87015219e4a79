/*
 * What happens when: a heap of events, in the order of true time, and of being written down.
 */
#ifndef TESTS_SIM_AGENDA_H
#define TESTS_SIM_AGENDA_H

#include <stdint.h>

enum event_kind {
    EVENT_CONNECT,   /* wire: the SYN arrives */
    EVENT_CONNECTED, /* wire: ... and its answer */
    EVENT_TO_SERVER, /* wire: bytes arrive at the master */
    EVENT_TO_CLIENT, /* wire: bytes arrive at who opened it */
    EVENT_RESET,     /* wire: the master learns that it was reset */
    EVENT_CLOSED,    /* wire: who opened it learns that it is closed */
    EVENT_CRON,      /* master */
    EVENT_REQUEST,   /* request: it arrives at its daemon */
    EVENT_REPLY,     /* reply: it arrives at its client */
    EVENT_HANGUP,    /* hangup: a daemon learns of the end of a connection */
    EVENT_ACT,       /* client: it does something */
    EVENT_FOREIGN,   /* foreign client: likewise */
    EVENT_STRIKE,    /* a fault begins */
    EVENT_MEND,      /* fault: it ends */
    EVENT_TIMER,     /* daemon */
    EVENT_PASS,      /* daemon: a slow pass of its loop is over */
};

struct event {
    int64_t at_ns;
    uint64_t serial;
    enum event_kind kind;
    uint32_t subject;    /* an index, by kind */
    uint32_t generation; /* of the subject: what is about another one is void */
};

enum { AGENDA_EVENTS = 16384 };

struct agenda {
    struct event events[AGENDA_EVENTS];
    unsigned count;
    uint64_t serial;
};

void agenda_clear(struct agenda *agenda);
void agenda_add(struct agenda *agenda, int64_t at_ns, enum event_kind kind, uint32_t subject,
                uint32_t generation);

/* When the first is; INT64_MAX without one. And that. */
int64_t agenda_next_ns(const struct agenda *agenda);
struct event agenda_take(struct agenda *agenda);

#endif
