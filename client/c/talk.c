#include "client/c/talk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/verdict.h"
#include "protocol/units.h"

void talk_init(struct talk *talk)
{
    memset(talk, 0, sizeof(*talk));
    TAILQ_INIT(&talk->idle);
    TAILQ_INIT(&talk->outgoing);
    TAILQ_INIT(&talk->notices);
    talk->peer = "";
}

enum redlock_status talk_fail(struct talk *talk, enum redlock_status status, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(talk->error, sizeof(talk->error), form, arguments);
    va_end(arguments);
    return status;
}

/* --- one request --- */

/* The only place where it changes hands. */
static void set_state(struct talk *talk, struct asked *asked, enum asked_state state,
                      enum asked_for whom)
{
    bool lived = asked->state != ASKED_IDLE && asked->whom != FOR_NOBODY;
    bool lives = state != ASKED_IDLE && whom != FOR_NOBODY;
    bool was_abandoned = asked->state != ASKED_IDLE && asked->whom == FOR_NOBODY;
    bool is_abandoned = state != ASKED_IDLE && whom == FOR_NOBODY;
    talk->living += (unsigned)lives - (unsigned)lived;
    talk->abandoned += (unsigned)is_abandoned - (unsigned)was_abandoned;
    if (asked->state == ASKED_QUEUED)
        TAILQ_REMOVE(&talk->outgoing, asked, entry);
    if (state == ASKED_QUEUED)
        TAILQ_INSERT_TAIL(&talk->outgoing, asked, entry);
    asked->state = state;
    asked->whom = whom;
}

static void recycle(struct talk *talk, struct asked *asked)
{
    if (asked->state == ASKED_IDLE && !asked->notice.queued)
        TAILQ_INSERT_HEAD(&talk->idle, asked, entry);
}

/* Nothing of it is under way any more. */
static void rest(struct talk *talk, struct asked *asked)
{
    free(asked->hold);
    asked->hold = NULL;
    set_state(talk, asked, ASKED_IDLE, asked->whom);
    recycle(talk, asked);
}

static void tell(struct talk *talk, struct asked *asked)
{
    if (asked->whom == FOR_CALLER)
        notice_queue(&talk->notices, &asked->notice);
}

static void finish(struct talk *talk, struct asked *asked)
{
    tell(talk, asked);
    rest(talk, asked);
}

/* The number says where it is, and in which use of that place. */
static uint64_t next_id(struct talk *talk, const struct asked *asked)
{
    return ++talk->sequence * LIMIT_CLIENT_REQUESTS + asked->index;
}

static struct asked *at_index(struct talk *talk, uint64_t id)
{
    uint64_t index = id % LIMIT_CLIENT_REQUESTS;
    return index < talk->made ? talk->asked[index] : NULL;
}

/* One that is idle, and off its list. NULL: there are as many as there may be, or no memory. */
static struct asked *new_asked(struct talk *talk)
{
    struct asked *asked = TAILQ_FIRST(&talk->idle);
    if (asked != NULL) {
        TAILQ_REMOVE(&talk->idle, asked, entry);
        return asked;
    }
    if (talk->made == LIMIT_CLIENT_REQUESTS || (asked = calloc(1, sizeof(*asked))) == NULL)
        return NULL;
    asked->index = talk->made;
    talk->asked[talk->made++] = asked;
    return asked;
}

