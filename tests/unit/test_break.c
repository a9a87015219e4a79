/*
 * BREAK releases only the token that a quorum of the masters has. The daemon tells the holder, and
 * the first waiter gets the lock. The tests run the shipped engine on fake masters and virtual
 * time.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static char token[LIMIT_TOKEN + 1];

/* However the BREAK of a test ended, the engine must have freed its state. */
static void teardown(void)
{
    cluster_pass_ms(&w, 5000);
    ck_assert_uint_eq(w.engine.manager.breakings.in_use, 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
    cluster_deinit(&w);
}

const struct runner_settings runner_settings = {.setup = cluster_setup_settled,
                                                .teardown = teardown};

/* Another client sends BREAK, so that cluster.client can be the holder. */
static void send_break(const char *line)
{
    cluster_send_as(&w, &w.others[1], "%s", line);
    cluster_settle(&w);
}

static void lock(const char *line)
{
    cluster_submit(&w, "%s", line);
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_take_reply(&w)));
}

static void set_nodes(unsigned first, unsigned last, const char *value)
{
    for (unsigned i = first; i <= last; i++)
        cluster_set(&w, i, "a", value, 10000);
}

TEST(break_releases_the_lock_and_names_its_owner)
{
    lock("LOCK a 3s");
    send_break("BREAK a");
    cluster_expect(&w, "broken a of 1");
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.stats.broken, 1);
    cluster_submit(&w, "LOCK a 3s");
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "OK ", 3), 0);
}

TEST(break_of_a_free_resource_answers_free)
{
    send_break("BREAK a");
    cluster_expect(&w, "FREE");
    /* A key on a minority of the masters is not a lock. It stays until its TTL ends. */
    set_nodes(0, 1, A);
    send_break("BREAK a");
    cluster_expect(&w, "FREE");
    ck_assert_uint_eq(cluster_count(&w, "a"), 2);
}

TEST(break_releases_a_lock_of_another_daemon)
{
    set_nodes(0, 2, A);
    send_break("BREAK a");
    cluster_expect(&w, "broken a of 0");
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* Three masters have token A and two have token B. BREAK releases A and leaves B. */
TEST(break_leaves_other_tokens_alone)
{
    set_nodes(0, 2, A);
    set_nodes(3, 4, B);
    send_break("BREAK a");
    cluster_expect(&w, "broken a of 0");
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 2);
    ck_assert_str_eq(cluster_value(&w, 3, "a"), B);
}

TEST(holder_is_told_that_its_hold_is_broken)
{
    lock("LOCK a 3s HOLD");
    send_break("BREAK a");
    cluster_expect(&w, "broken a of 1");
    cluster_expect(&w, "! LOST a %s gone", token);
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(w.engine.manager.holding, 0);
    cluster_pass_ms(&w, 3000);
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* The holder is told even if it sends the BREAK itself. */
TEST(holder_that_breaks_its_own_hold_is_told)
{
    lock("LOCK a 3s HOLD");
    cluster_submit(&w, "BREAK a");
    cluster_expect(&w, "broken a of 1");
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "! LOST a ", 9), 0);
    cluster_expect(&w, "OK");
}

TEST(first_waiter_gets_the_lock_after_a_break)
{
    lock("LOCK a 60s");
    cluster_send_as(&w, &w.others[0], "#w LOCK a 3s WAIT 60s");
    cluster_settle(&w);
    send_break("BREAK a");
    cluster_expect(&w, "broken a of 1");
    const char *first = cluster_take_reply(&w);
    bool waiter_first = strncmp(first, "#w OK ", 6) == 0;
    ck_assert(waiter_first || strcmp(first, "OK") == 0);
    const char *second = cluster_take_reply(&w);
    ck_assert_msg(strncmp(second, waiter_first ? "OK" : "#w OK ", waiter_first ? 2 : 6) == 0, "%s",
                  second);
    ck_assert_uint_ge(cluster_count(&w, "a"), 3);
}

/* A command takes 3 ms to reach a master. A BREAK therefore reads the key after 3 ms, freezes it
 * after 6 ms and releases it after 9 ms. */
static void start_break(int64_t pass_ms)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 3 * NS_PER_MS;
    cluster_send_as(&w, &w.others[1], "BREAK a");
    cluster_pass_ms(&w, pass_ms);
}

/* After READ_MS, the BREAK has read the key and its freeze is on the way to the masters. After
 * FROZEN_MS, the key is frozen and the release is on the way. */
