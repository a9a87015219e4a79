/*
 * LOCK with SLOTS: which slot a client gets, the order of the clients that wait, and what is
 * watched for them. The tests run the shipped engine on fake masters and virtual time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

/* The lock of each tag that was granted last. */
static char token[LIMIT_TOKEN + 1];
static char slot[LIMIT_RESOURCE + 1];

/* However a test ended, every key, waiter and seeker is gone. */
static void teardown(void)
{
    const struct lock_manager *manager = &w.engine.manager;
    ck_assert_uint_eq(manager->semaphores.reserved, 0);
    ck_assert_uint_eq(manager->semaphores.pool.in_use, 0);
    ck_assert_uint_eq(manager->semaphores.seekers.in_use, 0);
    ck_assert_uint_eq(manager->pending_requests.in_use, 0);
    ck_assert_uint_eq(manager->waiting, 0);
    ck_assert_uint_eq(manager->impatient, 0);
    ck_assert_uint_eq(manager->holding, 0);
    ck_assert_uint_eq(manager->waited_for_count, 0);
    ck_assert_uint_eq(manager->resources.pool.in_use, manager->locks.in_use);
    cluster_teardown();
}

const struct runner_settings runner_settings = {.setup = cluster_setup_settled,
                                                .teardown = teardown};

/* The next reply grants a slot to the request with this tag. Sets token and slot. */
static void expect_slot(const char *tag)
{
    char got[LIMIT_TAG + 1];
    const char *reply = cluster_take_reply(&w);
    ck_assert_msg(sscanf(reply, "#%32s OK %40s %*d %*d %*s %256s", got, token, slot) ==
                          3 && // NOLINT
                      strcmp(got, tag) == 0,
                  "not a slot for %s: %s", tag, reply);
}

static void unlock_slot(void)
{
    cluster_submit(&w, "#u UNLOCK %s %s", slot, token);
    cluster_expect(&w, "#u OK");
}

/* A client of another daemon holds the slot for so many milliseconds. */
static void occupy_slot(unsigned number, int64_t ms)
{
    char name[8];
    snprintf(name, sizeof(name), "s#%u", number);
    cluster_occupy(&w, name, ms);
}

/* --- without WAIT --- */

TEST(each_client_gets_a_slot_of_its_own)
{
    bool taken[4] = {false};
    for (unsigned i = 0; i < 3; i++) {
        unsigned number;
        cluster_submit(&w, "#a LOCK s 10s SLOTS 3");
        expect_slot("a");
        ck_assert_int_eq(sscanf(slot, "s#%u", &number), 1);
        ck_assert_uint_ge(number, 1);
        ck_assert_uint_le(number, 3);
        ck_assert(!taken[number]);
        taken[number] = true;
        ck_assert_uint_eq(cluster_count(&w, slot), 5);
    }
    unsigned before = cluster_commands(&w);
    cluster_submit(&w, "#a LOCK s 10s SLOTS 3");
    cluster_expect(&w, "#a HELD 10000");
    ck_assert_uint_eq(cluster_commands(&w), before);
    unlock_slot();
    cluster_submit(&w, "#a LOCK s 10s SLOTS 3");
    expect_slot("a");
}

TEST(slot_is_an_ordinary_lock)
{
    cluster_submit(&w, "#a LOCK s 10s SLOTS 1 FENCE HOLD");
    expect_slot("a");
    ck_assert_str_eq(slot, "s#1");
    cluster_submit(&w, "#b LOCK s#1 10s");
    cluster_expect(&w, "#b HELD 10000");
    cluster_submit(&w, "#c STATUS s#1");
    cluster_expect(&w, "#c HELD 10000");
    /* The name of the semaphore is the name of another lock. */
    cluster_submit(&w, "#d LOCK s 10s");
    cluster_expect_grant(&w, "d");
    cluster_submit(&w, "#e EXTEND s#1 %s 20s", token);
    cluster_expect(&w, "#e OK %s 19790 0", token);
    unlock_slot();
    cluster_submit(&w, "#b LOCK s#1 10s");
    cluster_expect_grant(&w, "b");
    cluster_submit(&w, "#a LOCK s 10s SLOTS 1");
    cluster_expect(&w, "#a HELD 10000");
}

