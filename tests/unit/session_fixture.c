#include "tests/unit/session_fixture.h"

#include <check.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/internal.h"
#include "protocol/units.h"
#include "server/clock.h"
#include "server/rules.h"
#include "tests/unit/configs.h"

/* --- the clock --- */

int64_t virtual_ns;
int64_t virtual_step_ns;

int64_t clock_now_ns(void)
{
    virtual_ns += virtual_step_ns;
    return virtual_ns;
}

int64_t clock_wall_ns(void)
{
    return virtual_ns;
}

int64_t clock_monotonic_ns(void)
{
    return virtual_ns;
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
    .links = {.open = io_open, .close = io_open, .write = io_write, .random = io_random},
    .reply = io_reply,
    .undone = io_undone,
};

/* --- libevent's memory --- */

int allocations_left;

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

struct fixture fixture;

static void on_pass_end(evutil_socket_t fd, short events, void *context)
{
    (void)context;
    (void)fd;
    (void)events;
    streams_flush(&fixture.streams);
    clients_on_pass_end(&fixture.clients);
    pass_ended(&fixture.pass);
}

void open_fixture(void)
{
    fixture = (struct fixture){.log = {.level = CONFIG_LOG_INFO, .fd = -1}};
    virtual_ns = NS_PER_S;
    virtual_step_ns = 0;
    allocations_left = -1;
    event_set_mem_functions(allocate, reallocate, free);
    configs_open();
    fixture.config = configs_accept(NODES);
    fixture.log.fd = open("log", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fixture.log.fd, 0);
    fixture.base = event_base_new();
    ck_assert(random_init(&fixture.random));
    ck_assert(pass_init(&fixture.pass, fixture.base, on_pass_end, NULL));
    ck_assert(streams_init(&fixture.streams, fixture.base, &fixture.pass));
    struct engine_rules rules = rules_of(fixture.config);
    rules.clock_id = "virtual";
    fixture.clients = (struct clients){
        .config = fixture.config,
        .log = &fixture.log,
        .base = fixture.base,
        .pass = &fixture.pass,
        .random = &fixture.random,
        .streams = &fixture.streams,
        .request_limits = rules_request_limits(&rules),
        .engine = engine_new(&rules, &io, virtual_ns),
        .limit = CLIENTS,
    };
    ck_assert_ptr_nonnull(fixture.clients.engine);
    ck_assert(clients_init(&fixture.clients));
    for (unsigned i = 0; i < CLIENTS; i++)
        fixture.peers[i] = -1;
}

void close_fixture(void)
{
    struct engine *engine = fixture.clients.engine;
    clients_free_sessions(&fixture.clients);
    clients_deinit(&fixture.clients);
    engine_free(engine);
    streams_deinit(&fixture.streams);
    pass_deinit(&fixture.pass);
    event_base_free(fixture.base);
    random_deinit(&fixture.random);
    config_free(fixture.config);
    close(fixture.log.fd);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (fixture.peers[i] >= 0)
            close(fixture.peers[i]);
    configs_close();
}

void run_pass(void)
{
    event_base_loop(fixture.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* The address of the peers, in network byte order. */
static struct peer a_peer(void)
{
    struct peer peer = {.kind = PEER_TCP, .name = "somewhere"};
    peer.client_address = client_address_of_ipv4("\x0a\x00\x00\x01");
    return peer;
}

bool try_connect(unsigned index)
{
    const struct peer peer = a_peer();
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    fixture.peers[index] = fds[0];
    ck_assert_int_eq(address_counts_enter(&fixture.clients.address_counts, &peer.client_address, 0),
                     ADDRESS_COUNTED);
    if (sessions_add(&fixture.clients, fds[1], NULL, &peer))
        return true;
    address_counts_leave(&fixture.clients.address_counts, &peer.client_address);
    return false;
}

void connect_clients(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        ck_assert(try_connect(i));
}

void say(unsigned index, const char *text)
{
    ck_assert_int_eq(write(fixture.peers[index], text, strlen(text)), (ssize_t)strlen(text));
}

const char *heard(unsigned index)
{
    static char text[5 * 1024 + 1];
    ssize_t len = read(fixture.peers[index], text, sizeof(text) - 1);
    text[len > 0 ? len : 0] = '\0';
    return text;
}

const char *logged(void)
{
    static char text[65536];
    ssize_t len = pread(fixture.log.fd, text, sizeof(text) - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    return text;
}
