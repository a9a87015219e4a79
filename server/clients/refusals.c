#include "server/clients/clients.h"
#include "server/log.h"

void clients_log_refusal(struct clients *clients, const char *peer, enum listener_refusal refusal)
{
    static const char *const keys[] = {
#define X(name, key) [name] = key,
        LISTENER_REFUSALS(X)
#undef X
    };
    clients->rejected[refusal]++;
    client_log(&clients->client_log,
               refusal == REFUSED_MEMORY ? CLIENT_LOG_NO_MEMORY : CLIENT_LOG_REFUSED,
               LOG_FIELDS(log_text("peer", peer), log_text("limit", keys[refusal])));
}
