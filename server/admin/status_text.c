/*
 * Renders a status for programs: NODES, LOCKS and STATS, systemd's status line, /readyz and
 * /status.json. Pure.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/outcome.h"
#include "protocol/units.h"
#include "server/admin/status.h"

static int64_t ms(int64_t ns)
{
    return ns / NS_PER_MS;
}

bool status_is_ready(const struct status *status)
{
    return !status->stopping && status->voting >= status->engine.quorum;
}

const char *status_kind_word(unsigned kind)
{
    static const char *const words[ROUND_KINDS] = {
        [ROUND_ACQUIRE] = "lock",
        [ROUND_EXTEND] = "extend",
        [ROUND_RELEASE] = "unlock",
        [ROUND_STATUS] = "status",
    };
    return words[kind];
}

const char *status_outcome_word(unsigned outcome)
{
    static const char *const words[OUTCOME_COUNT] = {
        [OUTCOME_OK] = "ok",       [OUTCOME_GONE] = "gone",         [OUTCOME_HELD] = "held",
        [OUTCOME_FREE] = "free",   [OUTCOME_NOQUORUM] = "noquorum", [OUTCOME_LATE] = "late",
        [OUTCOME_LIMIT] = "limit", [OUTCOME_SHUTDOWN] = "shutdown", [OUTCOME_OUTBID] = "outbid",
    };
    return words[outcome];
}

/* --- rows --- */

static const char *yes_or_no(bool yes)
{
    return yes ? "yes" : "no";
}

void status_write_node(const struct status_node *node, struct row *row)
{
    row_string(row, "node", node->name);
    row_string(row, "url", node->url);
    row_string(row, "state", link_state_word(node->state));
    row_string(row, "vote", yes_or_no(node->reason == REASON_NONE));
    if (node->reason == REASON_NONE)
        row_none(row, "reason");
    else
        row_string(row, "reason", reason_word(node->reason));
    row_number(row, "for_ms", node->back_ms);
    row_number(row, "since_ms", node->state_ms);
    row_number(row, "rtt_us", node->round_trip_us);
    row_number(row, "unanswered", (int64_t)node->unanswered);
    row_number(row, "pending_releases", (int64_t)node->pending_releases);
    row_string(row, "tracking", yes_or_no(node->tracking));
}

static void write_holder(const struct status_lock *lock, struct row *row)
{
    const struct resource_view *resource = &lock->resource;
    if (!resource->locked) {
        row_none(row, "token");
        row_none(row, "client");
        row_none(row, "name");
    } else {
        /* The first digits only: the whole token is the right to release the lock. */
        row_bytes(row, "token", resource->token, 8);
        row_number(row, "client", (int64_t)resource->client_id);
        row_optional(row, "name", resource->client);
    }
    row_number(row, "since_ms", resource->locked ? lock->held_ms : -1);
    row_number(row, "left_ms", resource->locked ? lock->left_ms : -1);
    row_string(row, "hold", yes_or_no(resource->hold));
}

void status_write_lock(const struct status_lock *lock, struct row *row)
{
    const struct resource_view *resource = &lock->resource;
    char slots[16] = "";
    row_bytes(row, "resource", resource->name, resource->name_len);
    write_holder(lock, row);
    row_number(row, "waiters", resource->queued);
    if (lock->place > 0)
        row_number(row, "place", lock->place);
    else
        row_none(row, "place");
    if (resource->slots > 0)
        snprintf(slots, sizeof(slots), "%u/%u", resource->slots_held, resource->slots);
    row_optional(row, "slots", slots);
}

void status_write_daemon(const struct status *status, struct row *row)
{
    const struct engine_stats *stats = status->engine.stats;
    row_string(row, "subject", "daemon");
    row_string(row, "version", status->version);
    row_number(row, "pid", status->pid);
    row_number(row, "uptime_ms", ms(status->uptime_ns));
    row_number(row, "clients", (int64_t)status->clients);
    row_number(row, "rounds", (int64_t)status->engine.rounds);
    row_number(row, "undone", (int64_t)stats->undone);
    row_number(row, "backfilled", (int64_t)stats->backfilled);
    row_number(row, "releases_deferred", (int64_t)stats->deferred_releases);
    row_number(row, "waiting", (int64_t)status->engine.waiting);
    row_number(row, "holding", (int64_t)status->engine.holding);
    row_number(row, "locks", (int64_t)status->engine.locks);
    row_number(row, "acquire_rounds", (int64_t)stats->acquire_rounds);
    row_number(row, "handovers", (int64_t)stats->handovers);
    row_number(row, "key_probes", (int64_t)stats->key_probes);
    row_number(row, "renewals", (int64_t)stats->renewals);
    row_number(row, "lost", (int64_t)stats->lost);
    row_number(row, "unauthenticated", (int64_t)status->unauthenticated);
    row_number(row, "wrong_secrets", (int64_t)status->wrong_secrets);
    row_number(row, "broken", (int64_t)stats->broken);
    row_number(row, "held_back", (int64_t)status->engine.held_back);
    row_number(row, "rounds_limit", status->engine.limit);
    row_number(row, "busy", (int64_t)stats->busy);
}

void status_write_outcomes(const struct status *status, unsigned kind, struct row *row)
{
    row_string(row, "subject", status_kind_word(kind));
    for (unsigned outcome = 0; outcome < OUTCOME_COUNT; outcome++)
        row_number(row, status_outcome_word(outcome),
                   (int64_t)status->engine.stats->outcomes[kind][outcome]);
}

