/*
 * A status, written down for programs: /readyz and /status.json. Pure.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/engine.h"
#include "protocol/units.h"
#include "server/admin/status.h"

bool status_is_ready(const struct status *status)
{
    return !status->stopping && status->voting >= status->quorum;
}

void status_write_ready(const struct status *status, struct text *text)
{
    text_format(text, "%s voting=%u/%u need=%u\n",
                status_is_ready(status) ? "ready"
                : status->stopping      ? "stopping"
                                        : "not ready",
                status->voting, status->node_count, status->quorum);
    for (unsigned i = 0; i < status->node_count; i++) {
        const struct status_node *node = &status->nodes[i];
        if (node->reason != REASON_NONE)
            text_format(text, "node=%s vote=no reason=%s for_ms=%" PRId64 " (%s)\n", node->name,
                        reason_word(node->reason), node->back_ms, reason_text(node->reason));
    }
}

/* --- JSON --- */

/* As people can read it. */
static void json_string(struct text *text, const char *bytes, size_t len)
{
    char buf[4 * LIMIT_URL];
    struct text visible = {.buf = buf, .size = sizeof(buf)};
    text_escape(&visible, bytes, len, TEXT_EXACT);
    text_byte(text, '"');
    text_escape(text, visible.buf, visible.len, TEXT_JSON);
    text_byte(text, '"');
}

static void json_field(struct text *text, const char *name, const char *value)
{
    text_format(text, "\"%s\":", name);
    json_string(text, value, strlen(value));
}

static void json_nodes(const struct status *status, struct text *text)
{
    for (unsigned i = 0; i < status->node_count; i++) {
        const struct status_node *node = &status->nodes[i];
        text_string(text, i > 0 ? ",\n  {" : "\n  {");
        json_field(text, "node", node->name);
        text_string(text, ",");
        json_field(text, "url", node->url);
        text_string(text, ",");
        json_field(text, "state", link_state_word(node->state));
        text_format(text, ",\"vote\":%s,", node->reason == REASON_NONE ? "true" : "false");
        json_field(text, "reason", reason_word(node->reason));
        text_string(text, ",");
        json_field(text, "meaning", reason_text(node->reason));
        text_format(text,
                    ",\"no_vote_ms\":%" PRId64 ",\"back_ms\":%" PRId64 ",\"rtt_us\":%" PRId64
                    ",\"owed\":%u}",
                    node->no_vote_ms, node->back_ms, node->round_trip_us, node->owed);
    }
}

static void json_queues(const struct status *status, struct text *text)
{
    for (unsigned i = 0; i < status->queue_count; i++) {
        const struct status_queue *queue = &status->queues[i];
        text_string(text, i > 0 ? ",\n  {\"resource\":" : "\n  {\"resource\":");
        json_string(text, queue->resource, queue->resource_len);
        text_format(text, ",\"waiters\":%u", queue->waits);
        if (queue->held) {
            text_format(text, ",\"client\":%" PRIu64 ",", queue->client_id);
            json_field(text, "name", queue->client);
            text_format(text, ",\"since_ms\":%" PRId64 ",\"left_ms\":%" PRId64 ",\"hold\":%s",
                        queue->held_ms, queue->left_ms, queue->hold ? "true" : "false");
        }
        text_string(text, "}");
    }
}

static void json_losses(const struct status *status, struct text *text)
{
    const struct monitor_loss *loss;
    for (unsigned i = 0; (loss = monitor_loss(status->monitor, i)) != NULL; i++) {
        text_format(text, "%s\n  {\"time_ms\":%" PRId64 ",\"resource\":", i > 0 ? "," : "",
                    (int64_t)(loss->wall_ns / NS_PER_MS));
        json_string(text, loss->resource, loss->resource_len);
        text_string(text, ",");
        json_field(text, "reason", engine_loss_word(loss->loss));
        text_string(text, ",");
        json_field(text, "name", loss->client);
        text_string(text, "}");
    }
}

void status_write_json(const struct status *status, struct text *text)
{
    text_string(text, "{");
    json_field(text, "cluster", status->cluster);
    text_string(text, ",");
    json_field(text, "version", status->version);
    text_format(text,
                ",\"time_ms\":%" PRId64 ",\"uptime_ms\":%" PRId64
                ",\n \"ready\":%s,\"stopping\":%s,\"voting\":%u,\"nodes_total\":%u,\"need\":%u,"
                "\"back_ms\":%" PRId64 ",\n \"grants_per_second\":%.1f,\"waiting\":%zu,"
                "\"waited_for\":%zu,\"holds\":%zu,\"clients\":%zu,\"clients_max\":%zu,\n",
                (int64_t)(status->wall_ns / NS_PER_MS), status->uptime_ms,
                status_is_ready(status) ? "true" : "false", status->stopping ? "true" : "false",
                status->voting, status->node_count, status->quorum, status->back_ms,
                status->grants_a_second, status->waiting, status->waited_for, status->holds,
                status->clients, status->clients_max);
    text_string(text, " \"nodes\":[");
    json_nodes(status, text);
    text_string(text, "],\n \"queues\":[");
    json_queues(status, text);
    text_string(text, "],\n \"losses\":[");
    json_losses(status, text);
    text_string(text, "]}\n");
}
