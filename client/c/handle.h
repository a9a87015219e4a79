/*
 * A handle: the protocol state (client/c/client_proto.h) and its socket.
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
    struct wakeup wakeup;       /* the descriptor that redlock_fd() returns */
    struct fork_mark owner;     /* the process that owns the connection */
    int64_t connect_timeout_ns; /* 0: use the timeout of a request */
    char peer[PROTO_PEER];      /* the address without a password and control characters */
    char output[HANDLE_OUTPUT];
    size_t output_len;
    bool output_failed;  /* the socket cannot be written, but may still have input */
    int *parked;         /* unix sockets that were given up but stay open (handle_reset()) */
    size_t parked_count; /* while connected, `parked` has room for one more socket */
};

/* Nanoseconds of CLOCK_BOOTTIME. */
int64_t handle_clock_ns(void);

/*
 * In a forked child, closes the inherited descriptors and makes the child the owner of the handle.
 * In any other process, does nothing. The child must not use the parent's connections, since the
 * parent would miss the bytes that the child reads. Locks that were granted still belong to the
 * parent.
 */
void handle_detach_after_fork(struct redlock *redlock);

/* Sends a request, and connects first if there is no connection. */
enum redlock_status handle_ask(struct redlock *redlock, const struct client_request *request,
                               void (*line)(void *context, const char *text), void *context,
                               uint64_t *id);

/* Reads input, writes output and fails the requests that have timed out, without blocking. */
void handle_pump(struct redlock *redlock);

/* Makes the descriptor of redlock_fd() readable when there is work for handle_pump(), and not
 * before. */
void handle_arm(struct redlock *redlock);

/* Blocks until there may be work for handle_pump(). */
void handle_wait(struct redlock *redlock);

/*
 * Ends the connection as if the network had lost it, so that the daemon releases nothing. A unix
 * socket cannot be reset. So a unix socket with HOLDs is parked: it stays open, and the daemon
 * extends the HOLDs until handle_close_parked() closes the socket, or until max_hold ends.
 */
void handle_reset(struct redlock *redlock, const char *why);

/* Closes the parked sockets cleanly, so that the daemon releases their locks. */
void handle_close_parked(struct redlock *redlock);

/* Closes the connection cleanly, so that the daemon releases its HOLDs. */
void handle_close(struct redlock *redlock);

#endif
