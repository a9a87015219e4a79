#include "tests/unit/world_guard.h"

#include "protocol/units.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* --- votes --- */

void world_expect_votes(const struct world *world, unsigned first, unsigned last,
                        const char *reason)
{
    for (unsigned i = first; i <= last; i++)
        ck_assert_msg(strcmp(world_vote(world, i), reason) == 0, "node %u: %s, not %s", i,
                      world_vote(world, i), reason);
}

void world_expect_quarantine(struct world *world, unsigned first, unsigned last, const char *reason)
{
    world_pass_ms(world, LOOKED_MS);
    world_expect_votes(world, first, last, reason);
    world_pass_ms(world, QUARANTINE_MS - 2 * LOOKED_MS);
    world_expect_votes(world, first, last, reason);
    world_pass_ms(world, 3 * LOOKED_MS);
    world_expect_votes(world, 0, 4, "-");
}

void world_expect_no_grant_for_s(struct world *world, unsigned seconds)
{
    for (unsigned s = 0; s < seconds; s++) {
        world_pass_ms(world, 1000);
        const char *reply = world_ask(world, "LOCK a 60s");
        ck_assert_msg(!world_granted(reply), "after %u s: %s", s, reply);
        world->reply_count = 0;
    }
}

/* --- what is kept on masters --- */

const char *world_guard_key(const struct world *world, const char *kind, const char *rest)
{
    static char key[64];
    snprintf(key, sizeof(key), "redlockd:%s:%s%s", kind, world->engine.flights.guard.set_id, rest);
    return key;
}

void world_forge(struct world *world, unsigned node, const char *word, const char *by)
{
    char record[LIMIT_RECORD];
    char forged[2 * LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", world_value(world, node, RECORD_KEY));
    const char *at = strstr(record, word);
    ck_assert_ptr_nonnull(at);
    snprintf(forged, sizeof(forged), "%.*s%s%s", (int)(at - record), record, by, at + strlen(word));
    world_set(world, node, RECORD_KEY, forged, 0);
}

void world_lease_to_another(struct world *world, unsigned node, const char *rest, int64_t ttl_ms)
{
    char run_id[RECORD_ID + 1];
    snprintf(run_id, sizeof(run_id), "%040d", 77);
    world_set(world, node, world_guard_key(world, "name", rest), run_id, ttl_ms);
}

/* --- what befalls them --- */

void world_step_clock(struct world *world, unsigned first, unsigned last, int64_t seconds)
{
    for (unsigned i = first; i <= last; i++)
        world->masters[i].clock_ns += seconds * NS_PER_S;
}

void world_lock_on_three(struct world *world)
{
    world->masters[3].hung = world->masters[4].hung = true;
    world_token(world_ask(world, "LOCK a 60s"));
    world->masters[3].hung = world->masters[4].hung = false;
    world_settle(world);
    world_delete(world, 3, "a");
    world_delete(world, 4, "a");
}

void world_restart_with_data(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    static struct fake_data data;
    data = master->redis.data;
    world_restart(world, node);
    master->redis.data = data;
}

void world_restart_recorded(struct world *world, unsigned node)
{
    const struct fake_master *master = &world->masters[node].redis;
    char run_id[sizeof(master->run_id)];
    char replid[sizeof(master->replid)];
    memcpy(run_id, master->run_id, sizeof(run_id));
    memcpy(replid, master->replid, sizeof(replid));
    world_restart_with_data(world, node);
    world_forge(world, node, run_id, master->run_id); /* its id */
    world_forge(world, node, run_id, master->run_id);
    world_forge(world, node, replid, master->replid);
}
