#include "server/clients/clients.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "protocol/limits.h"
#include "server/clients/session.h"
#include "server/clock.h"
#include "server/log.h"
#include "server/net/pass.h"
#include "server/net/tls.h"
#include "server/random.h"

static bool all_answered(const struct session *session)
{
    return engine_client_requests(&session->client) == 0 && !session->turn.waits &&
           session->pending_input == NULL && !session->commands_wait;
}

/* --- input: as much as the read budget and pending requests allow --- */

static bool has_input(struct session *session)
{
    size_t left;
    stream_input(&session->stream, &left);
    return left > 0;
}

/* The first byte of a connection decides whether it speaks RESP. */
static void choose_dialect(struct session *session)
{
    size_t len;
    const char *bytes = stream_input(&session->stream, &len);
    if (len > 0 && bytes[0] == '*' && !session->discarding)
        session->dialect = DIALECT_RESP2;
}

/* Whether there is room for input that has to wait. */
static bool has_room(const struct session *session)
{
    return session->dialect == DIALECT_LINE ? lines_have_room(session) : !session->commands_wait;
}

/* Whether something could be taken now if there were budget. */
static bool can_take(struct session *session)
{
    if (session->dialect != DIALECT_LINE)
        return !session->commands_wait && has_input(session);
    return lines_can_start(session) || has_input(session);
}

static void take_input(struct session *session)
{
    assert(!session_takes_lines(session) || !session->untagged_pending ||
           engine_client_requests(&session->client) > 0);
    /* All lines of this pass get one time. None of them was sent later. */
    session->lines_ns = clock_now_ns();
    turns_begin(&session->clients->turns, &session->turn, session->lines_ns);
    if (!session->first_line_seen && session->dialect == DIALECT_LINE)
        choose_dialect(session);
    if (session->dialect == DIALECT_LINE)
        lines_take(session);
    else
        commands_take(session);
    bool takes_more = session_takes_lines(session);
    bool reads = takes_more && has_room(session);
    bool takes_later = takes_more && !session_has_budget(session) && can_take(session);
    if (takes_later || (reads && session->stream.more))
        turns_wait(&session->clients->turns, &session->turn);
    /* Stop reading while there is no room for pending lines, so that the client has to wait before
     * it sends more. Its hang-up must still be detected, even before the next pass, because a LOCK
     * must not be granted to a client that has disconnected. */
    stream_set_reading(&session->stream, reads);
    stream_watch_hangup(&session->stream, takes_more && !session_has_ended(session) &&
                                              (!reads || session->turn.waits));
}

/* --- callbacks of the stream --- */

static bool session_may_read(void *context)
{
    struct session *session = context;
    return turns_may_read(&session->clients->turns, &session->turn);
}

static void session_on_input(void *context)
{
    struct session *session = context;
    take_input(session);
    pass_want_end(session->clients->pass);
}

/* All output has been sent. If the session is to be closed after its last output, let the sweep
 * close it. RESP commands may have waited for this. */
static void session_on_written(void *context)
{
    struct session *session = context;
    if (session->state >= SESSION_ENDED || session->commands_wait)
        session_defer(session);
}

/* Drop the session after its connection was lost. */
static void drop_lost(struct session *session)
{
    const char *why = "the connection was lost";
    /* Many clients close without close_notify. That matters only if the client has a HOLD;
     * otherwise the line has level debug. */
    bool without_notify = session->stream.tls != NULL &&
                          tls_failure(session->stream.tls, &why) == REASON_DISCONNECTED &&
                          engine_client_holds(&session->client) == 0;
    session_drop_as(session, without_notify ? CLIENT_LOG_ENDED : CLIENT_LOG_DROPPED, why);
}

/* Tell the engine that the client sends no more. Until it is certain that the client itself has
 * ended the connection, the engine releases no HOLD, because the client may live and rely on it.
 * - If the peer reset a unix socket, that is certain: the kernel does so when a client exits.
 * - Any host on the path can reset a TCP connection. After another failure, the client may only
 *   have stopped receiving, or the daemon lacked memory.
 * - Over TLS, any host can forge the end that the kernel reports. Whether the client has sent
 *   close_notify is known only after all input has been read. */
static void report_end(struct session *session)
{
    const struct stream *stream = &session->stream;
    bool reset_by_exit = session->identity.peer != PEER_TCP && stream->failure == ECONNRESET;
    bool in_order = stream->tls == NULL && stream->failure == 0;
    bool proven = stream->ended || in_order || reset_by_exit;
    engine_client_end(session->clients->engine, &session->client,
                      proven ? ENGINE_HALF_CLOSED : ENGINE_ENDING, clock_now_ns());
    pass_want_end(session->clients->pass);
}

