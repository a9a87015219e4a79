#include "server/probe.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/certificate.h"
#include "protocol/text.h"
#include "protocol/units.h"
#include "server/masters/connections.h"

/* Why this node would have no vote according to the leases on its name, which the probe has read
 * from all masters; REASON_NONE: no conflict. */
static enum reason find_lease(const struct probe *probe, unsigned node)
{
    for (unsigned i = 0; i < probe->connections->config->node_count; i++) {
        const char *lease = probe->nodes[i].leases[node];
        if (lease[0] == '\0')
            continue;
        enum reason reason = engine_lease_conflict(probe->connections->engine, node, lease, i);
        if (reason != REASON_NONE)
            return reason;
    }
    return REASON_NONE;
}

/* The reason why this node would have no vote, apart from refused commands. */
static enum reason reason_of(const struct probe *probe, unsigned node, int64_t now_ns)
{
    const struct master_view master = engine_view_master(probe->connections->engine, node, now_ns);
    switch (master.state) {
    case LINK_UP:
        return master.blocked != REASON_NONE ? master.blocked : find_lease(probe, node);
    case LINK_OPENING:
        return REASON_UNREACHABLE;
    case LINK_GREETING:
    case LINK_SUSPECT:
        return REASON_HUNG;
    case LINK_DOWN:
        break;
    }
    return master.reason;
}

/* --- measuring --- */

static unsigned expected_replies(const struct probe *probe)
{
    return ENGINE_SELF_TESTS + probe->connections->config->node_count;
}

static void measure(struct probe *probe, unsigned node, int64_t now_ns)
{
    struct probe_node *probed = &probe->nodes[node];
    const struct master_view master = engine_view_master(probe->connections->engine, node, now_ns);
    if (master.heartbeat_due)
        return;
    if (probed->measuring)
        probed->round_trips_ns[probed->heartbeat_count++] = master.round_trip_ns;
    probed->measuring = probed->heartbeat_count < PROBE_ROUND_TRIPS;
    if (probed->measuring)
        engine_heartbeat(probe->connections->engine, node, now_ns);
}

/* True while results are outstanding. */
static bool step_node(struct probe *probe, unsigned node, int64_t now_ns)
{
    struct probe_node *probed = &probe->nodes[node];
    const struct master_view master = engine_view_master(probe->connections->engine, node, now_ns);
    if (master.state != LINK_UP)
        return master.state != LINK_DOWN || master.attempts == 0 ||
               node_has_more(&probe->connections->nodes[node][CHANNEL_COMMANDS]);
    enum reason reason = reason_of(probe, node, now_ns);
    if (reason == REASON_UNCHECKED)
        return true;
    if (!reason_ends_by_waiting(reason))
        return false;
    if (!probed->self_test_started)
        engine_self_test(probe->connections->engine, node, now_ns);
    probed->self_test_started = true;
    if (probed->heartbeat_count < PROBE_ROUND_TRIPS)
        measure(probe, node, now_ns);
    return probed->replies < expected_replies(probe) || probed->heartbeat_count < PROBE_ROUND_TRIPS;
}

bool probe_step(struct probe *probe, int64_t now_ns)
{
    bool waits = false;
    for (unsigned i = 0; i < probe->connections->config->node_count; i++)
        waits = step_node(probe, i, now_ns) || waits;
    pass_want_end(probe->connections->pass);
    return !waits;
}

void probe_on_self_tested(struct probe *probe, unsigned node, const char *what, enum reason refused)
{
    struct probe_node *probed = &probe->nodes[node];
    probed->replies++;
    if (refused == REASON_NONE || probed->refused != NULL)
        return;
    probed->refused = what;
    probed->reason = refused;
    snprintf(probed->meaning, sizeof(probed->meaning), "%s",
             engine_meaning(probe->connections->engine, node, refused));
}

void probe_on_lease_found(struct probe *probe, unsigned node, unsigned named, const char *lease)
{
    struct probe_node *probed = &probe->nodes[node];
    probed->replies++;
    snprintf(probed->leases[named], sizeof(probed->leases[named]), "%s", lease);
}

/* --- reporting --- */

static int compare(const void *a, const void *b)
{
    const int64_t *one = a;
    const int64_t *other = b;
    return (*one > *other) - (*one < *other);
}

static double ms(int64_t duration_ns)
{
    return (double)duration_ns / NS_PER_MS;
}

/* Other daemons leave a lock free for the waiters of this daemon, but no longer than their
 * backoff_max. Warn if these waiters need more time to get the lock. */
static void report_need(const struct config *config, int64_t median_ns, FILE *out)
{
    int64_t needed_ns = engine_need_ns(config->rounds.backoff_min_ns, median_ns);
    if (needed_ns > config->rounds.backoff_max_ns)
        fprintf(out,
                "; clients that wait through this daemon may starve while a daemon with a shorter "
                "round trip competes for the lock: raise rounds.backoff_max of all daemons from "
                "%.1f ms to %.0f ms",
                ms(config->rounds.backoff_max_ns), ms(needed_ns + NS_PER_MS - 1));
}

