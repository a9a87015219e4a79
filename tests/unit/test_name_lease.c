/*
 * engine/guard/name_lease.h: what the other masters report about the lease on one master's name.
 * Times are in seconds.
 */
#include "engine/guard/name_lease.h"

#include "protocol/units.h"
#include "tests/runner.h"

static const struct guard_periods periods = {
    .quarantine_ns = 60 * NS_PER_S,
    .heartbeat_ns = NS_PER_S,
    .fresh_ns = 5 * NS_PER_S,
};

static struct name_lease lease;

static void reset_lease(void)
{
    lease = (struct name_lease){0};
    name_lease_begin(&lease);
}

const struct runner_settings runner_settings = {.setup = reset_lease};

/* A master answers a heartbeat with this digit (LEASE_OURS, LEASE_OTHER, ...) for the lease. */
static void report(unsigned master, char digit, int64_t now_s)
{
    name_lease_on_digit(&lease, &periods, master, digit, true, true, now_s * NS_PER_S);
}

static enum reason refuses(int64_t now_s)
{
    return name_lease_refuses(&lease, now_s * NS_PER_S);
}

TEST(lease_is_held_on_the_masters_that_report_it)
{
    report(0, LEASE_OURS, 100);
    report(2, LEASE_OURS, 100);
    ck_assert_uint_eq(lease.held_on, 5);
    ck_assert_int_eq(refuses(100), REASON_NONE);
    name_lease_begin(&lease);
    ck_assert_uint_eq(lease.held_on, 0);
    ck_assert(lease.wanted);
}

/* The lease may have been renewed just before. The daemon that renewed it counts votes for 5 s, and
 * a lock that it grants by them lives for at most a quarantine. */
TEST(conflict_with_another_server_lasts_as_long_as_a_lock_of_its_votes)
{
    report(0, LEASE_OURS, 100);
    report(1, LEASE_OTHER, 100);
    ck_assert_int_eq(refuses(100), REASON_REPOINTED);
    ck_assert_int_eq(refuses(164), REASON_REPOINTED);
    ck_assert_int_eq(refuses(165), REASON_NONE);
}

TEST(conflict_ends_when_its_master_reports_our_lease_twice)
{
    report(1, LEASE_OTHER, 100);
    report(0, LEASE_OURS, 101);
    ck_assert_int_eq(refuses(101), REASON_REPOINTED);
    report(1, LEASE_OURS, 102);
    ck_assert_int_eq(refuses(102), REASON_REPOINTED);
    report(1, LEASE_OURS, 103);
    ck_assert_int_eq(refuses(103), REASON_NONE);
}

/* Between its two reports of our lease, the master reports the other server again, or may have lost
 * its leases. */
TEST(conflict_ends_only_by_two_reports_in_a_row)
{
    report(1, LEASE_OTHER, 100);
    report(1, LEASE_OURS, 101);
    report(1, LEASE_OTHER, 102);
    report(1, LEASE_OURS, 103);
    name_lease_on_digit(&lease, &periods, 1, LEASE_OURS, true, false, 104 * NS_PER_S);
    report(1, LEASE_OURS, 105);
    ck_assert_int_eq(refuses(105), REASON_REPOINTED);
    ck_assert_uint_eq(lease.held_on, 0);
    report(1, LEASE_OURS, 106);
    ck_assert_int_eq(refuses(106), REASON_NONE);
    ck_assert_uint_eq(lease.held_on, 2);
}

/* The master may have lost the lease of the other server just before it names ours. Its later
 * answers do not prolong the conflict again. */
TEST(conflict_lasts_as_long_again_if_its_master_may_have_lost_the_lease)
{
    report(1, LEASE_OTHER, 100);
    for (int64_t s = 150; s <= 214; s++) {
        name_lease_on_digit(&lease, &periods, 1, LEASE_OURS, true, false, s * NS_PER_S);
        ck_assert_int_eq(refuses(s), REASON_REPOINTED);
    }
    ck_assert_uint_eq(lease.held_on, 0);
    name_lease_on_digit(&lease, &periods, 1, LEASE_OURS, true, false, 215 * NS_PER_S);
    ck_assert_int_eq(refuses(215), REASON_NONE);
    ck_assert_uint_eq(lease.held_on, 2);
}

/* A daemon that still renews the lease of another process after 7 s must be talking to a different
 * server. */
TEST(another_process_blocks_until_its_daemons_can_no_longer_vote)
{
    report(1, LEASE_OTHER_PROCESS, 100);
    report(2, LEASE_OTHER_PROCESS, 103);
    ck_assert_int_eq(refuses(106), REASON_OTHERPROCESS);
    ck_assert_int_eq(refuses(107), REASON_REPOINTED);
}

TEST(another_server_outranks_another_process)
{
    report(1, LEASE_OTHER_PROCESS, 100);
    report(2, LEASE_OTHER, 100);
    ck_assert_int_eq(refuses(100), REASON_REPOINTED);
    report(2, LEASE_OURS, 101);
    report(2, LEASE_OURS, 101);
    ck_assert_int_eq(refuses(101), REASON_OTHERPROCESS);
}

TEST(late_answer_about_an_earlier_server_gives_no_lease)
{
    name_lease_on_digit(&lease, &periods, 0, LEASE_OURS, false, true, 100 * NS_PER_S);
    name_lease_on_digit(&lease, &periods, 1, LEASE_OTHER_PROCESS, false, true, 100 * NS_PER_S);
    ck_assert_uint_eq(lease.held_on, 0);
    ck_assert_int_eq(refuses(100), REASON_NONE);
    name_lease_on_digit(&lease, &periods, 2, LEASE_OTHER, false, true, 100 * NS_PER_S);
    ck_assert_int_eq(refuses(100), REASON_REPOINTED);
}

/* conflict_since_ns stays the same while a conflict continues. A conflict that is reported after
 * the earlier one has expired is a new one, and costs the vote again. */
TEST(conflict_after_an_expired_one_is_a_new_conflict)
{
    report(1, LEASE_OTHER, 100);
    int64_t since_ns = lease.conflict_since_ns;
    report(1, LEASE_OTHER, 159);
    ck_assert_int_eq(lease.conflict_since_ns, since_ns);
    ck_assert_int_eq(refuses(224), REASON_NONE);
    report(1, LEASE_OTHER, 225);
    ck_assert_int_gt(lease.conflict_since_ns, since_ns);
    ck_assert_int_eq(refuses(225), REASON_REPOINTED);
}

#define ID_1 "1111111111111111111111111111111111111111"
#define ID_2 "2222222222222222222222222222222222222222"

/* A lease has a record id, a run id and the signatures of the daemons that renew it: each daemon's
 * name with the time in ms on the master's clock. Signatures from before 4000 ms do not count
 * here. */
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

TEST_ROWS(found_lease_is_compared_with_this_server, leases)
{
    char server[GUARD_SERVER_MAX];
    name_lease_server(0, ID_1, ID_1, server);
    ck_assert_int_eq(name_lease_conflict(leases[_i].lease, server, 4000), leases[_i].reason);
}

TEST(another_database_is_another_server)
{
    char server[GUARD_SERVER_MAX];
    name_lease_server(3, ID_1, ID_2, server);
    ck_assert_str_eq(server, "3/" ID_1 " " ID_2);
}