enum redlock_status talk_ask(struct talk *talk, const struct question *question, int64_t now_ns,
                             void (*line)(void *context, const char *text), void *context,
                             uint64_t *id)
{
    bool holds = question->kind == QUESTION_ACQUIRE && question->hold;
    struct asked *asked = new_asked(talk);
    if (asked == NULL && talk->made == LIMIT_CLIENT_REQUESTS)
        return talk_fail(talk, REDLOCK_LIMIT, "%d requests are under way, or not taken yet",
                         LIMIT_CLIENT_REQUESTS);
    if (asked == NULL)
        return talk_fail(talk, REDLOCK_MEMORY, "no memory is left");
    if (holds && (asked->hold = calloc(1, sizeof(*asked->hold))) == NULL) {
        recycle(talk, asked);
        return talk_fail(talk, REDLOCK_MEMORY, "no memory is left");
    }
    /* From now on the token is of no use, and what becomes of it no news. */
    if (question->kind == QUESTION_RELEASE)
        holds_remove(&talk->holds, &talk->notices, question->token);
    asked->id = next_id(talk, asked);
    asked->question = *question;
    talk->lingers = talk->lingers || (question->kind == QUESTION_ACQUIRE && question->linger);
    asked->confirms = asked->lost = false;
    asked->sent_ns = now_ns;
    asked->until_ns = now_ns + question->wait_ms * NS_PER_MS + talk->timeout_ns;
    asked->event = (struct redlock_event){.kind = REDLOCK_EVENT_ANSWER, .id = asked->id};
    asked->notice.kind = REDLOCK_EVENT_ANSWER;
    asked->text[0] = '\0';
    asked->line = line;
    asked->context = context;
    set_state(talk, asked, ASKED_QUEUED, FOR_CALLER);
    *id = asked->id;
    return REDLOCK_OK;
}

/* --- giving up --- */

/* A lock was granted to this, and nobody wants it. Nothing of it is under way. */
static void give_back(struct talk *talk, struct asked *asked, const char *token, int64_t now_ns)
{
    struct question release = {.kind = QUESTION_RELEASE};
    memcpy(release.resource, asked->question.resource, sizeof(release.resource));
    memcpy(release.token, token, sizeof(release.token));
    free(asked->hold);
    asked->hold = NULL;
    asked->question = release;
    asked->confirms = false;
    asked->id = next_id(talk, asked);
    asked->until_ns = now_ns + talk->timeout_ns;
    set_state(talk, asked, ASKED_QUEUED, FOR_US);
}

static void give_up(struct talk *talk, struct asked *asked, int64_t now_ns)
{
    bool queued = asked->state == ASKED_QUEUED; /* not a byte of it was sent */
    asked->line = NULL;
    if (queued && asked->confirms) {
        give_back(talk, asked, asked->question.token, now_ns);
    } else if (queued) {
        rest(talk, asked);
    } else if (asked->confirms && asked->hold == NULL && asked->whom == FOR_CALLER) {
        /* The end of a connection undoes what is being granted, and what it holds, but not what has
         * been granted: so that answer is worth a wait, though not for ever. */
        asked->until_ns = now_ns + talk->timeout_ns;
        set_state(talk, asked, ASKED_SENT, FOR_US);
    } else {
        set_state(talk, asked, ASKED_SENT, FOR_NOBODY);
    }
}

static void cancel(struct talk *talk, struct asked *asked, int64_t now_ns)
{
    /* Answered already, and not taken: the caller does not know that it holds a lock. */
    if (asked->notice.queued) {
        struct redlock_event *event = &asked->event;
        notice_drop(&talk->notices, &asked->notice);
        bool acquires = asked->question.kind == QUESTION_ACQUIRE || asked->confirms;
        if (event->status == REDLOCK_OK && acquires) {
            holds_remove(&talk->holds, &talk->notices, event->lock.token);
            give_back(talk, asked, event->lock.token, now_ns);
        }
        recycle(talk, asked);
    } else if (asked->state != ASKED_IDLE && asked->whom == FOR_CALLER) {
        give_up(talk, asked, now_ns);
    }
}

void talk_cancel(struct talk *talk, uint64_t id, int64_t now_ns)
{
    struct asked *asked = at_index(talk, id);
    if (asked != NULL && asked->event.id == id)
        cancel(talk, asked, now_ns);
}

void talk_cancel_all(struct talk *talk, int64_t now_ns)
{
    for (unsigned i = 0; i < talk->made; i++)
        cancel(talk, talk->asked[i], now_ns);
}

