/*
 * More requests than the masters can serve, on virtual time: each master takes half a millisecond
 * for a command, so that the rounds of all clients together take longer than node_timeout (50 ms).
 * Each client locks and unlocks a resource of its own over and over.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

enum { CLIENTS_MAX = 80, SERVICE_US = 500 };

/* The clients send tagged requests on one connection: client i has the tag i. */
static struct {
    unsigned clients;
    bool waits;
    unsigned grants[CLIENTS_MAX];
    unsigned others; /* replies other than OK */
    char other[128]; /* the last of them */
} load;

static void setup(void)
{
    cluster_init(&w, 5);
    cluster_pass_ms(&w, 1000);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].service_ns = SERVICE_US * 1000;
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = cluster_teardown};

static void lock(unsigned client)
{
    cluster_send(&w, "#%u LOCK key-%u 30s%s", client, client, load.waits ? " WAIT 60s" : "");
}

static void take_replies(void)
{
    const char *reply;
    unsigned again[CLIENTS_MAX];
    unsigned again_count = 0;
    while ((reply = cluster_next_reply(&w)) != NULL) {
        unsigned client;
        char token[LIMIT_TOKEN + 1];
        if (sscanf(reply, "#%u OK %40[0-9a-f] ", &client, token) == 2) {
            load.grants[client]++;
            cluster_send(&w, "#%u UNLOCK key-%u %s", client, client, token);
            continue;
        }
        ck_assert_int_eq(sscanf(reply, "#%u ", &client), 1);
        if (strcmp(strchr(reply, ' '), " OK") != 0) {
            load.others++;
            snprintf(load.other, sizeof(load.other), "%s", reply);
        }
        again[again_count++] = client;
    }
    w.reply_count = w.replies_read = 0;
    for (unsigned i = 0; i < again_count; i++)
        lock(again[i]);
}

/* Run this load for twice `ms`. Returns the number of grants in the second half. In the first half
 * the admission limit adapts to the load. */
static unsigned run_for(unsigned clients, bool waits, unsigned ms)
{
    unsigned grants = 0;
    load.clients = clients;
    load.waits = waits;
    for (unsigned i = 0; i < clients; i++)
        lock(i);
    for (unsigned i = 0; i < 2 * ms; i++) {
        if (i == ms) {
            memset(load.grants, 0, sizeof(load.grants));
            load.others = 0;
        }
        cluster_pass_ms(&w, 1);
        take_replies();
    }
    for (unsigned i = 0; i < clients; i++)
        grants += load.grants[i];
    return grants;
}

TEST(throughput_does_not_collapse_and_no_request_fails)
{
    unsigned few = run_for(8, true, 5000);
    cluster_teardown();
    setup();
    unsigned many = run_for(CLIENTS_MAX, true, 5000);
    ck_assert_msg(load.others == 0, "%u replies are not OK, the last: %s", load.others, load.other);
    ck_assert_msg(many >= few * 9 / 10, "%u grants with 8 clients, %u with 80", few, many);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(cluster_vote(&w, i), "-");
}

TEST(all_clients_get_an_equal_share)
{
    unsigned grants = run_for(CLIENTS_MAX, true, 10000);
    for (unsigned i = 0; i < CLIENTS_MAX; i++) {
        ck_assert_uint_ge(load.grants[i], grants / CLIENTS_MAX * 9 / 10);
        ck_assert_uint_le(load.grants[i], grants / CLIENTS_MAX * 11 / 10 + 1);
    }
}

TEST(lock_without_wait_is_told_that_the_daemon_is_busy)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].service_ns *= 4;
    run_for(CLIENTS_MAX, false, 2000);
    ck_assert_uint_gt(load.others, 0);
    ck_assert_ptr_nonnull(strstr(load.other, " LIMIT busy"));
}

/* Set the admission limit to one round. The LOCK of "first" takes it until its deadline, because a
 * quorum of the masters hangs, and the LOCK of "second" is held back. */
