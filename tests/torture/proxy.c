#include "tests/torture/proxy.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/units.h"
#include "tests/e2e/port.h"
#include "tests/torture/ledger.h"

enum { CHUNK = 16 * 1024, BACKLOG = 64 };

/* Bytes that were read together, and when to forward them. */
struct chunk {
    STAILQ_ENTRY(chunk) next;
    int64_t due_ns;
    size_t len;
    size_t passed;
    char bytes[];
};

enum state { OPEN, ENDS, RESETS };

/* One direction of one connection. */
struct flow {
    STAILQ_HEAD(, chunk) chunks; /* in order; due times never decrease */
    int64_t last_due_ns;
    enum state state; /* state of the sending side */
    bool overtaken;   /* a reset has overtaken these bytes: drop them */
};

/* A connection from the daemon, and the proxy's own connection to the master for it. */
struct pair {
    struct proxy_line *line; /* NULL: free */
    unsigned resets;         /* line->resets when the connection was accepted */
    int fds[PROXY_WAYS];     /* by direction: the master's socket, the daemon's socket */
    struct flow flows[PROXY_WAYS];
};

/* --- pairs --- */

static void close_fd(int fd, bool reset)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(fd);
}

static void pair_close(struct pair *pair, bool reset)
{
    for (unsigned way = 0; way < PROXY_WAYS; way++) {
        struct chunk *chunk;
        while ((chunk = STAILQ_FIRST(&pair->flows[way].chunks)) != NULL) {
            STAILQ_REMOVE_HEAD(&pair->flows[way].chunks, next);
            free(chunk);
        }
        close_fd(pair->fds[way], reset);
    }
    pair->line = NULL;
}

static int connect_to_master(const char *path)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    ck_assert_uint_lt(strlen(path), sizeof(where.sun_path));
    memcpy(where.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(fd, 0);
    if (connect(fd, (struct sockaddr *)&where, sizeof(where)) == 0)
        return fd;
    close(fd);
    return -1;
}

static struct pair *free_pair(struct proxy *proxy)
{
    for (unsigned i = 0; i < PROXY_PAIRS; i++)
        if (proxy->pairs[i].line == NULL)
            return &proxy->pairs[i];
    return NULL;
}

