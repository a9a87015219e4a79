#include "client/c/redlock.h"

#include <stdlib.h>
#include <string.h>

#include "client/c/handle.h"
#include "protocol/address.h"
#include "protocol/units.h"

const char *redlock_status_word(enum redlock_status status)
{
    static const char *const words[] = {
        [REDLOCK_OK] = "ok",
        [REDLOCK_HELD] = "held",
        [REDLOCK_FREE] = "free",
        [REDLOCK_GONE] = "gone",
        [REDLOCK_NOQUORUM] = "noquorum",
        [REDLOCK_LATE] = "late",
        [REDLOCK_LIMIT] = "limit",
        [REDLOCK_SHUTDOWN] = "shutdown",
        [REDLOCK_DENIED] = "denied",
        [REDLOCK_REFUSED] = "refused",
        [REDLOCK_UNREACHABLE] = "unreachable",
        [REDLOCK_BROKEN] = "broken",
        [REDLOCK_TIMEOUT] = "timeout",
        [REDLOCK_GARBLED] = "garbled",
        [REDLOCK_INVALID] = "invalid",
        [REDLOCK_MEMORY] = "memory",
    };
    return (unsigned)status <= REDLOCK_MEMORY ? words[status] : "unknown";
}

/* --- the handle --- */

/* The address for messages: without a password, and without bytes that a terminal interprets. */
static void name_peer(struct redlock *redlock, const char *url)
{
    memset(redlock->peer, 0, sizeof(redlock->peer));
    if (!address_is_printable(url)) {
        strcpy(redlock->peer, "the address");
        return;
    }
    for (size_t i = 0; url[i] != '\0' && i < sizeof(redlock->peer) - 1; i++)
        redlock->peer[i] = url[i] >= ' ' && url[i] < 0x7f ? url[i] : '?';
}

struct redlock *redlock_new(const char *url)
{
    struct redlock *redlock = calloc(1, sizeof(*redlock));
    if (redlock == NULL)
        return NULL;
    redlock->url = strdup(url != NULL ? url : "");
    if (redlock->url == NULL || !fork_mark_init(&redlock->owner)) {
        free(redlock->url);
        free(redlock);
        return NULL;
    }
    proto_init(&redlock->proto);
    name_peer(redlock, redlock->url);
    redlock->proto.peer = redlock->peer;
    redlock->fd = -1;
    wakeup_init(&redlock->wakeup);
    redlock_set_timeout(redlock, HANDLE_TIMEOUT_MS);
    return redlock;
}

void redlock_free(struct redlock *redlock)
{
    if (redlock == NULL)
        return;
    handle_detach_after_fork(redlock);
    /* Release each lock whose grant the caller has not taken. */
    proto_cancel_all(&redlock->proto, handle_clock_ns());
    /* If no request is under way, do not read: an answer can be that of a child process which had
     * taken over the connection and has ended. It would be taken for garbage, and the connection
     * would be reset instead of closed. */
    if (redlock->fd >= 0 && (redlock->proto.living > 0 || redlock->proto.abandoned > 0))
        handle_pump(redlock);
    if (redlock->fd >= 0)
        handle_close(redlock);
    handle_close_parked(redlock);
    proto_free(&redlock->proto);
    wakeup_close(&redlock->wakeup);
    fork_mark_deinit(&redlock->owner);
    free(redlock->url);
    explicit_bzero(redlock, sizeof(*redlock)); /* contains the secret */
    free(redlock);
}

void redlock_abandon(struct redlock *redlock)
{
    handle_reset(redlock, "the connection was given up");
    handle_arm(redlock);
}

void redlock_take_over(struct redlock *redlock)
{
    fork_mark_set(&redlock->owner);
}

const char *redlock_error(const struct redlock *redlock)
{
    return redlock->proto.error;
}

static int64_t within_bounds(int64_t timeout_ms)
{
    return min(max(timeout_ms, 1), CLIENT_REQUEST_TIMEOUT_MAX_MS);
}

void redlock_set_timeout(struct redlock *redlock, int64_t timeout_ms)
{
    redlock->proto.timeout_ns = within_bounds(timeout_ms) * NS_PER_MS;
}

void redlock_set_connect_timeout(struct redlock *redlock, int64_t timeout_ms)
{
    redlock->connect_timeout_ns = within_bounds(timeout_ms) * NS_PER_MS;
}

enum redlock_status redlock_set_label(struct redlock *redlock, const char *label)
{
    if (!client_request_label_is_fine(label))
        return proto_fail(&redlock->proto, REDLOCK_INVALID,
                          "the label must be 1 to %d characters of A-Z a-z 0-9 _ . : -",
                          REDLOCK_LABEL_MAX);
    proto_set_label(&redlock->proto, label, redlock->fd >= 0);
    handle_arm(redlock);
    return REDLOCK_OK;
}

