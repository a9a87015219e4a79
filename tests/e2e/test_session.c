/*
 * One connection: the order of its replies, its tags, its listings and its end.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/limits.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

/* With a majority of masters stopped, a request is pending for about node_timeout, 1 s. */
static const struct stage_plan three = {
    .masters = 3, .over_unix = true, .daemon = {.node_timeout_ms = 1000}};

static struct stage stage;

static void setup(void)
{
    stage_open(&stage, runner_test_name, &three);
}

static void teardown(void)
{
    stage_close(&stage);
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = teardown};

/* --- order and tags --- */

TEST(untagged_requests_are_answered_in_order)
{
    client_send(&stage.client, "PING\nLOCK a 10s\nSTATUS a\nVERSION\nLOCK a 10s\nSTATUS b\nPING\n");
    client_read_match(&stage.client, "PONG");
    client_read_match(&stage.client, "OK .*");
    client_read_match(&stage.client, "HELD .*");
    client_read_match(&stage.client, "VERSION .*");
    client_read_match(&stage.client, "HELD .*");
    client_read_match(&stage.client, "FREE");
    client_read_match(&stage.client, "PONG");
}

TEST(tagged_requests_overtake_untagged_ones)
{
    struct client client;
    stage_stop_masters(&stage, 0, 1);
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "LOCK a 10s\nPING\n#slow LOCK b 10s\n#quick PING\n#bad FLY\n");
    client_read_match(&client, "#quick PONG");
    client_read_match(&client, "#bad ERR unknown-verb .*");
    /* #slow and the first LOCK end together, in any order. The PING waits for the first LOCK. */
    bool first = false;
    for (unsigned i = 0; i < 3; i++) {
        client_read_match(&client, "(#slow )?NOQUORUM .*|PONG");
        ck_assert_msg(client.line[0] != 'P' || first, "PONG overtook the reply before it");
        first = first || client.line[0] == 'N';
    }
    client_close(&client);
}

TEST(a_tag_in_use_is_refused)
{
    struct client client;
    stage_stop_masters(&stage, 0, 1);
    daemon_connect(&stage.daemon, &client);
    client_expect_match(&client, "#t ERR bad-tag .*", "#t LOCK a 10s\n#t PING");
    client_read_match(&client, "#t NOQUORUM .*");
    /* After the reply, the tag can be used again. */
    client_expect(&client, "#t PONG", "#t PING");
    client_close(&client);
}

TEST(a_tag_of_any_allowed_byte_is_returned)
{
    client_expect(&stage.client, "#aZ09_.:- PONG", "#aZ09_.:- PING");
    client_expect(&stage.client, "#12345678901234567890123456789012 FREE",
                  "#12345678901234567890123456789012 STATUS a");
}

TEST(every_line_of_a_tagged_listing_has_the_tag)
{
    const char *line = client_ask(&stage.client, "#n NODES");
    unsigned lines = 0;
    while (strcmp(line, "#n END") != 0) {
        ck_assert_int_eq(strncmp(line, "#n node=", 8), 0);
        lines++;
        line = client_read(&stage.client);
    }
    ck_assert_uint_eq(lines, 3);
}

/* --- pipelines --- */

TEST(a_thousand_pipelined_requests_are_answered_in_order)
{
    enum { PINGS = 500, PING_LEN = 5 };
    char batch[2 * PINGS * PING_LEN + 64];
    size_t len = 0;
    for (unsigned i = 0; i < PINGS; i++)
        len += (size_t)sprintf(batch + len, "PING\n");
    len += (size_t)sprintf(batch + len, "LOCK a 10s\nSTATUS a\n");
    for (unsigned i = 0; i < PINGS; i++)
        len += (size_t)sprintf(batch + len, "PING\n");
    client_send_bytes(&stage.client, batch, len);
    for (unsigned i = 0; i < PINGS; i++)
        client_read_match(&stage.client, "PONG");
    client_read_match(&stage.client, "OK .*");
    client_read_match(&stage.client, "HELD .*");
    for (unsigned i = 0; i < PINGS; i++)
        client_read_match(&stage.client, "PONG");
}

