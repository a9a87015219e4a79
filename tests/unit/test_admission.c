/*
 * engine/flight/admission.h against masters that answer a fixed number of rounds per second. The
 * latency of a round is the distance of the masters or the time that they take for all rounds in
 * flight, whichever is longer. In most tests more requests wait than may start.
 */
#include "engine/flight/admission.h"
#include "tests/runner.h"

#define NODE_TIMEOUT_NS (50 * NS_PER_MS)
#define PASS_NS         (NS_PER_MS / 4)

struct load {
    struct admission admission;
    int64_t now_ns;
    int64_t distance_ns;
    int64_t heartbeat_ns; /* distance as heartbeats have measured it; INT64_MAX: not known */
    int64_t service_ns;   /* time that the masters take for one round */
    uint64_t settled;
    int64_t progress;   /* time in flight, summed over all rounds; latency_ns settles one */
    int64_t latency_ns; /* of the rounds settled last */
    int64_t longest_ns; /* longest latency since the test has cleared it */
};

static struct load load;

static void setup(void)
{
    load = (struct load){.now_ns = 1000 * NS_PER_S,
                         .distance_ns = NS_PER_MS / 5,
                         .service_ns = 10000,
                         .heartbeat_ns = INT64_MAX};
    admission_init(&load.admission, NODE_TIMEOUT_NS);
}

const struct runner_settings runner_settings = {.setup = setup};

/* One pass: rounds are settled at the speed of the masters, and others of the `waiting` requests
 * start in their place. */
static void run_pass(unsigned waiting)
{
    struct admission *admission = &load.admission;
    int64_t queueing_ns = admission->in_flight * load.service_ns;
    load.latency_ns = queueing_ns > load.distance_ns ? queueing_ns : load.distance_ns;
    load.longest_ns = load.latency_ns > load.longest_ns ? load.latency_ns : load.longest_ns;
    load.progress += admission->in_flight * PASS_NS;
    for (; load.progress >= load.latency_ns && admission->in_flight > 0; load.settled++) {
        admission_on_settled(admission, true);
        load.progress -= load.latency_ns;
    }
    if (admission_is_due(admission))
        admission_adapt(admission, load.latency_ns, load.heartbeat_ns, load.now_ns);
    while (admission->in_flight < waiting && admission_has_room(admission))
        admission_on_start(admission, true);
    load.now_ns += PASS_NS;
}

static void run_for(int64_t for_ns, unsigned waiting)
{
    for (int64_t end_ns = load.now_ns + for_ns; load.now_ns < end_ns;)
        run_pass(waiting);
}

/* A fixed limit would let 9,000 rounds of 10 us each take 90 ms. */
TEST(latency_stays_well_within_the_timeout_under_overload)
{
    run_for(NS_PER_S, 9000);
    load.longest_ns = 0;
    run_for(60 * NS_PER_S, 9000);
    ck_assert_int_le(load.longest_ns, NODE_TIMEOUT_NS / 2);
    ck_assert_uint_ge(load.settled, (uint64_t)(61 * NS_PER_S / load.service_ns) * 95 / 100);
}

TEST(slower_masters_get_fewer_rounds_and_faster_ones_more)
{
    run_for(2 * NS_PER_S, 9000);
    unsigned fast = load.admission.limit;
    load.service_ns *= 8;
    run_for(2 * NS_PER_S, 9000);
    ck_assert_int_le(load.latency_ns, NODE_TIMEOUT_NS / 2);
    ck_assert_uint_lt(load.admission.limit, fast / 4);
    load.service_ns /= 8;
    run_for(2 * NS_PER_S, 9000);
    ck_assert_uint_gt(load.admission.limit, fast / 2);
}

/* If the latency comes from the distance alone and not from queueing, the limit rises to as many
 * rounds as the links take. */
TEST(distance_alone_does_not_lower_the_limit)
{
    load.distance_ns = 20 * NS_PER_MS;
    load.service_ns = 1000;
    run_for(20 * NS_PER_S, 9000);
    ck_assert_uint_eq(load.admission.limit, LIMIT_ADMISSION_MAX);
}

/* After a minute of queueing, the latency of the queueing must not be taken for the distance of the
 * masters. */
TEST(distance_is_measured_again_under_continuous_overload)
{
    run_for(60 * NS_PER_S, 9000);
    ck_assert_int_le(load.admission.shortest_before_ns, 3 * NS_PER_MS);
}

TEST(limit_does_not_grow_while_less_than_half_of_it_is_used)
{
    run_for(20 * NS_PER_S, LIMIT_ADMISSION_START / 2 - 1);
    ck_assert_uint_eq(load.admission.limit, LIMIT_ADMISSION_START);
}

TEST(limit_shrinks_below_few_rounds_that_take_too_long)
{
    load.service_ns = NS_PER_MS;
    load.heartbeat_ns = load.distance_ns;
    run_for(NS_PER_S, 80);
    ck_assert_uint_le(load.admission.limit, 16);
    ck_assert_int_le(load.latency_ns, NODE_TIMEOUT_NS / 2);
}

/* 9,000 releases are in flight, which the limit does not hold back. A share of the limit is
 * reserved for other rounds, and at least one of them can always start. */
TEST(flood_of_releases_leaves_room_for_other_rounds)
{
    struct admission *admission = &load.admission;
    while (admission->in_flight < 9000)
        admission_on_start(admission, false);
    unsigned admitted = 0;
    for (; admission_has_room(admission); admitted++)
        admission_on_start(admission, true);
    ck_assert_uint_gt(admitted, admission->limit / ADMISSION_RESERVED_SHARE);
    admission->limit = 1;
    admission->limited = 0;
    ck_assert(admission_has_room(admission));
}

/* Clients are read up to twice the limit. */
TEST(reading_stops_when_releases_exceed_what_is_answered_in_time)
{
    static const struct {
        unsigned limit;
        unsigned most;
    } rows[] = {
        {LIMIT_ADMISSION_MIN, 2 * LIMIT_ADMISSION_START},
        {1000, 2000},
        {LIMIT_ADMISSION_MAX, LIMIT_LINK_VOTES},
    };
    struct admission admission;
    admission_init(&admission, NODE_TIMEOUT_NS);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        admission.limit = rows[i].limit;
        admission.in_flight = rows[i].most;
        ck_assert(admission_takes_requests(&admission));
        admission.in_flight++;
        ck_assert(!admission_takes_requests(&admission));
    }
}
