#include "server/clients/session.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "engine/engine.h"
#include "protocol/foreign.h"
#include "server/clients/clients.h"
#include "server/clients/listing.h"
#include "server/clock.h"
#include "server/entropy.h"
#include "server/net/pass.h"
#include "server/net/tls.h"

/* Of an evbuffer, in which the longest line is: it grows by blocks of 512 bytes or more. */
enum { WIPED_PIECES = LIMIT_LINE / 256 };

static void want_sweep(struct session *session)
{
    if (session->on_sweep)
        return;
    session->on_sweep = true;
    LIST_INSERT_HEAD(&session->clients->swept, session, swept);
    event_active(session->clients->sweep, 0, 0);
}

/* Go on with it in the next pass of the loop, behind what is ready by then. */
static void want_turn(struct session *session)
{
    static const struct timeval at_once = {0};
    if (session->has_turn)
        return;
    session->has_turn = true;
    TAILQ_INSERT_TAIL(&session->clients->turns, session, turn);
    event_add(session->clients->turn, &at_once);
}

static void drop_as(struct session *session, enum client_log_kind kind, const char *why)
{
    if (session->dropped)
        return;
    session->dropped = true;
    session->client.gone = true;
    client_log(&session->clients->client_log, kind,
               LOG_FIELDS(log_number("client", (int64_t)session->client.id),
                          log_text("peer", session->peer), log_text("name", session->client.label),
                          log_text("why", why)));
    want_sweep(session);
}

static void drop(struct session *session, const char *why)
{
    drop_as(session, CLIENT_LOG_DROPPED, why);
}

/* --- answers --- */

/* How many bytes can be written before it counts as one that does not read its answers. */
static size_t session_room(const struct session *session)
{
    size_t unread = stream_unsent(&session->stream);
    return unread < LIMIT_CLIENT_OUTPUT ? LIMIT_CLIENT_OUTPUT - unread : 0;
}

/* A piece of its stream: written whole, or not at all; then the session is dropped. */
static void write_piece(struct session *session, size_t len)
{
    if (len > session_room(session))
        drop(session, "it does not read its answers");
    if (!session->dropped)
        stream_write_piece(&session->stream, len);
}

static void session_write_line(struct session *session, const struct request *request,
                               const char *line, size_t len)
{
    char *piece = stream_piece(&session->stream);
    write_piece(session, reply_format_line(line, len, request->tag, request->tag_len, piece));
}

static void write_text(struct session *session, const struct request *request, const char *text)
{
    session_write_line(session, request, text, strlen(text));
}

static void write_error(struct session *session, enum request_error error, const char *text,
                        const char *tag, size_t tag_len)
{
    const char *code = request_error_word(error);
    char *piece = stream_piece(&session->stream);
    write_piece(session, reply_format_error(code, text, tag, tag_len, piece));
}

/* It will send no more; over TLS, as far as the kernel knows. */
static bool has_ended(const struct session *session)
{
    return session->ended || session->end_seen;
}

/* An answer to a request the engine had. The next untagged one may start, after this pass. */
static void answered(struct session *session, const char *tag)
{
    if (tag == NULL)
        session->untagged_under_way = false;
    if (session->held_back_len > 0 || has_ended(session))
        want_sweep(session);
}

void session_on_reply(struct session *session, const char *tag, size_t tag_len,
                      const struct reply *reply)
{
    char *piece = stream_piece(&session->stream);
    write_piece(session, reply_format(reply, tag, tag_len, piece));
    answered(session, tag);
}

void session_on_undone(struct session *session, const char *tag, size_t tag_len)
{
    session->clients->request_errors[REQUEST_BAD_ARGUMENTS]++;
    write_error(session, REQUEST_BAD_ARGUMENTS,
                "the connection was ended before this LOCK was answered, so it is undone; keep it "
                "open until the answer",
                tag, tag_len);
    answered(session, tag);
}

void session_on_push(struct session *session, const struct push *push)
{
    /* Nobody is dropped for these: a warning is a courtesy, and of losses there is one for each
     * lock, so their number is bounded. */
    if (push->kind == PUSH_LOST || session_room(session) > LIMIT_CLIENT_OUTPUT / 2)
        stream_write_piece(&session->stream,
                           reply_format_push(push, stream_piece(&session->stream)));
}

/* --- requests --- */

static void deny(struct session *session, const struct request *request, enum permit_answer why)
{
    char line[128];
    session->clients->denied++;
    int len = snprintf(line, sizeof(line), "DENIED %s", permit_text(why, request->verb));
    session_write_line(session, request, line, (size_t)len);
}

