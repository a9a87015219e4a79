#include "server/clients/handshake.h"

#include <assert.h>
#include <stdlib.h>

#include "protocol/limits.h"
#include "protocol/units.h"
#include "server/clients/clients.h"
#include "server/clock.h"
#include "server/net/pass.h"

/* The time limit of a handshake, and its shorter limit while all places are taken, or the limit of
 * clients is reached. */
#define TIMEOUT_NS      (5 * NS_PER_S)
#define FULL_TIMEOUT_NS NS_PER_S

struct handshake {
    struct handshakes *owner;
    TAILQ_ENTRY(handshake) entry;
    struct bufferevent *connection; /* owned until the session takes it over */
    int64_t since_ns;
    struct peer peer;
};

bool handshakes_full(const struct handshakes *handshakes)
{
    return handshakes->count >= LIMIT_HANDSHAKES;
}

/* Set the timer for the oldest handshake. */
static void rearm(struct handshakes *handshakes)
{
    const struct handshake *oldest = TAILQ_FIRST(&handshakes->list);
    if (oldest == NULL) {
        event_del(handshakes->timer);
        return;
    }
    int64_t timeout_ns = handshakes_full(handshakes) ? FULL_TIMEOUT_NS : TIMEOUT_NS;
    const struct timeval delay = clock_delay(oldest->since_ns + timeout_ns - clock_now_ns());
    event_add(handshakes->timer, &delay);
}

/* Free the place of this handshake. Unless the connection has become a session (`served`), also
 * subtract it from the count of its client address. */
static void leave(struct handshake *handshake, bool served)
{
    struct handshakes *handshakes = handshake->owner;
    TAILQ_REMOVE(&handshakes->list, handshake, entry);
    handshakes->count--;
    if (handshake->connection != NULL)
        bufferevent_free(handshake->connection);
    if (!served)
        address_counts_leave(&handshakes->clients->address_counts, &handshake->peer.client_address);
    free(handshake);
    rearm(handshakes);
    handshakes->clients->place_freed = true;
    pass_want_end(handshakes->clients->pass);
}

static void fail(struct handshake *handshake, const char *why)
{
    struct handshakes *handshakes = handshake->owner;
    handshakes->failed++;
    client_log(&handshakes->clients->client_log, CLIENT_LOG_TLS_FAILED,
               LOG_FIELDS(log_text("peer", handshake->peer.name), log_text("why", why)));
    leave(handshake, false);
}

static void handshake_on_event(struct bufferevent *connection, short events, void *context)
{
    struct handshake *handshake = context;
    struct handshakes *handshakes = handshake->owner;
    const char *why;
    if (!(events & BEV_EVENT_CONNECTED)) {
        tls_failure(connection, &why);
        fail(handshake, why);
        return;
    }
    handshake->connection = NULL;
    leave(handshake, sessions_add(handshakes->clients, bufferevent_getfd(connection), connection,
                                  &handshake->peer));
}

static void handshake_on_timer(evutil_socket_t fd, short events, void *context)
{
    struct handshakes *handshakes = context;
    struct handshake *oldest = TAILQ_FIRST(&handshakes->list);
    (void)fd;
    (void)events;
    int64_t timeout_ns = handshakes_full(handshakes) ? FULL_TIMEOUT_NS : TIMEOUT_NS;
    if (oldest != NULL && clock_now_ns() - oldest->since_ns >= timeout_ns)
        fail(oldest, "the TLS handshake took too long");
    else
        rearm(handshakes);
}

bool handshakes_make_room(struct handshakes *handshakes)
{
    struct handshake *oldest = TAILQ_FIRST(&handshakes->list);
    if (oldest == NULL || clock_now_ns() - oldest->since_ns < FULL_TIMEOUT_NS)
        return false;
    fail(oldest, "limits.clients is reached, and a new connection needed its place");
    return true;
}

void handshake_start(struct handshakes *handshakes, const struct tls *tls, int fd,
                     const struct peer *peer)
{
    struct handshake *handshake = calloc(1, sizeof(*handshake));
    struct bufferevent *connection =
        tls_accept(tls, handshakes->clients->tls_sockets, handshakes->clients->base, fd);
    assert(!handshakes_full(handshakes));
    if (handshake == NULL || connection == NULL) {
        if (connection != NULL)
            bufferevent_free(connection);
        address_counts_leave(&handshakes->clients->address_counts, &peer->client_address);
        free(handshake);
        clients_log_refusal(handshakes->clients, peer->name, REFUSED_MEMORY);
        return;
    }
    handshake->owner = handshakes;
    handshake->connection = connection;
    handshake->since_ns = clock_now_ns();
    handshake->peer = *peer;
    TAILQ_INSERT_TAIL(&handshakes->list, handshake, entry);
    handshakes->count++;
    bufferevent_setcb(connection, NULL, NULL, handshake_on_event, handshake);
    rearm(handshakes);
}

bool handshakes_init(struct handshakes *handshakes, struct clients *clients)
{
    *handshakes = (struct handshakes){.clients = clients};
    TAILQ_INIT(&handshakes->list);
    handshakes->timer = event_new(clients->base, -1, 0, handshake_on_timer, handshakes);
    return handshakes->timer != NULL;
}

void handshakes_deinit(struct handshakes *handshakes)
{
    struct handshake *handshake;
    if (handshakes->timer == NULL)
        return;
    while ((handshake = TAILQ_FIRST(&handshakes->list)) != NULL)
        leave(handshake, false);
    event_free(handshakes->timer);
    *handshakes = (struct handshakes){0};
}
