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
 * a connection, and opens a new one with its next request. (With redlock_take_over() the connection
 * belongs to the child instead.) This is true for any child with its own memory, in any PID
 * namespace, whichever system call created it.
 *
 * A child that does not use its copy of the handle must free it. Otherwise the child keeps the
 * parent's connection open until it calls execve(2) or ends. If the parent is killed meanwhile, the
 * daemon does not see that, and extends its HOLDs for up to max_hold.
 *
 * The library installs no signal handler, raises no SIGPIPE, writes nothing to standard error and
 * never ends the program.
 *
 * Time. Durations are milliseconds. A deadline is in nanoseconds of CLOCK_BOOTTIME. That clock
 * keeps running while this machine sleeps, and so do the TTLs on the masters. The lock is safe
 * until its deadline and not a moment longer: check the deadline before each step that needs the
 * lock, and stop in time.
 *
 * With each grant, the daemon reports the time that elapsed since the request arrived, and the
 * validity that was left then: the TTL less the duration of the round and less clock drift. The
 * deadline is the instant before the library sent the request, plus the elapsed time, plus the
 * validity. So a wait in the queue shortens the lock only by the drift that is possible meanwhile.
 * The transit between client and daemon does shorten it: a slow network makes the deadline earlier
 * than necessary, never later. So does the time until the caller takes the answer.
 * redlock_left_ms() says what is left.
 *
 * Blocking. A blocking function returns when the answer has arrived, at the latest after the
 * requested wait plus the handle's timeout. If the function has to connect first, add the connect
 * timeout. The functions redlock_start_...() and redlock_next() do the same without blocking, for
 * event loops.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_VERSION "0.2.0"

/* Lengths without the NUL: bytes of the longest resource name, digits of a token, and bytes of the
 * longest label. */
#define REDLOCK_RESOURCE_MAX 256
#define REDLOCK_TOKEN_LEN    40
#define REDLOCK_LABEL_MAX    32

/* The result of a request. redlock_error() describes a failure in words, with the details. */
enum redlock_status {
    REDLOCK_OK = 0,

    /* The daemon answered (docs/protocol.txt). */
    REDLOCK_HELD,     /* another client holds the lock, or several clients split the votes */
    REDLOCK_FREE,     /* no client holds the lock; only from queries and redlock_break() */
    REDLOCK_GONE,     /* this token does not hold the lock, and never will again */
    REDLOCK_NOQUORUM, /* too few masters could vote */
    REDLOCK_LATE,  /* granted with no validity left: a new lock was undone, and a lock that was to
                      be extended keeps its earlier deadline */
    REDLOCK_LIMIT, /* a limit of the daemon was reached, or the handle's limit of 1024 requests
                      that are under way or whose answers were not taken; redlock_error() says
                      which */
    REDLOCK_SHUTDOWN, /* the daemon is stopping; try another daemon */
    REDLOCK_DENIED,   /* not allowed, or not authenticated */
    REDLOCK_REFUSED,  /* the daemon rejected the request as malformed or out of range */

    /* There was no answer. After an acquire: if the daemon grants the lock all the same, it is
     * released. Only a grant that was in transit when the connection ended can stay until its TTL
     * ends. After an extend: the earlier deadline stays valid. After a release: either the lock was
     * released, or it expires after its TTL. */
    REDLOCK_UNREACHABLE, /* could not connect; nothing was sent */
    REDLOCK_BROKEN,      /* the connection ended before the answer */
    REDLOCK_TIMEOUT,     /* no answer in time; the next call handles a late answer */
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
 * The library resolves a host name with getaddrinfo(3), which can block longer than the timeout.
 */
struct redlock *redlock_new(const char *url);

/* Closes the connection cleanly and frees the handle. The daemon then releases all locks that it
 * holds for the connection, LINGER locks included. If there are such locks and the daemon does not
 * answer, this call takes up to 200 ms.
 *
 * Granted locks whose answers the caller has not taken are released. There are two exceptions, in
 * which such a lock expires after its TTL: its connection has ended already, or the library is
 * extending the lock, as redlock_acquire() describes. NULL is ignored. */
void redlock_free(struct redlock *redlock);

/* Drops the connection as if the network had lost it, for a connection on which requests time out.
 * Locks that the daemon holds for this connection live until their deadlines. The next request
 * connects again. If another process also has the connection open, the connection ends when that
 * process closes it.
 *
 * A unix socket cannot be dropped in this way: closing it is always a clean end, which would
 * release the locks that the daemon holds. A unix socket with such locks therefore stays open until
 * redlock_free(). Until then the daemon extends the locks, unless they are released. */
void redlock_abandon(struct redlock *redlock);

/* Gives the connection, with all locks that the daemon holds for it, to the calling child process.
 * The child must call this before it uses the handle in any other way. Afterwards no other process
 * is allowed to use the connection. For the daemon, the connection ends when the last process has
 * closed it, or when one process calls redlock_free(). */
void redlock_take_over(struct redlock *redlock);

/* The error message of the last function that failed, one line without a newline; "" if none has
 * failed. Valid until the next call with this handle. */
const char *redlock_error(const struct redlock *redlock);

/* Time limit of a request, without its wait in the queue; 5000 ms by default. There is always a
 * limit: a value below 1 counts as 1. */
void redlock_set_timeout(struct redlock *redlock, int64_t timeout_ms);

/* Time limit for opening a connection, without the name lookup; by default the time limit of a
 * request. A value below 1 counts as 1. */
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
    char resource[REDLOCK_RESOURCE_MAX + 1]; /* of a semaphore: the name of the granted slot */
    char token[REDLOCK_TOKEN_LEN + 1]; /* needed to extend or release the lock; keep it secret */
    int64_t ttl_ms;
    int64_t deadline_ns; /* on CLOCK_BOOTTIME; 0 if the lock is not held */
    int64_t fence;       /* fencing token; 0 if there is none */
    bool hold;           /* a HOLD: released when its connection ends cleanly */
};