static void authenticate(struct session *session, const struct request *request)
{
    bool closes;
    const char *answer = gate_auth(session, request->secret, request->secret_len, &closes);
    write_text(session, request, answer);
    if (!closes)
        return;
    session->quitting = true;
    want_sweep(session);
}

/* However many there are, so it is a turn of its own. */
static bool walks_over_all(const struct request *request)
{
    return request->verb == VERB_CLIENTS ||
           (request->verb == VERB_LOCKS && request->resource == NULL);
}

/* A long one ends with how many more there are: no client is dropped for asking. */
static void write_listing(struct session *session, const struct request *request)
{
    struct listing listing;
    char buf[LIMIT_REPLY];
    unsigned lines = 0;
    unsigned more = 0;
    listing_begin(&listing, session->clients, session, request, clock_now_ns());
    for (;;) {
        struct text line = {.buf = buf, .size = sizeof(buf)};
        bool fits = !walks_over_all(request) || (more == 0 && lines < LIMIT_LISTING_LINES &&
                                                 session_room(session) >= 4 * LIMIT_REPLY);
        if (!listing_next(&listing, fits ? &line : NULL))
            break;
        if (fits)
            session_write_line(session, request, line.buf, line.len);
        lines += fits;
        more += !fits;
    }
    if (more > 0) {
        struct text line = {.buf = buf, .size = sizeof(buf)};
        text_format(&line, "more=%u", more);
        session_write_line(session, request, line.buf, line.len);
    }
    write_text(session, request, "END");
}

static void run(struct session *session, const struct request *request)
{
    struct clients *clients = session->clients;
    clients->requests[request->verb]++;
    /* It would be undone: so no round is run for it, whose place others could use. */
    if (request->verb == VERB_LOCK && has_ended(session)) {
        session_on_undone(session, request->tag, request->tag_len);
        return;
    }
    switch (request->verb) {
    case VERB_LOCK:
    case VERB_UNLOCK:
    case VERB_EXTEND:
    case VERB_STATUS:
    case VERB_BREAK:
        session->untagged_under_way = session->untagged_under_way || request->tag == NULL;
        engine_submit(clients->engine, &session->client, request, session->turn_ns);
        break;
    case VERB_NAME:
        memcpy(session->client.label, request->label, request->label_len);
        session->client.label[request->label_len] = '\0';
        write_text(session, request, "OK");
        break;
    case VERB_NODES:
    case VERB_STATS:
    case VERB_LOCKS:
    case VERB_CLIENTS:
    case VERB_HELP:
        if (walks_over_all(request))
            session->turn_lines = clients->turn_lines;
        write_listing(session, request);
        break;
    case VERB_PING:
        /* It proves what is held: what is lost by now has to be told of before it. */
        engine_catch_up(clients->engine, session->turn_ns);
        write_text(session, request, "PONG");
        break;
    case VERB_VERSION:
        write_text(session, request, "VERSION 1 redlockd/" REDLOCKD_VERSION);
        break;
    case VERB_QUIT:
        write_text(session, request, "BYE");
        session->quitting = true;
        engine_client_quit(clients->engine, &session->client, session->turn_ns);
        want_sweep(session);
        break;
    case VERB_AUTH:
        authenticate(session, request);
        break;
    case VERB_COUNT:
        assert(false && "no verb");
    }
}

/* A line without its end. False if it cannot start yet: it is untagged, and another is under way.
 */
static bool take_line(struct session *session, const char *line, size_t len)
{
    struct request request;
    struct error error;
    enum request_error failed =
        request_parse(line, len, &session->clients->request_limits, &request, &error);
    if (failed == REQUEST_EMPTY)
        return true;
    if (request.tag == NULL && session->untagged_under_way)
        return false;
    session->requests++;
    enum permit_answer may = PERMIT_YES;
    if (failed == REQUEST_FINE)
        may = permit_ask(&session->permit, request.verb, request.resource, request.resource_len);
    else if (!permit_tells(&session->permit, failed))
        may = PERMIT_NOT_KNOWN;
    if (may != PERMIT_YES) {
        deny(session, &request, may);
    } else if (failed != REQUEST_FINE) {
        session->clients->request_errors[failed]++;
        write_error(session, failed, error.text, request.tag, request.tag_len);
    } else if (request.tag != NULL &&
               engine_tag_in_use(&session->client, request.tag, request.tag_len)) {
        session->clients->request_errors[REQUEST_BAD_TAG]++;
        write_error(session, REQUEST_BAD_TAG,
                    "a request with this tag is under way; use another, or wait for its answer",
                    request.tag, request.tag_len);
    } else {
        run(session, &request);
    }
    return true;
}

