#include "server/masters/connections.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "protocol/units.h"
#include "server/clock.h"
#include "server/log.h"

/* If the daemon finds during this time after its start that a master is listed twice, it exits,
 * unless all nodes have voted at the same time before. */
#define STARTING_NS (5 * NS_PER_S)

/* A master about as slow as node_timeout becomes suspect and recovers many times a second. After a
 * suspicion that was logged, further ones are not logged for this time. */
#define SUSPECT_AGAIN_NS (10 * NS_PER_S)

/* Whether the node is down for a reason that was not logged since it was last up. */
static bool is_new_reason(struct connections *connections, unsigned node,
                          const struct master_view *master)
{
    uint64_t *logged = &connections->down_reasons_logged[node];
    uint64_t reason = UINT64_C(1) << master->reason;
    static_assert(REASON_COUNT <= 64, "one bit per reason");
    bool is_new = master->state == LINK_DOWN && (*logged & reason) == 0;
    if (master->state == LINK_UP)
        *logged = 0;
    else if (is_new)
        *logged |= reason;
    return is_new;
}

/* Whether the node has become suspect soon after a suspicion that was logged, or recovers from
 * that. */
static bool is_suspect_again(struct connections *connections, unsigned node, enum link_state before,
                             enum link_state state, int64_t now_ns)
{
    int64_t *logged_ns = &connections->suspect_logged_ns[node];
    bool *unlogged = &connections->suspect_unlogged[node];
    if (state == LINK_SUSPECT) {
        *unlogged = *logged_ns != 0 && now_ns - *logged_ns < SUSPECT_AGAIN_NS;
        if (!*unlogged)
            *logged_ns = now_ns;
    }
    return *unlogged && (state == LINK_SUSPECT || (state == LINK_UP && before == LINK_SUSPECT));
}

/* Log the changes on which an operator would act: a master lost or regained, and why. All other
 * changes are logged at level debug. */
void node_log_link(struct connections *connections, unsigned node, enum link_state before)
{
    int64_t now_ns = clock_now_ns();
    const struct master_view master = engine_view_master(connections->engine, node, now_ns);
    const char *name = connections->config->nodes[node].name;
    char address[SOCKADDR_TEXT] = "";
    bool was_usable = before == LINK_UP || before == LINK_SUSPECT;
    bool new_reason = is_new_reason(connections, node, &master);
    bool again = is_suspect_again(connections, node, before, master.state, now_ns);
    if (master.reason != REASON_UNRESOLVED)
        node_address(&connections->nodes[node][CHANNEL_COMMANDS], address);
    const struct log_field address_field = log_text(address[0] != '\0' ? "address" : NULL, address);
    if (master.state == LINK_UP && !again)
        log_event(connections->log, CONFIG_LOG_INFO, "node_up",
                  LOG_FIELDS(log_text("node", name), address_field));
    else if ((master.state == LINK_SUSPECT && !again) ||
             (master.state == LINK_DOWN && was_usable) || new_reason)
        log_event(connections->log, CONFIG_LOG_WARNING,
                  master.state == LINK_SUSPECT ? "node_suspect" : "node_down",
                  LOG_FIELDS(
                      log_text("node", name), log_text("reason", reason_word(master.reason)),
                      log_text("meaning", engine_meaning(connections->engine, node, master.reason)),
                      address_field));
    else
        log_event(connections->log, CONFIG_LOG_DEBUG, "node_state",
                  LOG_FIELDS(log_text("node", name),
                             log_text("state", link_state_word(master.state)),
                             log_text("reason", reason_word(master.reason))));
}

