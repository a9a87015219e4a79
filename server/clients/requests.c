#include "server/clients/session.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "protocol/foreign.h"
#include "protocol/limits.h"
#include "protocol/text.h"
#include "server/clients/auth.h"
#include "server/clients/client_log.h"
#include "server/clients/clients.h"
#include "server/clock.h"
#include "server/log.h"
#include "server/net/pass.h"

/* The most segments of an evbuffer that a line can span. Segments have at least 512 bytes, so this
 * is more than enough. */
enum { WIPED_PIECES = LIMIT_LINE / 256 };

/* Take no more lines, and close the session once all its output is sent. */
static void close_when_written(struct session *session)
{
    if (session->state < SESSION_CLOSING)
        session_set_state(session, SESSION_CLOSING);
}

static void deny(struct session *session, const struct request *request, enum acl_answer why)
{
    char line[LIMIT_REPLY];
    session->clients->denied++;
    int len = snprintf(line, sizeof(line), "DENIED %s", acl_text(why, request->verb));
    session_write_line(session, request, line, (size_t)len);
}

static void log_wrong_secret(const struct session *session, enum auth_throttle_news news)
{
    static const enum client_log_kind kinds[] = {
        [AUTH_THROTTLE_NOTHING] = CLIENT_LOG_AUTH_REPEATED,
        [AUTH_THROTTLE_FIRST] = CLIENT_LOG_AUTH_FAILED,
        [AUTH_THROTTLE_SPENT] = CLIENT_LOG_AUTH_LIMITED,
    };
    client_log(&session->clients->client_log, kinds[news],
               LOG_FIELDS(log_number("client", (int64_t)engine_client_id(&session->client)),
                          log_text("peer", session->peer),
                          log_text("why", news == AUTH_THROTTLE_SPENT
                                              ? "too many wrong secrets from this client address; "
                                                "the daemon checks no secrets from it for a while"
                                              : "no user has this secret")));
}

static void authenticate(struct session *session, const struct request *request)
{
    enum auth_throttle_news news;
    enum auth_result result = auth_try(&session->clients->auth, &session->identity, request->secret,
                                       request->secret_len, session->lines_ns, &news);
    if (result == AUTH_ACCEPTED)
        session_log_authenticated(session);
    if (result == AUTH_WRONG)
        log_wrong_secret(session, news);
    session_write_text(session, request, auth_reply(result));
    if (session->identity.state == AUTH_PENDING)
        close_when_written(session);
}

static void run(struct session *session, const struct request *request)
{
    struct clients *clients = session->clients;
    clients->requests[request->verb]++;
    /* The client has stopped sending, so the lock would be released at once. Do not run a round for
     * it, which would occupy the place of another round. */
    if (request->verb == VERB_LOCK && session_has_ended(session)) {
        session_on_undone(session, request->tag, request->tag_len);
        return;
    }
    switch (request->verb) {
    case VERB_LOCK:
    case VERB_UNLOCK:
    case VERB_EXTEND:
    case VERB_STATUS:
    case VERB_BREAK:
        session->untagged_pending = session->untagged_pending || request->tag == NULL;
        engine_submit(clients->engine, &session->client, request, session->lines_ns);
        break;
    case VERB_NAME:
        engine_client_set_name(&session->client, request->label, request->label_len);
        session_write_text(session, request, "OK");
        break;
    case VERB_NODES:
    case VERB_STATS:
    case VERB_LOCKS:
    case VERB_CLIENTS:
    case VERB_HELP:
        listing_write(session, request);
        break;
    case VERB_PING:
        /* PONG confirms that the client's HOLDs are alive. So first report the HOLDs that have been
         * lost by now. */
        engine_catch_up(clients->engine, session->lines_ns);
        session_write_text(session, request, "PONG");
        break;
    case VERB_VERSION:
        session_write_text(session, request, "VERSION 1 redlockd/" REDLOCKD_VERSION);
        break;
    case VERB_QUIT:
        session_write_text(session, request, "BYE");
        engine_client_end(clients->engine, &session->client, ENGINE_QUIT, session->lines_ns);
        close_when_written(session);
        break;
    case VERB_AUTH:
        authenticate(session, request);
        break;
    case VERB_COUNT:
        assert(false && "no verb");
    }
}

