/*
 * What one pass of the event loop does for clients, and what waits for later passes
 * (server/net/pass.h).
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/internal.h"
#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/session_fixture.h"

const struct runner_settings runner_settings = {.setup = open_fixture, .teardown = close_fixture};

enum { LISTERS = 20 };

/* --- many rounds in flight --- */

TEST(clients_wait_unread_while_too_many_rounds_are_in_flight)
{
    unsigned *in_flight = &fixture.clients.engine->flights.admission.in_flight;
    connect_clients(LISTERS);
    for (unsigned i = 0; i < LISTERS; i++)
        say(i, "PING\n");
    *in_flight = 2 * LIMIT_ADMISSION_START + 1;
    for (unsigned passes = 0; passes < 10; passes++)
        run_pass();
    ck_assert_uint_eq(fixture.clients.requests[VERB_PING], 0);
    *in_flight = 2 * LIMIT_ADMISSION_START;
    /* As after each pass in which a round has settled. */
    pass_want_end(&fixture.pass);
    for (unsigned passes = 0; fixture.clients.requests[VERB_PING] < LISTERS; passes++) {
        run_pass();
        ck_assert_uint_lt(passes, 10);
    }
    run_pass();
    for (unsigned i = 0; i < LISTERS; i++)
        ck_assert_str_eq(heard(i), "PONG\n");
    *in_flight = 0;
}

/* --- much input --- */

/* The event loop reports input only once, but one read takes only LIMIT_CLIENT_INPUT bytes. */
TEST(input_and_end_beyond_one_read_are_seen)
{
    enum { PINGS = 8000 };
    static char pings[PINGS * 5 + 1];
    connect_clients(1);
    for (unsigned i = 0; i < PINGS; i++)
        memcpy(pings + i * 5, "PING\n", 5);
    ck_assert_uint_gt(strlen(pings), 2 * LIMIT_CLIENT_INPUT);
    say(0, pings);
    shutdown(fixture.peers[0], SHUT_WR);
    size_t pongs = 0;
    for (unsigned passes = 0; fixture.clients.session_count > 0; passes++) {
        ck_assert_uint_lt(passes, PINGS / LIMIT_READ_BUDGET + 10);
        run_pass();
        pongs += strlen(heard(0)) / 5;
    }
    for (size_t len = 1; len > 0; pongs += len / 5)
        len = strlen(heard(0));
    ck_assert_uint_eq(pongs, PINGS);
}

/* libevent reports a reset like input. The client has not read a reply, so that its end is a reset,
 * and has sent part of a line. */
TEST(reset_together_with_input_is_seen)
{
    connect_clients(1);
    say(0, "PING\n");
    run_pass();
    run_pass();
    ck_assert_uint_eq(fixture.clients.requests[VERB_PING], 1);
    say(0, "PI");
    close(fixture.peers[0]);
    fixture.peers[0] = -1;
    for (unsigned passes = 0; fixture.clients.session_count > 0; passes++) {
        ck_assert_uint_lt(passes, 10);
        run_pass();
    }
    ck_assert_ptr_nonnull(strstr(logged(), "the connection was lost"));
}

/* --- listings --- */

/* Runs passes until `count` LOCKS were answered, at most `in_a_pass` in each. */
static void expect_listings(unsigned count, unsigned in_a_pass)
{
    const uint64_t *listed = &fixture.clients.requests[VERB_LOCKS];
    for (unsigned passes = 0; *listed < count; passes++) {
        uint64_t before = *listed;
        run_pass();
        ck_assert_uint_le(*listed - before, in_a_pass);
        ck_assert_uint_lt(passes, 100);
    }
}

/* LOCKS <resource> walks the client's pending requests. So the lines of one read budget can exceed
 * a pass. */
TEST(a_pass_ends_between_the_listings_of_one_client)
{
    connect_clients(1);
    for (unsigned i = 0; i < LIMIT_READ_BUDGET; i++)
        say(0, "LOCKS a\n");
    virtual_step_ns = PASS_BUDGET_NS / 4;
    expect_listings(LIMIT_READ_BUDGET, 4);
}

/* A listing of all locks is known to be slow before it is made. One has its turn when its line is
 * read, and one from the queue. */
TEST(a_pass_has_few_listings_of_all_locks)
{
    connect_clients(LISTERS);
    for (unsigned i = 0; i < LISTERS; i++)
        say(i, "LOCKS\n");
    expect_listings(LISTERS, 2);
    run_pass();
    for (unsigned i = 0; i < LISTERS; i++)
        ck_assert_str_eq(heard(i), "END\n");
}

/* Sends `text` from clients 1 to LISTERS, then PING from client 0. Returns how many passes the PONG
 * took. */