static void log_other_set(const struct connections *connections, unsigned node)
{
    const struct master_view master = engine_view_master(connections->engine, node, clock_now_ns());
    int64_t own_max_ttl_ms = connections->config->locks.max_ttl_ns / NS_PER_MS;
    bool same = master.record_max_ttl_ms == own_max_ttl_ms &&
                strcmp(master.record_cluster, connections->config->cluster) == 0;
    log_event(connections->log, CONFIG_LOG_ERROR, "node_without_vote",
              LOG_FIELDS(
                  log_text("node", connections->config->nodes[node].name),
                  log_text("reason", reason_word(REASON_OTHERSET)),
                  log_text("meaning", reason_text(REASON_OTHERSET)),
                  log_text("master_set", master.record_set),
                  log_text("master_cluster", master.record_cluster),
                  log_number("master_max_ttl_ms", master.record_max_ttl_ms),
                  log_text("own_set", engine_view(connections->engine).set_id),
                  log_text("own_cluster", connections->config->cluster),
                  log_number("own_max_ttl_ms", own_max_ttl_ms),
                  log_text(same ? "advice" : NULL,
                           "compare the names of the nodes, fence_ttl and clock_drift_* as well")));
}

/* False if the missing vote is not worth a line. */
static bool log_no_vote(const struct connections *connections, unsigned node, enum reason before,
                        enum reason reason, int64_t now_ns)
{
    const struct master_view master = engine_view_master(connections->engine, node, now_ns);
    int64_t left_ms = master.vote_ns == INT64_MAX ? -1 : (master.vote_ns - now_ns) / NS_PER_MS;
    /* A vote that is missing for less than a millisecond is not worth a line. This happens at the
     * first check of a record whose quarantine is about to end. */
    int64_t quarantine_ns = master.quarantine_until_ns - now_ns;
    bool just_ended =
        reason == master.quarantine_why && quarantine_ns >= 0 && quarantine_ns < NS_PER_MS;
    if (left_ms == 0 || just_ended)
        return false;
    log_event(connections->log, CONFIG_LOG_WARNING, "node_without_vote",
              LOG_FIELDS(log_text("node", connections->config->nodes[node].name),
                         log_text("reason", reason_word(reason)),
                         log_text("meaning", engine_meaning(connections->engine, node, reason)),
                         log_text("previous_reason", reason_word(before)),
                         log_number("for_ms", left_ms)));
    return true;
}

static void log_duplicate(const struct connections *connections, unsigned node,
                          enum config_log_level level, const char *event, const char *meaning)
{
    unsigned twin = engine_view_master(connections->engine, node, clock_now_ns()).duplicate_of;
    log_event(connections->log, level, event,
              LOG_FIELDS(log_text("node", connections->config->nodes[node].name),
                         log_text("reason", reason_word(REASON_DUPLICATE)),
                         log_text(meaning, reason_text(REASON_DUPLICATE)),
                         log_text("same_as", connections->config->nodes[twin].name),
                         log_text("advice", "list each master once")));
}

static void log_vote(struct connections *connections, unsigned node, enum reason before,
                     enum reason reason, int64_t now_ns)
{
    bool *unlogged = &connections->lapse_unlogged[node];
    const struct master_view master = engine_view_master(connections->engine, node, now_ns);
    /* These cases are not worth a warning: the link is not up, which is in the log already; or the
     * connection is new and not checked yet; or the master is new, as expected with --bootstrap. */
    bool expected = !master.takes_votes || reason == REASON_UNCHECKED ||
                    (connections->bootstrap && reason == REASON_NEW);
    bool again = *unlogged || (before == REASON_SUSPECT && connections->suspect_unlogged[node]);
    bool logged = master.state != LINK_UP;
    if (reason == REASON_NONE) {
        log_event(connections->log, again ? CONFIG_LOG_DEBUG : CONFIG_LOG_INFO, "node_votes",
                  LOG_FIELDS(log_text("node", connections->config->nodes[node].name)));
    } else if (reason == REASON_OTHERSET) {
        log_other_set(connections, node);
        logged = true;
    } else if (reason == REASON_DUPLICATE) {
        log_duplicate(connections, node, CONFIG_LOG_WARNING, "node_without_vote", "meaning");
        logged = true;
    } else if (!expected) {
        logged = log_no_vote(connections, node, before, reason, now_ns) || logged;
    }
    *unlogged = (*unlogged || before == REASON_NONE) && reason != REASON_NONE && !logged;
}