enum redlock_status redlock_set_secret(struct redlock *redlock, const char *secret)
{
    if (secret != NULL && !client_request_secret_is_fine(secret))
        return proto_fail(&redlock->proto, REDLOCK_INVALID,
                          "the secret must have 1 to %d bytes and no spaces or control characters",
                          LIMIT_SECRET);
    proto_set_secret(&redlock->proto, secret);
    return REDLOCK_OK;
}

enum redlock_status redlock_set_url(struct redlock *redlock, const char *url)
{
    char *copy = strdup(url != NULL ? url : "");
    if (copy == NULL)
        return proto_fail(&redlock->proto, REDLOCK_MEMORY, "out of memory");
    free(redlock->url);
    redlock->url = copy;
    name_peer(redlock, copy);
    return REDLOCK_OK;
}

int64_t redlock_left_ms(const struct redlock_lock *lock)
{
    if (lock->deadline_ns == 0)
        return 0;
    int64_t left_ns = lock->deadline_ns - handle_clock_ns();
    return left_ns > 0 ? left_ns / NS_PER_MS : 0;
}

/* --- without blocking --- */

static enum redlock_status start(struct redlock *redlock, bool fine,
                                 const struct client_request *request, const struct error *error,
                                 uint64_t *id)
{
    if (!fine)
        return proto_fail(&redlock->proto, REDLOCK_INVALID, "%s", error->text);
    return handle_ask(redlock, request, NULL, NULL, id);
}

enum redlock_status redlock_start_acquire(struct redlock *redlock, const char *resource,
                                          int64_t ttl_ms,
                                          const struct redlock_lock_options *options, uint64_t *id)
{
    struct client_request request;
    struct error error;
    bool fine = client_request_acquire(&request, resource, ttl_ms, options, &error);
    return start(redlock, fine, &request, &error, id);
}

enum redlock_status redlock_start_extend(struct redlock *redlock, const struct redlock_lock *lock,
                                         int64_t ttl_ms, uint64_t *id)
{
    struct client_request request;
    struct error error;
    bool fine = client_request_extend(&request, lock, ttl_ms, &error);
    return start(redlock, fine, &request, &error, id);
}

enum redlock_status redlock_start_release(struct redlock *redlock, const struct redlock_lock *lock,
                                          uint64_t *id)
{
    struct client_request request;
    struct error error;
    bool fine = client_request_release(&request, lock->resource, lock->token, &error);
    return start(redlock, fine, &request, &error, id);
}

static enum redlock_status start_about(struct redlock *redlock, enum client_request_kind kind,
                                       const char *resource, uint64_t *id)
{
    struct client_request request;
    struct error error;
    bool fine = client_request_about(&request, kind, resource, &error);
    return start(redlock, fine, &request, &error, id);
}

enum redlock_status redlock_start_query(struct redlock *redlock, const char *resource, uint64_t *id)
{
    return start_about(redlock, CLIENT_REQUEST_QUERY, resource, id);
}

enum redlock_status redlock_start_query_slots(struct redlock *redlock, const char *resource,
                                              unsigned slots, uint64_t *id)
{
    struct client_request request;
    struct error error;
    bool fine = client_request_query_slots(&request, resource, slots, &error);
    return start(redlock, fine, &request, &error, id);
}

enum redlock_status redlock_start_place(struct redlock *redlock, const char *resource, uint64_t *id)
{
    return start_about(redlock, CLIENT_REQUEST_PLACE, resource, id);
}

enum redlock_status redlock_start_ping(struct redlock *redlock, uint64_t *id)
{
    return handle_ask(redlock, &(struct client_request){.kind = CLIENT_REQUEST_PING}, NULL, NULL,
                      id);
}

void redlock_cancel(struct redlock *redlock, uint64_t id)
{
    /* The answer may have arrived already: handle it first. */
    handle_pump(redlock);
    proto_cancel(&redlock->proto, id, handle_clock_ns());
    handle_pump(redlock);
    handle_arm(redlock);
}

bool redlock_next(struct redlock *redlock, struct redlock_event *event)
{
    handle_detach_after_fork(redlock);
    if (TAILQ_EMPTY(&redlock->proto.notices))
        handle_pump(redlock);
    bool taken = proto_take(&redlock->proto, event);
    handle_arm(redlock);
    return taken;
}

