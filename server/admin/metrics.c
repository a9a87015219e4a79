#include "server/admin/status.h"

#include <ctype.h>
#include <stddef.h>

#include "server/admin/exposition.h"

/* Names are chosen so that a family sorts together; none names a resource, since there may be any
 * number of those. */

static void gauge(struct text *text, const char *name, const char *help, uint64_t value)
{
    struct metric metric = exposition_metric(text, name, "gauge", help);
    exposition_number(&metric, NO_LABELS, value);
}

static void counter(struct text *text, const char *name, const char *help, uint64_t value)
{
    struct metric metric = exposition_metric(text, name, "counter", help);
    exposition_number(&metric, NO_LABELS, value);
}

static void seconds(struct text *text, const char *name, const char *type, const char *help,
                    int64_t value_ns)
{
    struct metric metric = exposition_metric(text, name, type, help);
    exposition_seconds(&metric, NO_LABELS, value_ns);
}

static void histogram(struct text *text, const char *name, const char *help,
                      const struct histogram *of)
{
    struct metric metric = exposition_metric(text, name, "histogram", help);
    exposition_histogram(&metric, (struct label){0}, of);
}

/* --- requests --- */

static const char *lower(const char *word, char buf[16])
{
    size_t len = 0;
    for (; word[len] != '\0' && len < 15; len++)
        buf[len] = (char)tolower((unsigned char)word[len]);
    buf[len] = '\0';
    return buf;
}

static void write_outcomes(const struct status *status, struct text *text)
{
    struct metric metric =
        exposition_metric(text, "redlockd_outcomes_total", "counter",
                          "Answers to LOCK, EXTEND, UNLOCK and STATUS. A LOCK is outbid when its "
                          "fence was too low; it bids again, and that is no answer.");
    for (unsigned kind = 0; kind < ROUND_KINDS; kind++)
        for (unsigned outcome = 0; outcome < OUTCOME_COUNT; outcome++)
            exposition_number(
                &metric,
                LABELS("verb", status_kind_word(kind), "outcome", status_outcome_word(outcome)),
                status->stats.outcomes[kind][outcome]);
}

static void write_requests(const struct status *status, struct text *text)
{
    const struct engine_stats *stats = &status->stats;
    struct metric metric = exposition_metric(text, "redlockd_requests_total", "counter",
                                             "Requests of clients that were well-formed.");
    for (unsigned verb = 0; verb < VERB_COUNT; verb++) {
        char word[16];
        exposition_number(&metric, LABEL("verb", lower(verb_word(verb), word)),
                          status->requests[verb]);
    }
    metric = exposition_metric(text, "redlockd_request_errors_total", "counter",
                               "Requests that were answered ERR, by its code.");
    for (unsigned error = REQUEST_LINE_TOO_LONG; error < REQUEST_ERRORS; error++)
        exposition_number(&metric, LABEL("code", request_error_word(error)),
                          status->request_errors[error]);
    counter(text, "redlockd_requests_denied_total",
            "Requests that were answered DENIED, any AUTH aside.", status->denied);
    write_outcomes(status, text);
    histogram(text, "redlockd_lock_duration_seconds",
              "LOCKs that were granted: from the request to the answer, its wait included.",
              &stats->granted);
    histogram(text, "redlockd_lock_round_duration_seconds",
              "LOCKs that were granted: the round that granted it alone.", &stats->granted_round);
    histogram(text, "redlockd_queue_duration_seconds",
              "LOCKs with WAIT: how long each stood in line, be it granted in the end or not.",
              &stats->queued);
    counter(text, "redlockd_lock_rounds_total",
            "Rounds that asked the masters for a lock; a LOCK that waits may need several.",
            stats->asked);
    counter(text, "redlockd_handovers_total",
            "Locks that went from their holder to the next in line by one command.",
            stats->handovers);
    counter(text, "redlockd_locks_undone_total",
            "LOCKs undone because their client had left before the answer.", stats->undone);
    counter(text, "redlockd_key_probes_total",
            "Key probes: looks at a key that a client waits for, on one master.",
            stats->key_probes);
    counter(text, "redlockd_keys_backfilled_total",
            "Keys set again where a granted round had found them missing.", stats->backfilled);
}

/* --- who waits, who holds, who is there --- */

