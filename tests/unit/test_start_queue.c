/*
 * The order of requests whose rounds are held back, and the pace at which they leave
 * (engine/locks/start_queue.h).
 */
#include <string.h>

#include "engine/locks/manager.h"
#include "engine/locks/start_queue.h"
#include "protocol/units.h"
#include "tests/runner.h"

enum { CLIENTS = 3, REQUESTS = 60 };

static struct start_queue queue;
static struct engine_client clients[CLIENTS];
static struct pending_request requests[REQUESTS];

/* Request i is of client i % CLIENTS. */
static void setup(void)
{
    memset(clients, 0, sizeof(clients));
    memset(requests, 0, sizeof(requests));
    start_queue_init(&queue);
    for (unsigned i = 0; i < CLIENTS; i++)
        TAILQ_INIT(&clients[i].to_start);
    for (unsigned i = 0; i < REQUESTS; i++)
        requests[i].client = &clients[i % CLIENTS];
}

const struct runner_settings runner_settings = {.setup = setup};

static void join(unsigned from, unsigned to, int64_t now_ns)
{
    for (unsigned i = from; i < to; i++)
        start_queue_join(&queue, &requests[i], now_ns);
}

static unsigned take(int64_t now_ns)
{
    return (unsigned)(start_queue_take(&queue, now_ns) - requests);
}

/* For a request of the first client. */
static int64_t delay_ms(int64_t now_ns)
{
    return start_queue_delay_ns(&queue, &clients[0], now_ns) / NS_PER_MS;
}

TEST(clients_take_turns)
{
    static const unsigned order[] = {0, 1, 3, 4, 6};
    for (unsigned i = 0; i < 7; i++)
        if (i % CLIENTS != 2)
            start_queue_join(&queue, &requests[i], 0);
    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        ck_assert_uint_eq(take(0), order[i]);
    ck_assert_ptr_null(start_queue_take(&queue, 0));
    ck_assert_uint_eq(queue.client_count, 0);
}

/* All requests join, and ten leave within 100 ms. */
static void measure_ten(void)
{
    join(0, REQUESTS, 0);
    for (unsigned i = 0; i < 10; i++)
        take(50 * NS_PER_MS);
}

/* Ten leave in 100 ms. The first client has to wait for its own requests and as many of each other
 * client. */
TEST(delay_follows_from_the_pace_and_the_turns)
{
    measure_ten();
    ck_assert_int_eq(delay_ms(99 * NS_PER_MS), 0);
    ck_assert_uint_eq(clients[0].to_start_count, 16);
    ck_assert_int_eq(delay_ms(100 * NS_PER_MS), 500);
    while (clients[0].to_start_count > 0)
        start_queue_leave(&queue, TAILQ_FIRST(&clients[0].to_start));
    ck_assert_int_eq(delay_ms(101 * NS_PER_MS), 20);
}

/* Requests whose time is over leave too. So clients that do not wait long delay others only a
 * little. */
TEST(requests_that_do_not_start_count_for_the_pace)
{
    join(0, REQUESTS, 0);
    for (unsigned i = 0; i < 50; i++)
        start_queue_leave(&queue, &requests[i]);
    ck_assert_int_eq(delay_ms(100 * NS_PER_MS), 20);
}

TEST(later_measurements_count_more)
{
    measure_ten();
    ck_assert_int_eq(delay_ms(100 * NS_PER_MS), 500);
    /* Nothing leaves: 100 ms and 10 ms for each, so 55 ms on average. */
    ck_assert_int_eq(delay_ms(200 * NS_PER_MS), 50 * 55);
}

TEST(time_in_which_the_daemon_was_stopped_does_not_count)
{
    measure_ten();
    ck_assert_int_eq(delay_ms(100 * NS_PER_MS), 500);
    ck_assert_int_eq(delay_ms(10100 * NS_PER_MS), 500);
}

TEST(pace_is_forgotten_when_the_queue_is_empty)
{
    join(0, 20, 0);
    for (unsigned i = 0; i < 20; i++)
        take(100 * NS_PER_MS);
    ck_assert_int_eq(delay_ms(150 * NS_PER_MS), 0);
    join(20, REQUESTS, 200 * NS_PER_MS);
    ck_assert_int_eq(delay_ms(250 * NS_PER_MS), 0);
}
