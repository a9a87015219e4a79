/*
 * Tests of the checker (tests/history.h) that the simulator and the torture program use. The
 * numbers in a grant are the resource, the fencing token (0: none), the time of the grant and the
 * end of its validity.
 */

#include "tests/history.h"
#include "tests/runner.h"

static struct history history;

TEST(holds_in_sequence_pass)
{
    history_init(&history);
    ck_assert_int_eq(history_granted(&history, 1, "a", 0, 10, 20), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "b", 0, 20, 30), HISTORY_FINE);
    history_ended(&history, 1, "b");
    ck_assert_int_eq(history_granted(&history, 1, "c", 0, 21, 40), HISTORY_FINE);
    ck_assert_uint_eq(history.grants, 3);
}

TEST(overlapping_holds_are_found)
{
    history_init(&history);
    ck_assert_int_eq(history_granted(&history, 1, "a", 0, 10, 20), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "b", 0, 19, 30), HISTORY_TWO_HOLDERS);
    ck_assert_str_eq(history.other.token, "a");
    /* Another resource does not conflict, nor does a grant that had expired when it was
     * reported. */
    ck_assert_int_eq(history_granted(&history, 2, "b", 0, 19, 30), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "b", 0, 19, 19), HISTORY_FINE);
}

TEST(extension_counts_from_its_report)
{
    history_init(&history);
    ck_assert_int_eq(history_granted(&history, 1, "a", 0, 10, 20), HISTORY_FINE);
    ck_assert_int_eq(history_prolonged(&history, 1, "a", 15, 30), HISTORY_FINE);
    ck_assert_int_eq(history_until(&history, 1, "a"), 30);
    ck_assert_int_eq(history_granted(&history, 1, "b", 0, 25, 40), HISTORY_TWO_HOLDERS);
    /* An extension never shortens. */
    ck_assert_int_eq(history_prolonged(&history, 1, "a", 16, 18), HISTORY_FINE);
    ck_assert_int_eq(history_until(&history, 1, "a"), 30);
}

TEST(extension_of_an_expired_hold_is_a_new_hold)
{
    history_init(&history);
    ck_assert_int_eq(history_granted(&history, 1, "a", 0, 10, 20), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "b", 0, 25, 30), HISTORY_FINE);
    ck_assert_int_eq(history_prolonged(&history, 1, "a", 26, 40), HISTORY_TWO_HOLDERS);
    ck_assert_str_eq(history.other.token, "b");
    ck_assert_int_eq(history_prolonged(&history, 1, "a", 31, 40), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "c", 0, 39, 50), HISTORY_TWO_HOLDERS);
}

TEST(fences_that_do_not_rise_are_found)
{
    history_init(&history);
    ck_assert_int_eq(history_granted(&history, 1, "a", 7, 10, 20), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "b", 7, 20, 30), HISTORY_FENCE_FELL);
    ck_assert_int_eq(history_granted(&history, 1, "b", 8, 20, 30), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 2, "c", 1, 20, 30), HISTORY_FINE);
    /* The fencing token must rise even if the grant had expired when it was reported. */
    ck_assert_int_eq(history_granted(&history, 1, "d", 8, 40, 40), HISTORY_FENCE_FELL);
}