enum { READ_MS = 4, FROZEN_MS = 7 };

static unsigned count_frozen(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < 5; i++) {
        const char *value = cluster_value(&w, i, "a");
        count += value != NULL && value[0] == '!';
    }
    return count;
}

static void expect_noquorum(void)
{
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "NOQUORUM ", 9), 0);
}

/* The lock changes hands between the read and the freeze: the new token stays. */
TEST(token_granted_before_the_freeze_is_left_alone)
{
    set_nodes(0, 4, A);
    start_break(READ_MS);
    set_nodes(0, 4, B);
    cluster_pass_ms(&w, 30);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "HELD ", 5), 0);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(cluster_value(&w, i, "a"), B);
    ck_assert_uint_eq(w.engine.stats.broken, 0);
}

/* The lock gets a new holder between the read and the freeze. Two of the masters with its token do
 * not answer. With them the new holder has a quorum, so the BREAK must not report the lock as
 * free. */
TEST(lock_that_may_have_a_new_holder_is_not_reported_free)
{
    set_nodes(0, 4, A);
    start_break(READ_MS);
    cluster_delete(&w, 0, "a");
    set_nodes(1, 4, B);
    w.masters[3].hung = w.masters[4].hung = true;
    cluster_pass_ms(&w, 100);
    expect_noquorum();
    ck_assert_uint_eq(cluster_count(&w, "a"), 4);
    ck_assert_uint_eq(w.engine.stats.broken, 0);
}

TEST(lock_released_before_the_freeze_is_reported_free)
{
    set_nodes(0, 4, A);
    start_break(READ_MS);
    for (unsigned i = 0; i < 5; i++)
        cluster_delete(&w, i, "a");
    cluster_pass_ms(&w, 30);
    cluster_expect(&w, "FREE");
    ck_assert_uint_eq(w.engine.stats.broken, 0);
}

/* Once the token is frozen, the lock counts as broken, even if the frozen keys expire before the
 * release and another client gets the lock. */
TEST(lock_that_expires_after_the_freeze_counts_as_broken)
{
    set_nodes(0, 4, A);
    start_break(FROZEN_MS);
    cluster_expect(&w, "broken a of 0");
    cluster_delete(&w, 0, "a");
    set_nodes(1, 3, B);
    cluster_pass_ms(&w, 30);
    cluster_expect(&w, "OK");
    ck_assert_str_eq(cluster_value(&w, 3, "a"), B);
    ck_assert_uint_eq(cluster_count(&w, "a"), 3);
}

/* A second BREAK has frozen the token again and will delete it, so the first must not report the
 * lock as free. */
TEST(token_frozen_by_another_break_is_not_released)
{
    static const char other[] = "!000000000000000aaaaaaaaaaaaaaaaaaaaaaaa";
    set_nodes(0, 4, A);
    start_break(FROZEN_MS);
    cluster_expect(&w, "broken a of 0");
    set_nodes(0, 2, other);
    cluster_pass_ms(&w, 30);
    expect_noquorum();
    ck_assert_uint_eq(cluster_count(&w, "a"), 3);
    ck_assert_str_eq(cluster_value(&w, 0, "a"), other);
}

/* With four masters, a quorum is three. While two masters have the frozen token, no other client
 * can be granted the lock, so the BREAK must not be confirmed. */
TEST(break_is_not_confirmed_while_half_of_the_masters_have_the_key)
{
    cluster_deinit(&w);
    cluster_init(&w, 4);
    cluster_pass_ms(&w, 10);
    set_nodes(0, 3, A);
    start_break(FROZEN_MS);
    cluster_expect(&w, "broken a of 0");
    cluster_delete(&w, 0, "a"); /* by an UNLOCK of another daemon that reaches no other master */
    cluster_delete(&w, 1, "a");
    w.masters[2].hung = w.masters[3].hung = true;
    cluster_pass_ms(&w, 100);
    expect_noquorum();
    ck_assert_uint_eq(cluster_count(&w, "a"), 2);
    w.masters[2].hung = w.masters[3].hung = false;
    cluster_pass_ms(&w, 100);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* C refuses the LOCK, and then the test gives C its token, so a quorum (A, B, C) has the token
 * while the round still waits for D and E. If the BREAK deleted the keys now, D or E would complete
 * the grant, and the client would be told that it has the lock. */
TEST(break_leaves_a_grant_in_flight_alone)
{
    cluster_set(&w, 2, "a", B, 10000);
    w.masters[3].hung = w.masters[4].hung = true;
    cluster_submit(&w, "LOCK a 3s");
    cluster_expect(&w, "(nothing)");
    snprintf(token, sizeof(token), "%s", cluster_value(&w, 0, "a"));
    cluster_set(&w, 2, "a", token, 10000);
    send_break("BREAK a");
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "HELD ", 5), 0);
    w.masters[3].hung = w.masters[4].hung = false;
    cluster_pass_ms(&w, 1);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "OK ", 3), 0);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
    ck_assert_uint_eq(w.engine.stats.broken, 0);
}

