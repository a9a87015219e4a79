#include "server/admin/metrics.h"

#include <ctype.h>
#include <string.h>

#include "server/admin/exposition.h"
#include "server/clock.h"
#include "server/server.h"

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

static const char *outcome_word(enum outcome outcome)
{
    static const char *const words[OUTCOME_COUNT] = {
#define X(name, word) [name] = word,
        OUTCOME_TABLE(X)
#undef X
    };
    return outcome == OUTCOME_OUTBID ? "outbid" : words[outcome];
}

static void write_outcomes(const struct server *server, struct text *text)
{
    static const enum verb verbs[ROUND_KINDS] = {
        [ROUND_ACQUIRE] = VERB_LOCK,
        [ROUND_EXTEND] = VERB_EXTEND,
        [ROUND_RELEASE] = VERB_UNLOCK,
        [ROUND_STATUS] = VERB_STATUS,
    };
    struct metric metric =
        exposition_metric(text, "redlockd_outcomes_total", "counter",
                          "Answers to LOCK, EXTEND, UNLOCK and STATUS. A LOCK is outbid when its "
                          "fence was too low; it bids again, and that is no answer.");
    for (unsigned kind = 0; kind < ROUND_KINDS; kind++)
        for (unsigned outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
            char verb[16];
            char word[16];
            exposition_number(&metric,
                              LABELS("verb", lower(verb_word(verbs[kind]), verb), "outcome",
                                     lower(outcome_word((enum outcome)outcome), word)),
                              server->engine.stats.outcomes[kind][outcome]);
        }
}

static void write_requests(const struct server *server, struct text *text)
{
    const struct engine_stats *stats = &server->engine.stats;
    struct metric metric = exposition_metric(text, "redlockd_requests_total", "counter",
                                             "Requests of clients that were well-formed.");
    for (unsigned verb = 0; verb < VERB_COUNT; verb++) {
        char word[16];
        exposition_number(&metric, LABEL("verb", lower(verb_word(verb), word)),
                          server->requests[verb]);
    }
    metric = exposition_metric(text, "redlockd_request_errors_total", "counter",
                               "Requests that were answered ERR, by its code.");
    for (unsigned error = REQUEST_LINE_TOO_LONG; error < REQUEST_ERRORS; error++)
        exposition_number(&metric, LABEL("code", request_error_word(error)),
                          server->request_errors[error]);
    counter(text, "redlockd_requests_denied_total",
            "Requests that were answered DENIED, any AUTH aside.", server->denied);
    write_outcomes(server, text);
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
    counter(text, "redlockd_looks_total", "Looks at a key somebody waits for, on one master.",
            stats->looks);
    counter(text, "redlockd_keys_planted_total",
            "Keys set again where a granted round had found them missing.", stats->planted);
}

/* --- who waits, who holds, who is there --- */

static void write_locks(const struct server *server, struct text *text)
{
    const struct engine *engine = &server->engine;
    gauge(text, "redlockd_waiters", "LOCKs with WAIT that stand in line.", engine->manager.waiting);
    gauge(text, "redlockd_resources_waited_for", "Resources somebody stands in line for.",
          engine->manager.waited_for_count);
    gauge(text, "redlockd_locks", "Locks granted through this daemon that it remembers.",
          engine->manager.locks.in_use);
    gauge(text, "redlockd_holds", "Locks with HOLD that connections hold.", engine->manager.held_count);
    counter(text, "redlockd_hold_renewals_total", "Extensions of a HOLD by the daemon.",
            engine->stats.renewals);
    struct metric metric =
        exposition_metric(text, "redlockd_holds_lost_total", "counter",
                          "Locks with HOLD that could not be kept, by the reason that LOST gives.");
    for (unsigned loss = 0; loss < ENGINE_LOSSES; loss++)
        exposition_number(&metric, LABEL("reason", engine_loss_word(loss)),
                          engine->stats.losses[loss]);
}

