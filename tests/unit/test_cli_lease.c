/*
 * When `redlock run` extends its lock, gives it up and kills its command (client/cli/lease.h).
 */

#include "client/cli/lease.h"
#include "tests/runner.h"

static const int64_t SECOND_NS = 1000000000;

/* A lock with a TTL of 30 s and its deadline at 100 s. The grace is 5 s: the time that the command
 * has to end by itself. */
static struct lease lease_of_30_s(void)
{
    struct lease lease;
    lease_init(&lease, 30 * SECOND_NS, 5 * SECOND_NS, 100 * SECOND_NS);
    return lease;
}

TEST(lease_is_extended_after_one_third_and_given_up_after_two)
{
    struct lease lease = lease_of_30_s();
    ck_assert_int_eq(lease_extend_ns(&lease), 80 * SECOND_NS);
    ck_assert_int_eq(lease_next_ns(&lease), 80 * SECOND_NS);
    lease_on_extending(&lease, 80 * SECOND_NS);
    ck_assert_int_eq(lease_give_up_ns(&lease), 90 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&lease), 99 * SECOND_NS);
}

/* redlock was stopped before its EXTEND at 80 s was due, and resumes at 93 s. The daemon may have
 * extended the lock meanwhile. So redlock sends one EXTEND, and gives up if there is no answer
 * within the usual time limit of 3 s. */
TEST(lease_asks_once_before_it_gives_up_after_a_stop)
{
    struct lease lease = lease_of_30_s();
    ck_assert_int_eq(lease_give_up_ns(&lease), lease_kill_ns(&lease));
    lease_on_extending(&lease, 93 * SECOND_NS);
    ck_assert_int_eq(lease_give_up_ns(&lease), 96 * SECOND_NS);
    lease_on_failed(&lease, "no quorum", 94 * SECOND_NS);
    /* A second EXTEND does not prolong that time. */
    lease_on_extending(&lease, 95 * SECOND_NS);
    ck_assert_int_eq(lease_give_up_ns(&lease), 96 * SECOND_NS);
    lease_on_extended(&lease, 125 * SECOND_NS);
    lease_on_extending(&lease, 105 * SECOND_NS);
    ck_assert_int_eq(lease_give_up_ns(&lease), 115 * SECOND_NS);
}

TEST(extension_moves_every_instant_of_the_lease)
{
    struct lease lease = lease_of_30_s();
    lease_on_extending(&lease, 80 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), INT64_MAX);
    ck_assert_int_eq(lease_next_ns(&lease), 90 * SECOND_NS);
    lease_on_extended(&lease, 110 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 90 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&lease), 109 * SECOND_NS);
    lease_on_extending(&lease, 90 * SECOND_NS);
    ck_assert_int_eq(lease_give_up_ns(&lease), 100 * SECOND_NS);
}

TEST(deadline_never_moves_back)
{
    struct lease lease = lease_of_30_s();
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_extended(&lease, 99 * SECOND_NS);
    ck_assert_int_eq(lease.deadline_ns, 100 * SECOND_NS);
}

TEST(undecided_extension_is_retried_and_moves_nothing)
{
    struct lease lease = lease_of_30_s();
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_failed(&lease, "no quorum", 81 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 81 * SECOND_NS + SECOND_NS / 2);
    ck_assert_int_eq(lease_give_up_ns(&lease), 90 * SECOND_NS);
    ck_assert_str_eq(lease.why, "no quorum");
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_extended(&lease, 111 * SECOND_NS);
    ck_assert_str_eq(lease.why, "");
}

TEST(lost_connection_causes_an_extension_at_once)
{
    struct lease lease = lease_of_30_s();
    lease_on_closed(&lease, 72 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 72 * SECOND_NS);
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_failed(&lease, "unreachable", 72 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 72 * SECOND_NS + SECOND_NS / 2);
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_extended(&lease, 103 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 83 * SECOND_NS);
}

/* A proxy without a daemon behind it accepts each connection and closes it at once. redlock must
 * still wait for its retry interval (0.5 s) before the next EXTEND. */
TEST(daemon_that_closes_each_connection_is_asked_no_more_often)
{
    struct lease lease = lease_of_30_s();
    lease_on_closed(&lease, 72 * SECOND_NS);
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_failed(&lease, "closed", 72 * SECOND_NS);
    lease_on_closed(&lease, 72 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 72 * SECOND_NS + SECOND_NS / 2);
}