/* Slots that other daemons hold are tried, up to eight of them. */
TEST(held_is_certain_with_up_to_eight_slots)
{
    for (unsigned number = 1; number <= 7; number++)
        occupy_slot(number, 1000 * number);
    cluster_submit(&w, "#a LOCK s 10s SLOTS 7");
    cluster_pass_ms(&w, 1);
    cluster_expect(&w, "#a HELD 1000");
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, 7);
    for (unsigned i = 0; i < 20; i++) {
        cluster_submit(&w, "#a LOCK s 10s SLOTS 8");
        expect_slot("a");
        ck_assert_str_eq(slot, "s#8");
        unlock_slot();
    }
}

/* The daemon does not try a slot that it has granted itself. But once an extension has shown that
 * the lock was released through another daemon, it tries the slot again. */
TEST(slot_whose_hold_is_gone_is_tried_again)
{
    cluster_submit(&w, "#a LOCK s 3s SLOTS 1 HOLD");
    expect_slot("a");
    cluster_vacate(&w, "s#1");
    cluster_submit(&w, "#b LOCK s 10s SLOTS 1");
    cluster_expect(&w, "#b HELD 3000");
    cluster_pass_ms(&w, 1000);
    cluster_expect(&w, "! LOST s#1 %s gone", token);
    cluster_submit(&w, "#c LOCK s 10s SLOTS 1");
    expect_slot("c");
}

TEST(tries_without_wait_are_limited)
{
    for (unsigned number = 1; number <= 20; number++)
        occupy_slot(number, 5000);
    cluster_submit(&w, "#a LOCK s 10s SLOTS 20");
    cluster_expect(&w, "#a HELD 5000");
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, 8);
}

/* Each round for slots 1 to 5 is outbid, and the one after it too. */
TEST(rounds_that_are_outbid_do_not_take_the_tries_of_other_slots)
{
    char key[32], ballot[32];
    int64_t fence = INT64_C(1900000000000000);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = NS_PER_MS;
    for (unsigned tries = 0; tries < 10; tries++) {
        cluster_send(&w, "#a LOCK s 10s SLOTS 6 FENCE");
        for (unsigned ms = 0; ms < 40; ms++, fence += 1000) {
            for (unsigned at = 0; at < 25; at++) {
                snprintf(key, sizeof(key), "redlockd:fence:s#%u", at / 5 + 1);
                snprintf(ballot, sizeof(ballot), "%" PRId64, fence);
                cluster_set(&w, at % 5, key, ballot, 0);
            }
            cluster_pass_ms(&w, 1);
        }
        expect_slot("a");
        ck_assert_str_eq(slot, "s#6");
        cluster_send(&w, "#u UNLOCK %s %s", slot, token);
        cluster_pass_ms(&w, 5);
        cluster_expect(&w, "#u OK");
    }
}

TEST(no_quorum_ends_the_tries)
{
    cluster_kill(&w, 0);
    cluster_kill(&w, 1);
    cluster_kill(&w, 2);
    cluster_submit(&w, "#a LOCK s 10s SLOTS 5");
    cluster_pass_ms(&w, 60);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "#a NOQUORUM 2/5", 15), 0);
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, 1);
}

/* A LOCK without WAIT ignores the pause that the failed round before it has left. */
TEST(failed_round_does_not_hold_up_the_next_lock)
{
    cluster_hang(&w, 3, true);
    cluster_submit(&w, "#a LOCK s 10s SLOTS 1");
    cluster_pass_ms(&w, 51);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "#a NOQUORUM 2/5", 15), 0);
    cluster_submit(&w, "#b LOCK s 10s SLOTS 1");
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, 2);
    cluster_hang(&w, 3, false);
    cluster_pass_ms(&w, 51);
    const char *reply = cluster_take_reply(&w);
    ck_assert_msg(strncmp(reply, "#b HELD", 7) != 0, "%s", reply);
}

/* While the rounds of others run, it is not known that all slots are held. */
TEST(lock_is_not_refused_before_the_rounds_of_others_have_ended)
{
    cluster_hang(&w, 5, true);
    cluster_send_as(&w, &w.others[0], "#a LOCK s 10s SLOTS 1");
    cluster_send(&w, "#b LOCK s 10s SLOTS 1");
    cluster_send(&w, "#c LOCK s 10s SLOTS 1");
    cluster_settle(&w);
    cluster_expect(&w, "(nothing)");
    cluster_lose_client(&w, &w.others[0]);
    cluster_hang(&w, 5, false);
    cluster_settle(&w);
    expect_slot("b");
    cluster_expect(&w, "#c HELD 10000");
}

