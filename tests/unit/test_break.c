/*
 * BREAK: the token that a quorum has is released by force, that one and no other, and whoever held
 * it or waits for it hears of it. The shipped engine among fake masters, on virtual time.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct cluster w;
static char token[LIMIT_TOKEN + 1];

static void setup(void)
{
    cluster_init(&w, 5);
    cluster_pass_ms(&w, 10);
}

/* Nothing of it is left behind, however it ended. */
static void teardown(void)
{
    cluster_pass_ms(&w, 5000);
    ck_assert_uint_eq(w.engine.manager.breakings.in_use, 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
    cluster_deinit(&w);
}

/* The others break, so that w.client can hold. */
static void say_break(const char *line)
{
    cluster_send_as(&w, &w.others[1], "%s", line);
    cluster_settle(&w);
}

static void lock(const char *line)
{
    cluster_say(&w, "%s", line);
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_heard(&w)));
}

static void set_nodes(unsigned first, unsigned last, const char *value)
{
    for (unsigned i = first; i <= last; i++)
        cluster_set(&w, i, "a", value, 10000);
}

START_TEST(lock_is_released_and_its_owner_is_named)
{
    lock("LOCK a 3s");
    say_break("BREAK a");
    cluster_expect(&w, "broken a of 1");
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.stats.broken, 1);
    cluster_say(&w, "LOCK a 3s");
    ck_assert_int_eq(strncmp(cluster_heard(&w), "OK ", 3), 0);
}
END_TEST

START_TEST(nobody_holds_what_is_free)
{
    say_break("BREAK a");
    cluster_expect(&w, "FREE");
    set_nodes(0, 1, A); /* what a minority has, nobody holds, and it is left to its time to live */
    say_break("BREAK a");
    cluster_expect(&w, "FREE");
    ck_assert_uint_eq(cluster_count(&w, "a"), 2);
}
END_TEST

START_TEST(lock_of_another_daemon_is_released_too)
{
    set_nodes(0, 2, A);
    say_break("BREAK a");
    cluster_expect(&w, "broken a of 0");
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}
END_TEST

/* Two tokens: that of the quorum goes, the other stays. */
START_TEST(no_other_token_comes_to_harm)
{
    set_nodes(0, 2, A);
    set_nodes(3, 4, B);
    say_break("BREAK a");
    cluster_expect(&w, "broken a of 0");
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 2);
    ck_assert_str_eq(cluster_value(&w, 3, "a"), B);
}
END_TEST

START_TEST(whose_connection_holds_it_is_told)
{
    lock("LOCK a 3s HOLD");
    say_break("BREAK a");
    cluster_expect(&w, "broken a of 1");
    cluster_expect(&w, "! LOST a %s gone", token);
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(w.engine.manager.holding, 0);
    cluster_pass_ms(&w, 3000);
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}
END_TEST

/* Also if it is the one that breaks it. */
START_TEST(who_breaks_his_own_hears_it_too)
{
    lock("LOCK a 3s HOLD");
    cluster_say(&w, "BREAK a");
    cluster_expect(&w, "broken a of 1");
    ck_assert_int_eq(strncmp(cluster_heard(&w), "! LOST a ", 9), 0);
    cluster_expect(&w, "OK");
}
END_TEST

START_TEST(who_waits_is_next)
{
    lock("LOCK a 60s");
    cluster_send_as(&w, &w.others[0], "#w LOCK a 3s WAIT 60s");
    cluster_settle(&w);
    say_break("BREAK a");
    cluster_expect(&w, "broken a of 1");
    const char *first = cluster_heard(&w);
    bool waiter_first = strncmp(first, "#w OK ", 6) == 0;
    ck_assert(waiter_first || strcmp(first, "OK") == 0);
    const char *second = cluster_heard(&w);
    ck_assert_msg(strncmp(second, waiter_first ? "OK" : "#w OK ", waiter_first ? 2 : 6) == 0, "%s",
                  second);
    ck_assert_uint_ge(cluster_count(&w, "a"), 3);
}
END_TEST

/* Commands take three milliseconds to each master: the BREAK looks in the first three of them,
 * freezes in the next, and then releases. */
