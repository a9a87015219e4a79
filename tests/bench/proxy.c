#include "tests/bench/proxy.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/clock.h"
#include "tests/bench/must.h"
#include "tests/bench/rounds.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"

enum { CLIENTS = 64, BUFFER = 65536, KEY = 64, LINE = 128 };

/* What epoll tells of: clients by their index, then masters, then the listener. */
enum { MASTERS = CLIENTS, LISTENER = MASTERS + ROUNDS_MASTERS, SOURCES };

struct client {
    int fd;
    char input[BUFFER];
    size_t input_len;
    char output[BUFFER];
    size_t output_len;
};

/* Who is to be told; its tag is that of its requests. */
struct asker {
    struct client *client;
    bool named; /* has its slot a name? */
};

/* Who waits for the one resource of all, first come first. */
struct line {
    unsigned tags[ROUNDS_SLOTS];
    unsigned first;
    unsigned count;
    unsigned holder; /* the tag of who has it, or had it last */
    enum { FREE, UNDER_WAY, HELD } state;
};

struct state {
    struct proxy_plan plan;
    struct rounds *rounds;
    int epoll;
    int listening;
    struct client clients[CLIENTS];
    unsigned client_count; /* whoever left keeps its place */
    struct asker askers[ROUNDS_SLOTS];
    struct line line;
};

/* The slot whose token it has been given; NULL where it has given it back. */
static void answer(struct state *state, unsigned tag, const unsigned *slot)
{
    struct client *client = state->askers[tag].client;
    char *to = client->output + client->output_len;
    must(client->output_len + LINE <= BUFFER, "what a client is told has room");
    int len = slot == NULL ? sprintf(to, "#%u OK\n", tag)
                           : sprintf(to, "#%u OK %.*s 1978 0 -\n", tag, ROUNDS_TOKEN,
                                     rounds_token(state->rounds, *slot));
    client->output_len += (size_t)len;
}

/* --- each a resource of its own: the tag is the slot --- */

static void on_done(void *arg, unsigned slot, enum rounds_kind kind, int64_t now_ns)
{
    (void)now_ns;
    answer(arg, slot, kind == TAKE ? &slot : NULL);
}

/* --- all one resource, slot 0 --- */

static void put_in_line(struct state *state, enum rounds_kind kind)
{
    state->line.state = UNDER_WAY;
    rounds_put(state->rounds, 0, kind);
}

static void on_line_request(struct state *state, unsigned tag, bool lock)
{
    struct line *line = &state->line;
    if (!lock) {
        put_in_line(state, line->count > 0 ? SWAP : RELEASE);
        return;
    }
    line->tags[(line->first + line->count++) % ROUNDS_SLOTS] = tag;
    if (line->state == FREE)
        put_in_line(state, TAKE);
}

static void on_line_done(void *arg, unsigned slot, enum rounds_kind kind, int64_t now_ns)
{
    (void)now_ns;
    struct state *state = arg;
    struct line *line = &state->line;
    if (kind != TAKE)
        answer(state, line->holder, NULL);
    if (kind != RELEASE) {
        line->state = HELD;
        line->holder = line->tags[line->first];
        line->first = (line->first + 1) % ROUNDS_SLOTS;
        line->count--;
        answer(state, line->holder, &slot);
        return;
    }
    line->state = FREE;
    if (line->count > 0)
        put_in_line(state, TAKE);
}

/* --- clients --- */

static void name_slot(struct state *state, struct asker *asker, unsigned slot, const char *lock)
{
    char key[KEY];
    must(sscanf(lock, " LOCK %63s", key) == 1, "a slot begins with a LOCK");
    rounds_name(state->rounds, slot, key);
    asker->named = true;
}

