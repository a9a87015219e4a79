/*
 * LOCK ... WAIT: the order of waiters, the end of a wait, clients that leave, and limits. The tests
 * run the shipped engine on fake masters and virtual time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

const struct runner_settings runner_settings = {.setup = cluster_setup_settled,
                                                .teardown = cluster_teardown};

static unsigned place_of(const char *line, const struct engine_client *client)
{
    const struct request_limits limits = {.key_prefix = ""};
    struct request request;
    struct error error;
    ck_assert_int_eq(request_parse(line, strlen(line), &limits, &request, &error), REQUEST_FINE);
    const struct resource *place;
    struct resource_view view;
    return engine_find_resource(&w.engine, &request, &view, &place)
               ? engine_queue_position(place, client, w.now_ns)
               : 0;
}

/* --- order --- */

TEST(each_client_has_a_place_in_the_queue)
{
    cluster_occupy(&w, "a", 5000);
    cluster_occupy(&w, "b", 5000);
    ck_assert_uint_eq(place_of("LOCKS a", &w.client), 0);
    cluster_send_as(&w, &w.others[0], "#1 LOCK a 1s WAIT 60s");
    cluster_send_as(&w, &w.others[1], "#2 LOCK a 1s WAIT 2s");
    cluster_send_as(&w, &w.client, "#3 LOCK a 1s WAIT 60s");
    cluster_send_as(&w, &w.others[1], "#4 LOCK a 1s WAIT 60s");
    cluster_send_as(&w, &w.client, "#5 LOCK a 1s WAIT 60s");
    cluster_send_as(&w, &w.others[2], "#6 LOCK b 1s WAIT 60s");
    cluster_settle(&w);
    unsigned before = cluster_commands(&w);
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[0]), 1);
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[1]), 2);
    ck_assert_uint_eq(place_of("LOCKS a", &w.client), 3);
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[2]), 0);
    ck_assert_uint_eq(place_of("LOCKS b", &w.others[2]), 1);
    ck_assert_uint_eq(place_of("LOCKS b", &w.client), 0);
    ck_assert_uint_eq(place_of("LOCKS c", &w.client), 0);
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_commands(&w), before);
    /* Request #2 has timed out. Its client still has request #4 further back in the queue. */
    cluster_pass_ms(&w, 2000);
    ck_assert_uint_eq(place_of("LOCKS a", &w.client), 2);
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[1]), 3);
    cluster_vacate(&w, "a");
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[0]), 0);
    ck_assert_uint_eq(place_of("LOCKS a", &w.client), 1);
    cluster_lose_client(&w, &w.client);
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[1]), 1);
}

TEST(waiters_are_served_in_order_of_arrival)
{
    enum { WAITERS = 20 };
    char tag[8];
    char token[LIMIT_TOKEN + 1];
    cluster_submit(&w, "#t0 LOCK a 10s");
    memcpy(token, cluster_expect_grant(&w, "t0"), sizeof(token));
    for (unsigned i = 1; i <= WAITERS; i++) {
        cluster_submit(&w, "#t%u LOCK a 10s WAIT 60s", i);
        cluster_pass_ms(&w, 1);
    }
    cluster_expect(&w, "(nothing)");
    unsigned before = cluster_commands(&w);
    for (unsigned i = 1; i <= WAITERS; i++) {
        cluster_submit(&w, "#u UNLOCK a %s", token);
        snprintf(tag, sizeof(tag), "t%u", i);
        cluster_expect(&w, "#u OK");
        memcpy(token, cluster_expect_grant(&w, tag), sizeof(token));
        ck_assert_uint_eq(cluster_count(&w, "a"), 5);
    }
    cluster_expect(&w, "(nothing)");
    /* One command to each master per waiter. */
    ck_assert_uint_eq(cluster_commands(&w) - before, 5 * WAITERS);
    ck_assert_uint_eq(w.engine.stats.handovers, WAITERS);
    cluster_submit(&w, "#u UNLOCK a %s", token);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 0);
    ck_assert_uint_eq(w.engine.manager.pending_requests.in_use, 0);
    ck_assert_uint_eq(w.engine.manager.locks.in_use, 0);
    ck_assert_uint_eq(w.engine.manager.waiting, 0);
}

