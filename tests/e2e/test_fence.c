/*
 * Fencing tokens on real masters, from two daemons whose wall clocks differ.
 */
#include <stdio.h>
#include <string.h>

#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan five = {.masters = 5, .over_unix = true};

/* Two daemons, the second with another wall clock, and the last fencing token. */
struct pair {
    struct stage stage;
    struct daemon second;
    struct client clients[2];
    int64_t last;
};

static void open_pair(struct pair *pair, const char *test, const struct daemon_plan *first,
                      int64_t ahead_s)
{
    struct stage_plan plan = five;
    plan.daemon = *first;
    /* A long timeout keeps masters from seeming to be down on a busy machine. */
    plan.daemon.node_timeout_ms = 3000;
    struct daemon_plan second = plan.daemon;
    stage_open(&pair->stage, test, &plan);
    second.name = "second";
    second.clock_ahead_s = ahead_s;
    stage_start_daemon(&pair->stage, &pair->second, &second);
    pair->clients[0] = pair->stage.client;
    daemon_connect(&pair->second, &pair->clients[1]);
    pair->last = 0;
}

static void close_pair(struct pair *pair)
{
    client_close(&pair->clients[1]);
    daemon_stop(&pair->second);
    stage_close(&pair->stage);
}

/* Acquires and releases the lock through one daemon. Asks again while the reply begins with
 * `again`. The fencing token must be greater than all before it. */
static void acquire_unless(struct pair *pair, unsigned which, const char *again)
{
    struct client *client = &pair->clients[which];
    struct waiting waiting = waiting_for("a grant");
    char token[41];
    long long fence;
    const char *reply = client_ask(client, "LOCK a 4s FENCE");
    while (strncmp(reply, again, strlen(again)) == 0) {
        waiting_pause(&waiting);
        reply = client_ask(client, "LOCK a 4s FENCE");
    }
    ck_assert_msg(sscanf(reply, "OK %40s %*d %*d %lld", token, &fence) == 2, "%s", reply);
    ck_assert_msg(fence > pair->last, "fence %lld after %lld", fence, (long long)pair->last);
    pair->last = fence;
    client_expect(client, "OK", "UNLOCK a %s", token);
}

/* The daemon answers UNLOCK when a majority has deleted the key, so the next LOCK may find the key
 * on other masters for a moment. */
static void acquire_fenced(struct pair *pair, unsigned which)
{
    acquire_unless(pair, which, "HELD ");
}

TEST(a_fence_is_returned_only_on_request)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    client_expect_match(&stage.client, "OK [0-9a-f]{40} [0-9]+ [0-9]+ [1-9][0-9]{15}",
                        "LOCK a 10s FENCE");
    client_expect_match(&stage.client, "OK [0-9a-f]{40} [0-9]+ [0-9]+ -", "LOCK b 10s");
    stage_wait_key(&stage, "redlockd:fence:redlock:a", 5);
    ck_assert_uint_eq(masters_with(stage.masters, 5, "redlockd:fence:redlock:b"), 0);
    stage_close(&stage);
}

TEST(fence_always_returns_a_fence_without_request)
{
    struct stage stage;
    struct stage_plan plan = five;
    plan.daemon.locks = ", fence: always, fence_ttl: 100s";
    stage_open(&stage, __func__, &plan);
    client_expect_match(&stage.client, "OK [0-9a-f]{40} [0-9]+ [0-9]+ [1-9][0-9]{15}",
                        "LOCK a 10s");
    stage_wait_key(&stage, "redlockd:fence:redlock:a", 5);
    int64_t ttl_ms = master_integer(&stage.masters[0], "PTTL redlockd:fence:redlock:a");
    ck_assert_int_gt(ttl_ms, 60000);
    ck_assert_int_le(ttl_ms, 100000);
    stage_close(&stage);
}

TEST(fences_rise_across_daemons_with_clocks_three_seconds_apart)
{
    struct pair pair;
    open_pair(&pair, __func__, &five.daemon, 3);
    for (unsigned i = 0; i < 10000; i++)
        acquire_fenced(&pair, i % 2);
    close_pair(&pair);
}

TEST(fences_rise_across_daemons_with_clocks_an_hour_apart)
{
    struct pair pair;
    open_pair(&pair, __func__, &five.daemon, -3600);
    for (unsigned i = 0; i < 10000; i++)
        acquire_fenced(&pair, i % 2);
    close_pair(&pair);
}

/* Two masters at a time lose all data, including the ballots, and vote again after max_ttl: a and
 * b, then c and d, then e and a. */
TEST(fences_rise_across_data_loss_of_two_masters_at_a_time)
{
    const struct daemon_plan plan = {.locks = ", max_ttl: 4s"};
    struct pair pair;
    open_pair(&pair, __func__, &plan, 3);
    struct stage *stage = &pair.stage;
    for (unsigned first = 0; first < 5; first += 2) {
        unsigned second = (first + 1) % 5;
        for (unsigned i = 0; i < 500; i++)
            acquire_fenced(&pair, i % 2);
        masters_run(&stage->masters[first], 1, "FLUSHALL");
        masters_run(&stage->masters[second], 1, "FLUSHALL");
        for (unsigned i = 0; i < 100; i++)
            acquire_fenced(&pair, i % 2);
        /* Only master a is flushed twice: the second time is in the last round of this loop. */
        daemon_wait_refused(&stage->daemon, first, "flushed", 1);
        daemon_wait_refused(&stage->daemon, second, "flushed", second < first ? 2 : 1);
        struct waiting waiting = waiting_for("all of them to vote again");
        while (client_count(&pair.clients[0], "NODES", "vote=yes") != 5 ||
               client_count(&pair.clients[1], "NODES", "vote=yes") != 5) {
            acquire_fenced(&pair, 0);
            acquire_fenced(&pair, 1);
            waiting_pause(&waiting);
        }
    }
    close_pair(&pair);
}

static bool all_know_ballot(struct pair *pair)
{
    char last[24];
    bool known = true;
    snprintf(last, sizeof(last), "%lld", (long long)pair->last);
    for (unsigned i = 0; i < 5 && known; i++) {
        const char *ballot = master_text(&pair->stage.masters[i], "GET redlockd:fence:redlock:a");
        known = ballot != NULL && strcmp(ballot, last) == 0;
    }
    return known;
}

/* A quorum of a, b and e stored the last ballot: c and d missed the round. Then a and b lose their
 * data, and e goes down, so every quorum needs a or b, and no voter knows the ballot. The wall
 * clock of the first daemon is three seconds behind the ballot. The fencing token must rise all the
 * same, because a and b have no vote for max_ttl. */
TEST(fences_rise_even_if_no_voter_knows_the_last_one)
{
    const struct daemon_plan plan = {.locks = ", max_ttl: 4s"};
    struct pair pair;
    open_pair(&pair, __func__, &plan, 3);
    struct master *masters = pair.stage.masters;
    acquire_fenced(&pair, 1);
    struct waiting waiting = waiting_for("all masters to know the ballot");
    while (!all_know_ballot(&pair))
        waiting_pause(&waiting);
    masters_run(&masters[2], 2, "DEL redlockd:fence:redlock:a");
    masters_run(&masters[0], 2, "FLUSHALL");
    master_kill(&masters[4]);
    acquire_unless(&pair, 0, "NOQUORUM ");
    close_pair(&pair);
}
