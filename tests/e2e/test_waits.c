/*
 * LOCK ... WAIT on real masters: order, hand-over, wake-up, and the end of a wait.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/redis.h"
#include "tests/e2e/monitor.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan five = {.masters = 5, .over_unix = true};

/* Reads a grant and copies its token. */
static void read_grant(struct client *client, char token[41])
{
    client_read_match(client, "(#[a-z0-9]+ )?OK [0-9a-f]{40} [0-9]+ [0-9]+ (-|[0-9]+)");
    snprintf(token, 41, "%.40s", strstr(client->line, "OK ") + 3);
}

static void open_second(const struct stage *stage, struct daemon *daemon, struct client *client)
{
    stage_start_daemon(stage, daemon, &(struct daemon_plan){.name = "second", .other_host = true});
    daemon_connect(daemon, client);
}

static void close_second(struct daemon *daemon, struct client *client)
{
    client_close(client);
    daemon_stop(daemon);
}

TEST(twenty_waiters_are_granted_in_order_by_one_command_each)
{
    enum { WAITERS = 20 };
    static struct client clients[WAITERS];
    const char *const hands_over[] = {redis_script_sha1(REDIS_SCRIPT_SWAP), NULL};
    struct monitor monitors[5];
    struct stage stage;
    char token[41];
    char waiting_text[32];
    stage_open(&stage, __func__, &five);
    snprintf(token, sizeof(token), "%s", client_lock(&stage.client, "a", "30s").token);
    for (unsigned i = 0; i < WAITERS; i++) {
        daemon_connect(&stage.daemon, &clients[i]);
        client_send(&clients[i], "LOCK a 30s WAIT 60s\n");
        snprintf(waiting_text, sizeof(waiting_text), " waiting=%u ", i + 1);
        stage_wait_stats(&stage.client, waiting_text);
    }
    /* All masters have been probed and now track the key. */
    stage_wait_count(&stage.client, "key_probes", 5);
    for (unsigned i = 0; i < 5; i++)
        monitor_open(&monitors[i], &stage.masters[i]);
    client_expect(&stage.client, "OK", "UNLOCK a %s", token);
    for (unsigned i = 0; i < WAITERS; i++) {
        read_grant(&clients[i], token);
        for (unsigned other = i + 1; other < WAITERS; other++)
            ck_assert(!client_has_line(&clients[other]));
        if (i + 1 < WAITERS)
            client_expect(&clients[i], "OK", "UNLOCK a %s", token);
    }
    for (unsigned i = 0; i < 5; i++) {
        struct monitor_counts counts = monitor_count(&monitors[i], "redlock:a", hands_over);
        /* If the hand-overs take long, a master receives some key probes besides. */
        ck_assert_uint_eq(counts.commands - counts.others, WAITERS);
        ck_assert_uint_lt(counts.others, WAITERS / 2);
        monitor_close(&monitors[i]);
    }
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " handovers=20 "), 1);
    for (unsigned i = 0; i < WAITERS; i++)
        client_close(&clients[i]);
    stage_close(&stage);
}

/* Returns the largest number of commands about the key on one master. */
static unsigned most_commands(struct monitor *monitors)
{
    const char *const nothing[] = {NULL};
    unsigned most = 0;
    for (unsigned i = 0; i < 5; i++) {
        unsigned commands = monitor_count(&monitors[i], "redlock:a", nothing).commands;
        most = commands > most ? commands : most;
    }
    return most;
}

struct remote_wait {
    struct stage stage;
    struct daemon second;
    struct client client; /* client of the second daemon; waits */
    struct monitor monitors[5];
};

/* Acquires the lock through the first daemon, and lets a client of the second daemon wait for it.
 * Counts the commands on the masters from the time when the second daemon has started a round. */
static void open_remote_wait(struct remote_wait *remote_wait, const char *test, const char *lock)
{
    stage_open(&remote_wait->stage, test, &five);
    open_second(&remote_wait->stage, &remote_wait->second, &remote_wait->client);
    client_expect_match(&remote_wait->stage.client, "OK .*", "%s", lock);
    client_send(&remote_wait->client, "#w LOCK a 30s WAIT 60s\n");
    stage_wait_count(&remote_wait->client, "acquire_rounds", 1);
    for (unsigned i = 0; i < 5; i++)
        monitor_open(&remote_wait->monitors[i], &remote_wait->stage.masters[i]);
}

static void close_remote_wait(struct remote_wait *remote_wait)
{
    for (unsigned i = 0; i < 5; i++)
        monitor_close(&remote_wait->monitors[i]);
    close_second(&remote_wait->second, &remote_wait->client);
    stage_close(&remote_wait->stage);
}

static void held_token(const struct client *client, char token[41])
{
    snprintf(token, 41, "%.40s", client->line + 3);
}