static void write_clients(const struct server *server, struct text *text)
{
    gauge(text, "redlockd_clients", "Connections of clients.", server->session_count);
    gauge(text, "redlockd_clients_max", "How many there may be.", server->client_limit);
    counter(text, "redlockd_connections_total", "Connections of clients that were accepted.",
            server->next_session_id);
    struct metric metric =
        exposition_metric(text, "redlockd_connections_rejected_total", "counter",
                          "Connections of clients that were refused, by the key of limits.");
    for (unsigned refusal = 0; refusal < LISTENER_REFUSAL_COUNT; refusal++)
        exposition_number(&metric, LABEL("limit", listener_refusal_key(refusal)),
                          server->rejected_clients[refusal]);
    metric = exposition_metric(text, "redlockd_connections_unauthenticated_total", "counter",
                               "Connections that were closed before they had authenticated: it "
                               "took them too long, or others came.");
    exposition_number(&metric, LABEL("reason", "late"), server->gate.late);
    exposition_number(&metric, LABEL("reason", "displaced"), server->gate.displaced);
    counter(text, "redlockd_secrets_refused_total", "AUTH with a secret that is nobody's.",
            server->gate.wrong);
    counter(text, "redlockd_tls_handshakes_failed_total",
            "Connections of clients that were closed before TLS was agreed upon.",
            server->handshakes.failed);
    counter(text, "redlockd_admin_connections_rejected_total",
            "Connections of the admin listener that were closed, there being too many.",
            server->admin.rejected);
    gauge(text, "redlockd_operations", "Rounds with a command under way on some master.",
          server->engine.flights.pool.in_use);
}

/* --- the masters --- */

static const char *node_name(const struct server *server, unsigned node)
{
    return server->config->nodes[node].name;
}

static void write_votes(const struct server *server, struct text *text, int64_t now_ns)
{
    const struct engine *engine = &server->engine;
    enum reason reasons[LIMIT_NODES];
    unsigned voting = 0;
    struct metric metric = exposition_metric(text, "redlockd_node_vote", "gauge",
                                             "Whether the master may vote: 1, or 0.");
    for (unsigned i = 0; i < engine->flights.node_count; i++) {
        reasons[i] = engine_refuses_vote(engine, i, now_ns);
        voting += reasons[i] == REASON_NONE;
        exposition_number(&metric, LABEL("node", node_name(server, i)), reasons[i] == REASON_NONE);
    }
    metric = exposition_metric(text, "redlockd_node_vote_refused", "gauge",
                               "1 for the reason why a master has no vote now; nothing if it has.");
    for (unsigned i = 0; i < engine->flights.node_count; i++)
        if (reasons[i] != REASON_NONE)
            exposition_number(
                &metric, LABELS("node", node_name(server, i), "reason", reason_word(reasons[i])),
                1);
    metric = exposition_metric(text, "redlockd_node_without_vote_seconds", "gauge",
                               "For how long the master has had no vote; 0 if it has.");
    for (unsigned i = 0; i < engine->flights.node_count; i++) {
        int64_t since_ns = server->monitor.no_vote_ns[i];
        exposition_seconds(&metric, LABEL("node", node_name(server, i)),
                           since_ns != 0 ? now_ns - since_ns : 0);
    }
    metric = exposition_metric(text, "redlockd_node_votes_refused_total", "counter",
                               "Rounds in which the master had no vote when they were decided.");
    for (unsigned i = 0; i < engine->flights.node_count; i++)
        for (unsigned reason = 0; reason < REASON_COUNT; reason++)
            if (engine->stats.refused[i][reason] > 0)
                exposition_number(&metric,
                                  LABELS("node", node_name(server, i), "reason",
                                         reason_word((enum reason)reason)),
                                  engine->stats.refused[i][reason]);
    gauge(text, "redlockd_nodes", "Masters in the configuration.", engine->flights.node_count);
    gauge(text, "redlockd_nodes_needed", "How many of them have to vote: the quorum.",
          engine->rules.round.quorum);
    gauge(text, "redlockd_nodes_voting", "How many of them may vote now.", voting);
    gauge(text, "redlockd_ready", "Whether locks can be granted, as /readyz says: 1, or 0.",
          voting >= engine->rules.round.quorum && server->drain_until_ns == 0);
}

