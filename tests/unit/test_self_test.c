/*
 * engine/flight/self_test.c and a read-only guard: the parts of `redlockd -t --probe`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"
#include "tests/unit/cluster_guard.h"

enum { NODES = 5 };

const struct runner_settings runner_settings = {.setup = cluster_setup,
                                                .teardown = cluster_teardown};

static unsigned count_refused(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < w.self_tests; i++)
        count += w.self_test_refusals[i] != REASON_NONE;
    return count;
}

static unsigned keys_of(unsigned node, const char *start)
{
    unsigned count = 0;
    const struct fake_data *data = &w.masters[node].redis.data;
    for (unsigned i = 0; i < data->count; i++)
        count += strncmp(data->keys[i].name, start, strlen(start)) == 0;
    return count;
}

static void test_first_master(void)
{
    engine_self_test(&w.engine, 0, w.now_ns);
    cluster_settle(&w);
    ck_assert_uint_eq(w.self_tests, ENGINE_SELF_TESTS);
}

TEST(self_test_of_a_working_master_finds_nothing_and_leaves_nothing)
{
    test_first_master();
    ck_assert_uint_eq(count_refused(), 0);
    ck_assert_uint_eq(keys_of(0, "redlockd-probe:"), 0);
    ck_assert_uint_eq(keys_of(0, "redlockd:waits:"), 0);
    ck_assert_uint_eq(keys_of(1, "redlockd-probe:"), 0);
    /* The fence key remains for as long as the lock would have lived. */
    ck_assert_uint_eq(keys_of(0, "redlockd:fence:"), 1);
    cluster_pass_ms(&w, 4000);
    char fence[64];
    snprintf(fence, sizeof(fence), "redlockd:fence:redlockd-probe:%.16s", w.engine.flights.daemon);
    ck_assert_ptr_null(cluster_value(&w, 0, fence));
}

TEST(self_test_reports_a_refusal_with_its_reason)
{
    w.masters[0].redis.refusals[FAKE_KEYS] = "NOPERM this user has no permissions";
    test_first_master();
    ck_assert_uint_eq(count_refused(), ENGINE_SELF_TESTS);
    ck_assert_int_eq(w.self_test_refusals[0], REASON_NOPERM);
    w.masters[0].redis.refusals[FAKE_KEYS] = "ERR something new";
    w.self_tests = 0;
    test_first_master();
    ck_assert_int_eq(w.self_test_refusals[0], REASON_ERROR);
    ck_assert_str_eq(link_meaning(&w.engine.flights.masters[0].link, REASON_ERROR),
                     "ERR something new");
}

TEST(self_test_tries_each_form_of_a_release)
{
    w.masters[0].redis.refusals[REDIS_SCRIPT_RELEASES] = "NOPERM this user has no permissions";
    test_first_master();
    ck_assert_uint_eq(count_refused(), 1);
    w.masters[0].redis.refusals[FAKE_NATIVE] = "NOPERM this user has no permissions";
    w.masters[0].redis.version = "valkey_version:9.0.0\r\n";
    cluster_cut(&w, 0);
    cluster_pass_ms(&w, 5000);
    w.self_tests = 0;
    test_first_master();
    ck_assert_uint_eq(count_refused(), 2);
}

TEST(self_test_of_a_lost_master_has_no_results)
{
    w.masters[0].hung = true;
    engine_self_test(&w.engine, 0, w.now_ns);
    cluster_settle(&w);
    cluster_cut(&w, 0);
    cluster_pass_ms(&w, 100);
    ck_assert_uint_eq(w.self_tests, 0);
}

/* --- a read-only daemon --- */

TEST(read_only_daemon_leaves_new_masters_new)
{
    cluster_restart(&w, 4);
    w.read_only = true;
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 5000);
    ck_assert_uint_eq(keys_of(4, "redlockd:"), 0);
    ck_assert_int_eq(guard_own_conflict(&w.engine.flights.guard, 4, w.now_ns), REASON_NEW);
    ck_assert_int_eq(guard_own_conflict(&w.engine.flights.guard, 0, w.now_ns), REASON_NONE);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_str_ne(cluster_vote(&w, i), "-");
}

TEST(read_only_daemon_finds_the_reasons_without_a_vote)
{
    w.read_only = true;
    w.masters[0].redis.replica = true;
    w.masters[1].redis.may_evict = true;
    strcpy(w.masters[3].redis.run_id, w.masters[2].redis.run_id);
    w.masters[4].hung = true;
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 500);
    ck_assert_int_eq(guard_own_conflict(&w.engine.flights.guard, 0, w.now_ns), REASON_REPLICA);
    ck_assert_int_eq(guard_own_conflict(&w.engine.flights.guard, 1, w.now_ns), REASON_EVICTION);
    ck_assert_int_eq(guard_own_conflict(&w.engine.flights.guard, 3, w.now_ns), REASON_DUPLICATE);
    ck_assert_int_eq(guard_own_conflict(&w.engine.flights.guard, 4, w.now_ns), REASON_UNCHECKED);
}

static enum reason lease_finds(unsigned named)
{
    return guard_lease_conflict(&w.engine.flights.guard, named, w.leases[named],
                                cluster_clock_us(&w, 0));
}

/* Name b is leased to a server with another record id. Names c and d are leased to another process
 * of the same server, but the lease of d was renewed too long ago (10 s) to count. */
TEST(self_test_finds_names_leased_to_other_servers)
{
    static const char run_id[] = "cccccccccccccccccccccccccccccccccccccccc";
    cluster_pass_ms(&w, OBSERVED_MS);
    for (unsigned i = 2; i < 4; i++) {
        char lease[LIMIT_RECORD];
        const char key[] = {':', (char)('a' + i), '\0'};
        const char *key_of_name = cluster_guard_key(&w, "name", key);
        snprintf(lease, sizeof(lease), "%.40s %s feed=%" PRId64, cluster_value(&w, 0, key_of_name),
                 run_id, cluster_clock_us(&w, 0) / 1000 - (i == 3 ? 10000 : 1000));
        cluster_set(&w, 0, key_of_name, lease, QUARANTINE_MS);
    }
    cluster_lease_to_another(&w, 0, ":b", QUARANTINE_MS);
    w.read_only = true;
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 500);
    engine_self_test(&w.engine, 0, w.now_ns);
    cluster_settle(&w);
    ck_assert_int_eq(lease_finds(0), REASON_NONE);
    ck_assert_int_eq(lease_finds(1), REASON_REPOINTED);
    ck_assert_int_eq(lease_finds(2), REASON_OTHERPROCESS);
    ck_assert_int_eq(lease_finds(3), REASON_NONE);
}
