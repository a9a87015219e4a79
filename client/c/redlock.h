/*
 * libredlock: the C client of redlockd.
 *
 *     struct redlock *redlock = redlock_new("tcp://127.0.0.1:7335");
 *     struct redlock_lock lock;
 *     if (redlock_acquire(redlock, "deploy", 30000, NULL, &lock, NULL) == REDLOCK_OK) {
 *         ... work while redlock_left_ms(&lock) > 0 ...
 *         redlock_release(redlock, &lock);
 *     } else {
 *         fprintf(stderr, "%s\n", redlock_error(redlock));
 *     }
 *     redlock_free(redlock);
 *
 * A handle is one connection to one daemon. The first request opens the connection, and the first
 * request after a loss reopens it. Two threads must not use one handle at the same time. Handles
 * share nothing, and the library has no global state.
 *
 * After fork(2) the connection belongs to the parent. The child's copy of the handle starts without
 * a connection and opens its own with the next request; see redlock_take_over(). This holds for any
 * child with its own memory, in any PID namespace and whatever system call created it.
 *
 * The library installs no signal handler, raises no SIGPIPE, writes nothing to standard error and
 * never ends the program.
 *
 * Time. Durations are milliseconds. A deadline is in nanoseconds of CLOCK_BOOTTIME, which keeps
 * running while the machine sleeps, as the masters do. The lock is safe until its deadline and not
 * a moment longer: check the deadline before each step that needs the lock, and stop in time. The
 * library counts the deadline from the instant before it sent the request. A slow network therefore
 * makes the deadline earlier than necessary, never later.
 *
 * Blocking. A blocking function returns when the answer is there, at the latest after the requested
 * wait plus the handle's timeout. If it has to connect first, the connect timeout comes on top. The
 * functions redlock_start_...() and redlock_next() do the same without blocking, for event loops.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_VERSION "0.1.0"

/* Longest resource name in bytes, token in digits, longest label in bytes; without the NUL. */
#define REDLOCK_RESOURCE_MAX 256
#define REDLOCK_TOKEN_LEN    40
#define REDLOCK_LABEL_MAX    32

/* The result of a request. redlock_error() describes a failure in words, with the details. */
enum redlock_status {
    REDLOCK_OK = 0,

    /* The daemon answered (docs/protocol.txt). */
    REDLOCK_HELD,     /* another client holds the lock; with a wait: still held when it was over */
    REDLOCK_FREE,     /* no client holds the lock; only from redlock_query() and redlock_break() */
    REDLOCK_GONE,     /* this token does not hold the lock, or no longer does. Final */
    REDLOCK_NOQUORUM, /* too few masters could vote */
    REDLOCK_LATE,     /* granted with no validity left, and undone */
    REDLOCK_LIMIT,    /* a limit of the daemon was reached, or the handle's limit of 1024 requests
                         that are under way or whose answers were not taken; redlock_error() says
                         which */
    REDLOCK_SHUTDOWN, /* the daemon is stopping; try another daemon */
    REDLOCK_DENIED,   /* not allowed, or not authenticated */
    REDLOCK_REFUSED,  /* the daemon rejected the request as malformed or out of range */

    /* There was no answer. After an acquire, a lock that was granted is released; only a grant
     * that was in transit when its connection ended may stay until its TTL expires. After an
     * extend, the earlier deadline stands. After a release, the lock may have been released, and
     * otherwise expires after its TTL. */
    REDLOCK_UNREACHABLE, /* could not connect; nothing was sent */
    REDLOCK_BROKEN,      /* the connection ended before the answer */
    REDLOCK_TIMEOUT,     /* no answer in time; the next call handles one that comes later */
    REDLOCK_GARBLED,     /* the peer does not speak the protocol; the connection was closed */

    REDLOCK_INVALID, /* an argument is invalid; nothing was sent */
    REDLOCK_MEMORY,  /* out of memory; nothing was sent */
};

/* The status as one lower-case word, such as "held". */
const char *redlock_status_word(enum redlock_status status);

/* --- the handle ------------------------------------------------------------------------------- */

