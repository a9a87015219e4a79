#include "server/masters/connections.h"

#include "engine/round/node_set.h"
#include "server/log.h"

bool connections_init(struct connections *connections)
{
    const struct config *config = connections->config;
    for (unsigned i = 0; i < config->node_count; i++) {
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            if (!node_init(&connections->nodes[i][channel], connections, i, channel))
                return false;
        connections->broadcast.streams[i] = &connections->nodes[i][CHANNEL_COMMANDS].stream;
    }
    return true;
}

void connections_deinit(struct connections *connections)
{
    for (unsigned i = 0; i < LIMIT_NODES; i++) {
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            node_deinit(&connections->nodes[i][channel]);
        tls_deinit(&connections->tls[i]);
    }
}

bool connections_load_tls(struct connections *connections)
{
    const struct config *config = connections->config;
    struct error error;
    for (unsigned i = 0; i < config->node_count; i++) {
        const struct config_node *node = &config->nodes[i];
        if (!node->address.tls || tls_init_node(&connections->tls[i], &node->tls, &error))
            continue;
        log_event(connections->log, CONFIG_LOG_ERROR, "start_failed",
                  LOG_FIELDS(log_text("node", node->name), log_text("why", error.text)));
        return false;
    }
    return true;
}

void connections_write(struct connections *connections, uint32_t nodes, enum channel channel,
                       const char *bytes, size_t len)
{
    if (channel == CHANNEL_COMMANDS) {
        broadcast_write(&connections->broadcast, nodes, bytes, len);
        pass_want_end(connections->pass);
        return;
    }
    for (; nodes != 0; nodes = nodes_after_first(nodes))
        stream_write(&connections->nodes[nodes_first(nodes)][channel].stream, bytes, len);
}

bool connections_have_unsent(const struct connections *connections)
{
    if (connections->broadcast.nodes != 0)
        return true;
    for (unsigned i = 0; i < connections->config->node_count; i++)
        if (stream_unsent(&connections->nodes[i][CHANNEL_COMMANDS].stream) > 0)
            return true;
    return false;
}