/* --- the quorum --- */

/* A quorum that is missing for less than this is not logged: a slow master can become suspect many
 * times a second. */
#define NO_QUORUM_NS NS_PER_S

static void note_quorum(struct connections *connections, int64_t now_ns)
{
    const struct engine_view view = engine_view(connections->engine);
    if (connections->votes < view.quorum) {
        if (connections->no_quorum_ns == 0)
            connections->no_quorum_ns = now_ns;
        return;
    }
    if (connections->no_quorum_logged)
        log_event(
            connections->log, CONFIG_LOG_INFO, "quorum_reached",
            LOG_FIELDS(log_number("voting", connections->votes), log_number("need", view.quorum),
                       log_number("after_ms", (now_ns - connections->no_quorum_ns) / NS_PER_MS)));
    connections->no_quorum_ns = 0;
    connections->no_quorum_logged = false;
}

void node_log_no_quorum(struct connections *connections)
{
    if (connections->no_quorum_ns == 0 || connections->no_quorum_logged ||
        clock_now_ns() - connections->no_quorum_ns < NO_QUORUM_NS)
        return;
    connections->no_quorum_logged = true;
    log_event(connections->log, CONFIG_LOG_ERROR, "no_quorum",
              LOG_FIELDS(log_number("voting", connections->votes),
                         log_number("need", engine_view(connections->engine).quorum),
                         log_text("meaning", "no lock can be granted or extended until enough "
                                             "masters vote")));
}

/* --- votes --- */

/* Whether a master is listed twice in the configuration. That is an error only at the start. Later,
 * a duplicate means that a name now leads to another server by mistake. That costs a vote but must
 * not stop the service. */
static bool is_duplicate_at_start(const struct connections *connections, enum reason reason,
                                  int64_t now_ns)
{
    return reason == REASON_DUPLICATE && !connections->had_all_votes &&
           now_ns - connections->started_ns < STARTING_NS;
}

void node_log_clock_back(const struct connections *connections, unsigned node, int64_t back_ns)
{
    /* A busy Valkey 9.1 now and then misreads its own clock by less than a millisecond. */
    log_event(
        connections->log, back_ns < NS_PER_MS ? CONFIG_LOG_DEBUG : CONFIG_LOG_WARNING,
        "clock_stepped_back",
        LOG_FIELDS(log_text("node", connections->config->nodes[node].name),
                   log_number("by_ms", (back_ns + NS_PER_MS - 1) / NS_PER_MS),
                   log_text("effect",
                            "its keys expire later, so locks that are not released stay longer")));
}

bool node_log_vote(struct connections *connections, unsigned node, enum reason before,
                   enum reason reason, int64_t now_ns)
{
    connections->votes += reason == REASON_NONE;
    connections->votes -= before == REASON_NONE;
    connections->had_all_votes =
        connections->had_all_votes || connections->votes == connections->config->node_count;
    if (!is_duplicate_at_start(connections, reason, now_ns)) {
        log_vote(connections, node, before, reason, now_ns);
        note_quorum(connections, now_ns);
        return true;
    }
    log_duplicate(connections, node, CONFIG_LOG_ERROR, "start_failed", "why");
    return false;
}

void node_log_refused(const struct connections *connections, unsigned node, enum reason reason,
                      bool release)
{
    log_event(connections->log, CONFIG_LOG_WARNING, "command_refused",
              LOG_FIELDS(
                  log_text("node", connections->config->nodes[node].name),
                  log_text("reason", reason_word(reason)),
                  log_text("meaning", engine_meaning(connections->engine, node, reason)),
                  log_text("effect",
                           release ? "releases on this master take longer"
                                   : "this master does not count in rounds that use the command")));
}
