#include "tests/bench/proxy.h"

#include <arpa/inet.h>
#include <check.h>
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
#include "tests/bench/wire.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"

enum { CLIENTS = 64, BUFFER = 65536, KEY = 64, LINE = 128 };

/* Indices for epoll: the clients, then the masters, then the listener. */
enum { MASTERS = CLIENTS, LISTENER = MASTERS + ROUNDS_MASTERS, SOURCES };

struct client {
    int fd;
    struct wire_lines input;
    char output[BUFFER];
    size_t output_len;
};

/* The queue for the single resource. */
struct line {
    unsigned tags[ROUNDS_SLOTS];
    unsigned first;
    unsigned count;
    unsigned holder; /* tag of the present or last holder */
    enum { FREE, UNDER_WAY, HELD } state;
};

struct serving {
    struct rounds *rounds;
    bool one_resource; /* all requests are for one resource */
    int epoll;
    int listening;
    struct client clients[CLIENTS];
    unsigned client_count;               /* slots in use, including those of closed clients */
    struct client *reading;              /* the client whose lines are being read */
    struct client *askers[ROUNDS_SLOTS]; /* the client of each request, by the request's tag */
    bool named[ROUNDS_SLOTS];
    struct line line;
};

/* Reply OK. `token`: the token of the grant; NULL for a release. */
static void answer(struct serving *serving, unsigned tag, const char *token)
{
    struct client *client = serving->askers[tag];
    char *to = client->output + client->output_len;
    must(client->output_len + LINE <= BUFFER, "the output buffer has room");
    int len = token == NULL ? sprintf(to, "#%u OK\n", tag)
                            : sprintf(to, "#%u OK %.*s 1978 0 -\n", tag, ROUNDS_TOKEN, token);
    client->output_len += (size_t)len;
}

/* --- one resource for each tag: its rounds use the slot of the same number (rounds.h) --- */

static void on_done(void *arg, unsigned slot, enum rounds_kind kind, int64_t now_ns)
{
    struct serving *serving = arg;
    (void)now_ns;
    answer(serving, slot, kind == TAKE ? rounds_token(serving->rounds, slot) : NULL);
}

/* --- one resource for all tags: its rounds use slot 0 --- */

static void enqueue(struct serving *serving, enum rounds_kind kind)
{
    serving->line.state = UNDER_WAY;
    rounds_put(serving->rounds, 0, kind);
}

static void on_line_request(struct serving *serving, unsigned tag, bool lock)
{
    struct line *line = &serving->line;
    if (!lock) {
        enqueue(serving, line->count > 0 ? SWAP : RELEASE);
        return;
    }
    line->tags[(line->first + line->count++) % ROUNDS_SLOTS] = tag;
    if (line->state == FREE)
        enqueue(serving, TAKE);
}

static void on_line_done(void *arg, unsigned slot, enum rounds_kind kind, int64_t now_ns)
{
    struct serving *serving = arg;
    (void)now_ns;
    struct line *line = &serving->line;
    if (kind != TAKE)
        answer(serving, line->holder, NULL);
    if (kind != RELEASE) {
        line->state = HELD;
        line->holder = line->tags[line->first];
        line->first = (line->first + 1) % ROUNDS_SLOTS;
        line->count--;
        answer(serving, line->holder, rounds_token(serving->rounds, slot));
        return;
    }
    line->state = FREE;
    if (line->count > 0)
        enqueue(serving, TAKE);
}

/* --- clients --- */

static void name_slot(struct serving *serving, unsigned slot, const char *lock)
{
    char key[KEY];
    must(sscanf(lock, " LOCK %63s", key) == 1, "a slot begins with a LOCK");
    rounds_name(serving->rounds, slot, key);
    serving->named[slot] = true;
}