/* A LOCK that has nothing left to try does not hold up one that may have more slots. */
TEST(lock_that_cannot_be_served_holds_up_no_other)
{
    cluster_hang(&w, 5, true);
    cluster_send(&w, "#a LOCK s 10s SLOTS 1");
    cluster_send(&w, "#b LOCK s 10s SLOTS 1");
    cluster_send(&w, "#c LOCK s 10s SLOTS 3");
    cluster_settle(&w);
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, 2);
    cluster_hang(&w, 5, false);
    cluster_settle(&w);
    expect_slot("a");
    expect_slot("c");
    cluster_expect(&w, "#b HELD 10000");
}

/* The LOCK with WAIT waits for its start, because too many rounds are in flight. */
TEST(lock_without_wait_does_not_wait_for_the_start_of_others)
{
    cluster_hang(&w, 5, true);
    for (unsigned i = 0; i < LIMIT_ADMISSION_START; i++)
        cluster_send_as(&w, &w.others[0], "#%u LOCK key-%u 10s WAIT 60s", i, i);
    cluster_send(&w, "#a LOCK s 10s SLOTS 1 WAIT 60s");
    cluster_send(&w, "#b LOCK s 10s SLOTS 1");
    cluster_pass_ms(&w, 51);
    bool answered = false;
    for (const char *reply; (reply = cluster_next_reply(&w)) != NULL;)
        answered = answered || strcmp(reply, "#b LIMIT busy") == 0;
    ck_assert(answered);
    cluster_end_client(&w, &w.others[0]);
    cluster_end_client(&w, &w.client);
    cluster_pass_ms(&w, 2000);
}

/* --- with WAIT --- */

TEST(wait_without_a_quorum_ends_with_noquorum)
{
    cluster_kill(&w, 0);
    cluster_kill(&w, 1);
    cluster_kill(&w, 2);
    cluster_pass_ms(&w, 10);
    cluster_submit(&w, "#a LOCK s 10s SLOTS 5 WAIT 1s");
    cluster_submit(&w, "#b LOCK s 10s SLOTS 5 WAIT 1s");
    cluster_pass_ms(&w, 1001);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "#a NOQUORUM 2/5", 15), 0);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "#b NOQUORUM 2/5", 15), 0);
}

/* The LOCK without WAIT has left the slot without tracking. */
TEST(slot_that_was_tried_before_the_wait_is_watched_as_well)
{
    cluster_occupy(&w, "s#1", 50000);
    w.lazy = true;
    cluster_send_as(&w, &w.others[0], "#a LOCK s 10s SLOTS 1");
    cluster_send(&w, "#b LOCK s 10s SLOTS 1 WAIT 60s");
    w.lazy = false;
    cluster_pass_ms(&w, 10);
    cluster_expect(&w, "#a HELD 50000");
    cluster_vacate(&w, "s#1");
    expect_slot("b");
}

TEST(waiters_of_all_slots_are_served_in_order_of_arrival)
{
    enum { SLOTS = 3, WAITERS = 12 };
    char held[SLOTS][LIMIT_TOKEN + 1];
    char names[SLOTS][8];
    char tag[8];
    for (unsigned i = 0; i < SLOTS; i++) {
        cluster_submit(&w, "#a LOCK s 10s SLOTS 3 WAIT 1s");
        expect_slot("a");
        memcpy(held[i], token, sizeof(token));
        memcpy(names[i], slot, sizeof(names[i]));
    }
    for (unsigned i = 0; i < WAITERS; i++)
        cluster_submit(&w, "#w%u LOCK s 10s SLOTS 3 WAIT 60s", i);
    cluster_expect(&w, "(nothing)");
    unsigned before = cluster_commands(&w);
    for (unsigned i = 0; i < WAITERS; i++) {
        unsigned which = i * 7 % SLOTS;
        cluster_submit(&w, "#u UNLOCK %s %s", names[which], held[which]);
        cluster_expect(&w, "#u OK");
        snprintf(tag, sizeof(tag), "w%u", i);
        expect_slot(tag);
        ck_assert_str_eq(slot, names[which]);
        memcpy(held[which], token, sizeof(token));
    }
    /* Each slot was handed over: one command to each master. */
    ck_assert_uint_eq(w.engine.stats.handovers, WAITERS);
    ck_assert_uint_eq(cluster_commands(&w) - before, 5 * WAITERS);
}

