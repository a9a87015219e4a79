/*
 * engine/guard/identity.h: what a sample shows about a master's data. Times are in seconds. Samples
 * are answered at once, and the master's clock agrees with the daemon's.
 */
#include "engine/guard/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"

enum { Q_S = 60 };

static const struct guard_periods periods = {
    .quarantine_ns = Q_S * NS_PER_S,
    .heartbeat_ns = NS_PER_S,
    .fresh_ns = 5 * NS_PER_S,
};

#define SET_ID    "9f86d081884c7d65"
#define OTHER_SET "ffffffffffffffff"
#define RUN_1     "1111111111111111111111111111111111111111"
#define RUN_2     "2222222222222222222222222222222222222222"
#define HISTORY   "3333333333333333333333333333333333333333"
#define HISTORY_2 "4444444444444444444444444444444444444444"

static struct identity identity;
static struct identity_context context;
static struct guard_sample sample;
static struct record record; /* the record on the master */
static bool recorded;

static bool take_sample(int64_t now_s)
{
    static char text[LIMIT_RECORD];
    size_t len = record_format(&record, text);
    len += (size_t)snprintf(text + len, sizeof(text) - len, "%" PRId64, record.join_us);
    sample.clock = (struct monitor_sample){now_s * NS_PER_S, now_s * NS_PER_S, now_s * 1000000};
    sample.record = recorded ? text : NULL;
    sample.record_len = recorded ? len : 0;
    return identity_on_sample(&identity, &periods, &context, &sample);
}

static void facts(int64_t evicted, bool may_evict)
{
    identity_on_facts(&identity, &(struct guard_facts){.evicted = evicted,
                                                       .may_evict = may_evict,
                                                       .durability = DURABILITY_SEEN});
}

static void durable_facts(enum durability durability)
{
    identity_on_facts(&identity, &(struct guard_facts){.durability = durability});
}

static bool wants_durability(int64_t now_s)
{
    return identity_wants_durability(&identity, &periods, now_s * NS_PER_S);
}

static void connect_to(const char *run_id, int64_t begun_s)
{
    if (identity.presence != PRESENCE_AWAY)
        identity_on_lost(&identity);
    identity_on_connected(&identity, run_id, begun_s * NS_PER_S);
    facts(0, false);
}

/* A master whose record was adopted at 1000 s, long after its quarantine. */
static void setup_known_master(void)
{
    identity = (struct identity){0};
    context = (struct identity_context){.set_id = SET_ID};
    sample = (struct guard_sample){.master = true, .replid = HISTORY};
    record = (struct record){
        .set_id = SET_ID,
        .cluster = "main",
        .id = RUN_1,
        .run_id = RUN_1,
        .replid = HISTORY,
        .durable = true,
        .quarantine_id = 7,
        .why = REASON_NEW,
        .quarantine_ms = Q_S * 1000 + 1,
        .join_us = 500 * INT64_C(1000000),
    };
    recorded = true;
    connect_to(RUN_1, 100);
    ck_assert(take_sample(1000));
}

const struct runner_settings runner_settings = {.setup = setup_known_master};

static void expect_loss(enum reason why)
{
    ck_assert_int_eq(identity.error, why);
    ck_assert_int_eq(identity.write_why, why);
    ck_assert(identity.data_suspect);
}

TEST(matching_record_is_adopted_once)
{
    ck_assert_int_eq(identity_refuses(&identity), REASON_NONE);
    ck_assert_int_le(identity.quarantine_until_ns, 1000 * NS_PER_S);
    ck_assert(!take_sample(1001));
    ck_assert_int_eq(identity.write_why, REASON_NONE);
}

TEST(new_master_needs_a_record)
{
    identity = (struct identity){0};
    recorded = false;
    connect_to(RUN_1, 100);
    ck_assert(!take_sample(1000));
    expect_loss(REASON_NEW);
}

TEST(missing_record_means_a_flush_or_a_restart)
{
    recorded = false;
    take_sample(1001);
    expect_loss(REASON_FLUSHED);
    connect_to(RUN_2, 1001);
    take_sample(1002);
    expect_loss(REASON_RESTARTED);
}

TEST(changed_replication_id_is_a_failover)
{
    sample.replid = HISTORY_2;
    take_sample(1001);
    expect_loss(REASON_FAILEDOVER);
}

TEST(older_record_means_old_data)
{
    record.join_us--;
    take_sample(1001);
    expect_loss(REASON_OLDDATA);
}

