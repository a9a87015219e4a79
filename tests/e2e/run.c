#include "tests/e2e/run.h"

#include <time.h>

#include "tests/e2e/process.h"
#include "tests/e2e/waiting.h"

/* A short node_timeout: some tests wait until stopped masters lose their links. */
const struct stage_plan run_plan = {
    .masters = 3, .over_unix = true, .daemon = {.node_timeout_ms = 100}};

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
