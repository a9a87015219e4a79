/*
 * libredlock: locks by redlockd, from C.
 *
 *     struct redlock *redlock = redlock_new("tcp://127.0.0.1:7335");
 *     struct redlock_lock lock;
 *     if (redlock_acquire(redlock, "deploy", 30000, NULL, &lock, NULL) == REDLOCK_OK) {
 *         ... work, for as long as redlock_left_ms(&lock) > 0 ...
 *         redlock_release(redlock, &lock);
 *     } else {
 *         fprintf(stderr, "%s\n", redlock_error(redlock));
 *     }
 *     redlock_free(redlock);
 *
 * A handle is one connection to one daemon. It is made by the first request and, after it was lost,
 * by the next one. A handle must not be used by two threads at once; different handles have nothing
 * in common, and there is no other state. After fork(2) a connection is that of the parent: in the
 * child a handle has none, until it makes one of its own (redlock_take_over()). That holds for any
 * process with memory of its own, in any PID namespace, however it was forked. Nothing here
 * installs a signal handler, raises SIGPIPE, writes to standard error or ends the program.
 *
 * Time. Durations are milliseconds. A deadline is nanoseconds of CLOCK_BOOTTIME, which goes on
 * while the machine sleeps, as the masters do. A lock is safe until its deadline, and not a moment
 * longer: look at it before each step that needs the lock, and stop in time. It is computed from
 * the instant before the request was sent, and never from an answer alone, so a slow network makes
 * it earlier than it need be, and never later.
 *
 * Waiting. The plain functions block until the answer is there: for the wait that was asked for and
 * the timeout of the handle at most, and where there is no connection, for its timeout before that.
 * The functions redlock_start_... and redlock_next() do the same without blocking, for programs
 * that poll.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_VERSION "0.1.0"

/* Bytes of a resource's name, digits of a token, bytes of a label; without the final NUL. */
#define REDLOCK_RESOURCE_MAX 256
#define REDLOCK_TOKEN_LEN    40
#define REDLOCK_LABEL_MAX    32

/* What became of a request. redlock_error() has the same in words, with the details. */
enum redlock_status {
    REDLOCK_OK = 0,

    /* Answers of the daemon (docs/protocol.txt). */
    REDLOCK_HELD,     /* somebody else holds it; with a wait: still, when that was over */
    REDLOCK_FREE,     /* to redlock_query(), redlock_break(): nobody holds it */
    REDLOCK_GONE,     /* this token does not hold it, or not any more. Final */
    REDLOCK_NOQUORUM, /* too few masters could vote */
    REDLOCK_LATE,     /* granted too late for anything to be left of it; it was undone */
    REDLOCK_LIMIT,    /* a bound of the daemon was met, or of a handle: 1024 requests under way or
                         not taken; redlock_error() says which */
    REDLOCK_SHUTDOWN, /* the daemon is stopping: another one may answer */
    REDLOCK_DENIED,   /* not allowed, or not authenticated */
    REDLOCK_REFUSED,  /* the daemon found the request wrong */

    /* No answer. To acquire: whatever was acquired is released (only a grant that crosses the end
     * of its connection on the way may be left to its time to live). To extend: the earlier
     * deadline stands. To release: it may have been done, and the lock ends by itself at the
     * latest. */
    REDLOCK_UNREACHABLE, /* no connection: nothing was sent */
    REDLOCK_BROKEN,      /* the connection ended before the answer */
    REDLOCK_TIMEOUT,     /* there was none in time; if one comes, the next call deals with it */
    REDLOCK_GARBLED, /* what answered does not speak the protocol; the connection was given up */

    REDLOCK_INVALID, /* an argument was wrong: nothing was sent */
    REDLOCK_MEMORY,  /* there is no memory left: nothing was sent */
};

/* One word for it: "held". */
const char *redlock_status_word(enum redlock_status status);

/* --- the handle ------------------------------------------------------------------------------- */

struct redlock;

