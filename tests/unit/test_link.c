/*
 * engine/master/link.h in the engine, on fake masters and virtual time: what becomes of a
 * connection. Whose answer is whose: test_runs.c.
 */
#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster.h"

static struct cluster w;

static void five(void)
{
    cluster_init(&w, 5);
}

static void end(void)
{
    cluster_deinit(&w);
}

START_TEST(a_hung_master_is_suspect_then_given_up_then_back)
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
END_TEST

START_TEST(a_master_that_answers_late_stays_suspect_until_it_is_in_time)
{
    w.masters[2].hung = true;
    cluster_pass_ms(&w, 1100);
    ck_assert_int_eq(w.engine.flights.masters[2].link.state, LINK_SUSPECT);
    w.masters[2].hung = false;
    cluster_settle(&w); /* the late heartbeat, and a fresh one that is in time */
    ck_assert_int_eq(w.engine.flights.masters[2].link.state, LINK_UP);
}
END_TEST

START_TEST(a_dead_master_is_tried_ever_less_often)
{
    cluster_kill(&w, 0);
    cluster_pass_ms(&w, 60000);
    unsigned attempts = w.engine.flights.masters[0].link.attempts;
    ck_assert_uint_ge(attempts, 30);
    ck_assert_uint_le(attempts, 70);
    ck_assert_int_eq(w.engine.flights.masters[0].link.reason, REASON_REFUSED);
    /* Through all of them it is away since it was lost. */
    ck_assert_int_eq(w.engine.flights.masters[0].link.since_ns, w.now_ns - 60 * NS_PER_S);
    cluster_restart(&w, 0);
    cluster_pass_ms(&w, 2100);
    ck_assert_int_eq(w.engine.flights.masters[0].link.state, LINK_UP);
}
END_TEST

/* A daemon that had no processor for a moment is no farther from its masters. */
START_TEST(a_slow_heartbeat_is_hardly_any_distance)
{
    struct link *link = &w.engine.flights.masters[0].link;
    cluster_pass_ms(&w, 3000);
    int64_t near_ns = link->distance_ns;
    ck_assert_int_ge(near_ns, 0);
    w.masters[0].delay_ns = 16 * NS_PER_MS;
    while (link->round_trip_ns < 16 * NS_PER_MS)
        cluster_pass_ms(&w, 1);
    ck_assert_int_le(link->distance_ns, near_ns + 2 * NS_PER_MS);
    /* Until it is one: ever slower it comes to that. */
    cluster_pass_ms(&w, 40000);
    ck_assert_int_ge(link->distance_ns, 14 * NS_PER_MS);
    ck_assert_int_le(link->distance_ns, 16 * NS_PER_MS);
    w.masters[0].delay_ns = 0;
    cluster_pass_ms(&w, 1100);
    ck_assert_int_eq(link->distance_ns, near_ns);
}
END_TEST

START_TEST(a_reply_nobody_asked_for_closes_the_link)
{
    const struct redis_reply stray = {.kind = RESP_STATUS, .str = "OK", .len = 2};
    ck_assert(!engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, &stray, 1, w.now_ns));
    ck_assert_int_eq(w.engine.flights.masters[0].link.reason, REASON_GARBAGE);
}
END_TEST

/* It is lost, and connected to anew; nothing has been answered yet. */
static struct link *reconnect(unsigned node)
{
    struct link *link = &w.engine.flights.masters[node].link;
    cluster_kill(&w, node);
    cluster_pass_ms(&w, 100);
    ck_assert_int_eq(link->state, LINK_DOWN);
    w.now_ns = engine_deadline_ns(&w.engine);
    while (link->state == LINK_DOWN) {
        w.now_ns = engine_deadline_ns(&w.engine);
        engine_on_timer(&w.engine, w.now_ns);
    }
    w.connections[node][CHANNEL_COMMANDS].open = true;
    w.connections[node][CHANNEL_COMMANDS].opening = false;
    engine_on_connected(&w.engine, node, CHANNEL_COMMANDS, w.now_ns);
    return link;
}

START_TEST(a_greeting_that_is_refused_names_the_reason)
{
    const struct redis_reply refusals[] = {
        {.kind = RESP_ERROR, .str = "NOAUTH Authentication required.", .len = 31},
        {.kind = RESP_STRING, .str = "no run id", .len = 9},
    };
    const enum reason reasons[] = {REASON_NOAUTH, REASON_GARBAGE};
    for (unsigned i = 0; i < 2; i++) {
        const struct link *link = reconnect(i);
        /* CLIENT SETNAME and CLIENT ID may be refused, INFO may not. */
        ck_assert(engine_on_replies(&w.engine, i, CHANNEL_COMMANDS, &refusals[0], 1, w.now_ns));
        ck_assert(engine_on_replies(&w.engine, i, CHANNEL_COMMANDS, &refusals[0], 1, w.now_ns));
        ck_assert(!engine_on_replies(&w.engine, i, CHANNEL_COMMANDS, &refusals[i], 1, w.now_ns));
        ck_assert_int_eq(link->reason, reasons[i]);
    }
}
END_TEST

/* Said before anything was read, so it comes as the answer to what may be refused. */
START_TEST(a_master_with_too_many_clients_says_so_first)
{
    const struct redis_reply refusal = {
        .kind = RESP_ERROR, .str = "ERR max number of clients reached", .len = 33};
    const struct link *link = reconnect(0);
    ck_assert(!engine_on_replies(&w.engine, 0, CHANNEL_COMMANDS, &refusal, 1, w.now_ns));
    ck_assert_int_eq(link->reason, REASON_MAXCLIENTS);
}
END_TEST

START_TEST(an_error_that_is_not_known_is_remembered)
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
END_TEST

START_TEST(what_an_acl_refuses_is_remembered)
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
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("link");
    TCase *cases = tcase_create("link");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, five, end);
    tcase_add_test(cases, a_hung_master_is_suspect_then_given_up_then_back);
    tcase_add_test(cases, a_master_that_answers_late_stays_suspect_until_it_is_in_time);
    tcase_add_test(cases, a_dead_master_is_tried_ever_less_often);
    tcase_add_test(cases, a_slow_heartbeat_is_hardly_any_distance);
    tcase_add_test(cases, a_reply_nobody_asked_for_closes_the_link);
    tcase_add_test(cases, a_greeting_that_is_refused_names_the_reason);
    tcase_add_test(cases, a_master_with_too_many_clients_says_so_first);
    tcase_add_test(cases, an_error_that_is_not_known_is_remembered);
    tcase_add_test(cases, what_an_acl_refuses_is_remembered);
    suite_add_tcase(suite, cases);
    return suite;
}