TEST(waiters_cost_nothing_while_nothing_changes)
{
    for (unsigned i = 0; i < 3; i++)
        cluster_submit(&w, "#a LOCK s 60s SLOTS 3");
    for (unsigned i = 0; i < 500; i++)
        cluster_submit(&w, "#w%u LOCK s 10s SLOTS 3 WAIT 60s", i);
    cluster_pass_ms(&w, 1000);
    unsigned before = cluster_commands(&w);
    cluster_pass_ms(&w, 30000);
    ck_assert_uint_eq(cluster_commands(&w), before);
    ck_assert_uint_eq(w.engine.manager.semaphores.seekers.in_use, 3);
    cluster_end_client(&w, &w.client);
}

TEST(slot_that_is_released_elsewhere_wakes_the_first_waiter)
{
    for (unsigned number = 1; number <= 12; number++)
        occupy_slot(number, 50000);
    cluster_submit(&w, "#a LOCK s 10s SLOTS 12 WAIT 60s");
    cluster_submit(&w, "#b LOCK s 10s SLOTS 12 WAIT 60s");
    cluster_pass_ms(&w, 10);
    /* Two slots were tried; the others were only probed. */
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, 2);
    cluster_expect(&w, "(nothing)");
    cluster_vacate(&w, "s#9");
    expect_slot("a");
    ck_assert_str_eq(slot, "s#9");
    cluster_vacate(&w, "s#2");
    expect_slot("b");
    ck_assert_str_eq(slot, "s#2");
}

TEST(slot_that_expires_wakes_the_first_waiter)
{
    cluster_occupy(&w, "s#1", 3000);
    cluster_occupy(&w, "s#2", 500);
    cluster_submit(&w, "#a LOCK s 10s SLOTS 2 WAIT 60s");
    cluster_submit(&w, "#b LOCK s 10s SLOTS 2 WAIT 2s");
    cluster_submit(&w, "#c LOCK s 10s SLOTS 2");
    cluster_expect(&w, "#c HELD 500");
    cluster_pass_ms(&w, 510);
    expect_slot("a");
    cluster_pass_ms(&w, 1490);
    cluster_expect(&w, "#b HELD 1000");
}

/* A round that is refused does not cost a LOCK its place. */
TEST(refused_round_keeps_the_place)
{
    cluster_occupy(&w, "s#1", 50000);
    cluster_occupy(&w, "s#2", 50000);
    cluster_hang(&w, 5, true);
    for (unsigned i = 0; i < 3; i++)
        cluster_send(&w, "#%c LOCK s 10s SLOTS 2 WAIT 60s", (char)('a' + i));
    cluster_settle(&w);
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, 2);
    cluster_hang(&w, 5, false);
    cluster_pass_ms(&w, 10);
    cluster_expect(&w, "(nothing)");
    cluster_vacate(&w, "s#2");
    expect_slot("a");
    unlock_slot();
    expect_slot("b");
    unlock_slot();
    expect_slot("c");
}

/* --- different numbers of slots --- */

TEST(locks_with_fewer_slots_share_the_queue)
{
    cluster_occupy(&w, "s#1", 50000);
    cluster_occupy(&w, "s#2", 50000);
    cluster_submit(&w, "#a LOCK s 10s SLOTS 1 WAIT 60s");
    cluster_submit(&w, "#b LOCK s 10s SLOTS 2 WAIT 60s");
    cluster_pass_ms(&w, 10);
    /* Slot 2 is not for the first LOCK, and the second one does not overtake it. */
    cluster_vacate(&w, "s#2");
    cluster_expect(&w, "(nothing)");
    /* A client that wants the slot by its name need not wait for those that may not have it. */
    cluster_submit(&w, "#p LOCK s#2 10s");
    cluster_expect_grant(&w, "p");
    cluster_submit(&w, "#q LOCK s#2 10s WAIT 20s");
    cluster_pass_ms(&w, 10010);
    cluster_expect_grant(&w, "q");
    cluster_pass_ms(&w, 10010);
    cluster_vacate(&w, "s#1");
    expect_slot("a");
    ck_assert_str_eq(slot, "s#1");
    cluster_pass_ms(&w, 1);
    expect_slot("b");
    ck_assert_str_eq(slot, "s#2");
}

/* --- clients of one slot --- */

