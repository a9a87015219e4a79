/*
 * The counters of the engine (struct engine_stats, links and resources), on fake masters and
 * virtual time.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

const struct runner_settings runner_settings = {.setup = cluster_setup,
                                                .teardown = cluster_teardown};

static uint64_t total(const struct histogram *histogram)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        count += histogram->counts[i];
    return count;
}

static const struct engine_stats *stats(void)
{
    return &w.engine.stats;
}

/* --- durations --- */

TEST(grant_is_timed_from_its_request_and_from_its_round)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "LOCK a 10s")));
    ck_assert_uint_eq(total(&stats()->granted), 1);
    ck_assert_uint_eq(total(&stats()->queued), 0);
    cluster_submit(&w, "LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 4000);
    cluster_send_as(&w, &w.others[0], "#u UNLOCK a %s", token);
    cluster_settle(&w);
    ck_assert_uint_eq(total(&stats()->granted), 2);
    ck_assert_uint_eq(total(&stats()->granted_round), 2);
    ck_assert_uint_eq(total(&stats()->queued), 1);
    ck_assert_uint_ge(stats()->granted.sum_ns, 4 * (uint64_t)NS_PER_S);
    ck_assert_uint_lt(stats()->granted_round.sum_ns, (uint64_t)NS_PER_S);
    ck_assert_uint_ge(stats()->queued.sum_ns, 4 * (uint64_t)NS_PER_S);
}

TEST(failed_wait_is_timed_and_a_refusal_is_not)
{
    cluster_ask(&w, "LOCK a 60s");
    ck_assert_int_eq(strncmp(cluster_ask(&w, "LOCK a 10s"), "HELD", 4), 0);
    ck_assert_uint_eq(total(&stats()->queued), 0);
    cluster_submit(&w, "LOCK a 10s WAIT 2s");
    cluster_pass_ms(&w, 2500);
    ck_assert_uint_eq(total(&stats()->queued), 1);
    ck_assert_uint_eq(stats()->queued.sum_ns, 2 * (uint64_t)NS_PER_S);
    ck_assert_uint_eq(total(&stats()->granted), 1);
}

TEST(round_trips_are_counted_per_node)
{
    uint64_t before = total(&w.engine.flights.masters[2].link.round_trips);
    cluster_ask(&w, "LOCK a 10s");
    ck_assert_uint_gt(total(&w.engine.flights.masters[2].link.round_trips), before);
    w.masters[3].hung = true;
    cluster_pass_ms(&w, 3000);
    before = total(&w.engine.flights.masters[3].link.round_trips);
    cluster_ask(&w, "LOCK b 10s");
    ck_assert_uint_eq(total(&w.engine.flights.masters[3].link.round_trips), before);
}

/* --- refusals --- */

static uint64_t refusals(unsigned node)
{
    uint64_t count = 0;
    for (unsigned reason = 0; reason < REASON_COUNT; reason++)
        count += stats()->refused[node][reason];
    return count;
}

TEST(node_without_a_vote_is_counted_by_its_reason)
{
    cluster_kill(&w, 4);
    cluster_settle(&w);
    cluster_ask(&w, "LOCK a 10s");
    ck_assert_uint_eq(refusals(4), 1);
    ck_assert_uint_eq(refusals(0), 0);
    cluster_ask(&w, "STATUS a");
    ck_assert_uint_eq(refusals(4), 2);
    ck_assert_uint_eq(stats()->refused[4][REASON_NONE], 0);
    cluster_flush(&w, 1);
    cluster_ask(&w, "LOCK b 10s");
    cluster_ask(&w, "LOCK c 10s");
    ck_assert_uint_gt(stats()->refused[1][REASON_FLUSHED], 0);
}

TEST(release_counts_no_refused_votes)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "LOCK a 10s")));
    cluster_kill(&w, 4);
    cluster_settle(&w);
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "OK");
    ck_assert_uint_eq(refusals(4), 0);
}

/* --- losses --- */