/* All input has been read. The client may still read: its pending requests get their replies,
 * except LOCKs, which are undone. The same holds for a lost connection, although no reply arrives:
 * an UNLOCK that the client has sent must be carried out. */
static void session_on_end(void *context)
{
    struct session *session = context;
    if (session->state < SESSION_ENDED) {
        session_set_state(session, SESSION_ENDED);
        take_input(session);
        report_end(session);
    }
    session_defer(session);
}

/* The client has stopped sending, or the connection has failed, while input may be unread. */
static void session_on_end_seen(void *context)
{
    struct session *session = context;
    /* The stream may report the end more than once. */
    if (session->state < SESSION_ENDING) {
        session_set_state(session, SESSION_ENDING);
        report_end(session);
    }
    session_defer(session);
}

static const struct stream_user client = {
    .may_read = session_may_read,
    .on_input = session_on_input,
    .on_written = session_on_written,
    .on_end = session_on_end,
    .on_end_seen = session_on_end_seen,
    .on_lost = session_on_end,
    .input_max = LIMIT_CLIENT_INPUT,
};

/* --- the end of a session --- */

static void session_free(struct session *session)
{
    struct clients *clients = session->clients;
    engine_client_end(clients->engine, &session->client, ENGINE_GONE, clock_now_ns());
    log_event(clients->log, CONFIG_LOG_DEBUG, "client_closed",
              LOG_FIELDS(log_number("client", (int64_t)engine_client_id(&session->client)),
                         log_number("requests", (int64_t)session->requests)));
    if (session->is_deferred)
        TAILQ_REMOVE(&clients->deferred, session, deferred);
    turns_leave(&clients->turns, &session->turn);
    LIST_REMOVE(session, entry);
    auth_leave(&clients->auth, &session->identity);
    address_counts_leave(&clients->address_counts, &session->identity.client_address);
    clients->session_count--;
    /* Send no close_notify to a dropped client: it must not take the end for a clean one. */
    if (session->stream.tls != NULL && !session->stream.lost && session->state != SESSION_DROPPED)
        tls_shutdown(session->stream.tls);
    stream_close(&session->stream);
    if (session->pending_input != NULL)
        evbuffer_free(session->pending_input);
    reply_queue_deinit(&session->replies);
    free(session);
    clients->place_freed = true;
    pass_want_end(clients->pass);
}

/* Close the session immediately. If possible, first send `text`: as a last line, or as a RESP
 * error. Must not be called from a callback of this session. */