static void start_break(int64_t pass_ms)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 3 * NS_PER_MS;
    cluster_send_as(&w, &w.others[1], "BREAK a");
    cluster_pass_ms(&w, pass_ms);
}

enum { LOOKED_MS = 4, FROZEN_MS = 7 };

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
    ck_assert_int_eq(strncmp(cluster_heard(&w), "NOQUORUM ", 9), 0);
}

/* It changes hands between the look and the freeze: what is there by then stays. */
START_TEST(what_has_changed_hands_meanwhile_is_left_alone)
{
    set_nodes(0, 4, A);
    start_break(LOOKED_MS);
    set_nodes(0, 4, B);
    cluster_pass_ms(&w, 30);
    ck_assert_int_eq(strncmp(cluster_heard(&w), "HELD ", 5), 0);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(cluster_value(&w, i, "a"), B);
    ck_assert_uint_eq(w.engine.stats.broken, 0);
}
END_TEST

/* The new holder may have a quorum with the masters that do not answer: then it is not free. */
START_TEST(what_may_have_changed_hands_meanwhile_is_not_free)
{
    set_nodes(0, 4, A);
    start_break(LOOKED_MS);
    cluster_delete(&w, 0, "a");
    set_nodes(1, 4, B);
    w.masters[3].hung = w.masters[4].hung = true;
    cluster_pass_ms(&w, 100);
    expect_noquorum();
    ck_assert_uint_eq(cluster_count(&w, "a"), 4);
    ck_assert_uint_eq(w.engine.stats.broken, 0);
}
END_TEST

START_TEST(what_was_given_back_meanwhile_is_free)
{
    set_nodes(0, 4, A);
    start_break(LOOKED_MS);
    for (unsigned i = 0; i < 5; i++)
        cluster_delete(&w, i, "a");
    cluster_pass_ms(&w, 30);
    cluster_expect(&w, "FREE");
    ck_assert_uint_eq(w.engine.stats.broken, 0);
}
END_TEST

/* It was broken: that it expired, and even has a new holder, before the release does not change
 * that. */
START_TEST(what_ends_between_the_freeze_and_the_release_is_broken)
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
END_TEST

/* A second BREAK has frozen it once more, and is the one to delete it: the first must not say that
 * the lock is free. */
START_TEST(what_another_break_has_frozen_is_not_released)
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
END_TEST

/* Of four masters two are no minority: as long as they have the frozen token, nobody else can be
 * granted the lock. */
START_TEST(half_of_the_masters_keep_it)
{
    cluster_deinit(&w);
    cluster_init(&w, 4);
    cluster_pass_ms(&w, 10);
    set_nodes(0, 3, A);
    start_break(FROZEN_MS);
    cluster_expect(&w, "broken a of 0");
    cluster_delete(&w, 0,
                   "a"); /* by an UNLOCK of another daemon, which does not reach the others */
    cluster_delete(&w, 1, "a");
    w.masters[2].hung = w.masters[3].hung = true;
    cluster_pass_ms(&w, 100);
    expect_noquorum();
    ck_assert_uint_eq(cluster_count(&w, "a"), 2);
    w.masters[2].hung = w.masters[3].hung = false;
    cluster_pass_ms(&w, 100);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}
END_TEST

/* A quorum of the masters has it, but its round has not heard so yet: its client would be told of a
 * grant that was deleted before. */
START_TEST(what_is_just_being_granted_is_not_broken)
{
    cluster_set(&w, 2, "a", B, 10000);
    w.masters[3].hung = w.masters[4].hung = true;
    cluster_say(&w, "LOCK a 3s");
    cluster_expect(&w, "(nothing)");
    snprintf(token, sizeof(token), "%s", cluster_value(&w, 0, "a"));
    cluster_set(&w, 2, "a", token, 10000);
    say_break("BREAK a");
    ck_assert_int_eq(strncmp(cluster_heard(&w), "HELD ", 5), 0);
    w.masters[3].hung = w.masters[4].hung = false;
    cluster_pass_ms(&w, 1);
    ck_assert_int_eq(strncmp(cluster_heard(&w), "OK ", 3), 0);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
    ck_assert_uint_eq(w.engine.stats.broken, 0);
}
END_TEST

