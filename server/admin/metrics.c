#include "server/admin/status.h"

#include <ctype.h>
#include <stddef.h>

#include "server/admin/exposition.h"

/* A common prefix keeps the metrics of one topic together. No metric has a resource as a label,
 * because there may be any number of resources. */

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
    struct metric metric = exposition_metric(
        text, "redlockd_outcomes_total", "counter",
        "Replies to LOCK, EXTEND, UNLOCK and STATUS, by outcome. outbid counts LOCK rounds whose "
        "ballot was too low; the daemon repeats these with a higher one, without a reply.");
    for (unsigned kind = 0; kind < ROUND_KINDS; kind++)
        for (unsigned outcome = 0; outcome < OUTCOME_COUNT; outcome++)
            exposition_number(
                &metric,
                LABELS("verb", status_kind_word(kind), "outcome", status_outcome_word(outcome)),
                status->engine.stats->outcomes[kind][outcome]);
}

static void write_requests(const struct status *status, struct text *text)
{
    const struct engine_stats *stats = status->engine.stats;
    struct metric metric = exposition_metric(text, "redlockd_requests_total", "counter",
                                             "Well-formed requests from clients.");
    for (unsigned verb = 0; verb < VERB_COUNT; verb++) {
        char word[16];
        exposition_number(&metric, LABEL("verb", lower(verb_word(verb), word)),
                          status->requests[verb]);
    }
    metric = exposition_metric(text, "redlockd_request_errors_total", "counter",
                               "Requests answered with ERR, by error code.");
    for (unsigned error = REQUEST_LINE_TOO_LONG; error < REQUEST_ERRORS; error++)
        exposition_number(&metric, LABEL("code", request_error_word(error)),
                          status->request_errors[error]);
    counter(text, "redlockd_requests_denied_total",
            "Requests answered with DENIED, except AUTH and HELLO.", status->denied);
    write_outcomes(status, text);
    metric = exposition_metric(text, "redlockd_limits_total", "counter",
                               "Requests answered LIMIT, except AUTH, by the word after LIMIT.");
    for (unsigned limit = 0; limit < ENGINE_LIMITS; limit++)
        exposition_number(&metric, LABEL("limit", engine_limits[limit]), stats->limits[limit]);
    histogram(text, "redlockd_lock_duration_seconds",
              "Granted LOCKs: time from the request to the reply, including the wait.",
              &stats->granted);
    histogram(text, "redlockd_lock_round_duration_seconds",
              "Granted LOCKs: duration of the round that granted the lock.", &stats->granted_round);
    histogram(text, "redlockd_queue_duration_seconds",
              "LOCKs with WAIT: time in the queue, whether or not the lock was granted.",
              &stats->queued);
    histogram(text, "redlockd_start_delay_seconds",
              "Requests held back while enough rounds were in flight: time until their round "
              "started, or until it was given up.",
              &stats->held_back);
    counter(text, "redlockd_lock_rounds_total",
            "Acquire rounds. A LOCK that waits may need several.", stats->acquire_rounds);
    counter(
        text, "redlockd_handovers_total",
        "Locks handed over from their holder to the first waiter without being free in between.",
        stats->handovers);
    counter(text, "redlockd_locks_undone_total",
            "LOCKs undone because the client disconnected before the reply.", stats->undone);
    counter(text, "redlockd_key_probes_total",
            "Key probes: queries of one master for a key that a client waits for.",
            stats->key_probes);
    counter(text, "redlockd_keys_backfilled_total",
            "Keys written to masters that lacked them after a quorum granted or extended the lock.",
            stats->backfilled);
}

/* --- waiters, holders and clients --- */

static void write_locks(const struct status *status, struct text *text)
{
    const struct engine_view *engine = &status->engine;
    gauge(text, "redlockd_waiters", "LOCKs with WAIT in the queues.", engine->waiting);
    gauge(text, "redlockd_requests_held_back", "Requests that wait for their round to start.",
          engine->held_back);
    gauge(text, "redlockd_rounds_limit",
          "Rounds in flight from which on requests are held back; it adapts to the masters.",
          engine->limit);
    gauge(text, "redlockd_resources_waited_for", "Resources that have waiters.",
          engine->waited_for);
    gauge(text, "redlockd_slots_waited_for", "Slots that LOCKs with SLOTS wait for.",
          engine->slots);
    gauge(text, "redlockd_slots_waited_for_held",
          "Of these slots, those that are held, as far as this daemon knows.", engine->slots_held);
    gauge(text, "redlockd_locks",
          "Locks granted through this daemon and not released or expired yet.", engine->locks);
    gauge(text, "redlockd_holds", "Locks with HOLD held by connected clients.", engine->holds);
    counter(text, "redlockd_hold_renewals_total", "Extensions of HOLDs by the daemon.",
            engine->stats->renewals);
    struct metric metric =
        exposition_metric(text, "redlockd_holds_lost_total", "counter",
                          "Locks with HOLD that were lost, by the reason in LOST.");
    for (unsigned loss = 0; loss < ENGINE_LOSSES; loss++)
        exposition_number(&metric, LABEL("reason", engine_losses[loss].word),
                          engine->stats->losses[loss]);
}

