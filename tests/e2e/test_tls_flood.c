/*
 * TLS clients that flood the daemon with records without requests: other clients get their replies
 * meanwhile. With FLOOD_REPORT=1 in the environment, the program prints the longest time to a
 * reply.
 */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/limits.h"
#include "tests/e2e/flood.h"
#include "tests/e2e/process.h"
#include "tests/e2e/tls_stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

/* An endless flood lasts until the honest client has had TURNS replies and the flood has sent
 * RECORDS records. Any other flood lasts until all of its records are sent or the daemon closes its
 * connection, and in this time the honest client must get at least TURNS replies. While the honest
 * client waits for one reply, an endless flood may send at most RECORDS_IN_A_TURN records.
 *
 * A fragmented hello is short, and a busy machine lets the honest client wait for its processor
 * after each reply: beside ten busy processes it had 73. If the daemon reads without
 * LIMIT_TLS_READS, it has at most one. So HELLO_TURNS still tells them apart. */
enum { TURNS = 100, HELLO_TURNS = 10, RECORDS = 100000, RECORDS_IN_A_TURN = 40000 };

struct flood_run {
    struct flood flood;
    unsigned turns; /* replies to the honest client during the flood */
    unsigned long most_records;
    int64_t worst_ms;
};

static void ping(struct flood_run *flood_run, struct client *client)
{
    int64_t began_ms = waiting_clock_ms();
    unsigned long sent_before = flood_run->flood.records;
    client_expect(client, "PONG", "PING");
    int64_t took_ms = waiting_clock_ms() - began_ms;
    unsigned long records = flood_run->flood.records - sent_before;
    flood_run->worst_ms = took_ms > flood_run->worst_ms ? took_ms : flood_run->worst_ms;
    flood_run->most_records = records > flood_run->most_records ? records : flood_run->most_records;
    flood_run->turns += !flood_run->flood.over;
}

static void report(const char *test, const struct flood_run *flood_run)
{
    if (getenv("FLOOD_REPORT") != NULL)
        printf("%s: %u turns; the longest took %ld ms, and at most %lu records came in one\n", test,
               flood_run->turns, (long)flood_run->worst_ms, flood_run->most_records);
    fflush(stdout);
}

static void check_flood(const char *test, enum flood_kind kind)
{
    static struct flood_run flood_run;
    struct stage stage;
    tls_stage_open(&stage, test);
    flood_start(&flood_run.flood, &stage, kind);
    while (!flood_run.flood.over && (flood_run.turns < TURNS || flood_run.flood.records < RECORDS))
        ping(&flood_run, &stage.client);
    report(test, &flood_run);
    flood_stop(&flood_run.flood);
    unsigned least = kind == FLOOD_FRAGMENTS ? HELLO_TURNS : TURNS;
    ck_assert_msg(flood_run.turns >= least, "only %u replies before the flood was over",
                  flood_run.turns);
    ck_assert_uint_le(flood_run.most_records, RECORDS_IN_A_TURN);
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}

TEST(a_renegotiation_flood_does_not_delay_clients)
{
    check_flood(__func__, FLOOD_CLIENT_HELLOS);
}

TEST(an_empty_record_flood_does_not_delay_clients)
{
    check_flood(__func__, FLOOD_EMPTY);
}

TEST(a_key_update_flood_does_not_delay_clients)
{
    check_flood(__func__, FLOOD_KEY_UPDATES);
}

TEST(a_fragmented_hello_does_not_delay_clients)
{
    check_flood(__func__, FLOOD_FRAGMENTS);
}

/* More handshakes than a pass advances have input all the time. Another one gets its turns. */
TEST(many_fragmented_hellos_do_not_starve_a_handshake)
{
    enum { FLOODS = LIMIT_HANDSHAKES_A_PASS + 10 };
    struct flood *floods = calloc(FLOODS, sizeof(*floods));
    struct stage stage;
    unsigned files;
    ck_assert_ptr_nonnull(floods);
    tls_stage_open(&stage, __func__);
    unsigned before = process_open_files(stage.daemon.pid);
    struct waiting waiting = waiting_for("a handshake beside floods that have not timed out");
    /* Repeat what a busy machine has made too slow. */
    do {
        struct tls_client client;
        waiting_pause(&waiting);
        for (unsigned i = 0; i < FLOODS; i++)
            flood_start(&floods[i], &stage, FLOOD_FRAGMENTS);
        tls_stage_connect(&client, &stage);
        ck_assert_str_eq(tls_client_ask(&client, "PING"), "PONG");
        files = process_open_files(stage.daemon.pid);
        for (unsigned i = 0; i < FLOODS; i++)
            flood_stop(&floods[i]);
        tls_client_close(&client);
        while (process_open_files(stage.daemon.pid) != before)
            waiting_pause(&waiting);
    } while (files != before + FLOODS + 1);
    free(floods);
    stage_close(&stage);
}

/* Runs until the floods that were prepared in advance are over. */
TEST(all_floods_at_once_do_not_delay_clients)
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
    ck_assert_msg(turns >= TURNS, "only %u replies before the floods were over", turns);
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}
