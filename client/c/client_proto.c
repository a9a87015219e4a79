#include "client/c/client_proto.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/client_result.h"
#include "protocol/units.h"

void proto_init(struct client_proto *proto)
{
    memset(proto, 0, sizeof(*proto));
    TAILQ_INIT(&proto->idle);
    TAILQ_INIT(&proto->outgoing);
    TAILQ_INIT(&proto->notices);
    proto->peer = "";
}

enum redlock_status proto_fail(struct client_proto *proto, enum redlock_status status,
                               const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(proto->error, sizeof(proto->error), form, arguments);
    va_end(arguments);
    return status;
}

/* --- one request --- */

/* The only place that changes the state or the recipient of an exchange. */
static void set_state(struct client_proto *proto, struct exchange *exchange,
                      enum exchange_state state, enum exchange_for recipient)
{
    bool was_wanted = exchange->state != EXCHANGE_IDLE && exchange->recipient != TO_NONE;
    bool is_wanted = state != EXCHANGE_IDLE && recipient != TO_NONE;
    bool was_abandoned = exchange->state != EXCHANGE_IDLE && exchange->recipient == TO_NONE;
    bool is_abandoned = state != EXCHANGE_IDLE && recipient == TO_NONE;
    proto->living += (unsigned)is_wanted - (unsigned)was_wanted;
    proto->abandoned += (unsigned)is_abandoned - (unsigned)was_abandoned;
    if (exchange->state == EXCHANGE_QUEUED)
        TAILQ_REMOVE(&proto->outgoing, exchange, entry);
    if (state == EXCHANGE_QUEUED)
        TAILQ_INSERT_TAIL(&proto->outgoing, exchange, entry);
    exchange->state = state;
    exchange->recipient = recipient;
}

static void recycle(struct client_proto *proto, struct exchange *exchange)
{
    if (exchange->state == EXCHANGE_IDLE && !exchange->notice.queued)
        TAILQ_INSERT_HEAD(&proto->idle, exchange, entry);
}

/* Ends a request: it is no longer under way. */
static void retire(struct client_proto *proto, struct exchange *exchange)
{
    free(exchange->hold);
    exchange->hold = NULL;
    set_state(proto, exchange, EXCHANGE_IDLE, exchange->recipient);
    recycle(proto, exchange);
}

static void notify_caller(struct client_proto *proto, struct exchange *exchange)
{
    if (exchange->recipient == TO_CALLER)
        notice_queue(&proto->notices, &exchange->notice);
}

static void finish(struct client_proto *proto, struct exchange *exchange)
{
    notify_caller(proto, exchange);
    retire(proto, exchange);
}

/* The id of the next request: a running number, combined with the index of its exchange. */
static uint64_t next_id(struct client_proto *proto, const struct exchange *exchange)
{
    return ++proto->sequence * LIMIT_CLIENT_REQUESTS + exchange->index;
}

static struct exchange *at_index(struct client_proto *proto, uint64_t id)
{
    uint64_t index = id % LIMIT_CLIENT_REQUESTS;
    return index < proto->made ? proto->exchange[index] : NULL;
}

/* Takes an exchange off the idle list, or allocates one. NULL: the limit is reached, or there is no
 * memory. */
static struct exchange *new_exchange(struct client_proto *proto)
{
    struct exchange *exchange = TAILQ_FIRST(&proto->idle);
    if (exchange != NULL) {
        TAILQ_REMOVE(&proto->idle, exchange, entry);
        return exchange;
    }
    if (proto->made == LIMIT_CLIENT_REQUESTS || (exchange = calloc(1, sizeof(*exchange))) == NULL)
        return NULL;
    exchange->index = proto->made;
    proto->exchange[proto->made++] = exchange;
    return exchange;
}