/* A client of another protocol gets no answer that it could mistake for one. */
static bool is_foreign(struct session *session, const char *bytes, size_t len, bool whole)
{
    if (session->spoken)
        return false;
    session->spoken = whole;
    const char *what = foreign_protocol(bytes, len);
    if (what == NULL)
        return false;
    drop(session, what);
    return true;
}

static bool may_take(const struct session *session)
{
    return !session->dropped && !session->quitting;
}

/* A line with an AUTH is not left lying where it was. */
static bool may_be_secret(const struct session *session)
{
    return !session->clients->gate.open && !session->by_secret;
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

static bool has_more_turn(const struct session *session)
{
    return may_take(session) && session->turn_lines < session->clients->turn_lines;
}

static bool can_start_held_back(const struct session *session)
{
    return session->held_back_len > 0 && !session->untagged_under_way;
}

/* One line that was held back, and can start. */
static void take_held_back(struct session *session)
{
    char line[LIMIT_LINE + 1];
    ev_ssize_t len = evbuffer_copyout(session->held_back, line, sizeof(line));
    assert(len > 0);
    const char *end = memchr(line, '\n', (size_t)len);
    assert(end != NULL);
    size_t line_len = (size_t)(end - line);
    bool secret = may_be_secret(session);
    if (secret)
        wipe(session->held_back, line_len);
    evbuffer_drain(session->held_back, line_len + 1);
    session->held_back_len -= line_len + 1;
    session->turn_lines++;
    take_line(session, line, line_len);
    if (secret)
        explicit_bzero(line, sizeof(line));
}

static void hold_back(struct session *session, const char *line, size_t len)
{
    if (evbuffer_add(session->held_back, line, len) != 0 ||
        evbuffer_add(session->held_back, "\n", 1) != 0) {
        drop(session, "there is no memory for its requests");
        return;
    }
    session->held_back_len += len + 1;
}

static bool has_room(const struct session *session)
{
    return session->held_back_len + LIMIT_LINE + 1 <= LIMIT_CLIENT_HELD_BACK;
}

/* Behind those held back, unless it is tagged. */
static bool waits_behind(const struct session *session, const char *line, size_t len)
{
    struct request tag;
    if (session->held_back_len == 0)
        return false;
    request_tag(line, len, &tag);
    return tag.tag == NULL;
}

/* A complete line. */
static void on_line(struct session *session, const char *line, size_t len)
{
    if (len > 0 && len < LIMIT_LINE && line[len - 1] == '\r')
        len--;
    if (waits_behind(session, line, len) || !take_line(session, line, len))
        hold_back(session, line, len);
}

/*
 * Take one line from the input. Of one that is too long, the start stands for the whole, and the
 * rest is thrown away up to its end. Returns false once there is no whole line, nothing left, or no
 * room to hold a line back.
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
    if (is_foreign(session, line, got, end != NULL))
        return false;

    if (end == NULL && len < LIMIT_LINE) {
        if (session->discarding)
            stream_consume(&session->stream, len);
        return false;
    }
    bool rest_of_line = session->discarding;
    session->discarding = end == NULL;
    bool secret = may_be_secret(session);
    session->turn_lines++;
    if (!rest_of_line)
        on_line(session, line, len);
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

/* Everything that can be done now for this client. */
static void serve(struct session *session)
{
    session->turn_lines = 0;
    session->clients->turn_count++;
    /* For all of the turn: no line of it was sent later than that. */
    session->turn_ns = clock_now_ns();
    while (can_start_held_back(session) && has_more_turn(session))
        take_held_back(session);
    while (has_more_turn(session) && take_input(session))
        ;
    bool takes_more = may_take(session);
    if (takes_more && !has_more_turn(session) &&
        (can_start_held_back(session) || has_input(session)))
        want_turn(session);
    /* Not read from while there is no room: then the client has to wait, not the daemon. Its end
     * has to be noticed all the same; and before its next turn, too: a LOCK must not be granted to
     * one who has gone meanwhile. */
    bool reads = takes_more && has_room(session);
    stream_set_reading(&session->stream, reads);
    end_watch_set(&session->end_watch,
                  takes_more && !has_ended(session) && (!reads || session->has_turn));
}

static bool all_answered(const struct session *session)
{
    return session->client.call_count == 0 && !session->has_turn && session->held_back_len == 0;
}

/* --- the connection --- */

static void session_on_input(void *context)
{
    struct session *session = context;
    serve(session);
    pass_want_end(session->clients->pass);
}

/* All that was written has gone out: the moment to close, if that is due. */
static void session_on_written(void *context)
{
    struct session *session = context;
    if (session->quitting || session->ended)
        want_sweep(session);
}

/* A connection that is reset may have been so by anything on its way, and its client lives; but a
 * unix socket has no way: the kernel says so when a client ends that has not read all. Where the
 * daemon lost it, for lack of memory, the client may live and trust its HOLDs. */
static void on_lost(struct session *session, bool by_peer)
{
    struct clients *clients = session->clients;
    const char *why = "the connection was lost";
    /* Many clients just close, and never say close_notify: that matters only to a HOLD or a LOCK.
     */
    bool usual = session->stream.tls != NULL &&
                 tls_failure_of(session->stream.tls, &why) == TLS_ENDED &&
                 session->client.hold_count == 0 && session->client.call_count == 0;
    if (session->local && by_peer)
        engine_client_closed(clients->engine, &session->client, clock_now_ns());
    drop_as(session, usual ? CLIENT_LOG_ENDED : CLIENT_LOG_DROPPED, why);
    pass_want_end(clients->pass);
}

/* The client will send no more. Over TLS, what the kernel tells of the end of the connection is no
 * word of the client: anybody on its way can make it. Whether it was one in order shows when all
 * has been read; until then, no HOLD is released. */
static void tell_end(struct session *session)
{
    struct engine *engine = session->clients->engine;
    if (session->stream.tls != NULL && !session->ended)
        engine_client_ending(engine, &session->client, clock_now_ns());
    else
        engine_client_half_closed(engine, &session->client, clock_now_ns());
}

static void session_on_lost(void *context)
{
    struct session *session = context;
    if (!session->dropped)
        on_lost(session, stream_lost_by_peer(&session->stream));
}

/* The client sends no more, but may still read: all but its LOCKs is answered. */
static void session_on_end(void *context)
{
    struct session *session = context;
    if (session->dropped)
        return;
    session->ended = true;
    serve(session);
    tell_end(session);
    want_sweep(session);
    pass_want_end(session->clients->pass);
}

static const struct stream_user client = {
    .on_input = session_on_input,
    .on_written = session_on_written,
    .on_end = session_on_end,
    .on_lost = session_on_lost,
    .input_max = LIMIT_CLIENT_INPUT,
};

/* The client ended its side, behind lines that we have not read yet; or the connection was lost. */
static void session_on_end_seen(void *context)
{
    struct session *session = context;
    int error = 0;
    socklen_t len = sizeof(error);
    if (session->dropped)
        return;
    if (getsockopt(session->stream.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
        on_lost(session, error == ECONNRESET);
        return;
    }
    session->end_seen = true;
    tell_end(session);
    want_sweep(session);
    pass_want_end(session->clients->pass);
}

/* By their number a client could tell how many there are: users must not count each other. */
static uint64_t draw_id(struct clients *clients)
{
    uint64_t id = ++clients->next_session_id;
    if (!clients->gate.open) {
        entropy_fill(clients->entropy, &id, sizeof(id));
        id >>= 16;
    }
    return id;
}

/* Whatever it has but its connection. */
static void session_discard(struct session *session)
{
    evbuffer_free(session->held_back);
    free(session);
}

/* For a connection to come; NULL if there is not enough memory. */
static struct session *session_make(struct clients *clients)
{
    struct session *session = calloc(1, sizeof(*session));
    if (session == NULL)
        return NULL;
    session->clients = clients;
    session->held_back = evbuffer_new();
    if (session->held_back != NULL)
        return session;
    free(session);
    return NULL;
}

/* It has its connection. */
static void session_begin(struct session *session, const struct peer *peer)
{
    struct clients *clients = session->clients;
    session->end_watch = (struct end_watch){.ends = &clients->ends,
                                            .fd = session->stream.fd,
                                            .on_end = session_on_end_seen,
                                            .context = session};
    session->local = peer->local;
    session->owner = peer->owner;
    session->origin = peer->origin;
    session->since_ns = clock_now_ns();
    snprintf(session->peer, sizeof(session->peer), "%s", peer->name);
    if (session->stream.tls != NULL)
        tls_peer_name(session->stream.tls, session->subject, sizeof(session->subject));
    if (session->subject[0] != '\0')
        snprintf(session->peer, sizeof(session->peer), "%s,cn=%s", peer->name, session->subject);
    engine_client_init(&session->client, draw_id(clients));
    LIST_INSERT_HEAD(&clients->sessions, session, entry);
    clients->session_count++;
    gate_enter(session);
    log_event(clients->log, CONFIG_LOG_DEBUG, "client_connected",
              LOG_FIELDS(log_number("client", (int64_t)session->client.id),
                         log_text("peer", session->peer)));
}

bool session_new(struct clients *clients, int fd, const struct peer *peer)
{
    struct session *session = session_make(clients);
    if (session == NULL) {
        evutil_closesocket(fd);
        return false;
    }
    if (!stream_open(&session->stream, clients->streams, fd, &client, session)) {
        session_discard(session);
        return false;
    }
    session_begin(session, peer);
    return true;
}

bool session_new_tls(struct clients *clients, struct bufferevent *tls, const struct peer *peer)
{
    struct session *session = session_make(clients);
    if (session == NULL) {
        bufferevent_free(tls);
        return false;
    }
    if (!stream_open_tls(&session->stream, clients->streams, tls, &client, session)) {
        session_discard(session);
        return false;
    }
    session_begin(session, peer);
    return true;
}

static void session_free(struct session *session)
{
    struct clients *clients = session->clients;
    engine_client_gone(clients->engine, &session->client, clock_now_ns());
    log_event(clients->log, CONFIG_LOG_DEBUG, "client_closed",
              LOG_FIELDS(log_number("client", (int64_t)session->client.id),
                         log_number("requests", (int64_t)session->requests)));
    if (session->on_sweep)
        LIST_REMOVE(session, swept);
    if (session->has_turn)
        TAILQ_REMOVE(&clients->turns, session, turn);
    LIST_REMOVE(session, entry);
    gate_leave(session);
    origins_leave(&clients->origins, &session->origin);
    clients->session_count--;
    /* Who is dropped must not take it for an end in order. */
    if (session->stream.tls != NULL && !session->dropped)
        tls_farewell(session->stream.tls);
    end_watch_set(&session->end_watch, false);
    stream_close(&session->stream);
    session_discard(session);
    clients->place_freed = true;
    pass_want_end(clients->pass);
}

void session_evict(struct session *session, const char *line, const char *why)
{
    /* Behind what it has not read yet it would be cut off; nor can TLS be written here. */
    if (!session->dropped && session->stream.tls == NULL &&
        session_room(session) == LIMIT_CLIENT_OUTPUT)
        (void)!send(session->stream.fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
    session->client.gone = true;
    /* Locks end with it. */
    log_event(session->clients->log,
              session->client.hold_count > 0 ? CONFIG_LOG_INFO : CONFIG_LOG_DEBUG, "client_evicted",
              LOG_FIELDS(log_number("client", (int64_t)session->client.id),
                         log_text("peer", session->peer), log_text("why", why),
                         log_number("holds", session->client.hold_count)));
    session_free(session);
}

void session_free_all(struct clients *clients)
{
    struct session *session;
    while ((session = LIST_FIRST(&clients->sessions)) != NULL)
        session_free(session);
}

void session_take_turns(struct clients *clients)
{
    struct session_queue turns = TAILQ_HEAD_INITIALIZER(turns);
    struct session *session;
    TAILQ_CONCAT(&turns, &clients->turns, turn);
    while ((session = TAILQ_FIRST(&turns)) != NULL) {
        TAILQ_REMOVE(&turns, session, turn);
        session->has_turn = false;
        if (!session->dropped)
            serve(session);
        /* What was put off by it may be done now. */
        if (has_ended(session))
            want_sweep(session);
    }
    pass_want_end(clients->pass);
}

static void sweep(struct session *session)
{
    if (!session->dropped)
        serve(session);
    if (has_ended(session) && !session->dropped)
        tell_end(session);
    bool written = stream_unsent(&session->stream) == 0;
    bool over = session->ended && all_answered(session);
    bool done = session->quitting || over;
    /* No QUIT can come any more. It may take as long as it likes to read its answers, but what
     * lingers is not extended meanwhile. */
    if (over && !session->dropped)
        engine_client_gone(session->clients->engine, &session->client, clock_now_ns());
    if (session->dropped || (done && written))
        session_free(session);
}

void session_sweep(struct clients *clients)
{
    struct session *session;
    while ((session = LIST_FIRST(&clients->swept)) != NULL) {
        LIST_REMOVE(session, swept);
        session->on_sweep = false;
        sweep(session);
    }
    pass_want_end(clients->pass);
}