TEST(break_leaves_values_that_are_no_tokens_alone)
{
    set_nodes(0, 4, "somebody-else");
    send_break("BREAK a");
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "HELD ", 5), 0);
    set_nodes(0, 4, A "longer than a token");
    send_break("BREAK a");
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "HELD ", 5), 0);
    set_nodes(0, 4, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    send_break("BREAK a");
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "HELD ", 5), 0);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
}

TEST(break_without_a_quorum_does_nothing)
{
    lock("LOCK a 60s");
    for (unsigned i = 0; i < 3; i++)
        cluster_kill(&w, i);
    cluster_pass_ms(&w, 100);
    send_break("BREAK a");
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "NOQUORUM 2/5 need=3 ", 20), 0);
    ck_assert_ptr_nonnull(cluster_value(&w, 3, "a"));
    ck_assert_uint_eq(w.engine.stats.broken, 0);
}

/* The release is pending on the masters that hang, and is sent once they resume. */
TEST(release_that_masters_did_not_confirm_is_sent_again)
{
    set_nodes(0, 4, A);
    start_break(FROZEN_MS);
    cluster_expect(&w, "broken a of 0");
    cluster_hang(&w, 3, true);
    cluster_pass_ms(&w, 100);
    expect_noquorum();
    cluster_hang(&w, 3, false);
    cluster_pass_ms(&w, 100);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* Three masters refuse the release for a moment. The daemon will retry the release, so it must not
 * extend the token. */
TEST(token_with_a_pending_release_is_not_extended)
{
    lock("LOCK a 60s");
    start_break(FROZEN_MS);
    cluster_expect(&w, "broken a of 1");
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = "MISCONF";
    cluster_pass_ms(&w, 10);
    cluster_expect(&w, "NOQUORUM 2/5 need=3 c:misconf d:misconf e:misconf");
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = NULL;
    ck_assert_uint_eq(count_frozen(), 3);
    cluster_send(&w, "EXTEND a %s 60s", token);
    cluster_pass_ms(&w, 2000);
    cluster_expect(&w, "GONE");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* Let a BREAK fail: it freezes the token on two of five masters, and the other three hang. */
static void fail_to_freeze(void)
{
    start_break(READ_MS);
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].hung = true;
    cluster_pass_ms(&w, 100);
    expect_noquorum();
    ck_assert_uint_eq(count_frozen(), 2);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
    ck_assert_uint_eq(w.engine.stats.broken, 0);
    /* The BREAK is logged, because the holder can lose its lock by it. */
    ck_assert_uint_eq(w.breaks, 1);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 0;
}

static void resume_masters(void)
{
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].hung = false;
    cluster_pass_ms(&w, 100);
}

/* Assert that the frozen keys expire after this time, the rest of the TTL that the token had. */
static void expect_expiry_after_ms(int64_t ms)
{
    cluster_pass_ms(&w, ms - 200);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
    cluster_submit(&w, "LOCK a 1s");
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "HELD ", 5), 0);
    cluster_pass_ms(&w, 400);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

TEST(break_deletes_nothing_without_a_frozen_quorum)
{
    set_nodes(0, 4, A);
    fail_to_freeze();
    resume_masters(); /* The three masters execute the freeze that was sent to them. */
    ck_assert_uint_eq(count_frozen(), 5);
    expect_expiry_after_ms(10000 - 204);
}

/* Two masters freeze the token and the others refuse to, so the BREAK fails. The daemon must then
 * go on extending the HOLD. */
TEST(hold_survives_a_break_that_failed)
{
    lock("LOCK a 3s HOLD");
    start_break(READ_MS);
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = "MISCONF";
    cluster_pass_ms(&w, 100);
    expect_noquorum();
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].delay_ns = 0;
        w.masters[i].redis.refusals[FAKE_KEYS] = NULL;
    }
    cluster_pass_ms(&w, 10000);
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(w.engine.manager.holding, 1);
    /* The frozen keys expire, and extensions write the token to those masters again. */
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
    ck_assert_uint_eq(count_frozen(), 0);
}

