#include "server/clients/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/clients/clients.h"
#include "server/clock.h"
#include "server/entropy.h"
#include "server/log.h"
#include "server/net/pass.h"

static const char *const everything[] = {""};
static const struct permit nobody = {.known = false};

/* What everybody may do where there are no users. To take a lock from somebody is for the owner of
 * the daemon alone. */
static struct permit anybody(bool owner)
{
    struct permit permit = {
        .known = true, .verbs = permit_grantable(), .prefixes = everything, .prefix_count = 1};
    if (!owner)
        permit.verbs &= ~PERMIT_BIT(VERB_BREAK);
    return permit;
}

/* --- who is it --- */

/* The groups of a peer, its first one first; NULL if there is no memory for them. */
static gid_t *find_groups(int fd, gid_t first, size_t *count)
{
    socklen_t len = 0;
    /* They may be 65,536. Where there is no room, the kernel says how much it takes. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == 0 || errno != ERANGE)
        len = 0;
    gid_t *gids = malloc(sizeof(*gids) + len);
    if (gids == NULL)
        return NULL;
    gids[0] = first;
    if (len > 0 && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids + 1, &len) != 0)
        len = 0;
    *count = 1 + len / sizeof(*gids);
    return gids;
}

/* The user that the kernel names at the other end. */
static const struct user *find_peer(const struct session *session)
{
    int fd = session->stream.fd;
    struct ucred who;
    socklen_t who_len = sizeof(who);
    size_t count;
    if (!session->local || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len) != 0)
        return NULL;
    gid_t *gids = find_groups(fd, who.gid, &count);
    if (gids == NULL)
        return NULL;
    const struct user *user = users_by_ids(&session->clients->gate.users, who.uid, gids, count);
    free(gids);
    return user;
}

static void admit(struct session *session, const struct user *user)
{
    gate_leave(session);
    session->user = user;
    session->permit = user->permit;
    log_event(session->clients->log, CONFIG_LOG_DEBUG, "client_authenticated",
              LOG_FIELDS(log_number("client", (int64_t)session->client.id),
                         log_text("peer", session->peer), log_text("user", user->config->name)));
}

/* --- waiting at the gate --- */

static void set_timer(struct clients *clients)
{
    struct gate *gate = &clients->gate;
    const struct session *first = TAILQ_FIRST(&gate->waiting);
    if (first == NULL) {
        event_del(gate->timer);
        return;
    }
    const struct timeval left =
        clock_delay(first->at_gate_ns + clients->config->limits.auth_timeout_ns - clock_now_ns());
    event_add(gate->timer, &left);
}

void gate_leave(struct session *session)
{
    struct gate *gate = &session->clients->gate;
    if (!session->at_gate)
        return;
    session->at_gate = false;
    TAILQ_REMOVE(&gate->waiting, session, waiting);
    gate->waiting_count--;
    if (gate->waiting_count <= session->clients->config->limits.unauthenticated / 2)
        gate->crowded = false;
    if (gate->waiting_count == 0)
        event_del(gate->timer);
}

/* All who have not said in time who they are. */
static void gate_on_timer(evutil_socket_t fd, short events, void *context)
{
    struct clients *clients = context;
    struct gate *gate = &clients->gate;
    struct session *first;
    int64_t now_ns = clock_now_ns();
    (void)fd;
    (void)events;
    while ((first = TAILQ_FIRST(&gate->waiting)) != NULL &&
           first->at_gate_ns + clients->config->limits.auth_timeout_ns <= now_ns) {
        gate->late++;
        session_evict(first, "DENIED not authenticated in time\n", "it did not authenticate");
    }
    set_timer(clients);
    pass_want_end(clients->pass);
}

bool gate_make_room(struct clients *clients)
{
    struct gate *gate = &clients->gate;
    struct session *first = TAILQ_FIRST(&gate->waiting);
    if (first == NULL)
        return false;
    if (!gate->crowded)
        client_log(&clients->client_log, CLIENT_LOG_DISPLACED,
                   LOG_FIELDS(log_number("unauthenticated", gate->waiting_count),
                              log_number("clients", clients->session_count),
                              log_text("peer", first->peer),
                              log_text("why", "more connections than can be kept waiting for their "
                                              "AUTH: the oldest are closed")));
    gate->crowded = true;
    gate->displaced++;
    session_evict(first, "LIMIT unauthenticated\n", "others came, and it had not authenticated");
    return true;
}

void gate_enter(struct session *session)
{
    struct clients *clients = session->clients;
    struct gate *gate = &clients->gate;
    if (gate->open) {
        session->permit = anybody(session->owner);
        return;
    }
    session->permit = nobody;
    const struct user *user = find_peer(session);
    if (user != NULL) {
        admit(session, user);
        return;
    }
    if (gate->waiting_count >= clients->config->limits.unauthenticated)
        gate_make_room(clients);
    session->at_gate = true;
    session->at_gate_ns = clock_now_ns();
    TAILQ_INSERT_TAIL(&gate->waiting, session, waiting);
    if (gate->waiting_count++ == 0)
        set_timer(clients);
}

/* --- AUTH --- */

