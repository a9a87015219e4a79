/*
 * server/admin/status.h: the formats in which a status is written.
 */
#include <string.h>

#include "engine/engine.h"
#include "protocol/units.h"
#include "server/admin/status.h"
#include "tests/runner.h"

static char buf[LIMIT_HTTP_BODY];
static struct status_history history;
static struct engine_stats stats;
static struct status status;

/* Five masters, all of which vote. */
static void begin(void)
{
    static const char *const names[LIMIT_NODES] = {"a", "b", "c", "d", "e"};
    status_history_init(&history, 1);
    stats = (struct engine_stats){0};
    status = (struct status){.cluster = "main",
                             .version = "0",
                             .engine = {.node_count = 5, .quorum = 3, .stats = &stats},
                             .voting = 5,
                             .back_ms = -1,
                             .clients_max = 10,
                             .history = &history};
    for (unsigned i = 0; i < 5; i++)
        status.nodes[i] = (struct status_node){.name = names[i],
                                               .url = "redis://10.0.0.1:6379",
                                               .state = LINK_UP,
                                               .round_trip_us = 420,
                                               .back_ms = -1};
}

const struct runner_settings runner_settings = {.setup = begin};

static void without_vote(unsigned node, enum reason reason, int64_t back_ms)
{
    status.nodes[node].reason = reason;
    status.nodes[node].back_ms = back_ms;
    status.nodes[node].no_vote_ns = 12 * NS_PER_S;
    status.voting--;
}

static const char *write_with(void (*write)(const struct status *status, struct text *text))
{
    struct text text = {.buf = buf, .size = sizeof(buf) - 1};
    write(&status, &text);
    ck_assert_uint_lt(text.len, text.size);
    buf[text.len] = '\0';
    return buf;
}

static void expect_shown(const char *words)
{
    const char *page = write_with(page_write_live);
    ck_assert_msg(strstr(page, words) != NULL, "\"%s\" is not in: %s", words, page);
}

static void expect_not_shown(const char *words)
{
    const char *page = write_with(page_write_live);
    ck_assert_msg(strstr(page, words) == NULL, "\"%s\" is in: %s", words, page);
}

/* --- the headline --- */

TEST(healthy_status_shows_no_problems)
{
    expect_shown("<main class=ok data-title=\"OK ");
    expect_shown("<h1>Locks can be granted</h1>");
    expect_shown("All 5 masters vote; 3 are needed, so 2 may fail.");
    expect_shown("No clients are waiting.");
    expect_shown("None since the start.");
    expect_not_shown("no vote");
}

TEST(master_without_a_vote_is_shown_with_reason_and_time)
{
    without_vote(1, REASON_FLUSHED, 48000);
    expect_shown("<main class=degraded ");
    expect_shown("Locks can be granted, but 1 master has no vote");
    expect_shown("4 of 5 masters vote; 3 are needed, so 1 more may fail.");
    expect_shown("the master lost its record: it was flushed <code>flushed</code>");
    expect_shown("Has had no vote for 12 s; votes again in 48 s.");
}

TEST(page_warns_when_one_more_failure_loses_the_quorum)
{
    without_vote(1, REASON_HUNG, -1);
    without_vote(2, REASON_HUNG, -1);
    status.nodes[2].pending_releases = 1;
    expect_shown("but 2 masters have no vote");
    expect_shown("If one more fails, no lock can be granted.");
    expect_shown("Has had no vote for 12 s.");
    expect_shown("Has had no vote for 12 s; 1 release pending.");
}

TEST(missing_quorum_is_the_headline)
{
    for (unsigned i = 0; i < 3; i++)
        without_vote(i, REASON_RESTARTED, 20000);
    status.back_ms = 20000;
    expect_shown("<main class=down data-title=\"DOWN ");
    expect_shown("<h1>No locks can be granted</h1>");
    expect_shown("Only 2 of 5 masters vote; 3 are needed. Quorum expected in 20 s.");
    status.back_ms = -1;
    expect_not_shown("Quorum expected");
    without_vote(3, REASON_REFUSED, -1);
    expect_shown("Only 1 of 5 masters votes;");
    without_vote(4, REASON_REFUSED, -1);
    expect_shown("None of the 5 masters votes;");
}

