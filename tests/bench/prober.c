#include "tests/bench/prober.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/units.h"
#include "tests/bench/client_pool.h"
#include "tests/bench/clock.h"
#include "tests/bench/must.h"
#include "tests/bench/wire.h"
#include "tests/e2e/process.h"
#include "tests/e2e/waiting.h"

enum { INPUT = 16384, HOLDS_EACH = 250, TOKEN_LEN = 40, HOLDS_WITHIN_S = 60, LAST_S = 1 };

struct probe_conn {
    enum prober_probe kind;
    int fd;            /* -1: none */
    int64_t sent_ns;   /* 0: no request is pending */
    int64_t next_ns;   /* when the next one is due */
    bool unlocking;    /* the pending request is the UNLOCK after a LOCK */
    char input[INPUT]; /* the reply so far; of an overlong one, its beginning and its end */
    size_t len;
};

struct probing {
    const struct prober_plan *plan;
    struct prober *prober;
    struct probe_conn probes[PROBER_PROBE_COUNT];
    struct client_pool *holds; /* NULL: none */
    uint64_t held;             /* HOLDs that were granted */
};

static const struct {
    const char *request;
    int64_t every_ns;
} kinds[PROBER_PROBE_COUNT] = {
#define X(name, request, every_ms) {request, every_ms * NS_PER_MS},
    PROBER_PROBES(X)
#undef X
};

static bool is_http(enum prober_probe kind)
{
    return kind >= PROBER_HEALTHZ;
}

/* --- holds --- */

static void put_hold(struct probing *probing, unsigned index)
{
    client_pool_put(probing->holds, index / HOLDS_EACH, "#%u LOCK hold-%u %u WAIT 60000 HOLD\n",
                    index, index, probing->plan->hold_ttl_ms);
}

static void on_hold_line(void *arg, unsigned connection, char *line)
{
    struct probing *probing = arg;
    (void)connection;
    if (strncmp(line, "! LOST ", 7) == 0)
        probing->prober->lost++;
    if (line[0] != '#')
        return;
    if (strstr(line, " OK ") != NULL)
        probing->held++;
    else
        put_hold(probing, (unsigned)strtoul(line + 1, NULL, 10));
}

/* A HOLD that is lost before all are held counts. */
static void take_holds(struct probing *probing)
{
    const struct prober_plan *plan = probing->plan;
    if (plan->holds == 0)
        return;
    probing->holds = client_pool_open(
        &(struct client_pool_plan){.host = "127.0.0.1",
                                   .ports = {plan->port},
                                   .connections = (plan->holds + HOLDS_EACH - 1) / HOLDS_EACH,
                                   .depth = HOLDS_EACH,
                                   .on_line = on_hold_line,
                                   .arg = probing});
    for (unsigned i = 0; i < plan->holds; i++)
        put_hold(probing, i);
    client_pool_read_until(probing->holds, &probing->held, plan->holds,
                           clock_ns() + HOLDS_WITHIN_S * NS_PER_S);
    must(probing->held == plan->holds, "every HOLD is granted");
}

/* --- probes --- */

static void close_probe(struct probe_conn *probe)
{
    if (probe->fd >= 0)
        close(probe->fd);
    probe->fd = -1;
}

static void begin(struct probing *probing, struct probe_conn *probe, const char *request,
                  int64_t now_ns)
{
    const struct prober_plan *plan = probing->plan;
    if (probe->fd < 0)
        probe->fd = wire_connect("127.0.0.1", is_http(probe->kind) ? plan->admin_port : plan->port);
    probe->sent_ns = now_ns;
    probe->len = 0;
    if (send(probe->fd, request, strlen(request), MSG_NOSIGNAL) < 0)
        close_probe(probe);
}