static void note_wrong(struct session *session, uint64_t fingerprint, int64_t now_ns)
{
    struct clients *clients = session->clients;
    struct gate *gate = &clients->gate;
    const struct log_field client = log_number("client", (int64_t)session->client.id);
    const struct log_field peer = log_text("peer", session->peer);
    const struct log_field wrong = log_text("why", "a secret that is nobody's");
    const struct log_field many =
        log_text("why", "many wrong secrets: for a while none from there is looked at");
    gate->wrong++;
    switch (guesses_note(gate->guesses, &session->origin, fingerprint, now_ns)) {
    case GUESSES_FIRST:
        client_log(&clients->client_log, CLIENT_LOG_AUTH_FAILED, LOG_FIELDS(client, peer, wrong));
        break;
    case GUESSES_SPENT:
        client_log(&clients->client_log, CLIENT_LOG_AUTH_LIMITED, LOG_FIELDS(client, peer, many));
        break;
    case GUESSES_NOTHING:
        log_event(clients->log, CONFIG_LOG_DEBUG, "auth_failed", LOG_FIELDS(client, peer, wrong));
        break;
    }
}

const char *gate_auth(struct session *session, const char *secret, size_t len, bool *closes)
{
    struct gate *gate = &session->clients->gate;
    int64_t now_ns = clock_now_ns();
    uint64_t fingerprint;
    *closes = false;
    /* So that clients can be given their secret before the daemon is given its users. */
    if (gate->open)
        return "OK";
    if (session->by_secret)
        return "DENIED this connection has authenticated; open another one";
    /* Who has a name by his unix socket keeps it, whatever else he tries. */
    *closes = session->user == NULL;
    if (guesses_wait_ns(gate->guesses, &session->origin, now_ns) > 0)
        return "LIMIT secrets"; /* it says nothing about this one: who has a good one comes again */
    const struct user *user = users_by_secret(&gate->users, secret, len, &fingerprint);
    if (user == NULL) {
        note_wrong(session, fingerprint, now_ns);
        return "DENIED wrong secret";
    }
    *closes = false;
    session->by_secret = true;
    admit(session, user);
    return "OK";
}

/* --- the users --- */

static bool make_users(struct clients *clients, struct users *users)
{
    unsigned char key[USERS_DIGEST];
    entropy_fill(clients->entropy, key, sizeof(key));
    return users_init(users, clients->config->users, key);
}

bool gate_init(struct clients *clients)
{
    struct gate *gate = &clients->gate;
    uint64_t seed;
    entropy_fill(clients->entropy, &seed, sizeof(seed));
    TAILQ_INIT(&gate->waiting);
    gate->open = clients->config->users == NULL;
    gate->timer = event_new(clients->base, -1, 0, gate_on_timer, clients);
    gate->guesses = malloc(sizeof(*gate->guesses));
    if (gate->timer == NULL || gate->guesses == NULL)
        return false;
    guesses_init(gate->guesses, seed);
    return gate->open || make_users(clients, &gate->users);
}

/* May it go on with what it holds and waits for? */
static bool may_keep(const struct session *session)
{
    const struct permit *permit = &session->permit;
    const struct lock *lock;
    const struct call *call;
    LIST_FOREACH (lock, &session->client.holds, of_client)
        if (permit_ask(permit, VERB_LOCK, lock->resource->name, lock->resource->name_len) !=
            PERMIT_YES)
            return false;
    LIST_FOREACH (call, &session->client.calls, of_client)
        if (call->resource != NULL && permit_ask(permit, VERB_LOCK, call->resource->name,
                                                 call->resource->name_len) != PERMIT_YES)
            return false;
    return true;
}

/* The users have changed. False: this connection cannot stay. */
static bool renew(struct session *session)
{
    struct gate *gate = &session->clients->gate;
    if (gate->open) {
        gate_leave(session);
        session->user = NULL;
        session->by_secret = false;
        session->permit = anybody(session->owner);
        return true;
    }
    const struct user *user = session->by_secret
                                  ? users_by_name(&gate->users, session->user->config->name)
                                  : find_peer(session);
    if (user == NULL)
        return session->at_gate;
    if (session->by_secret && !user->has_secret)
        return false;
    gate_leave(session);
    session->user = user;
    session->permit = user->permit;
    return may_keep(session);
}

bool gate_renew(struct clients *clients)
{
    struct gate *gate = &clients->gate;
    struct users before = gate->users;
    struct users now = {0};
    struct session *session;
    struct session *next;
    if (clients->config->users != NULL && !make_users(clients, &now))
        return false;
    gate->users = now;
    gate->open = clients->config->users == NULL;
    for (session = LIST_FIRST(&clients->sessions); session != NULL; session = next) {
        next = LIST_NEXT(session, entry);
        if (!renew(session))
            session_evict(session, "DENIED the users of this daemon have changed\n",
                          "its user may not do what it does any more");
    }
    users_deinit(&before);
    set_timer(clients);
    pass_want_end(clients->pass);
    return true;
}

void gate_retune(struct clients *clients)
{
    set_timer(clients);
}

void gate_deinit(struct clients *clients)
{
    struct gate *gate = &clients->gate;
    if (gate->timer != NULL)
        event_free(gate->timer);
    gate->timer = NULL;
    free(gate->guesses);
    gate->guesses = NULL;
    users_deinit(&gate->users);
}