enum redlock_status proto_ask(struct client_proto *proto, const struct client_request *request,
                              int64_t now_ns, void (*line)(void *context, const char *text),
                              void *context, uint64_t *id)
{
    bool holds = request->kind == CLIENT_REQUEST_ACQUIRE && request->hold;
    struct exchange *exchange = new_exchange(proto);
    if (exchange == NULL && proto->made == LIMIT_CLIENT_REQUESTS)
        return proto_fail(proto, REDLOCK_LIMIT,
                          "%d requests are under way, or their answers have not been taken yet",
                          LIMIT_CLIENT_REQUESTS);
    if (exchange == NULL)
        return proto_fail(proto, REDLOCK_MEMORY, "out of memory");
    if (holds && (exchange->hold = calloc(1, sizeof(*exchange->hold))) == NULL) {
        recycle(proto, exchange);
        return proto_fail(proto, REDLOCK_MEMORY, "out of memory");
    }
    /* The caller no longer uses this token, so LOST and WARN about it are of no interest. */
    if (request->kind == CLIENT_REQUEST_RELEASE)
        holds_remove(&proto->holds, &proto->notices, request->token);
    exchange->id = next_id(proto, exchange);
    exchange->request = *request;
    proto->lingers = proto->lingers || (request->kind == CLIENT_REQUEST_ACQUIRE && request->linger);
    exchange->confirms = exchange->lost = false;
    exchange->sent_ns = now_ns;
    exchange->until_ns = now_ns + request->wait_ms * NS_PER_MS + proto->timeout_ns;
    exchange->event = (struct redlock_event){.kind = REDLOCK_EVENT_ANSWER, .id = exchange->id};
    exchange->notice.kind = REDLOCK_EVENT_ANSWER;
    exchange->text[0] = '\0';
    exchange->line = line;
    exchange->context = context;
    set_state(proto, exchange, EXCHANGE_QUEUED, TO_CALLER);
    *id = exchange->id;
    return REDLOCK_OK;
}

/* --- giving up --- */

/* Releases a lock that was granted to this exchange and that the caller does not want. */
static void give_back(struct client_proto *proto, struct exchange *exchange, const char *resource,
                      const char *token, int64_t now_ns)
{
    struct client_request release = {.kind = CLIENT_REQUEST_RELEASE};
    memcpy(release.resource, resource, sizeof(release.resource));
    memcpy(release.token, token, sizeof(release.token));
    free(exchange->hold);
    exchange->hold = NULL;
    exchange->request = release;
    exchange->confirms = false;
    exchange->id = next_id(proto, exchange);
    exchange->until_ns = now_ns + proto->timeout_ns;
    set_state(proto, exchange, EXCHANGE_QUEUED, TO_LIBRARY);
}

static void give_up(struct client_proto *proto, struct exchange *exchange, int64_t now_ns)
{
    bool queued = exchange->state == EXCHANGE_QUEUED; /* not sent yet */
    exchange->line = NULL;
    if (queued && exchange->confirms) {
        give_back(proto, exchange, exchange->request.resource, exchange->request.token, now_ns);
    } else if (queued) {
        retire(proto, exchange);
    } else if (exchange->confirms && exchange->hold == NULL && exchange->recipient == TO_CALLER) {
        /* Closing the connection undoes pending acquires and releases HOLDs, but it does not
         * release a lock without HOLD that was granted already. So wait for this answer, with a
         * new timeout. */
        exchange->until_ns = now_ns + proto->timeout_ns;
        set_state(proto, exchange, EXCHANGE_SENT, TO_LIBRARY);
    } else {
        set_state(proto, exchange, EXCHANGE_SENT, TO_NONE);
    }
}

static void cancel(struct client_proto *proto, struct exchange *exchange, int64_t now_ns)
{
    /* The caller has not taken the answer, so it does not know that it holds a lock. */
    if (exchange->notice.queued) {
        struct redlock_event *event = &exchange->event;
        notice_drop(&proto->notices, &exchange->notice);
        bool acquires = exchange->request.kind == CLIENT_REQUEST_ACQUIRE || exchange->confirms;
        if (event->status == REDLOCK_OK && acquires) {
            holds_remove(&proto->holds, &proto->notices, event->lock.token);
            give_back(proto, exchange, event->lock.resource, event->lock.token, now_ns);
        }
        recycle(proto, exchange);
    } else if (exchange->state != EXCHANGE_IDLE && exchange->recipient == TO_CALLER) {
        give_up(proto, exchange, now_ns);
    }
}

void proto_cancel(struct client_proto *proto, uint64_t id, int64_t now_ns)
{
    struct exchange *exchange = at_index(proto, id);
    if (exchange != NULL && exchange->event.id == id)
        cancel(proto, exchange, now_ns);
}