struct redlock;

/*
 * Creates a handle; returns NULL if there is no memory. url is tcp://127.0.0.1:7335,
 * tcp://[::1]:7335, tcp://locks.example:7335 or unix:/run/redlockd.sock. The first request parses
 * it, and returns REDLOCK_INVALID if it is malformed.
 *
 * The library has no TLS, so tls:// is REDLOCK_INVALID. Use the unix socket or loopback address of
 * a redlockd on the same host, or of a TLS proxy on the same host (stunnel).
 *
 * The library resolves a host name with getaddrinfo(3), which may block longer than the timeout.
 */
struct redlock *redlock_new(const char *url);

/* Closes the connection in order and frees the handle. The daemon then releases all locks that it
 * holds for the connection, LINGER locks included; if there are any and the daemon does not answer,
 * this takes up to 200 ms. Grants whose answers were not taken are released. They expire after
 * their TTL instead if their connection has ended already, or if they are being extended as
 * redlock_acquire() describes. NULL is ignored. */
void redlock_free(struct redlock *redlock);

/* Drops the connection as if the network had lost it, for a connection on which requests time out.
 * Locks that the daemon holds for it live until their deadlines, and the next request connects
 * again. If another process has the connection open too, it ends when that process closes it.
 *
 * A unix socket always closes in order, which would release those locks. A unix socket for which
 * locks are held therefore stays open until redlock_free(), and the daemon extends those locks
 * until then unless they are released. */
void redlock_abandon(struct redlock *redlock);

/* Makes the connection, with all locks held for it, the property of the calling child process. The
 * child calls this before it uses the handle in any other way, and no other process may use the
 * connection afterwards. The connection ends for the daemon when the last process has closed it, or
 * when one process calls redlock_free(). */
void redlock_take_over(struct redlock *redlock);

/* The error message of the last function that failed, one line without a newline; "" if none has
 * failed. Valid until the next call with this handle. */
const char *redlock_error(const struct redlock *redlock);

/* Time limit of a request, without its wait in the queue; 5000 ms by default. There is always a
 * limit: values below 1 count as 1, also in redlock_set_connect_timeout(). */
void redlock_set_timeout(struct redlock *redlock, int64_t timeout_ms);

/* Time limit for opening a connection, without the name lookup; by default the limit of a
 * request. */
void redlock_set_connect_timeout(struct redlock *redlock, int64_t timeout_ms);

/* Names the connection in the daemon's listings and log: 1 to 32 characters of A-Z a-z 0-9 _ . : -.
 * The library sends the label on each new connection. Returns REDLOCK_OK or REDLOCK_INVALID. */
enum redlock_status redlock_set_label(struct redlock *redlock, const char *label);

/* Sets the address for the next connection, in the format of redlock_new(): another daemon on the
 * same masters, or a numeric address if a name lookup must not block. Returns REDLOCK_OK or
 * REDLOCK_MEMORY. */
enum redlock_status redlock_set_url(struct redlock *redlock, const char *url);

/* Sets the secret that authenticates this client, 1 to 256 bytes without spaces; NULL removes it.
 * The library sends it first on each new connection, so set it before the first request. If the
 * daemon rejects the secret, all requests on that connection return REDLOCK_DENIED. The library
 * never prints the secret. Returns REDLOCK_OK or REDLOCK_INVALID. */
enum redlock_status redlock_set_secret(struct redlock *redlock, const char *secret);

/* --- locks ------------------------------------------------------------------------------------ */

/* A granted lock. The fields are read-only; a copy works like the original. */
struct redlock_lock {
    char resource[REDLOCK_RESOURCE_MAX + 1];
    char token[REDLOCK_TOKEN_LEN + 1]; /* needed to extend or release the lock; keep it secret */
    int64_t ttl_ms;
    int64_t deadline_ns; /* on CLOCK_BOOTTIME; 0 if the lock is not held, or no longer */
    int64_t fence;       /* fencing token; 0 if there is none */
    bool hold;           /* a HOLD: released when its connection ends */
};