TEST(last_failure_is_the_reason_of_the_loss)
{
    struct lease lease = lease_of_30_s();
    lease_on_failed(&lease, "no quorum", 89 * SECOND_NS);
    lease_lose(&lease, lease.why, 90 * SECOND_NS);
    ck_assert_str_eq(lease.why, "no quorum");
}

TEST(lost_lock_kills_after_the_grace_but_before_the_deadline)
{
    struct lease early = lease_of_30_s();
    lease_lose(&early, "gone", 75 * SECOND_NS);
    ck_assert(lease_is_lost(&early));
    ck_assert_int_eq(lease_kill_ns(&early), 80 * SECOND_NS);
    ck_assert_int_eq(lease_next_ns(&early), 80 * SECOND_NS);

    struct lease late = lease_of_30_s();
    lease_lose(&late, "gone", 97 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&late), 99 * SECOND_NS);
}

/* The masters no longer have the lock, so another client may already hold it. The command gets no
 * grace, although the deadline is still ahead. */
TEST(lock_that_is_gone_kills_at_once)
{
    struct lease lease = lease_of_30_s();
    lease_on_gone(&lease, "gone", 75 * SECOND_NS);
    ck_assert(lease_is_lost(&lease));
    ck_assert_str_eq(lease.why, "gone");
    ck_assert_int_eq(lease_kill_ns(&lease), 75 * SECOND_NS);
    ck_assert_int_eq(lease_next_ns(&lease), 75 * SECOND_NS);
}

TEST(gone_ends_the_grace_of_an_earlier_loss)
{
    struct lease lease = lease_of_30_s();
    lease_lose(&lease, "no quorum", 90 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&lease), 95 * SECOND_NS);
    lease_on_gone(&lease, "gone", 91 * SECOND_NS);
    ck_assert_str_eq(lease.why, "no quorum");
    ck_assert_int_eq(lease_kill_ns(&lease), 91 * SECOND_NS);
    lease_on_gone(&lease, "gone", 92 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&lease), 91 * SECOND_NS);
}

TEST(lost_lease_stays_lost)
{
    struct lease lease = lease_of_30_s();
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_lose(&lease, "gone", 82 * SECOND_NS);
    lease_lose(&lease, "limit", 83 * SECOND_NS);
    lease_on_extended(&lease, 110 * SECOND_NS);
    lease_on_closed(&lease, 84 * SECOND_NS);
    lease_on_failed(&lease, "no quorum", 84 * SECOND_NS);
    ck_assert_str_eq(lease.why, "gone");
    ck_assert_int_eq(lease.deadline_ns, 100 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&lease), 87 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), INT64_MAX);
    ck_assert_int_eq(lease_give_up_ns(&lease), INT64_MAX);
}

TEST(short_lock_reserves_a_tenth_for_the_kill)
{
    struct lease lease;
    lease_init(&lease, SECOND_NS, 5 * SECOND_NS, 100 * SECOND_NS);
    ck_assert_int_eq(lease_margin_ns(&lease), SECOND_NS / 10);
    lease_lose(&lease, "gone", 99 * SECOND_NS + SECOND_NS / 2);
    ck_assert_int_eq(lease_kill_ns(&lease), 100 * SECOND_NS - SECOND_NS / 10);
}

TEST(short_lock_reserves_time_for_a_distant_daemon)
{
    /* The TTL, and the time limit for the answer to an EXTEND. */
    static const int64_t cases_ms[][2] = {{30000, 3000}, {900, 100}, {600, 100}, {300, 50}};
    for (unsigned i = 0; i < 4; i++) {
        struct lease lease;
        lease_init(&lease, cases_ms[i][0] * SECOND_NS / 1000, 0, 100 * SECOND_NS);
        ck_assert_int_eq(lease_answer_timeout_ns(&lease), cases_ms[i][1] * SECOND_NS / 1000);
    }
}

/* When a stopped `redlock run` resumes after the deadline, it must kill the command at once, even
 * if it has not yet given up the lock. */
TEST(kill_is_due_after_a_long_stop)
{
    struct lease lease = lease_of_30_s();
    int64_t now_ns = 105 * SECOND_NS;
    ck_assert_int_ge(now_ns, lease_kill_ns(&lease));
    lease_lose(&lease, "stopped", now_ns);
    ck_assert_int_ge(now_ns, lease_kill_ns(&lease));
}
