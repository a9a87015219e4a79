/*
 * Sessions over real kernel sockets, with a virtual clock: what one pass of the event loop does for
 * clients, and what waits for later passes (server/net/pass.h). No master is up.
 */
#include <event2/event.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/config.h"
#include "engine/internal.h"
#include "protocol/units.h"
#include "server/clients/clients.h"
#include "server/clock.h"
#include "server/log.h"
#include "server/net/pass.h"
#include "server/net/stream.h"
#include "server/random.h"
#include "server/rules.h"
#include "tests/runner.h"
#include "tests/unit/configs.h"

enum { CLIENTS = 200, LISTERS = 20 };

struct fixture {
    struct config *config;
    struct log log;
    struct random random;
    struct event_base *base;
    struct pass pass;
    struct streams streams;
    struct clients clients;
    int peers[CLIENTS];
};

/* --- the clock --- */

/* Each reading takes step_ns. So every piece of work that reads the clock takes that long. */
static int64_t now_ns;
static int64_t step_ns;

int64_t clock_now_ns(void)
{
    now_ns += step_ns;
    return now_ns;
}

int64_t clock_wall_ns(void)
{
    return now_ns;
}

int64_t clock_monotonic_ns(void)
{
    return now_ns;
}

struct timeval clock_delay(int64_t delay_ns)
{
    int64_t us = delay_ns > 0 ? (delay_ns + 999) / 1000 : 0;
    return (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}

void clock_read_id(char *id, size_t size)
{
    snprintf(id, size, "virtual");
}

/* --- the engine's io --- */

static void io_open(void *context, unsigned node, enum channel channel)
{
    (void)context;
    (void)node;
    (void)channel;
}

static void io_write(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                     size_t len)
{
    (void)context;
    (void)nodes;
    (void)channel;
    (void)bytes;
    (void)len;
}

static struct session *session_of(struct engine_client *client)
{
    return (struct session *)((char *)client - offsetof(struct session, client));
}

static void io_reply(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                     const struct reply *reply)
{
    (void)context;
    session_on_reply(session_of(client), tag, tag_len, reply);
}

static void io_undone(void *context, struct engine_client *client, const char *tag, size_t tag_len)
{
    (void)context;
    session_on_undone(session_of(client), tag, tag_len);
}

static void io_random(void *context, void *bytes, size_t len)
{
    (void)context;
    memset(bytes, 1, len);
}

static const struct engine_io io = {
    .open = io_open,
    .close = io_open,
    .write = io_write,
    .reply = io_reply,
    .undone = io_undone,
    .random = io_random,
};

/* --- libevent's memory --- */

/* How many allocations succeed before memory runs out; -1: all. */
static int allocations_left;

static bool memory_is_short(void)
{
    if (allocations_left > 0)
        allocations_left--;
    return allocations_left == 0;
}

static void *allocate(size_t size)
{
    return memory_is_short() ? NULL : malloc(size);
}

static void *reallocate(void *old, size_t size)
{
    return memory_is_short() ? NULL : realloc(old, size);
}

/* --- the fixture --- */

static void on_pass_end(evutil_socket_t fd, short events, void *context)
{
    struct fixture *fixture = context;
    (void)fd;
    (void)events;
    streams_flush(&fixture->streams);
    clients_on_pass_end(&fixture->clients);
    pass_ended(&fixture->pass);
}

static void open_fixture(struct fixture *fixture)
{
    *fixture = (struct fixture){.log = {.level = CONFIG_LOG_INFO, .fd = -1}};
    now_ns = NS_PER_S;
    step_ns = 0;
    allocations_left = -1;
    event_set_mem_functions(allocate, reallocate, free);
    configs_open();
    fixture->config = configs_accept(NODES);
    fixture->log.fd = open("log", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fixture->log.fd, 0);
    fixture->base = event_base_new();
    ck_assert(random_init(&fixture->random));
    ck_assert(pass_init(&fixture->pass, fixture->base, on_pass_end, fixture));
    ck_assert(streams_init(&fixture->streams, fixture->base, &fixture->pass));
    struct engine_rules rules = rules_of(fixture->config);
    rules.clock_id = "virtual";
    fixture->clients = (struct clients){
        .config = fixture->config,
        .log = &fixture->log,
        .base = fixture->base,
        .pass = &fixture->pass,
        .random = &fixture->random,
        .streams = &fixture->streams,
        .request_limits = rules_request_limits(&rules),
        .engine = engine_new(&rules, &io, now_ns),
        .limit = CLIENTS,
    };
    ck_assert_ptr_nonnull(fixture->clients.engine);
    ck_assert(clients_init(&fixture->clients));
    for (unsigned i = 0; i < CLIENTS; i++)
        fixture->peers[i] = -1;
}

static void close_fixture(struct fixture *fixture)
{
    struct engine *engine = fixture->clients.engine;
    clients_free_sessions(&fixture->clients);
    clients_deinit(&fixture->clients);
    engine_free(engine);
    streams_deinit(&fixture->streams);
    pass_deinit(&fixture->pass);
    event_base_free(fixture->base);
    random_deinit(&fixture->random);
    config_free(fixture->config);
    close(fixture->log.fd);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (fixture->peers[i] >= 0)
            close(fixture->peers[i]);
    configs_close();
}

static void run_pass(struct fixture *fixture)
{
    event_base_loop(fixture->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* The address of the peers, in network byte order. */
static struct peer a_peer(void)
{
    struct peer peer = {.kind = PEER_TCP, .name = "somewhere"};
    peer.client_address = client_address_of_ipv4("\x0a\x00\x00\x01");
    return peer;
}

static bool try_connect(struct fixture *fixture, unsigned index)
{
    const struct peer peer = a_peer();
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    fixture->peers[index] = fds[0];
    ck_assert_int_eq(
        address_counts_enter(&fixture->clients.address_counts, &peer.client_address, 0),
        ADDRESS_COUNTED);
    if (sessions_add(&fixture->clients, fds[1], NULL, &peer))
        return true;
    address_counts_leave(&fixture->clients.address_counts, &peer.client_address);
    return false;
}

static void connect_clients(struct fixture *fixture, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        ck_assert(try_connect(fixture, i));
}

static void say(const struct fixture *fixture, unsigned index, const char *text)
{
    ck_assert_int_eq(write(fixture->peers[index], text, strlen(text)), (ssize_t)strlen(text));
}

/* What the daemon has sent to this client and the test has not read yet. */
static const char *heard(const struct fixture *fixture, unsigned index)
{
    static char text[5 * 1024 + 1];
    ssize_t len = read(fixture->peers[index], text, sizeof(text) - 1);
    text[len > 0 ? len : 0] = '\0';
    return text;
}

static const char *logged(const struct fixture *fixture)
{
    static char text[65536];
    ssize_t len = pread(fixture->log.fd, text, sizeof(text) - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    return text;
}

/* --- many rounds in flight --- */

START_TEST(clients_wait_unread_while_too_many_rounds_are_in_flight)
{
    struct fixture fixture;
    open_fixture(&fixture);
    unsigned *in_flight = &fixture.clients.engine->flights.admission.in_flight;
    connect_clients(&fixture, LISTERS);
    for (unsigned i = 0; i < LISTERS; i++)
        say(&fixture, i, "PING\n");
    *in_flight = 2 * LIMIT_ADMISSION_START + 1;
    for (unsigned passes = 0; passes < 10; passes++)
        run_pass(&fixture);
    ck_assert_uint_eq(fixture.clients.requests[VERB_PING], 0);
    *in_flight = 2 * LIMIT_ADMISSION_START;
    /* As after each pass in which a round has settled. */
    pass_want_end(&fixture.pass);
    for (unsigned passes = 0; fixture.clients.requests[VERB_PING] < LISTERS; passes++) {
        run_pass(&fixture);
        ck_assert_uint_lt(passes, 10);
    }
    run_pass(&fixture);
    for (unsigned i = 0; i < LISTERS; i++)
        ck_assert_str_eq(heard(&fixture, i), "PONG\n");
    *in_flight = 0;
    close_fixture(&fixture);
}
END_TEST

/* --- much input --- */

/* The event loop reports input only once, but one read takes only LIMIT_CLIENT_INPUT bytes. */
START_TEST(input_and_end_beyond_one_read_are_seen)
{
    enum { PINGS = 8000 };
    static char pings[PINGS * 5 + 1];
    struct fixture fixture;
    open_fixture(&fixture);
    connect_clients(&fixture, 1);
    for (unsigned i = 0; i < PINGS; i++)
        memcpy(pings + i * 5, "PING\n", 5);
    ck_assert_uint_gt(strlen(pings), 2 * LIMIT_CLIENT_INPUT);
    say(&fixture, 0, pings);
    shutdown(fixture.peers[0], SHUT_WR);
    size_t pongs = 0;
    for (unsigned passes = 0; fixture.clients.session_count > 0; passes++) {
        ck_assert_uint_lt(passes, PINGS / LIMIT_READ_BUDGET + 10);
        run_pass(&fixture);
        pongs += strlen(heard(&fixture, 0)) / 5;
    }
    for (size_t len = 1; len > 0; pongs += len / 5)
        len = strlen(heard(&fixture, 0));
    ck_assert_uint_eq(pongs, PINGS);
    close_fixture(&fixture);
}
END_TEST

/* libevent reports a reset like input. The client has not read a reply, so that its end is a reset,
 * and has sent part of a line. */
START_TEST(reset_together_with_input_is_seen)
{
    struct fixture fixture;
    open_fixture(&fixture);
    connect_clients(&fixture, 1);
    say(&fixture, 0, "PING\n");
    run_pass(&fixture);
    run_pass(&fixture);
    ck_assert_uint_eq(fixture.clients.requests[VERB_PING], 1);
    say(&fixture, 0, "PI");
    close(fixture.peers[0]);
    fixture.peers[0] = -1;
    for (unsigned passes = 0; fixture.clients.session_count > 0; passes++) {
        ck_assert_uint_lt(passes, 10);
        run_pass(&fixture);
    }
    ck_assert_ptr_nonnull(strstr(logged(&fixture), "the connection was lost"));
    close_fixture(&fixture);
}
END_TEST

/* --- listings --- */

/* Runs passes until `count` LOCKS were answered, at most `in_a_pass` in each. */
static void expect_listings(struct fixture *fixture, unsigned count, unsigned in_a_pass)
{
    const uint64_t *listed = &fixture->clients.requests[VERB_LOCKS];
    for (unsigned passes = 0; *listed < count; passes++) {
        uint64_t before = *listed;
        run_pass(fixture);
        ck_assert_uint_le(*listed - before, in_a_pass);
        ck_assert_uint_lt(passes, 100);
    }
}

/* LOCKS <resource> walks the client's pending requests. So the lines of one read budget can exceed
 * a pass. */
START_TEST(a_pass_ends_between_the_listings_of_one_client)
{
    struct fixture fixture;
    open_fixture(&fixture);
    connect_clients(&fixture, 1);
    for (unsigned i = 0; i < LIMIT_READ_BUDGET; i++)
        say(&fixture, 0, "LOCKS a\n");
    step_ns = PASS_BUDGET_NS / 4;
    expect_listings(&fixture, LIMIT_READ_BUDGET, 4);
    close_fixture(&fixture);
}
END_TEST

/* A listing of all locks is known to be slow before it is made. One has its turn when its line is
 * read, and one from the queue. */
START_TEST(a_pass_has_few_listings_of_all_locks)
{
    struct fixture fixture;
    open_fixture(&fixture);
    connect_clients(&fixture, LISTERS);
    for (unsigned i = 0; i < LISTERS; i++)
        say(&fixture, i, "LOCKS\n");
    expect_listings(&fixture, LISTERS, 2);
    run_pass(&fixture);
    for (unsigned i = 0; i < LISTERS; i++)
        ck_assert_str_eq(heard(&fixture, i), "END\n");
    close_fixture(&fixture);
}
END_TEST

/* Sends `text` from clients 1 to LISTERS, then PING from client 0. Returns how many passes the PONG
 * took. */
static unsigned passes_of_a_ping(struct fixture *fixture, const char *text)
{
    unsigned passes = 0;
    for (unsigned i = 1; i <= LISTERS; i++)
        say(fixture, i, text);
    say(fixture, 0, "PING\n");
    for (bool answered = false; !answered; passes++) {
        run_pass(fixture);
        answered = strcmp(heard(fixture, 0), "PONG\n") == 0;
        ck_assert_uint_lt(passes, 100);
    }
    return passes;
}

/* Otherwise a PING would wait for all listings that were requested before it. */
START_TEST(clients_that_list_again_and_again_delay_others_by_one_listing)
{
    struct fixture fixture;
    const uint64_t *listed = &fixture.clients.requests[VERB_LOCKS];
    open_fixture(&fixture);
    connect_clients(&fixture, LISTERS + 1);
    step_ns = PASS_BUDGET_NS / 16;
    passes_of_a_ping(&fixture, "LOCKS\n");
    while (*listed < LISTERS)
        run_pass(&fixture);
    run_pass(&fixture); /* takes the sockets off the kernel's list of ready ones */
    ck_assert_uint_le(passes_of_a_ping(&fixture, "LOCKS\n"), 2);
    while (*listed < 2 * LISTERS) {
        uint64_t before = *listed;
        run_pass(&fixture);
        ck_assert_uint_eq(*listed - before, 1);
    }
    close_fixture(&fixture);
}
END_TEST

/* Each has more lines than one turn takes. */
START_TEST(slow_clients_take_turns)
{
    enum { SLOW = 3, LINES = 10 };
    struct fixture fixture;
    open_fixture(&fixture);
    connect_clients(&fixture, SLOW);
    step_ns = PASS_BUDGET_NS / 16;
    for (unsigned i = 0; i < SLOW; i++)
        for (unsigned line = 0; line < LINES; line++)
            say(&fixture, i, "LOCKS\n");
    unsigned ends[SLOW] = {0};
    for (unsigned passes = 0; fixture.clients.requests[VERB_LOCKS] < SLOW * LINES; passes++) {
        run_pass(&fixture);
        ck_assert_uint_lt(passes, 1000);
        for (unsigned i = 0; i < SLOW; i++)
            ends[i] += (unsigned)(strlen(heard(&fixture, i)) / strlen("END\n"));
        for (unsigned i = 1; i < SLOW; i++)
            ck_assert_int_le(abs((int)ends[i] - (int)ends[0]), 2);
    }
    close_fixture(&fixture);
}
END_TEST

/* --- output --- */

/* Each client sends PING. Returns how many PONGs the first pass has made. */
static int64_t ping_at_once(struct fixture *fixture)
{
    const struct clients *clients = &fixture->clients;
    uint64_t before = clients->requests[VERB_PING];
    unsigned passes = 0;
    for (unsigned i = 0; i < CLIENTS; i++)
        say(fixture, i, "PING\n");
    run_pass(fixture);
    uint64_t first = clients->requests[VERB_PING] - before;
    while (clients->requests[VERB_PING] - before < CLIENTS) {
        run_pass(fixture);
        ck_assert_uint_lt(passes++, 100);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        ck_assert_str_eq(heard(fixture, i), "PONG\n");
    return (int64_t)first;
}

START_TEST(the_output_of_a_pass_is_part_of_its_budget)
{
    struct fixture fixture;
    unsigned tries = 0;
    open_fixture(&fixture);
    connect_clients(&fixture, CLIENTS);
    /* libevent takes only 32 events from the first poll, and more from later ones. */
    while (ping_at_once(&fixture) < CLIENTS)
        ck_assert_uint_lt(tries++, 10);
    /* Without the output, all of them would fit in one pass. */
    step_ns = PASS_BUDGET_NS / CLIENTS;
    ck_assert_int_le(ping_at_once(&fixture), PASS_BUDGET_NS / (step_ns + PASS_SEND_NS) + 1);
    close_fixture(&fixture);
}
END_TEST

/* --- ends --- */

enum { ENDING = 100 };

/* The oldest first, and a client that stays is served meanwhile. */
START_TEST(sessions_that_end_at_once_are_freed_over_several_passes)
{
    struct fixture fixture;
    struct session *session;
    unsigned passes = 0;
    unsigned order = 0;
    open_fixture(&fixture);
    connect_clients(&fixture, ENDING + 1);
    struct session *ending[ENDING + 1];
    /* The list begins with the newest session. */
    LIST_FOREACH (session, &fixture.clients.sessions, entry)
        ending[ENDING - order++] = session;
    for (unsigned i = 0; i < ENDING; i++)
        session_drop(ending[i], "the test ends it");
    step_ns = NS_PER_MS;
    for (unsigned left = ENDING + 1; left > 1; left = fixture.clients.session_count) {
        say(&fixture, ENDING, "PING\n");
        run_pass(&fixture);
        ck_assert_uint_le(left - fixture.clients.session_count, PASS_SLICE_NS / NS_PER_MS);
        /* Each session takes its turn: the peers of the oldest sessions see the end first. */
        char byte;
        for (unsigned i = 0; i < ENDING; i++)
            ck_assert_int_eq(recv(fixture.peers[i], &byte, 1, MSG_PEEK),
                             i < ENDING + 1 - fixture.clients.session_count ? 0 : -1);
        ck_assert_str_eq(heard(&fixture, ENDING), "PONG\n");
        ck_assert_uint_lt(passes++, 10 * ENDING);
    }
    close_fixture(&fixture);
}
END_TEST

/* Clients that read and write in each pass must not keep ended sessions from being freed. */
START_TEST(sessions_are_freed_although_clients_use_up_the_pass)
{
    struct fixture fixture;
    enum { BUSY = 50 };
    open_fixture(&fixture);
    connect_clients(&fixture, BUSY + 1);
    session_drop(LIST_FIRST(&fixture.clients.sessions), "the test ends it");
    for (unsigned i = 0; i < BUSY; i++)
        say(&fixture, i, "PING\n");
    step_ns = PASS_BUDGET_NS / 2;
    run_pass(&fixture);
    ck_assert_uint_eq(fixture.clients.session_count, BUSY);
    step_ns = 0;
    close_fixture(&fixture);
}
END_TEST

/* The LOCK of a client that has left must not be granted while the end waits unread. In the second
 * run the end is a reset, since the client has not read a reply. Its last line is then lost. */
START_TEST(a_client_that_leaves_a_crowd_leaves_its_queue_at_once)
{
    bool by_reset = _i == 1;
    struct fixture fixture;
    const struct engine *engine;
    enum { CROWD = 20 };
    open_fixture(&fixture);
    engine = fixture.clients.engine;
    connect_clients(&fixture, CROWD + 1);
    say(&fixture, CROWD, "#t LOCK a 1s WAIT 1h\nPING\n");
    run_pass(&fixture);
    /* The next poll takes this socket off the kernel's list, so that later ones come before it. */
    run_pass(&fixture);
    ck_assert_uint_eq(engine_view(engine).waiting, 1);
    for (unsigned i = 0; i < CROWD; i++)
        say(&fixture, i, "PING\n");
    say(&fixture, CROWD, "PING\n");
    if (by_reset)
        close(fixture.peers[CROWD]);
    else
        shutdown(fixture.peers[CROWD], SHUT_WR);
    step_ns = PASS_BUDGET_NS / 4;
    run_pass(&fixture);
    /* The session has not had its turn yet. */
    ck_assert_uint_lt(fixture.clients.requests[VERB_PING], CROWD);
    ck_assert_uint_eq(engine_view(engine).waiting, 0);
    for (unsigned passes = 0; fixture.clients.session_count > CROWD; passes++) {
        run_pass(&fixture);
        ck_assert_uint_lt(passes, 100);
    }
    if (by_reset) {
        fixture.peers[CROWD] = -1;
    } else {
        ck_assert_uint_eq(fixture.clients.requests[VERB_PING], CROWD + 2);
        ck_assert_ptr_nonnull(strstr(heard(&fixture, CROWD), "PONG\n"));
    }
    close_fixture(&fixture);
}
END_TEST

/* --- unauthenticated connections --- */

START_TEST(late_unauthenticated_connections_are_closed_over_several_passes)
{
    struct fixture fixture;
    struct clients *clients = &fixture.clients;
    unsigned passes = 0;
    open_fixture(&fixture);
    clients->auth.open = false;
    connect_clients(&fixture, ENDING);
    now_ns += fixture.config->limits.auth_timeout_ns;
    clients_apply_config(clients, CLIENTS); /* sets the timer, which is due now */
    step_ns = NS_PER_MS;
    while (clients->session_count > 0) {
        unsigned before = clients->session_count;
        run_pass(&fixture);
        ck_assert_uint_le(before - clients->session_count, PASS_SLICE_NS / NS_PER_MS);
        ck_assert_uint_lt(passes++, 10 * ENDING);
    }
    ck_assert_uint_eq(clients->auth.late, ENDING);
    for (unsigned i = 0; i < ENDING; i++)
        ck_assert_str_eq(heard(&fixture, i), "DENIED not authenticated in time\n");
    close_fixture(&fixture);
}
END_TEST

/* --- memory --- */

/* A connection is served, or it is closed and the log says so, whichever allocation fails. */
START_TEST(a_connection_without_memory_is_closed_and_logged)
{
    struct fixture fixture;
    unsigned refused = 0;
    unsigned dropped = 0;
    open_fixture(&fixture);
    for (int i = 0; i < 10; i++) {
        char byte;
        ck_assert_int_eq(ftruncate(fixture.log.fd, 0), 0);
        now_ns += NS_PER_S; /* the log is limited in each second */
        allocations_left = i + 1;
        bool added = try_connect(&fixture, (unsigned)i);
        allocations_left = -1;
        run_pass(&fixture);
        run_pass(&fixture);
        if (added && fixture.clients.session_count > 0) {
            say(&fixture, (unsigned)i, "PING\n");
            run_pass(&fixture);
            ck_assert_str_eq(heard(&fixture, (unsigned)i), "PONG\n");
            clients_free_sessions(&fixture.clients);
        } else {
            ck_assert_int_eq(recv(fixture.peers[i], &byte, 1, 0), 0);
            ck_assert_ptr_nonnull(
                strstr(logged(&fixture),
                       added ? "client_dropped" : "client_refused peer=somewhere limit=memory"));
            refused += !added;
            dropped += added;
        }
    }
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_gt(dropped, 0);
    ck_assert_uint_eq(fixture.clients.rejected[REFUSED_MEMORY], refused);
    close_fixture(&fixture);
}
END_TEST

/* --- RESP --- */

enum { RESP_MAX = 512 * 1024 };

/* The RESP command of these words. */
static const char *command(const char *words)
{
    static char bytes[LIMIT_LINE + 64];
    size_t len = 0;
    unsigned count = 1;
    for (const char *at = words; *at != '\0'; at++)
        count += *at == ' ';
    len += (size_t)snprintf(bytes, sizeof(bytes), "*%u\r\n", count);
    for (unsigned i = 0; i < count; i++) {
        int word = (int)strcspn(words, " ");
        len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "$%d\r\n%.*s\r\n", word, word,
                                words);
        words += word + 1;
    }
    return bytes;
}

static void say_command(const struct fixture *fixture, unsigned index, const char *words)
{
    say(fixture, index, command(words));
}

/* In one write: the kernel takes only a few hundred. */
static void say_commands(const struct fixture *fixture, unsigned index, const char *words,
                         unsigned count)
{
    const size_t len = strlen(command(words));
    char *all = malloc(count * len + 1);
    ck_assert_ptr_nonnull(all);
    for (unsigned i = 0; i < count; i++)
        memcpy(all + i * len, command(words), len + 1);
    say(fixture, index, all);
    free(all);
}

static const struct session *first_session(const struct fixture *fixture)
{
    return LIST_FIRST(&fixture->clients.sessions);
}

/* What client 0 has received so far. */
static struct replies {
    size_t len;
    char text[RESP_MAX + 1];
} replies;

static void read_replies(const struct fixture *fixture)
{
    ssize_t len = read(fixture->peers[0], replies.text + replies.len, RESP_MAX - replies.len);
    replies.len += len > 0 ? (size_t)len : 0;
    replies.text[replies.len] = '\0';
}

/* Runs passes until client 0 has received `len` bytes. */
static void expect_bytes(struct fixture *fixture, size_t len)
{
    for (unsigned passes = 0; replies.len < len; passes++) {
        run_pass(fixture);
        read_replies(fixture);
        ck_assert_msg(passes < 1000, "only \"%.500s\"", replies.text);
    }
}

static void expect_replies(struct fixture *fixture, const char *text)
{
    expect_bytes(fixture, strlen(text));
    ck_assert_str_eq(replies.text, text);
}

static void expect_end(struct fixture *fixture)
{
    for (unsigned passes = 0; fixture->clients.session_count > 0; passes++) {
        run_pass(fixture);
        read_replies(fixture);
        ck_assert_uint_lt(passes, 1000);
    }
    read_replies(fixture);
}

static void open_resp_fixture(struct fixture *fixture)
{
    open_fixture(fixture);
    connect_clients(fixture, 1);
    replies = (struct replies){0};
}

#define LOCK_THAT_WAITS "LOCK a 1s WAIT 1h"
#define NOT_LOCKED      "-NOQUORUM 0/3 need=2 a:connecting b:connecting c:connecting\r\n"

/* Ends the wait of every LOCK_THAT_WAITS. */
static void end_waits(struct fixture *fixture)
{
    now_ns += 3600 * NS_PER_S + NS_PER_S;
    engine_catch_up(fixture->clients.engine, now_ns);
}

START_TEST(the_first_byte_decides_what_a_connection_speaks)
{
    struct fixture fixture;
    open_resp_fixture(&fixture);
    connect_clients(&fixture, 2);
    say(&fixture, 0, "*1\r\n");
    say(&fixture, 1, "PING\n*1\r\n");
    run_pass(&fixture);
    say(&fixture, 0, "$4\r\nPING\r\nPING\r\n");
    expect_replies(&fixture, "+PONG\r\n-ERR Protocol error: a command must begin with *\r\n");
    ck_assert_str_eq(heard(&fixture, 1),
                     "PONG\nERR unknown-verb unknown verb \"*1\"; send HELP for a list\n");
    close_fixture(&fixture);
}
END_TEST

/* Not the first byte after a long line was cut. */
START_TEST(the_rest_of_a_long_line_decides_nothing)
{
    struct fixture fixture;
    char line[LIMIT_LINE + 1];
    open_resp_fixture(&fixture);
    memset(line, 'x', LIMIT_LINE);
    line[LIMIT_LINE] = '\0';
    say(&fixture, 0, line);
    expect_replies(&fixture, "ERR line-too-long a line must be at most 2048 bytes\n");
    say(&fixture, 0, "*1\r\nPING\n");
    expect_replies(&fixture, "ERR line-too-long a line must be at most 2048 bytes\nPONG\n");
    close_fixture(&fixture);
}
END_TEST

START_TEST(a_command_in_single_bytes_is_answered)
{
    struct fixture fixture;
    open_resp_fixture(&fixture);
    for (const char *at = command("ECHO hello"); *at != '\0'; at++) {
        ck_assert_uint_eq(replies.len, 0);
        ck_assert_int_eq(write(fixture.peers[0], at, 1), 1);
        run_pass(&fixture);
        run_pass(&fixture);
        read_replies(&fixture);
    }
    expect_replies(&fixture, "$5\r\nhello\r\n");
    close_fixture(&fixture);
}
END_TEST

/* No pass takes more than the budget of commands, and the last ones need no new input. */
START_TEST(commands_beyond_the_budget_wait_for_the_next_pass)
{
    enum { PINGS = 1000 };
    struct fixture fixture;
    const uint64_t *pings = &fixture.clients.requests[VERB_PING];
    open_resp_fixture(&fixture);
    say_commands(&fixture, 0, "PING", PINGS);
    for (unsigned passes = 0; *pings < PINGS; passes++) {
        uint64_t before = *pings;
        run_pass(&fixture);
        ck_assert_uint_le(*pings - before, LIMIT_READ_BUDGET_ALONE);
        ck_assert_uint_lt(passes, PINGS / LIMIT_READ_BUDGET + 10);
    }
    expect_bytes(&fixture, PINGS * strlen("+PONG\r\n"));
    close_fixture(&fixture);
}
END_TEST

/* The reader sees COMMAND_BYTES of the input at once, and the event loop reports it only once. */
START_TEST(long_commands_of_one_read_are_all_taken)
{
    enum { COUNT = 15, WORD = 1000 };
    struct fixture fixture;
    char words[WORD + 8] = "ECHO ";
    char reply[WORD + 16];
    open_resp_fixture(&fixture);
    memset(words + 5, 'w', WORD);
    words[5 + WORD] = '\0';
    int reply_len = snprintf(reply, sizeof(reply), "$%d\r\n%s\r\n", WORD, words + 5);
    ck_assert_uint_gt(COUNT * strlen(command(words)), COMMAND_BYTES);
    ck_assert_uint_lt(COUNT * strlen(command(words)), LIMIT_CLIENT_INPUT);
    say_commands(&fixture, 0, words, COUNT);
    expect_bytes(&fixture, COUNT * (size_t)reply_len);
    for (unsigned i = 0; i < COUNT; i++)
        ck_assert_mem_eq(replies.text + i * (size_t)reply_len, reply, (size_t)reply_len);
    close_fixture(&fixture);
}
END_TEST

START_TEST(later_replies_wait_for_the_reply_to_an_earlier_command)
{
    struct fixture fixture;
    open_resp_fixture(&fixture);
    say_command(&fixture, 0, LOCK_THAT_WAITS);
    say_command(&fixture, 0, "PING");
    say_command(&fixture, 0, LOCK_THAT_WAITS);
    say_command(&fixture, 0, "ECHO a");
    for (unsigned passes = 0; passes < 10; passes++)
        run_pass(&fixture);
    ck_assert_uint_eq(fixture.clients.requests[VERB_PING], 1);
    read_replies(&fixture);
    ck_assert_str_eq(replies.text, "");
    ck_assert_uint_eq(first_session(&fixture)->replies.pending, 2);
    end_waits(&fixture);
    expect_replies(&fixture, NOT_LOCKED "+PONG\r\n" NOT_LOCKED "$1\r\na\r\n");
    close_fixture(&fixture);
}
END_TEST

/* HELLO changes the connection, so it waits, and the commands after it with it. The session is not
 * read meanwhile. */
START_TEST(a_command_that_waits_stops_the_reading)
{
    static const char *const exclusive[] = {"HELLO 2", "AUTH secret", "RESET", "QUIT"};
    static const char *const answers[] = {NULL, "+OK\r\n", "+RESET\r\n", "+OK\r\n"};
    struct fixture fixture;
    open_resp_fixture(&fixture);
    const struct session *session = first_session(&fixture);
    bool quits = strcmp(exclusive[_i], "QUIT") == 0;
    say_command(&fixture, 0, LOCK_THAT_WAITS);
    say_command(&fixture, 0, exclusive[_i]);
    say_command(&fixture, 0, "PING");
    for (unsigned passes = 0; passes < 10; passes++)
        run_pass(&fixture);
    ck_assert(session->commands_wait);
    ck_assert(!session->stream.reading);
    ck_assert_uint_eq(fixture.clients.requests[VERB_PING], 0);
    /* What comes now stays in the socket. */
    say_command(&fixture, 0, "PING");
    run_pass(&fixture);
    end_waits(&fixture);
    if (quits) {
        expect_end(&fixture);
        ck_assert_str_eq(replies.text, NOT_LOCKED "+OK\r\n");
    } else if (answers[_i] != NULL) {
        char expected[256];
        snprintf(expected, sizeof(expected), NOT_LOCKED "%s+PONG\r\n+PONG\r\n", answers[_i]);
        expect_replies(&fixture, expected);
    } else {
        for (unsigned passes = 0; strstr(replies.text, "+PONG\r\n+PONG\r\n") == NULL; passes++) {
            run_pass(&fixture);
            read_replies(&fixture);
            ck_assert_uint_lt(passes, 100);
        }
        ck_assert_mem_eq(replies.text, NOT_LOCKED "*14\r\n", strlen(NOT_LOCKED) + 5);
    }
    ck_assert(quits || session->stream.reading);
    close_fixture(&fixture);
}
END_TEST

/* Only the kept replies are limited: the client does nothing wrong, so it is not dropped. */
START_TEST(commands_wait_while_many_replies_are_kept)
{
    enum { COUNT = 200, WORD = 2000 };
    struct fixture fixture;
    char words[WORD + 8] = "ECHO ";
    size_t sent = 0;
    open_resp_fixture(&fixture);
    const struct session *session = first_session(&fixture);
    memset(words + 5, 'w', WORD);
    const size_t reply_len = strlen("$2000\r\n\r\n") + WORD;
    const size_t len = strlen(command(words));
    say_command(&fixture, 0, LOCK_THAT_WAITS);
    for (unsigned passes = 0; passes < 1000; passes++) {
        /* The socket takes whole commands only, as long as there is room. */
        if (sent < COUNT && write(fixture.peers[0], command(words), len) == (ssize_t)len)
            sent++;
        run_pass(&fixture);
        ck_assert_uint_le(session->replies.kept, LIMIT_CLIENT_OUTPUT / 2 + reply_len);
    }
    ck_assert_uint_eq(fixture.clients.session_count, 1);
    ck_assert(session->commands_wait);
    ck_assert_uint_gt(session->replies.kept, LIMIT_CLIENT_OUTPUT / 2);
    end_waits(&fixture);
    expect_bytes(&fixture, strlen(NOT_LOCKED) + sent * reply_len);
    ck_assert_uint_eq(session->replies.kept, 0);
    ck_assert_uint_eq(replies.len, strlen(NOT_LOCKED) + sent * reply_len);
    close_fixture(&fixture);
}
END_TEST

/* In the second run the end is a reset: the client has not read a reply. */
START_TEST(a_client_that_leaves_while_its_command_waits_leaves_its_queue)
{
    bool by_reset = _i == 1;
    struct fixture fixture;
    open_resp_fixture(&fixture);
    if (by_reset)
        say_command(&fixture, 0, "PING");
    say_command(&fixture, 0, LOCK_THAT_WAITS);
    say_command(&fixture, 0, "HELLO 3");
    for (unsigned passes = 0; passes < 5; passes++)
        run_pass(&fixture);
    ck_assert_uint_eq(engine_view(fixture.clients.engine).waiting, 1);
    close(fixture.peers[0]);
    fixture.peers[0] = -1;
    for (unsigned passes = 0; fixture.clients.session_count > 0; passes++) {
        run_pass(&fixture);
        ck_assert_uint_lt(passes, 10);
    }
    ck_assert_uint_eq(engine_view(fixture.clients.engine).waiting, 0);
    close_fixture(&fixture);
}
END_TEST

/* As in the line protocol: LOCKs are undone, and all other commands get their replies. What is left
 * of an incomplete command is discarded. */
START_TEST(every_command_before_a_half_close_is_answered)
{
    enum { PINGS = 200 };
    static char expected[PINGS * 8 + 512];
    struct fixture fixture;
    size_t len = 0;
    open_resp_fixture(&fixture);
    say_command(&fixture, 0, LOCK_THAT_WAITS);
    say_commands(&fixture, 0, "PING", PINGS);
    say_command(&fixture, 0, "RESET");
    say(&fixture, 0, "*1\r\n$4\r\nPI");
    shutdown(fixture.peers[0], SHUT_WR);
    expect_end(&fixture);
    len +=
        (size_t)snprintf(expected, sizeof(expected),
                         "-ERR bad-arguments the client ended the connection before the reply to "
                         "this LOCK, so the lock is released; keep the connection open until "
                         "the reply\r\n");
    for (unsigned i = 0; i < PINGS; i++)
        len += (size_t)snprintf(expected + len, sizeof(expected) - len, "+PONG\r\n");
    snprintf(expected + len, sizeof(expected) - len, "+RESET\r\n");
    ck_assert_str_eq(replies.text, expected);
    close_fixture(&fixture);
}
END_TEST

START_TEST(garbage_is_answered_after_all_earlier_commands)
{
    struct fixture fixture;
    open_resp_fixture(&fixture);
    say_command(&fixture, 0, LOCK_THAT_WAITS);
    say_command(&fixture, 0, "PING");
    say(&fixture, 0, "garbage");
    for (unsigned passes = 0; passes < 10; passes++)
        run_pass(&fixture);
    ck_assert_uint_eq(fixture.clients.session_count, 1);
    end_waits(&fixture);
    expect_end(&fixture);
    ck_assert_str_eq(replies.text, NOT_LOCKED "+PONG\r\n-ERR Protocol error: a command "
                                              "must begin with *\r\n");
    close_fixture(&fixture);
}
END_TEST

/* None of them ends the connection. */
START_TEST(wrong_commands_have_their_errors)
{
    static const struct {
        const char *words;
        const char *reply;
    } rows[] = {
        {"GET x",
         "-ERR unknown command 'GET': redlockd is a lock manager, HELP lists its commands"},
        {"abcdefghijklmnopqrstuvwxyz0123456789",
         "-ERR unknown command 'abcdefghijklmnopqrstuvwxyz012345': redlockd is a lock manager, "
         "HELP lists its commands"},
        {"\"\\",
         "-ERR unknown command '\\x22\\x5c': redlockd is a lock manager, HELP lists its commands"},
        {"a\r\n+OK",
         "-ERR bad-byte byte 2 of word 1 is 0x0d; spaces and control characters are not allowed"},
        {"LOCK a 1s HOLD",
         "-ERR bad-arguments HOLD needs RESP3, because LOST is a push message; send HELLO 3 first"},
        {"PING", "+PONG"},
    };
    struct fixture fixture;
    char expected[256];
    char words[LIMIT_LINE + 8] = "ECHO ";
    open_resp_fixture(&fixture);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        replies.len = 0;
        say_command(&fixture, 0, rows[i].words);
        snprintf(expected, sizeof(expected), "%s\r\n", rows[i].reply);
        expect_replies(&fixture, expected);
    }
    memset(words + 5, 'w', LIMIT_LINE - 3); /* with ECHO, one byte too many */
    replies.len = 0;
    say(&fixture, 0, "*0\r\n*-1\r\n");
    say_command(&fixture, 0, words);
    say_command(&fixture, 0, "PING");
    expect_replies(&fixture,
                   "-ERR line-too-long the words of a command, with a space between them, must "
                   "be shorter than 2048 bytes\r\n+PONG\r\n");
    close_fixture(&fixture);
}
END_TEST

/* Further commands wait until the client has ended its side, and are answered then. */
START_TEST(as_many_commands_are_pending_as_the_limit_allows)
{
    enum { COUNT = LIMIT_CLIENT_REQUESTS + 100 };
    struct fixture fixture;
    unsigned undone = 0;
    open_resp_fixture(&fixture);
    const struct session *session = first_session(&fixture);
    for (unsigned i = 0; i < COUNT; i++) {
        char words[64];
        snprintf(words, sizeof(words), "LOCK r%u 1s WAIT 1h", i);
        say_command(&fixture, 0, words);
        run_pass(&fixture);
        ck_assert_uint_le(session->replies.pending, LIMIT_CLIENT_REQUESTS);
    }
    for (unsigned passes = 0; passes < 10; passes++)
        run_pass(&fixture);
    ck_assert_uint_eq(session->replies.pending, LIMIT_CLIENT_REQUESTS);
    ck_assert_uint_eq(replies.len, 0);
    shutdown(fixture.peers[0], SHUT_WR);
    expect_end(&fixture);
    for (const char *at = replies.text; (at = strstr(at, "-ERR bad-arguments the")) != NULL; at++)
        undone++;
    ck_assert_uint_eq(undone, COUNT);
    close_fixture(&fixture);
}
END_TEST

static const char secret[] = "c0ffee00c0ffee00c0ffee00c0ffee00";

static void assert_wiped(const struct fixture *fixture)
{
    const struct command_reader *reader = &fixture->clients.commands;
    ck_assert_ptr_null(memmem(fixture->streams.scratch, LIMIT_NODE_IO, secret, 16));
    ck_assert_ptr_null(memmem(reader, sizeof(*reader), secret, 16));
}

static void open_users_fixture(struct fixture *fixture)
{
    open_fixture(fixture);
    fixture->clients.auth.open = false;
    connect_clients(fixture, 1);
    replies = (struct replies){0};
}

START_TEST(reset_gives_no_more_time_to_authenticate)
{
    struct fixture fixture;
    open_users_fixture(&fixture);
    now_ns += fixture.config->limits.auth_timeout_ns / 2;
    say_command(&fixture, 0, "RESET");
    expect_replies(&fixture, "+RESET\r\n");
    ck_assert_uint_eq(fixture.clients.auth.pending_count, 1);
    now_ns += fixture.config->limits.auth_timeout_ns / 2;
    clients_apply_config(&fixture.clients, CLIENTS); /* sets the timer, which is due now */
    expect_end(&fixture);
    ck_assert_str_eq(replies.text, "+RESET\r\n-DENIED not authenticated in time\r\n");
    close_fixture(&fixture);
}
END_TEST

/* No copy of a secret stays in the buffers that all sessions share, also if it comes in pieces. */
START_TEST(secrets_of_commands_are_wiped)
{
    struct fixture fixture;
    char words[64];
    open_users_fixture(&fixture);
    snprintf(words, sizeof(words), "AUTH %s", secret);
    const char *bytes = command(words);
    size_t cut = _i == 0 ? 0 : strlen(bytes) - 5;
    ck_assert_int_eq(write(fixture.peers[0], bytes, cut), (ssize_t)cut);
    run_pass(&fixture);
    say(&fixture, 0, bytes + cut);
    expect_replies(&fixture, "-WRONGPASS wrong secret\r\n");
    assert_wiped(&fixture);
    close_fixture(&fixture);
}
END_TEST

/* A client that has authenticated sends no secret, except after RESET. */
START_TEST(secrets_after_reset_are_wiped)
{
    struct fixture fixture;
    char words[64];
    char bytes[128];
    open_users_fixture(&fixture);
    say_command(&fixture, 0, "PING");
    expect_replies(&fixture, "+PONG\r\n");
    LIST_FIRST(&fixture.clients.sessions)->identity.state = AUTH_BY_SECRET;
    fixture.clients.auth.pending_count = 0;
    TAILQ_INIT(&fixture.clients.auth.pending);
    snprintf(words, sizeof(words), "AUTH %s", secret);
    int len = snprintf(bytes, sizeof(bytes), "%s", command("RESET"));
    snprintf(bytes + len, sizeof(bytes) - (size_t)len, "%s", command(words));
    say(&fixture, 0, bytes);
    expect_replies(&fixture, "+PONG\r\n+RESET\r\n-WRONGPASS wrong secret\r\n");
    assert_wiped(&fixture);
    close_fixture(&fixture);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("sessions");
    TCase *tests = tcase_create("sessions");
    tcase_add_test(tests, clients_wait_unread_while_too_many_rounds_are_in_flight);
    tcase_add_test(tests, input_and_end_beyond_one_read_are_seen);
    tcase_add_test(tests, reset_together_with_input_is_seen);
    tcase_add_test(tests, a_pass_ends_between_the_listings_of_one_client);
    tcase_add_test(tests, a_pass_has_few_listings_of_all_locks);
    tcase_add_test(tests, clients_that_list_again_and_again_delay_others_by_one_listing);
    tcase_add_test(tests, slow_clients_take_turns);
    tcase_add_test(tests, the_output_of_a_pass_is_part_of_its_budget);
    tcase_add_test(tests, sessions_that_end_at_once_are_freed_over_several_passes);
    tcase_add_test(tests, sessions_are_freed_although_clients_use_up_the_pass);
    tcase_add_loop_test(tests, a_client_that_leaves_a_crowd_leaves_its_queue_at_once, 0, 2);
    tcase_add_test(tests, late_unauthenticated_connections_are_closed_over_several_passes);
    tcase_add_test(tests, a_connection_without_memory_is_closed_and_logged);
    tcase_add_test(tests, the_first_byte_decides_what_a_connection_speaks);
    tcase_add_test(tests, the_rest_of_a_long_line_decides_nothing);
    tcase_add_test(tests, a_command_in_single_bytes_is_answered);
    tcase_add_test(tests, commands_beyond_the_budget_wait_for_the_next_pass);
    tcase_add_test(tests, long_commands_of_one_read_are_all_taken);
    tcase_add_test(tests, later_replies_wait_for_the_reply_to_an_earlier_command);
    tcase_add_loop_test(tests, a_command_that_waits_stops_the_reading, 0, 4);
    tcase_add_test(tests, commands_wait_while_many_replies_are_kept);
    tcase_add_loop_test(tests, a_client_that_leaves_while_its_command_waits_leaves_its_queue, 0, 2);
    tcase_add_test(tests, every_command_before_a_half_close_is_answered);
    tcase_add_test(tests, garbage_is_answered_after_all_earlier_commands);
    tcase_add_test(tests, wrong_commands_have_their_errors);
    tcase_add_test(tests, as_many_commands_are_pending_as_the_limit_allows);
    tcase_add_test(tests, reset_gives_no_more_time_to_authenticate);
    tcase_add_loop_test(tests, secrets_of_commands_are_wiped, 0, 2);
    tcase_add_test(tests, secrets_after_reset_are_wiped);
    suite_add_tcase(suite, tests);
    return suite;
}
