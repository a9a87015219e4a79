#include "engine/flight/flight.h"

#include <assert.h>
#include <string.h>

static_assert(offsetof(struct flight, together) == 0, "as links find the next of a run");
static_assert(offsetof(struct flight, round.phase) < POOL_LINE, "a vote takes one line");
static_assert(offsetof(struct flight, round.ballot_seen) <= 2 * POOL_LINE,
              "... and most rounds two");

static const enum redis_command commands[] = {
    [ROUND_ACQUIRE] = REDIS_ACQUIRE, [ROUND_EXTEND] = REDIS_EXTEND, [ROUND_RELEASE] = REDIS_RELEASE,
    [ROUND_STATUS] = REDIS_STATUS,   [ROUND_FREEZE] = REDIS_FREEZE,
};

struct flight *flight_open(struct pool *pool, struct flight_key *key,
                           const struct round_rules *rules, enum round_kind kind, int64_t ttl_ns)
{
    struct flight *flight = pool_take(pool);
    if (flight == NULL)
        return NULL;
    memset(flight, 0, offsetof(struct flight, round));
    memset(&flight->key, 0, sizeof(*flight) - offsetof(struct flight, key));
    round_init(&flight->round, rules, kind, ttl_ns);
    flight->asks_by = commands[kind];
    flight->key = key;
    LIST_INSERT_HEAD(&key->flights, flight, of_key);
    return flight;
}

void flight_note_idle(struct flight_keys *idle, struct flight_key *key)
{
    if (key->idle)
        return;
    key->idle = true;
    SLIST_INSERT_HEAD(idle, key, of_idle);
}

void flight_free(struct pool *pool, struct flight_keys *idle, struct flight *flight)
{
    assert(!flight->settled);
    assert(flight->call == NULL);
    assert(flight->renews == NULL);
    assert(flight->breaking == NULL);
    assert(flight->gathered_for == 0);
    if (flight->partner != NULL)
        flight->partner->partner = NULL;
    LIST_REMOVE(flight, of_key);
    flight_note_idle(idle, flight->key);
    pool_give(pool, flight);
}

enum redis_command flight_command(const struct flight *flight, enum round_command command)
{
    switch (command) {
    case ROUND_VOTE:
        return flight->asks_by;
    case ROUND_UNDO:
        return REDIS_RELEASE;
    case ROUND_PLANT:
        return REDIS_PLANT;
    case ROUND_COMMANDS:
        break;
    }
    assert(false && "no command");
    return REDIS_STATUS;
}

bool flight_is_release(const struct flight *flight, enum round_command command)
{
    return flight_command(flight, command) == REDIS_RELEASE;
}

bool flight_is_vote(const struct flight *flight, enum round_command command)
{
    return command == ROUND_VOTE && flight->asks_by != REDIS_RELEASE;
}

bool flight_is_swap(const struct flight *flight, enum round_command command)
{
    return flight_command(flight, command) == REDIS_SWAP;
}
