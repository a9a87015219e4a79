#include "server/clients/session.h"

#include <assert.h>
#include <string.h>

#include "config/users.h"
#include "protocol/limits.h"
#include "server/clients/clients.h"
#include "server/clock.h"
#include "server/log.h"

/* --- state --- */

void session_defer(struct session *session)
{
    if (session->is_deferred)
        return;
    /* If others wait, the sweep is due already. */
    if (TAILQ_EMPTY(&session->clients->deferred))
        event_active(session->clients->sweep, 0, 0);
    session->is_deferred = true;
    TAILQ_INSERT_TAIL(&session->clients->deferred, session, deferred);
}

void session_set_state(struct session *session, enum session_state state)
{
    assert(state > session->state);
    session->state = state;
    if (state == SESSION_DROPPED)
        engine_client_unreachable(&session->client);
    session_defer(session);
}

void session_drop_as(struct session *session, enum client_log_kind kind, const char *why)
{
    if (session->state == SESSION_DROPPED)
        return;
    session_set_state(session, SESSION_DROPPED);
    client_log(&session->clients->client_log, kind,
               LOG_FIELDS(log_number("client", (int64_t)engine_client_id(&session->client)),
                          log_text("peer", session->peer),
                          log_text("name", engine_client_name(&session->client)),
                          log_text("why", why)));
}

void session_drop(struct session *session, const char *why)
{
    session_drop_as(session, CLIENT_LOG_DROPPED, why);
}

bool session_may_send_secret(const struct session *session)
{
    /* RESET and a new AUTH can come together. */
    bool once = session->dialect == DIALECT_LINE;
    return !session->clients->auth.open && !(once && session->identity.state == AUTH_BY_SECRET);
}

void session_close_when_written(struct session *session)
{
    if (session->state < SESSION_CLOSING)
        session_set_state(session, SESSION_CLOSING);
}

/* --- output --- */

static size_t room(size_t limit, size_t unread)
{
    return unread < limit ? limit - unread : 0;
}

size_t session_room(const struct session *session)
{
    size_t unsent = stream_unsent(&session->stream);
    if (session->dialect == DIALECT_LINE)
        return room(LIMIT_CLIENT_OUTPUT, unsent);
    return room(LIMIT_RESP_OUTPUT, unsent + session->replies.kept);
}

/* Whether there is room for a reply. If not, the session is dropped. */
static bool make_room(struct session *session, size_t len)
{
    if (len > session_room(session))
        session_drop(session, "the client does not read its replies");
    return session->state != SESSION_DROPPED;
}

static void drop_for_memory(struct session *session)
{
    session_drop(session, "there is not enough memory for the client's replies");
}

void session_write_bytes(struct session *session, const char *bytes, size_t len)
{
    if (!make_room(session, len))
        return;
    if (session->replies.pending == 0)
        stream_write(&session->stream, bytes, len);
    else if (!reply_queue_keep(&session->replies, bytes, len))
        drop_for_memory(session);
}

void session_write_line(struct session *session, const struct request *request, const char *line,
                        size_t len)
{
    char answer[LIMIT_REPLY];
    session_write_bytes(session, answer,
                        reply_format_line(line, len, request->tag, request->tag_len, answer));
}

void session_write_text(struct session *session, const struct request *request, const char *text)
{
    char answer[LIMIT_REPLY];
    if (session->dialect == DIALECT_LINE)
        session_write_line(session, request, text, strlen(text));
    else
        session_write_bytes(session, answer, reply_format_resp_simple(text, strlen(text), answer));
}

static size_t format_error(const struct session *session, enum request_error error,
                           const char *text, const char *tag, size_t tag_len, char *answer)
{
    const char *code = request_error_word(error);
    if (session->dialect == DIALECT_LINE)
        return reply_format_error(code, text, tag, tag_len, answer);
    /* Redis clients recognize "ERR unknown command". */
    if (error == REQUEST_UNKNOWN_VERB)
        code = NULL;
    return reply_format_resp_error("ERR", code, text, answer);
}

void session_write_error(struct session *session, const struct request *request,
                         enum request_error error, const char *text)
{
    char answer[LIMIT_REPLY];
    const char *tag = request != NULL ? request->tag : NULL;
    size_t tag_len = request != NULL ? request->tag_len : 0;
    session->clients->request_errors[error]++;
    session_write_bytes(session, answer, format_error(session, error, text, tag, tag_len, answer));
}

void session_write_refusal(struct session *session, const struct request *request, const char *word,
                           const char *resp_word, const char *text)
{
    char answer[LIMIT_REPLY];
    if (session->dialect != DIALECT_LINE) {
        session_write_bytes(session, answer,
                            reply_format_resp_error(resp_word, NULL, text, answer));
        return;
    }
    struct text line = {.buf = answer, .size = sizeof(answer)};
    text_string(&line, word);
    text_byte(&line, ' ');
    text_string(&line, text);
    session_write_line(session, request, line.buf, line.len);
}

void session_deny(struct session *session, const struct request *request, enum verb verb,
                  enum acl_answer why)
{
    char buf[LIMIT_REPLY];
    struct text text = {.buf = buf, .size = sizeof(buf) - 1};
    acl_explain(why, verb, session_user(session, NULL), &text);
    buf[text.len] = '\0';
    session->clients->denied++;
    session_write_refusal(session, request, "DENIED", why == ACL_NOT_KNOWN ? "NOAUTH" : "NOPERM",
                          buf);
}