/* The limit on the commands that a master receives for one wake-up. Usually there are three: the
 * release, a key probe and the SET. A master that executes the release last can receive a fourth:
 * another probe, or a backfill if the SET came before the release. The limit leaves room for two
 * more. */
enum { RELEASE_COMMANDS = 6 };

TEST(a_release_by_another_daemon_wakes_a_waiter)
{
    struct remote_wait e;
    char token[41];
    open_remote_wait(&e, __func__, "LOCK a 30s");
    held_token(&e.stage.client, token);
    client_expect(&e.stage.client, "OK", "UNLOCK a %s", token);
    read_grant(&e.client, token);
    ck_assert_uint_le(most_commands(e.monitors), RELEASE_COMMANDS);
    close_remote_wait(&e);
}

TEST(a_foreign_release_wakes_a_waiter)
{
    struct remote_wait e;
    char token[41];
    open_remote_wait(&e, __func__, "LOCK a 30s");
    held_token(&e.stage.client, token);
    for (unsigned i = 0; i < 5; i++)
        master_integer(&e.stage.masters[i], "EVAL %s 1 redlock:a %s",
                       "return redis.call('GET',KEYS[1])==ARGV[1]and redis.call('DEL',KEYS[1])",
                       token);
    read_grant(&e.client, token);
    ck_assert_uint_le(most_commands(e.monitors), RELEASE_COMMANDS);
    close_remote_wait(&e);
}

TEST(an_expiry_wakes_a_waiter_without_polling)
{
    struct remote_wait e;
    char token[41];
    open_remote_wait(&e, __func__, "LOCK a 1500ms");
    read_grant(&e.client, token);
    /* The daemon knows when the key expires and then sends a SET, usually the only command. If a
     * master reports the expiry earlier, the daemon also sends a key probe. The limit leaves room
     * for one more command. */
    ck_assert_uint_le(most_commands(e.monitors), 3);
    close_remote_wait(&e);
}

TEST(waiters_recover_from_lost_tracking_messages)
{
    struct remote_wait e;
    char token[41];
    open_remote_wait(&e, __func__, "LOCK a 30s");
    held_token(&e.stage.client, token);
    masters_run(e.stage.masters, 5, "CLIENT KILL TYPE pubsub");
    client_expect(&e.stage.client, "OK", "UNLOCK a %s", token);
    read_grant(&e.client, token);
    close_remote_wait(&e);
}

TEST(masters_without_tracking_are_polled)
{
    struct stage stage;
    struct daemon second;
    struct client client;
    char token[41];
    stage_open(&stage, __func__, &five);
    masters_run(stage.masters, 5, "ACL SETUSER default -client|tracking -client|caching");
    open_second(&stage, &second, &client);
    ck_assert_uint_eq(client_count(&client, "NODES", "tracking=no"), 5);
    snprintf(token, sizeof(token), "%s", client_lock(&stage.client, "a", "30s").token);
    client_send(&client, "#w LOCK a 30s WAIT 60s\n");
    stage_wait_count(&client, "key_probes", 5);
    client_expect(&stage.client, "OK", "UNLOCK a %s", token);
    read_grant(&client, token);
    close_second(&second, &client);
    stage_close(&stage);
}

/* Redis 8 and Valkey 9 remember each key that a script reads, with or without a value, until it
 * changes, but not more than a million (tracking-table-max-keys). Redis 7.0 remembers the keys in
 * KEYS. */
TEST(a_wait_leaves_nothing_in_the_tracking_table)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    masters_run(stage.masters, 5, "SET redlock:a another-library PX 1500");
    client_expect_match(&stage.client, "HELD .*", "LOCK a 1s WAIT 500ms");
    for (unsigned i = 0; i < 5; i++) {
        struct waiting waiting =
            waiting_for("the hints to expire, and the tracking table to be empty");
        while (strstr(master_text(&stage.masters[i], "INFO stats"), "tracking_total_keys:0\r") ==
               NULL) {
            /* Expires the hints; it would take Redis longer. */
            masters_with(&stage.masters[i], 1, "redlockd:waits:redlock:a");
            masters_with(&stage.masters[i], 1, "redlock:a");
            waiting_pause(&waiting);
        }
    }
    stage_close(&stage);
}

TEST(a_waiter_survives_the_restart_of_its_masters)
{
    struct stage stage;
    char token[41];
    stage_open(&stage, __func__,
               &(struct stage_plan){
                   .masters = 3, .over_unix = true, .daemon = {.locks = ", max_ttl: 2s"}});
    masters_run(stage.masters, 3, "SET redlock:a theirs PX 60000");
    client_send(&stage.client, "#w LOCK a 2s WAIT 60s\n");
    stage_wait_count(&stage.client, "acquire_rounds", 1);
    for (unsigned i = 0; i < 3; i++) {
        master_kill(&stage.masters[i]);
        master_restart(&stage.masters[i]);
    }
    read_grant(&stage.client, token);
    stage_close(&stage);
}