static unsigned passes_of_a_ping(const char *text)
{
    unsigned passes = 0;
    for (unsigned i = 1; i <= LISTERS; i++)
        say(i, text);
    say(0, "PING\n");
    for (bool answered = false; !answered; passes++) {
        run_pass();
        answered = strcmp(heard(0), "PONG\n") == 0;
        ck_assert_uint_lt(passes, 100);
    }
    return passes;
}

/* Otherwise a PING would wait for all listings that were requested before it. */
TEST(clients_that_list_again_and_again_delay_others_by_one_listing)
{
    const uint64_t *listed = &fixture.clients.requests[VERB_LOCKS];
    connect_clients(LISTERS + 1);
    virtual_step_ns = PASS_BUDGET_NS / 16;
    passes_of_a_ping("LOCKS\n");
    while (*listed < LISTERS)
        run_pass();
    run_pass(); /* takes the sockets off the kernel's list of ready ones */
    ck_assert_uint_le(passes_of_a_ping("LOCKS\n"), 2);
    while (*listed < 2 * LISTERS) {
        uint64_t before = *listed;
        run_pass();
        ck_assert_uint_eq(*listed - before, 1);
    }
}

/* Each has more lines than one turn takes. */
TEST(slow_clients_take_turns)
{
    enum { SLOW = 3, LINES = 10 };
    connect_clients(SLOW);
    virtual_step_ns = PASS_BUDGET_NS / 16;
    for (unsigned i = 0; i < SLOW; i++)
        for (unsigned line = 0; line < LINES; line++)
            say(i, "LOCKS\n");
    unsigned ends[SLOW] = {0};
    for (unsigned passes = 0; fixture.clients.requests[VERB_LOCKS] < SLOW * LINES; passes++) {
        run_pass();
        ck_assert_uint_lt(passes, 1000);
        for (unsigned i = 0; i < SLOW; i++)
            ends[i] += (unsigned)(strlen(heard(i)) / strlen("END\n"));
        for (unsigned i = 1; i < SLOW; i++)
            ck_assert_int_le(abs((int)ends[i] - (int)ends[0]), 2);
    }
}

/* --- output --- */