/* The mark of the record is 7. The first daemon that finds earlier beats begins new ones, whose
 * number may be greater when the next daemon sees them. Beats with another record say nothing. */
TEST_LOOP(earlier_or_other_beats_mean_old_data, 0, 2)
{
    static const char *const later[] = {"0000000000000007.1.6", "0000000000000007.2.9"};
    ck_assert(!identity_on_beats(&identity, "0000000000000007.1.5"));
    ck_assert(!identity_on_beats(&identity, "0000000000000007.1.8"));
    ck_assert(!identity_on_beats(&identity, "0000000000000008.2.9"));
    ck_assert(!identity_on_beats(&identity, "-.2.9"));
    ck_assert_int_eq(identity.write_why, REASON_NONE);
    ck_assert(identity_on_beats(&identity, later[_i]));
    expect_loss(REASON_OLDDATA);
    take_sample(1001);
    expect_loss(REASON_OLDDATA);
    record.quarantine_id = 9;
    record.join_us = 2000 * INT64_C(1000000);
    ck_assert(take_sample(1002));
    ck_assert(!identity_on_beats(&identity, "0000000000000009.2.1"));
}

TEST(replica_or_unreadable_record_is_not_overwritten)
{
    record.quarantine_id = 8;
    sample.master = false;
    take_sample(1001);
    ck_assert_int_eq(identity.error, REASON_REPLICA);
    ck_assert_int_eq(identity.write_why, REASON_NONE);
    sample.master = true;
    sample.clock = (struct monitor_sample){1002 * NS_PER_S, 1002 * NS_PER_S, 1002 * 1000000};
    sample.record = "what is this";
    sample.record_len = 12;
    identity_on_sample(&identity, &periods, &context, &sample);
    ck_assert_int_eq(identity.error, REASON_RECORD);
    ck_assert_int_eq(identity.write_why, REASON_NONE);
}

TEST(record_of_another_set_is_replaced_only_by_a_reset)
{
    memcpy(record.set_id, OTHER_SET, sizeof(record.set_id));
    take_sample(1001);
    ck_assert_int_eq(identity.error, REASON_OTHERSET);
    ck_assert_int_eq(identity.write_why, REASON_NONE);
    context.reset_set = OTHER_SET;
    take_sample(1002);
    ck_assert_int_eq(identity.write_why, REASON_RESET);
}

TEST(failed_sample_changes_nothing_that_is_known)
{
    sample.failed = REASON_LOADING;
    ck_assert(!take_sample(1001));
    ck_assert_int_eq(identity_refuses(&identity), REASON_LOADING);
    sample.failed = REASON_NONE;
    ck_assert(!take_sample(1002));
    ck_assert_int_eq(identity_refuses(&identity), REASON_NONE);
}

/* --- quarantines --- */

TEST(quarantine_of_a_record_counts_on_the_daemons_clock)
{
    record.quarantine_id = 8;
    record.join_us = 1061 * INT64_C(1000000);
    ck_assert(take_sample(1001));
    ck_assert_int_eq(identity.quarantine_until_ns, 1061 * NS_PER_S);
}

TEST(clock_set_back_costs_at_most_one_quarantine)
{
    record.quarantine_id = 8;
    record.join_us = 9000 * INT64_C(1000000);
    ck_assert(take_sample(1001));
    ck_assert_int_eq(identity.quarantine_until_ns, (1001 + Q_S) * NS_PER_S + NS_PER_MS);
}

TEST(new_quarantine_with_the_same_end_counts_again)
{
    record.join_us = 1060 * INT64_C(1000000);
    record.quarantine_id = 8;
    take_sample(1001);
    record.quarantine_id = 9;
    take_sample(1040);
    ck_assert_int_eq(identity.error, REASON_NONE);
    ck_assert_int_ge(identity.quarantine_until_ns, (1040 + Q_S) * NS_PER_S);
}

/* The master suddenly has another record, with a quarantine that has ended. No daemon of this set
 * has written that record, so the data is that of another server or a copy. Only an operator's
 * override is accepted. */
TEST(replaced_record_is_a_loss)
{
    record.quarantine_id = 8;
    record.join_us++;
    take_sample(1001);
    expect_loss(REASON_FLUSHED);
    record.why = REASON_BOOTSTRAP;
    record.join_us = 1002 * INT64_C(1000000);
    ck_assert(take_sample(1002));
    ck_assert_int_eq(identity.error, REASON_NONE);
}

/* --- durable masters --- */