void talk_expire(struct talk *talk, int64_t now_ns)
{
    for (unsigned i = 0; i < talk->made; i++) {
        struct asked *asked = talk->asked[i];
        if (asked->state == ASKED_IDLE || asked->whom == FOR_NOBODY || asked->until_ns > now_ns)
            continue;
        if (asked->state == ASKED_SENT && talk->heard_ns <= asked->sent_ns) {
            if (!talk->silent || asked->sent_ns < talk->asked_ns)
                talk->asked_ns = asked->sent_ns;
            talk->silent = true;
        }
        if (asked->whom == FOR_CALLER) {
            asked->event.status = REDLOCK_TIMEOUT;
            asked->event.sent_ns = asked->sent_ns;
            snprintf(asked->text, sizeof(asked->text), "%s did not answer in time", talk->peer);
        }
        tell(talk, asked);
        give_up(talk, asked, now_ns);
    }
}

int64_t talk_until_ns(const struct talk *talk)
{
    int64_t until_ns = INT64_MAX;
    for (unsigned i = 0; talk->living > 0 && i < talk->made; i++) {
        const struct asked *asked = talk->asked[i];
        if (asked->state != ASKED_IDLE && asked->whom != FOR_NOBODY && asked->until_ns < until_ns)
            until_ns = asked->until_ns;
    }
    return until_ns;
}

bool talk_is_spent(const struct talk *talk)
{
    return talk->abandoned > 0 && talk->living == 0 && talk->holds.count == 0;
}

bool talk_is_dead(const struct talk *talk, int64_t now_ns)
{
    return talk->silent && talk->holds.count > 0 &&
           now_ns - talk->asked_ns >= talk->longest_hold_ns;
}

/* --- the connection --- */

void talk_begin(struct talk *talk)
{
    /* Nobody has lost anything by the end of the one before. */
    if (!talk->closed_on_holds)
        notice_drop(&talk->notices, &talk->closed);
    talk->to_be_named = talk->label[0] != '\0';
    talk->being_named = false;
    talk->to_authenticate = talk->secret[0] != '\0';
    talk->authenticating = false;
    talk->heard_ns = 0;
    talk->silent = false;
    talk->longest_hold_ns = 0;
    talk->lingers = false;
    talk->input_len = 0;
}

void talk_set_secret(struct talk *talk, const char *secret)
{
    explicit_bzero(talk->secret, sizeof(talk->secret));
    if (secret != NULL)
        memcpy(talk->secret, secret, strlen(secret));
}

static void fail_event(const struct talk *talk, struct asked *asked, enum redlock_status status,
                       const char *why)
{
    asked->event.status = status;
    asked->event.ended = true;
    asked->event.sent_ns = asked->sent_ns;
    snprintf(asked->text, sizeof(asked->text), "%s: %s", talk->peer, why);
}

void talk_disown_answers(struct talk *talk, const char *why)
{
    for (unsigned i = 0; i < talk->made; i++) {
        struct asked *asked = talk->asked[i];
        if (!asked->notice.queued || asked->event.status != REDLOCK_OK)
            continue;
        fail_event(talk, asked, REDLOCK_BROKEN, why);
        asked->event.lock = (struct redlock_lock){0};
    }
}

void talk_end(struct talk *talk, enum redlock_status status, const char *why, bool told)
{
    for (unsigned i = 0; i < talk->made; i++) {
        struct asked *asked = talk->asked[i];
        if (asked->state == ASKED_IDLE)
            continue;
        if (asked->whom == FOR_CALLER)
            fail_event(talk, asked, status, why);
        finish(talk, asked);
    }
    talk->closed_on_holds = talk->holds.count > 0 || (talk->closed.queued && talk->closed_on_holds);
    holds_clear(&talk->holds, &talk->notices);
    talk->closed.kind = REDLOCK_EVENT_CLOSED;
    if (told)
        notice_queue(&talk->notices, &talk->closed);
}