TEST(validity_counts_from_the_round_and_elapsed_from_the_arrival)
{
    int64_t validity_ms;
    int64_t elapsed_ms;
    cluster_submit(&w, "#a LOCK a 10s");
    char token[LIMIT_TOKEN + 1];
    memcpy(token, cluster_expect_grant(&w, "a"), sizeof(token));
    cluster_submit(&w, "#b LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 4000);
    cluster_submit(&w, "#u UNLOCK a %s", token);
    cluster_expect(&w, "#u OK");
    ck_assert_int_eq(
        sscanf(cluster_take_reply(&w), "#b OK %*s %" SCNd64 " %" SCNd64, &validity_ms, &elapsed_ms),
        2);
    ck_assert_int_eq(validity_ms, 10000 - 110);
    ck_assert_int_eq(elapsed_ms, 4000 - 40);
}

TEST(resource_has_one_acquiring_round_at_a_time)
{
    w.masters[0].hung = w.masters[1].hung = w.masters[2].hung = true;
    cluster_send(&w, "#a LOCK a 10s");
    cluster_send(&w, "#b LOCK a 10s");
    cluster_send(&w, "#c LOCK a 10s WAIT 1s");
    cluster_settle(&w);
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, 1);
    cluster_hang(&w, 3, false);
    cluster_settle(&w);
    cluster_expect_grant(&w, "a");
    cluster_expect(&w, "#b HELD 10000");
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, 1);
}

TEST(request_without_wait_does_not_overtake_waiters)
{
    cluster_occupy(&w, "a", 5000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_submit(&w, "#b LOCK a 10s");
    cluster_expect(&w, "#b HELD 5000");
    unsigned rounds = (unsigned)w.engine.stats.acquire_rounds;
    ck_assert_uint_eq(rounds, 1);
    cluster_vacate(&w, "a");
    cluster_expect_grant(&w, "a");
}

TEST(wait_of_zero_is_no_wait)
{
    cluster_occupy(&w, "a", 5000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 0");
    cluster_expect(&w, "#a HELD 5000");
    ck_assert_uint_eq(w.engine.manager.waiting, 0);
}

/* --- the end of a wait --- */

TEST(wait_ends_on_time)
{
    cluster_occupy(&w, "a", 60000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 2s");
    cluster_pass_ms(&w, 1999);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 1);
    cluster_expect(&w, "#a HELD 58000");
    ck_assert_uint_eq(w.engine.manager.pending_requests.in_use, 0);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 0);
    cluster_vacate(&w, "a");
    cluster_pass_ms(&w, 5000);
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* Both waits end while a round for #a is in flight. The round still gives #a the lock, and #b is
 * told HELD when it ends. */
TEST(wait_that_ends_during_a_round_ends_with_it)
{
    cluster_occupy(&w, "a", 60000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 2s");
    cluster_submit(&w, "#b LOCK a 10s WAIT 2s");
    cluster_pass_ms(&w, 1988);
    /* The probe is answered by 1996 ms, the round by 2004 ms. */
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 8 * NS_PER_MS;
    cluster_vacate(&w, "a");
    cluster_pass_ms(&w, 15);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 1);
    cluster_expect_grant(&w, "a");
    cluster_expect(&w, "#b HELD 10000");
}

TEST(wait_outlives_a_lack_of_masters)
{
    cluster_kill(&w, 0);
    cluster_kill(&w, 1);
    cluster_kill(&w, 2);
    cluster_submit(&w, "#a LOCK a 10s WAIT 300s");
    cluster_submit(&w, "#b LOCK a 10s WAIT 1s");
    cluster_pass_ms(&w, 1000);
    cluster_expect(&w, "#b NOQUORUM 2/5 need=3 a:refused b:refused c:refused");
    cluster_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 3; i++)
        cluster_restart(&w, i);
    /* the quarantine of the new processes */
    cluster_pass_ms(&w, 60000);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 15000);
    cluster_expect_grant(&w, "a");
}

TEST(request_without_wait_is_told_why_the_others_wait)
{
    for (unsigned i = 0; i < 3; i++)
        cluster_kill(&w, i);
    cluster_submit(&w, "#a LOCK a 10s WAIT 300s");
    cluster_submit(&w, "#b LOCK a 10s");
    cluster_expect(&w, "#b NOQUORUM 2/5 need=3 a:disconnected b:disconnected c:disconnected");
}

/* The first round for #a failed because three masters hung. When #b times out later, its reply must
 * be HELD and not mention these masters. */
TEST(past_lack_of_masters_is_not_reported)
{
    cluster_hang(&w, 3, true);
    cluster_submit(&w, "#a LOCK a 60s WAIT 60s");
    cluster_pass_ms(&w, 60);
    cluster_hang(&w, 3, false);
    cluster_pass_ms(&w, 2000);
    cluster_expect_grant(&w, "a");
    cluster_submit(&w, "#b LOCK a 60s WAIT 10ms");
    cluster_pass_ms(&w, 10);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "#b HELD ", 8), 0);
}

/* At first a round takes 30 ms, which leaves no validity of a TTL of 40 ms, so the rounds are LATE.
 * The waiter stays in the queue until the masters are faster. */