/*
 * Options of an acquire. NULL and zeros mean: no wait, no fencing token, no HOLD, no slots.
 *
 * The daemon releases a HOLD at once when its connection ends cleanly: by redlock_free(), or
 * because the process ends, even if it is killed. (Over TCP, this requires that the process has
 * read everything that the daemon sent; otherwise its kernel resets the connection.) After any
 * other end of the connection, such as a failure of the network, the HOLD lives until its deadline.
 *
 * With LINGER, only redlock_release() and redlock_free() release the HOLD at once. After any other
 * end of the connection it lives until its deadline. Use LINGER if other processes also rely on the
 * lock.
 *
 * With slots, the name is a semaphore: at most this many clients hold it at the same time. Each is
 * granted one of the locks <name>#1 to <name>#<slots>, and lock->resource says which. From then on
 * it is an ordinary lock with that name ("SLOTS" in docs/protocol.txt).
 */
struct redlock_lock_options {
    int64_t wait_ms; /* longest wait in the queue, at most 24 hours; 0: do not wait */
    bool fence;      /* get a fencing token, greater than that of each earlier grant */
    bool hold;       /* HOLD: the daemon extends the lock until the connection ends, or max_hold */
    bool linger;     /* LINGER, with hold: keep the lock for its TTL if the process is killed */
    unsigned slots;  /* SLOTS: acquire one of this many slots, at most 1000; 0: the lock itself */
};

/*
 * Acquires a lock. REDLOCK_OK fills *lock; any other status sets its deadline to 0.
 *
 * The deadline allows for clock drift during the wait, by default 1 % of the wait. So after a wait
 * of about a hundred times the TTL, the grant can arrive past its deadline. The library then
 * extends the lock at once. If that fails, the library releases the lock and returns REDLOCK_LATE.
 *
 * With REDLOCK_HELD, *hint_ms is set to the milliseconds after which the lock can be free if no
 * client extends or releases it, or to -1 if that is not known. hint_ms may be NULL.
 */
enum redlock_status redlock_acquire(struct redlock *redlock, const char *resource, int64_t ttl_ms,
                                    const struct redlock_lock_options *options,
                                    struct redlock_lock *lock, int64_t *hint_ms);

/*
 * Extends the lock to live at least ttl_ms from now. REDLOCK_OK sets the new deadline, which is
 * never earlier than the old one. REDLOCK_GONE sets it to 0. Any other status leaves it unchanged.
 *
 * Any daemon on the same masters can extend the lock. Only lock->resource and lock->token are
 * needed, so another handle or process can have acquired the lock. If the old deadline had passed,
 * another client may have held the lock in between.
 */
enum redlock_status redlock_extend(struct redlock *redlock, struct redlock_lock *lock,
                                   int64_t ttl_ms);

/* Releases the lock and sets its deadline to 0, whatever the result. REDLOCK_OK: released.
 * REDLOCK_GONE: the lock was no longer held, since less than a quorum of the masters still had it.
 * Any other status: the release was not confirmed, and the lock expires after its TTL at the
 * latest, unless another connection has it as a HOLD. */
