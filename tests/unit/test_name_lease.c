/*
 * engine/guard/name_lease.h: what masters say of the name of one of them. Times are in seconds.
 */
#include "engine/guard/name_lease.h"

#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"

static const struct guard_periods periods = {
    .quarantine_ns = 60 * NS_PER_S,
    .heartbeat_ns = NS_PER_S,
    .fresh_ns = 5 * NS_PER_S,
};

static struct name_lease lease;

static void fresh(void)
{
    lease = (struct name_lease){0};
    name_lease_begin(&lease);
}

static void nothing(void)
{
}

static void say(unsigned master, char digit, int64_t now_s)
{
    name_lease_on_digit(&lease, &periods, master, digit, true, now_s * NS_PER_S);
}

static enum reason refuses(int64_t now_s)
{
    return name_lease_refuses(&lease, now_s * NS_PER_S);
}

START_TEST(lease_is_held_where_masters_say_so)
{
    say(0, LEASE_OURS, 100);
    say(2, LEASE_OURS, 100);
    ck_assert_uint_eq(lease.held_on, 5);
    ck_assert_int_eq(refuses(100), REASON_NONE);
    name_lease_begin(&lease);
    ck_assert_uint_eq(lease.held_on, 0);
    ck_assert(lease.wanted);
}
END_TEST

START_TEST(another_server_conflicts_for_a_quarantine)
{
    say(0, LEASE_OURS, 100);
    say(1, LEASE_OTHER, 100);
    ck_assert_int_eq(refuses(100), REASON_REPOINTED);
    ck_assert_int_eq(refuses(159), REASON_REPOINTED);
    ck_assert_int_eq(refuses(160), REASON_NONE);
}
END_TEST

START_TEST(conflict_ends_when_its_master_says_the_name_is_ours)
{
    say(1, LEASE_OTHER, 100);
    say(0, LEASE_OURS, 101);
    ck_assert_int_eq(refuses(101), REASON_REPOINTED);
    say(1, LEASE_OURS, 102);
    ck_assert_int_eq(refuses(102), REASON_NONE);
}
END_TEST

/* A daemon that goes on renewing the lease of the process before has another master. */
START_TEST(another_process_has_until_its_daemons_can_vote_no_more)
{
    say(1, LEASE_OTHER_PROCESS, 100);
    say(2, LEASE_OTHER_PROCESS, 103);
    ck_assert_int_eq(refuses(106), REASON_OTHERPROCESS);
    ck_assert_int_eq(refuses(107), REASON_REPOINTED);
}
END_TEST

START_TEST(another_process_beside_another_server_is_repointed)
{
    say(1, LEASE_OTHER_PROCESS, 100);
    say(2, LEASE_OTHER, 100);
    ck_assert_int_eq(refuses(100), REASON_REPOINTED);
    say(2, LEASE_OURS, 101);
    ck_assert_int_eq(refuses(101), REASON_OTHERPROCESS);
}
END_TEST

START_TEST(answer_about_the_server_before_gives_no_lease)
{
    name_lease_on_digit(&lease, &periods, 0, LEASE_OURS, false, 100 * NS_PER_S);
    name_lease_on_digit(&lease, &periods, 1, LEASE_OTHER_PROCESS, false, 100 * NS_PER_S);
    ck_assert_uint_eq(lease.held_on, 0);
    ck_assert_int_eq(refuses(100), REASON_NONE);
    name_lease_on_digit(&lease, &periods, 2, LEASE_OTHER, false, 100 * NS_PER_S);
    ck_assert_int_eq(refuses(100), REASON_REPOINTED);
}
END_TEST

/* One that goes on is the same; one that had expired takes a vote. */
START_TEST(conflict_after_an_expired_one_is_another)
{
    say(1, LEASE_OTHER, 100);
    int64_t since_ns = lease.conflict_since_ns;
    say(1, LEASE_OTHER, 159);
    ck_assert_int_eq(lease.conflict_since_ns, since_ns);
    ck_assert_int_eq(refuses(219), REASON_NONE);
    say(1, LEASE_OTHER, 220);
    ck_assert_int_gt(lease.conflict_since_ns, since_ns);
    ck_assert_int_eq(refuses(220), REASON_REPOINTED);
}
END_TEST

#define ID_1 "1111111111111111111111111111111111111111"
#define ID_2 "2222222222222222222222222222222222222222"

static const struct {
    const char *lease;
    enum reason reason;
} leases[] = {
    {ID_1 " " ID_1, REASON_NONE},
    {ID_1 " " ID_1 " feed=5000", REASON_NONE},
    {ID_1 " " ID_2 " feed=5000 beef=3000", REASON_OTHERPROCESS},
    {ID_1 " " ID_2 " feed=3999", REASON_NONE},
    {ID_1 " " ID_2, REASON_OTHERPROCESS},
    {ID_2 " " ID_1 " feed=3999", REASON_REPOINTED},
    {"3/" ID_1 " " ID_1 " feed=3999", REASON_REPOINTED},
};

START_TEST(lease_that_is_found_is_for_this_server_or_not)
{
    char server[GUARD_SERVER_MAX];
    name_lease_server(0, ID_1, ID_1, server);
    ck_assert_int_eq(name_lease_finds(leases[_i].lease, server, 4000), leases[_i].reason);
}
END_TEST

START_TEST(another_database_is_another_server)
{
    char server[GUARD_SERVER_MAX];
    name_lease_server(3, ID_1, ID_2, server);
    ck_assert_str_eq(server, "3/" ID_1 " " ID_2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("name_lease");
    TCase *tests = tcase_create("leases");
    tcase_add_checked_fixture(tests, fresh, nothing);
    tcase_add_test(tests, lease_is_held_where_masters_say_so);
    tcase_add_test(tests, another_server_conflicts_for_a_quarantine);
    tcase_add_test(tests, conflict_ends_when_its_master_says_the_name_is_ours);
    tcase_add_test(tests, another_process_has_until_its_daemons_can_vote_no_more);
    tcase_add_test(tests, another_process_beside_another_server_is_repointed);
    tcase_add_test(tests, answer_about_the_server_before_gives_no_lease);
    tcase_add_test(tests, conflict_after_an_expired_one_is_another);
    tcase_add_loop_test(tests, lease_that_is_found_is_for_this_server_or_not, 0,
                        sizeof(leases) / sizeof(leases[0]));
    tcase_add_test(tests, another_database_is_another_server);
    suite_add_tcase(suite, tests);
    return suite;
}