/* Each client sends PING. Returns how many PONGs the first pass has made. */
static int64_t ping_at_once(void)
{
    const struct clients *clients = &fixture.clients;
    uint64_t before = clients->requests[VERB_PING];
    unsigned passes = 0;
    for (unsigned i = 0; i < CLIENTS; i++)
        say(i, "PING\n");
    run_pass();
    uint64_t first = clients->requests[VERB_PING] - before;
    while (clients->requests[VERB_PING] - before < CLIENTS) {
        run_pass();
        ck_assert_uint_lt(passes++, 100);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        ck_assert_str_eq(heard(i), "PONG\n");
    return (int64_t)first;
}

TEST(the_output_of_a_pass_is_part_of_its_budget)
{
    unsigned tries = 0;
    connect_clients(CLIENTS);
    /* libevent takes only 32 events from the first poll, and more from later ones. */
    while (ping_at_once() < CLIENTS)
        ck_assert_uint_lt(tries++, 10);
    /* Without the output, all of them would fit in one pass. */
    virtual_step_ns = PASS_BUDGET_NS / CLIENTS;
    ck_assert_int_le(ping_at_once(), PASS_BUDGET_NS / (virtual_step_ns + PASS_SEND_NS) + 1);
}

/* --- ends --- */

enum { ENDING = 100 };

/* The oldest first, and a client that stays is served meanwhile. */
TEST(sessions_that_end_at_once_are_freed_over_several_passes)
{
    struct session *session;
    unsigned passes = 0;
    unsigned order = 0;
    connect_clients(ENDING + 1);
    struct session *ending[ENDING + 1];
    /* The list begins with the newest session. */
    LIST_FOREACH (session, &fixture.clients.sessions, entry)
        ending[ENDING - order++] = session;
    for (unsigned i = 0; i < ENDING; i++)
        session_drop(ending[i], "the test ends it");
    virtual_step_ns = NS_PER_MS;
    for (unsigned left = ENDING + 1; left > 1; left = fixture.clients.session_count) {
        say(ENDING, "PING\n");
        run_pass();
        ck_assert_uint_le(left - fixture.clients.session_count, PASS_SLICE_NS / NS_PER_MS);
        /* Each session takes its turn: the peers of the oldest sessions see the end first. */
        char byte;
        for (unsigned i = 0; i < ENDING; i++)
            ck_assert_int_eq(recv(fixture.peers[i], &byte, 1, MSG_PEEK),
                             i < ENDING + 1 - fixture.clients.session_count ? 0 : -1);
        ck_assert_str_eq(heard(ENDING), "PONG\n");
        ck_assert_uint_lt(passes++, 10 * ENDING);
    }
}

/* Clients that read and write in each pass must not keep ended sessions from being freed. */
TEST(sessions_are_freed_although_clients_use_up_the_pass)
{
    enum { BUSY = 50 };
    connect_clients(BUSY + 1);
    session_drop(LIST_FIRST(&fixture.clients.sessions), "the test ends it");
    for (unsigned i = 0; i < BUSY; i++)
        say(i, "PING\n");
    virtual_step_ns = PASS_BUDGET_NS / 2;
    run_pass();
    ck_assert_uint_eq(fixture.clients.session_count, BUSY);
    virtual_step_ns = 0;
}

/* The LOCK of a client that has left must not be granted while the end waits unread. In the second
 * run the end is a reset, since the client has not read a reply. Its last line is then lost. */
TEST_LOOP(a_client_that_leaves_a_crowd_leaves_its_queue_at_once, 0, 2)
{
    bool by_reset = _i == 1;
    const struct engine *engine;
    enum { CROWD = 20 };
    engine = fixture.clients.engine;
    connect_clients(CROWD + 1);
    say(CROWD, "#t LOCK a 1s WAIT 1h\nPING\n");
    run_pass();
    /* The next poll takes this socket off the kernel's list, so that later ones come before it. */
    run_pass();
    ck_assert_uint_eq(engine_view(engine).waiting, 1);
    for (unsigned i = 0; i < CROWD; i++)
        say(i, "PING\n");
    say(CROWD, "PING\n");
    if (by_reset)
        close(fixture.peers[CROWD]);
    else
        shutdown(fixture.peers[CROWD], SHUT_WR);
    virtual_step_ns = PASS_BUDGET_NS / 4;
    run_pass();
    /* The session has not had its turn yet. */
    ck_assert_uint_lt(fixture.clients.requests[VERB_PING], CROWD);
    ck_assert_uint_eq(engine_view(engine).waiting, 0);
    for (unsigned passes = 0; fixture.clients.session_count > CROWD; passes++) {
        run_pass();
        ck_assert_uint_lt(passes, 100);
    }
    if (by_reset) {
        fixture.peers[CROWD] = -1;
    } else {
        ck_assert_uint_eq(fixture.clients.requests[VERB_PING], CROWD + 2);
        ck_assert_ptr_nonnull(strstr(heard(CROWD), "PONG\n"));
    }
}

/* --- unauthenticated connections --- */

TEST(late_unauthenticated_connections_are_closed_over_several_passes)
{
    struct clients *clients = &fixture.clients;
    unsigned passes = 0;
    clients->auth.open = false;
    connect_clients(ENDING);
    virtual_ns += fixture.config->limits.auth_timeout_ns;
    clients_apply_config(clients, CLIENTS); /* sets the timer, which is due now */
    virtual_step_ns = NS_PER_MS;
    while (clients->session_count > 0) {
        unsigned before = clients->session_count;
        run_pass();
        ck_assert_uint_le(before - clients->session_count, PASS_SLICE_NS / NS_PER_MS);
        ck_assert_uint_lt(passes++, 10 * ENDING);
    }
    ck_assert_uint_eq(clients->auth.late, ENDING);
    for (unsigned i = 0; i < ENDING; i++)
        ck_assert_str_eq(heard(i), "DENIED not authenticated in time\n");
}

/* --- memory --- */

/* A connection is served, or it is closed and the log says so, whichever allocation fails. */
TEST(a_connection_without_memory_is_closed_and_logged)
{
    unsigned refused = 0;
    unsigned dropped = 0;
    for (int i = 0; i < 10; i++) {
        char byte;
        ck_assert_int_eq(ftruncate(fixture.log.fd, 0), 0);
        virtual_ns += NS_PER_S; /* the log is limited in each second */
        allocations_left = i + 1;
        bool added = try_connect((unsigned)i);
        allocations_left = -1;
        run_pass();
        run_pass();
        if (added && fixture.clients.session_count > 0) {
            say((unsigned)i, "PING\n");
            run_pass();
            ck_assert_str_eq(heard((unsigned)i), "PONG\n");
            clients_free_sessions(&fixture.clients);
        } else {
            ck_assert_int_eq(recv(fixture.peers[i], &byte, 1, 0), 0);
            ck_assert_ptr_nonnull(strstr(
                logged(), added ? "client_dropped" : "client_refused peer=somewhere limit=memory"));
            refused += !added;
            dropped += added;
        }
    }
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_gt(dropped, 0);
    ck_assert_uint_eq(fixture.clients.rejected[REFUSED_MEMORY], refused);
}
