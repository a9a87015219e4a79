/*
 * Renders a status for programs: NODES, LOCKS and STATS, systemd's status line, /readyz and
 * /status.json. Pure.
 */
#include <inttypes.h>
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
    return !status->stopping && status->voting >= status->quorum;
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

/* --- lines --- */

static const char *yes_or_no(bool yes)
{
    return yes ? "yes" : "no";
}

void status_write_node(const struct status_node *node, struct text *text)
{
    text_format(
        text,
        "node=%s url=%s state=%s vote=%s reason=%s for_ms=%" PRId64 " since_ms=%" PRId64
        " rtt_us=%" PRId64 " unanswered=%" PRIu64 " pending_releases=%" PRIu64 " tracking=%s",
        node->name, node->url, link_state_word(node->state), yes_or_no(node->reason == REASON_NONE),
        reason_word(node->reason), node->back_ms, node->state_ms, node->round_trip_us,
        node->unanswered, node->pending_releases, yes_or_no(node->tracking));
}

void status_write_lock(const struct status_lock *lock, struct text *text)
{
    text_string(text, "resource=");
    text_bytes(text, lock->resource, lock->resource_len);
    if (lock->held)
        text_format(text,
                    " token=%s client=%" PRIu64 " name=%s since_ms=%" PRId64 " left_ms=%" PRId64
                    " hold=%s",
                    lock->token, lock->client_id, lock->client[0] != '\0' ? lock->client : "-",
                    lock->held_ms, lock->left_ms, yes_or_no(lock->hold));
    else
        text_string(text, " token=- client=- name=- since_ms=-1 left_ms=-1 hold=no");
    text_format(text, " waiters=%u place=", lock->queued);
    if (lock->place > 0)
        text_number(text, lock->place);
    else
        text_string(text, "-");
    text_string(text, " slots=");
    if (lock->slots > 0)
        text_format(text, "%u/%u", lock->slots_held, lock->slots);
    else
        text_string(text, "-");
}

void status_write_daemon(const struct status *status, struct text *text)
{
    const struct engine_stats *stats = &status->stats;
    text_format(
        text,
        "subject=daemon version=%s pid=%d uptime_ms=%" PRId64
        " clients=%zu rounds=%zu undone=%" PRIu64 " backfilled=%" PRIu64
        " releases_deferred=%" PRIu64 " waiting=%zu holding=%zu locks=%zu acquire_rounds=%" PRIu64
        " handovers=%" PRIu64 " key_probes=%" PRIu64 " renewals=%" PRIu64 " lost=%" PRIu64
        " unauthenticated=%zu wrong_secrets=%" PRIu64 " broken=%" PRIu64
        " held_back=%zu rounds_limit=%u busy=%" PRIu64,
        status->version, status->pid, ms(status->uptime_ns), status->clients,
        status->rounds_in_flight, stats->undone, stats->backfilled, stats->deferred_releases,
        status->waiting, status->holding, status->locks, stats->acquire_rounds, stats->handovers,
        stats->key_probes, stats->renewals, stats->lost, status->unauthenticated,
        status->wrong_secrets, stats->broken, status->held_back, status->rounds_limit, stats->busy);
}

void status_write_outcomes(const struct status *status, unsigned kind, struct text *text)
{
    text_format(text, "subject=%s", status_kind_word(kind));
    for (unsigned outcome = 0; outcome < OUTCOME_COUNT; outcome++)
        text_format(text, " %s=%" PRIu64, status_outcome_word(outcome),
                    status->stats.outcomes[kind][outcome]);
}

void status_write_short(const struct status *status, struct text *text)
{
    text_format(text, "%u/%u voting, %zu lock%s%s", status->voting, status->node_count,
                status->locks, status->locks == 1 ? "" : "s",
                status->reload_refused ? "; the last reload was refused" : "");
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
    for (unsigned i = 0; i < status->node_count; i++) {
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
        text_string(text, i > 0 ? ",\n  {\"resource\":" : "\n  {\"resource\":");
        json_string(text, queue->resource, queue->resource_len);
        text_format(text, ",\"waiters\":%u", queue->waits);
        if (queue->slots > 0)
            text_format(text, ",\"slots\":%u,\"slots_held\":%u", queue->slots, queue->slots_held);
        if (queue->held) {
            text_format(text, ",\"client\":%" PRIu64, queue->client_id);
            json_field(text, ",", "name", queue->client);
            text_format(text, ",\"since_ms\":%" PRId64 ",\"left_ms\":%" PRId64 ",\"hold\":%s",
                        queue->held_ms, queue->left_ms, true_or_false(queue->hold));
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
                ",\n \"ready\":%s,\"stopping\":%s,\"voting\":%u,\"nodes_total\":%u,\"need\":%u,"
                "\"back_ms\":%" PRId64 ",\n \"grants_per_second\":%.1f,\"waiting\":%zu,"
                "\"held_back\":%zu,\"rounds_limit\":%u,"
                "\"waited_for\":%zu,\"holds\":%zu,\"clients\":%zu,\"clients_max\":%zu,\n",
                ms(status->wall_ns), ms(status->uptime_ns), true_or_false(status_is_ready(status)),
                true_or_false(status->stopping), status->voting, status->node_count, status->quorum,
                status->back_ms, status->grants_a_second, status->waiting, status->held_back,
                status->rounds_limit, status->waited_for, status->holds, status->clients,
                status->clients_max);
    text_string(text, " \"nodes\":[");
    json_nodes(status, text);
    text_string(text, "],\n \"queues\":[");
    json_queues(status, text);
    text_string(text, "],\n \"losses\":[");
    json_losses(status, text);
    text_string(text, "]}\n");
}
