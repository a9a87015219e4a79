#include "server/admin/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "page_template.h"
#include "protocol/units.h"
#include "server/admin/html.h"

/* A plot has a column for every three samples. */
enum {
    SAMPLES_A_COLUMN = 3,
    COLUMNS = STATUS_HISTORY_SAMPLES / SAMPLES_A_COLUMN,
    PLOT_HEIGHT = 24
};

/* How many bytes of a URL or of a resource name the page shows at most. */
enum { NAME_SHOWN = 80 };

/* The overall health. HEALTH_UNKNOWN is only for the history, in a second without a sample. */
enum health { HEALTH_OK, HEALTH_DEGRADED, HEALTH_DOWN, HEALTH_UNKNOWN, HEALTHS };

/* Class names in the style sheet of page.html. Its script also picks the icon's colour by them. */
static const char *const health_classes[HEALTHS] = {"ok", "degraded", "down", "none"};

static enum health health_by(const struct status *status, unsigned voting)
{
    if (voting < status->engine.quorum)
        return HEALTH_DOWN;
    return voting == status->engine.node_count ? HEALTH_OK : HEALTH_DEGRADED;
}

static enum health health_of(const struct status *status)
{
    return status->stopping ? HEALTH_DOWN : health_by(status, status->voting);
}

/* The health of sample `index`, counted from the oldest. */
static enum health health_at(const struct status *status, unsigned index)
{
    const struct status_history_sample *sample =
        status_history_ago(status->history, STATUS_HISTORY_SAMPLES - 1 - index);
    return sample != NULL ? health_by(status, sample->voting) : HEALTH_UNKNOWN;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* --- headline --- */

static void write_headline(const struct status *status, struct text *text)
{
    unsigned without = status->engine.node_count - status->voting;
    if (status->stopping)
        text_string(text, "Stopping: no locks are granted");
    else if (!status_is_ready(status))
        text_string(text, "No locks can be granted");
    else if (without == 0)
        text_string(text, "Locks can be granted");
    else
        text_format(text, "Locks can be granted, but %u master%s no vote", without,
                    without == 1 ? " has" : "s have");
}

static void write_reserve(const struct status *status, struct text *text)
{
    unsigned reserve = status->voting - status->engine.quorum;
    if (status->voting == status->engine.node_count)
        text_format(text, "All %u masters vote", status->engine.node_count);
    else
        text_format(text, "%u of %u masters vote", status->voting, status->engine.node_count);
    text_format(text, "; %u are needed", status->engine.quorum);
    if (reserve == 0)
        text_string(text, ". If one more fails, no lock can be granted.");
    else
        text_format(text, ", so %u%s may fail.", reserve,
                    status->voting == status->engine.node_count ? "" : " more");
}

static void write_shortage(const struct status *status, struct text *text)
{
    if (status->voting == 0)
        text_format(text, "None of the %u masters votes", status->engine.node_count);
    else
        text_format(text, "Only %u of %u masters vote%s", status->voting, status->engine.node_count,
                    status->voting == 1 ? "s" : "");
    text_format(text, "; %u are needed. ", status->engine.quorum);
    if (status->back_ms >= 0) {
        text_string(text, "Quorum expected in ");
        html_duration(text, status->back_ms);
        text_string(text, ". ");
    }
    text_string(text, "Locks held now cannot be extended and will expire when their TTL ends.");
}

/* The health over time: one rectangle for each stretch of equal health. */
static void write_history(const struct status *status, struct text *text)
{
    enum health health = health_at(status, 0);
    unsigned begin = 0;
    text_format(text,
                "<svg class=history viewBox=\"0 0 %d 8\" preserveAspectRatio=none role=img "
                "aria-label=\"Whether locks could be granted in the last five minutes\">",
                STATUS_HISTORY_SAMPLES);
    for (unsigned i = 1; i <= STATUS_HISTORY_SAMPLES; i++) {
        enum health next = i < STATUS_HISTORY_SAMPLES ? health_at(status, i) : HEALTHS;
        if (next == health)
            continue;
        text_format(text, "<rect class=%s x=%u width=%u height=8 />", health_classes[health], begin,
                    i - begin);
        health = next;
        begin = i;
    }
    text_string(text, "</svg>");
}

static void write_summary(const struct status *status, struct text *text)
{
    static const char *const marks[] = {[HEALTH_OK] = "M6 13l4.5 4.5L19 8",
                                        [HEALTH_DEGRADED] = "M12.5 6v8m0 4v.5",
                                        [HEALTH_DOWN] = "M7 7l11 11M18 7L7 18"};
    text_format(text,
                "<section class=verdict><svg class=mark viewBox=\"0 0 25 25\" aria-hidden=true>"
                "<circle cx=12.5 cy=12.5 r=12 /><path d=\"%s\" /></svg><div><h1>",
                marks[health_of(status)]);
    write_headline(status, text);
    text_string(text, "</h1><p>");
    if (status->stopping)
        text_string(text, "The daemon is shutting down. Locks without HOLD remain on the masters.");
    else if (status_is_ready(status))
        write_reserve(status, text);
    else
        write_shortage(status, text);
    if (status->reload_refused)
        text_string(text, " The last reload of the configuration was refused; see the log.");
    text_string(text, "</p></div>");
    write_history(status, text);
    text_string(text, "<p class=axis><span>5 min ago</span><span>now</span></p></section>");
}

/* --- figures --- */

static void write_figure(struct text *text, const char *name, const char *value, const char *note)
{
    text_format(text, "<div><dt>%s</dt><dd>%s <small>%s</small></dd></div>", name, value, note);
}

static void write_figures(const struct status *status, struct text *text)
{
    char value[32];
    char note[64];
    text_string(text, "<dl class=figures>");
    snprintf(value, sizeof(value), status->grants_a_second < 10 ? "%.1f" : "%.0f",
             status->grants_a_second);
    write_figure(text, "Granted", value, "per second");
    snprintf(value, sizeof(value), "%zu", status->engine.waiting);
    snprintf(note, sizeof(note), "for %zu resource%s", status->engine.waited_for,
             plural(status->engine.waited_for));
    write_figure(text, "Waiting", value, status->engine.waiting > 0 ? note : "no clients");
    snprintf(value, sizeof(value), "%zu", status->engine.holds);
    write_figure(text, "Held", value, "with HOLD");
    snprintf(value, sizeof(value), "%zu", status->clients);
    snprintf(note, sizeof(note), "of %zu", status->clients_max);
    write_figure(text, "Clients", value, note);
    text_string(text, "</dl>");
}

/* --- masters --- */

/* The longest round trip in one column; -1 if the node was not UP in one of its samples, -2 if
 * there is no sample. */
static int32_t column_us(const struct status_history *history, unsigned node, unsigned column)
{
    int32_t worst = -2;
    for (unsigned i = 0; i < SAMPLES_A_COLUMN; i++) {
        const struct status_history_sample *sample = status_history_ago(
            history, STATUS_HISTORY_SAMPLES - 1 - (column * SAMPLES_A_COLUMN + i));
        if (sample == NULL)
            continue;
        if (sample->round_trip_us[node] < 0)
            return -1;
        if (sample->round_trip_us[node] > worst)
            worst = sample->round_trip_us[node];
    }
    return worst;
}

/* The top of the scale of all plots: 1, 2, 5, 10 ... 500 ms, or the longest round trip if that is
 * longer. All masters have the same scale, so that their plots can be compared. */
static int32_t scale_us(const struct status *status)
{
    static const int32_t steps[] = {1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};
    int32_t worst = 0;
    size_t step = 0;
    for (unsigned i = 0; i < status->engine.node_count; i++)
        for (unsigned column = 0; column < COLUMNS; column++) {
            int32_t us = column_us(status->history, i, column);
            worst = us > worst ? us : worst;
        }
    while (step < sizeof(steps) / sizeof(steps[0]) && steps[step] < worst)
        step++;
    return step < sizeof(steps) / sizeof(steps[0]) ? steps[step] : worst;
}

static void write_plot(const struct status *status, unsigned node, int32_t scale, struct text *text)
{
    bool drawing = false;
    text_format(text,
                "<svg class=plot viewBox=\"0 0 %d %d\" preserveAspectRatio=none role=img "
                "aria-label=\"Round trips of the last five minutes\">",
                COLUMNS, PLOT_HEIGHT);
    for (unsigned column = 0; column < COLUMNS; column++)
        if (column_us(status->history, node, column) == -1)
            text_format(text, "<rect class=gap x=%u width=1 height=%d />", column, PLOT_HEIGHT);
    text_string(text, "<path d=\"");
    for (unsigned column = 0; column < COLUMNS; column++) {
        int32_t us = column_us(status->history, node, column);
        if (us >= 0)
            text_format(text, "%s%u.5 %.1f", drawing ? "L" : "M", column,
                        PLOT_HEIGHT - 1 - (double)us / scale * (PLOT_HEIGHT - 2));
        drawing = us >= 0;
    }
    text_string(text, "\" /></svg>");
}

static void write_round_trip(struct text *text, int64_t us)
{
    if (us < 0)
        text_string(text, "&ndash;");
    else
        text_format(text, us < 10000 ? "%.2f ms" : "%.0f ms", (double)us / 1000);
}

/* Such as "the master lost its record: it was flushed. Has had no vote for 12 s; votes again in 48
 * s." */
static void write_why(const struct status_node *node, struct text *text)
{
    if (node->reason == REASON_NONE)
        return;
    text_string(text, "<p class=why>");
    html_string(text, reason_text(node->reason));
    text_format(text, " <code>%s</code></p><p class=when>Has had no vote for ",
                reason_word(node->reason));
    html_duration(text, node->no_vote_ns / NS_PER_MS);
    if (node->back_ms >= 0) {
        text_string(text, "; votes again in ");
        html_duration(text, node->back_ms);
    }
    if (node->pending_releases > 0)
        text_format(text, "; %" PRIu64 " release%s pending", node->pending_releases,
                    plural(node->pending_releases));
    text_string(text, ".</p>");
}

static void write_node(const struct status *status, unsigned index, int32_t scale,
                       struct text *text)
{
    const struct status_node *node = &status->nodes[index];
    bool votes = node->reason == REASON_NONE;
    text_format(text, "<li class=%s><div class=node><b>", votes ? "votes" : "no-vote");
    html_string(text, node->name);
    text_string(text, "</b> <span class=url>");
    html_bytes(text, node->url, strlen(node->url), NAME_SHOWN);
    text_format(
        text,
        "</span></div><div class=vote><span class=pill>%s</span> <span class=state>%s</span></div>",
        votes ? "votes" : "no vote", node->state == LINK_UP ? "" : link_state_word(node->state));
    text_string(text, "<div class=trip>");
    write_round_trip(text, node->round_trip_us);
    text_string(text, "</div>");
    write_plot(status, index, scale, text);
    if (!votes) {
        text_string(text, "<div class=reason>");
        write_why(node, text);
        text_string(text, "</div>");
    }
    text_string(text, "</li>");
}

static void write_nodes(const struct status *status, struct text *text)
{
    int32_t scale = scale_us(status);
    text_format(text,
                "<section><h2>Masters <small>round trips of the last 5 min, 0 to %d&nbsp;ms"
                "</small></h2><ul class=nodes>",
                scale / 1000);
    for (unsigned i = 0; i < status->engine.node_count; i++)
        write_node(status, i, scale, text);
    text_string(text, "</ul></section>");
}

/* --- queues --- */

static void write_holder(const struct status_lock *queue, struct text *text)
{
    const struct resource_view *resource = &queue->resource;
    if (resource->slots > 0)
        text_format(text, "%u of %u slots%s", resource->slots_held, resource->slots,
                    resource->locked ? "; the lock with the same name: " : "");
    if (!resource->locked && resource->slots > 0)
        return;
    if (!resource->locked) {
        text_string(text, resource->acquiring
                              ? "<span class=quiet>being acquired</span>"
                              : "<span class=quiet>not held through this daemon</span>");
        return;
    }
    if (resource->client[0] != '\0')
        html_string(text, resource->client);
    else
        text_format(text, "client %" PRIu64, resource->client_id);
    text_string(text, " <span class=quiet>for ");
    html_duration(text, queue->held_ms);
    if (resource->hold) {
        text_string(text, ", with HOLD");
    } else {
        text_string(text, ", ");
        html_duration(text, queue->left_ms);
        text_string(text, " left");
    }
    text_string(text, "</span>");
}

static void write_queues(const struct status *status, struct text *text)
{
    unsigned most = status->queues[0].resource.waits;
    text_string(text, "<section><h2>Queues ");
    if (status->engine.waited_for > status->queue_count)
        text_format(text, "<small>the longest %u of %zu</small>", status->queue_count,
                    status->engine.waited_for);
    text_string(text, "</h2>");
    if (status->queue_count == 0) {
        text_string(text, "<p class=empty>No clients are waiting.</p></section>");
        return;
    }
    assert(most > 0); /* only queues with waiters are listed, the longest first */
    text_string(text, "<table><thead><tr><th>Resource</th><th>Waiting</th>"
                      "<th>Held by</th></tr></thead><tbody>");
    for (unsigned i = 0; i < status->queue_count; i++) {
        const struct status_lock *queue = &status->queues[i];
        const struct resource_view *resource = &queue->resource;
        text_string(text, "<tr><td class=name>");
        html_bytes(text, resource->name, resource->name_len, NAME_SHOWN);
        text_format(text,
                    "</td><td class=queue><b>%u</b><svg class=bar viewBox=\"0 0 100 8\" "
                    "preserveAspectRatio=none aria-hidden=true><rect width=%u height=8 /></svg>"
                    "</td><td>",
                    resource->waits, 100 * resource->waits / most);
        write_holder(queue, text);
        text_string(text, "</td></tr>");
    }
    text_string(text, "</tbody></table></section>");
}

/* --- losses --- */

/* Write the time of day in UTC. */
static void write_clock(struct text *text, int64_t wall_ns)
{
    unsigned seconds = (unsigned)(wall_ns / NS_PER_S % 86400);
    text_format(text, "%02u:%02u:%02u", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

static void write_losses(const struct status *status, struct text *text)
{
    const struct status_history_loss *loss;
    text_string(
        text, "<section><h2>Lost locks <small>HOLDs that the daemon could not extend</small></h2>");
    if (status_history_loss(status->history, 0) == NULL) {
        text_string(text, "<p class=empty>None since the start.</p></section>");
        return;
    }
    text_string(text, "<table><thead><tr><th>When</th><th>Resource</th><th>Why</th></tr></thead>"
                      "<tbody>");
    for (unsigned i = 0; (loss = status_history_loss(status->history, i)) != NULL; i++) {
        text_string(text, "<tr><td class=time>");
        write_clock(text, loss->wall_ns);
        text_string(text, " <span class=quiet>");
        html_duration(text, max((status->wall_ns - loss->wall_ns) / NS_PER_MS, 0));
        text_string(text, " ago</span></td><td class=name>");
        html_bytes(text, loss->resource, loss->resource_len, NAME_SHOWN);
        if (loss->client[0] != '\0') {
            text_string(text, " <span class=quiet>");
            html_string(text, loss->client);
            text_string(text, "</span>");
        }
        text_string(text, "</td><td>");
        html_string(text, engine_losses[loss->loss].meaning);
        text_format(text, " <code>%s</code></td></tr>", engine_losses[loss->loss].word);
    }
    text_string(text, "</tbody></table></section>");
}

/* --- the page --- */

void page_write_live(const struct status *status, struct text *text)
{
    static const char *const titles[] = {"OK", "!", "DOWN"};
    enum health health = health_of(status);
    text_format(text, "<main class=%s data-title=\"%s", health_classes[health], titles[health]);
    text_string(text, " \xc2\xb7 ");
    html_string(text, status->cluster);
    text_string(text, " \xc2\xb7 redlockd\"><header><b>redlockd</b> <span>");
    html_string(text, status->cluster);
    text_string(text, "</span> <time>");
    write_clock(text, status->wall_ns);
    text_string(text, " UTC</time></header>");
    write_summary(status, text);
    write_figures(status, text);
    write_nodes(status, text);
    write_queues(status, text);
    write_losses(status, text);
    text_format(text, "<footer>Version %s, up ", status->version);
    html_duration(text, status->uptime_ns / NS_PER_MS);
    text_string(
        text,
        ". This page shows one daemon; other daemons on the same masters have their own page.<br>"
        "<a href=metrics>metrics</a> <a href=status.json>status.json</a> "
        "<a href=readyz>readyz</a></footer></main>");
}

void page_write(const struct status *status, struct text *text)
{
    const char *rest = PAGE_TEMPLATE;
    const char *at;
    while ((at = strstr(rest, "{{")) != NULL) {
        text_bytes(text, rest, (size_t)(at - rest));
        if (strncmp(at, "{{nonce}}", 9) == 0)
            text_string(text, status->nonce);
        else if (strncmp(at, "{{cluster}}", 11) == 0)
            html_string(text, status->cluster);
        else
            page_write_live(status, text);
        rest = strstr(at, "}}") + 2;
    }
    text_string(text, rest);
}
