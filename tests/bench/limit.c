#include "tests/bench/limit.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/clock.h"
#include "tests/bench/usage.h"

struct limit {
    struct rounds *rounds;
    struct load_result *result;
    int64_t since_ns[ROUNDS_SLOTS]; /* start of the round in flight */
    bool ending;                    /* slots release their locks, and acquire none any more */
    unsigned running;               /* slots that have not ended */
};

static void put(struct limit *limit, unsigned slot, enum rounds_kind kind, int64_t now_ns)
{
    limit->since_ns[slot] = now_ns;
    rounds_put(limit->rounds, slot, kind);
}

static void on_done(void *arg, unsigned slot, enum rounds_kind kind, int64_t now_ns)
{
    struct limit *limit = arg;
    bool taken = kind == TAKE;
    int64_t took_ns = now_ns - limit->since_ns[slot];
    if (!limit->ending && taken) {
        spread_add(&limit->result->acquire, took_ns);
        if (took_ns > limit->result->longest_ns)
            limit->result->longest_ns = took_ns;
    }
    limit->result->pairs += !limit->ending && !taken;
    limit->result->all_pairs += !taken;
    if (taken || !limit->ending)
        put(limit, slot, taken ? RELEASE : TAKE, now_ns);
    else
        limit->running--;
}

static void pass(struct rounds *rounds)
{
    struct pollfd fds[ROUNDS_MASTERS];
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++)
        fds[i] = (struct pollfd){.fd = rounds_fd(rounds, i), .events = POLLIN};
    poll(fds, ROUNDS_MASTERS, 1000);
    int64_t now_ns = clock_ns();
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++)
        if (fds[i].revents != 0)
            rounds_read(rounds, i, now_ns);
    rounds_flush(rounds);
}

static void name_slots(struct rounds *rounds, unsigned in_flight)
{
    ck_assert_uint_le(in_flight, ROUNDS_SLOTS);
    for (unsigned i = 0; i < in_flight; i++) {
        char key[32];
        snprintf(key, sizeof(key), "limit-%u", i);
        rounds_name(rounds, i, key);
    }
}

void limit_run(const struct limit_plan *plan, struct load_result *result)
{
    struct limit limit = {.result = result};
    memset(result, 0, sizeof(*result));
    limit.rounds = rounds_open(&(struct rounds_plan){
        .masters = plan->masters, .guarded = plan->guarded, .done = on_done, .arg = &limit});
    name_slots(limit.rounds, plan->in_flight);
    limit.running = plan->in_flight;
    int64_t cpu_ns = usage_cpu_ns(getpid());
    int64_t started_ns = clock_ns();
    for (unsigned i = 0; i < plan->in_flight; i++)
        put(&limit, i, TAKE, started_ns);
    rounds_flush(limit.rounds);
    while (limit.running > 0 || rounds_pending(limit.rounds)) {
        pass(limit.rounds);
        if (!limit.ending && clock_ns() >= started_ns + plan->for_ns) {
            limit.ending = true;
            result->seconds = (double)(clock_ns() - started_ns) / 1e9;
            result->client_ns = usage_cpu_ns(getpid()) - cpu_ns;
        }
    }
    rounds_close(limit.rounds);
}