/*
 * url: tcp://127.0.0.1:7335, tcp://[::1]:7335, tcp://locks.example:7335, unix:/run/redlockd.sock;
 * it is looked at by the first request (REDLOCK_INVALID). NULL: no memory. There is no TLS in here:
 * tls:// is REDLOCK_INVALID, too. Name a unix socket or loopback address of a redlockd on the same
 * host, or of a proxy there that speaks TLS to one elsewhere (stunnel). A host's name is looked
 * up by getaddrinfo(3), which may block for longer than the timeout.
 */
struct redlock *redlock_new(const char *url);

/* Closes the connection in order, so the daemon releases what it holds for it, locks that linger
 * included: that may take 200 ms where it holds something and does not answer. Grants that were not
 * taken are given back, unless their connection has ended before, or they are being extended as
 * redlock_acquire() says: then they end by their time to live. NULL is fine. */
void redlock_free(struct redlock *redlock);

/* Give the connection up, as if it was lost: what is held for it lives until its deadline, and the
 * next request makes another one. For one that seems to lead nowhere, since requests time out.
 * Where another process has it open as well, it ends with that. A unix socket cannot be lost: where
 * a lock is held for it, it stays open until redlock_free(), and the daemon holds that for so long
 * unless it is released. */
void redlock_abandon(struct redlock *redlock);

/* In a child, before anything else is done with the handle: the connection is the child's from now
 * on, with all that is held for it, and no other process may use it. It ends for the daemon when
 * the last process has closed it, or one by redlock_free(). */
void redlock_take_over(struct redlock *redlock);

/* What the last function that failed has to say, in one line without a newline; "" before that. It
 * is valid until the next call with this handle. */
const char *redlock_error(const struct redlock *redlock);

/* How long a request may take beyond what it waits in line; 5000 ms unless set. It cannot be
 * without end: less than 1 counts as 1, here and below. */
void redlock_set_timeout(struct redlock *redlock, int64_t timeout_ms);

/* How long a function may block while it makes a new connection, the look-up of a name aside; as
 * long as a request may take, unless set. */
void redlock_set_connect_timeout(struct redlock *redlock, int64_t timeout_ms);

/* A name for the daemon's listings and its log: 1 to 32 of A-Z a-z 0-9 _ . : -, told to it on each
 * new connection. REDLOCK_INVALID or REDLOCK_OK. */
enum redlock_status redlock_set_label(struct redlock *redlock, const char *label);

/* The address of the daemon, as for redlock_new(), for connections from the next one on: of another
 * daemon on the same masters, or where the look-up of a name must not block. REDLOCK_MEMORY or
 * REDLOCK_OK. */
enum redlock_status redlock_set_url(struct redlock *redlock, const char *url);

/* The secret by which the daemon knows who this is, 1 to 256 bytes without spaces; NULL: none. It
 * is told to it first of all on each new connection, so set it before the first request. Where the
 * daemon does not take it, all requests of that connection are REDLOCK_DENIED. It is never printed.
 * REDLOCK_INVALID or REDLOCK_OK. */
enum redlock_status redlock_set_secret(struct redlock *redlock, const char *secret);

/* --- locks ------------------------------------------------------------------------------------ */

/* A lock that was granted. Its fields are for reading; a copy is as good as the original. */
struct redlock_lock {
    char resource[REDLOCK_RESOURCE_MAX + 1];
    char token[REDLOCK_TOKEN_LEN + 1]; /* the only right to extend or release it: keep it secret */
    int64_t ttl_ms;
    int64_t deadline_ns; /* of CLOCK_BOOTTIME; 0: it is not held, or not any more */
    int64_t fence;       /* the fencing token; 0 if none was given */
    bool hold;           /* it lives with the connection */
};

/*
 * What there is to ask for beside the time to live. NULL, or zeros: nothing of it.
 *
 * A lock with hold is released when its connection ends, also because the process was killed. One
 * that lingers is released by redlock_release() and redlock_free() alone, and lives until its
 * deadline otherwise: for locks under which other processes work as well.
 */