void talk_set_label(struct talk *talk, const char *label, bool connected)
{
    memcpy(talk->label, label, strlen(label) + 1);
    talk->to_be_named = connected;
}

bool talk_has_output(const struct talk *talk)
{
    return talk->to_authenticate || (talk->to_be_named && !talk->being_named) ||
           !TAILQ_EMPTY(&talk->outgoing);
}

size_t talk_write(struct talk *talk, int64_t now_ns, char *buf, size_t size)
{
    struct asked *asked;
    size_t len = 0;
    /* First of all; nothing else may overtake it. */
    if (talk->to_authenticate) {
        if (size < QUESTION_LINE)
            return 0;
        len = question_format_secret(talk->secret, buf);
        talk->to_authenticate = false;
        talk->authenticating = true;
    }
    if (talk->to_be_named && !talk->being_named && size - len >= QUESTION_LINE) {
        len += question_format_name(talk->label, buf + len);
        talk->to_be_named = false;
        talk->being_named = true;
    }
    while (size - len >= QUESTION_LINE && (asked = TAILQ_FIRST(&talk->outgoing)) != NULL) {
        len += question_format(&asked->question, asked->id, buf + len);
        asked->sent_ns = now_ns;
        set_state(talk, asked, ASKED_SENT, asked->whom);
    }
    return len;
}

/* --- answers --- */

/* The caller has it, and the daemon holds it, if that was asked for. */
static void put_granted(struct talk *talk, struct asked *asked, const struct redlock_event *event)
{
    int64_t ttl_ns = event->lock.ttl_ms * NS_PER_MS;
    tell(talk, asked);
    if (asked->hold != NULL) {
        if (ttl_ns > talk->longest_hold_ns)
            talk->longest_hold_ns = ttl_ns;
        holds_add(&talk->holds, asked->hold, &event->lock);
        asked->hold = NULL;
    }
    rest(talk, asked);
}

/* It was granted, and nothing is left of that: an EXTEND tells whether it is ours. */
static void confirm(struct talk *talk, struct asked *asked, const struct redlock_lock *granted,
                    int64_t now_ns)
{
    struct question extend = {
        .kind = QUESTION_EXTEND, .ttl_ms = granted->ttl_ms, .earlier = *granted};
    memcpy(extend.resource, granted->resource, sizeof(extend.resource));
    memcpy(extend.token, granted->token, sizeof(extend.token));
    asked->event = (struct redlock_event){.kind = REDLOCK_EVENT_ANSWER, .id = asked->event.id};
    asked->question = extend;
    asked->confirms = true;
    asked->id = next_id(talk, asked);
    if (asked->until_ns > now_ns + talk->timeout_ns)
        asked->until_ns = now_ns + talk->timeout_ns;
    set_state(talk, asked, ASKED_QUEUED, FOR_CALLER);
}

/* Whatever was answered but OK, to the caller it means that the grant came too late. */
static void put_confirmed(struct talk *talk, struct asked *asked, struct redlock_event *event,
                          int64_t now_ns)
{
    bool gone = event->status == REDLOCK_GONE;
    if (event->status == REDLOCK_OK && !asked->lost && asked->whom == FOR_CALLER) {
        put_granted(talk, asked, event);
        return;
    }
    if (asked->whom == FOR_CALLER) {
        event->status = REDLOCK_LATE;
        event->lock = (struct redlock_lock){0};
        snprintf(asked->text, sizeof(asked->text), "it was granted, but nothing is left of it");
        tell(talk, asked);
    }
    if (gone)
        rest(talk, asked);
    else
        give_back(talk, asked, asked->question.token, now_ns);
}