/* "#12 LOCK bench-12 2000", "#12 UNLOCK bench-12 6c7b..." */
static void on_text(struct state *state, struct client *client, const char *text)
{
    char *rest;
    unsigned tag = (unsigned)strtoul(text + 1, &rest, 10);
    bool lock = rest[1] == 'L';
    must(tag < ROUNDS_SLOTS, "a tag is one of a slot");
    struct asker *asker = &state->askers[tag];
    asker->client = client;
    if (!asker->named)
        name_slot(state, asker, tag, rest);
    if (state->plan.line)
        on_line_request(state, tag, lock);
    else
        rounds_put(state->rounds, tag, lock ? TAKE : RELEASE);
}

static void read_in(struct state *state, struct client *client)
{
    ssize_t len = recv(client->fd, client->input + client->input_len, BUFFER - client->input_len,
                       MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    must(len >= 0, "a client closes its connection");
    if (len == 0) {
        close(client->fd);
        return;
    }
    char *at = client->input;
    char *end = at + client->input_len + (size_t)len;
    char *newline;
    while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        *newline = '\0';
        on_text(state, client, at);
        at = newline + 1;
    }
    client->input_len = (size_t)(end - at);
    memmove(client->input, at, client->input_len);
}

static void write_out(struct client *client)
{
    if (client->output_len == 0)
        return;
    ssize_t len = send(client->fd, client->output, client->output_len, MSG_NOSIGNAL);
    must(len == (ssize_t)client->output_len, "a client reads what it is told");
    client->output_len = 0;
}

static void watch(struct state *state, int fd, unsigned source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};
    must(epoll_ctl(state->epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll has room");
}

static void accept_one(struct state *state)
{
    const int on = 1;
    must(state->client_count < CLIENTS, "a client has a place");
    struct client *client = &state->clients[state->client_count];
    client->fd = accept4(state->listening, NULL, NULL, SOCK_CLOEXEC);
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    watch(state, client->fd, state->client_count++);
}

static void pass(struct state *state)
{
    struct epoll_event events[SOURCES];
    int count = epoll_wait(state->epoll, events, SOURCES, -1);
    int64_t now_ns = clock_ns();
    for (int i = 0; i < count; i++) {
        unsigned source = events[i].data.u32;
        if (source == LISTENER)
            accept_one(state);
        else if (source >= MASTERS)
            rounds_read(state->rounds, source - MASTERS, now_ns);
        else
            read_in(state, &state->clients[source]);
    }
    rounds_flush(state->rounds);
    for (unsigned i = 0; i < state->client_count; i++)
        write_out(&state->clients[i]);
}

static _Noreturn void serve(struct state *state)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    state->epoll = epoll_create1(EPOLL_CLOEXEC);
    watch(state, state->listening, LISTENER);
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++)
        watch(state, rounds_fd(state->rounds, i), MASTERS + i);
    for (;;)
        pass(state);
}

void proxy_start(struct proxy *proxy, const struct proxy_plan *plan)
{
    struct state *state = calloc(1, sizeof(*state));
    struct sockaddr_in where;
    socklen_t len = sizeof(where);
    ck_assert_ptr_nonnull(state);
    /* Connected here, since the connections by which a test asks its masters are this process's. */
    state->plan = *plan;
    state->rounds = rounds_open(&(struct rounds_plan){
        .masters = plan->masters,
        .guarded = plan->guarded,
        .done = plan->line ? on_line_done : on_done,
        .arg = state,
    });
    state->listening = port_listen(AF_INET, 0);
    ck_assert_int_eq(listen(state->listening, CLIENTS), 0);
    ck_assert_int_eq(getsockname(state->listening, (struct sockaddr *)&where, &len), 0);
    proxy->port = ntohs(where.sin_port);
    proxy->pid = fork();
    ck_assert_int_ge(proxy->pid, 0);
    if (proxy->pid == 0)
        serve(state);
    close(state->listening);
    rounds_close(state->rounds);
    free(state);
}

void proxy_stop(struct proxy *proxy)
{
    process_kill(proxy->pid);
    proxy->pid = 0;
}