START_TEST(what_is_no_token_of_ours_is_left_alone)
{
    set_nodes(0, 4, "somebody-else");
    say_break("BREAK a");
    ck_assert_int_eq(strncmp(cluster_heard(&w), "HELD ", 5), 0);
    set_nodes(0, 4, A "longer than a token");
    say_break("BREAK a");
    ck_assert_int_eq(strncmp(cluster_heard(&w), "HELD ", 5), 0);
    set_nodes(0, 4, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    say_break("BREAK a");
    ck_assert_int_eq(strncmp(cluster_heard(&w), "HELD ", 5), 0);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
}
END_TEST

START_TEST(without_a_quorum_nothing_is_done)
{
    lock("LOCK a 60s");
    for (unsigned i = 0; i < 3; i++)
        cluster_kill(&w, i);
    cluster_pass_ms(&w, 100);
    say_break("BREAK a");
    ck_assert_int_eq(strncmp(cluster_heard(&w), "NOQUORUM 2/5 need=3 ", 20), 0);
    ck_assert_ptr_nonnull(cluster_value(&w, 3, "a"));
    ck_assert_uint_eq(w.engine.stats.broken, 0);
}
END_TEST

/* Once a quorum is frozen it goes on: the masters that hang are pending_releases the release. */
START_TEST(release_that_cannot_be_confirmed_is_sent_again)
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
END_TEST

/* Three masters refuse for a moment, and would soon be asked again. */
START_TEST(what_is_still_to_be_released_is_not_extended)
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
END_TEST

/* Two of five masters are frozen, and the others do not answer. */
static void fail_to_freeze(void)
{
    start_break(LOOKED_MS);
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].hung = true;
    cluster_pass_ms(&w, 100);
    expect_noquorum();
    ck_assert_uint_eq(count_frozen(), 2);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
    ck_assert_uint_eq(w.engine.stats.broken, 0);
    ck_assert_uint_eq(w.breaks, 1); /* the log has it: the holder may lose the lock by that */
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 0;
}

static void go_on(void)
{
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].hung = false;
    cluster_pass_ms(&w, 100);
}

/* What a BREAK freezes expires when the token would have. */
static void expect_until_ms(int64_t ms)
{
    cluster_pass_ms(&w, ms - 200);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
    cluster_say(&w, "LOCK a 1s");
    ck_assert_int_eq(strncmp(cluster_heard(&w), "HELD ", 5), 0);
    cluster_pass_ms(&w, 400);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

START_TEST(without_a_frozen_quorum_nothing_is_deleted)
{
    set_nodes(0, 4, A);
    fail_to_freeze();
    go_on(); /* with the freeze that was sent to them */
    ck_assert_uint_eq(count_frozen(), 5);
    expect_until_ms(10000 - 204);
}
END_TEST

/* The other masters have only been slow: the holder goes on extending the lock. */
START_TEST(hold_lives_on_after_a_break_that_failed)
{
    lock("LOCK a 3s HOLD");
    start_break(LOOKED_MS);
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
    /* Where it was frozen it has expired, and was backfilled again. */
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
    ck_assert_uint_eq(count_frozen(), 0);
}
END_TEST

/* It was to be broken, and its holder cannot extend it any more: the promised time stands. */
START_TEST(hold_is_lost_where_the_freeze_comes_late)
{
    char lost[128];
    lock("LOCK a 3s HOLD");
    fail_to_freeze();
    ck_assert_uint_eq(w.engine.manager.holding, 1);
    go_on();
    cluster_pass_ms(&w, 1500);
    snprintf(lost, sizeof(lost), "! LOST a %s gone", token);
    const char *heard = cluster_heard(&w);
    while (strncmp(heard, "! WARN ", 7) == 0)
        heard = cluster_heard(&w);
    ck_assert_str_eq(heard, lost);
    ck_assert_uint_ge(cluster_count(&w, "a"), 3);
    cluster_say(&w, "UNLOCK a %s", token);
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}
END_TEST

START_TEST(what_is_frozen_in_part_is_held)
{
    set_nodes(0, 2, A);
    start_break(LOOKED_MS);
    for (unsigned i = 1; i < 5; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = "MISCONF";
    cluster_pass_ms(&w, 100);
    expect_noquorum();
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].delay_ns = 0;
        w.masters[i].redis.refusals[FAKE_KEYS] = NULL;
    }
    ck_assert_uint_eq(count_frozen(), 1);
    cluster_say(&w, "STATUS a");
    ck_assert_int_eq(strncmp(cluster_heard(&w), "HELD ", 5), 0);
}
END_TEST

