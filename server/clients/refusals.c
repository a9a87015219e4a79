#include "server/clients/clients.h"
#include "server/log.h"

const char *const listener_refusals[] = {
    [REFUSED_CLIENTS] = "clients",
    [REFUSED_PER_ADDRESS] = "clients_per_address",
    [REFUSED_MEMORY] = "memory",
};

void clients_log_refusal(struct clients *clients, const char *peer, enum listener_refusal refusal)
{
    clients->rejected[refusal]++;
    client_log(&clients->client_log,
               refusal == REFUSED_MEMORY ? CLIENT_LOG_NO_MEMORY : CLIENT_LOG_REFUSED,
               LOG_FIELDS(log_text("peer", peer), log_text("limit", listener_refusals[refusal])));
}
