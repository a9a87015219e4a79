#include "server/clients/clients.h"

#include "server/net/pass.h"
#include "server/net/stream.h"

bool clients_init(struct clients *clients)
{
    return sessions_init(clients) &&
           client_log_start(&clients->client_log, clients->log, clients->base) &&
           handshakes_init(&clients->handshakes, clients) &&
           auth_init(&clients->auth, clients->config, clients->random);
}

void clients_deinit(struct clients *clients)
{
    if (clients->base == NULL)
        return;
    auth_deinit(&clients->auth);
    listeners_stop(clients);
    handshakes_deinit(&clients->handshakes);
    sessions_deinit(clients);
    client_log_stop(&clients->client_log);
}

void clients_accept(struct clients *clients)
{
    clients->starting = false;
    listener_resume(clients);
}

void clients_on_pass_end(struct clients *clients)
{
    if (turns_end_pass(&clients->turns))
        pass_run_in_next(clients->turns_event);
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
