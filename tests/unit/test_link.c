/*
 * engine/master/link.h: the states of a connection. The tests run the engine on fake masters and
 * virtual time. test_batches.c covers outstanding commands.
 */
#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

const struct runner_settings runner_settings = {.setup = cluster_setup,
                                                .teardown = cluster_teardown};

TEST(hung_master_is_suspect_then_given_up_then_back)
{
    w.masters[2].hung = true;
    cluster_pass_ms(&w, 1100);
    ck_assert_int_eq(w.engine.flights.masters[2].link.state, LINK_SUSPECT);
    cluster_pass_ms(&w, 1100);
    ck_assert_int_ne(w.engine.flights.masters[2].link.state, LINK_SUSPECT);
    ck_assert_int_eq(w.engine.flights.masters[2].link.reason, REASON_HUNG);
    w.masters[2].hung = false;
    cluster_pass_ms(&w, 3000);
    ck_assert_int_eq(w.engine.flights.masters[2].link.state, LINK_UP);
    ck_assert_int_eq(w.engine.flights.masters[2].link.reason, REASON_NONE);
}

TEST(late_master_stays_suspect_until_it_answers_in_time)
{
    w.masters[2].hung = true;
    cluster_pass_ms(&w, 1100);
    ck_assert_int_eq(w.engine.flights.masters[2].link.state, LINK_SUSPECT);
    w.masters[2].hung = false;
    cluster_settle(&w); /* the late answer, and a second heartbeat that is answered in time */
    ck_assert_int_eq(w.engine.flights.masters[2].link.state, LINK_UP);
}

TEST(dead_master_is_tried_with_growing_backoff)
{
    cluster_kill(&w, 0);
    cluster_pass_ms(&w, 60000);
    unsigned attempts = w.engine.flights.masters[0].link.attempts;
    ck_assert_uint_ge(attempts, 30);
    ck_assert_uint_le(attempts, 70);
    ck_assert_int_eq(w.engine.flights.masters[0].link.reason, REASON_REFUSED);
    /* The link counts as down since it was lost, through all attempts. */
    ck_assert_int_eq(w.engine.flights.masters[0].link.since_ns, w.now_ns - 60 * NS_PER_S);
    cluster_restart(&w, 0);
    cluster_pass_ms(&w, 2100);
    ck_assert_int_eq(w.engine.flights.masters[0].link.state, LINK_UP);
}

/* A single answer can be slow because the daemon got no CPU time for a moment. That does not mean
 * that the master is far away. */
TEST(single_slow_heartbeat_hardly_changes_the_distance)
{
    struct link *link = &w.engine.flights.masters[0].link;
    cluster_pass_ms(&w, 3000);
    int64_t near_ns = link->distance_ns;
    ck_assert_int_ge(near_ns, 0);
    w.masters[0].delay_ns = 16 * NS_PER_MS;
    while (link->round_trip_ns < 16 * NS_PER_MS)
        cluster_pass_ms(&w, 1);
    ck_assert_int_le(link->distance_ns, near_ns + 2 * NS_PER_MS);
    /* If all answers are slow, the distance approaches their round trip. */
    cluster_pass_ms(&w, 40000);
    ck_assert_int_ge(link->distance_ns, 14 * NS_PER_MS);
    ck_assert_int_le(link->distance_ns, 16 * NS_PER_MS);
    w.masters[0].delay_ns = 0;
    cluster_pass_ms(&w, 1100);
    ck_assert_int_eq(link->distance_ns, near_ns);
}

/* Before the first round is answered, only the age of its command is known. Taken for the latency,
 * it would make a far master look near, and the limit of admission would be too low. */
TEST(latency_is_not_known_before_the_first_round_is_answered)
{
    enum { DELAY_MS = 5 };
    const struct link *link = &w.engine.flights.masters[0].link;
    cluster_pass_ms(&w, 3000);
    ck_assert_int_eq(link_latency_ns(link, w.now_ns), INT64_MAX);
    w.masters[0].delay_ns = DELAY_MS * NS_PER_MS;
    cluster_send(&w, "LOCK a 10s");
    cluster_pass_ms(&w, 1);
    ck_assert_uint_gt(link->outstanding_count, 0);
    ck_assert_int_eq(link_latency_ns(link, w.now_ns), INT64_MAX);
    cluster_pass_ms(&w, 2 * DELAY_MS);
    ck_assert_int_ge(link_latency_ns(link, w.now_ns), DELAY_MS * NS_PER_MS);
    ck_assert_int_lt(link_latency_ns(link, w.now_ns), 2 * DELAY_MS * NS_PER_MS);
}

TEST(unsolicited_reply_closes_the_link)
{
    const struct redis_reply stray = {.kind = RESP_STATUS, .str = "OK", .len = 2};
    ck_assert(!engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, &stray, 1, w.now_ns));
    ck_assert_int_eq(w.engine.flights.masters[0].link.reason, REASON_GARBAGE);
}

/* Kill the master and let the link connect again. The tests then play the master, which has not
 * answered the greeting yet. */
