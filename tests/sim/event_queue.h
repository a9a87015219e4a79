/*
 * What happens when: a heap of events, in the order of true time, and of being written down.
 */
#ifndef TESTS_SIM_EVENT_QUEUE_H
#define TESTS_SIM_EVENT_QUEUE_H

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

enum { EVENT_QUEUE_EVENTS = 16384 };

struct event_queue {
    struct event events[EVENT_QUEUE_EVENTS];
    unsigned count;
    uint64_t serial;
};

void event_queue_clear(struct event_queue *event_queue);
void event_queue_add(struct event_queue *event_queue, int64_t at_ns, enum event_kind kind,
                     uint32_t subject, uint32_t generation);

/* When the first is; INT64_MAX without one. And that. */
int64_t event_queue_next_ns(const struct event_queue *event_queue);
struct event event_queue_take(struct event_queue *event_queue);

#endif