TEST(stopping_daemon_is_shown)
{
    status.stopping = true;
    expect_shown("<main class=down ");
    expect_shown("Stopping: no locks are granted");
}

TEST(refused_reload_is_shown)
{
    expect_not_shown("reload");
    ck_assert_ptr_nonnull(strstr(write_with(status_write_json), "\"reload_refused\":false"));
    status.reload_refused = true;
    expect_shown("The last reload of the configuration was refused");
    ck_assert_ptr_nonnull(strstr(write_with(status_write_json), "\"reload_refused\":true"));
}

/* --- untrusted names --- */

TEST(hostile_names_are_shown_as_text)
{
    static const char name[] = "</td><script>alert(1)</script>";
    struct status_lock *queue = &status.queues[0];
    status.queue_count = 1;
    status.engine.waited_for = 1;
    queue->resource = (struct resource_view){.name = name,
                                             .name_len = sizeof(name) - 1,
                                             .waits = 3,
                                             .locked = true,
                                             .client = "",
                                             .client_id = 7};
    status_history_on_lost(&history, name, sizeof(name) - 1, "job.1", LOSS_NOQUORUM, 1);
    expect_shown("&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;</td>");
    expect_not_shown("<script");
    expect_shown("client 7");
    expect_shown("too few masters voted for its extension <code>noquorum</code>");
    const char *json = write_with(status_write_json);
    ck_assert_ptr_nonnull(strstr(json,
                                 "{\"resource\":\"</td><script>alert(1)</script>\",\"waiters\""
                                 ":3,\"client\":7,\"name\":\"\""));
}

TEST(queue_for_slots_shows_how_many_are_held)
{
    status.queue_count = 1;
    status.engine.waited_for = 1;
    status.queues[0].resource = (struct resource_view){
        .name = "deploys", .name_len = 7, .waits = 3, .slots = 10, .slots_held = 9};
    expect_shown("deploys</td>");
    expect_shown("<td>9 of 10 slots</td>");
    const char *json = write_with(status_write_json);
    ck_assert_ptr_nonnull(
        strstr(json, "{\"resource\":\"deploys\",\"waiters\":3,\"slots\":10,\"slots_held\":9}"));
}

TEST(json_encodes_any_bytes)
{
    status.queue_count = 1;
    status.queues[0].resource =
        (struct resource_view){.name = "\"\\\n\xff", .name_len = 4, .waits = 1};
    ck_assert_ptr_nonnull(strstr(write_with(status_write_json), "\"\\\"\\\\x5c\\\\x0a\\\\xff\""));
}

TEST(long_name_is_truncated_only_on_the_page)
{
    char resource[LIMIT_RESOURCE];
    memset(resource, 'n', sizeof(resource));
    status.queue_count = 1;
    status.queues[0].resource =
        (struct resource_view){.name = resource, .name_len = sizeof(resource), .waits = 1};
    expect_shown("nnn...</td>");
    ck_assert_ptr_null(strstr(write_with(status_write_json), "nnn..."));
}

/* --- plots --- */

TEST(history_has_one_rectangle_per_stretch)
{
    static const unsigned voting[] = {5, 5, 4, 2, 2, 5};
    for (size_t i = 0; i < 6; i++)
        status_history_take(&history, &(struct status_history_sample){.voting = voting[i]});
    expect_shown(
        "<rect class=none x=0 width=294 height=8 /><rect class=ok x=294 width=2 height=8 />"
        "<rect class=degraded x=296 width=1 height=8 /><rect class=down x=297 width=2 height=8 />"
        "<rect class=ok x=299 width=1 height=8 /></svg>");
}

TEST(plot_has_a_gap_where_the_master_did_not_answer)
{
    for (unsigned i = 0; i < STATUS_HISTORY_SAMPLES; i++) {
        struct status_history_sample sample = {.voting = 5};
        sample.round_trip_us[0] = i < 6 || i >= 9 ? 2000 : -1;
        status_history_take(&history, &sample);
    }
    expect_shown("0 to 2&nbsp;ms");
    expect_shown(
        "<rect class=gap x=2 width=1 height=24 /><path d=\"M0.5 1.0L1.5 1.0M3.5 1.0L4.5 1.0");
}