TEST(a_wait_that_times_out_returns_held_or_noquorum)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    masters_run(stage.masters, 5, "SET redlock:a theirs PX 60000");
    client_expect_match(&stage.client, "HELD 5[0-9]{4}", "LOCK a 10s WAIT 50ms");
    client_expect_match(&stage.client, "HELD 5[0-9]{4}", "LOCK a 10s WAIT 0");
    for (unsigned i = 0; i < 3; i++)
        master_kill(&stage.masters[i]);
    stage_wait_nodes(&stage, "vote=no", 3);
    client_expect_match(&stage.client, "NOQUORUM 2/5 need=3 .*", "LOCK b 10s WAIT 50ms");
    stage_close(&stage);
}

TEST(waiters_leave_the_queue_with_their_connections)
{
    struct stage stage;
    struct client gone;
    struct client silent;
    char token[41];
    stage_open(&stage, __func__, &five);
    snprintf(token, sizeof(token), "%s", client_lock(&stage.client, "a", "30s").token);
    daemon_connect(&stage.daemon, &gone);
    client_send(&gone, "#1 LOCK a 30s WAIT 60s\n#2 LOCK a 30s WAIT 60s\n");
    stage_wait_stats(&stage.client, " waiting=2 ");
    /* The next client sends so much input that the daemon stops reading from it. Its input_len,
     * which is not needed otherwise, counts the sends. */
    daemon_connect(&stage.daemon, &silent);
    client_send(&silent, "LOCK a 30s WAIT 60s\n");
    stage_wait_stats(&stage.client, " waiting=3 ");
    while (client_try_send(&silent, "PING\nPING\nPING\nPING\nPING\nPING\nPING\nPING\n") &&
           silent.input_len++ < 4000)
        continue;
    silent.input_len = 0;
    client_close(&silent);
    stage_wait_stats(&stage.client, " waiting=2 ");
    client_close(&gone);
    stage_wait_stats(&stage.client, " waiting=0 ");
    client_expect(&stage.client, "OK", "UNLOCK a %s", token);
    client_expect(&stage.client, "FREE", "STATUS a");
    stage_close(&stage);
}

TEST(a_half_closed_connection_leaves_the_queue)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &five);
    masters_run(stage.masters, 5, "SET redlock:a theirs PX 60000");
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "LOCK a 30s WAIT 60s\n");
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_half_close(&client);
    client_read_match(&client, "ERR bad-arguments .*");
    client_expect_end(&client);
    client_close(&client);
    stage_close(&stage);
}

TEST(waiters_get_shutdown_when_the_daemon_stops)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &five);
    masters_run(stage.masters, 5, "SET redlock:a theirs PX 60000");
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "#1 LOCK a 30s WAIT 60s\n#2 LOCK a 30s WAIT 60s\n");
    stage_wait_stats(&stage.client, " waiting=2 ");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    client_read_match(&client, "#[12] SHUTDOWN");
    client_read_match(&client, "#[12] SHUTDOWN");
    client_expect_end(&client);
    client_close(&client);
    stage_close_masters(&stage);
}

TEST(queues_are_limited)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__,
               &(struct stage_plan){
                   .masters = 3,
                   .over_unix = true,
                   .daemon = {.yaml = "limits: {waiters: 3, waiters_per_resource: 2}\n"}});
    masters_run(stage.masters, 3, "SET redlock:a theirs PX 60000");
    masters_run(stage.masters, 3, "SET redlock:b theirs PX 60000");
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "#1 LOCK a 30s WAIT 60s\n#2 LOCK a 30s WAIT 60s\n");
    client_expect(&client, "#3 LIMIT waiters_per_resource", "#3 LOCK a 30s WAIT 60s");
    client_send(&client, "#4 LOCK b 30s WAIT 60s\n");
    client_expect(&client, "#5 LIMIT waiters", "#5 LOCK b 30s WAIT 60s");
    client_expect_match(&client, "#6 HELD [0-9]+", "#6 LOCK b 30s");
    client_expect_match(&client, "#1 ERR bad-tag .*", "#1 PING");
    client_close(&client);
    stage_close(&stage);
}