enum redlock_status redlock_release(struct redlock *redlock, struct redlock_lock *lock);

/* Milliseconds until the deadline, rounded down. At 0, stop work. */
int64_t redlock_left_ms(const struct redlock_lock *lock);

/* Asks whether the lock is held: REDLOCK_HELD, with *hint_ms as for redlock_acquire(), or
 * REDLOCK_FREE. */
enum redlock_status redlock_query(struct redlock *redlock, const char *resource, int64_t *hint_ms);

/* Asks how many of the slots <resource>#1 to <resource>#<slots> are held: REDLOCK_HELD if all are,
 * with *hint_ms the smallest hint of all slots, otherwise REDLOCK_FREE. Both set *held; slots of
 * which it is not certain count as held. held and hint_ms may be NULL. */
enum redlock_status redlock_query_slots(struct redlock *redlock, const char *resource,
                                        unsigned slots, unsigned *held, int64_t *hint_ms);

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
 * A daemon that is stopped or cut off says nothing, so a loop that relies on a HOLD also needs
 * redlock_start_ping(), and a timeout for poll(): see the last example in libredlock(3).
 *
 * Up to 1024 requests can be under way at once. Each request gets one answer, in any order. The
 * blocking functions can be called in between: they keep the answers to other requests for
 * redlock_next().
 *
 * Two things block: connecting does, in a redlock_start_ function; and if a request was given up on
 * a connection that has requested LINGER locks, and the daemon does not answer, closing this
 * connection takes up to 200 ms.
 */
enum redlock_event_kind {
    REDLOCK_EVENT_ANSWER, /* the answer to request `id` */

    /* Events of a HOLD of this connection, named by its token. */
    REDLOCK_EVENT_LOST, /* the daemon can no longer extend the lock: stop work now */
    REDLOCK_EVENT_WARN, /* still held, but a master that holds the key has lost its vote */

    /* The connection has ended. Each request under way gets REDLOCK_BROKEN or a more specific
     * status as its answer. The daemon no longer extends the HOLDs of this connection. If the
     * daemon saw a clean end, it has released the HOLDs, except those with LINGER. */
    REDLOCK_EVENT_CLOSED,
};

struct redlock_event {
    enum redlock_event_kind kind;
    uint64_t id;
    enum redlock_status status; /* ANSWER: the result of the request */
    bool ended;                 /* ANSWER: the connection ended with this answer or before it */
    int64_t sent_ns;            /* ANSWER: CLOCK_BOOTTIME just before the request was sent */
    struct redlock_lock lock;   /* OK to acquire or extend; LOST, WARN: resource and token only */
    int64_t hint_ms;            /* HELD: as *hint_ms of redlock_acquire(); -1: unknown */
    unsigned place;             /* answer to redlock_start_place() */
    unsigned held;              /* HELD or FREE to redlock_start_query_slots() */
    char reason[64];            /* LOST: a word like "noquorum"; WARN: "<node>:<reason>" */
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
enum redlock_status redlock_start_query_slots(struct redlock *redlock, const char *resource,
                                              unsigned slots, uint64_t *id);
/* If the answer is REDLOCK_OK and no REDLOCK_EVENT_LOST came before it, each HOLD of this
 * connection is held until sent_ns of the answer plus a third of the HOLD's TTL. */
enum redlock_status redlock_start_ping(struct redlock *redlock, uint64_t *id);
/* Asks for this connection's place in the queue for the resource: 1 means that the connection is
 * next, 0 that it does not wait. The daemon answers without asking the masters. */
enum redlock_status redlock_start_place(struct redlock *redlock, const char *resource,
                                        uint64_t *id);

/* Gives up a request: it gets no answer. A lock that the request acquires or has acquired is
 * released, as after a timeout. If the connection has no other request and no HOLD, the library
 * closes the connection to release the lock. Only a grant in transit at that moment can stay until
 * its TTL ends. Otherwise keep calling redlock_next(), which releases the lock when it is granted.
 * A lock that was granted on a connection that has ended since is released only if another request
 * connects within the timeout; otherwise it expires. */
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

/* Whether the handle has a connection. The library may not have noticed yet that it ended. */
bool redlock_is_connected(const struct redlock *redlock);

/* The socket of the connection, for getpeername(2) and the like; -1 if there is none. Do not watch
 * it: the next connection can get the same number. */
int redlock_socket(const struct redlock *redlock);

#ifdef __cplusplus
}
#endif

#endif
