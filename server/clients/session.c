#include "server/clients/session.h"

#include <assert.h>
#include <string.h>

#include "config/users.h"
#include "engine/engine.h"
#include "protocol/limits.h"
#include "server/clients/clients.h"
#include "server/log.h"
#include "server/net/pass.h"

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

bool clients_have_time(struct clients *clients, int64_t now_ns)
{
    return pass_has_time(clients->pass, now_ns) && engine_takes_requests(clients->engine);
}

void session_want_next_pass(struct session *session)
{
    if (session->on_next_pass)
        return;
    session->on_next_pass = true;
    TAILQ_INSERT_TAIL(&session->clients->next_pass, session, next_pass);
    pass_want_end(session->clients->pass);
}

bool session_must_wait(const struct session *session)
{
    return session->slow && session->clients->slow_served;
}

void session_set_state(struct session *session, enum session_state state)
{
    assert(state > session->state);
    session->state = state;
    if (state == SESSION_DROPPED)
        engine_client_unreachable(&session->client);
    if (state != SESSION_OPEN)
        session_defer(session);
    assert(state == SESSION_OPEN || session->is_deferred);
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

/* --- output --- */

size_t session_room(const struct session *session)
{
    size_t unread = stream_unsent(&session->stream);
    return unread < LIMIT_CLIENT_OUTPUT ? LIMIT_CLIENT_OUTPUT - unread : 0;
}

/* Write the whole reply, or drop the session. */
static void write_reply(struct session *session, const char *answer, size_t len)
{
    if (len > session_room(session))
        session_drop(session, "the client does not read its replies");
    if (session->state != SESSION_DROPPED)
        stream_write(&session->stream, answer, len);
}

void session_write_line(struct session *session, const struct request *request, const char *line,
                        size_t len)
{
    char answer[LIMIT_REPLY];
    write_reply(session, answer,
                reply_format_line(line, len, request->tag, request->tag_len, answer));
}

void session_write_text(struct session *session, const struct request *request, const char *text)
{
    session_write_line(session, request, text, strlen(text));
}

void session_write_error(struct session *session, enum request_error error, const char *text,
                         const char *tag, size_t tag_len)
{
    const char *code = request_error_word(error);
    char answer[LIMIT_REPLY];
    write_reply(session, answer, reply_format_error(code, text, tag, tag_len, answer));
}

/* --- callbacks of the engine --- */

/* The engine has replied to a request. The next untagged request can start after this pass. */
static void request_done(struct session *session, const char *tag)
{
    if (tag == NULL)
        session->untagged_pending = false;
    if (session->pending_input != NULL || session_has_ended(session))
        session_defer(session);
}

void session_on_reply(struct session *session, const char *tag, size_t tag_len,
                      const struct reply *reply)
{
    char answer[LIMIT_REPLY];
    write_reply(session, answer, reply_format(reply, tag, tag_len, answer));
    request_done(session, tag);
}

void session_on_undone(struct session *session, const char *tag, size_t tag_len)
{
    session->clients->request_errors[REQUEST_BAD_ARGUMENTS]++;
    session_write_error(session, REQUEST_BAD_ARGUMENTS,
                        "the client ended the connection before the reply to this LOCK, so the "
                        "lock is released; keep the connection open until the reply",
                        tag, tag_len);
    request_done(session, tag);
}

void session_on_push(struct session *session, const struct push *push)
{
    char line[LIMIT_REPLY];
    /* A push never drops its client. A warning is left out if there is little room. A loss is
     * always written, because there is at most one per lock. */
    if (push->kind == PUSH_LOST || session_room(session) > LIMIT_CLIENT_OUTPUT / 2)
        stream_write(&session->stream, line, reply_format_push(push, line));
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
