/*
 * Work whose amount clients decide: how much of it one pass does, and how it grows with the number
 * of requests. The tests count steps on virtual time, not real time.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

const struct runner_settings runner_settings = {.setup = cluster_setup_settled,
                                                .teardown = cluster_teardown};

/* --- timers --- */

/* Let `count` waits begin that all end `ms` from now. */
static void begin_waits(unsigned count, unsigned ms)
{
    cluster_occupy(&w, "a", 60000);
    for (unsigned i = 0; i < count; i++)
        cluster_send(&w, "#w%u LOCK a 1s WAIT %ums", i, ms);
    cluster_settle(&w);
    ck_assert_uint_eq(w.reply_count, 0);
}

TEST(waits_that_end_at_once_are_answered_over_several_passes)
{
    begin_waits(1000, 2000);
    w.now_ns += 2000 * NS_PER_MS;
    for (unsigned pass = 1; pass <= 1000 / LIMIT_TIMERS + 1; pass++) {
        unsigned before = w.reply_count;
        ck_assert_int_le(engine_deadline_ns(&w.engine), w.now_ns);
        engine_on_timer(&w.engine, w.now_ns, w.now_ns);
        /* Other events of the same pass answer no more of them. */
        engine_catch_up(&w.engine, w.now_ns);
        ck_assert_uint_le(w.reply_count, before + LIMIT_TIMERS);
        ck_assert(engine_wants_flush(&w.engine) || w.reply_count == 1000);
        engine_flush(&w.engine, w.now_ns);
    }
    ck_assert_uint_eq(w.reply_count, 1000);
    ck_assert_int_gt(engine_deadline_ns(&w.engine), w.now_ns);
}

/* The daemon was stopped for 30 s. The waits ended long before the HOLD was lost, but LOST must be
 * reported first. */
TEST(lost_hold_is_reported_before_waits_that_ended_earlier)
{
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK held 30s HOLD")));
    w.reply_count = 0;
    begin_waits(1000, 100);
    w.now_ns += 30 * NS_PER_S;
    engine_catch_up(&w.engine, w.now_ns);
    ck_assert_uint_le(w.reply_count, 1 + LIMIT_TIMERS);
    ck_assert_int_eq(strncmp(w.replies[0], "! LOST held", 11), 0);
}

/* The pass has used up its budget for waits when the HOLD is lost. LOST must be reported in this
 * pass all the same. */
TEST(hold_is_reported_as_lost_although_the_budget_is_used_up)
{
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK held 30s HOLD")));
    w.reply_count = 0;
    begin_waits(1000, 100);
    w.now_ns += NS_PER_S;
    engine_catch_up(&w.engine, w.now_ns);
    unsigned answered = w.reply_count;
    ck_assert_uint_lt(answered, 1000);
    w.now_ns += 30 * NS_PER_S;
    engine_catch_up(&w.engine, w.now_ns);
    ck_assert_uint_eq(w.reply_count, answered + 1);
    ck_assert_int_eq(strncmp(w.replies[answered], "! LOST held", 11), 0);
}

/* Locks without HOLD: the daemon forgets them when they end. */
TEST(locks_that_end_at_once_are_forgotten_over_several_passes)
{
    enum { LOCKS = 80, LEFT = 10 };
    for (unsigned i = 0; i < LOCKS; i++)
        cluster_send(&w, "#l%u LOCK l%u 1s", i, i);
    cluster_settle(&w);
    ck_assert_uint_eq(w.engine.manager.locks.in_use, LOCKS);
    w.now_ns += 2 * NS_PER_S;
    w.engine.manager.timers_left = LEFT;
    engine_catch_up(&w.engine, w.now_ns);
    ck_assert_uint_eq(w.engine.manager.locks.in_use, LOCKS - LEFT);
    cluster_pass_ms(&w, 0);
    ck_assert_uint_eq(w.engine.manager.locks.in_use, 0);
}

/* The key ends after a second, and a round starts. It is under way for 50 ms, because a quorum of
 * the masters hangs. All waits end meanwhile. */