/* The request has a reply, or has waited until now without one. */
static void count(struct probing *probing, struct probe_conn *probe, bool fine, int64_t now_ns)
{
    struct prober *prober = probing->prober;
    int64_t took_ns = now_ns - probe->sent_ns;
    for (int64_t left_ns = took_ns; left_ns > 0; left_ns -= kinds[probe->kind].every_ns)
        spread_add(&prober->took[probe->kind], left_ns);
    prober->failed[probe->kind] += !fine;
    if (probe->kind == PROBER_LOCK && prober->lock_count < PROBER_LOCKS) {
        prober->locks[prober->lock_count] =
            (struct prober_lock){now_ns, fine ? took_ns : INT64_MAX};
        prober->lock_count++;
    }
}

static void finish(struct probing *probing, struct probe_conn *probe, bool fine, int64_t now_ns)
{
    char unlock[96];
    if (!probe->unlocking)
        count(probing, probe, fine, now_ns);
    bool granted = probe->kind == PROBER_LOCK && !probe->unlocking && fine;
    if (granted)
        snprintf(unlock, sizeof(unlock), "UNLOCK prober %.*s\n", TOKEN_LEN, probe->input + 3);
    probe->unlocking = granted;
    probe->next_ns = probe->sent_ns + kinds[probe->kind].every_ns;
    probe->sent_ns = 0;
    if (is_http(probe->kind) || probe->kind == PROBER_CONNECT || !fine)
        close_probe(probe);
    if (granted)
        begin(probing, probe, unlock, now_ns);
}

static bool is_whole(const struct probe_conn *probe)
{
    const char *end = probe->kind == PROBER_NODES ? "END\n" : "\n";
    size_t len = strlen(end);
    return probe->len >= len && memcmp(probe->input + probe->len - len, end, len) == 0;
}

static bool is_fine(const struct probe_conn *probe)
{
    const char *start = is_http(probe->kind)          ? "HTTP/1.1 200 "
                        : probe->kind == PROBER_NODES ? "node="
                        : probe->kind == PROBER_LOCK  ? "OK"
                                                      : "PONG\n";
    return probe->len >= strlen(start) && memcmp(probe->input, start, strlen(start)) == 0;
}