static void put_final(struct talk *talk, struct asked *asked, struct redlock_event *event,
                      int64_t now_ns)
{
    bool granted = asked->question.kind == QUESTION_ACQUIRE && event->lock.token[0] != '\0';
    struct redlock_lock lock = event->lock;
    event->sent_ns = asked->sent_ns;
    if (event->status != REDLOCK_OK)
        event->lock = (struct redlock_lock){0};
    if (asked->confirms) {
        put_confirmed(talk, asked, event, now_ns);
    } else if (granted && asked->whom != FOR_CALLER) {
        give_back(talk, asked, lock.token, now_ns);
    } else if (granted && event->status != REDLOCK_OK) {
        confirm(talk, asked, &lock, now_ns);
    } else if (granted) {
        put_granted(talk, asked, event);
    } else {
        finish(talk, asked);
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

static bool on_answer(struct talk *talk, struct asked *asked, const struct answer *answer,
                      int64_t received_ns, int64_t now_ns)
{
    struct moments moments = {asked->sent_ns, received_ns, now_ns};
    /* What the caller has been told of it stands. */
    struct redlock_event unwanted = {0};
    char unwanted_text[TALK_TEXT];
    bool wanted = asked->whom == FOR_CALLER;
    struct redlock_event *event = wanted ? &asked->event : &unwanted;
    struct text text = {.buf = wanted ? asked->text : unwanted_text, .size = TALK_TEXT - 1};
    switch (verdict_on(&asked->question, &moments, answer, event, &text)) {
    case VERDICT_GARBLED:
        return false;
    case VERDICT_MORE:
        pass_line(asked, answer->body);
        return true;
    case VERDICT_FINAL:
        break;
    }
    text.buf[text.len] = '\0';
    if (asked->question.kind == QUESTION_VERSION && event->status == REDLOCK_OK)
        pass_line(asked, answer->body);
    put_final(talk, asked, event, now_ns);
    return true;
}

/* The request under way that a tag names, or NULL. */
static struct asked *find_tagged(struct talk *talk, struct word tag)
{
    int64_t number;
    if (!answer_number(tag, INT64_MAX, &number))
        return NULL;
    uint64_t id = (uint64_t)number;
    struct asked *asked = at_index(talk, id);
    return asked != NULL && asked->id == id && asked->state == ASKED_SENT ? asked : NULL;
}

/* Of one that the caller does not know of yet, he will not be told that it is lost. */
static void lose_unconfirmed(struct talk *talk, struct word token)
{
    for (unsigned i = 0; i < talk->made; i++) {
        struct asked *asked = talk->asked[i];
        if (asked->confirms && answer_is(token, asked->question.token))
            asked->lost = true;
    }
}

static bool on_push(struct talk *talk, const struct answer *answer)
{
    struct word token;
    struct word reason;
    enum push push = verdict_on_push(answer, &token, &reason);
    if (push == PUSH_IS_LOST)
        lose_unconfirmed(talk, token);
    if (push == PUSH_IS_LOST || push == PUSH_IS_WARN)
        holds_push(&talk->holds, &talk->notices, push, token, reason);
    return push != PUSH_IS_GARBLED;
}

/* False: nothing that comes from there can be trusted. */
static bool on_line(struct talk *talk, const struct answer *answer, int64_t received_ns,
                    int64_t now_ns)
{
    if (answer->tag.at == NULL)
        return answer->first == ANSWER_PUSH && on_push(talk, answer);
    if (talk->authenticating && answer_is(answer->tag, QUESTION_SECRET)) {
        talk->authenticating = false;
        return answer->first == ANSWER_OK; /* what else is true, is_farewell() has taken */
    }
    if (talk->being_named && answer_is(answer->tag, QUESTION_NAMING)) {
        talk->being_named = false;
        return true; /* a name that is not taken is nothing to fail for */
    }
    struct asked *asked = find_tagged(talk, answer->tag);
    return asked != NULL && on_answer(talk, asked, answer, received_ns, now_ns);
}

/* The daemon's last line, where it cannot serve this connection, or does not let us in. */
static bool is_farewell(struct talk *talk, const struct answer *answer)
{
    enum redlock_status status;
    char why[TALK_TEXT];
    struct text text = {.buf = why, .size = sizeof(why) - 1};
    bool tagged = answer->tag.at != NULL;
    bool to_auth = talk->authenticating && tagged && answer_is(answer->tag, QUESTION_SECRET);
    if ((tagged && !to_auth) || !verdict_is_farewell(answer, to_auth, &status, &text))
        return false;
    why[text.len] = '\0';
    talk_end(talk, status, why, true);
    return true;
}

bool talk_receive(struct talk *talk, const char *bytes, size_t len, int64_t received_ns,
                  int64_t now_ns)
{
    static const char foreign[] = "what answers there does not speak redlockd's protocol";
    talk->heard_ns = received_ns;
    talk->silent = false;
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t taken = end != NULL ? (size_t)(end - bytes) : len;
        bool fits = taken < sizeof(talk->input) - talk->input_len;
        if (fits)
            memcpy(talk->input + talk->input_len, bytes, taken);
        talk->input_len += taken;
        if (fits && end == NULL)
            return true;
        struct answer answer;
        bool read = fits && answer_read(talk->input, talk->input_len, &answer);
        talk->input_len = 0;
        if (read && is_farewell(talk, &answer))
            return false;
        if (!read || !on_line(talk, &answer, received_ns, now_ns)) {
            talk_end(talk, REDLOCK_GARBLED, foreign, true);
            return false;
        }
        bytes += taken + 1;
        len -= taken + 1;
    }
    return true;
}

/* --- what the caller is told --- */

static void take_asked(struct talk *talk, struct asked *asked, struct redlock_event *event)
{
    *event = asked->event;
    if (event->status != REDLOCK_OK)
        talk_fail(talk, event->status, "%s", asked->text);
    notice_drop(&talk->notices, &asked->notice);
    recycle(talk, asked);
}

static void take_hold(struct talk *talk, struct hold *hold, struct redlock_event *event)
{
    *event = (struct redlock_event){.kind = hold->notice.kind};
    event->lock.hold = true;
    memcpy(event->lock.resource, hold->resource, sizeof(hold->resource));
    memcpy(event->lock.token, hold->token, sizeof(hold->token));
    memcpy(event->reason, hold->reason, sizeof(hold->reason));
    notice_drop(&talk->notices, &hold->notice);
    if (hold->notice.kind == REDLOCK_EVENT_LOST)
        holds_forget(&talk->holds, &talk->notices, hold);
}

bool talk_take(struct talk *talk, struct redlock_event *event)
{
    struct notice *notice = TAILQ_FIRST(&talk->notices);
    if (notice == NULL)
        return false;
    switch (notice->kind) {
    case REDLOCK_EVENT_ANSWER:
        take_asked(talk, (struct asked *)((char *)notice - offsetof(struct asked, notice)), event);
        break;
    case REDLOCK_EVENT_LOST:
    case REDLOCK_EVENT_WARN:
        take_hold(talk, (struct hold *)((char *)notice - offsetof(struct hold, notice)), event);
        break;
    case REDLOCK_EVENT_CLOSED:
        *event = (struct redlock_event){.kind = REDLOCK_EVENT_CLOSED};
        notice_drop(&talk->notices, notice);
        break;
    }
    return true;
}

bool talk_take_answer(struct talk *talk, uint64_t id, struct redlock_event *event)
{
    struct asked *asked = at_index(talk, id);
    if (asked == NULL || asked->event.id != id || !asked->notice.queued)
        return false;
    take_asked(talk, asked, event);
    return true;
}

void talk_free(struct talk *talk)
{
    struct redlock_event event;
    holds_clear(&talk->holds, &talk->notices);
    while (talk_take(talk, &event))
        continue;
    for (unsigned i = 0; i < talk->made; i++) {
        free(talk->asked[i]->hold);
        free(talk->asked[i]);
    }
}
