#include "tests/e2e/run.h"

#include <check.h>
#include <stdio.h>
#include <time.h>

#include "tests/e2e/cpu_clock.h"
#include "tests/e2e/process.h"
#include "tests/e2e/waiting.h"

/* A HOLD of 2 s is not possible with the default node_timeout, and a busy machine needs a long one.
 */
const struct stage_plan run_plan = {
    .masters = 3, .over_unix = true, .daemon = {.node_timeout_ms = 500}};

void run_wait_stubborn(const struct wrapper *wrapper, pid_t *pids)
{
    struct waiting waiting = waiting_for("all processes of the command");
    while (wrapper_printed_pids(wrapper, pids, STUBBORN_COUNT) < STUBBORN_COUNT)
        waiting_pause(&waiting);
}

bool run_any_of(const pid_t *pids, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (process_runs(pids[i]))
            return true;
    return false;
}

bool run_any_runs(const pid_t *pids)
{
    return run_any_of(pids, STUBBORN_COUNT);
}

int64_t run_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t run_expiry_ms_on(struct stage *stage, unsigned master)
{
    return master_integer(&stage->masters[master], "PEXPIRETIME redlock:a");
}

int64_t run_first_expiry_ms(struct stage *stage)
{
    int64_t first_ms = INT64_MAX;
    for (unsigned i = 0; i < stage->master_count; i++) {
        int64_t at_ms = run_expiry_ms_on(stage, i);
        first_ms = at_ms < first_ms ? at_ms : first_ms;
    }
    return first_ms;
}

/* The latest time at which two masters still have the key. */
int64_t run_lock_expiry_ms(struct stage *stage)
{
    int64_t at_ms[3], expiry_ms = 0;
    ck_assert_uint_eq(stage->master_count, 3);
    for (unsigned i = 0; i < 3; i++)
        at_ms[i] = run_expiry_ms_on(stage, i);
    for (unsigned i = 0; i < 3; i++) {
        int64_t both_ms = at_ms[i] < at_ms[(i + 1) % 3] ? at_ms[i] : at_ms[(i + 1) % 3];
        expiry_ms = both_ms > expiry_ms ? both_ms : expiry_ms;
    }
    return expiry_ms;
}

void run_wait_gone_before(const pid_t *pids, unsigned count, int64_t expiry_ms)
{
    enum { MARGIN_MS = 1000 };
    struct cpu_clock clock;
    struct waiting kept = waiting_for("the last second of the lock");
    while (run_wall_ms() < expiry_ms - MARGIN_MS)
        waiting_pause(&kept);
    cpu_clock_start(&clock);
    struct waiting running = waiting_for("all processes to end");
    /* The processes are checked before the clock is read: if they are gone, they ended before the
     * time that the clock shows. */
    while (run_any_of(pids, count))
        waiting_pause(&running);
    int64_t took_ms = cpu_clock_ms(&clock);
    cpu_clock_stop(&clock);
    fprintf(stderr,
            "%u processes gone %lld ms before the lock expires; %lld ms of the processor were "
            "left\n",
            count, (long long)(expiry_ms - run_wall_ms()), (long long)(MARGIN_MS - took_ms));
    ck_assert_int_lt(took_ms, MARGIN_MS);
}