static void evict(struct session *session, const char *text, const char *why)
{
    struct clients *clients = session->clients;
    unsigned holds = engine_client_holds(&session->client);
    char line[LIMIT_REPLY];
    int len =
        snprintf(line, sizeof(line), session->dialect == DIALECT_LINE ? "%s\n" : "-%s\r\n", text);
    /* If output is unsent, the line would follow a truncated one. To a RESP client it would be the
     * reply to the oldest pending command. TLS output cannot be flushed here. */
    if (session->state != SESSION_DROPPED && session->stream.tls == NULL &&
        stream_unsent(&session->stream) == 0 && session->replies.pending == 0)
        (void)!send(session->stream.fd, line, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
    engine_client_unreachable(&session->client);
    /* The daemon no longer extends the HOLDs of this session, so the log has their number. */
    log_event(clients->log, holds > 0 ? CONFIG_LOG_INFO : CONFIG_LOG_DEBUG, "client_evicted",
              LOG_FIELDS(log_number("client", (int64_t)engine_client_id(&session->client)),
                         log_text("peer", session->peer), log_text("why", why),
                         log_number("holds", holds)));
    session_free(session);
}

/* --- unauthenticated connections --- */

static struct session *session_of(struct auth_identity *identity)
{
    return (struct session *)((char *)identity - offsetof(struct session, identity));
}

static void sessions_on_auth_timer(evutil_socket_t fd, short events, void *context)
{
    struct clients *clients = context;
    int64_t now_ns = clock_now_ns();
    (void)fd;
    (void)events;
    /* After PASS_SLICE_NS the others have to wait for the next pass: the timer is then due. */
    while (auth_deadline_ns(&clients->auth) <= now_ns && clock_now_ns() < now_ns + PASS_SLICE_NS) {
        clients->auth.late++;
        evict(session_of(auth_oldest(&clients->auth)), "DENIED not authenticated in time",
              "the client did not authenticate in time");
    }
    clients_set_auth_timer(clients);
}

bool sessions_make_room(struct clients *clients, const char *why)
{
    struct auth_identity *oldest = auth_oldest(&clients->auth);
    if (oldest == NULL)
        return false;
    struct session *session = session_of(oldest);
    if (auth_displace(&clients->auth))
        client_log(&clients->client_log, CLIENT_LOG_DISPLACED,
                   LOG_FIELDS(log_number("unauthenticated", clients->auth.pending_count),
                              log_number("clients", clients->session_count),
                              log_text("peer", session->peer), log_text("why", why)));
    evict(session, "LIMIT unauthenticated",
          "the client had not authenticated, and a new connection needed its place");
    return true;
}

/* Determine the session's user. If the user is unknown, the session counts as unauthenticated. */
static void identify(struct session *session)
{
    struct clients *clients = session->clients;
    struct auth *auth = &clients->auth;
    if (auth_identify(auth, &session->identity)) {
        if (session->identity.state == AUTH_BY_SOCKET)
            session_log_authenticated(session);
        return;
    }
    if (auth_is_full(auth))
        sessions_make_room(clients, "limits.unauthenticated is reached; the oldest "
                                    "unauthenticated connections are closed");
    auth_await(auth, &session->identity, clock_now_ns());
    if (auth->pending_count == 1)
        clients_set_auth_timer(clients);
}

static bool may_lock(const char *name, size_t name_len, const void *acl)
{
    return acl_check(acl, VERB_LOCK, name, name_len) == ACL_YES;
}

/* Whether the session may continue after the users have changed. */
static bool may_stay(struct session *session)
{
    struct auth_identity *identity = &session->identity;
    return auth_renew(&session->clients->auth, identity) &&
           (identity->user == NULL ||
            engine_client_resources(&session->client, may_lock, &identity->acl));
}

static void evict_user(struct session *session)
{
    evict(session, "DENIED the users of this daemon have changed",
          "the user was removed or has lost rights that this connection uses");
}

/* Close the sessions whose user is gone, and those that hold or wait for resources that they may no
 * longer lock. The sweep closes those without requests, which can be thousands. The others are
 * closed now, because a request such as BREAK must not be carried out for a user that is gone. */
bool clients_renew_users(struct clients *clients)
{
    struct users before;
    struct session *session;
    struct session *next;
    if (!auth_renew_users(&clients->auth, &before))
        return false;
    for (session = LIST_FIRST(&clients->sessions); session != NULL; session = next) {
        next = LIST_NEXT(session, entry);
        if (may_stay(session))
            continue;
        if (engine_client_requests(&session->client) > 0) {
            evict_user(session);
            continue;
        }
        auth_leave(&clients->auth, &session->identity);
        engine_client_unreachable(&session->client);
        session->evicted = true;
        session_close_when_written(session);
        session_defer(session);
    }
    clients_set_auth_timer(clients);
    users_deinit(&before);
    pass_want_end(clients->pass);
    return true;
}

void clients_apply_config(struct clients *clients, unsigned limit)
{
    clients->limit = limit;
    clients_set_auth_timer(clients);
}

/* --- the start of a session --- */

/* If users are configured, ids are random. From consecutive ids, a client could count the sessions
 * of other users. */
static uint64_t draw_id(struct clients *clients)
{
    uint64_t id = ++clients->next_session_id;
    if (!clients->auth.open) {
        random_fill(clients->random, &id, sizeof(id));
        id >>= 16;
    }
    return id;
}

/* Initialise a session whose stream is open. */
static void session_begin(struct session *session, const struct peer *peer)
{
    struct clients *clients = session->clients;
    char subject[SESSION_SUBJECT_MAX] = "";
    session->identity = (struct auth_identity){
        .peer = peer->kind, .fd = session->stream.fd, .client_address = peer->client_address};
    session->since_ns = clock_now_ns();
    snprintf(session->peer, sizeof(session->peer), "%s", peer->name);
    if (session->stream.tls != NULL)
        tls_peer_name(session->stream.tls, subject, sizeof(subject));
    if (subject[0] != '\0')
        snprintf(session->peer, sizeof(session->peer), "%s,cn=%s", peer->name, subject);
    engine_client_init(&session->client, draw_id(clients));
    LIST_INSERT_HEAD(&clients->sessions, session, entry);
    clients->session_count++;
    identify(session);
    log_event(clients->log, CONFIG_LOG_DEBUG, "client_connected",
              LOG_FIELDS(log_number("client", (int64_t)engine_client_id(&session->client)),
                         log_text("peer", session->peer)));
}

bool sessions_add(struct clients *clients, int fd, struct bufferevent *tls, const struct peer *peer)
{
    struct session *session = calloc(1, sizeof(*session));
    if (session != NULL) {
        session->clients = clients;
        if (stream_open(&session->stream, clients->streams, fd, tls, &client, session)) {
            session_begin(session, peer);
            return true;
        }
    } else if (tls != NULL) {
        bufferevent_free(tls);
    } else {
        evutil_closesocket(fd);
    }
    free(session);
    clients_log_refusal(clients, peer->name, REFUSED_MEMORY);
    return false;
}

/* --- after a pass --- */

/* The turn of a session that has waited. */
static void take_turn(struct session *session)
{
    if (session->state == SESSION_DROPPED)
        return;
    if (!stream_read(&session->stream))
        take_input(session);
    /* If these were the last lines, the sweep can now end the session. */
    if (session_has_ended(session))
        session_defer(session);
}

static void sessions_on_turns(evutil_socket_t fd, short events, void *context)
{
    struct clients *clients = context;
    struct turn *turn;
    (void)fd;
    (void)events;
    turns_start(&clients->turns);
    while ((turn = turns_next(&clients->turns, clock_now_ns())) != NULL)
        take_turn((struct session *)((char *)turn - offsetof(struct session, turn)));
    pass_want_end(clients->pass);
}

static void sweep(struct session *session)
{
    assert(!session->is_deferred);
    if (session->evicted) {
        evict_user(session);
        return;
    }
    if (session->state != SESSION_DROPPED)
        take_input(session);
    if (session_has_ended(session))
        report_end(session);
    bool written = stream_unsent(&session->stream) == 0;
    bool over = session->state == SESSION_ENDED && all_answered(session);
    if (over && session->stream.lost)
        drop_lost(session);
    /* The client can send no QUIT any more. The session stays until its output is sent, without its
     * HOLDs. */
    else if (over)
        engine_client_end(session->clients->engine, &session->client, ENGINE_GONE, clock_now_ns());
    bool done = session->state == SESSION_CLOSING || over;
    if (session->state == SESSION_DROPPED || (done && written))
        session_free(session);
}

/* To read the end of an idle session and to free it takes 38 us (2026-11-24), and thousands can end
 * at once. So the sweep continues in the next pass when its time is over. It continues by a
 * timeout, because an active event would keep the loop from reading sockets. */
static void sessions_on_sweep(evutil_socket_t fd, short events, void *context)
{
    struct clients *clients = context;
    struct session *session;
    (void)fd;
    (void)events;
    int64_t until_ns = clock_now_ns() + PASS_SLICE_NS;
    do {
        session = TAILQ_FIRST(&clients->deferred);
        if (session == NULL)
            break;
        TAILQ_REMOVE(&clients->deferred, session, deferred);
        session->is_deferred = false;
        sweep(session);
    } while (clock_now_ns() < until_ns);
    if (!TAILQ_EMPTY(&clients->deferred))
        pass_run_in_next(clients->sweep);
    pass_want_end(clients->pass);
}

/* --- all sessions --- */

bool sessions_init(struct clients *clients)
{
    LIST_INIT(&clients->sessions);
    TAILQ_INIT(&clients->deferred);
    turns_init(&clients->turns, clients->pass, clients->engine);
    clients->sweep = event_new(clients->base, -1, 0, sessions_on_sweep, clients);
    clients->turns_event = event_new(clients->base, -1, 0, sessions_on_turns, clients);
    clients->auth_timer = event_new(clients->base, -1, 0, sessions_on_auth_timer, clients);
    return command_reader_init(&clients->commands) && clients->sweep != NULL &&
           clients->turns_event != NULL && clients->auth_timer != NULL;
}

void sessions_deinit(struct clients *clients)
{
    struct event **events[] = {&clients->sweep, &clients->turns_event, &clients->auth_timer};
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        if (*events[i] != NULL)
            event_free(*events[i]);
        *events[i] = NULL;
    }
    command_reader_deinit(&clients->commands);
}

void clients_free_sessions(struct clients *clients)
{
    struct session *session;
    while ((session = LIST_FIRST(&clients->sessions)) != NULL)
        session_free(session);
}
