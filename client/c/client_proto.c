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

/* The only place where it changes hands. */
static void set_state(struct client_proto *proto, struct asked *asked, enum asked_state state,
                      enum asked_for whom)
{
    bool lived = asked->state != ASKED_IDLE && asked->whom != FOR_NOBODY;
    bool lives = state != ASKED_IDLE && whom != FOR_NOBODY;
    bool was_abandoned = asked->state != ASKED_IDLE && asked->whom == FOR_NOBODY;
    bool is_abandoned = state != ASKED_IDLE && whom == FOR_NOBODY;
    proto->living += (unsigned)lives - (unsigned)lived;
    proto->abandoned += (unsigned)is_abandoned - (unsigned)was_abandoned;
    if (asked->state == ASKED_QUEUED)
        TAILQ_REMOVE(&proto->outgoing, asked, entry);
    if (state == ASKED_QUEUED)
        TAILQ_INSERT_TAIL(&proto->outgoing, asked, entry);
    asked->state = state;
    asked->whom = whom;
}

static void recycle(struct client_proto *proto, struct asked *asked)
{
    if (asked->state == ASKED_IDLE && !asked->notice.queued)
        TAILQ_INSERT_HEAD(&proto->idle, asked, entry);
}

/* Nothing of it is under way any more. */
static void rest(struct client_proto *proto, struct asked *asked)
{
    free(asked->hold);
    asked->hold = NULL;
    set_state(proto, asked, ASKED_IDLE, asked->whom);
    recycle(proto, asked);
}

static void tell(struct client_proto *proto, struct asked *asked)
{
    if (asked->whom == FOR_CALLER)
        notice_queue(&proto->notices, &asked->notice);
}

static void finish(struct client_proto *proto, struct asked *asked)
{
    tell(proto, asked);
    rest(proto, asked);
}

/* The number says where it is, and in which use of that place. */
static uint64_t next_id(struct client_proto *proto, const struct asked *asked)
{
    return ++proto->sequence * LIMIT_CLIENT_REQUESTS + asked->index;
}

static struct asked *at_index(struct client_proto *proto, uint64_t id)
{
    uint64_t index = id % LIMIT_CLIENT_REQUESTS;
    return index < proto->made ? proto->asked[index] : NULL;
}

/* One that is idle, and off its list. NULL: there are as many as there may be, or no memory. */
static struct asked *new_asked(struct client_proto *proto)
{
    struct asked *asked = TAILQ_FIRST(&proto->idle);
    if (asked != NULL) {
        TAILQ_REMOVE(&proto->idle, asked, entry);
        return asked;
    }
    if (proto->made == LIMIT_CLIENT_REQUESTS || (asked = calloc(1, sizeof(*asked))) == NULL)
        return NULL;
    asked->index = proto->made;
    proto->asked[proto->made++] = asked;
    return asked;
}

enum redlock_status proto_ask(struct client_proto *proto, const struct client_request *request,
                              int64_t now_ns, void (*line)(void *context, const char *text),
                              void *context, uint64_t *id)
{
    bool holds = request->kind == CLIENT_REQUEST_ACQUIRE && request->hold;
    struct asked *asked = new_asked(proto);
    if (asked == NULL && proto->made == LIMIT_CLIENT_REQUESTS)
        return proto_fail(proto, REDLOCK_LIMIT, "%d requests are under way, or not taken yet",
                          LIMIT_CLIENT_REQUESTS);
    if (asked == NULL)
        return proto_fail(proto, REDLOCK_MEMORY, "no memory is left");
    if (holds && (asked->hold = calloc(1, sizeof(*asked->hold))) == NULL) {
        recycle(proto, asked);
        return proto_fail(proto, REDLOCK_MEMORY, "no memory is left");
    }
    /* From now on the token is of no use, and what becomes of it no news. */
    if (request->kind == CLIENT_REQUEST_RELEASE)
        holds_remove(&proto->holds, &proto->notices, request->token);
    asked->id = next_id(proto, asked);
    asked->request = *request;
    proto->lingers = proto->lingers || (request->kind == CLIENT_REQUEST_ACQUIRE && request->linger);
    asked->confirms = asked->lost = false;
    asked->sent_ns = now_ns;
    asked->until_ns = now_ns + request->wait_ms * NS_PER_MS + proto->timeout_ns;
    asked->event = (struct redlock_event){.kind = REDLOCK_EVENT_ANSWER, .id = asked->id};
    asked->notice.kind = REDLOCK_EVENT_ANSWER;
    asked->text[0] = '\0';
    asked->line = line;
    asked->context = context;
    set_state(proto, asked, ASKED_QUEUED, FOR_CALLER);
    *id = asked->id;
    return REDLOCK_OK;
}