static void write_links(const struct server *server, struct text *text)
{
    static const enum link_state states[] = {LINK_DOWN, LINK_OPENING, LINK_GREETING, LINK_UP,
                                             LINK_SUSPECT};
    const struct engine *engine = &server->engine;
    struct metric metric =
        exposition_metric(text, "redlockd_node_state", "gauge",
                          "1 for the state of the connection to the master, 0 for the others.");
    for (unsigned i = 0; i < engine->flights.node_count; i++)
        for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++)
            exposition_number(
                &metric, LABELS("node", node_name(server, i), "state", link_state_word(states[k])),
                engine->flights.masters[i].link.state == states[k]);
    metric =
        exposition_metric(text, "redlockd_node_tracking", "gauge",
                          "Whether the master tells of changes that waiters wait for: 1, or 0.");
    for (unsigned i = 0; i < engine->flights.node_count; i++)
        exposition_number(&metric, LABEL("node", node_name(server, i)),
                          engine->flights.masters[i].tracker.tracking != 0);
    metric = exposition_metric(text, "redlockd_node_commands_unanswered", "gauge",
                               "Commands that the master has not answered yet.");
    for (unsigned i = 0; i < engine->flights.node_count; i++)
        exposition_number(&metric, LABEL("node", node_name(server, i)),
                          link_unanswered(&engine->flights.masters[i].link));
    metric = exposition_metric(text, "redlockd_node_releases_owed", "gauge",
                               "Releases that the master has not confirmed, kept for later.");
    for (unsigned i = 0; i < engine->flights.node_count; i++)
        exposition_number(&metric, LABEL("node", node_name(server, i)),
                          engine->flights.masters[i].link.owed.count);
    metric = exposition_metric(text, "redlockd_node_releases_forgotten_total", "counter",
                               "Releases it was owed that could not be remembered.");
    for (unsigned i = 0; i < engine->flights.node_count; i++)
        exposition_number(&metric, LABEL("node", node_name(server, i)),
                          engine->flights.masters[i].link.owed.dropped);
    counter(text, "redlockd_releases_owed_total", "Releases that had to be kept for later.",
            engine->stats.owed);
    metric = exposition_metric(text, "redlockd_node_round_trip_seconds", "histogram",
                               "From a command of a round, or a heartbeat, to its answer.");
    for (unsigned i = 0; i < engine->flights.node_count; i++)
        exposition_histogram(&metric, (struct label){"node", node_name(server, i)},
                             &engine->flights.masters[i].link.round_trips);
}

/* Its clock minus this host's, both as wall clocks: the watch itself compares with the time since
 * boot, which nobody could read. */
static void write_clocks(const struct server *server, struct text *text, int64_t now_ns)
{
    const struct engine *engine = &server->engine;
    int64_t boot_ns = clock_wall_ns() - now_ns;
    static const struct {
        const char *name;
        const char *help;
        size_t offset;
    } bounds[] = {
        {"redlockd_node_clock_offset_low_seconds",
         "The least that the master's clock can be ahead of this host's, by the last look.",
         offsetof(struct watch, low_ns)},
        {"redlockd_node_clock_offset_high_seconds",
         "The most that the master's clock can be ahead of this host's, by the last look.",
         offsetof(struct watch, high_ns)},
    };
    for (size_t k = 0; k < sizeof(bounds) / sizeof(bounds[0]); k++) {
        struct metric metric = exposition_metric(text, bounds[k].name, "gauge", bounds[k].help);
        for (unsigned i = 0; i < engine->flights.node_count; i++) {
            const struct watch *watch = &engine->flights.guard.nodes[i].watch;
            int64_t bound_ns;
            memcpy(&bound_ns, (const char *)watch + bounds[k].offset, sizeof(bound_ns));
            if (watch->begun)
                exposition_seconds(&metric, LABEL("node", node_name(server, i)),
                                   bound_ns - boot_ns);
        }
    }
}

/* --- the process --- */

static void write_process(const struct server *server, struct text *text, int64_t now_ns)
{
    const struct process *process = &server->admin.process;
    struct metric metric = exposition_metric(text, "redlockd_build_info", "gauge",
                                             "1; its label says which version this is.");
    exposition_number(&metric, LABEL("version", REDLOCKD_VERSION), 1);
    histogram(text, "redlockd_loop_lag_seconds",
              "How late timers fire: what a busy processor, or a long callback, costs everybody.",
              &server->lag);
    gauge(text, "redlockd_reload_refused", "1 if the last reload of the configuration was refused.",
          server->reload_refused);
    seconds(text, "redlockd_uptime_seconds", "gauge", "Since the start, suspended time included.",
            now_ns - server->started_ns);
    seconds(text, "process_start_time_seconds", "gauge", "When it was started, since 1970.",
            clock_wall_ns() - (now_ns - server->started_ns));
    seconds(text, "process_cpu_seconds_total", "counter", "Processor time used.", process->cpu_ns);
    gauge(text, "process_resident_memory_bytes", "Memory in use.", process->resident_bytes);
    gauge(text, "process_virtual_memory_bytes", "Memory mapped.", process->virtual_bytes);
    gauge(text, "process_open_fds",
          "Open descriptors; a thousand a second are counted, so where there are many it is late.",
          process->open);
    gauge(text, "process_max_fds", "How many there may be.", process->descriptor_limit);
}

void metrics_write(const struct server *server, struct text *text, int64_t now_ns)
{
    write_votes(server, text, now_ns);
    write_links(server, text);
    write_clocks(server, text, now_ns);
    write_requests(server, text);
    write_locks(server, text);
    write_clients(server, text);
    write_process(server, text, now_ns);
}