/* Fifteen masters with the longest names and no votes, with every list full. */
TEST(largest_page_fits_its_buffer)
{
    static char name[LIMIT_NODE_NAME + 1];
    static char url[LIMIT_URL];
    char resource[LIMIT_RESOURCE];
    memset(name, 'n', LIMIT_NODE_NAME);
    memset(url, '&', LIMIT_URL - 1);
    memset(resource, '"', sizeof(resource));
    status.engine.node_count = LIMIT_NODES;
    status.voting = 0;
    for (unsigned i = 0; i < LIMIT_NODES; i++)
        status.nodes[i] = (struct status_node){.name = name,
                                               .url = url,
                                               .reason = REASON_OWN_CLOCK,
                                               .back_ms = 1,
                                               .pending_releases = 99999};
    for (unsigned i = 0; i < STATUS_HISTORY_SAMPLES; i++) {
        struct status_history_sample sample = {.voting = i % 2 == 0 ? 15 : 0};
        for (unsigned k = 0; k < LIMIT_NODES; k++)
            sample.round_trip_us[k] = i / 3 % 2 == 0 ? INT32_MAX : -1;
        status_history_take(&history, &sample);
    }
    for (unsigned i = 0; i < STATUS_HISTORY_LOSSES; i++)
        status_history_on_lost(&history, resource, sizeof(resource), name, 0, 1);
    status.queue_count = STATUS_QUEUES;
    for (unsigned i = 0; i < STATUS_QUEUES; i++)
        status.queues[i].resource =
            (struct resource_view){.name = resource, .name_len = sizeof(resource), .waits = 1};
    ck_assert_uint_lt(strlen(write_with(page_write_live)), LIMIT_HTTP_BODY / 2);
    ck_assert_uint_lt(strlen(write_with(status_write_json)), LIMIT_HTTP_BODY / 2);
}

/* --- the whole page, and other formats --- */

TEST(page_has_its_nonce_and_its_live_part)
{
    struct text text = {.buf = buf, .size = sizeof(buf) - 1};
    status.nonce = "0123abc";
    page_write(&status, &text);
    buf[text.len] = '\0';
    ck_assert_ptr_nonnull(strstr(buf, "<style nonce=\"0123abc\">"));
    ck_assert_ptr_nonnull(strstr(buf, "<script nonce=\"0123abc\">"));
    ck_assert_ptr_nonnull(strstr(buf, "<div id=live><main class=ok"));
    ck_assert_ptr_null(strstr(buf, "{{"));
    ck_assert_ptr_null(strstr(buf, "style=\""));
    ck_assert_ptr_null(strstr(buf, "onclick"));
    ck_assert_str_eq(buf + text.len - 8, "</html>\n");
}

TEST(ready_lists_nodes_without_a_vote_and_the_reason)
{
    ck_assert_str_eq(write_with(status_write_ready), "ready voting=5/5 need=3\n");
    ck_assert(status_is_ready(&status));
    without_vote(1, REASON_HUNG, -1);
    ck_assert_str_eq(
        write_with(status_write_ready),
        "ready voting=4/5 need=3\nnode=b vote=no reason=hung for_ms=-1 (connected, but "
        "the master has not answered for a long time)\n");
    without_vote(2, REASON_HUNG, -1);
    ck_assert(status_is_ready(&status));
    without_vote(3, REASON_NEW, 60000);
    ck_assert(!status_is_ready(&status));
    ck_assert_int_eq(strncmp(write_with(status_write_ready), "not ready voting=2/5 need=3\n", 28),
                     0);
    begin();
    status.stopping = true;
    ck_assert(!status_is_ready(&status));
    ck_assert_str_eq(write_with(status_write_ready), "stopping voting=5/5 need=3\n");
}

static struct row begin_row(void)
{
    return (struct row){.text = {.buf = buf, .size = sizeof(buf) - 1}};
}

static const char *line_of(const struct status_lock *lock)
{
    struct row row = begin_row();
    if (lock != NULL)
        status_write_lock(lock, &row);
    else
        status_write_node(&status.nodes[1], &row);
    buf[row.text.len] = '\0';
    return buf;
}