static void report_certificate(const struct probe *probe, unsigned node, FILE *out)
{
    struct bufferevent *tls = probe->connections->nodes[node][CHANNEL_COMMANDS].stream.tls;
    const X509 *certificate = tls != NULL ? tls_peer_certificate(tls) : NULL;
    struct error error;
    if (certificate != NULL && certificate_is_stale(certificate, time(NULL), &error))
        fprintf(out, "; its certificate %s", error.text);
}

/* Report on a node that has executed all commands: its round trip, configured times that do not fit
 * the round trip, and settings of the master that do not fit the configuration. */
static bool report_round_trip(const struct probe *probe, unsigned node,
                              const struct master_view *master, FILE *out)
{
    const struct config *config = probe->connections->config;
    int64_t sorted_ns[PROBE_ROUND_TRIPS];
    for (unsigned i = 0; i < PROBE_ROUND_TRIPS; i++)
        sorted_ns[i] = probe->nodes[node].round_trips_ns[i];
    qsort(sorted_ns, PROBE_ROUND_TRIPS, sizeof(sorted_ns[0]), compare);
    int64_t median_ns = sorted_ns[PROBE_ROUND_TRIPS / 2];
    if (median_ns > config->rounds.node_timeout_ns) {
        fprintf(out, "too slow: round trip %.1f ms exceeds rounds.node_timeout (%.1f ms)\n",
                ms(median_ns), ms(config->rounds.node_timeout_ns));
        return false;
    }
    if (2 * median_ns > config->locks.clock_drift_margin_ns) {
        fprintf(out,
                "too slow: round trip %.1f ms; raise locks.clock_drift_margin (%.1f ms) to more "
                "than twice that\n",
                ms(median_ns), ms(config->locks.clock_drift_margin_ns));
        return false;
    }
    if (config->nodes[node].durable && !master->durable) {
        fprintf(out, "not durable: its settings do not keep every command on disk (appendonly, "
                     "appendfsync, no-appendfsync-on-rewrite, replicas)\n");
        return false;
    }
    fprintf(out, "ok, round trip %.1f ms", ms(median_ns));
    if (!master->tracking)
        fprintf(out, "; no client tracking, so the daemon polls it while clients wait");
    report_certificate(probe, node, out);
    report_need(config, median_ns, out);
    fputc('\n', out);
    return true;
}

/* What to look at when a master does not talk at all. */
static const char *advice_on_tls(const struct config_node *node, enum reason reason)
{
    if (node->address.tls && reason == REASON_HUNG)
        return "; does this port use TLS?";
    return !node->address.tls && reason == REASON_DISCONNECTED
               ? "; does this port require TLS (rediss://)?"
               : "";
}

/* Escape the master's text, since it may contain terminal control sequences. */
static void report_meaning(const char *meaning, const char *advice, FILE *out)
{
    char visible[4 * LIMIT_URL];
    struct text text = {.buf = visible, .size = sizeof(visible)};
    text_escape(&text, meaning, strlen(meaning), TEXT_EXACT);
    fprintf(out, ": %.*s%s\n", (int)text.len, text.buf, advice);
}

static bool report_node(const struct probe *probe, unsigned node, int64_t now_ns, FILE *out)
{
    const struct probe_node *probed = &probe->nodes[node];
    const struct master_view master = engine_view_master(probe->connections->engine, node, now_ns);
    enum reason reason = reason_of(probe, node, now_ns);
    if (probed->refused != NULL) {
        fprintf(out, "%s to %s", reason_word(probed->reason), probed->refused);
        report_meaning(probed->meaning, "", out);
        return false;
    }
    if (!reason_ends_by_waiting(reason)) {
        fputs(reason_word(reason), out);
        if (reason == REASON_DUPLICATE)
            fprintf(out, " of %s", probe->connections->config->nodes[master.duplicate_of].name);
        report_meaning(engine_meaning(probe->connections->engine, node, reason),
                       advice_on_tls(&probe->connections->config->nodes[node], reason), out);
        return false;
    }
    if (probed->heartbeat_count < PROBE_ROUND_TRIPS || probed->replies < expected_replies(probe)) {
        fprintf(out, "hung: the master does not answer in time\n");
        return false;
    }
    if (reason == REASON_NONE)
        return report_round_trip(probe, node, &master, out);
    int64_t left_ns = master.quarantine_until_ns - now_ns;
    if (left_ns > 0)
        fprintf(out, "no vote for another %.0f s (%s); otherwise ", ms(left_ns) / 1000,
                reason_word(reason));
    else
        fprintf(out, "no vote for %s after the daemon starts%s (%s); otherwise ",
                reason == REASON_DURABLE ? "a few seconds" : "max_ttl",
                reason == REASON_NEW ? ", unless you use --bootstrap" : "", reason_word(reason));
    return report_round_trip(probe, node, &master, out);
}

bool probe_report(const struct probe *probe, int64_t now_ns, FILE *out)
{
    bool ok = true;
    for (unsigned i = 0; i < probe->connections->config->node_count; i++) {
        const struct config_node *node = &probe->connections->config->nodes[i];
        fprintf(out, "%s %s: ", node->name, node->address.url);
        ok = report_node(probe, i, now_ns, out) && ok;
    }
    return ok;
}
