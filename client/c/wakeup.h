/*
 * The descriptor that a handle gives to event loops: one for its whole life, readable whenever
 * there is something to do for it. Connections come and go inside, so a loop never watches a socket
 * whose number another one has meanwhile.
 *
 * It is an epoll instance with the socket and a timer in it, and is made when it is first asked
 * for.
 */
#ifndef CLIENT_C_WAKEUP_H
#define CLIENT_C_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

struct wakeup {
    int epoll;      /* -1: there is none; then wakeup_watch() and wakeup_forget() do nothing */
    int timer;      /* of CLOCK_BOOTTIME */
    int64_t due_ns; /* when the timer expires, or has expired; INT64_MAX: never */
    int socket;     /* the one that is watched; -1: none. Owned by the handle */
    bool output;    /* it is also watched for room to write */
};

void wakeup_init(struct wakeup *wakeup);
void wakeup_close(struct wakeup *wakeup);

/* Have a descriptor. False: none is left. */
bool wakeup_open(struct wakeup *wakeup);

/* In a process that was forked since: leave the old one, which has copies here, to the parent, and
 * have another one under the same number, with no socket in it. */
void wakeup_leave_to_parent(struct wakeup *wakeup);

/* Watch this socket. False: there is no memory. */
__attribute__((warn_unused_result)) bool wakeup_watch(struct wakeup *wakeup, int socket);

/* Watch it no more: before it is closed, because another process may have it open as well. */
void wakeup_forget(struct wakeup *wakeup);

/* Be readable, beside what has come: with `output` when the socket has room; and from due_ns on, or
 * once before. INT64_MAX: never. There has to be a descriptor. */
void wakeup_arm(struct wakeup *wakeup, bool output, int64_t due_ns, int64_t now_ns);

#endif