static void write_clients(const struct status *status, struct text *text)
{
    gauge(text, "redlockd_clients", "Client connections.", status->clients);
    gauge(text, "redlockd_clients_max", "Maximum number of client connections.",
          status->clients_max);
    counter(text, "redlockd_connections_total", "Accepted client connections.", status->accepted);
    struct metric metric = exposition_metric(
        text, "redlockd_connections_rejected_total", "counter",
        "Client connections refused because of a limit, by its key under `limits`.");
    for (unsigned refusal = 0; refusal < LISTENER_REFUSAL_COUNT; refusal++)
        exposition_number(&metric, LABEL("limit", listener_refusals[refusal]),
                          status->rejected[refusal]);
    metric = exposition_metric(
        text, "redlockd_connections_unauthenticated_total", "counter",
        "Connections closed before they authenticated: late, or displaced by newer ones.");
    exposition_number(&metric, LABEL("reason", "late"), status->auth_late);
    exposition_number(&metric, LABEL("reason", "displaced"), status->auth_displaced);
    counter(text, "redlockd_secrets_refused_total", "AUTH requests with a wrong secret.",
            status->wrong_secrets);
    counter(text, "redlockd_tls_handshakes_failed_total",
            "Client connections closed during the TLS handshake.", status->tls_failed);
    metric = exposition_metric(
        text, "redlockd_admin_connections_rejected_total", "counter",
        "HTTP connections closed because there were too many, by the key of the address.");
    exposition_number(&metric, LABEL("listener", "admin"), status->admin_rejected);
    exposition_number(&metric, LABEL("listener", "metrics"), status->metrics_rejected);
    gauge(text, "redlockd_rounds_in_flight",
          "Rounds with a command that a master has not answered yet.", status->engine.rounds);
}

/* --- the masters --- */

static void write_votes(const struct status *status, struct text *text)
{
    const struct status_node *node;
    const struct status_node *const end = status->nodes + status->engine.node_count;
    struct metric metric =
        exposition_metric(text, "redlockd_node_vote", "gauge", "1 if the master can vote, else 0.");
    for (node = status->nodes; node < end; node++)
        exposition_number(&metric, LABEL("node", node->name), node->reason == REASON_NONE);
    metric =
        exposition_metric(text, "redlockd_node_vote_refused", "gauge",
                          "1 for the reason why the master has no vote now; absent if it votes.");
    for (node = status->nodes; node < end; node++)
        if (node->reason != REASON_NONE)
            exposition_number(&metric,
                              LABELS("node", node->name, "reason", reason_word(node->reason)), 1);
    metric = exposition_metric(text, "redlockd_node_without_vote_seconds", "gauge",
                               "How long the master has had no vote; 0 if it votes.");
    for (node = status->nodes; node < end; node++)
        exposition_seconds(&metric, LABEL("node", node->name), node->no_vote_ns);
    metric = exposition_metric(text, "redlockd_node_votes_refused_total", "counter",
                               "Rounds decided while the master had no vote, by reason.");
    for (unsigned i = 0; i < status->engine.node_count; i++)
        for (unsigned reason = 0; reason < REASON_COUNT; reason++)
            if (status->engine.stats->refused[i][reason] > 0)
                exposition_number(&metric,
                                  LABELS("node", status->nodes[i].name, "reason",
                                         reason_word((enum reason)reason)),
                                  status->engine.stats->refused[i][reason]);
    gauge(text, "redlockd_nodes", "Masters in the configuration.", status->engine.node_count);
    gauge(text, "redlockd_nodes_needed", "Masters that have to vote: the quorum.",
          status->engine.quorum);
    gauge(text, "redlockd_nodes_voting", "Masters that can vote now.", status->voting);
    gauge(text, "redlockd_ready", "1 if locks can be granted, else 0, like /readyz.",
          status_is_ready(status));
}