TEST(hundreds_of_tagged_locks_at_once_are_all_granted)
{
    enum { LOCKS = 500 };
    char request[64];
    bool granted[LOCKS] = {false};
    for (unsigned i = 0; i < LOCKS; i++) {
        snprintf(request, sizeof(request), "#%u LOCK r%u 30s\n", i, i);
        client_send(&stage.client, request);
    }
    for (unsigned i = 0; i < LOCKS; i++) {
        unsigned tag;
        client_read_match(&stage.client, "#[0-9]+ OK .*");
        ck_assert_int_eq(sscanf(stage.client.line, "#%u", &tag), 1);
        ck_assert(!granted[tag]);
        granted[tag] = true;
    }
}

static unsigned count_calls(struct master *master, const char *command)
{
    char name[32];
    unsigned calls = 0;
    snprintf(name, sizeof(name), "cmdstat_%s:", command);
    const char *line = strstr(master_text(master, "INFO commandstats"), name);
    ck_assert(line == NULL || sscanf(line + strlen(name), "calls=%u", &calls) == 1);
    return calls;
}

/* A heartbeat also sends INFO and a script, which a test would count. When this returns, the next
 * heartbeat is a second away. */
static void wait_for_heartbeat(struct master *master)
{
    struct waiting waiting = waiting_for("a heartbeat");
    unsigned before = count_calls(master, "evalsha");
    while (count_calls(master, "evalsha") == before)
        waiting_pause(&waiting);
}

/* In a client's first pass, the daemon does not know yet that the client is the only one, so the
 * test sends another LOCK first. After that, the daemon reads all requests in one pass. They form
 * one batch, which one probe on each master follows. The test counts the INFO of the probes. */
TEST(a_single_client_has_a_larger_read_budget)
{
    char batch[LIMIT_READ_BUDGET_ALONE * 32];
    size_t len = 0;
    for (unsigned i = 0; i < LIMIT_READ_BUDGET_ALONE; i++)
        len += (size_t)sprintf(batch + len, "#%u LOCK r%u 30s\n", i, i);
    client_lock(&stage.client, "a", "30s");
    wait_for_heartbeat(&stage.masters[0]);
    unsigned before = count_calls(&stage.masters[0], "info");
    client_send_bytes(&stage.client, batch, len);
    for (unsigned i = 0; i < LIMIT_READ_BUDGET_ALONE; i++)
        client_read_match(&stage.client, "#[0-9]+ OK .*");
    /* At most three INFO: that of count_calls(), that of a heartbeat, and the probe after the
     * votes. */
    ck_assert_uint_le(count_calls(&stage.masters[0], "info") - before, 3);
}

static unsigned scripts_run(struct master *master)
{
    return count_calls(master, "evalsha");
}

TEST(batched_unlocks_have_separate_outcomes)
{
    enum { LOCKS = 8 };
    char batch[LOCKS * 64];
    size_t len = 0;
    for (unsigned i = 0; i < LOCKS; i++) {
        char resource[4] = {'r', (char)('0' + i), '\0'};
        struct grant grant = client_lock(&stage.client, resource, "10s");
        len += (size_t)sprintf(batch + len, "#%u UNLOCK %s %s\n", i, resource, grant.token);
    }
    masters_run(stage.masters, 3, "DEL redlock:r1 redlock:r2 redlock:r3");
    masters_run(stage.masters, 3, "LPUSH redlock:r2 item");
    masters_run(stage.masters, 3,
                "SET redlock:r3 0123456789abcdef0123456789abcdef01234567 PX 3600000");
    wait_for_heartbeat(&stage.masters[0]);
    unsigned before = scripts_run(&stage.masters[0]);
    client_send_bytes(&stage.client, batch, len);
    for (unsigned i = 0; i < LOCKS; i++) {
        unsigned tag;
        char outcome[8];
        client_read(&stage.client);
        ck_assert_int_eq(sscanf(stage.client.line, "#%u %7s", &tag, outcome), 2);
        ck_assert_str_eq(outcome, tag >= 1 && tag <= 3 ? "GONE" : "OK");
    }
    /* Three scripts run on this master: one for the batch, one for the key with the list, and one
     * for the key with the foreign token. The last two can arrive after the replies to the client.
     * The last one also shortens the TTL of its key to max_ttl, a minute. */
    struct waiting waiting = waiting_for("the separate releases");
    while (scripts_run(&stage.masters[0]) - before < 3)
        waiting_pause(&waiting);
    ck_assert_uint_eq(scripts_run(&stage.masters[0]) - before, 3);
    ck_assert_str_eq(master_text(&stage.masters[0], "TYPE redlock:r2"), "list");
    ck_assert_int_le(master_integer(&stage.masters[0], "PTTL redlock:r3"), 60000);
    ck_assert_int_gt(master_integer(&stage.masters[0], "PTTL redlock:r3"), 0);
}

