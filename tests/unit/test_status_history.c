/*
 * server/admin/status_history.h: the rings that the status page shows.
 */
#include <string.h>

#include "protocol/units.h"
#include "server/admin/status_history.h"
#include "tests/runner.h"

static struct status_history history;

static void begin(void)
{
    status_history_init(&history, 5 * NS_PER_S);
}

const struct runner_settings runner_settings = {.setup = begin};

static void take_sample(uint64_t granted)
{
    status_history_take(&history, &(struct status_history_sample){.granted = granted});
}

TEST(samples_are_found_by_their_age)
{
    ck_assert_ptr_null(status_history_ago(&history, 0));
    take_sample(1);
    take_sample(2);
    ck_assert_uint_eq(status_history_ago(&history, 0)->granted, 2);
    ck_assert_uint_eq(status_history_ago(&history, 1)->granted, 1);
    ck_assert_ptr_null(status_history_ago(&history, 2));
}

TEST(oldest_sample_is_dropped_first)
{
    for (uint64_t i = 0; i < 2 * STATUS_HISTORY_SAMPLES + 7; i++)
        take_sample(i);
    for (unsigned i = 0; i < STATUS_HISTORY_SAMPLES; i++)
        ck_assert_uint_eq(status_history_ago(&history, i)->granted,
                          2 * STATUS_HISTORY_SAMPLES + 6 - i);
    ck_assert_ptr_null(status_history_ago(&history, STATUS_HISTORY_SAMPLES));
}

TEST(rate_is_an_average_over_the_samples_available)
{
    ck_assert_double_eq(status_history_grants_a_second(&history, 10), 0);
    take_sample(100);
    ck_assert_double_eq(status_history_grants_a_second(&history, 10), 0);
    take_sample(150);
    ck_assert_double_eq(status_history_grants_a_second(&history, 10), 50);
    for (unsigned i = 1; i <= 10; i++)
        take_sample(150 + 7 * i);
    ck_assert_double_eq(status_history_grants_a_second(&history, 10), 7);
}

TEST(losses_are_listed_latest_first)
{
    char name[3] = "a0";
    ck_assert_ptr_null(status_history_loss(&history, 0));
    for (unsigned i = 0; i < STATUS_HISTORY_LOSSES + 3; i++) {
        name[1] = (char)('0' + i);
        status_history_on_lost(&history, name, 2, "who", i % 2, (int64_t)i * NS_PER_S);
    }
    for (unsigned i = 0; i < STATUS_HISTORY_LOSSES; i++) {
        const struct status_history_loss *loss = status_history_loss(&history, i);
        ck_assert_uint_eq(loss->resource_len, 2);
        ck_assert_int_eq(loss->resource[1], (char)('0' + STATUS_HISTORY_LOSSES + 2 - i));
        ck_assert_int_eq(loss->wall_ns, (STATUS_HISTORY_LOSSES + 2 - (int64_t)i) * NS_PER_S);
        ck_assert_str_eq(loss->client, "who");
    }
    ck_assert_ptr_null(status_history_loss(&history, STATUS_HISTORY_LOSSES));
}

TEST(longest_names_fit)
{
    char resource[LIMIT_RESOURCE];
    char client[LIMIT_TAG + 1] = "";
    memset(resource, 'r', sizeof(resource));
    memset(client, 'c', LIMIT_TAG);
    status_history_on_lost(&history, resource, sizeof(resource), client, 0, 1);
    const struct status_history_loss *loss = status_history_loss(&history, 0);
    ck_assert_mem_eq(loss->resource, resource, sizeof(resource));
    ck_assert_str_eq(loss->client, client);
}

TEST(new_reason_does_not_restart_the_time_without_a_vote)
{
    ck_assert_int_eq(history.no_vote_ns[2], 5 * NS_PER_S);
    status_history_on_vote(&history, 2, REASON_NEW, 6 * NS_PER_S);
    ck_assert_int_eq(history.no_vote_ns[2], 5 * NS_PER_S);
    status_history_on_vote(&history, 2, REASON_NONE, 7 * NS_PER_S);
    ck_assert_int_eq(history.no_vote_ns[2], 0);
    status_history_on_vote(&history, 2, REASON_SUSPECT, 8 * NS_PER_S);
    status_history_on_vote(&history, 2, REASON_HUNG, 9 * NS_PER_S);
    ck_assert_int_eq(history.no_vote_ns[2], 8 * NS_PER_S);
    ck_assert_int_eq(history.no_vote_ns[1], 5 * NS_PER_S);
}