static void write_links(const struct status *status, struct text *text)
{
    static const enum link_state states[] = {LINK_DOWN, LINK_OPENING, LINK_GREETING, LINK_UP,
                                             LINK_SUSPECT};
    const struct status_node *node;
    const struct status_node *const end = status->nodes + status->engine.node_count;
    struct metric metric = exposition_metric(
        text, "redlockd_node_state", "gauge",
        "1 for the current state of the connection to the master, 0 for the other states.");
    for (node = status->nodes; node < end; node++)
        for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++)
            exposition_number(&metric,
                              LABELS("node", node->name, "state", link_state_word(states[k])),
                              node->state == states[k]);
    metric =
        exposition_metric(text, "redlockd_node_tracking", "gauge",
                          "1 if the master reports changes of keys that clients wait for, else 0.");
    for (node = status->nodes; node < end; node++)
        exposition_number(&metric, LABEL("node", node->name), node->tracking);
    metric = exposition_metric(text, "redlockd_node_commands_unanswered", "gauge",
                               "Commands that the master has not answered yet.");
    for (node = status->nodes; node < end; node++)
        exposition_number(&metric, LABEL("node", node->name), node->unanswered);
    metric = exposition_metric(
        text, "redlockd_node_pending_releases", "gauge",
        "Releases that the master has not confirmed and that will be sent again.");
    for (node = status->nodes; node < end; node++)
        exposition_number(&metric, LABEL("node", node->name), node->pending_releases);
    metric = exposition_metric(text, "redlockd_node_releases_forgotten_total", "counter",
                               "Pending releases dropped: the list was full, or the master refused "
                               "them for too long.");
    for (node = status->nodes; node < end; node++)
        exposition_number(&metric, LABEL("node", node->name), node->forgotten);
    counter(text, "redlockd_releases_deferred_total",
            "Releases that could not be sent or confirmed at once.",
            status->engine.stats->deferred_releases);
    metric = exposition_metric(text, "redlockd_node_round_trip_seconds", "histogram",
                               "Time from a command of a round, or a heartbeat, to its reply.");
    for (node = status->nodes; node < end; node++)
        exposition_histogram(&metric, (struct label){"node", node->name}, &node->round_trips);
}

static void write_clocks(const struct status *status, struct text *text)
{
    const struct status_node *node;
    const struct status_node *const end = status->nodes + status->engine.node_count;
    struct metric metric = exposition_metric(
        text, "redlockd_node_clock_offset_low_seconds", "gauge",
        "Lower bound of the master's wall clock minus this host's, from the last heartbeat.");
    for (node = status->nodes; node < end; node++)
        if (node->clock_compared)
            exposition_seconds(&metric, LABEL("node", node->name), node->clock_low_ns);
    metric = exposition_metric(
        text, "redlockd_node_clock_offset_high_seconds", "gauge",
        "Upper bound of the master's wall clock minus this host's, from the last heartbeat.");
    for (node = status->nodes; node < end; node++)
        if (node->clock_compared)
            exposition_seconds(&metric, LABEL("node", node->name), node->clock_high_ns);
}

/* --- the process --- */

static void write_process(const struct status *status, struct text *text)
{
    const struct process *process = status->process;
    struct metric metric = exposition_metric(text, "redlockd_build_info", "gauge",
                                             "Always 1; the label is the version.");
    exposition_number(&metric, LABEL("version", status->version), 1);
    histogram(
        text, "redlockd_loop_lag_seconds",
        "Delay of timers, caused by a busy processor or a long callback. The same delay affects "
        "every client.",
        &status->lag);
    gauge(text, "redlockd_reload_refused",
          "1 if the last reload of the configuration was refused, else 0.", status->reload_refused);
    seconds(text, "redlockd_uptime_seconds", "gauge",
            "Time since the start, including time suspended.", status->uptime_ns);
    seconds(text, "process_start_time_seconds", "gauge", "Start time of the process since 1970.",
            status->wall_ns - status->uptime_ns);
    seconds(text, "process_cpu_seconds_total", "counter", "User and system CPU time.",
            process->cpu_ns);
    gauge(text, "process_resident_memory_bytes", "Resident memory.", process->resident_bytes);
    gauge(text, "process_virtual_memory_bytes", "Virtual memory.", process->virtual_bytes);
    gauge(text, "process_open_fds",
          "Open descriptors. At most a thousand are counted per second, so large numbers lag.",
          process->open);
    gauge(text, "process_max_fds", "Maximum number of open descriptors.",
          process->descriptor_limit);
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
