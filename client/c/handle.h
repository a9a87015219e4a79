/*
 * A handle: one conversation (client/c/client_proto.h), and the socket it is led by.
 */
#ifndef CLIENT_C_HANDLE_H
#define CLIENT_C_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/c/client_proto.h"
#include "client/c/client_request.h"
#include "client/c/fork_mark.h"
#include "client/c/redlock.h"
#include "client/c/wakeup.h"

enum { HANDLE_OUTPUT = 4096, HANDLE_TIMEOUT_MS = 5000 };

struct redlock {
    struct client_proto proto;
    char *url;
    int fd;                     /* -1: not connected */
    struct wakeup wakeup;       /* what redlock_fd() returns */
    struct fork_mark owner;     /* the process whose connection it is */
    int64_t connect_timeout_ns; /* 0: that of a request */
    char peer[PROTO_PEER];      /* the address, as far as it may be repeated */
    char output[HANDLE_OUTPUT];
    size_t output_len;
    bool output_failed; /* nothing can be sent any more; there may still be something to read */
    int *left;          /* connections that were given up, and stay open (handle_reset()) */
    size_t left_count;  /* there is room for one more, while there is a connection */
};

/* Nanoseconds of CLOCK_BOOTTIME. */
int64_t handle_clock_ns(void);

/*
 * In a process that was forked since: it has copies of the descriptors and none of the connections.
 * A byte read from there, or an end, would be taken for the parent's. So they are closed, and the
 * handle is this process's from now on. What was granted remains the parent's.
 */
void handle_leave_to_parent(struct redlock *redlock);

/* Put a request on its way, over a new connection where there is none. */
enum redlock_status handle_ask(struct redlock *redlock, const struct client_request *request,
                               void (*line)(void *context, const char *text), void *context,
                               uint64_t *id);

/* Read what is there, write what can be written, and see what is out of time. */
void handle_pump(struct redlock *redlock);

/* Have the descriptor for event loops be readable when there is something to do, and not before. */
void handle_arm(struct redlock *redlock);

/* Wait until there may be something to pump. */
void handle_wait(struct redlock *redlock);

/*
 * End the connection as if it was lost: the daemon releases nothing by that. A unix socket has no
 * such end: where a lock is held for it, it stays open, and the daemon goes on holding that until
 * handle_close_left(), or for max_hold.
 */
void handle_reset(struct redlock *redlock, const char *why);

/* Close those, in order: nobody relies any more on what is held for them. */
void handle_close_left(struct redlock *redlock);

/* Close the connection, in order. */
void handle_close(struct redlock *redlock);

#endif