TEST(wait_outlives_late_rounds)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 30 * NS_PER_MS;
    cluster_send(&w, "#a LOCK a 40ms WAIT 10s");
    cluster_pass_ms(&w, 200);
    cluster_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 0;
    cluster_pass_ms(&w, 1000);
    cluster_expect_grant(&w, "a");
}

/* Parse with the shipped limits, which allow a shorter TTL than those of other tests. */
static void send_with_shipped_limits(struct engine_client *client, const char *line)
{
    const struct request_limits shipped = {.ttl_min_ms = 13, .ttl_max_ms = 60000, .key_prefix = ""};
    struct request request;
    struct error error;
    ck_assert_int_eq(request_parse(line, strlen(line), &shipped, &request, &error), REQUEST_FINE);
    engine_submit(&w.engine, client, &request, w.now_ns);
}

/* A round takes 4 ms and the drift 10 ms, so no validity can be left of a TTL of 13 ms. */
TEST(too_short_a_ttl_does_not_hold_up_other_waiters)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 4 * NS_PER_MS;
    cluster_pass_ms(&w, 5000);
    send_with_shipped_limits(&w.client, "#a LOCK a 13ms WAIT 1h");
    send_with_shipped_limits(&w.others[0], "#b LOCK a 13ms WAIT 1ms");
    cluster_send_as(&w, &w.others[1], "#c LOCK a 10s WAIT 1m");
    cluster_pass_ms(&w, 200);
    cluster_expect(&w, "#a LATE 3");
    cluster_expect(&w, "#b HELD -1");
    cluster_expect_grant(&w, "c");
    cluster_expect(&w, "(nothing)");
}

/* --- clients that leave --- */

TEST(waiter_leaves_the_queue_with_its_connection)
{
    cluster_occupy(&w, "a", 5000);
    cluster_send_as(&w, &w.others[0], "#x LOCK a 10s WAIT 60s");
    cluster_send_as(&w, &w.others[1], "#y LOCK a 10s WAIT 60s");
    cluster_submit(&w, "#z LOCK a 10s WAIT 60s");
    cluster_lose_client(&w, &w.others[0]);
    cluster_end_client(&w, &w.others[1]);
    cluster_expect(&w, "undone y");
    ck_assert_uint_eq(w.engine.manager.waiting, 1);
    cluster_vacate(&w, "a");
    cluster_expect_grant(&w, "z");
}

TEST(crowd_that_leaves_starts_no_rounds)
{
    cluster_occupy(&w, "a", 5000);
    for (unsigned i = 0; i < 900; i++)
        cluster_send_as(&w, &w.others[0], "#t%u LOCK a 10s WAIT 60s", i);
    cluster_settle(&w);
    uint64_t rounds_before = w.engine.stats.acquire_rounds;
    cluster_lose_client(&w, &w.others[0]);
    cluster_settle(&w);
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, rounds_before);
    ck_assert_uint_eq(w.engine.manager.pending_requests.in_use, 0);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 0);
}

TEST(stopping_daemon_answers_all_waiters)
{
    cluster_occupy(&w, "a", 5000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_submit(&w, "#b LOCK a 10s WAIT 60s");
    cluster_hang(&w, 5, true);
    cluster_send(&w, "#c LOCK c 10s WAIT 60s");
    cluster_send(&w, "#d LOCK c 10s WAIT 60s");
    engine_drain(&w.engine, w.now_ns);
    cluster_expect(&w, "#a SHUTDOWN");
    cluster_expect(&w, "#b SHUTDOWN");
    cluster_expect(&w, "#d SHUTDOWN");
    cluster_expect(&w, "(nothing)");
    cluster_hang(&w, 5, false);
    cluster_settle(&w);
    cluster_expect_grant(&w, "c");
    ck_assert(!engine_busy(&w.engine));
}

/* The wait ends while the stopping daemon waits for the round in flight. */
TEST(wait_that_ends_during_a_shutdown_is_answered_once)
{
    cluster_hang(&w, 5, true);
    cluster_submit(&w, "#a LOCK a 10s WAIT 10ms");
    engine_drain(&w.engine, w.now_ns);
    cluster_pass_ms(&w, 40);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 11);
    cluster_expect(&w, "#a SHUTDOWN");
    cluster_expect(&w, "(nothing)");
}

/* --- limits --- */

TEST(queues_are_limited_per_resource_and_in_total)
{
    cluster_occupy(&w, "a", 50000);
    for (unsigned i = 0; i < 1000; i++)
        cluster_send_as(&w, &w.others[0], "#t%u LOCK a 10s WAIT 60s", i);
    cluster_settle(&w);
    cluster_submit(&w, "#x LOCK a 10s WAIT 60s");
    cluster_expect(&w, "#x LIMIT waiters_per_resource");
    w.engine.rules.waiters = 1000;
    cluster_submit(&w, "#x LOCK a 10s");
    cluster_expect(&w, "#x HELD 50000");
    cluster_submit(&w, "#x LOCK b 10s WAIT 60s");
    cluster_expect(&w, "#x LIMIT waiters");
    cluster_submit(&w, "#x LOCK b 10s");
    cluster_expect_grant(&w, "x");
    cluster_lose_client(&w, &w.others[0]);
    cluster_submit(&w, "#y LOCK a 10s WAIT 60s");
    cluster_expect(&w, "(nothing)");
}