static void write_locks(const struct status *status, struct text *text)
{
    gauge(text, "redlockd_waiters", "LOCKs with WAIT that stand in line.", status->waiting);
    gauge(text, "redlockd_resources_waited_for", "Resources somebody stands in line for.",
          status->waited_for);
    gauge(text, "redlockd_locks", "Locks granted through this daemon that it remembers.",
          status->locks);
    gauge(text, "redlockd_holds", "Locks with HOLD that connections hold.", status->holds);
    counter(text, "redlockd_hold_renewals_total", "Extensions of a HOLD by the daemon.",
            status->stats.renewals);
    struct metric metric =
        exposition_metric(text, "redlockd_holds_lost_total", "counter",
                          "Locks with HOLD that could not be kept, by the reason that LOST gives.");
    for (unsigned loss = 0; loss < ENGINE_LOSSES; loss++)
        exposition_number(&metric, LABEL("reason", engine_losses[loss].word),
                          status->stats.losses[loss]);
}

static void write_clients(const struct status *status, struct text *text)
{
    static const char *const limits[LISTENER_REFUSAL_COUNT] = {
#define X(name, key) [name] = key,
        LISTENER_REFUSALS(X)
#undef X
    };
    gauge(text, "redlockd_clients", "Connections of clients.", status->clients);
    gauge(text, "redlockd_clients_max", "How many there may be.", status->clients_max);
    counter(text, "redlockd_connections_total", "Connections of clients that were accepted.",
            status->accepted);
    struct metric metric =
        exposition_metric(text, "redlockd_connections_rejected_total", "counter",
                          "Connections of clients that were refused, by the key of limits.");
    for (unsigned refusal = 0; refusal < LISTENER_REFUSAL_COUNT; refusal++)
        exposition_number(&metric, LABEL("limit", limits[refusal]), status->rejected[refusal]);
    metric = exposition_metric(text, "redlockd_connections_unauthenticated_total", "counter",
                               "Connections that were closed before they had authenticated: it "
                               "took them too long, or others came.");
    exposition_number(&metric, LABEL("reason", "late"), status->auth_late);
    exposition_number(&metric, LABEL("reason", "displaced"), status->auth_displaced);
    counter(text, "redlockd_secrets_refused_total", "AUTH with a secret that is nobody's.",
            status->wrong_secrets);
    counter(text, "redlockd_tls_handshakes_failed_total",
            "Connections of clients that were closed before TLS was agreed upon.",
            status->tls_failed);
    counter(text, "redlockd_admin_connections_rejected_total",
            "Connections of the admin listener that were closed, there being too many.",
            status->admin_rejected);
    gauge(text, "redlockd_rounds_in_flight", "Rounds with a command under way on some master.",
          status->rounds_in_flight);
}

/* --- the masters --- */

static void write_votes(const struct status *status, struct text *text)
{
    const struct status_node *node;
    const struct status_node *const end = status->nodes + status->node_count;
    struct metric metric = exposition_metric(text, "redlockd_node_vote", "gauge",
                                             "Whether the master may vote: 1, or 0.");
    for (node = status->nodes; node < end; node++)
        exposition_number(&metric, LABEL("node", node->name), node->reason == REASON_NONE);
    metric = exposition_metric(text, "redlockd_node_vote_refused", "gauge",
                               "1 for the reason why a master has no vote now; nothing if it has.");
    for (node = status->nodes; node < end; node++)
        if (node->reason != REASON_NONE)
            exposition_number(&metric,
                              LABELS("node", node->name, "reason", reason_word(node->reason)), 1);
    metric = exposition_metric(text, "redlockd_node_without_vote_seconds", "gauge",
                               "For how long the master has had no vote; 0 if it has.");
    for (node = status->nodes; node < end; node++)
        exposition_seconds(&metric, LABEL("node", node->name), node->no_vote_ns);
    metric = exposition_metric(text, "redlockd_node_votes_refused_total", "counter",
                               "Rounds in which the master had no vote when they were decided.");
    for (unsigned i = 0; i < status->node_count; i++)
        for (unsigned reason = 0; reason < REASON_COUNT; reason++)
            if (status->stats.refused[i][reason] > 0)
                exposition_number(&metric,
                                  LABELS("node", status->nodes[i].name, "reason",
                                         reason_word((enum reason)reason)),
                                  status->stats.refused[i][reason]);
    gauge(text, "redlockd_nodes", "Masters in the configuration.", status->node_count);
    gauge(text, "redlockd_nodes_needed", "How many of them have to vote: the quorum.",
          status->quorum);
    gauge(text, "redlockd_nodes_voting", "How many of them may vote now.", status->voting);
    gauge(text, "redlockd_ready", "Whether locks can be granted, as /readyz says: 1, or 0.",
          status_is_ready(status));
}