/* The masters refuse EXISTS, by which the script distinguishes absent keys from foreign ones. If
 * the script deleted keys before the error, the daemon would report them as GONE when it releases
 * them one by one. */
TEST(batched_unlocks_have_their_outcomes_if_masters_refuse_the_batch)
{
    char batch[128];
    char outcomes[2][8];
    struct grant held = client_lock(&stage.client, "held", "10s");
    struct grant expired = client_lock(&stage.client, "expired", "10s");
    masters_run(stage.masters, 3, "DEL redlock:expired");
    masters_run(stage.masters, 3, "ACL SETUSER default -exists");
    int len = snprintf(batch, sizeof(batch), "#0 UNLOCK held %s\n#1 UNLOCK expired %s\n",
                       held.token, expired.token);
    client_send_bytes(&stage.client, batch, (size_t)len);
    for (unsigned i = 0; i < 2; i++) {
        unsigned tag;
        char outcome[8];
        client_read(&stage.client);
        ck_assert_int_eq(sscanf(stage.client.line, "#%u %7s", &tag, outcome), 2);
        ck_assert_uint_lt(tag, 2);
        memcpy(outcomes[tag], outcome, sizeof(outcome));
    }
    ck_assert_str_eq(outcomes[0], "OK");
    ck_assert_str_eq(outcomes[1], "GONE");
    masters_run(stage.masters, 3, "ACL SETUSER default +exists");
}

/* The client sends more than the daemon keeps as pending input. The daemon stops reading, but no
 * line is lost. */
TEST(pending_input_is_limited_but_not_lost)
{
    enum { REQUESTS = 3000 };
    for (unsigned i = 0; i < REQUESTS; i++)
        client_send(&stage.client, "STATUS a-name-that-is-not-quite-short\n");
    for (unsigned i = 0; i < REQUESTS; i++)
        client_read_match(&stage.client, "FREE");
}

/* --- listings --- */

TEST(every_listing_ends_with_end)
{
    ck_assert_uint_eq(client_count(&stage.client, "NODES", "node="), 3);
    ck_assert_uint_eq(client_count(&stage.client, "NODES", "vote=yes"), 3);
    ck_assert_uint_ge(client_count(&stage.client, "STATS", "="), 1);
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", "client="), 1);
    ck_assert_uint_ge(client_count(&stage.client, "HELP", "LOCK"), 1);
    client_expect(&stage.client, "PONG", "PING");
}

TEST(stats_count_outcomes)
{
    client_lock(&stage.client, "a", "10s");
    client_expect_match(&stage.client, "HELD .*", "LOCK a 10s");
    ck_assert_uint_eq(client_count(&stage.client, "STATS", "subject=lock ok=1 "), 1);
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " held=1 "), 1);
}

TEST(the_name_is_shown_in_clients)
{
    struct client other;
    daemon_connect(&stage.daemon, &other);
    client_expect(&stage.client, "OK", "NAME deploy-7");
    ck_assert_uint_eq(client_count(&other, "CLIENTS", "client="), 2);
    ck_assert_uint_eq(client_count(&other, "CLIENTS", "name=deploy-7"), 1);
    client_close(&other);
}

TEST(version_names_protocol_and_program)
{
    client_expect(&stage.client, "VERSION 1 redlockd/" REDLOCKD_VERSION, "VERSION");
}

TEST(quit_says_bye_and_closes)
{
    struct client client;
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "PING\nQUIT\nPING\n");
    client_read_match(&client, "PONG");
    client_read_match(&client, "BYE");
    client_expect_end(&client);
    client_close(&client);
}

TEST(a_lock_outlives_its_connection)
{
    struct client client;
    daemon_connect(&stage.daemon, &client);
    struct grant grant = client_lock(&client, "a", "30s");
    client_close(&client);
    stage_wait_clients(&stage, 1);
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
}
