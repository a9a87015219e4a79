/* A guest of the torture with libredlock (tests/torture/guests.h). */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/c/redlock.h"

enum { WORKERS = 4, DAEMONS_MAX = 8, NS_PER_MS = 1000000, GROWN_MS = 5 };

enum way { PLAIN, EXTENDED, HOLD, WAYS };

static char *daemons[DAEMONS_MAX];
static unsigned daemon_count;
static int64_t overclaim_ms;

struct worker {
    struct redlock *redlock;
    unsigned seed;
    unsigned daemon; /* the index of its address */
    pthread_t thread;

    enum way way;
    struct redlock_lock lock;
    int64_t until_ns; /* as reported; 0: not yet */
    bool lost;
};

static unsigned below(struct worker *worker, unsigned count)
{
    return (unsigned)rand_r(&worker->seed) % count;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

static void pause_ms(unsigned ms)
{
    usleep(ms * 1000);
}

static void write_line(const char *line)
{
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(1);
}

/* Reports that the lock is held for this time from now_ns on, if that is later than before. */
static void report(struct worker *worker, int64_t now, int64_t left_ms)
{
    char line[512];
    int64_t until_ns = now + (left_ms + overclaim_ms) * NS_PER_MS;
    if (worker->until_ns != 0 && until_ns < worker->until_ns + GROWN_MS * NS_PER_MS)
        return;
    snprintf(line, sizeof(line), "%s %s %s %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
             getenv("GUEST_NAME"), worker->until_ns == 0 ? "held" : "more", worker->lock.resource,
             worker->lock.token, worker->lock.fence, worker->lock.ttl_ms, now, until_ns);
    write_line(line);
    worker->until_ns = until_ns;
}

static void report_left(struct worker *worker)
{
    int64_t now = now_ns();
    report(worker, now, redlock_left_ms(&worker->lock));
}

static void use_next_daemon(struct worker *worker)
{
    worker->daemon = (worker->daemon + 1) % daemon_count;
    redlock_set_url(worker->redlock, daemons[worker->daemon]);
}

/* A PONG without a LOST proves a HOLD for a third of its TTL from the PING on. */
static void check_hold(struct worker *worker)
{
    struct redlock_event event;
    int64_t now = now_ns();
    bool proven = redlock_ping(worker->redlock) == REDLOCK_OK;
    while (redlock_next(worker->redlock, &event))
        if (event.kind == REDLOCK_EVENT_CLOSED ||
            (event.kind == REDLOCK_EVENT_LOST && strcmp(event.lock.token, worker->lock.token) == 0))
            worker->lost = true;
    if (proven && !worker->lost)
        report(worker, now, worker->lock.ttl_ms / 3);
}

static void work(struct worker *worker)
{
    int64_t end_ns = now_ns() + below(worker, below(worker, 15) == 0 ? 1500 : 60) * NS_PER_MS;
    while (!worker->lost && now_ns() < end_ns) {
        pause_ms(10);
        if (worker->way == HOLD) {
            check_hold(worker);
            continue;
        }
        if (worker->way == EXTENDED && below(worker, 10) == 0) {
            enum redlock_status status =
                redlock_extend(worker->redlock, &worker->lock, worker->lock.ttl_ms);
            if (status == REDLOCK_UNREACHABLE || status == REDLOCK_SHUTDOWN)
                use_next_daemon(worker);
        }
        report_left(worker);
        worker->lost = redlock_left_ms(&worker->lock) == 0;
    }
}

static void visit(struct worker *worker)
{
    char name[16] = "r";
    char line[512];
    worker->way = (enum way)below(worker, WAYS);
    worker->lost = false;
    worker->until_ns = 0;
    struct redlock_lock_options options = {
        .wait_ms = below(worker, 3) == 0 ? 0 : below(worker, 2000),
        .fence = below(worker, 2) == 0,
        .hold = worker->way == HOLD,
        .slots = below(worker, 3) == 0 ? 1 + below(worker, 5) : 0,
    };
    if (options.slots == 0)
        snprintf(name, sizeof(name), "r#%u", below(worker, 6));
    enum redlock_status status = redlock_acquire(worker->redlock, name, 600 + below(worker, 401),
                                                 &options, &worker->lock, NULL);
    if (status != REDLOCK_OK) {
        pause_ms(20);
        if (status != REDLOCK_HELD)
            use_next_daemon(worker);
        return;
    }
    report_left(worker);
    work(worker);
    if (worker->way != HOLD && below(worker, 25) == 0)
        return; /* It expires. */
    snprintf(line, sizeof(line), "%s free %s %s\n", getenv("GUEST_NAME"), worker->lock.resource,
             worker->lock.token);
    write_line(line);
    redlock_release(worker->redlock, &worker->lock);
}

static void *play(void *context)
{
    struct worker *worker = context;
    while (access(getenv("GUEST_FINISH"), F_OK) != 0)
        visit(worker);
    redlock_free(worker->redlock);
    return NULL;
}

int main(void)
{
    static struct worker workers[WORKERS];
    char *rest = NULL;
    overclaim_ms = atoll(getenv("GUEST_OVERCLAIM_MS"));
    for (char *url = strtok_r(getenv("GUEST_DAEMONS"), " ", &rest);
         url != NULL && daemon_count < DAEMONS_MAX; url = strtok_r(NULL, " ", &rest))
        daemons[daemon_count++] = url;
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];
        worker->seed = (unsigned)strtoul(getenv("GUEST_SEED"), NULL, 10) * WORKERS + i;
        worker->daemon = i % daemon_count;
        worker->redlock = redlock_new(daemons[worker->daemon]);
        redlock_set_timeout(worker->redlock, 1000);
        pthread_create(&worker->thread, NULL, play, worker);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
    return 0;
}