/*
 * Options of an acquire. NULL and zeros mean: no wait, no fencing token, no HOLD.
 *
 * The daemon releases a HOLD when its connection ends, also if that is because the process was
 * killed. With LINGER, only redlock_release() and redlock_free() release it at once; otherwise it
 * lives until its deadline. Use LINGER if other processes work under the lock too.
 */
struct redlock_lock_options {
    int64_t wait_ms; /* longest wait in the queue, at most 24 hours; 0: do not wait */
    bool fence;      /* get a fencing token, greater than that of each earlier grant */
    bool hold;       /* HOLD: the daemon extends the lock while the connection lives, to max_hold */
    bool linger;     /* LINGER, with hold: keep the lock for its TTL if the process is killed */
};

/*
 * Acquires a lock. REDLOCK_OK fills *lock; any other status sets its deadline to 0.
 *
 * After a wait of about a hundred times the TTL, the clock drift subtracted from the validity
 * alone can put the deadline before the arrival of the grant. The library then extends the lock at
 * once. If that fails, it releases the lock and returns REDLOCK_LATE.
 *
 * With REDLOCK_HELD, *hint_ms is set to the earliest time in which the lock can be free, or to -1
 * if that is not known. hint_ms may be NULL.
 */
enum redlock_status redlock_acquire(struct redlock *redlock, const char *resource, int64_t ttl_ms,
                                    const struct redlock_lock_options *options,
                                    struct redlock_lock *lock, int64_t *hint_ms);

/*
 * Extends the lock to live at least ttl_ms from now. REDLOCK_OK sets the new deadline, which is
 * never earlier than the old one. REDLOCK_GONE sets it to 0. Any other status leaves it unchanged.
 *
 * Any daemon on the same masters can extend the lock. Only lock->resource and lock->token are
 * needed, so the lock may have been acquired elsewhere. If the old deadline had passed, another
 * client may have held the lock in between.
 */
enum redlock_status redlock_extend(struct redlock *redlock, struct redlock_lock *lock,
                                   int64_t ttl_ms);

/* Releases the lock and sets its deadline to 0, whatever the result. REDLOCK_OK: released.
 * REDLOCK_GONE: too few masters still had the lock for a quorum. Any other status: the release was
 * not confirmed, and the lock expires after its TTL at the latest. */
enum redlock_status redlock_release(struct redlock *redlock, struct redlock_lock *lock);

/* Milliseconds until the deadline, rounded down. At 0, stop work. */
int64_t redlock_left_ms(const struct redlock_lock *lock);

/* Asks whether the lock is held: REDLOCK_HELD, with *hint_ms as for redlock_acquire(), or
 * REDLOCK_FREE. */
enum redlock_status redlock_query(struct redlock *redlock, const char *resource, int64_t *hint_ms);

/*
 * For operators: releases the lock by force, without its token.
 *   REDLOCK_OK: released.
 *   REDLOCK_FREE: no client held it.
 *   REDLOCK_HELD: not released, because the lock changed hands meanwhile, is being granted right
 *     now, or is not a lock of redlockd. *hint_ms is set as for redlock_acquire().
 *   REDLOCK_NOQUORUM: too few masters answered; try again.
 * The holder is not stopped: see BREAK in docs/protocol.txt.
 */
enum redlock_status redlock_break(struct redlock *redlock, const char *resource, int64_t *hint_ms);

/* --- the daemon ------------------------------------------------------------------------------- */

/* Checks that the daemon answers. */
enum redlock_status redlock_ping(struct redlock *redlock);

/* Gets a listing: "NODES", "STATS", "CLIENTS", "LOCKS", "LOCKS <resource>", "HELP" or "VERSION".
 * The library calls line() for each line, without the final END. line() must not use the handle. */
enum redlock_status redlock_list(struct redlock *redlock, const char *listing,
                                 void (*line)(void *context, const char *text), void *context);

/* --- without blocking ------------------------------------------------------------------------- */