TEST(restart_of_a_durable_master_is_harmless)
{
    connect_to(RUN_2, 1000);
    take_sample(1001);
    ck_assert_int_eq(identity.error, REASON_DURABLE);
    ck_assert_int_eq(identity.write_why, REASON_DURABLE);
    ck_assert(!identity.data_suspect);
    memcpy(record.run_id, RUN_2, sizeof(record.run_id));
    ck_assert(take_sample(1002));
    ck_assert_int_le(identity.quarantine_until_ns, 1002 * NS_PER_S);
}

/* The circumstances that make the restart of a durable master a loss. */
enum spoiler {
    NOT_SEEN,     /* the master does not show now that it is durable */
    CLOCK_SET,    /* its clock has stepped */
    NOT_RECORDED, /* its record says durable=no */
    NOT_NEWEST,   /* its record is not the one that this daemon knows */
    WAS_REPLICA,  /* the new process was a replica before */
    BEGAN_BEFORE, /* the new process began before the last sample of the old one */
    EVICTED,      /* the old process had evicted keys */
    EVICTED_NEW,  /* the new process has evicted keys, and its settings forbid it again */
    SPOILERS
};

TEST_LOOP(restart_is_a_loss_unless_all_data_was_kept, 0, SPOILERS)
{
    if (_i == EVICTED)
        facts(5, false);
    connect_to(RUN_2, _i == BEGAN_BEFORE ? 999 : 1000);
    if (_i == NOT_SEEN)
        durable_facts(DURABILITY_MISSING);
    if (_i == EVICTED_NEW)
        facts(2, false);
    context.clock_stepped = _i == CLOCK_SET;
    record.durable = _i != NOT_RECORDED;
    record.join_us += _i == NOT_NEWEST;
    sample.was_replica = _i == WAS_REPLICA;
    take_sample(1001);
    expect_loss(REASON_RESTARTED);
}

TEST(recorded_run_that_began_too_early_is_a_copy)
{
    connect_to(RUN_2, 999);
    memcpy(record.run_id, RUN_2, sizeof(record.run_id));
    take_sample(1001);
    expect_loss(REASON_RESTARTED);
}

/* --- evicted keys --- */

TEST(keys_evicted_since_the_record_are_a_loss)
{
    facts(3, false);
    ck_assert_int_eq(identity_refuses(&identity), REASON_NONE);
    take_sample(1001);
    expect_loss(REASON_EVICTED);
    record.evicted = 3;
    record.quarantine_id = 8;
    record.why = REASON_EVICTED;
    record.join_us = 1061 * INT64_C(1000000);
    ck_assert(take_sample(1002));
    ck_assert_int_eq(identity.error, REASON_NONE);
    ck_assert(!identity.lost_keys);
    ck_assert(!identity.data_suspect);
}

/* The evictions are recorded for later daemons, but not over an operator's override. */
TEST_LOOP(master_that_may_evict_has_no_vote_and_records_evictions, 0, 2)
{
    context.has_override = _i == 1;
    facts(3, true);
    take_sample(1001);
    ck_assert_int_eq(identity_refuses(&identity), REASON_EVICTION);
    ck_assert_int_eq(identity.write_why, _i == 1 ? REASON_NONE : REASON_EVICTED);
}

TEST(recorded_durability_needs_no_new_record)
{
    ck_assert(!wants_durability(1000));
    ck_assert(!wants_durability(4600));
}

TEST(lost_durability_is_recorded_at_once)
{
    durable_facts(DURABILITY_MISSING);
    ck_assert(wants_durability(1000));
}

/* If durability were recorded earlier, two daemons that disagree about it would rewrite the record
 * all the time. */
TEST(durability_is_recorded_only_after_a_quarantine)
{
    record.durable = false;
    ck_assert(take_sample(1001));
    ck_assert(!wants_durability(1060));
    ck_assert(wants_durability(1061));
}

TEST(daemon_without_the_option_keeps_recorded_durability)
{
    durable_facts(DURABILITY_NOT_WANTED);
    ck_assert(!wants_durability(4600));
}

TEST(master_that_may_evict_is_not_durable)
{
    facts(0, true);
    ck_assert_int_eq(identity.durability, DURABILITY_MISSING);
}

TEST(master_with_replicas_is_not_durable)
{
    sample.replicated = true;
    ck_assert(!take_sample(1001));
    ck_assert_int_eq(identity.durability, DURABILITY_MISSING);
    ck_assert(wants_durability(1001));
}
