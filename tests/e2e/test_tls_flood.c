/*
 * TLS clients that keep the daemon busy with records that carry no request: other clients get their
 * answers meanwhile.
 *
 *     FLOOD_REPORT=1 build/tests/e2e/test_tls_flood     prints the longest time an answer took
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/e2e/flood.h"
#include "tests/e2e/tls_stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

/* How much of a flood there has to be: answers that an honest client gets meanwhile, and records,
 * where it has no end. And how much of it the daemon may serve before an answer. */
enum { TURNS = 100, RECORDS = 100000, RECORDS_IN_A_TURN = 40000 };

struct interleavings {
    struct flood flood;
    unsigned turns; /* of the honest client, until the flood was over */
    unsigned long most_records;
    int64_t worst_ms;
};

static void take_turn(struct interleavings *interleavings, struct client *client)
{
    int64_t began_ms = waiting_clock_ms();
    unsigned long sent_before = interleavings->flood.records;
    client_expect(client, "PONG", "PING");
    int64_t took_ms = waiting_clock_ms() - began_ms;
    unsigned long records = interleavings->flood.records - sent_before;
    interleavings->worst_ms = took_ms > interleavings->worst_ms ? took_ms : interleavings->worst_ms;
    interleavings->most_records =
        records > interleavings->most_records ? records : interleavings->most_records;
    interleavings->turns += !interleavings->flood.over;
}

static void report(const char *test, const struct interleavings *interleavings)
{
    if (getenv("FLOOD_REPORT") != NULL)
        printf("%s: %u turns; the longest took %ld ms, and at most %lu records came in one\n", test,
               interleavings->turns, (long)interleavings->worst_ms, interleavings->most_records);
    fflush(stdout);
}

static void check_flood(const char *test, enum flood_kind kind)
{
    static struct interleavings interleavings;
    struct stage stage;
    tls_stage_open(&stage, test);
    flood_start(&interleavings.flood, &stage, kind);
    while (!interleavings.flood.over &&
           (interleavings.turns < TURNS || interleavings.flood.records < RECORDS))
        take_turn(&interleavings, &stage.client);
    report(test, &interleavings);
    flood_stop(&interleavings.flood);
    ck_assert_msg(interleavings.turns >= TURNS, "only %u answers until the flood was over",
                  interleavings.turns);
    ck_assert_uint_le(interleavings.most_records, RECORDS_IN_A_TURN);
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}

START_TEST(a_renegotiation_flood_does_not_delay_clients)
{
    check_flood(__func__, FLOOD_CLIENT_HELLOS);
}
END_TEST

START_TEST(an_empty_record_flood_does_not_delay_clients)
{
    check_flood(__func__, FLOOD_EMPTY);
}
END_TEST

START_TEST(a_key_update_flood_does_not_delay_clients)
{
    check_flood(__func__, FLOOD_KEY_UPDATES);
}
END_TEST

START_TEST(a_fragmented_hello_does_not_delay_clients)
{
    check_flood(__func__, FLOOD_FRAGMENTS);
}
END_TEST

/* Until those that were prepared are over. */
START_TEST(all_floods_at_once_do_not_delay_clients)
{
    enum { KINDS = FLOOD_KEY_UPDATES + 1 };
    static struct flood floods[KINDS];
    struct stage stage;
    unsigned turns = 0;
    int64_t worst_ms = 0;
    bool over = false;
    tls_stage_open(&stage, __func__);
    for (unsigned i = 0; i < KINDS; i++)
        flood_start(&floods[i], &stage, (enum flood_kind)i);
    while (!over) {
        int64_t began_ms = waiting_clock_ms();
        client_expect(&stage.client, "PONG", "PING");
        int64_t took_ms = waiting_clock_ms() - began_ms;
        worst_ms = took_ms > worst_ms ? took_ms : worst_ms;
        turns++;
        over = true;
        for (unsigned i = 0; i < KINDS; i++)
            over = over && (floods[i].over || floods[i].seal != NULL);
    }
    if (getenv("FLOOD_REPORT") != NULL)
        printf("at once: %u turns; the longest took %ld ms\n", turns, (long)worst_ms);
    for (unsigned i = 0; i < KINDS; i++)
        flood_stop(&floods[i]);
    ck_assert_msg(turns >= TURNS, "only %u answers until the floods were over", turns);
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("tls_flood");
    TCase *tests = sandbox_case("flood");
    tcase_add_test(tests, a_renegotiation_flood_does_not_delay_clients);
    tcase_add_test(tests, an_empty_record_flood_does_not_delay_clients);
    tcase_add_test(tests, a_key_update_flood_does_not_delay_clients);
    tcase_add_test(tests, a_fragmented_hello_does_not_delay_clients);
    tcase_add_test(tests, all_floods_at_once_do_not_delay_clients);
    suite_add_tcase(suite, tests);
    return suite;
}