/* The freeze arrives after the BREAK has failed. The holder cannot extend the lock, but keeps it
 * for the time it was promised. */
TEST(hold_is_lost_when_the_freeze_arrives_late)
{
    char lost[128];
    lock("LOCK a 3s HOLD");
    fail_to_freeze();
    ck_assert_uint_eq(w.engine.manager.holding, 1);
    resume_masters();
    cluster_pass_ms(&w, 1500);
    snprintf(lost, sizeof(lost), "! LOST a %s gone", token);
    const char *heard = cluster_take_reply(&w);
    while (strncmp(heard, "! WARN ", 7) == 0)
        heard = cluster_take_reply(&w);
    ck_assert_str_eq(heard, lost);
    ck_assert_uint_ge(cluster_count(&w, "a"), 3);
    cluster_submit(&w, "UNLOCK a %s", token);
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

TEST(status_reports_a_partly_frozen_lock_as_held)
{
    set_nodes(0, 2, A);
    start_break(READ_MS);
    for (unsigned i = 1; i < 5; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = "MISCONF";
    cluster_pass_ms(&w, 100);
    expect_noquorum();
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].delay_ns = 0;
        w.masters[i].redis.refusals[FAKE_KEYS] = NULL;
    }
    ck_assert_uint_eq(count_frozen(), 1);
    cluster_submit(&w, "STATUS a");
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "HELD ", 5), 0);
}

TEST(repeated_break_completes)
{
    lock("LOCK a 60s");
    fail_to_freeze();
    send_break("BREAK a");
    expect_noquorum(); /* the other three masters are suspect */
    resume_masters();
    send_break("BREAK a");
    cluster_expect(&w, "broken a of 1");
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* All masters have a frozen form of the token, left by another BREAK. */
TEST(break_completes_where_every_master_is_frozen_already)
{
    lock("LOCK a 60s HOLD");
    char frozen[LIMIT_TOKEN + 1];
    snprintf(frozen, sizeof(frozen), "!000000000000000%s", token + 16);
    set_nodes(0, 4, frozen);
    send_break("BREAK a");
    cluster_expect(&w, "broken a of 1");
    cluster_expect(&w, "! LOST a %s gone", token);
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* The four runs: UNLOCK is sent alone and in a batch, to servers without and with a
 * compare-and-delete command of their own (DELEX of Redis 8.4). */
TEST_LOOP(unlock_deletes_a_frozen_token, 0, 4)
{
    static const char *const versions[] = {NULL, "redis_version:8.4.0"};
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].redis.version = versions[_i % 2];
        cluster_cut(&w, i);
    }
    cluster_pass_ms(&w, 1000);
    lock("LOCK a 60s");
    char frozen[LIMIT_TOKEN + 1];
    snprintf(frozen, sizeof(frozen), "!000000000000000%s", token + 16);
    set_nodes(0, 4, frozen);
    if (_i / 2 == 1) {
        w.lazy = true;
        cluster_send(&w, "#1 UNLOCK b %s", A);
        cluster_send(&w, "#2 UNLOCK a %s", token);
        cluster_settle(&w);
        ck_assert_uint_eq(w.masters[0].redis.runs[REDIS_SCRIPT_RELEASES], 1);
        cluster_take_reply(&w);
        cluster_take_reply(&w);
    } else {
        cluster_submit(&w, "UNLOCK a %s", token);
        /* DELEX does not match frozen tokens, so UNLOCK is answered GONE, and the engine sends the
         * release script after it. */
        cluster_expect(&w, versions[_i % 2] != NULL ? "GONE" : "OK");
        cluster_pass_ms(&w, 100);
        /* No release is pending: every master was connected. */
        ck_assert_uint_eq(w.engine.stats.deferred_releases, 0);
    }
    ck_assert_uint_le(cluster_count(&w, "a"), versions[_i % 2] != NULL ? 2 : 0);
}

/* UNLOCK of a frozen token gives the lock to the first waiter. The replies to UNLOCK and to the
 * waiter can come in either order. */