struct redlock_lock_options {
    int64_t wait_ms; /* wait in line for so long, 24 hours at most; 0: not at all */
    bool fence;      /* a number greater than that of every earlier grant of this resource */
    bool hold;       /* have the daemon extend it while the connection lives, up to max_hold */
    bool linger;     /* with hold: keep it until its deadline where the process is killed */
};

/*
 * Acquire a lock. REDLOCK_OK fills *lock; after anything else its deadline is 0. A grant whose
 * deadline had passed when it arrived, as it has after a wait of a hundred times its ttl, is
 * extended at once; where that is denied it is given back and REDLOCK_LATE.
 *
 * hint_ms, where it is not NULL, is set with REDLOCK_HELD: the earliest time in which it can be
 * free, or -1 where that is not known.
 */
enum redlock_status redlock_acquire(struct redlock *redlock, const char *resource, int64_t ttl_ms,
                                    const struct redlock_lock_options *options,
                                    struct redlock_lock *lock, int64_t *hint_ms);

/*
 * Have it live at least ttl_ms from now. REDLOCK_OK sets the new deadline, which is never earlier
 * than the old one; REDLOCK_GONE sets it to 0; anything else leaves it. It may be done through any
 * daemon on the same masters. If the old deadline had passed, somebody else may have had the lock
 * in between. The lock may come from elsewhere: resource and token are all that is needed.
 */
enum redlock_status redlock_extend(struct redlock *redlock, struct redlock_lock *lock,
                                   int64_t ttl_ms);

/* Give it back. Its deadline is 0 afterwards, whatever the answer: REDLOCK_OK, REDLOCK_GONE where
 * so many masters do not have it that the others are no majority, or that it could not be
 * confirmed. */
enum redlock_status redlock_release(struct redlock *redlock, struct redlock_lock *lock);

/* How much is left until the deadline, rounded down; 0 or less: stop. */
int64_t redlock_left_ms(const struct redlock_lock *lock);

/* Does somebody hold it? REDLOCK_HELD, with the hint as above, or REDLOCK_FREE. */
enum redlock_status redlock_query(struct redlock *redlock, const char *resource, int64_t *hint_ms);

/*
 * For operators: release it by force, whoever holds it. REDLOCK_OK; REDLOCK_FREE: nobody does;
 * REDLOCK_HELD: it has changed hands meanwhile, is just being granted, or is no lock of redlockd,
 * and was left alone; REDLOCK_NOQUORUM: too few masters answered, ask again. Its holder is not
 * stopped: see BREAK in docs/protocol.txt. hint_ms as above.
 */
enum redlock_status redlock_break(struct redlock *redlock, const char *resource, int64_t *hint_ms);

/* --- the daemon ------------------------------------------------------------------------------- */

/* Is it there? */
enum redlock_status redlock_ping(struct redlock *redlock);

/* The lines of a listing: NODES, STATS, CLIENTS, LOCKS or "LOCKS <resource>", HELP. line() gets one
 * after the other, without END. It must not use the handle. VERSION has a line of its own. */
enum redlock_status redlock_list(struct redlock *redlock, const char *listing,
                                 void (*line)(void *context, const char *text), void *context);

/* --- without blocking ------------------------------------------------------------------------- */

/*
 * Start a request, poll, and take what has come:
 *
 *     redlock_start_acquire(redlock, "deploy", 30000, &(struct redlock_lock_options){.hold = true},
 * &id); for (;;) { while (redlock_next(redlock, &event))
 *             ...
 *         struct pollfd fd = {.fd = redlock_fd(redlock), .events = POLLIN};
 *         poll(&fd, 1, -1);
 *     }
 *
 * 1024 requests may be under way; each has one answer, in whatever order. The blocking functions
 * can be used in between: what they read of other requests is kept for redlock_next().
 */
