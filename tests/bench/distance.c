#include "tests/bench/distance.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/clock.h"
#include "tests/bench/must.h"
#include "tests/bench/wire.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"

enum { PAIRS = 64, ENDS = 2, CHUNK = 16384, BACKLOG = 16 };

struct chunk {
    STAILQ_ENTRY(chunk) next;
    int64_t due_ns;
    size_t len;
    char bytes[];
};

STAILQ_HEAD(chunks, chunk);

/* A connection from the daemon, and the relay's own connection to the master for it. */
struct pair {
    int fds[ENDS];              /* -1: none */
    struct chunks chunks[ENDS]; /* bytes in flight to this end */
};

struct relay {
    const struct master *masters;
    int64_t one_way_ns;
    int listening[DISTANCE_MASTERS];
    struct pair pairs[PAIRS];
};

static void end_pair(struct pair *pair)
{
    for (unsigned end = 0; end < ENDS; end++) {
        struct chunk *chunk;
        while ((chunk = STAILQ_FIRST(&pair->chunks[end])) != NULL) {
            STAILQ_REMOVE_HEAD(&pair->chunks[end], next);
            free(chunk);
        }
        close(pair->fds[end]);
        pair->fds[end] = -1;
    }
}

static void accept_pair(struct relay *relay, unsigned master)
{
    const int on = 1;
    unsigned i = 0;
    while (i < PAIRS && relay->pairs[i].fds[0] >= 0)
        i++;
    must(i < PAIRS, "a connection has a place");
    struct pair *pair = &relay->pairs[i];
    pair->fds[0] = accept4(relay->listening[master], NULL, NULL, SOCK_CLOEXEC);
    must(pair->fds[0] >= 0, "accept succeeds");
    setsockopt(pair->fds[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    pair->fds[1] = wire_connect(relay->masters[master].host, relay->masters[master].port);
    for (unsigned end = 0; end < ENDS; end++)
        STAILQ_INIT(&pair->chunks[end]);
}

/* Read from one end. False: the pair has ended. */
static bool take(const struct relay *relay, struct pair *pair, unsigned end)
{
    struct chunk *chunk = malloc(sizeof(*chunk) + CHUNK);
    must(chunk != NULL, "there is memory");
    ssize_t len = recv(pair->fds[end], chunk->bytes, CHUNK, MSG_DONTWAIT);
    if (len <= 0) {
        free(chunk);
        return len < 0 && (errno == EAGAIN || errno == EINTR);
    }
    chunk->len = (size_t)len;
    chunk->due_ns = clock_ns() + relay->one_way_ns;
    STAILQ_INSERT_TAIL(&pair->chunks[1 - end], chunk, next);
    return true;
}

/* Forward the bytes that are due. Returns when the next bytes are due. */
static int64_t pass_on(struct pair *pair, unsigned end, int64_t now_ns)
{
    struct chunk *chunk;
    while ((chunk = STAILQ_FIRST(&pair->chunks[end])) != NULL && chunk->due_ns <= now_ns) {
        STAILQ_REMOVE_HEAD(&pair->chunks[end], next);
        /* Errors are ignored: if the other side has closed, the next read from it reports that. */
        for (size_t sent = 0; sent < chunk->len;) {
            ssize_t taken =
                send(pair->fds[end], chunk->bytes + sent, chunk->len - sent, MSG_NOSIGNAL);
            if (taken <= 0)
                break;
            sent += (size_t)taken;
        }
        free(chunk);
    }
    return chunk != NULL ? chunk->due_ns : INT64_MAX;
}

static void pass(struct relay *relay)
{
    struct pollfd ready[DISTANCE_MASTERS + PAIRS * ENDS];
    int64_t next_ns = INT64_MAX;
    for (unsigned i = 0; i < DISTANCE_MASTERS; i++)
        ready[i] = (struct pollfd){.fd = relay->listening[i], .events = POLLIN};
    for (unsigned i = 0; i < PAIRS * ENDS; i++) {
        struct pair *pair = &relay->pairs[i / ENDS];
        ready[DISTANCE_MASTERS + i] = (struct pollfd){.fd = pair->fds[i % ENDS], .events = POLLIN};
        if (pair->fds[0] < 0)
            continue;
        int64_t due_ns = pass_on(pair, i % ENDS, clock_ns());
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    int64_t wait_ns = next_ns - clock_ns();
    const struct timespec wait = {.tv_nsec = wait_ns > 0 ? wait_ns % 1000000000 : 0};
    ppoll(ready, DISTANCE_MASTERS + PAIRS * ENDS, next_ns != INT64_MAX ? &wait : NULL, NULL);
    for (unsigned i = 0; i < DISTANCE_MASTERS; i++)
        if (ready[i].revents != 0)
            accept_pair(relay, i);
    for (unsigned i = 0; i < PAIRS * ENDS; i++) {
        struct pair *pair = &relay->pairs[i / ENDS];
        if (ready[DISTANCE_MASTERS + i].revents != 0 && pair->fds[0] >= 0 &&
            !take(relay, pair, i % ENDS))
            end_pair(pair);
    }
}

static _Noreturn void run(struct relay *relay, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1);
    if (getppid() != parent)
        _exit(1);
    for (unsigned i = 0; i < PAIRS; i++)
        relay->pairs[i].fds[0] = relay->pairs[i].fds[1] = -1;
    for (;;)
        pass(relay);
}

void distance_start(struct distance *distance, const struct master *masters, int64_t one_way_ns)
{
    struct relay *relay = calloc(1, sizeof(*relay));
    ck_assert_ptr_nonnull(relay);
    relay->masters = masters;
    relay->one_way_ns = one_way_ns;
    for (unsigned i = 0; i < DISTANCE_MASTERS; i++) {
        distance->ports[i] = port_free();
        relay->listening[i] = port_listen(AF_INET, distance->ports[i]);
        ck_assert_int_ge(relay->listening[i], 0);
        ck_assert_int_eq(listen(relay->listening[i], BACKLOG), 0);
    }
    pid_t parent = getpid();
    distance->pid = fork();
    ck_assert_int_ge(distance->pid, 0);
    if (distance->pid == 0)
        run(relay, parent);
    for (unsigned i = 0; i < DISTANCE_MASTERS; i++)
        close(relay->listening[i]);
    free(relay);
}

void distance_stop(struct distance *distance)
{
    process_kill(distance->pid);
    distance->pid = 0;
}