void proto_cancel_all(struct client_proto *proto, int64_t now_ns)
{
    for (unsigned i = 0; i < proto->made; i++)
        cancel(proto, proto->exchange[i], now_ns);
}

void proto_expire(struct client_proto *proto, int64_t now_ns)
{
    for (unsigned i = 0; i < proto->made; i++) {
        struct exchange *exchange = proto->exchange[i];
        if (exchange->state == EXCHANGE_IDLE || exchange->recipient == TO_NONE ||
            exchange->until_ns > now_ns)
            continue;
        if (exchange->state == EXCHANGE_SENT && proto->last_input_ns <= exchange->sent_ns) {
            if (!proto->silent || exchange->sent_ns < proto->silent_since_ns)
                proto->silent_since_ns = exchange->sent_ns;
            proto->silent = true;
        }
        if (exchange->recipient == TO_CALLER) {
            exchange->event.status = REDLOCK_TIMEOUT;
            exchange->event.sent_ns = exchange->sent_ns;
            snprintf(exchange->text, sizeof(exchange->text), "%s did not answer in time",
                     proto->peer);
        }
        notify_caller(proto, exchange);
        give_up(proto, exchange, now_ns);
    }
}

int64_t proto_until_ns(const struct client_proto *proto)
{
    int64_t until_ns = INT64_MAX;
    for (unsigned i = 0; proto->living > 0 && i < proto->made; i++) {
        const struct exchange *exchange = proto->exchange[i];
        if (exchange->state != EXCHANGE_IDLE && exchange->recipient != TO_NONE &&
            exchange->until_ns < until_ns)
            until_ns = exchange->until_ns;
    }
    return until_ns;
}

bool proto_is_spent(const struct client_proto *proto)
{
    return proto->abandoned > 0 && proto->living == 0 && proto->holds.count == 0;
}

bool proto_is_dead(const struct client_proto *proto, int64_t now_ns)
{
    return proto->silent && proto->holds.count > 0 &&
           now_ns - proto->silent_since_ns >= proto->longest_hold_ns;
}

/* --- the connection --- */

void proto_begin(struct client_proto *proto)
{
    /* If the previous connection had no HOLD, the caller lost nothing when it ended, and need not
     * hear of its end. */
    if (!proto->closed_on_holds)
        notice_drop(&proto->notices, &proto->closed);
    proto->name_due = proto->label[0] != '\0';
    proto->name_sent = false;
    proto->auth_due = proto->secret[0] != '\0';
    proto->auth_sent = false;
    proto->last_input_ns = 0;
    proto->silent = false;
    proto->longest_hold_ns = 0;
    proto->lingers = false;
    proto->input_len = 0;
}

void proto_set_secret(struct client_proto *proto, const char *secret)
{
    explicit_bzero(proto->secret, sizeof(proto->secret));
    if (secret != NULL)
        memcpy(proto->secret, secret, strlen(secret));
}

static void fail_event(const struct client_proto *proto, struct exchange *exchange,
                       enum redlock_status status, const char *why)
{
    exchange->event.status = status;
    exchange->event.ended = true;
    exchange->event.sent_ns = exchange->sent_ns;
    snprintf(exchange->text, sizeof(exchange->text), "%s: %s", proto->peer, why);
}

void proto_disown_answers(struct client_proto *proto, const char *why)
{
    for (unsigned i = 0; i < proto->made; i++) {
        struct exchange *exchange = proto->exchange[i];
        if (!exchange->notice.queued || exchange->event.status != REDLOCK_OK)
            continue;
        fail_event(proto, exchange, REDLOCK_BROKEN, why);
        exchange->event.lock = (struct redlock_lock){0};
    }
}

void proto_end(struct client_proto *proto, enum redlock_status status, const char *why, bool notify)
{
    for (unsigned i = 0; i < proto->made; i++) {
        struct exchange *exchange = proto->exchange[i];
        if (exchange->state == EXCHANGE_IDLE)
            continue;
        if (exchange->recipient == TO_CALLER)
            fail_event(proto, exchange, status, why);
        finish(proto, exchange);
    }
    proto->ended_on_holds = proto->holds.count > 0;
    proto->closed_on_holds =
        proto->ended_on_holds || (proto->closed.queued && proto->closed_on_holds);
    holds_clear(&proto->holds, &proto->notices);
    proto->closed.kind = REDLOCK_EVENT_CLOSED;
    if (notify)
        notice_queue(&proto->notices, &proto->closed);
}