int redlock_fd(struct redlock *redlock)
{
    struct wakeup *wakeup = &redlock->wakeup;
    handle_detach_after_fork(redlock);
    if (wakeup->epoll < 0 && wakeup_open(wakeup) && redlock->fd >= 0 &&
        !wakeup_watch(wakeup, redlock->fd))
        wakeup_close(wakeup);
    handle_arm(redlock);
    return wakeup->epoll;
}

bool redlock_is_connected(const struct redlock *redlock)
{
    return redlock->fd >= 0 && fork_mark_is_ours(&redlock->owner);
}

int redlock_socket(const struct redlock *redlock)
{
    return redlock_is_connected(redlock) ? redlock->fd : -1;
}

/* --- blocking --- */

/* Pumps until the answer is there. Fills *event unless the request was not started. */
static enum redlock_status await(struct redlock *redlock, enum redlock_status started,
                                 const uint64_t *id, struct redlock_event *event)
{
    if (started != REDLOCK_OK)
        return started;
    while (!proto_take_answer(&redlock->proto, *id, event)) {
        handle_wait(redlock);
        handle_pump(redlock);
    }
    handle_arm(redlock);
    return event->status;
}

enum redlock_status redlock_acquire(struct redlock *redlock, const char *resource, int64_t ttl_ms,
                                    const struct redlock_lock_options *options,
                                    struct redlock_lock *lock, int64_t *hint_ms)
{
    uint64_t id;
    struct redlock_event event;
    enum redlock_status started = redlock_start_acquire(redlock, resource, ttl_ms, options, &id);
    /* Clear *lock only after the request has been copied: `resource` can point into *lock. */
    *lock = (struct redlock_lock){0};
    enum redlock_status status = await(redlock, started, &id, &event);
    if (status == REDLOCK_OK)
        *lock = event.lock;
    if (status == REDLOCK_HELD && hint_ms != NULL)
        *hint_ms = event.hint_ms;
    return status;
}

enum redlock_status redlock_extend(struct redlock *redlock, struct redlock_lock *lock,
                                   int64_t ttl_ms)
{
    uint64_t id;
    struct redlock_event event;
    enum redlock_status started = redlock_start_extend(redlock, lock, ttl_ms, &id);
    enum redlock_status status = await(redlock, started, &id, &event);
    if (status == REDLOCK_OK)
        *lock = event.lock;
    if (status == REDLOCK_GONE)
        lock->deadline_ns = 0;
    return status;
}

enum redlock_status redlock_release(struct redlock *redlock, struct redlock_lock *lock)
{
    uint64_t id;
    struct redlock_event event;
    lock->deadline_ns = 0;
    return await(redlock, redlock_start_release(redlock, lock, &id), &id, &event);
}

/* Awaits an answer that says whether the lock is held; of several slots, how many are. */
static enum redlock_status await_state(struct redlock *redlock, enum redlock_status started,
                                       const uint64_t *id, unsigned *held, int64_t *hint_ms)
{
    struct redlock_event event;
    enum redlock_status status = await(redlock, started, id, &event);
    if (status == REDLOCK_HELD && hint_ms != NULL)
        *hint_ms = event.hint_ms;
    if ((status == REDLOCK_HELD || status == REDLOCK_FREE) && held != NULL)
        *held = event.held;
    return status;
}

enum redlock_status redlock_query(struct redlock *redlock, const char *resource, int64_t *hint_ms)
{
    uint64_t id;
    enum redlock_status started = redlock_start_query(redlock, resource, &id);
    return await_state(redlock, started, &id, NULL, hint_ms);
}

enum redlock_status redlock_query_slots(struct redlock *redlock, const char *resource,
                                        unsigned slots, unsigned *held, int64_t *hint_ms)
{
    uint64_t id;
    enum redlock_status started = redlock_start_query_slots(redlock, resource, slots, &id);
    return await_state(redlock, started, &id, held, hint_ms);
}

enum redlock_status redlock_break(struct redlock *redlock, const char *resource, int64_t *hint_ms)
{
    uint64_t id;
    enum redlock_status started = start_about(redlock, CLIENT_REQUEST_BREAK, resource, &id);
    return await_state(redlock, started, &id, NULL, hint_ms);
}

enum redlock_status redlock_ping(struct redlock *redlock)
{
    uint64_t id;
    struct redlock_event event;
    return await(redlock, redlock_start_ping(redlock, &id), &id, &event);
}

enum redlock_status redlock_list(struct redlock *redlock, const char *listing,
                                 void (*line)(void *context, const char *text), void *context)
{
    uint64_t id;
    struct client_request request;
    struct redlock_event event;
    struct error error;
    if (!client_request_list(&request, listing, &error))
        return proto_fail(&redlock->proto, REDLOCK_INVALID, "%s", error.text);
    return await(redlock, handle_ask(redlock, &request, line, context, &id), &id, &event);
}