static void accept_pair(struct proxy *proxy, struct proxy_line *line)
{
    int fd = accept4(line->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct pair *pair = free_pair(proxy);
    int master = pair != NULL ? connect_to_master(line->socket) : -1;
    if (master < 0) {
        close_fd(fd, true);
        return;
    }
    *pair =
        (struct pair){.line = line, .resets = line->resets, .fds = {[PROXY_TO_MASTER] = master}};
    pair->fds[PROXY_TO_DAEMON] = fd;
    for (unsigned way = 0; way < PROXY_WAYS; way++)
        STAILQ_INIT(&pair->flows[way].chunks);
}

/* --- forwarding --- */

static int64_t due_ns(struct proxy *proxy, const struct proxy_line *line, unsigned way)
{
    unsigned jitter_ms = line->jitter_ms[way];
    unsigned late_ms =
        line->delay_ms[way] + (jitter_ms > 0 ? prng_below(&proxy->prng, jitter_ms) : 0);
    return ledger_now_ns() + late_ms * NS_PER_MS;
}

static void take(struct proxy *proxy, struct pair *pair, unsigned way)
{
    char bytes[CHUNK];
    struct flow *flow = &pair->flows[way];
    ssize_t got = recv(pair->fds[PROXY_WAYS - 1 - way], bytes, sizeof(bytes), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        flow->state = got == 0 ? ENDS : RESETS;
        flow->overtaken = got < 0 && prng_below(&proxy->prng, 2) == 0;
        return;
    }
    struct chunk *chunk = malloc(sizeof(*chunk) + (size_t)got);
    ck_assert_ptr_nonnull(chunk);
    chunk->due_ns = due_ns(proxy, pair->line, way);
    if (chunk->due_ns < flow->last_due_ns)
        chunk->due_ns = flow->last_due_ns;
    flow->last_due_ns = chunk->due_ns;
    chunk->len = (size_t)got;
    chunk->passed = 0;
    memcpy(chunk->bytes, bytes, chunk->len);
    STAILQ_INSERT_TAIL(&flow->chunks, chunk, next);
}

/* Forward the bytes that are due. False if sending fails, because the receiver has closed. */
static bool pass_on(struct pair *pair, unsigned way)
{
    struct flow *flow = &pair->flows[way];
    struct chunk *chunk;
    while ((chunk = STAILQ_FIRST(&flow->chunks)) != NULL && !pair->line->stalled[way] &&
           chunk->due_ns <= ledger_now_ns()) {
        ssize_t sent = send(pair->fds[way], chunk->bytes + chunk->passed,
                            chunk->len - chunk->passed, MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        chunk->passed += (size_t)sent;
        if (chunk->passed < chunk->len)
            return true;
        STAILQ_REMOVE_HEAD(&flow->chunks, next);
        free(chunk);
    }
    return true;
}

/* Forward the bytes that are due, and then the end of the connection. If the sender closed the
 * connection, the end follows the bytes in flight. If the sender reset it, the reset overtakes
 * these bytes in half of the cases. A reset that the test requests (line->resets) always does. */
static void handle_end(struct pair *pair)
{
    if (pair->resets != pair->line->resets) {
        pair_close(pair, true);
        return;
    }
    for (unsigned way = 0; way < PROXY_WAYS; way++) {
        struct flow *flow = &pair->flows[way];
        bool over = flow->overtaken || !pass_on(pair, way) ||
                    (flow->state != OPEN && STAILQ_EMPTY(&flow->chunks));
        if (over) {
            pair_close(pair, flow->state == RESETS);
            return;
        }
    }
}

/* --- the thread --- */

static void *run(void *context)
{
    enum { FDS = PROXY_LINES + PROXY_WAYS * PROXY_PAIRS };
    struct proxy *proxy = context;
    struct pollfd ready[FDS];
    while (!proxy->over) {
        for (unsigned i = 0; i < FDS; i++)
            ready[i] = (struct pollfd){.fd = -1, .events = POLLIN};
        for (unsigned i = 0; i < PROXY_LINES; i++)
            ready[i].fd = proxy->lines[i].listen_fd;
        for (unsigned i = 0; i < PROXY_PAIRS; i++)
            for (unsigned way = 0; way < PROXY_WAYS && proxy->pairs[i].line != NULL; way++)
                if (proxy->pairs[i].flows[way].state == OPEN)
                    ready[PROXY_LINES + PROXY_WAYS * i + way].fd =
                        proxy->pairs[i].fds[PROXY_WAYS - 1 - way];
        poll(ready, FDS, 1);
        for (unsigned i = 0; i < PROXY_PAIRS; i++) {
            struct pair *pair = &proxy->pairs[i];
            for (unsigned way = 0; way < PROXY_WAYS && pair->line != NULL; way++)
                if (ready[PROXY_LINES + PROXY_WAYS * i + way].revents != 0)
                    take(proxy, pair, way);
            if (pair->line != NULL)
                handle_end(pair);
        }
        for (unsigned i = 0; i < PROXY_LINES; i++)
            if (ready[i].revents != 0)
                accept_pair(proxy, &proxy->lines[i]);
    }
    return NULL;
}

void proxy_start(struct proxy *proxy, const struct master *masters, uint64_t seed)
{
    memset(proxy, 0, sizeof(*proxy));
    proxy->prng.state = seed;
    proxy->pairs = calloc(PROXY_PAIRS, sizeof(*proxy->pairs));
    ck_assert_ptr_nonnull(proxy->pairs);
    for (unsigned i = 0; i < PROXY_LINES; i++) {
        struct proxy_line *line = &proxy->lines[i];
        line->socket = masters[i].socket;
        line->port = port_free();
        line->listen_fd = port_listen(AF_INET, line->port);
        ck_assert_int_ge(line->listen_fd, 0);
        ck_assert_int_eq(listen(line->listen_fd, BACKLOG), 0);
        ck_assert_int_eq(fcntl(line->listen_fd, F_SETFL, O_NONBLOCK), 0);
    }
    ck_assert_int_eq(pthread_create(&proxy->thread, NULL, run, proxy), 0);
}

void proxy_end(struct proxy *proxy)
{
    proxy->over = true;
    pthread_join(proxy->thread, NULL);
    for (unsigned i = 0; i < PROXY_PAIRS; i++)
        if (proxy->pairs[i].line != NULL)
            pair_close(&proxy->pairs[i], false);
    for (unsigned i = 0; i < PROXY_LINES; i++)
        close(proxy->lines[i].listen_fd);
    free(proxy->pairs);
}
