#include "server/clients/clients.h"

#include "protocol/limits.h"
#include "server/clients/listeners.h"
#include "server/net/stream.h"

static void clients_on_turn(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    session_take_turns(context);
}

static void clients_on_sweep(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    session_sweep(context);
}

bool clients_init(struct clients *clients)
{
    LIST_INIT(&clients->sessions);
    LIST_INIT(&clients->swept);
    TAILQ_INIT(&clients->turns);
    clients->turn_lines = LIMIT_TURN_LINES;
    clients->ends.epoll = -1;
    clients->sweep = event_new(clients->base, -1, 0, clients_on_sweep, clients);
    clients->turn = event_new(clients->base, -1, 0, clients_on_turn, clients);
    /* One more: who comes is counted before another makes room for him. */
    size_t connections = (size_t)clients->config->limits.clients + 1;
    return clients->sweep != NULL && clients->turn != NULL &&
           client_log_start(&clients->client_log, clients->log, clients->base) &&
           handshakes_init(&clients->handshakes, clients) &&
           ends_init(&clients->ends, clients->base) && gate_init(clients) &&
           origins_init(&clients->origins, connections);
}

void clients_deinit(struct clients *clients)
{
    if (clients->base == NULL)
        return;
    gate_deinit(clients);
    clients_stop_listening(clients);
    handshakes_deinit(&clients->handshakes);
    if (clients->origins.sentinel != NULL)
        origins_deinit(&clients->origins);
    ends_deinit(&clients->ends);
    if (clients->sweep != NULL)
        event_free(clients->sweep);
    if (clients->turn != NULL)
        event_free(clients->turn);
    client_log_stop(&clients->client_log);
}

bool clients_listen(struct clients *clients)
{
    return listeners_start(clients);
}

void clients_accept(struct clients *clients)
{
    clients->starting = false;
    listener_resume(clients);
}

void clients_stop_listening(struct clients *clients)
{
    listeners_stop(clients);
}

void clients_free_sessions(struct clients *clients)
{
    session_free_all(clients);
}

/* Where one client had this pass to itself, its next turn is longer: as many rounds go together as
 * if they came from several. */
static void measure_turns(struct clients *clients)
{
    if (clients->turn_count > 0)
        clients->turn_lines = clients->turn_count == 1 ? LIMIT_TURN_ALONE : LIMIT_TURN_LINES;
    clients->turn_count = 0;
}

void clients_on_pass_end(struct clients *clients)
{
    measure_turns(clients);
    if (clients->place_freed)
        listener_resume(clients);
    clients->place_freed = false;
}

bool clients_have_unsent(const struct clients *clients)
{
    const struct session *session;
    LIST_FOREACH (session, &clients->sessions, entry)
        if (stream_unsent(&session->stream) > 0)
            return true;
    return false;
}
