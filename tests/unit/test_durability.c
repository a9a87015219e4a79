/*
 * engine/guard/durability.h: what is seen of a master's settings, and when the record is to say so.
 */
#include "engine/guard/durability.h"

#include "protocol/units.h"
#include "tests/runner.h"

static const struct guard_periods periods = {.quarantine_ns = 60 * NS_PER_S};
static const int64_t adopted_ns = 1000 * NS_PER_S;

static struct durability durability;

static void recorded_as_durable(void)
{
    durability = (struct durability){0};
    durability_on_record(&durability, true, adopted_ns);
}

static bool wants_record_after_s(int64_t seconds)
{
    return durability_wants_record(&durability, &periods, adopted_ns + seconds * NS_PER_S);
}

START_TEST(what_is_recorded_and_seen_needs_no_record)
{
    durability_on_facts(&durability, true, true);
    ck_assert(!wants_record_after_s(0));
    ck_assert(!wants_record_after_s(3600));
}
END_TEST

START_TEST(durability_is_withdrawn_at_once)
{
    durability_on_facts(&durability, true, false);
    ck_assert(wants_record_after_s(0));
}
END_TEST

/* Else two daemons that disagree would write against each other all the time. */
START_TEST(durability_is_granted_after_a_quarantine)
{
    durability_on_record(&durability, false, adopted_ns);
    durability_on_facts(&durability, true, true);
    ck_assert(!wants_record_after_s(59));
    ck_assert(wants_record_after_s(60));
}
END_TEST

START_TEST(daemon_without_the_option_leaves_what_is_recorded)
{
    durability_on_facts(&durability, false, false);
    ck_assert(!wants_record_after_s(3600));
}
END_TEST

START_TEST(master_with_replicas_is_not_durable)
{
    durability_on_facts(&durability, true, true);
    durability_on_replicas(&durability);
    ck_assert_int_eq(durability.seen, DURABILITY_MISSING);
    ck_assert(wants_record_after_s(0));
}
END_TEST

static void nothing(void)
{
}

Suite *test_suite(void)
{
    Suite *suite = suite_create("durability");
    TCase *tests = tcase_create("records");
    tcase_add_checked_fixture(tests, recorded_as_durable, nothing);
    tcase_add_test(tests, what_is_recorded_and_seen_needs_no_record);
    tcase_add_test(tests, durability_is_withdrawn_at_once);
    tcase_add_test(tests, durability_is_granted_after_a_quarantine);
    tcase_add_test(tests, daemon_without_the_option_leaves_what_is_recorded);
    tcase_add_test(tests, master_with_replicas_is_not_durable);
    suite_add_tcase(suite, tests);
    return suite;
}
