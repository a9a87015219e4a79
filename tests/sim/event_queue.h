/* The event queue: a heap of events in the order of true time. Events of the same time keep the
 * order in which they were added. */
#ifndef TESTS_SIM_EVENT_QUEUE_H
#define TESTS_SIM_EVENT_QUEUE_H

#include <stdint.h>

/* A comment names the thing that event.subject is the index of, and after the colon what happens to
 * it. EVENT_STRIKE and EVENT_REPOINT have no subject. The owner of a wire is a daemon or the
 * foreign client. */
enum event_kind {
    EVENT_CONNECT,   /* wire: the SYN arrives at the master */
    EVENT_CONNECTED, /* wire: the SYN-ACK arrives at the wire's owner */
    EVENT_TO_SERVER, /* wire: bytes arrive at the master */
    EVENT_TO_CLIENT, /* wire: bytes arrive at the owner */
    EVENT_RESET,     /* wire: the master learns of a reset */
    EVENT_CLOSED,    /* wire: the owner learns that the wire is closed */
    EVENT_CRON,      /* master: its periodic work */
    EVENT_REQUEST,   /* request: arrives at its daemon */
    EVENT_REPLY,     /* reply: arrives at its client */
    EVENT_HANGUP,    /* connection: its daemon learns that the connection has ended */
    EVENT_ACT,       /* client: its next action */
    EVENT_FOREIGN,   /* foreign client: its next action */
    EVENT_STRIKE,    /* a fault begins */
    EVENT_REPOINT,   /* a name is repointed */
    EVENT_FAULT_END, /* fault: ends */
    EVENT_TIMER,     /* daemon: its timer */
    EVENT_PASS,      /* daemon: a slow pass of its loop ends */
};

struct event {
    int64_t at_ns;
    uint64_t serial;
    enum event_kind kind;
    uint32_t subject;    /* index; its meaning depends on the kind */
    uint32_t generation; /* of the subject; an event of another generation is stale */
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

/* The time of the first event; INT64_MAX if the queue is empty. */
int64_t event_queue_next_ns(const struct event_queue *event_queue);
/* Remove and return the first event. */
struct event event_queue_take(struct event_queue *event_queue);

#endif