TEST(clients_that_want_one_slot_take_turns_with_the_others)
{
    char first[LIMIT_TOKEN + 1];
    cluster_submit(&w, "#a LOCK s#1 10s");
    memcpy(first, cluster_expect_grant(&w, "a"), sizeof(first));
    cluster_submit(&w, "#b LOCK s 10s SLOTS 1 WAIT 60s");
    cluster_submit(&w, "#c LOCK s#1 10s WAIT 60s");
    cluster_submit(&w, "#d LOCK s 10s SLOTS 1 WAIT 60s");
    cluster_submit(&w, "#u UNLOCK s#1 %s", first);
    cluster_expect(&w, "#u OK");
    expect_slot("b");
    unlock_slot();
    memcpy(first, cluster_expect_grant(&w, "c"), sizeof(first));
    cluster_submit(&w, "#u UNLOCK s#1 %s", first);
    cluster_expect(&w, "#u OK");
    expect_slot("d");
}

/* --- ends --- */

TEST(client_that_leaves_frees_its_place)
{
    cluster_occupy(&w, "s#1", 50000);
    cluster_send_as(&w, &w.others[0], "#a LOCK s 10s SLOTS 1 WAIT 60s HOLD");
    cluster_send_as(&w, &w.others[1], "#b LOCK s 10s SLOTS 1 WAIT 60s HOLD");
    cluster_settle(&w);
    cluster_lose_client(&w, &w.others[0]);
    cluster_settle(&w);
    cluster_vacate(&w, "s#1");
    expect_slot("b");
    cluster_end_client(&w, &w.others[1]);
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "s#1"), 0);
}

/* The client leaves while a round runs for its LOCK: the round is undone, and the next LOCK gets
 * the slot. */
TEST(client_that_leaves_during_its_round_frees_the_slot)
{
    cluster_hang(&w, 5, true);
    cluster_send_as(&w, &w.others[0], "#a LOCK s 10s SLOTS 1 WAIT 60s");
    cluster_send_as(&w, &w.others[1], "#b LOCK s 10s SLOTS 1 WAIT 60s");
    cluster_settle(&w);
    cluster_lose_client(&w, &w.others[0]);
    cluster_hang(&w, 5, false);
    cluster_settle(&w);
    cluster_pass_ms(&w, 20);
    expect_slot("b");
    ck_assert_uint_eq(cluster_count(&w, "s#1"), 5);
    unlock_slot();
}

TEST(wait_that_ends_during_a_round_gets_its_result)
{
    cluster_hang(&w, 5, true);
    cluster_send(&w, "#a LOCK s 10s SLOTS 1 WAIT 20ms");
    cluster_send(&w, "#b LOCK s 10s SLOTS 1 WAIT 20ms");
    cluster_pass_ms(&w, 21);
    cluster_expect(&w, "#b HELD -1");
    cluster_expect(&w, "(nothing)");
    cluster_hang(&w, 5, false);
    cluster_settle(&w);
    expect_slot("a");
}

TEST(drain_answers_every_waiter)
{
    cluster_occupy(&w, "s#1", 50000);
    for (unsigned i = 0; i < 3; i++)
        cluster_submit(&w, "#%u LOCK s 10s SLOTS 2 WAIT 60s", i);
    expect_slot("0");
    cluster_submit(&w, "#3 LOCK t 10s SLOTS 2 WAIT 60s");
    expect_slot("3");
    engine_drain(&w.engine, w.now_ns);
    cluster_expect(&w, "#1 SHUTDOWN");
    cluster_expect(&w, "#2 SHUTDOWN");
    cluster_expect(&w, "(nothing)");
}

/* The daemon stops while it tries the first slot, which is held. It has not tried the second one,
 * so it must not say that both are held. */
TEST(drain_during_a_try_is_not_held)
{
    occupy_slot(1, 5000);
    occupy_slot(2, 5000);
    cluster_send(&w, "#a LOCK s 10s SLOTS 2");
    engine_drain(&w.engine, w.now_ns);
    cluster_settle(&w);
    cluster_expect(&w, "#a SHUTDOWN");
}

TEST(masters_that_restart_do_not_lose_waiters)
{
    cluster_occupy(&w, "s#1", 300);
    cluster_submit(&w, "#a LOCK s 10s SLOTS 1 WAIT 60s");
    cluster_hang(&w, 3, true);
    cluster_pass_ms(&w, 2000);
    cluster_expect(&w, "(nothing)");
    cluster_hang(&w, 3, false);
    cluster_pass_ms(&w, 2000);
    expect_slot("a");
    unlock_slot();
}