/* --- giving up --- */

/* A lock was granted to this, and nobody wants it. Nothing of it is under way. */
static void give_back(struct client_proto *proto, struct asked *asked, const char *token,
                      int64_t now_ns)
{
    struct client_request release = {.kind = CLIENT_REQUEST_RELEASE};
    memcpy(release.resource, asked->request.resource, sizeof(release.resource));
    memcpy(release.token, token, sizeof(release.token));
    free(asked->hold);
    asked->hold = NULL;
    asked->request = release;
    asked->confirms = false;
    asked->id = next_id(proto, asked);
    asked->until_ns = now_ns + proto->timeout_ns;
    set_state(proto, asked, ASKED_QUEUED, FOR_US);
}

static void give_up(struct client_proto *proto, struct asked *asked, int64_t now_ns)
{
    bool queued = asked->state == ASKED_QUEUED; /* not a byte of it was sent */
    asked->line = NULL;
    if (queued && asked->confirms) {
        give_back(proto, asked, asked->request.token, now_ns);
    } else if (queued) {
        rest(proto, asked);
    } else if (asked->confirms && asked->hold == NULL && asked->whom == FOR_CALLER) {
        /* The end of a connection undoes what is being granted, and what it holds, but not what has
         * been granted: so that answer is worth a wait, though not for ever. */
        asked->until_ns = now_ns + proto->timeout_ns;
        set_state(proto, asked, ASKED_SENT, FOR_US);
    } else {
        set_state(proto, asked, ASKED_SENT, FOR_NOBODY);
    }
}

static void cancel(struct client_proto *proto, struct asked *asked, int64_t now_ns)
{
    /* Answered already, and not taken: the caller does not know that it holds a lock. */
    if (asked->notice.queued) {
        struct redlock_event *event = &asked->event;
        notice_drop(&proto->notices, &asked->notice);
        bool acquires = asked->request.kind == CLIENT_REQUEST_ACQUIRE || asked->confirms;
        if (event->status == REDLOCK_OK && acquires) {
            holds_remove(&proto->holds, &proto->notices, event->lock.token);
            give_back(proto, asked, event->lock.token, now_ns);
        }
        recycle(proto, asked);
    } else if (asked->state != ASKED_IDLE && asked->whom == FOR_CALLER) {
        give_up(proto, asked, now_ns);
    }
}

void proto_cancel(struct client_proto *proto, uint64_t id, int64_t now_ns)
{
    struct asked *asked = at_index(proto, id);
    if (asked != NULL && asked->event.id == id)
        cancel(proto, asked, now_ns);
}

void proto_cancel_all(struct client_proto *proto, int64_t now_ns)
{
    for (unsigned i = 0; i < proto->made; i++)
        cancel(proto, proto->asked[i], now_ns);
}

void proto_expire(struct client_proto *proto, int64_t now_ns)
{
    for (unsigned i = 0; i < proto->made; i++) {
        struct asked *asked = proto->asked[i];
        if (asked->state == ASKED_IDLE || asked->whom == FOR_NOBODY || asked->until_ns > now_ns)
            continue;
        if (asked->state == ASKED_SENT && proto->heard_ns <= asked->sent_ns) {
            if (!proto->silent || asked->sent_ns < proto->asked_ns)
                proto->asked_ns = asked->sent_ns;
            proto->silent = true;
        }
        if (asked->whom == FOR_CALLER) {
            asked->event.status = REDLOCK_TIMEOUT;
            asked->event.sent_ns = asked->sent_ns;
            snprintf(asked->text, sizeof(asked->text), "%s did not answer in time", proto->peer);
        }
        tell(proto, asked);
        give_up(proto, asked, now_ns);
    }
}