/* A round is under way whose result is the reply to all these LOCKs. */
TEST(locks_of_one_resource_leave_room_for_others)
{
    size_t most = manager_impatient_share();
    cluster_hang(&w, 3, true);
    for (unsigned i = 0; i <= most; i++)
        cluster_send_as(&w, &w.others[i / 1000], "#t%u LOCK a 10s", i);
    cluster_submit(&w, "#x LOCK a 10s");
    cluster_expect(&w, "#x LIMIT operations");
    cluster_submit(&w, "#y LOCK b 10s");
    cluster_submit(&w, "#z LOCK a 10s WAIT 10s");
    cluster_expect(&w, "(nothing)");
}

/* The limits count only requests with WAIT. */
TEST(request_without_wait_takes_no_place_in_the_queue)
{
    w.engine.rules.waiters_per_resource = 1;
    cluster_send(&w, "#a LOCK a 10s");
    cluster_send(&w, "#b LOCK a 10s");
    cluster_send(&w, "#c LOCK a 10s WAIT 60s");
    cluster_settle(&w);
    cluster_expect_grant(&w, "a");
    cluster_expect(&w, "#b HELD 10000");
    cluster_expect(&w, "(nothing)");
}

/* One table after another is full. Every request is then refused, with and without WAIT. */
TEST(full_tables_refuse_requests)
{
    static const char *const requests[] = {
        "#x STATUS b", "#x LOCK b 10s", "#x LOCK b 10s WAIT 1s",
        "#x UNLOCK b 0123456789012345678901234567890123456789",
        "#x EXTEND b 0123456789012345678901234567890123456789 1s"};
    struct pool *const pools[] = {&w.engine.manager.pending_requests,
                                  &w.engine.manager.resources.pool, &w.engine.flights.pool};
    for (size_t p = 0; p < sizeof(pools) / sizeof(pools[0]); p++) {
        size_t count = pools[p]->count;
        void *free = pools[p]->free;
        pools[p]->free = NULL;
        pools[p]->count = pools[p]->touched;
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
            cluster_submit(&w, "%s", requests[i]);
            cluster_expect(&w, "#x LIMIT operations");
        }
        pools[p]->count = count;
        pools[p]->free = free;
    }
    cluster_submit(&w, "#x LOCK b 10s");
    cluster_expect_grant(&w, "x");
    ck_assert_uint_eq(w.engine.manager.pending_requests.in_use, 0);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 1);
}

/* The waiter's next round finds no free flight. */
TEST(waiter_without_a_free_flight_is_refused_and_forgotten)
{
    cluster_occupy(&w, "a", 1000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    struct pool *rounds = &w.engine.flights.pool;
    size_t count = rounds->count;
    void *free = rounds->free;
    rounds->count = rounds->touched;
    rounds->free = NULL;
    cluster_pass_ms(&w, 1002);
    cluster_expect(&w, "#a LIMIT operations");
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 0);
    rounds->count = count;
    rounds->free = free;
}

TEST(ten_thousand_idle_waiters_cost_nothing)
{
    enum { CLIENTS = 10, RESOURCES = 10, EACH = 100 };
    static struct engine_client clients[CLIENTS];
    char line[64];
    for (unsigned r = 0; r < RESOURCES; r++) {
        snprintf(line, sizeof(line), "r%u", r);
        cluster_occupy(&w, line, 60000);
    }
    for (unsigned c = 0; c < CLIENTS; c++) {
        engine_client_init(&clients[c], 100 + c);
        for (unsigned i = 0; i < RESOURCES * EACH; i++)
            cluster_send_as(&w, &clients[c], "#t%u LOCK r%u 10s WAIT 50s", i, i % RESOURCES);
    }
    cluster_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.manager.waiting, 10000);
    unsigned before = cluster_commands(&w);
    /* No timer is due before the first wait ends. */
    ck_assert_int_ge(w.engine.manager.timers.first_ns, w.now_ns + 49 * NS_PER_S - NS_PER_MS);
    cluster_pass_ms(&w, 48000);
    ck_assert_uint_eq(cluster_commands(&w), before);
    ck_assert_uint_le(sizeof(struct pending_request), 256);
    for (unsigned c = 0; c < CLIENTS; c++)
        cluster_lose_client(&w, &clients[c]);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 0);
}