START_TEST(break_that_is_asked_for_again_completes)
{
    lock("LOCK a 60s");
    fail_to_freeze();
    say_break("BREAK a");
    expect_noquorum(); /* the others are suspect */
    go_on();
    say_break("BREAK a");
    cluster_expect(&w, "broken a of 1");
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}
END_TEST

/* Its token, or a frozen one of another BREAK, is all that the masters have. */
START_TEST(what_is_frozen_everywhere_is_broken)
{
    lock("LOCK a 60s HOLD");
    char frozen[LIMIT_TOKEN + 1];
    snprintf(frozen, sizeof(frozen), "!000000000000000%s", token + 16);
    set_nodes(0, 4, frozen);
    say_break("BREAK a");
    cluster_expect(&w, "broken a of 1");
    cluster_expect(&w, "! LOST a %s gone", token);
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}
END_TEST

/* Alone, with others, and by a command of the server for that. */
START_TEST(unlock_deletes_what_is_frozen)
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
        cluster_heard(&w);
        cluster_heard(&w);
    } else {
        cluster_say(&w, "UNLOCK a %s", token);
        /* The server's own command knows of no frozen tokens: the script comes after it. */
        cluster_expect(&w, versions[_i % 2] != NULL ? "GONE" : "OK");
        cluster_pass_ms(&w, 100);
        ck_assert_uint_eq(w.engine.stats.deferred_releases, 0); /* no master was away */
    }
    ck_assert_uint_le(cluster_count(&w, "a"), versions[_i % 2] != NULL ? 2 : 0);
}
END_TEST

/* The next in line gets the lock with its release. */
START_TEST(unlock_hands_over_what_is_frozen)
{
    lock("LOCK a 60s");
    char frozen[LIMIT_TOKEN + 1];
    snprintf(frozen, sizeof(frozen), "!000000000000000%s", token + 16);
    set_nodes(0, 4, frozen);
    cluster_send_as(&w, &w.others[0], "#w LOCK a 3s WAIT 60s");
    cluster_settle(&w);
    cluster_say(&w, "#u UNLOCK a %s", token);
    cluster_pass_ms(&w, 50);
    const char *first = cluster_heard(&w);
    ck_assert_msg(strncmp(first, "#u OK", 5) == 0 || strncmp(first, "#w OK ", 6) == 0, "%s", first);
    const char *second = cluster_heard(&w);
    ck_assert_msg(strncmp(second, "#u OK", 5) == 0 || strncmp(second, "#w OK ", 6) == 0, "%s",
                  second);
}
END_TEST

/* The one that does not answer keeps the key until its time is over. */
START_TEST(master_that_has_not_answered_the_freeze_is_sent_no_release)
{
    set_nodes(0, 4, A);
    start_break(LOOKED_MS);
    w.masters[4].hung = true;
    cluster_pass_ms(&w, 100);
    cluster_expect(&w, "broken a of 0");
    cluster_expect(&w, "OK");
    w.masters[4].hung = false;
    cluster_pass_ms(&w, 2000);
    ck_assert_uint_eq(cluster_count(&w, "a"), 1);
    ck_assert_uint_eq(count_frozen(), 1);
}
END_TEST

/* Another BREAK, or a crowd, has all rounds there are: the masters are pending_releases the
 * release. */