TEST(unlock_hands_over_a_frozen_token)
{
    lock("LOCK a 60s");
    char frozen[LIMIT_TOKEN + 1];
    snprintf(frozen, sizeof(frozen), "!000000000000000%s", token + 16);
    set_nodes(0, 4, frozen);
    cluster_send_as(&w, &w.others[0], "#w LOCK a 3s WAIT 60s");
    cluster_settle(&w);
    cluster_submit(&w, "#u UNLOCK a %s", token);
    cluster_pass_ms(&w, 50);
    const char *first = cluster_take_reply(&w);
    ck_assert_msg(strncmp(first, "#u OK", 5) == 0 || strncmp(first, "#w OK ", 6) == 0, "%s", first);
    const char *second = cluster_take_reply(&w);
    ck_assert_msg(strncmp(second, "#u OK", 5) == 0 || strncmp(second, "#w OK ", 6) == 0, "%s",
                  second);
}

/* E executes the freeze only after the BREAK has been confirmed. E then keeps the frozen key until
 * its TTL ends. */
TEST(master_that_did_not_answer_the_freeze_gets_no_release)
{
    set_nodes(0, 4, A);
    start_break(READ_MS);
    w.masters[4].hung = true;
    cluster_pass_ms(&w, 100);
    cluster_expect(&w, "broken a of 0");
    cluster_expect(&w, "OK");
    w.masters[4].hung = false;
    cluster_pass_ms(&w, 2000);
    ck_assert_uint_eq(cluster_count(&w, "a"), 1);
    ck_assert_uint_eq(count_frozen(), 1);
}

/* All LIMIT_ROUNDS rounds are in use when the release should begin, so it stays pending on the
 * masters. */
TEST(break_without_room_for_its_release_answers_limit)
{
    static struct flight *taken[LIMIT_ROUNDS];
    unsigned count = 0;
    lock("LOCK a 60s HOLD");
    start_break(READ_MS);
    w.masters[4].hung = true; /* keeps the round of the freeze in use */
    while ((taken[count] = pool_take(&w.engine.flights.pool)) != NULL)
        count++;
    cluster_pass_ms(&w, 60);
    while (count > 0)
        pool_give(&w.engine.flights.pool, taken[--count]);
    cluster_expect(&w, "broken a of 1");
    cluster_expect(&w, "! LOST a %s gone", token);
    cluster_expect(&w, "LIMIT operations");
    ck_assert_uint_eq(cluster_count(&w, "a"), 1);
    ck_assert_uint_eq(w.engine.stats.broken, 1);
    w.masters[4].hung = false;
}

TEST(client_that_leaves_before_the_read_breaks_nothing)
{
    lock("LOCK a 60s");
    cluster_hang(&w, 5, true);
    send_break("BREAK a");
    cluster_lose_client(&w, &w.others[1]);
    cluster_hang(&w, 5, false);
    cluster_pass_ms(&w, 100);
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
}

/* The client leaves _i ms after it has sent BREAK. By then the key has been read, and the freeze
 * has been sent. */
TEST_LOOP(client_that_leaves_during_the_freeze_still_breaks_the_lock, READ_MS, FROZEN_MS + 1)
{
    set_nodes(0, 4, A);
    start_break(_i);
    cluster_lose_client(&w, &w.others[1]);
    cluster_pass_ms(&w, 100);
    cluster_expect(&w, "broken a of 0");
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.breaks, 1);
}

TEST(number_of_breaks_at_once_is_limited)
{
    cluster_hang(&w, 5, true);
    for (unsigned i = 0; i < LIMIT_BREAKS; i++)
        cluster_send_as(&w, &w.others[1], "#%u BREAK r%u", i, i);
    cluster_settle(&w);
    cluster_expect(&w, "(nothing)");
    send_break("#x BREAK x");
    cluster_expect(&w, "#x LIMIT breaks");
    /* When the daemon stops, every BREAK is answered and nothing is left of it. */
    engine_drain(&w.engine, w.now_ns);
    engine_abandon(&w.engine, w.now_ns);
    for (unsigned i = 0; i < LIMIT_BREAKS; i++)
        ck_assert_ptr_nonnull(strstr(cluster_take_reply(&w), "SHUTDOWN"));
    cluster_hang(&w, 5, false);
}

/* STATS counts requests for locks by outcome; BREAK has a counter of its own. */
TEST(break_is_not_counted_among_lock_outcomes)
{
    uint64_t before[ROUND_KINDS][OUTCOME_COUNT];
    set_nodes(0, 4, A);
    memcpy(before, w.engine.stats.outcomes, sizeof(before));
    send_break("BREAK a");
    send_break("BREAK a");
    ck_assert_mem_eq(before, w.engine.stats.outcomes, sizeof(before));
    ck_assert_uint_eq(w.engine.stats.broken, 1);
}