enum line_outcome {
    LINE_TAKEN,
    LINE_PENDING, /* it is untagged, and another untagged request is pending */
    LINE_LATER,   /* it has to wait for another pass, and the lines after it too */
};

/* Handle one line without its newline. */
static enum line_outcome take_line(struct session *session, const char *line, size_t len)
{
    struct request request;
    struct error error;
    enum request_error failed =
        request_parse(line, len, &session->clients->request_limits, &request, &error);
    if (failed == REQUEST_EMPTY)
        return LINE_TAKEN;
    if (request.tag == NULL && session->untagged_pending)
        return LINE_PENDING;
    enum acl_answer may = ACL_YES;
    if (failed == REQUEST_FINE)
        may =
            acl_check(&session->identity.acl, request.verb, request.resource, request.resource_len);
    else if (!acl_may_reveal(&session->identity.acl, failed))
        may = ACL_NOT_KNOWN;
    if (may == ACL_YES && failed == REQUEST_FINE && listing_is_limited(&request) &&
        session->clients->slow_served) {
        session->slow = true;
        session->lines_taken = session->clients->read_budget;
        return LINE_LATER;
    }
    session->requests++;
    if (may != ACL_YES) {
        deny(session, &request, may);
    } else if (failed != REQUEST_FINE) {
        session->clients->request_errors[failed]++;
        session_write_error(session, failed, error.text, request.tag, request.tag_len);
    } else if (request.tag != NULL && engine_tag_in_use(session->clients->engine, &session->client,
                                                        request.tag, request.tag_len)) {
        session->clients->request_errors[REQUEST_BAD_TAG]++;
        session_write_error(
            session, REQUEST_BAD_TAG,
            "a request with this tag is pending; use another tag or wait for its reply",
            request.tag, request.tag_len);
    } else {
        run(session, &request);
    }
    return LINE_TAKEN;
}

/* Drop the connection if its first bytes belong to another protocol. It gets no reply, because its
 * client could misread any reply. `whole`: the bytes contain the first complete line. */
static bool drop_if_foreign(struct session *session, const char *bytes, size_t len, bool whole)
{
    if (session->state != SESSION_NEW)
        return false;
    if (whole)
        session_set_state(session, SESSION_OPEN);
    const char *what = foreign_protocol(bytes, len);
    if (what == NULL)
        return false;
    session_drop(session, what);
    return true;
}

/* The line may be an AUTH, so erase it after use. */
static bool may_be_secret(const struct session *session)
{
    return !session->clients->auth.open && session->identity.state != AUTH_BY_SECRET;
}

static void wipe(struct evbuffer *buffer, size_t len)
{
    struct evbuffer_iovec pieces[WIPED_PIECES];
    int count = evbuffer_peek(buffer, (ev_ssize_t)len, NULL, pieces, WIPED_PIECES);
    for (int i = 0; i < count && i < WIPED_PIECES; i++) {
        size_t part = pieces[i].iov_len < len ? pieces[i].iov_len : len;
        explicit_bzero(pieces[i].iov_base, part);
        len -= part;
    }
}

static bool has_budget(const struct session *session)
{
    return session_takes_lines(session) && session->lines_taken < session->clients->read_budget;
}

static bool can_start_pending(const struct session *session)
{
    return session->pending_input != NULL && !session->untagged_pending;
}

/* Take one line of the pending input. */
static void take_pending(struct session *session)
{
    char line[LIMIT_LINE + 1];
    ev_ssize_t len = evbuffer_copyout(session->pending_input, line, sizeof(line));
    assert(len > 0);
    const char *end = memchr(line, '\n', (size_t)len);
    assert(end != NULL);
    size_t line_len = (size_t)(end - line);
    bool secret = may_be_secret(session);
    session->lines_taken++;
    bool taken = take_line(session, line, line_len) != LINE_LATER;
    if (taken && secret)
        wipe(session->pending_input, line_len);
    if (taken)
        evbuffer_drain(session->pending_input, line_len + 1);
    if (evbuffer_get_length(session->pending_input) == 0) {
        evbuffer_free(session->pending_input);
        session->pending_input = NULL;
    }
    if (secret)
        explicit_bzero(line, sizeof(line));
}

