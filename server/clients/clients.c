#include "server/clients/clients.h"

#include "protocol/limits.h"
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

/* If only one client was served in this pass, its budget in the next pass is larger. So one client
 * alone can have as many rounds sent together as several clients have. */
static void set_read_budget(struct clients *clients)
{
    if (clients->sessions_served > 0)
        clients->read_budget =
            clients->sessions_served == 1 ? LIMIT_READ_BUDGET_ALONE : LIMIT_READ_BUDGET;
    clients->sessions_served = 0;
}

void clients_on_pass_end(struct clients *clients)
{
    set_read_budget(clients);
    clients->slow_served = false;
    /* While the engine takes no requests, sessions wait until the end of a pass in which rounds
     * have settled. */
    if (!TAILQ_EMPTY(&clients->next_pass) && engine_takes_requests(clients->engine))
        pass_run_in_next(clients->next_pass_event);
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
