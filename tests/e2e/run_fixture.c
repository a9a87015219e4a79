#include "tests/e2e/run_fixture.h"

#include "tests/runner.h"

struct stage stage;
struct wrapper wrapper;

void run_set_up(void)
{
    stage_open(&stage, runner_test_name, &run_plan);
}

void run_tear_down(void)
{
    stage_close(&stage);
}

void start(const char *const *words)
{
    wrapper_start(&wrapper, &stage.sandbox, "run", stage.daemon.socket, words);
}

int run(const char *const *words)
{
    start(words);
    return wrapper_wait(&wrapper);
}