void status_write_short(const struct status *status, struct text *text)
{
    text_format(text, "%u/%u voting, %zu lock%s%s", status->voting, status->engine.node_count,
                status->engine.locks, status->engine.locks == 1 ? "" : "s",
                status->reload_refused ? "; the last reload was refused" : "");
}

void status_write_ready(const struct status *status, struct text *text)
{
    text_format(text, "%s voting=%u/%u need=%u\n",
                status_is_ready(status) ? "ready"
                : status->stopping      ? "stopping"
                                        : "not ready",
                status->voting, status->engine.node_count, status->engine.quorum);
    for (unsigned i = 0; i < status->engine.node_count; i++) {
        const struct status_node *node = &status->nodes[i];
        if (node->reason != REASON_NONE)
            text_format(text, "node=%s vote=no reason=%s for_ms=%" PRId64 " (%s)\n", node->name,
                        reason_word(node->reason), node->back_ms, reason_text(node->reason));
    }
}

/* --- JSON --- */

/* Bytes in readable form, as a JSON string. */
static void json_string(struct text *text, const char *bytes, size_t len)
{
    char buf[4 * LIMIT_URL];
    struct text visible = {.buf = buf, .size = sizeof(buf)};
    text_escape(&visible, bytes, len, TEXT_EXACT);
    text_byte(text, '"');
    text_escape(text, visible.buf, visible.len, TEXT_JSON);
    text_byte(text, '"');
}

static void json_field(struct text *text, const char *before, const char *name, const char *value)
{
    text_format(text, "%s\"%s\":", before, name);
    json_string(text, value, strlen(value));
}

static const char *true_or_false(bool value)
{
    return value ? "true" : "false";
}

static void json_nodes(const struct status *status, struct text *text)
{
    for (unsigned i = 0; i < status->engine.node_count; i++) {
        const struct status_node *node = &status->nodes[i];
        json_field(text, i > 0 ? ",\n  {" : "\n  {", "node", node->name);
        json_field(text, ",", "url", node->url);
        json_field(text, ",", "state", link_state_word(node->state));
        text_format(text, ",\"vote\":%s", true_or_false(node->reason == REASON_NONE));
        json_field(text, ",", "reason", reason_word(node->reason));
        json_field(text, ",", "meaning", reason_text(node->reason));
        text_format(text,
                    ",\"no_vote_ms\":%" PRId64 ",\"back_ms\":%" PRId64 ",\"rtt_us\":%" PRId64
                    ",\"pending_releases\":%" PRIu64 "}",
                    ms(node->no_vote_ns), node->back_ms, node->round_trip_us,
                    node->pending_releases);
    }
}

static void json_queues(const struct status *status, struct text *text)
{
    for (unsigned i = 0; i < status->queue_count; i++) {
        const struct status_lock *queue = &status->queues[i];
        const struct resource_view *resource = &queue->resource;
        text_string(text, i > 0 ? ",\n  {\"resource\":" : "\n  {\"resource\":");
        json_string(text, resource->name, resource->name_len);
        text_format(text, ",\"waiters\":%u", resource->waits);
        if (resource->slots > 0)
            text_format(text, ",\"slots\":%u,\"slots_held\":%u", resource->slots,
                        resource->slots_held);
        if (resource->locked) {
            text_format(text, ",\"client\":%" PRIu64, resource->client_id);
            json_field(text, ",", "name", resource->client);
            text_format(text, ",\"since_ms\":%" PRId64 ",\"left_ms\":%" PRId64 ",\"hold\":%s",
                        queue->held_ms, queue->left_ms, true_or_false(resource->hold));
        }
        text_string(text, "}");
    }
}

static void json_losses(const struct status *status, struct text *text)
{
    const struct status_history_loss *loss;
    for (unsigned i = 0; (loss = status_history_loss(status->history, i)) != NULL; i++) {
        text_format(text, "%s\n  {\"time_ms\":%" PRId64 ",\"resource\":", i > 0 ? "," : "",
                    ms(loss->wall_ns));
        json_string(text, loss->resource, loss->resource_len);
        json_field(text, ",", "reason", engine_losses[loss->loss].word);
        json_field(text, ",", "name", loss->client);
        text_string(text, "}");
    }
}

void status_write_json(const struct status *status, struct text *text)
{
    json_field(text, "{", "cluster", status->cluster);
    json_field(text, ",", "version", status->version);
    text_format(text,
                ",\"time_ms\":%" PRId64 ",\"uptime_ms\":%" PRId64
                ",\n \"ready\":%s,\"stopping\":%s,\"reload_refused\":%s,"
                "\"voting\":%u,\"nodes_total\":%u,\"need\":%u,"
                "\"back_ms\":%" PRId64 ",\n \"grants_per_second\":%.1f,\"waiting\":%zu,"
                "\"held_back\":%zu,\"rounds_limit\":%u,"
                "\"waited_for\":%zu,\"holds\":%zu,\"clients\":%zu,\"clients_max\":%zu,\n",
                ms(status->wall_ns), ms(status->uptime_ns), true_or_false(status_is_ready(status)),
                true_or_false(status->stopping), true_or_false(status->reload_refused),
                status->voting, status->engine.node_count, status->engine.quorum, status->back_ms,
                status->grants_a_second, status->engine.waiting, status->engine.held_back,
                status->engine.limit, status->engine.waited_for, status->engine.holds,
                status->clients, status->clients_max);
    text_string(text, " \"nodes\":[");
    json_nodes(status, text);
    text_string(text, "],\n \"queues\":[");
    json_queues(status, text);
    text_string(text, "],\n \"losses\":[");
    json_losses(status, text);
    text_string(text, "]}\n");
}