void proto_set_label(struct client_proto *proto, const char *label, bool connected)
{
    memcpy(proto->label, label, strlen(label) + 1);
    proto->name_due = connected;
}

bool proto_has_output(const struct client_proto *proto)
{
    return proto->auth_due || (proto->name_due && !proto->name_sent) ||
           !TAILQ_EMPTY(&proto->outgoing);
}

size_t proto_write(struct client_proto *proto, int64_t now_ns, char *buf, size_t size)
{
    struct exchange *exchange;
    size_t len = 0;
    /* AUTH must come before every other request. */
    if (proto->auth_due) {
        if (size < CLIENT_REQUEST_LINE)
            return 0;
        len = client_request_format_secret(proto->secret, buf);
        proto->auth_due = false;
        proto->auth_sent = true;
    }
    if (proto->name_due && !proto->name_sent && size - len >= CLIENT_REQUEST_LINE) {
        len += client_request_format_name(proto->label, buf + len);
        proto->name_due = false;
        proto->name_sent = true;
    }
    while (size - len >= CLIENT_REQUEST_LINE &&
           (exchange = TAILQ_FIRST(&proto->outgoing)) != NULL) {
        len += client_request_format(&exchange->request, exchange->id, buf + len);
        exchange->sent_ns = now_ns;
        set_state(proto, exchange, EXCHANGE_SENT, exchange->recipient);
    }
    return len;
}

/* --- answers --- */

/* Passes the grant to the caller, and records the hold if HOLD was requested. */
static void deliver_grant(struct client_proto *proto, struct exchange *exchange,
                          const struct redlock_event *event)
{
    int64_t ttl_ns = event->lock.ttl_ms * NS_PER_MS;
    notify_caller(proto, exchange);
    if (exchange->hold != NULL) {
        proto->longest_hold_ns = max(proto->longest_hold_ns, ttl_ns);
        holds_add(&proto->holds, exchange->hold, &event->lock);
        exchange->hold = NULL;
    }
    retire(proto, exchange);
}

/* A grant arrived past its deadline. Queues an EXTEND: the answer to it shows whether the lock is
 * still held. */
static void confirm(struct client_proto *proto, struct exchange *exchange,
                    const struct redlock_lock *granted, int64_t now_ns)
{
    struct client_request extend = {
        .kind = CLIENT_REQUEST_EXTEND, .ttl_ms = granted->ttl_ms, .earlier = *granted};
    memcpy(extend.resource, granted->resource, sizeof(extend.resource));
    memcpy(extend.token, granted->token, sizeof(extend.token));
    exchange->event =
        (struct redlock_event){.kind = REDLOCK_EVENT_ANSWER, .id = exchange->event.id};
    exchange->request = extend;
    exchange->confirms = true;
    exchange->id = next_id(proto, exchange);
    exchange->until_ns = min(exchange->until_ns, now_ns + proto->timeout_ns);
    set_state(proto, exchange, EXCHANGE_QUEUED, TO_CALLER);
}

/* Handles the answer to the EXTEND that confirms a late grant. If the answer is not OK, the caller
 * gets REDLOCK_LATE. */
static void finish_confirmation(struct client_proto *proto, struct exchange *exchange,
                                struct redlock_event *event, int64_t now_ns)
{
    bool gone = event->status == REDLOCK_GONE;
    if (event->status == REDLOCK_OK && !exchange->lost && exchange->recipient == TO_CALLER) {
        deliver_grant(proto, exchange, event);
        return;
    }
    if (exchange->recipient == TO_CALLER) {
        event->status = REDLOCK_LATE;
        event->lock = (struct redlock_lock){0};
        snprintf(exchange->text, sizeof(exchange->text),
                 "the lock was granted too late: no validity is left");
        notify_caller(proto, exchange);
    }
    if (gone)
        retire(proto, exchange);
    else
        give_back(proto, exchange, exchange->request.resource, exchange->request.token, now_ns);
}

