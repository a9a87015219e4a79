/*
 * The descriptor of redlock_fd(), for event loops. It is an epoll instance that contains the socket
 * and a timer, and is created on first use. It stays the same while connections come and go. So an
 * event loop never watches the number of a closed socket, which another socket can get.
 */
#ifndef CLIENT_C_WAKEUP_H
#define CLIENT_C_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

struct wakeup {
    int epoll;      /* -1: not created; wakeup_watch() and wakeup_forget() then do nothing */
    int timer;      /* a timerfd on CLOCK_BOOTTIME */
    int64_t due_ns; /* when the timer expires or has expired; INT64_MAX: never */
    int socket;     /* the watched socket, owned by the handle; -1: none */
    bool output;    /* the socket is also watched for room to write */
};

void wakeup_init(struct wakeup *wakeup);
void wakeup_close(struct wakeup *wakeup);

/* Creates the descriptor if there is none. False: the process has no descriptor left. */
bool wakeup_open(struct wakeup *wakeup);

/* A forked child shares the epoll instance with its parent. For the child, this function replaces
 * it with a new instance that has the same descriptor number and no socket. */
void wakeup_reopen_after_fork(struct wakeup *wakeup);

/* Watches this socket. False: the kernel has no memory. */
__attribute__((warn_unused_result)) bool wakeup_watch(struct wakeup *wakeup, int socket);

/* Stops watching the socket. Call this before close(2): if another process has the socket open too,
 * closing alone does not remove it from the epoll instance. */
void wakeup_forget(struct wakeup *wakeup);

/* The descriptor is readable when there is input. This function sets when it is readable without
 * input: from due_ns on (INT64_MAX: never); and, with `output`, when the socket has room to write.
 * One wake-up before due_ns is possible. The descriptor must exist. */
void wakeup_arm(struct wakeup *wakeup, bool output, int64_t due_ns, int64_t now_ns);

#endif