int64_t proto_until_ns(const struct client_proto *proto)
{
    int64_t until_ns = INT64_MAX;
    for (unsigned i = 0; proto->living > 0 && i < proto->made; i++) {
        const struct asked *asked = proto->asked[i];
        if (asked->state != ASKED_IDLE && asked->whom != FOR_NOBODY && asked->until_ns < until_ns)
            until_ns = asked->until_ns;
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
           now_ns - proto->asked_ns >= proto->longest_hold_ns;
}

/* --- the connection --- */

void proto_begin(struct client_proto *proto)
{
    /* Nobody has lost anything by the end of the one before. */
    if (!proto->closed_on_holds)
        notice_drop(&proto->notices, &proto->closed);
    proto->to_be_named = proto->label[0] != '\0';
    proto->being_named = false;
    proto->to_authenticate = proto->secret[0] != '\0';
    proto->authenticating = false;
    proto->heard_ns = 0;
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

static void fail_event(const struct client_proto *proto, struct asked *asked,
                       enum redlock_status status, const char *why)
{
    asked->event.status = status;
    asked->event.ended = true;
    asked->event.sent_ns = asked->sent_ns;
    snprintf(asked->text, sizeof(asked->text), "%s: %s", proto->peer, why);
}

void proto_disown_answers(struct client_proto *proto, const char *why)
{
    for (unsigned i = 0; i < proto->made; i++) {
        struct asked *asked = proto->asked[i];
        if (!asked->notice.queued || asked->event.status != REDLOCK_OK)
            continue;
        fail_event(proto, asked, REDLOCK_BROKEN, why);
        asked->event.lock = (struct redlock_lock){0};
    }
}

void proto_end(struct client_proto *proto, enum redlock_status status, const char *why, bool told)
{
    for (unsigned i = 0; i < proto->made; i++) {
        struct asked *asked = proto->asked[i];
        if (asked->state == ASKED_IDLE)
            continue;
        if (asked->whom == FOR_CALLER)
            fail_event(proto, asked, status, why);
        finish(proto, asked);
    }
    proto->closed_on_holds =
        proto->holds.count > 0 || (proto->closed.queued && proto->closed_on_holds);
    holds_clear(&proto->holds, &proto->notices);
    proto->closed.kind = REDLOCK_EVENT_CLOSED;
    if (told)
        notice_queue(&proto->notices, &proto->closed);
}

void proto_set_label(struct client_proto *proto, const char *label, bool connected)
{
    memcpy(proto->label, label, strlen(label) + 1);
    proto->to_be_named = connected;
}

bool proto_has_output(const struct client_proto *proto)
{
    return proto->to_authenticate || (proto->to_be_named && !proto->being_named) ||
           !TAILQ_EMPTY(&proto->outgoing);
}

size_t proto_write(struct client_proto *proto, int64_t now_ns, char *buf, size_t size)
{
    struct asked *asked;
    size_t len = 0;
    /* First of all; nothing else may overtake it. */
    if (proto->to_authenticate) {
        if (size < CLIENT_REQUEST_LINE)
            return 0;
        len = client_request_format_secret(proto->secret, buf);
        proto->to_authenticate = false;
        proto->authenticating = true;
    }
    if (proto->to_be_named && !proto->being_named && size - len >= CLIENT_REQUEST_LINE) {
        len += client_request_format_name(proto->label, buf + len);
        proto->to_be_named = false;
        proto->being_named = true;
    }
    while (size - len >= CLIENT_REQUEST_LINE && (asked = TAILQ_FIRST(&proto->outgoing)) != NULL) {
        len += client_request_format(&asked->request, asked->id, buf + len);
        asked->sent_ns = now_ns;
        set_state(proto, asked, ASKED_SENT, asked->whom);
    }
    return len;
}

/* --- answers --- */

/* The caller has it, and the daemon holds it, if that was asked for. */
static void put_granted(struct client_proto *proto, struct asked *asked,
                        const struct redlock_event *event)
{
    int64_t ttl_ns = event->lock.ttl_ms * NS_PER_MS;
    tell(proto, asked);
    if (asked->hold != NULL) {
        if (ttl_ns > proto->longest_hold_ns)
            proto->longest_hold_ns = ttl_ns;
        holds_add(&proto->holds, asked->hold, &event->lock);
        asked->hold = NULL;
    }
    rest(proto, asked);
}

/* It was granted, and nothing is left of that: an EXTEND tells whether it is ours. */
static void confirm(struct client_proto *proto, struct asked *asked,
                    const struct redlock_lock *granted, int64_t now_ns)
{
    struct client_request extend = {
        .kind = CLIENT_REQUEST_EXTEND, .ttl_ms = granted->ttl_ms, .earlier = *granted};
    memcpy(extend.resource, granted->resource, sizeof(extend.resource));
    memcpy(extend.token, granted->token, sizeof(extend.token));
    asked->event = (struct redlock_event){.kind = REDLOCK_EVENT_ANSWER, .id = asked->event.id};
    asked->request = extend;
    asked->confirms = true;
    asked->id = next_id(proto, asked);
    if (asked->until_ns > now_ns + proto->timeout_ns)
        asked->until_ns = now_ns + proto->timeout_ns;
    set_state(proto, asked, ASKED_QUEUED, FOR_CALLER);
}

/* Whatever was answered but OK, to the caller it means that the grant came too late. */
static void put_confirmed(struct client_proto *proto, struct asked *asked,
                          struct redlock_event *event, int64_t now_ns)
{
    bool gone = event->status == REDLOCK_GONE;
    if (event->status == REDLOCK_OK && !asked->lost && asked->whom == FOR_CALLER) {
        put_granted(proto, asked, event);
        return;
    }
    if (asked->whom == FOR_CALLER) {
        event->status = REDLOCK_LATE;
        event->lock = (struct redlock_lock){0};
        snprintf(asked->text, sizeof(asked->text), "it was granted, but nothing is left of it");
        tell(proto, asked);
    }
    if (gone)
        rest(proto, asked);
    else
        give_back(proto, asked, asked->request.token, now_ns);
}

static void put_final(struct client_proto *proto, struct asked *asked, struct redlock_event *event,
                      int64_t now_ns)
{
    bool granted = asked->request.kind == CLIENT_REQUEST_ACQUIRE && event->lock.token[0] != '\0';
    struct redlock_lock lock = event->lock;
    event->sent_ns = asked->sent_ns;
    if (event->status != REDLOCK_OK)
        event->lock = (struct redlock_lock){0};
    if (asked->confirms) {
        put_confirmed(proto, asked, event, now_ns);
    } else if (granted && asked->whom != FOR_CALLER) {
        give_back(proto, asked, lock.token, now_ns);
    } else if (granted && event->status != REDLOCK_OK) {
        confirm(proto, asked, &lock, now_ns);
    } else if (granted) {
        put_granted(proto, asked, event);
    } else {
        finish(proto, asked);
    }
}

static void pass_line(const struct asked *asked, struct word body)
{
    char text[LIMIT_REPLY];
    if (asked->line == NULL)
        return;
    memcpy(text, body.at, body.len);
    text[body.len] = '\0';
    asked->line(asked->context, text);
}

static bool on_answer(struct client_proto *proto, struct asked *asked,
                      const struct client_reply *answer, int64_t received_ns, int64_t now_ns)
{
    struct moments moments = {asked->sent_ns, received_ns, now_ns};
    /* What the caller has been told of it stands. */
    struct redlock_event unwanted = {0};
    char unwanted_text[PROTO_TEXT];
    bool wanted = asked->whom == FOR_CALLER;
    struct redlock_event *event = wanted ? &asked->event : &unwanted;
    struct text text = {.buf = wanted ? asked->text : unwanted_text, .size = PROTO_TEXT - 1};
    switch (client_result_of(&asked->request, &moments, answer, event, &text)) {
    case RESULT_GARBLED:
        return false;
    case RESULT_MORE:
        pass_line(asked, answer->body);
        return true;
    case RESULT_FINAL:
        break;
    }
    text.buf[text.len] = '\0';
    if (asked->request.kind == CLIENT_REQUEST_VERSION && event->status == REDLOCK_OK)
        pass_line(asked, answer->body);
    put_final(proto, asked, event, now_ns);
    return true;
}

/* The request under way that a tag names, or NULL. */
static struct asked *find_tagged(struct client_proto *proto, struct word tag)
{
    int64_t number;
    if (!client_reply_number(tag, INT64_MAX, &number))
        return NULL;
    uint64_t id = (uint64_t)number;
    struct asked *asked = at_index(proto, id);
    return asked != NULL && asked->id == id && asked->state == ASKED_SENT ? asked : NULL;
}

/* Of one that the caller does not know of yet, he will not be told that it is lost. */
static void lose_unconfirmed(struct client_proto *proto, struct word token)
{
    for (unsigned i = 0; i < proto->made; i++) {
        struct asked *asked = proto->asked[i];
        if (asked->confirms && client_reply_is(token, asked->request.token))
            asked->lost = true;
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

/* False: nothing that comes from there can be trusted. */
static bool on_line(struct client_proto *proto, const struct client_reply *answer,
                    int64_t received_ns, int64_t now_ns)
{
    if (answer->tag.at == NULL)
        return answer->first == REPLY_PUSH && on_push(proto, answer);
    if (proto->authenticating && client_reply_is(answer->tag, CLIENT_REQUEST_SECRET)) {
        proto->authenticating = false;
        return answer->first == REPLY_OK; /* what else is true, is_closing_error() has taken */
    }
    if (proto->being_named && client_reply_is(answer->tag, CLIENT_REQUEST_NAMING)) {
        proto->being_named = false;
        return true; /* a name that is not taken is nothing to fail for */
    }
    struct asked *asked = find_tagged(proto, answer->tag);
    return asked != NULL && on_answer(proto, asked, answer, received_ns, now_ns);
}

/* The daemon's last line, where it cannot serve this connection, or does not let us in. */
static bool is_closing_error(struct client_proto *proto, const struct client_reply *answer)
{
    enum redlock_status status;
    char why[PROTO_TEXT];
    struct text text = {.buf = why, .size = sizeof(why) - 1};
    bool tagged = answer->tag.at != NULL;
    bool to_auth =
        proto->authenticating && tagged && client_reply_is(answer->tag, CLIENT_REQUEST_SECRET);
    if ((tagged && !to_auth) || !client_result_is_closing_error(answer, to_auth, &status, &text))
        return false;
    why[text.len] = '\0';
    proto_end(proto, status, why, true);
    return true;
}

bool proto_receive(struct client_proto *proto, const char *bytes, size_t len, int64_t received_ns,
                   int64_t now_ns)
{
    static const char foreign[] = "what answers there does not speak redlockd's protocol";
    proto->heard_ns = received_ns;
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
            proto_end(proto, REDLOCK_GARBLED, foreign, true);
            return false;
        }
        bytes += taken + 1;
        len -= taken + 1;
    }
    return true;
}

/* --- what the caller is told --- */

static void take_asked(struct client_proto *proto, struct asked *asked, struct redlock_event *event)
{
    *event = asked->event;
    if (event->status != REDLOCK_OK)
        proto_fail(proto, event->status, "%s", asked->text);
    notice_drop(&proto->notices, &asked->notice);
    recycle(proto, asked);
}

static void take_hold(struct client_proto *proto, struct hold *hold, struct redlock_event *event)
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
        take_asked(proto, (struct asked *)((char *)notice - offsetof(struct asked, notice)), event);
        break;
    case REDLOCK_EVENT_LOST:
    case REDLOCK_EVENT_WARN:
        take_hold(proto, (struct hold *)((char *)notice - offsetof(struct hold, notice)), event);
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
    struct asked *asked = at_index(proto, id);
    if (asked == NULL || asked->event.id != id || !asked->notice.queued)
        return false;
    take_asked(proto, asked, event);
    return true;
}

void proto_free(struct client_proto *proto)
{
    struct redlock_event event;
    holds_clear(&proto->holds, &proto->notices);
    while (proto_take(proto, &event))
        continue;
    for (unsigned i = 0; i < proto->made; i++) {
        free(proto->asked[i]->hold);
        free(proto->asked[i]);
    }
}
