#include "tests/e2e/guard_stage.h"

#include <check.h>
#include <string.h>

#include "tests/e2e/waiting.h"

const struct stage_plan guard_careful = {
    .masters = 5,
    .over_unix = true,
    .steppable = true,
    .daemon = {.locks = ", max_ttl: " GUARD_MAX_TTL},
};

const struct stage_plan guard_patient = {.masters = 5, .over_unix = true, .steppable = true};

void guard_open_second(struct stage *stage, struct guard_second *second,
                       const struct daemon_plan *plan)
{
    struct daemon_plan named = *plan;
    named.name = "second";
    stage_start_daemon(stage, &second->daemon, &named);
    daemon_connect(&second->daemon, &second->client);
}

void guard_close_second(struct guard_second *second)
{
    client_close(&second->client);
    daemon_stop(&second->daemon);
}

int64_t guard_lock_until(struct client *client)
{
    int64_t sent_ms = waiting_clock_ms();
    struct grant grant = client_lock(client, "a", GUARD_MAX_TTL);
    return sent_ms + grant.elapsed_ms + grant.validity_ms;
}

int64_t guard_lock_on_three(struct stage *stage)
{
    stage_stop_masters(stage, 3, 4);
    return guard_lock_until(&stage->client);
}

void guard_resume_without_key(struct stage *stage)
{
    stage_continue_masters(stage, 3, 4);
    masters_run(&stage->masters[3], 2, "PING");
    masters_run(&stage->masters[3], 2, "DEL redlock:a");
}

void guard_expect_grant_after(struct client *client, int64_t deadline_ms)
{
    struct waiting waiting = waiting_for("a grant after the quarantine");
    while (strncmp(client_ask(client, "LOCK a " GUARD_MAX_TTL), "OK ", 3) != 0)
        waiting_pause(&waiting);
    ck_assert_msg(waiting_clock_ms() >= deadline_ms, "granted %lld ms early",
                  (long long)(deadline_ms - waiting_clock_ms()));
}

void guard_step_three_forward(struct stage *stage)
{
    for (unsigned i = 0; i < 3; i++)
        master_step(&stage->masters[i], 60);
}

void guard_step_three_back(struct stage *stage)
{
    for (unsigned i = 0; i < 3; i++)
        master_step(&stage->masters[i], -60);
}