START_TEST(what_has_no_room_for_its_release_is_broken)
{
    static struct flight *taken[LIMIT_ROUNDS];
    unsigned count = 0;
    lock("LOCK a 60s HOLD");
    start_break(LOOKED_MS);
    w.masters[4].hung = true; /* so that the freeze keeps its place */
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
END_TEST

START_TEST(who_leaves_before_the_look_has_nothing_broken)
{
    lock("LOCK a 60s");
    cluster_hang(&w, 5, true);
    say_break("BREAK a");
    cluster_lose_client(&w, &w.others[1]);
    cluster_hang(&w, 5, false);
    cluster_pass_ms(&w, 100);
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
}
END_TEST

START_TEST(who_leaves_after_it_has_had_it_broken)
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
END_TEST

START_TEST(so_many_at_once_and_no_more)
{
    cluster_hang(&w, 5, true);
    for (unsigned i = 0; i < LIMIT_BREAKS; i++)
        cluster_send_as(&w, &w.others[1], "#%u BREAK r%u", i, i);
    cluster_settle(&w);
    cluster_expect(&w, "(nothing)");
    say_break("#x BREAK x");
    cluster_expect(&w, "#x LIMIT breaks");
    /* The daemon stops: all are answered, and nothing is left of them. */
    engine_drain(&w.engine, w.now_ns);
    engine_abandon(&w.engine, w.now_ns);
    for (unsigned i = 0; i < LIMIT_BREAKS; i++)
        ck_assert_ptr_nonnull(strstr(cluster_heard(&w), "SHUTDOWN"));
    cluster_hang(&w, 5, false);
}
END_TEST

/* STATS count requests for locks; BREAK has a number of its own. */
START_TEST(outcomes_of_locks_do_not_count_it)
{
    uint64_t before[ROUND_KINDS][OUTCOME_COUNT];
    set_nodes(0, 4, A);
    memcpy(before, w.engine.stats.outcomes, sizeof(before));
    say_break("BREAK a");
    say_break("BREAK a");
    ck_assert_mem_eq(before, w.engine.stats.outcomes, sizeof(before));
    ck_assert_uint_eq(w.engine.stats.broken, 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("break");
    TCase *tests = tcase_create("break");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, lock_is_released_and_its_owner_is_named);
    tcase_add_test(tests, nobody_holds_what_is_free);
    tcase_add_test(tests, lock_of_another_daemon_is_released_too);
    tcase_add_test(tests, no_other_token_comes_to_harm);
    tcase_add_test(tests, whose_connection_holds_it_is_told);
    tcase_add_test(tests, who_breaks_his_own_hears_it_too);
    tcase_add_test(tests, who_waits_is_next);
    tcase_add_test(tests, what_has_changed_hands_meanwhile_is_left_alone);
    tcase_add_test(tests, what_may_have_changed_hands_meanwhile_is_not_free);
    tcase_add_test(tests, what_was_given_back_meanwhile_is_free);
    tcase_add_test(tests, what_is_just_being_granted_is_not_broken);
    tcase_add_test(tests, what_is_no_token_of_ours_is_left_alone);
    tcase_add_test(tests, without_a_quorum_nothing_is_done);
    tcase_add_test(tests, what_ends_between_the_freeze_and_the_release_is_broken);
    tcase_add_test(tests, what_another_break_has_frozen_is_not_released);
    tcase_add_test(tests, half_of_the_masters_keep_it);
    tcase_add_test(tests, release_that_cannot_be_confirmed_is_sent_again);
    tcase_add_test(tests, without_a_frozen_quorum_nothing_is_deleted);
    tcase_add_test(tests, hold_lives_on_after_a_break_that_failed);
    tcase_add_test(tests, hold_is_lost_where_the_freeze_comes_late);
    tcase_add_test(tests, what_is_frozen_in_part_is_held);
    tcase_add_test(tests, break_that_is_asked_for_again_completes);
    tcase_add_test(tests, what_is_frozen_everywhere_is_broken);
    tcase_add_loop_test(tests, unlock_deletes_what_is_frozen, 0, 4);
    tcase_add_test(tests, unlock_hands_over_what_is_frozen);
    tcase_add_test(tests, master_that_has_not_answered_the_freeze_is_sent_no_release);
    tcase_add_test(tests, what_is_still_to_be_released_is_not_extended);
    tcase_add_test(tests, what_has_no_room_for_its_release_is_broken);
    tcase_add_test(tests, who_leaves_before_the_look_has_nothing_broken);
    tcase_add_loop_test(tests, who_leaves_after_it_has_had_it_broken, LOOKED_MS, FROZEN_MS + 1);
    tcase_add_test(tests, so_many_at_once_and_no_more);
    tcase_add_test(tests, outcomes_of_locks_do_not_count_it);
    suite_add_tcase(suite, tests);
    return suite;
}