TEST(nodes_line_agrees_with_the_page)
{
    ck_assert_str_eq(line_of(NULL),
                     "node=b url=redis://10.0.0.1:6379 state=up vote=yes reason=- "
                     "for_ms=-1 since_ms=0 rtt_us=420 unanswered=0 pending_releases=0 "
                     "tracking=no");
    without_vote(1, REASON_FLUSHED, 48000);
    status.nodes[1].tracking = true;
    status.nodes[1].unanswered = 2;
    ck_assert_str_eq(line_of(NULL), "node=b url=redis://10.0.0.1:6379 state=up vote=no "
                                    "reason=flushed for_ms=48000 since_ms=0 rtt_us=420 "
                                    "unanswered=2 pending_releases=0 tracking=yes");
}

TEST(locks_line_names_the_holder)
{
    struct status_lock lock = {.resource = {.name = "deploy!", .name_len = 6, .queued = 2},
                               .place = 1};
    ck_assert_str_eq(line_of(&lock), "resource=deploy token=- client=- name=- since_ms=-1 "
                                     "left_ms=-1 hold=no waiters=2 place=1 slots=-");
    lock = (struct status_lock){.resource = {.name = "deploy!",
                                             .name_len = 6,
                                             .locked = true,
                                             .hold = true,
                                             .token = "0123456789abcdef0123456789abcdef01234567",
                                             .client = "",
                                             .client_id = 7},
                                .held_ms = 5,
                                .left_ms = 6};
    ck_assert_str_eq(line_of(&lock), "resource=deploy token=01234567 client=7 name=- since_ms=5 "
                                     "left_ms=6 hold=yes waiters=0 place=- slots=-");
    lock = (struct status_lock){
        .resource = {.name = "deploy!", .name_len = 6, .queued = 4, .slots = 10, .slots_held = 9}};
    ck_assert_str_eq(line_of(&lock), "resource=deploy token=- client=- name=- since_ms=-1 "
                                     "left_ms=-1 hold=no waiters=4 place=- slots=9/10");
}

static const char *stats_line(bool unlocks)
{
    struct row row = begin_row();
    if (unlocks)
        status_write_outcomes(&status, ROUND_RELEASE, &row);
    else
        status_write_daemon(&status, &row);
    buf[row.text.len] = '\0';
    return buf;
}

TEST(stats_lines_count_requests_and_outcomes)
{
    stats.outcomes[ROUND_RELEASE][OUTCOME_GONE] = 3;
    status.pid = 7;
    status.uptime_ns = 5 * NS_PER_S;
    stats.handovers = 2;
    ck_assert_str_eq(stats_line(true), "subject=unlock ok=0 gone=3 held=0 free=0 "
                                       "noquorum=0 late=0 limit=0 shutdown=0 outbid=0");
    ck_assert_str_eq(stats_line(false),
                     "subject=daemon version=0 pid=7 uptime_ms=5000 clients=0 rounds=0 "
                     "undone=0 backfilled=0 releases_deferred=0 waiting=0 holding=0 locks=0 "
                     "acquire_rounds=0 handovers=2 "
                     "key_probes=0 renewals=0 lost=0 unauthenticated=0 wrong_secrets=0 broken=0 "
                     "held_back=0 rounds_limit=0 busy=0");
}

TEST(metrics_agree_with_the_page)
{
    static const struct process process = {.open = 12};
    status.process = &process;
    without_vote(1, REASON_FLUSHED, 48000);
    const char *metrics = write_with(metrics_write);
    ck_assert_ptr_nonnull(strstr(metrics, "\nredlockd_node_vote{node=\"a\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(metrics, "\nredlockd_node_vote{node=\"b\"} 0\n"));
    ck_assert_ptr_nonnull(
        strstr(metrics, "\nredlockd_node_vote_refused{node=\"b\",reason=\"flushed\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(metrics, "\nredlockd_node_without_vote_seconds{node=\"b\"} 12\n"));
    ck_assert_ptr_nonnull(strstr(metrics, "\nredlockd_nodes_voting 4\n"));
    ck_assert_ptr_nonnull(strstr(metrics, "\nredlockd_ready 1\n"));
    ck_assert_ptr_nonnull(strstr(metrics, "\nprocess_open_fds 12\n"));
}

TEST(systemd_status_fits_on_one_line)
{
    without_vote(1, REASON_FLUSHED, 48000);
    ck_assert_str_eq(write_with(status_write_short), "4/5 voting, 0 locks");
    status.engine.locks = 1;
    status.reload_refused = true;
    ck_assert_str_eq(write_with(status_write_short),
                     "4/5 voting, 1 lock; the last reload was refused");
}