/*
 * Start a request, poll, and take the events:
 *
 *     const struct redlock_lock_options hold = {.hold = true};
 *     redlock_start_acquire(redlock, "deploy", 30000, &hold, &id);
 *     for (;;) {
 *         while (redlock_next(redlock, &event))
 *             ...
 *         struct pollfd fd = {.fd = redlock_fd(redlock), .events = POLLIN};
 *         poll(&fd, 1, -1);
 *     }
 *
 * 1024 requests may be under way. Each gets one answer, in any order. The blocking functions may be
 * mixed in: they keep answers to other requests for redlock_next().
 */
enum redlock_event_kind {
    REDLOCK_EVENT_ANSWER, /* the answer to request `id` */

    /* Events of a HOLD of this connection, named by its token. */
    REDLOCK_EVENT_LOST, /* the daemon can no longer extend the lock: stop now. Final */
    REDLOCK_EVENT_WARN, /* still held, but a master that holds the key has lost its vote */

    /* The connection has ended. Requests under way were answered with REDLOCK_BROKEN. The daemon no
     * longer extends the HOLDs. If it saw the connection close in order, it has released them,
     * except those with LINGER. */
    REDLOCK_EVENT_CLOSED,
};

struct redlock_event {
    enum redlock_event_kind kind;
    uint64_t id;
    enum redlock_status status; /* ANSWER: the result of the request */
    bool ended;                 /* ANSWER: the connection ended with this answer or before it */
    int64_t sent_ns;            /* ANSWER: CLOCK_BOOTTIME just before the request was sent */
    struct redlock_lock lock;   /* OK to acquire or extend; LOST, WARN: resource and token only */
    int64_t hint_ms;            /* HELD: earliest time in which the lock can be free; -1: unknown */
    unsigned place;             /* answer to redlock_start_place() */
    char reason[64];            /* LOST: "noquorum"; WARN: "<node>:<reason>" */
};

/*
 * The redlock_start_ functions connect if necessary. REDLOCK_OK: the request is under way, and *id
 * is its number; id may be NULL. REDLOCK_INVALID, REDLOCK_UNREACHABLE, REDLOCK_LIMIT or
 * REDLOCK_MEMORY: the request was not started, and there is no answer.
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
/* REDLOCK_OK without an earlier REDLOCK_EVENT_LOST proves that each HOLD of this connection is held
 * until sent_ns of the answer plus a third of its TTL. */
enum redlock_status redlock_start_ping(struct redlock *redlock, uint64_t *id);
/* Asks for this connection's place in the queue for the resource: 1 is next, 0 means that it does
 * not wait. The daemon answers without asking the masters. */
enum redlock_status redlock_start_place(struct redlock *redlock, const char *resource,
                                        uint64_t *id);

/* Gives up a request: it gets no answer, and a lock that it acquires or has acquired is released,
 * as after a timeout. If the connection has no other request and no HOLD, it is closed for this.
 * Otherwise keep calling redlock_next(). */
void redlock_cancel(struct redlock *redlock, uint64_t id);

/* Reads and writes as far as possible without blocking. Returns true if it has filled *event. */
bool redlock_next(struct redlock *redlock, struct redlock_event *event);

/*
 * A descriptor to watch for input with poll(2), epoll(7) or an event library. It is readable
 * whenever redlock_next() has work: to read, to write, or to end a request that has timed out. The
 * caller needs no other event and no timer. When the descriptor is readable, call redlock_next()
 * until it returns false. Spurious wake-ups are possible.
 *
 * The descriptor stays the same from the first call until redlock_free(), across reconnects. Do not
 * read from it, close it or watch it edge-triggered. -1: the process has no descriptor left; call
 * again later. After fork(2), the child must call this function before it watches the descriptor:
 * its number stays the same, but it then refers to a new epoll instance.
 */
int redlock_fd(struct redlock *redlock);

/* Whether the handle has a connection, as far as it knows. */
bool redlock_is_connected(const struct redlock *redlock);

/* The socket of the connection, for getpeername(2) and the like; -1 if there is none. Do not watch
 * it: the next connection can get the same number. */
int redlock_socket(const struct redlock *redlock);

#ifdef __cplusplus
}
#endif

#endif