static void write_links(const struct status *status, struct text *text)
{
    static const enum link_state states[] = {LINK_DOWN, LINK_OPENING, LINK_GREETING, LINK_UP,
                                             LINK_SUSPECT};
    const struct status_node *node;
    const struct status_node *const end = status->nodes + status->node_count;
    struct metric metric =
        exposition_metric(text, "redlockd_node_state", "gauge",
                          "1 for the state of the connection to the master, 0 for the others.");
    for (node = status->nodes; node < end; node++)
        for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++)
            exposition_number(&metric,
                              LABELS("node", node->name, "state", link_state_word(states[k])),
                              node->state == states[k]);
    metric =
        exposition_metric(text, "redlockd_node_tracking", "gauge",
                          "Whether the master tells of changes that waiters wait for: 1, or 0.");
    for (node = status->nodes; node < end; node++)
        exposition_number(&metric, LABEL("node", node->name), node->tracking);
    metric = exposition_metric(text, "redlockd_node_commands_unanswered", "gauge",
                               "Commands that the master has not answered yet.");
    for (node = status->nodes; node < end; node++)
        exposition_number(&metric, LABEL("node", node->name), node->unanswered);
    metric = exposition_metric(text, "redlockd_node_pending_releases", "gauge",
                               "Releases that the master has not confirmed, kept for later.");
    for (node = status->nodes; node < end; node++)
        exposition_number(&metric, LABEL("node", node->name), node->pending_releases);
    metric = exposition_metric(
        text, "redlockd_node_releases_forgotten_total", "counter",
        "Pending releases that were forgotten because there was no room for them.");
    for (node = status->nodes; node < end; node++)
        exposition_number(&metric, LABEL("node", node->name), node->forgotten);
    counter(text, "redlockd_releases_deferred_total", "Releases that had to be kept for later.",
            status->stats.deferred_releases);
    metric = exposition_metric(text, "redlockd_node_round_trip_seconds", "histogram",
                               "From a command of a round, or a heartbeat, to its answer.");
    for (node = status->nodes; node < end; node++)
        exposition_histogram(&metric, (struct label){"node", node->name}, &node->round_trips);
}

static void write_clocks(const struct status *status, struct text *text)
{
    const struct status_node *node;
    const struct status_node *const end = status->nodes + status->node_count;
    struct metric metric = exposition_metric(
        text, "redlockd_node_clock_offset_low_seconds", "gauge",
        "The least that the master's clock can be ahead of this host's, by the last look.");
    for (node = status->nodes; node < end; node++)
        if (node->clock_compared)
            exposition_seconds(&metric, LABEL("node", node->name), node->clock_low_ns);
    metric = exposition_metric(
        text, "redlockd_node_clock_offset_high_seconds", "gauge",
        "The most that the master's clock can be ahead of this host's, by the last look.");
    for (node = status->nodes; node < end; node++)
        if (node->clock_compared)
            exposition_seconds(&metric, LABEL("node", node->name), node->clock_high_ns);
}

/* --- the process --- */

static void write_process(const struct status *status, struct text *text)
{
    const struct process *process = status->process;
    struct metric metric = exposition_metric(text, "redlockd_build_info", "gauge",
                                             "1; its label says which version this is.");
    exposition_number(&metric, LABEL("version", status->version), 1);
    histogram(text, "redlockd_loop_lag_seconds",
              "How late timers fire: what a busy processor, or a long callback, costs everybody.",
              &status->lag);
    gauge(text, "redlockd_reload_refused", "1 if the last reload of the configuration was refused.",
          status->reload_refused);
    seconds(text, "redlockd_uptime_seconds", "gauge", "Since the start, suspended time included.",
            status->uptime_ns);
    seconds(text, "process_start_time_seconds", "gauge", "When it was started, since 1970.",
            status->wall_ns - status->uptime_ns);
    seconds(text, "process_cpu_seconds_total", "counter", "Processor time used.", process->cpu_ns);
    gauge(text, "process_resident_memory_bytes", "Memory in use.", process->resident_bytes);
    gauge(text, "process_virtual_memory_bytes", "Memory mapped.", process->virtual_bytes);
    gauge(text, "process_open_fds",
          "Open descriptors; a thousand a second are counted, so where there are many it is late.",
          process->open);
    gauge(text, "process_max_fds", "How many there may be.", process->descriptor_limit);
}

void metrics_write(const struct status *status, struct text *text)
{
    write_votes(status, text);
    write_links(status, text);
    write_clocks(status, text);
    write_requests(status, text);
    write_locks(status, text);
    write_clients(status, text);
    write_process(status, text);
}