static void occupy_admission(void)
{
    w.engine.flights.admission.limit = 1;
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].service_ns = 0;
    cluster_hang(&w, 3, true);
    cluster_submit(&w, "#first LOCK first 30s");
    cluster_submit(&w, "#second LOCK second 30s");
    cluster_expect(&w, "(nothing)");
}

TEST(request_that_is_held_back_sends_nothing)
{
    occupy_admission();
    unsigned before = cluster_commands(&w);
    cluster_submit(&w, "#lock LOCK a 30s WAIT 20ms");
    cluster_submit(&w, "#try LOCK b 30s");
    cluster_submit(&w, "#status STATUS c");
    ck_assert_uint_eq(cluster_commands(&w), before);
    cluster_pass_ms(&w, 30);
    cluster_expect(&w, "#lock LIMIT busy");
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(cluster_commands(&w), before);
}

/* No round may start until open_admission(). */
static void close_admission(void)
{
    w.engine.flights.admission.limit = 0;
    w.engine.flights.admission.limited++;
}

static void open_admission(void)
{
    w.engine.flights.admission.limit = LIMIT_ADMISSION_START;
    w.engine.flights.admission.limited--;
}

/* The second LOCK becomes the first in the queue when the first one is refused, and is then held
 * back itself. */
TEST(lock_without_wait_is_held_back_for_node_timeout_at_most)
{
    close_admission();
    cluster_submit(&w, "#a LOCK a 30s");
    cluster_pass_ms(&w, 40);
    cluster_submit(&w, "#b LOCK a 30s");
    cluster_pass_ms(&w, 11);
    cluster_expect(&w, "#a LIMIT busy");
    cluster_pass_ms(&w, 40);
    cluster_expect(&w, "#b LIMIT busy");
    open_admission();
}

/* Its second try is held back, and must not begin later than node_timeout after its arrival. */
TEST(lock_with_slots_is_held_back_until_node_timeout_after_its_arrival)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].service_ns = 0;
    cluster_occupy(&w, "s#1", 10000);
    cluster_occupy(&w, "s#2", 10000);
    cluster_hang(&w, 5, true);
    cluster_submit(&w, "#s LOCK s 30s SLOTS 2");
    cluster_pass_ms(&w, 40);
    close_admission();
    cluster_hang(&w, 5, false);
    cluster_pass_ms(&w, 11);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "#s HELD ", 8), 0);
    open_admission();
}

/* The first client has four requests that are held back: "second", a1, a2 and a3. Two other clients
 * have one request each. Theirs start after "second" and before a1. */
TEST(clients_take_turns)
{
    static const char *const order[] = {"#b", "#c", "#a1", "#a2", "#a3"};
    occupy_admission();
    cluster_send(&w, "#a1 LOCK a1 30s WAIT 10s");
    cluster_send(&w, "#a2 LOCK a2 30s WAIT 10s");
    cluster_send(&w, "#a3 LOCK a3 30s WAIT 10s");
    cluster_send_as(&w, &w.others[0], "#b LOCK b 30s WAIT 10s");
    cluster_send_as(&w, &w.others[1], "#c LOCK c 30s WAIT 10s");
    cluster_hang(&w, 3, false);
    w.engine.flights.admission.limit = 1;
    cluster_settle(&w);
    for (unsigned i = 0, next = 0; next < 5 && i < w.reply_count; i++)
        if (strncmp(w.replies[i], order[next], strlen(order[next])) == 0)
            next++;
        else
            ck_assert_msg(strncmp(w.replies[i], "#first", 6) == 0 ||
                              strncmp(w.replies[i], "#second", 7) == 0,
                          "%s before %s", w.replies[i], order[next]);
    ck_assert_uint_eq(w.engine.manager.start_queue.length, 0);
}

