#include "server/clients/session.h"

#include <assert.h>
#include <string.h>

#include "protocol/foreign.h"
#include "protocol/limits.h"

/* The most segments of an evbuffer that a line can span. Segments have at least 512 bytes, so this
 * is more than enough. */
enum { WIPED_PIECES = LIMIT_LINE / 256 };

/* Drop the connection if its first bytes belong to another protocol. It gets no reply, because its
 * client could misread any reply. `whole`: the bytes contain the first complete line. */
static bool drop_if_foreign(struct session *session, const char *bytes, size_t len, bool whole)
{
    if (session->first_line_seen)
        return false;
    session->first_line_seen = whole;
    const char *what = foreign_protocol(bytes, len);
    if (what == NULL)
        return false;
    session_drop(session, what);
    return true;
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

bool lines_can_start(const struct session *session)
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
    bool secret = session_may_send_secret(session);
    session->turn.lines_left--;
    bool taken = requests_take_line(session, line, line_len) != LINE_LATER;
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

bool lines_have_room(const struct session *session)
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
        outcome = requests_take_line(session, line, len);
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
    if (got == 0 || !lines_have_room(session))
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
    bool secret = session_may_send_secret(session);
    session->turn.lines_left--;
    if (!rest_of_line && !on_line(session, line, len))
        return false;
    if (secret)
        explicit_bzero(line, len);
    size_t taken = end != NULL ? len + 1 : len;
    stream_consume(&session->stream, taken);
    return taken < got;
}

void lines_take(struct session *session)
{
    while (lines_can_start(session) && session_has_budget(session))
        take_pending(session);
    while (session_has_budget(session) && take_input(session))
        ;
}