/* --- requests to the engine --- */

/* The engine knows a RESP command by its slot in the queue of replies, as its tag. noinline: keeps
 * this code out of the path of lines. False if there is not enough memory. */
static __attribute__((noinline)) bool open_slot(struct session *session, struct request *request)
{
    session->slot = reply_queue_open(&session->replies);
    if (session->slot == REPLY_QUEUE_NONE) {
        drop_for_memory(session);
        return false;
    }
    request->tag = (const char *)&session->slot;
    request->tag_len = sizeof(session->slot);
    return true;
}

void session_submit(struct session *session, struct request *request)
{
    if (session->dialect != DIALECT_LINE && !open_slot(session, request))
        return;
    if (request->tag == NULL)
        session->untagged_pending = true;
    engine_submit(session->clients->engine, &session->client, request, session->lines_ns);
}

static void write_to_stream(void *context, const char *bytes, size_t len)
{
    struct session *session = context;
    stream_write(&session->stream, bytes, len);
}

/* Write the reply to a RESP command. Without tag, the engine has not had it. token: see
 * reply_queue_settle(). */
static void write_in_order(struct session *session, const char *tag, const char *token,
                           const char *answer, size_t len)
{
    uint16_t slot;
    if (tag == NULL) {
        session_write_bytes(session, answer, len);
        return;
    }
    memcpy(&slot, tag, sizeof(slot));
    if (make_room(session, len) &&
        !reply_queue_settle(&session->replies, slot, answer, len, token, write_to_stream, session))
        drop_for_memory(session);
}

/* --- callbacks of the engine --- */

/* The engine has replied to a request. What waits for the reply can start after this pass. */
static void request_done(struct session *session, const char *tag)
{
    if (tag == NULL)
        session->untagged_pending = false;
    if (session->pending_input != NULL || session->commands_wait || session_has_ended(session))
        session_defer(session);
}

/* noinline: with this code inside, session_on_reply() would be too large for reply_format(). */
static __attribute__((noinline)) void reply_to_command(struct session *session, const char *tag,
                                                       const struct reply *reply)
{
    char answer[LIMIT_REPLY];
    /* Only the reply to EXTEND has a token and no field for the fence: it grants nothing new. */
    const char *token = reply->fence >= 0 ? reply->token : NULL;
    size_t len = reply_format_resp(reply, session->dialect, answer);
    write_in_order(session, tag, token, answer, len);
}

void session_on_reply(struct session *session, const char *tag, size_t tag_len,
                      const struct reply *reply)
{
    char answer[LIMIT_REPLY];
    if (session->dialect == DIALECT_LINE) {
        size_t len = reply_format(reply, tag, tag_len, answer);
        if (make_room(session, len))
            stream_write(&session->stream, answer, len);
    } else {
        reply_to_command(session, tag, reply);
    }
    request_done(session, tag);
}

static const char undone[] =
    "the client ended the connection before the reply to this LOCK, so the lock is released; keep "
    "the connection open until the reply";

void session_on_undone(struct session *session, const char *tag, size_t tag_len)
{
    char answer[LIMIT_REPLY];
    session->clients->request_errors[REQUEST_BAD_ARGUMENTS]++;
    size_t len = format_error(session, REQUEST_BAD_ARGUMENTS, undone, tag, tag_len, answer);
    if (session->dialect != DIALECT_LINE)
        write_in_order(session, tag, NULL, answer, len);
    else
        session_write_bytes(session, answer, len);
    request_done(session, tag);
}

static void write_push(struct session *session, const struct push *push, const char *message,
                       size_t len)
{
    bool kept = false;
    /* The client has to read the grant of a lock before a message about it. */
    if (!reply_queue_push(&session->replies, push->token, message, len, &kept))
        drop_for_memory(session);
    else if (!kept)
        stream_write(&session->stream, message, len);
}

void session_on_push(struct session *session, const struct push *push)
{
    char message[LIMIT_REPLY];
    /* A push never drops its client. A warning is left out if there is little room. A loss is
     * always written, because there is at most one per lock. */
    if (push->kind != PUSH_LOST && session_room(session) <= LIMIT_CLIENT_OUTPUT / 2)
        return;
    if (session->dialect == DIALECT_LINE)
        stream_write(&session->stream, message, reply_format_push(push, message));
    else
        write_push(session, push, message, reply_format_push_resp(push, message));
}

/* --- authentication --- */

void clients_set_auth_timer(struct clients *clients)
{
    int64_t deadline_ns = auth_deadline_ns(&clients->auth);
    if (deadline_ns == INT64_MAX) {
        event_del(clients->auth_timer);
        return;
    }
    const struct timeval left = clock_delay(deadline_ns - clock_now_ns());
    event_add(clients->auth_timer, &left);
}

/* --- for the log --- */

const char *session_user(const struct session *session, const char *none)
{
    const struct user *user = session->identity.user;
    return user != NULL ? user->config->name : none;
}

void session_log_authenticated(const struct session *session)
{
    log_event(session->clients->log, CONFIG_LOG_DEBUG, "client_authenticated",
              LOG_FIELDS(log_number("client", (int64_t)engine_client_id(&session->client)),
                         log_text("peer", session->peer),
                         log_text("user", session_user(session, ""))));
}