TEST(loss_is_counted_by_its_reason)
{
    cluster_ask(&w, "LOCK a 10s HOLD");
    cluster_hang(&w, 3, true);
    cluster_pass_ms(&w, 10000);
    ck_assert_uint_eq(stats()->lost, 1);
    ck_assert_uint_eq(stats()->losses[LOSS_NOQUORUM], 1);
    cluster_hang(&w, 3, false);
    cluster_pass_ms(&w, 60000);
    cluster_ask(&w, "LOCK b 10s HOLD");
    engine_drain(&w.engine, w.now_ns);
    ck_assert_uint_eq(stats()->losses[LOSS_SHUTDOWN], 1);
    ck_assert_uint_eq(stats()->lost, 2);
}

TEST(each_loss_has_a_word_and_a_meaning)
{
    for (unsigned i = 0; i < ENGINE_LOSSES; i++) {
        ck_assert_uint_gt(strlen(engine_losses[i].word), 0);
        ck_assert_uint_gt(strlen(engine_losses[i].meaning), 0);
    }
}

/* --- limits --- */

static uint64_t limit_count(const char *word)
{
    for (unsigned i = 0; i < ENGINE_LIMITS; i++)
        if (strcmp(engine_limits[i], word) == 0)
            return stats()->limits[i];
    ck_abort_msg("%s is no limit", word);
}

TEST(limits_are_counted_by_their_word)
{
    w.engine.rules.waiters_per_resource = 1;
    cluster_occupy(&w, "a", 50000);
    cluster_submit(&w, "#1 LOCK a 10s WAIT 60s");
    cluster_submit(&w, "#2 LOCK a 10s WAIT 60s");
    cluster_expect(&w, "#2 LIMIT waiters_per_resource");
    ck_assert_uint_eq(limit_count("waiters_per_resource"), 1);
    ck_assert_uint_eq(limit_count("waiters"), 0);
    ck_assert_uint_eq(stats()->outcomes[ROUND_ACQUIRE][OUTCOME_LIMIT], 1);
}

/* The LOCK "held" was accepted and held back before its LIMIT. A reply to BREAK is not an
 * outcome. */
TEST(limits_of_pending_requests_and_of_breaks_are_counted)
{
    cluster_hang(&w, 5, true);
    w.engine.flights.admission.limit = 1;
    cluster_submit(&w, "#first LOCK a 10s");
    cluster_submit(&w, "#held LOCK b 10s WAIT 20ms");
    for (unsigned i = 0; i <= LIMIT_BREAKS; i++)
        cluster_submit(&w, "#%u BREAK r%u", i, i);
    cluster_expect(&w, "#%u LIMIT breaks", LIMIT_BREAKS);
    cluster_pass_ms(&w, 30);
    cluster_expect(&w, "#held LIMIT busy");
    ck_assert_uint_eq(limit_count("breaks"), 1);
    ck_assert_uint_eq(limit_count("busy"), 1);
    ck_assert_uint_eq(stats()->outcomes[ROUND_STATUS][OUTCOME_LIMIT], 0);
}

/* --- waiters --- */

TEST(resources_are_listed_while_a_client_waits)
{
    cluster_ask(&w, "LOCK a 60s");
    cluster_ask(&w, "LOCK b 60s");
    ck_assert(LIST_EMPTY(&w.engine.manager.waited_for));
    cluster_submit(&w, "#1 LOCK a 10s WAIT 60s");
    cluster_submit(&w, "#2 LOCK a 10s WAIT 2s");
    cluster_submit(&w, "#3 LOCK b 10s WAIT 2s");
    cluster_submit(&w, "#4 LOCK b 10s");
    ck_assert_uint_eq(engine_view(&w.engine).waited_for, 2);
    ck_assert_uint_eq(LIST_FIRST(&w.engine.manager.waited_for)->waits, 1);
    cluster_pass_ms(&w, 3000);
    ck_assert_uint_eq(engine_view(&w.engine).waited_for, 1);
    const struct resource *left = LIST_FIRST(&w.engine.manager.waited_for);
    ck_assert_uint_eq(left->waits, 1);
    ck_assert_ptr_null(LIST_NEXT(left, waited_for));
    cluster_lose_client(&w, &w.client);
    cluster_settle(&w);
    ck_assert_uint_eq(engine_view(&w.engine).waited_for, 0);
    ck_assert(LIST_EMPTY(&w.engine.manager.waited_for));
    ck_assert_uint_eq(w.engine.manager.waiting, 0);
}