static void read_probe(struct probing *probing, struct probe_conn *probe)
{
    if (probe->len == INPUT)
        probe->len = INPUT / 2;
    ssize_t len = recv(probe->fd, probe->input + probe->len, INPUT - probe->len, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    int64_t now_ns = clock_ns();
    probe->len += len > 0 ? (size_t)len : 0;
    if (len <= 0) {
        close_probe(probe);
        finish(probing, probe, len == 0 && is_http(probe->kind) && is_fine(probe), now_ns);
    } else if (!is_http(probe->kind) && is_whole(probe)) {
        finish(probing, probe, is_fine(probe), now_ns);
    }
}

/* --- the process --- */

/* Send what is due. Returns the time of the next probe. */
static int64_t send_due(struct probing *probing)
{
    int64_t next_ns = INT64_MAX;
    for (unsigned i = 0; i < PROBER_PROBE_COUNT; i++) {
        struct probe_conn *probe = &probing->probes[i];
        int64_t now_ns = clock_ns();
        if (probe->sent_ns == 0 && probe->next_ns <= now_ns)
            begin(probing, probe, kinds[i].request, now_ns);
        if (probe->sent_ns != 0 && probe->fd < 0)
            finish(probing, probe, false, now_ns);
        if (probe->sent_ns == 0 && probe->next_ns < next_ns)
            next_ns = probe->next_ns;
    }
    return next_ns;
}

static void sample(struct prober *prober, pid_t daemon)
{
    unsigned count_now = prober->sample_count;
    if (count_now < PROBER_SAMPLES &&
        clock_ns() >= prober->started_ns + count_now * (PROBER_SAMPLE_MS * NS_PER_MS)) {
        prober->memory_kib[count_now] = process_memory_kib(daemon);
        prober->sample_count++;
    }
}

static void pass(struct probing *probing)
{
    enum { HOLDS = PROBER_PROBE_COUNT };
    struct pollfd ready[PROBER_PROBE_COUNT + 1];
    int64_t wait_ns = send_due(probing) - clock_ns();
    wait_ns = wait_ns < 0 ? 0 : wait_ns > NS_PER_S / 10 ? NS_PER_S / 10 : wait_ns;
    for (unsigned i = 0; i < PROBER_PROBE_COUNT; i++)
        ready[i] = (struct pollfd){.fd = probing->probes[i].fd, .events = POLLIN};
    ready[HOLDS] = (struct pollfd){
        .fd = probing->holds != NULL ? client_pool_fd(probing->holds) : -1, .events = POLLIN};
    ppoll(ready, PROBER_PROBE_COUNT + 1, &(struct timespec){.tv_nsec = wait_ns}, NULL);
    for (unsigned i = 0; i < PROBER_PROBE_COUNT; i++)
        if (ready[i].revents != 0 && probing->probes[i].sent_ns != 0)
            read_probe(probing, &probing->probes[i]);
        else if (ready[i].revents != 0)
            close_probe(&probing->probes[i]);
    if (ready[HOLDS].revents != 0) {
        client_pool_wait(probing->holds, 0);
        client_pool_read(probing->holds);
    }
    sample(probing->prober, probing->plan->daemon);
}

/* What has happened before the end may be said after it. */
static void read_last(struct probing *probing)
{
    int64_t until_ns = clock_ns() + LAST_S * NS_PER_S;
    for (int64_t now_ns = clock_ns(); probing->holds != NULL && now_ns < until_ns;) {
        now_ns = client_pool_wait(probing->holds, until_ns - now_ns);
        client_pool_read(probing->holds);
    }
}

static void forget(struct prober *prober)
{
    memset(prober->took, 0, sizeof(prober->took));
    memset(prober->failed, 0, sizeof(prober->failed));
}

static _Noreturn void run(const struct prober_plan *plan, struct prober *prober, pid_t parent)
{
    static struct probing probing;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1);
    if (getppid() != parent)
        _exit(1);
    /* A connection of the parent would not end while this process has it too. */
    close_range(STDERR_FILENO + 1, ~0U, 0);
    probing.plan = plan;
    probing.prober = prober;
    for (unsigned i = 0; i < PROBER_PROBE_COUNT; i++)
        probing.probes[i] = (struct probe_conn){.kind = i, .fd = -1};
    take_holds(&probing);
    prober->started_ns = clock_ns();
    prober->ready = true;
    while (!prober->stop) {
        if (atomic_exchange(&prober->restart, false))
            forget(prober);
        pass(&probing);
    }
    int64_t now_ns = clock_ns();
    for (unsigned i = 0; i < PROBER_PROBE_COUNT; i++)
        if (probing.probes[i].sent_ns != 0 && !probing.probes[i].unlocking)
            count(&probing, &probing.probes[i], true, now_ns);
    read_last(&probing);
    _exit(0);
}

struct prober *prober_start(const struct prober_plan *plan)
{
    struct prober *prober =
        mmap(NULL, sizeof(*prober), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(prober, MAP_FAILED);
    pid_t parent = getpid();
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        run(plan, prober, parent);
    prober->pid = pid;
    struct waiting waiting = waiting_for("the prober");
    int status;
    while (!prober->ready) {
        ck_assert_msg(!process_ended(pid, &status), "the prober has failed");
        waiting_pause(&waiting);
    }
    return prober;
}

void prober_restart(struct prober *prober)
{
    struct waiting waiting = waiting_for("the prober to restart");
    prober->restart = true;
    while (prober->restart)
        waiting_pause(&waiting);
}

void prober_stop(struct prober *prober)
{
    prober->stop = true;
    ck_assert_int_eq(process_wait(prober->pid, "the prober"), 0);
}

void prober_free(struct prober *prober)
{
    munmap(prober, sizeof(*prober));
}