static void on_final_answer(struct client_proto *proto, struct exchange *exchange,
                            struct redlock_event *event, int64_t now_ns)
{
    bool granted = exchange->request.kind == CLIENT_REQUEST_ACQUIRE && event->lock.token[0] != '\0';
    struct redlock_lock lock = event->lock;
    event->sent_ns = exchange->sent_ns;
    if (event->status != REDLOCK_OK)
        event->lock = (struct redlock_lock){0};
    if (exchange->confirms) {
        finish_confirmation(proto, exchange, event, now_ns);
    } else if (granted && exchange->recipient != TO_CALLER) {
        give_back(proto, exchange, lock.resource, lock.token, now_ns);
    } else if (granted && event->status != REDLOCK_OK) {
        confirm(proto, exchange, &lock, now_ns);
    } else if (granted) {
        deliver_grant(proto, exchange, event);
    } else {
        finish(proto, exchange);
    }
}

static void pass_line(const struct exchange *exchange, struct word body)
{
    char text[LIMIT_REPLY];
    if (exchange->line == NULL)
        return;
    memcpy(text, body.at, body.len);
    text[body.len] = '\0';
    exchange->line(exchange->context, text);
}

static bool on_answer(struct client_proto *proto, struct exchange *exchange,
                      const struct client_reply *answer, int64_t received_ns, int64_t now_ns)
{
    struct moments moments = {exchange->sent_ns, received_ns, now_ns};
    /* The caller may have got an event for this request already: do not overwrite it. */
    struct redlock_event unwanted = {0};
    char unwanted_text[PROTO_TEXT];
    bool wanted = exchange->recipient == TO_CALLER;
    struct redlock_event *event = wanted ? &exchange->event : &unwanted;
    struct text text = {.buf = wanted ? exchange->text : unwanted_text, .size = PROTO_TEXT - 1};
    switch (client_result_of(&exchange->request, &moments, answer, event, &text)) {
    case RESULT_GARBLED:
        return false;
    case RESULT_MORE:
        pass_line(exchange, answer->body);
        return true;
    case RESULT_FINAL:
        break;
    }
    text.buf[text.len] = '\0';
    if (exchange->request.kind == CLIENT_REQUEST_VERSION && event->status == REDLOCK_OK)
        pass_line(exchange, answer->body);
    on_final_answer(proto, exchange, event, now_ns);
    return true;
}

/* The sent request with this tag, or NULL. */
static struct exchange *find_tagged(struct client_proto *proto, struct word tag)
{
    int64_t number;
    if (!client_reply_number(tag, INT64_MAX, &number))
        return NULL;
    uint64_t id = (uint64_t)number;
    struct exchange *exchange = at_index(proto, id);
    return exchange != NULL && exchange->id == id && exchange->state == EXCHANGE_SENT ? exchange
                                                                                      : NULL;
}

/* The caller does not know yet of a lock that is being confirmed. So a LOST line about such a lock
 * gives the caller no event, and only makes the confirmation fail. */
static void lose_unconfirmed(struct client_proto *proto, struct word token)
{
    for (unsigned i = 0; i < proto->made; i++) {
        struct exchange *exchange = proto->exchange[i];
        if (exchange->confirms && client_reply_is(token, exchange->request.token))
            exchange->lost = true;
    }
}

static bool on_push(struct client_proto *proto, const struct client_reply *answer)
{
    struct word token;
    struct word reason;
    enum push push = client_result_of_push(answer, &token, &reason);
    if (push == PUSH_IS_LOST)
        lose_unconfirmed(proto, token);
    if (push == PUSH_IS_LOST || push == PUSH_IS_WARN)
        holds_push(&proto->holds, &proto->notices, push, token, reason);
    return push != PUSH_IS_GARBLED;
}

/* False: the peer does not speak the protocol. */
static bool on_line(struct client_proto *proto, const struct client_reply *answer,
                    int64_t received_ns, int64_t now_ns)
{
    if (answer->tag.at == NULL)
        return answer->first == REPLY_PUSH && on_push(proto, answer);
    if (proto->auth_sent && client_reply_is(answer->tag, CLIENT_REQUEST_SECRET)) {
        proto->auth_sent = false;
        return answer->first == REPLY_OK; /* is_closing_error() has handled valid refusals */
    }
    if (proto->name_sent && client_reply_is(answer->tag, CLIENT_REQUEST_NAMING)) {
        proto->name_sent = false;
        return true; /* ignore a refusal: requests work without a name */
    }
    struct exchange *exchange = find_tagged(proto, answer->tag);
    return exchange != NULL && on_answer(proto, exchange, answer, received_ns, now_ns);
}