static struct link *reconnect(unsigned node)
{
    struct link *link = &w.engine.flights.masters[node].link;
    cluster_kill(&w, node);
    cluster_pass_ms(&w, 100);
    ck_assert_int_eq(link->state, LINK_DOWN);
    w.now_ns = engine_deadline_ns(&w.engine);
    while (link->state == LINK_DOWN) {
        w.now_ns = engine_deadline_ns(&w.engine);
        engine_on_timer(&w.engine, w.now_ns, w.now_ns);
    }
    w.connections[node][CHANNEL_COMMANDS].open = true;
    w.connections[node][CHANNEL_COMMANDS].opening = false;
    engine_on_connected(&w.engine, node, CHANNEL_COMMANDS, w.now_ns);
    return link;
}

TEST(refused_greeting_names_the_reason)
{
    const struct redis_reply refusals[] = {
        {.kind = RESP_ERROR, .str = "NOAUTH Authentication required.", .len = 31},
        {.kind = RESP_STRING, .str = "no run id", .len = 9},
    };
    const enum reason reasons[] = {REASON_NOAUTH, REASON_GARBAGE};
    for (unsigned i = 0; i < 2; i++) {
        const struct redis_reply id = {.kind = RESP_INTEGER, .integer = 7};
        const struct link *link = reconnect(i);
        /* CLIENT SETNAME may be refused. */
        ck_assert(engine_on_replies(&w.engine, i, CHANNEL_COMMANDS, &refusals[0], 1, w.now_ns));
        ck_assert(engine_on_replies(&w.engine, i, CHANNEL_COMMANDS, &id, 1, w.now_ns));
        ck_assert(!engine_on_replies(&w.engine, i, CHANNEL_COMMANDS, &refusals[i], 1, w.now_ns));
        ck_assert_int_eq(link->reason, reasons[i]);
    }
}

/* A script runs on the master while it reads CLIENT ID, or CLIENT KILL, and has ended when it reads
 * the next command. The old connection may have commands that the master has not read, so the link
 * does not go on without the id of the new one, or before the old one is killed. */
TEST_LOOP(link_that_cannot_kill_its_old_connection_is_closed, 0, 2)
{
    static const char busy[] = "BUSY Redis is busy running a script.";
    const struct redis_reply refusal = {.kind = RESP_ERROR, .str = busy, .len = sizeof(busy) - 1};
    const struct redis_reply fine = {.kind = RESP_STATUS, .str = "OK", .len = 2};
    const struct redis_reply id = {.kind = RESP_INTEGER, .integer = 7};
    const struct redis_reply info = {
        .kind = RESP_STRING, .str = "run_id:0123456789012345678901234567890123456789", .len = 47};
    const struct redis_reply *replies[] = {&fine, &id, &info};
    const struct link *link = reconnect(0);
    for (unsigned i = 0; i < (_i == 0 ? 1 : 3); i++)
        ck_assert(engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, replies[i], 1, w.now_ns));
    ck_assert(!engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, &refusal, 1, w.now_ns));
    ck_assert_int_eq(link->state, LINK_DOWN);
    ck_assert_int_eq(link->reason, REASON_BUSY);
}

/* The master sends this error before it reads any command. The link takes it for the reply to
 * CLIENT SETNAME, which is otherwise allowed to fail. */
TEST(master_with_too_many_clients_is_recognized)
{
    const struct redis_reply refusal = {
        .kind = RESP_ERROR, .str = "ERR max number of clients reached", .len = 33};
    const struct link *link = reconnect(0);
    ck_assert(!engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, &refusal, 1, w.now_ns));
    ck_assert_int_eq(link->reason, REASON_MAXCLIENTS);
}

TEST(text_of_an_unknown_error_is_kept)
{
    const struct redis_reply fine = {.kind = RESP_STATUS, .str = "OK", .len = 2};
    const struct redis_reply strange = {.kind = RESP_ERROR, .str = "ERR is strange", .len = 14};
    const struct link *link = reconnect(0);
    ck_assert(engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, &fine, 1, w.now_ns));
    ck_assert(engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, &fine, 1, w.now_ns));
    ck_assert(!engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, &strange, 1, w.now_ns));
    ck_assert_int_eq(link->reason, REASON_ERROR);
    ck_assert_str_eq(link_meaning(link, REASON_ERROR), "ERR is strange");
}

TEST(text_of_an_acl_error_is_kept)
{
    static const char words[] =
        "NOPERM this user has no permissions to run the 'client|id' command";
    const struct redis_reply refusal = {.kind = RESP_ERROR, .str = words, .len = sizeof(words) - 1};
    const struct redis_reply fine = {.kind = RESP_STATUS, .str = "OK", .len = 2};
    const struct link *link = reconnect(0);
    ck_assert(engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, &fine, 1, w.now_ns));
    ck_assert(!engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, &refusal, 1, w.now_ns));
    ck_assert_int_eq(link->reason, REASON_NOPERM);
    ck_assert_str_eq(link_meaning(link, REASON_NOPERM), words);
    ck_assert_str_eq(link_meaning(link, REASON_ERROR), reason_text(REASON_ERROR));
}