/* One master has seen an absurd ballot for the first slot. It must not raise those of the other. */
TEST(ballot_of_one_slot_raises_no_ballot_of_another)
{
    static const char absurd[] = "9007199254740900";
    cluster_set(&w, 0, "redlockd:fence:s#1", absurd, 0);
    for (unsigned i = 1; i < 4; i++)
        cluster_set(&w, i, "s#1", "foreign", 10000);
    for (unsigned i = 0; i < 20; i++) {
        cluster_submit(&w, "#a LOCK s 10s SLOTS 2 FENCE");
        expect_slot("a");
        ck_assert_str_eq(slot, "s#2");
        unlock_slot();
    }
    ck_assert_int_lt(atoll(cluster_value(&w, 0, "redlockd:fence:s#2")), atoll(absurd));
}

/* --- STATUS --- */

TEST(status_counts_the_held_slots)
{
    cluster_submit(&w, "#s STATUS s SLOTS 3");
    cluster_expect(&w, "#s FREE 0/3");
    cluster_submit(&w, "#a LOCK s 10s SLOTS 3");
    expect_slot("a");
    cluster_occupy(&w, "s#9", 3000);
    cluster_submit(&w, "#s STATUS s SLOTS 3");
    cluster_expect(&w, "#s FREE 1/3");
    cluster_submit(&w, "#s STATUS s SLOTS 1000");
    cluster_expect(&w, "#s FREE 2/1000");
    cluster_submit(&w, "#a LOCK s 10s SLOTS 3");
    cluster_submit(&w, "#a LOCK s 5s SLOTS 3");
    expect_slot("a");
    expect_slot("a");
    cluster_submit(&w, "#s STATUS s SLOTS 3");
    cluster_expect(&w, "#s HELD 5000 3/3");
    cluster_hang(&w, 3, true);
    cluster_submit(&w, "#s STATUS s SLOTS 40");
    cluster_pass_ms(&w, 101);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "#s NOQUORUM 2/5", 15), 0);
    cluster_hang(&w, 3, false);
    cluster_pass_ms(&w, 1);
}

TEST(status_of_a_client_that_leaves_ends)
{
    cluster_hang(&w, 5, true);
    cluster_send_as(&w, &w.others[0], "#s STATUS s SLOTS 100");
    cluster_settle(&w);
    cluster_lose_client(&w, &w.others[0]);
    for (unsigned i = 0; i < LIMIT_SURVEYS; i++) {
        cluster_send(&w, "#s%u STATUS s SLOTS 100", i);
        if (i == LIMIT_SURVEYS - 1)
            cluster_expect(&w, "#s%u LIMIT surveys", i);
    }
    cluster_hang(&w, 5, false);
    cluster_pass_ms(&w, 60);
    ck_assert_uint_eq(w.engine.manager.survey_pool.in_use, 0);
    cluster_hang(&w, 5, true);
    cluster_send(&w, "#t STATUS s SLOTS 100");
    cluster_settle(&w);
    engine_abandon(&w.engine, w.now_ns);
    ck_assert_uint_eq(w.engine.manager.survey_pool.in_use, 0);
    ck_assert_str_eq(w.replies[w.reply_count - 1], "#t SHUTDOWN");
    cluster_hang(&w, 5, false);
    cluster_pass_ms(&w, 1);
}

/* --- limits --- */

TEST(seekers_are_limited)
{
    enum { MANY = LIMIT_SEEKERS / LIMIT_SLOTS };
    for (unsigned i = 0; i < MANY; i++) {
        cluster_send(&w, "#h%u LOCK s%u#1 10s", i, i);
        cluster_send(&w, "#w%u LOCK s%u 10s SLOTS 1000 WAIT 60s", i, i);
    }
    unsigned rest = LIMIT_SEEKERS - MANY * LIMIT_SLOTS;
    cluster_send(&w, "#x LOCK x 10s SLOTS %u WAIT 1s", rest + 1);
    cluster_expect(&w, "#x LIMIT slots");
    cluster_settle(&w);
    for (unsigned i = 0; i < 2 * MANY; i++)
        ck_assert_ptr_nonnull(strstr(cluster_take_reply(&w), " OK "));
}