/* A request such as "#12 LOCK bench-12 2000" or "#12 UNLOCK bench-12 6c7b...". */
static void on_text(void *arg, char *text)
{
    struct serving *serving = arg;
    char *rest;
    unsigned tag = (unsigned)strtoul(text + 1, &rest, 10);
    bool lock = rest[1] == 'L';
    unsigned slot = serving->one_resource ? 0 : tag;
    must(tag < ROUNDS_SLOTS, "a tag is one of a slot");
    serving->askers[tag] = serving->reading;
    if (!serving->named[slot])
        name_slot(serving, slot, rest);
    if (serving->one_resource)
        on_line_request(serving, tag, lock);
    else
        rounds_put(serving->rounds, slot, lock ? TAKE : RELEASE);
}

static void read_in(struct serving *serving, struct client *client)
{
    serving->reading = client;
    if (!wire_read_lines(client->fd, &client->input, on_text, serving))
        close(client->fd);
}

static void write_out(struct client *client)
{
    wire_send(client->fd, client->output, client->output_len);
    client->output_len = 0;
}

static void watch_fd(struct serving *serving, int fd, unsigned source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};
    must(epoll_ctl(serving->epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll has room");
}

static void accept_one(struct serving *serving)
{
    const int on = 1;
    must(serving->client_count < CLIENTS, "a client has a place");
    struct client *client = &serving->clients[serving->client_count];
    client->fd = accept4(serving->listening, NULL, NULL, SOCK_CLOEXEC);
    must(client->fd >= 0, "accept succeeds");
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    watch_fd(serving, client->fd, serving->client_count++);
}

static void pass(struct serving *serving)
{
    struct epoll_event events[SOURCES];
    int count = epoll_wait(serving->epoll, events, SOURCES, -1);
    int64_t now_ns = clock_ns();
    for (int i = 0; i < count; i++) {
        unsigned source = events[i].data.u32;
        if (source == LISTENER)
            accept_one(serving);
        else if (source >= MASTERS)
            rounds_read(serving->rounds, source - MASTERS, now_ns);
        else
            read_in(serving, &serving->clients[source]);
    }
    /* Flush the rounds before writing the replies: if a master is behind, rounds_flush() reads from
     * it, and each round that this completes adds a reply. */
    rounds_flush(serving->rounds);
    for (unsigned i = 0; i < serving->client_count; i++)
        write_out(&serving->clients[i]);
}

static _Noreturn void serve(struct serving *serving, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    serving->epoll = epoll_create1(EPOLL_CLOEXEC);
    watch_fd(serving, serving->listening, LISTENER);
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++)
        watch_fd(serving, rounds_fd(serving->rounds, i), MASTERS + i);
    for (;;)
        pass(serving);
}

void proxy_start(struct bench_proxy *proxy, const struct proxy_plan *plan)
{
    struct serving *serving = calloc(1, sizeof(*serving));
    struct sockaddr_in where;
    socklen_t len = sizeof(where);
    ck_assert_ptr_nonnull(serving);
    serving->one_resource = plan->line;
    /* Open the rounds before the fork: rounds_open() loads its scripts over the test's own
     * connections to the masters, which the child must not use. */
    serving->rounds = rounds_open(&(struct rounds_plan){
        .masters = plan->masters,
        .guarded = plan->guarded,
        .batched = true,
        .done = plan->line ? on_line_done : on_done,
        .arg = serving,
    });
    serving->listening = port_listen(AF_INET, 0);
    ck_assert_int_eq(listen(serving->listening, CLIENTS), 0);
    ck_assert_int_eq(getsockname(serving->listening, (struct sockaddr *)&where, &len), 0);
    proxy->port = ntohs(where.sin_port);
    pid_t parent = getpid();
    proxy->pid = fork();
    ck_assert_int_ge(proxy->pid, 0);
    if (proxy->pid == 0)
        serve(serving, parent);
    close(serving->listening);
    rounds_close(serving->rounds);
    free(serving);
}

void proxy_stop(struct bench_proxy *proxy)
{
    process_kill(proxy->pid);
    proxy->pid = 0;
}
