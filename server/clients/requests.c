#include "server/clients/session.h"

#include <assert.h>
#include <string.h>

#include "server/clients/auth.h"
#include "server/clients/client_log.h"
#include "server/clients/clients.h"
#include "server/log.h"

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

bool requests_authenticate(struct session *session, const struct request *request,
                           struct auth_credentials *credentials)
{
    /* The first word in the line protocol and in RESP, and the text that follows. */
    static const struct {
        const char *word;
        const char *resp_word;
        const char *text;
    } refusals[] = {
        [AUTH_AGAIN] = {"DENIED", "ERR",
                        "this connection has already authenticated; open another one"},
        [AUTH_BOUND] = {"DENIED", "ERR",
                        "the user may not change while this connection has a HOLD or a pending "
                        "request; open another one"},
        /* The secret was not checked, so the client may retry it. */
        [AUTH_LIMITED] = {"LIMIT", "LIMIT", "secrets"},
        [AUTH_WRONG] = {"DENIED", "WRONGPASS", "wrong secret"},
    };
    enum auth_throttle_news news;
    /* Another user may be unable to release what the connection has. */
    credentials->same_user =
        engine_client_holds(&session->client) > 0 || engine_client_requests(&session->client) > 0;
    enum auth_result result = auth_try(&session->clients->auth, &session->identity, credentials,
                                       session->lines_ns, &news);
    if (result == AUTH_ACCEPTED)
        session_log_authenticated(session);
    if (result == AUTH_WRONG)
        log_wrong_secret(session, news);
    if (result == AUTH_ACCEPTED || result == AUTH_IGNORED)
        return true;
    session_write_refusal(session, request, refusals[result].word, refusals[result].resp_word,
                          refusals[result].text);
    /* Redis clients send more commands without waiting for the reply. If the connection were
     * closed, they could report that they cannot write, instead of the reply. The connection is
     * closed after auth_timeout. */
    if (session->identity.state == AUTH_PENDING && session->dialect == DIALECT_LINE)
        session_close_when_written(session);
    return false;
}

static void authenticate(struct session *session, const struct request *request)
{
    struct auth_credentials credentials = {.secret = request->secret,
                                           .secret_len = request->secret_len};
    if (requests_authenticate(session, request, &credentials))
        session_write_text(session, request, "OK");
}

static void run(struct session *session, struct request *request)
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
        session_submit(session, request);
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
        session_close_when_written(session);
        break;
    case VERB_AUTH:
        authenticate(session, request);
        break;
    case VERB_COUNT:
        assert(false && "no verb");
    }
}

/* Whether the request has no other effect than its reply. */
static bool is_query(enum verb verb)
{
    switch (verb) {
    case VERB_STATUS:
    case VERB_NODES:
    case VERB_STATS:
    case VERB_LOCKS:
    case VERB_CLIENTS:
    case VERB_HELP:
    case VERB_PING:
    case VERB_VERSION:
        return true;
    default:
        return false;
    }
}

/* Whether the daemon refuses the request to this client. */
static enum acl_answer check(const struct session *session, const struct request *request,
                             enum request_error failed)
{
    const struct acl *acl = &session->identity.acl;
    if (failed == REQUEST_FINE)
        return acl_check(acl, request->verb, request->resource, request->resource_len);
    return acl_may_reveal(acl, failed) ? ACL_YES : ACL_NOT_KNOWN;
}

/* Redis clients recognize the beginning of this text. */
static void refuse_unknown(struct session *session, const char *line, size_t len)
{
    enum { QUOTE_MAX = 32 };
    struct error error;
    struct text text = error_begin(&error);
    const char *space = memchr(line, ' ', len);
    size_t name_len = space != NULL ? (size_t)(space - line) : len;
    text_string(&text, "unknown command '");
    text_escape(&text, line, name_len < QUOTE_MAX ? name_len : QUOTE_MAX, TEXT_QUOTED);
    text_string(&text, "': redlockd is a lock manager, HELP lists its commands");
    session_write_error(session, NULL, REQUEST_UNKNOWN_VERB, error.text);
}

enum line_outcome requests_take_line(struct session *session, const char *line, size_t len)
{
    struct request request;
    struct error error;
    enum request_error failed =
        request_parse(line, len, &session->clients->request_limits, &request, &error);
    if (failed == REQUEST_EMPTY)
        return LINE_TAKEN;
    if (request.tag == NULL && session->untagged_pending)
        return LINE_PENDING;
    enum acl_answer may = check(session, &request, failed);
    bool may_run = may == ACL_YES && failed == REQUEST_FINE;
    /* Many connections can be lost together, each with many queries that were not read before. */
    if (may_run && session->stream.failure != 0 && is_query(request.verb))
        return LINE_TAKEN;
    if (may_run && listing_is_limited(&request) &&
        !turns_may_be_slow(&session->clients->turns, &session->turn))
        return LINE_LATER;
    session->requests++;
    if (may != ACL_YES)
        session_deny(session, &request, request.verb, may);
    else if (failed == REQUEST_UNKNOWN_VERB && session->dialect != DIALECT_LINE)
        refuse_unknown(session, line, len);
    else if (failed != REQUEST_FINE)
        session_write_error(session, &request, failed, error.text);
    else if (request.tag != NULL && engine_tag_in_use(session->clients->engine, &session->client,
                                                      request.tag, request.tag_len))
        session_write_error(
            session, &request, REQUEST_BAD_TAG,
            "a request with this tag is pending; use another tag or wait for its reply");
    else if (request.hold && session->dialect == DIALECT_RESP2)
        session_write_error(session, &request, REQUEST_BAD_ARGUMENTS,
                            "HOLD needs RESP3, because LOST is a push message; send HELLO 3 first");
    else
        run(session, &request);
    return LINE_TAKEN;
}