TEST(requests_of_a_client_that_leaves_do_not_start)
{
    occupy_admission();
    cluster_send_as(&w, &w.others[0], "#b LOCK b 30s WAIT 10s");
    cluster_send_as(&w, &w.others[0], "#s STATUS s");
    cluster_send_as(&w, &w.others[0], "#d LOCK d 30s");
    ck_assert_uint_ge(w.engine.manager.start_queue.length, 3);
    cluster_lose_client(&w, &w.others[0]);
    cluster_hang(&w, 3, false);
    cluster_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.manager.start_queue.length, 0);
    ck_assert_uint_eq(w.engine.manager.impatient, 0);
    ck_assert_uint_eq(cluster_count(&w, "b"), 0);
    ck_assert_uint_eq(cluster_count(&w, "d"), 0);
}

/* The requests of one client are held back for longer than 10 ms. Another client has its turn
 * sooner. */
TEST(lock_that_would_start_too_late_is_refused_at_once)
{
    run_for(CLIENTS_MAX, true, 1000);
    ck_assert_uint_gt(w.engine.manager.start_queue.length, CLIENTS_MAX / 2);
    ck_assert_uint_eq(load.others, 0);
    ck_assert_uint_eq(w.engine.stats.busy, 0);
    size_t length = w.engine.manager.start_queue.length;
    w.reply_count = w.replies_read = 0;
    cluster_submit(&w, "#late LOCK late 30s WAIT 10ms");
    cluster_expect(&w, "#late LIMIT busy");
    ck_assert_uint_eq(w.engine.stats.busy, 1);
    ck_assert_uint_eq(w.engine.manager.start_queue.length, length);
    cluster_submit(&w, "#soon LOCK soon 30s WAIT 10s");
    ck_assert_uint_eq(w.engine.manager.start_queue.length, length + 1);
    cluster_send_as(&w, &w.others[0], "#other LOCK other 30s WAIT 10ms");
    ck_assert_uint_eq(w.engine.stats.busy, 1);
}

/* A release starts at once, and with it the hand-over to a waiter that is held back. */
TEST(release_starts_at_once_and_hands_over)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].service_ns = 0;
    cluster_submit(&w, "#a LOCK a 30s");
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", cluster_expect_grant(&w, "a"));
    w.engine.flights.admission.limit = 0;
    w.engine.flights.admission.limited = 1;
    cluster_submit(&w, "#b LOCK a 30s WAIT 10s");
    cluster_submit(&w, "#u UNLOCK a %s", token);
    cluster_expect(&w, "#u OK");
    cluster_expect_grant(&w, "b");
}

/* No round of a BREAK is admitted, so none takes a place that is kept for rounds that are. */
TEST(break_takes_no_place_of_admitted_rounds)
{
    const struct admission *admission = &w.engine.flights.admission;
    cluster_token(cluster_ask(&w, "LOCK a 3s"));
    ck_assert_uint_eq(admission->in_flight, 0);
    cluster_send(&w, "BREAK a");
    ck_assert_uint_eq(admission->in_flight, 1);
    ck_assert_uint_eq(admission->limited, 0);
    cluster_pass_ms(&w, 20);
    ck_assert_uint_eq(admission->in_flight, 0);
    ck_assert_uint_eq(admission->limited, 0);
}

TEST(shutdown_answers_what_is_held_back)
{
    occupy_admission();
    cluster_submit(&w, "#l LOCK l 30s WAIT 10s");
    cluster_submit(&w, "#s STATUS s");
    engine_drain(&w.engine, w.now_ns);
    engine_abandon(&w.engine, w.now_ns);
    unsigned shutdowns = 0;
    for (const char *reply; (reply = cluster_next_reply(&w)) != NULL;)
        shutdowns += strstr(reply, " SHUTDOWN") != NULL;
    ck_assert_uint_eq(shutdowns, 4);
    ck_assert_uint_eq(w.engine.manager.start_queue.length, 0);
}