/* If the daemon rejects this connection, for a limit or a wrong secret, handles its last line. */
static bool is_closing_error(struct client_proto *proto, const struct client_reply *answer)
{
    enum redlock_status status;
    char why[PROTO_TEXT];
    struct text text = {.buf = why, .size = sizeof(why) - 1};
    bool tagged = answer->tag.at != NULL;
    bool to_auth =
        proto->auth_sent && tagged && client_reply_is(answer->tag, CLIENT_REQUEST_SECRET);
    if ((tagged && !to_auth) || !client_result_is_closing_error(answer, to_auth, &status, &text))
        return false;
    why[text.len] = '\0';
    proto_end(proto, status, why, true);
    return true;
}

bool proto_receive(struct client_proto *proto, const char *bytes, size_t len, int64_t received_ns,
                   int64_t now_ns)
{
    static const char not_redlockd[] = "the peer does not speak redlockd's protocol";
    proto->last_input_ns = received_ns;
    proto->silent = false;
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t taken = end != NULL ? (size_t)(end - bytes) : len;
        bool fits = taken < sizeof(proto->input) - proto->input_len;
        if (fits)
            memcpy(proto->input + proto->input_len, bytes, taken);
        proto->input_len += taken;
        if (fits && end == NULL)
            return true;
        struct client_reply answer;
        bool read = fits && client_reply_read(proto->input, proto->input_len, &answer);
        proto->input_len = 0;
        if (read && is_closing_error(proto, &answer))
            return false;
        if (!read || !on_line(proto, &answer, received_ns, now_ns)) {
            proto_end(proto, REDLOCK_GARBLED, not_redlockd, true);
            return false;
        }
        bytes += taken + 1;
        len -= taken + 1;
    }
    return true;
}

/* --- events for the caller --- */

static void take_exchange(struct client_proto *proto, struct exchange *exchange,
                          struct redlock_event *event)
{
    *event = exchange->event;
    if (event->status != REDLOCK_OK)
        proto_fail(proto, event->status, "%s", exchange->text);
    notice_drop(&proto->notices, &exchange->notice);
    recycle(proto, exchange);
}

static void take_hold(struct client_proto *proto, struct client_hold *hold,
                      struct redlock_event *event)
{
    *event = (struct redlock_event){.kind = hold->notice.kind};
    event->lock.hold = true;
    memcpy(event->lock.resource, hold->resource, sizeof(hold->resource));
    memcpy(event->lock.token, hold->token, sizeof(hold->token));
    memcpy(event->reason, hold->reason, sizeof(hold->reason));
    notice_drop(&proto->notices, &hold->notice);
    if (hold->notice.kind == REDLOCK_EVENT_LOST)
        holds_forget(&proto->holds, &proto->notices, hold);
}

bool proto_take(struct client_proto *proto, struct redlock_event *event)
{
    struct notice *notice = TAILQ_FIRST(&proto->notices);
    if (notice == NULL)
        return false;
    switch (notice->kind) {
    case REDLOCK_EVENT_ANSWER:
        take_exchange(
            proto, (struct exchange *)((char *)notice - offsetof(struct exchange, notice)), event);
        break;
    case REDLOCK_EVENT_LOST:
    case REDLOCK_EVENT_WARN:
        take_hold(proto,
                  (struct client_hold *)((char *)notice - offsetof(struct client_hold, notice)),
                  event);
        break;
    case REDLOCK_EVENT_CLOSED:
        *event = (struct redlock_event){.kind = REDLOCK_EVENT_CLOSED};
        notice_drop(&proto->notices, notice);
        break;
    }
    return true;
}

bool proto_take_answer(struct client_proto *proto, uint64_t id, struct redlock_event *event)
{
    struct exchange *exchange = at_index(proto, id);
    if (exchange == NULL || exchange->event.id != id || !exchange->notice.queued)
        return false;
    take_exchange(proto, exchange, event);
    return true;
}

void proto_free(struct client_proto *proto)
{
    struct redlock_event event;
    holds_clear(&proto->holds, &proto->notices);
    while (proto_take(proto, &event))
        continue;
    for (unsigned i = 0; i < proto->made; i++) {
        free(proto->exchange[i]->hold);
        free(proto->exchange[i]);
    }
}