TEST(locks_lists_holders_and_waiters)
{
    struct stage stage;
    struct client client;
    char pattern[160];
    stage_open(&stage, __func__, &five);
    daemon_connect(&stage.daemon, &client);
    client_expect(&client, "OK", "NAME deployer");
    client_expect_match(&client, "OK .*", "LOCK a 30s HOLD");
    char token[41];
    held_token(&client, token);
    masters_run(stage.masters, 5, "SET redlock:b theirs PX 60000");
    client_send(&client, "#1 LOCK a 30s WAIT 60s\n#2 LOCK b 30s WAIT 60s\n");
    stage_wait_stats(&stage.client, " waiting=2 ");
    client_send(&stage.client, "LOCKS\n");
    snprintf(pattern, sizeof(pattern),
             "resource=a token=%.8s client=[0-9]+ name=deployer since_ms=[0-9]+ "
             "left_ms=[0-9]+ hold=yes waiters=1 place=- slots=-",
             token);
    client_read_match(&stage.client, pattern);
    client_read_match(&stage.client, "resource=b token=- client=- name=- since_ms=-1 left_ms=-1 "
                                     "hold=no waiters=1 place=- slots=-");
    client_read_match(&stage.client, "END");
    client_close(&client);
    stage_wait_stats(&stage.client, " locks=0 ");
    client_expect(&stage.client, "END", "LOCKS");
    stage_close(&stage);
}

/* Reads the line of LOCKS for resource "a", whose lock is foreign. The line must show this number
 * of waiters and this place of the client that sent LOCKS. */
static void read_place(struct client *client, const char *tag, unsigned waiters, const char *place)
{
    char pattern[160];
    snprintf(pattern, sizeof(pattern),
             "#%s resource=a token=- client=- name=- since_ms=-1 left_ms=-1 hold=no waiters=%u "
             "place=%s slots=-",
             tag, waiters, place);
    client_read_match(client, pattern);
}

TEST(a_waiter_can_list_its_place)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &five);
    daemon_connect(&stage.daemon, &client);
    masters_run(stage.masters, 5, "SET redlock:a theirs PX 60000");
    client_expect(&stage.client, "END", "LOCKS a");
    client_expect_match(&stage.client, "OK .*", "LOCK b 30s");
    client_send(&stage.client, "#1 LOCK a 30s WAIT 60s\n");
    stage_wait_stats(&client, " waiting=1 ");
    client_send(&client, "#1 LOCK a 30s WAIT 60s\n#2 LOCK a 30s WAIT 60s\n");
    stage_wait_stats(&client, " waiting=3 ");

    client_send(&client, "#p LOCKS a\n");
    read_place(&client, "p", 3, "2");
    client_read_match(&client, "#p END");
    client_send(&client, "#all LOCKS\n");
    client_read_match(&client, "#all resource=b .* waiters=0 place=- slots=-");
    read_place(&client, "all", 3, "2");
    client_read_match(&client, "#all END");
    client_expect(&client, "END", "LOCKS c");
    client_expect_match(&client, "ERR bad-resource .*", "LOCKS %0257u", 1);

    client_close(&stage.client);
    stage_wait_stats(&client, " waiting=2 ");
    client_send(&client, "#p LOCKS a\n");
    read_place(&client, "p", 2, "1");
    client_read_match(&client, "#p END");
    daemon_connect(&stage.daemon, &stage.client);
    client_send(&stage.client, "#p LOCKS a\n");
    read_place(&stage.client, "p", 2, "-");
    client_read_match(&stage.client, "#p END");
    client_close(&client);
    stage_close(&stage);
}

/* 10,000 waiters on ten connections wait for 1,000 resources, which have foreign locks. On average,
 * a waiter may use 1 KiB of the daemon's memory. */
TEST(ten_thousand_waiters_use_little_memory)
{
    enum { CONNECTIONS = 10, RESOURCES = 1000 };
    static struct client clients[CONNECTIONS];
    struct stage stage;
    char line[80];
    stage_open(&stage, __func__, &five);
    for (unsigned i = 0; i < 5; i++)
        master_text(&stage.masters[i], "EVAL %s 0",
                    "for i=0,999 do redis.call('SET','redlock:r'..i,'theirs','PX',60000) end");
    for (unsigned i = 0; i < CONNECTIONS; i++)
        daemon_connect(&stage.daemon, &clients[i]);
    client_expect(&stage.client, "PONG", "PING");
    long before_kib = process_memory_kib(stage.daemon.pid);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        for (unsigned r = 0; r < RESOURCES; r++) {
            snprintf(line, sizeof(line), "#%u LOCK r%u 30s WAIT 50s\n", r, r);
            client_send(&clients[i], line);
        }
    stage_wait_stats(&stage.client, " waiting=10000 ");
    long grown_kib = process_memory_kib(stage.daemon.pid) - before_kib;
    ck_assert_int_le(grown_kib, 10000);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        client_close(&clients[i]);
    stage_wait_stats(&stage.client, " waiting=0 ");
    stage_close(&stage);
}