TEST(waits_that_end_during_a_round_are_answered_over_several_passes)
{
    enum { WAITS = 1000 };
    cluster_occupy(&w, "a", 1000);
    for (unsigned i = 0; i < WAITS; i++)
        cluster_send(&w, "#w%u LOCK a 1s WAIT 1020ms", i);
    cluster_pass_ms(&w, 998);
    cluster_hang(&w, 3, true);
    cluster_pass_ms(&w, 40);
    const struct resource *resource = resource_find(&w.engine.manager.resources, "a", 1);
    ck_assert_uint_eq(resource->queue.timed_out, WAITS);
    ck_assert_uint_eq(w.reply_count, 0);
    w.now_ns += 20 * NS_PER_MS;
    for (unsigned pass = 1; pass <= WAITS / LIMIT_TIMERS + 2; pass++) {
        unsigned before = w.reply_count;
        ck_assert_int_le(engine_deadline_ns(&w.engine), w.now_ns);
        engine_on_timer(&w.engine, w.now_ns, w.now_ns);
        ck_assert_uint_le(w.reply_count, before + LIMIT_TIMERS);
        engine_flush(&w.engine, w.now_ns);
    }
    ck_assert_uint_eq(w.reply_count, WAITS);
    for (unsigned i = 0; i < WAITS; i++) {
        char start[32];
        int len = snprintf(start, sizeof(start), "#w%u NOQUORUM 2/5 need=3 ", i);
        ck_assert_int_eq(strncmp(w.replies[i], start, (size_t)len), 0);
    }
}

/* The masters report that all keys may have changed, so each queue has to probe its key. */
TEST(queues_are_updated_over_several_passes)
{
    enum { KEYS = 40, LEFT = 10 };
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", i);
        cluster_occupy(&w, key, 60000);
        cluster_send(&w, "#%u LOCK %s 1s WAIT 60s", i, key);
        cluster_settle(&w);
    }
    cluster_pass_ms(&w, 1000);
    uint64_t before = w.engine.stats.key_probes;
    w.engine.flights.news.any = true;
    w.engine.flights.news.probe_again = 0x1f;
    w.engine.manager.timers_left = LEFT;
    engine_client_end(&w.engine, &w.others[0], ENGINE_ENDING, w.now_ns);
    ck_assert_uint_eq(w.engine.stats.key_probes, before + 5 * LEFT);
    ck_assert(engine_wants_flush(&w.engine));
    ck_assert_int_le(engine_deadline_ns(&w.engine), w.now_ns);
    cluster_pass_ms(&w, 1);
    ck_assert_uint_eq(w.engine.stats.key_probes, before + 5 * KEYS);
}

/* --- starts --- */

/* No master is up, so a round fails at once and writes nothing that would have to be flushed. */
TEST(starts_continue_in_the_next_pass_although_nothing_is_written)
{
    struct admission *admission = &w.engine.flights.admission;
    for (unsigned i = 0; i < 5; i++)
        cluster_kill(&w, i);
    cluster_pass_ms(&w, 2000);
    admission->limit = 0;
    admission->limited = 1;
    for (unsigned i = 0; i < 3; i++)
        cluster_submit(&w, "#%u STATUS a", i);
    cluster_expect(&w, "(nothing)");
    admission->limit = LIMIT_ADMISSION_START;
    admission->limited = 0;
    for (unsigned i = 0; i < 3; i++) {
        w.engine.manager.starts_left = 1;
        ck_assert_int_le(engine_deadline_ns(&w.engine), w.now_ns);
        engine_on_timer(&w.engine, w.now_ns, w.now_ns);
        ck_assert_uint_eq(w.reply_count, i + 1);
        ck_assert(engine_wants_flush(&w.engine));
        engine_flush(&w.engine, w.now_ns);
        ck_assert(!engine_wants_flush(&w.engine));
    }
}

/* --- the end of a client --- */

TEST(newest_lock_of_a_client_that_leaves_is_undone_first)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "LOCK held 10s")));
    w.reply_count = 0;
    cluster_hang(&w, 3, true);
    cluster_send(&w, "#1 EXTEND held %s 10s", token);
    cluster_send(&w, "#2 LOCK a 10s WAIT 10s");
    cluster_send(&w, "#3 LOCK b 10s WAIT 10s");
    cluster_send(&w, "#4 STATUS c");
    cluster_send(&w, "#5 LOCK a 10s WAIT 10s");
    cluster_send(&w, "#6 LOCK c 10s");
    cluster_send(&w, "#7 STATUS a");
    engine_client_end(&w.engine, &w.client, ENGINE_HALF_CLOSED, w.now_ns);
    cluster_expect(&w, "undone 6");
    cluster_expect(&w, "undone 5");
    cluster_expect(&w, "undone 3");
    cluster_expect(&w, "undone 2");
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(w.client.pending_count, 3);
    engine_client_end(&w.engine, &w.client, ENGINE_GONE, w.now_ns);
    ck_assert_uint_eq(w.client.pending_count, 0);
    ck_assert_uint_eq(w.engine.manager.pending_requests.in_use, 0);
    cluster_hang(&w, 3, false);
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a") + cluster_count(&w, "b") + cluster_count(&w, "c"), 0);
}
