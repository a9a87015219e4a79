/*
 * engine/histogram.h against its definition: a duration belongs to the first bucket whose upper
 * limit it does not exceed.
 */

#include "engine/histogram.h"
#include "tests/prng.h"
#include "tests/runner.h"

static unsigned bucket_of(int64_t duration_ns)
{
    unsigned bucket = 0;
    while (duration_ns > histogram_bound_ns(bucket))
        bucket++;
    return bucket;
}

static void check(int64_t duration_ns)
{
    struct histogram histogram = {0};
    uint64_t total = 0;
    histogram_add(&histogram, duration_ns);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        total += histogram.counts[i];
    ck_assert_uint_eq(total, 1);
    ck_assert_msg(histogram.counts[bucket_of(duration_ns)] == 1, "%lld ns is not in bucket %u",
                  (long long)duration_ns, bucket_of(duration_ns));
    ck_assert_uint_eq(histogram.sum_ns, duration_ns > 0 ? (uint64_t)duration_ns : 0);
}

TEST(upper_limits_belong_to_their_own_bucket)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        check(histogram_bound_ns(i) - 1);
        check(histogram_bound_ns(i));
        check(histogram_bound_ns(i) + 1);
    }
}

TEST(powers_of_two_and_their_neighbours_are_in_the_right_bucket)
{
    for (unsigned power = 0; power < 63; power++)
        for (int64_t offset = -1; offset <= 1; offset++)
            check((INT64_C(1) << power) + offset);
    check(INT64_MAX);
}

TEST(random_durations_are_in_the_right_bucket)
{
    struct prng prng = {7};

    for (unsigned i = 0; i < 100000; i++)
        check((int64_t)(prng_draw(&prng) >> (1 + prng_draw(&prng) % 63)));
}

TEST(negative_duration_counts_as_zero)
{
    check(0);
    check(-1);
    check(INT64_MIN);
}

/* histogram_add() relies on this. */
TEST(upper_limits_at_least_double)
{
    for (unsigned i = 1; i < HISTOGRAM_BUCKETS - 1; i++)
        ck_assert_int_ge(histogram_bound_ns(i), 2 * histogram_bound_ns(i - 1));
}