enum redlock_event_kind {
    REDLOCK_EVENT_ANSWER, /* to the request `id` */

    /* About the lock with this token, held by redlockd for this connection. */
    REDLOCK_EVENT_LOST, /* not safe beyond what is known of it: stop now. Final */
    REDLOCK_EVENT_WARN, /* still held, but a master that carries it has lost its vote */

    /* The connection is gone; requests under way have had their answer, REDLOCK_BROKEN. Locks with
     * hold are not extended any more, and those that the daemon saw end in order are released,
     * unless they linger. */
    REDLOCK_EVENT_CLOSED,
};

struct redlock_event {
    enum redlock_event_kind kind;
    uint64_t id;
    enum redlock_status status; /* of an answer */
    bool ended;                 /* ... with which, or without which, the connection has ended */
    int64_t sent_ns;            /* the instant before its request was sent, of CLOCK_BOOTTIME */
    struct redlock_lock lock;   /* OK to an acquire or extend; LOST, WARN: resource and token */
    int64_t hint_ms;            /* HELD */
    unsigned place;             /* to redlock_start_place() */
    char reason[64];            /* LOST: "noquorum"; WARN: "<node>:<reason>" */
};

/*
 * They connect if need be. REDLOCK_OK: it is under way, and *id is its number; id may be NULL.
 * Otherwise there will be no answer: REDLOCK_INVALID, REDLOCK_UNREACHABLE, REDLOCK_LIMIT,
 * REDLOCK_MEMORY.
 */
enum redlock_status redlock_start_acquire(struct redlock *redlock, const char *resource,
                                          int64_t ttl_ms,
                                          const struct redlock_lock_options *options, uint64_t *id);
enum redlock_status redlock_start_extend(struct redlock *redlock, const struct redlock_lock *lock,
                                         int64_t ttl_ms, uint64_t *id);
enum redlock_status redlock_start_release(struct redlock *redlock, const struct redlock_lock *lock,
                                          uint64_t *id);
enum redlock_status redlock_start_query(struct redlock *redlock, const char *resource,
                                        uint64_t *id);
/* Its answer, OK, with no LOST before it, proves each lock held by this connection until a third of
 * its ttl has passed since sent_ns of the event. */
enum redlock_status redlock_start_ping(struct redlock *redlock, uint64_t *id);
/* Its answer, OK, has the place in line of this connection for the resource: 1 is next, 0 that it
 * does not wait. Costs the masters nothing. */
enum redlock_status redlock_start_place(struct redlock *redlock, const char *resource,
                                        uint64_t *id);

/* Give up a request: there will be no answer, and what it acquires, or has acquired, is released,
 * as by a time-out. Where nothing else is under way or held, the connection is closed for that;
 * otherwise go on with redlock_next(). */
void redlock_cancel(struct redlock *redlock, uint64_t id);

/* Read what has come and write what is to be sent, as far as goes without blocking. True: *event is
 * filled. */
bool redlock_next(struct redlock *redlock, struct redlock_event *event);

/*
 * A descriptor to watch for input, by poll(2), epoll(7) or an event library: it becomes readable
 * whenever redlock_next() has something to do, also to send something or to end a request that runs
 * out of time. No other event and no timer of one's own is needed. Then call redlock_next() until
 * it returns false. It may be readable without cause.
 *
 * It is the same from the first call to redlock_free(), with or without a connection, however often
 * that is made anew. Do not read from it or close it, and do not watch it edge-triggered. -1: the
 * process has no descriptor left; call again. After fork(2), the child calls this before it watches
 * the descriptor: the number is the same, and what is behind it another.
 */
int redlock_fd(struct redlock *redlock);

/* Is there a connection, as far as is known? */
bool redlock_is_connected(const struct redlock *redlock);

/* The socket of that connection, for getpeername(2) and the like; -1: there is none. Do not watch
 * it: the next connection can have the same number. */
int redlock_socket(const struct redlock *redlock);

#ifdef __cplusplus
}
#endif

#endif