static void keep_pending(struct session *session, const char *line, size_t len)
{
    if (session->pending_input == NULL)
        session->pending_input = evbuffer_new();
    if (session->pending_input == NULL || evbuffer_add(session->pending_input, line, len) != 0 ||
        evbuffer_add(session->pending_input, "\n", 1) != 0)
        session_drop(session, "there is not enough memory for the client's requests");
}

static bool has_room(const struct session *session)
{
    return session->pending_input == NULL ||
           evbuffer_get_length(session->pending_input) + LIMIT_LINE + 1 <=
               LIMIT_CLIENT_PENDING_INPUT;
}

/* Whether this line has to wait for the pending lines; tagged lines need not. */
static bool waits_for_pending(const struct session *session, const char *line, size_t len)
{
    struct request tag;
    if (session->pending_input == NULL)
        return false;
    request_tag(line, len, &tag);
    return tag.tag == NULL;
}

/* A complete line. False if it has to be taken again in another pass. */
static bool on_line(struct session *session, const char *line, size_t len)
{
    enum line_outcome outcome = LINE_PENDING;
    if (len > 0 && len < LIMIT_LINE && line[len - 1] == '\r')
        len--;
    if (!waits_for_pending(session, line, len))
        outcome = take_line(session, line, len);
    if (outcome == LINE_PENDING)
        keep_pending(session, line, len);
    return outcome != LINE_LATER;
}

/*
 * Take one line from the input. If a line is too long, only its beginning is handled, and the rest
 * is discarded up to the newline. False if there is nothing more to take now: the input has no
 * other line, or there is no room for a pending line.
 */
static bool take_input(struct session *session)
{
    size_t got;
    char *line = stream_input(&session->stream, &got);
    if (got == 0 || !has_room(session))
        return false;
    size_t len = got < LIMIT_LINE ? got : LIMIT_LINE;
    const char *end = memchr(line, '\n', len);
    if (end != NULL)
        len = (size_t)(end - line);
    if (drop_if_foreign(session, line, got, end != NULL))
        return false;

    if (end == NULL && len < LIMIT_LINE) {
        if (session->discarding)
            stream_consume(&session->stream, len);
        return false;
    }
    bool rest_of_line = session->discarding;
    session->discarding = end == NULL;
    bool secret = may_be_secret(session);
    session->lines_taken++;
    if (!rest_of_line && !on_line(session, line, len))
        return false;
    if (secret)
        explicit_bzero(line, len);
    size_t taken = end != NULL ? len + 1 : len;
    stream_consume(&session->stream, taken);
    return taken < got;
}

static bool has_input(struct session *session)
{
    size_t left;
    stream_input(&session->stream, &left);
    return left > 0;
}

void requests_take(struct session *session)
{
    assert(!session_takes_lines(session) || !session->untagged_pending ||
           engine_client_requests(&session->client) > 0);
    session->clients->sessions_served++;
    /* All lines of this pass get one time. None of them was sent later. */
    session->lines_ns = clock_now_ns();
    /* Without time for clients in this pass, take no line and wait for the next one. */
    bool has_time = clients_have_time(session->clients, session->lines_ns);
    session->clients->crowded = session->clients->crowded || !has_time;
    bool has_turn = has_time && !session_must_wait(session);
    session->lines_taken = has_turn ? 0 : session->clients->read_budget;
    if (has_turn)
        session->slow = false;
    while (can_start_pending(session) && has_budget(session))
        take_pending(session);
    while (has_budget(session) && take_input(session))
        ;
    bool takes_more = session_takes_lines(session);
    bool reads = takes_more && has_room(session);
    bool takes_later =
        takes_more && !has_budget(session) && (can_start_pending(session) || has_input(session));
    if (takes_later || (reads && session->stream.more))
        session_want_next_pass(session);
    /* Stop reading while there is no room for pending lines, so that the client has to wait before
     * it sends more. Its hang-up must still be detected, even before the next pass, because a LOCK
     * must not be granted to a client that has disconnected. */
    stream_set_reading(&session->stream, reads);
    stream_watch_hangup(&session->stream, takes_more && !session_has_ended(session) &&
                                              (!reads || session->on_next_pass));
}
