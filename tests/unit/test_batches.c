/*
 * Consecutive unfenced votes form a batch with one outstanding command. The tests run the engine on
 * fake masters and virtual time.
 */
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

static void setup(void)
{
    cluster_init(&w, 3);
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = cluster_teardown};

static void send_locks(const char *names)
{
    for (; *names != '\0'; names++)
        cluster_send(&w, "#%c LOCK %c 10s", *names, *names);
}

/* Assert that these locks are granted in this order. */
static void expect_grants(const char *names)
{
    for (; *names != '\0'; names++)
        cluster_expect_grant(&w, (char[]){*names, '\0'});
}

/* Deliver this many OK replies from one read. Returns the number taken. */
static unsigned reply_ok(unsigned node, unsigned count)
{
    static const struct redis_reply ok = {.kind = RESP_STATUS, .str = "OK", .len = 2};
    return engine_on_replies(&w.engine, node, CHANNEL_COMMANDS, &ok, count, w.now_ns);
}

static void expect_outstanding(unsigned node, unsigned outstanding, unsigned load)
{
    ck_assert_uint_eq(w.engine.flights.masters[node].link.outstanding_count, outstanding);
    ck_assert_uint_eq(w.engine.flights.masters[node].link.load, load);
}

static void mute(bool are_mute)
{
    for (unsigned i = 0; i < w.node_count; i++)
        w.masters[i].mute = are_mute;
}

TEST(votes_of_one_pass_form_one_batch)
{
    send_locks("abc");
    for (unsigned i = 0; i < 3; i++)
        expect_outstanding(i, 1, 3);
    cluster_settle(&w);
    expect_grants("abc");
    expect_outstanding(0, 0, 0);
}

TEST(other_command_ends_a_batch)
{
    send_locks("ab");
    cluster_send(&w, "#f LOCK f 10s FENCE");
    send_locks("cd");
    expect_outstanding(0, 3, 5);
    cluster_settle(&w);
    expect_grants("abfcd");
}

TEST(votes_of_two_epochs_form_two_batches)
{
    send_locks("a");
    for (unsigned i = 0; i < 3; i++)
        w.engine.flights.guard.nodes[i].epoch++;
    send_locks("b");
    expect_outstanding(0, 2, 2);
    cluster_settle(&w);
    cluster_expect(&w, "#a NOQUORUM 1/3 need=2 a:unchecked b:unchecked");
    cluster_expect_grant(&w, "b");
}

/* The link of one node is full and skips the vote for b. On that node, the vote for c must begin a
 * new batch, because it does not follow the vote for a directly. The test runs once for each
 * node. */
TEST_LOOP(skipped_vote_ends_the_batch_of_that_node, 0, 3)
{
    const unsigned node = (unsigned)_i;
    send_locks("a");
    w.engine.flights.masters[node].link.load += LIMIT_LINK_VOTES;
    send_locks("b");
    w.engine.flights.masters[node].link.load -= LIMIT_LINK_VOTES;
    send_locks("c");
    for (unsigned i = 0; i < 3; i++)
        expect_outstanding(i, i == node ? 2 : 1, i == node ? 2 : 3);
    cluster_settle(&w);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_ptr_nonnull(strstr(cluster_take_reply(&w), " OK "));
    ck_assert_uint_eq(cluster_count(&w, "a"), 3);
    ck_assert_uint_eq(cluster_count(&w, "b"), 2);
    ck_assert_uint_eq(cluster_count(&w, "c"), 3);
}

TEST(refusal_in_a_batch_belongs_to_its_lock)
{
    cluster_occupy(&w, "b", 5000);
    cluster_set(&w, 1, "c", "foreign", 5000);
    send_locks("abcd");
    cluster_settle(&w);
    expect_grants("adc");
    cluster_expect(&w, "#b HELD 5000");
    expect_outstanding(0, 0, 0);
}

TEST(answers_to_a_part_of_a_batch_leave_the_rest)
{
    mute(true);
    send_locks("abcde");
    cluster_settle(&w);
    expect_outstanding(0, 4, 8); /* five votes and the guard's three commands */
    ck_assert_uint_eq(reply_ok(0, 2), 2);
    expect_outstanding(0, 4, 6);
    /* Replies after the end of the batch are not taken. */
    ck_assert_uint_eq(reply_ok(0, 9), 3);
    expect_outstanding(0, 3, 3);
    ck_assert_uint_eq(w.engine.flights.vote_count[0], 2);
}

TEST(answers_from_one_read_count_for_each_vote)
{
    mute(true);
    send_locks("abcd");
    cluster_settle(&w);
    mute(false);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(reply_ok(i, 4), 4);
    /* No lock is granted until the guard's probe is answered. Here the connections end before
     * that. */
    ck_assert_ptr_null(cluster_next_reply(&w));
    cluster_cut(&w, 0);
    cluster_cut(&w, 1);
    cluster_settle(&w);
    for (const char *tag = "abcd"; *tag != '\0'; tag++)
        cluster_expect(&w, "#%c NOQUORUM 1/3 need=2 a:disconnected b:disconnected", *tag);
}

TEST(lost_batch_fails_vote_by_vote)
{
    mute(true);
    send_locks("abcd");
    cluster_settle(&w);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(reply_ok(i, 1), 1);
    mute(false);
    for (unsigned i = 0; i < 3; i++)
        cluster_cut(&w, i);
    cluster_settle(&w);
    for (const char *tag = "abcd"; *tag != '\0'; tag++)
        cluster_expect(&w, "#%c NOQUORUM 1/3 need=2 a:disconnected b:disconnected", *tag);
    cluster_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
    expect_outstanding(0, 0, 0);
}

/* The masters answer too slowly for their clock samples to prove anything, so the guard keeps the
 * votes until they are too old. */
TEST(expired_batch_fails_vote_by_vote)
{
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].delay_ns = 20 * NS_PER_MS;
    send_locks("abc");
    cluster_pass_ms(&w, 45);
    ck_assert_uint_eq(w.engine.flights.vote_count[0], 1);
    cluster_pass_ms(&w, 55);
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].delay_ns = 0;
    cluster_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.flights.vote_count[0], 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}

/* The ring of outstanding commands does not clear its slots. The test fills them with 0xff, as
 * content left by earlier commands. */
TEST(reused_slot_has_no_data_of_an_earlier_command)
{
    for (unsigned i = 0; i < 3; i++)
        memset(w.engine.flights.masters[i].link.outstanding, 0xff,
               LIMIT_LINK_COMMANDS * sizeof(struct outstanding));
    send_locks("ab");
    cluster_settle(&w);
    expect_grants("ab");
    expect_outstanding(0, 0, 0);
}

/* The counters must count the votes of a batch one by one, and the histogram must get a round trip
 * for each vote. */
TEST(each_vote_of_a_batch_is_counted)
{
    const struct link *link = &w.engine.flights.masters[0].link;
    uint64_t before = 0;
    uint64_t after = 0;
    mute(true);
    send_locks("abcd");
    ck_assert_uint_eq(link_unanswered(link), 4);
    cluster_settle(&w);
    ck_assert_uint_eq(link_unanswered(link), 4 + 3);
    uint64_t before_ns = link->round_trips.sum_ns;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        before += link->round_trips.counts[i];
    w.now_ns += NS_PER_MS;
    reply_ok(0, 3);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        after += link->round_trips.counts[i];
    ck_assert_uint_eq(after, before + 3);
    ck_assert_uint_eq(link->round_trips.sum_ns, before_ns + 3 * NS_PER_MS);
    ck_assert_uint_eq(link_unanswered(link), 1 + 3);
}
