/*
 * The form of replies, and whether a request that was answered LIMIT had reached the limit.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/sim/sim.h"

/* --- forms --- */

/* Is this FREE, HELD or NOQUORUM, as a reply to STATUS with SLOTS? */
static bool is_valid_survey(const struct sim_request *request, const char *line)
{
    int end = -1;
    int hint;
    unsigned held;
    unsigned slots;
    if (sscanf(line, "FREE %u/%u%n", &held, &slots, &end) == 2 && line[end] == '\0')
        return held < slots && slots == request->slots;
    if (sscanf(line, "HELD %d %u/%u%n", &hint, &held, &slots, &end) == 3 && line[end] == '\0')
        return hint >= -1 && held == slots && slots == request->slots;
    return strncmp(line, "NOQUORUM ", 9) == 0;
}

bool checker_allows(const struct sim_request *request, const char *line)
{
    bool lock = request->verb == VERB_LOCK;
    bool extend = request->verb == VERB_EXTEND;
    bool release = request->verb == VERB_UNLOCK;
    bool status = request->verb == VERB_STATUS;
    bool forced = request->verb == VERB_BREAK;
    int end = -1;
    long long one;
    unsigned votes;
    unsigned nodes;
    unsigned need;
    if (request->verb == VERB_PING)
        return strcmp(line, "PONG") == 0;
    if (strcmp(line, "SHUTDOWN") == 0)
        return true;
    if (strcmp(line, "OK") == 0)
        return release || forced;
    if (strcmp(line, "GONE") == 0)
        return release || extend;
    if (strcmp(line, "FREE") == 0)
        return (status && request->slots == 0) || forced;
    if (strncmp(line, "LIMIT ", 6) == 0)
        return limited_of(line + 6) != LIMITED;
    if (status && request->slots > 0)
        return is_valid_survey(request, line);
    if (sscanf(line, "HELD %lld%n", &one, &end) == 1 && line[end] == '\0')
        return (lock || status || forced) && one >= -1;
    if (sscanf(line, "LATE %lld%n", &one, &end) == 1 && line[end] == '\0')
        return (lock || extend) && one >= 0;
    if (sscanf(line, "NOQUORUM %u/%u need=%u%n", &votes, &nodes, &need, &end) == 3)
        return votes <= nodes && need == nodes / 2 + 1 && (line[end] == '\0' || line[end] == ' ');
    end = -1;
    if (lock && request->slots > 0)
        return sscanf(line, "OK %*40[0-9a-f] %*d %*d %*[-0-9] r#%u%n", &votes, &end) == 1 &&
               votes >= 1 && votes <= request->slots && line[end] == '\0';
    if (lock)
        sscanf(line, "OK %*40[0-9a-f] %*d %*d %*[-0-9]%n", &end);
    if (extend)
        sscanf(line, "OK %*40[0-9a-f] %*d %*d%n", &end);
    return end >= 0 && line[end] == '\0';
}

enum outcome checker_outcome(const char *line)
{
    static const char *const words[] = {
#define X(name, word) [name] = word,
        OUTCOME_TABLE(X)
#undef X
    };
    for (unsigned i = 0; i < OUTCOME_COUNT; i++)
        if (strncmp(line, words[i], strlen(words[i])) == 0)
            return (enum outcome)i;
    return OUTCOME_OK;
}

/* --- limits --- */

bool checker_is_rival(const struct sim_request *a, const struct sim_request *b)
{
    return a->slots > 0 ? b->slots > 0 : b->slots == 0 && a->resource == b->resource;
}

/* The number of other requests in flight that count against this limit. */
static unsigned count_others(const struct sim *sim, const struct sim_request *refused,
                             enum limited bound)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SIM_REQUESTS; i++) {
        const struct sim_request *other = &sim->requests[i];
        bool lock = other->verb == VERB_LOCK;
        bool waits = lock && other->wait_ms > 0;
        if (other == refused || other->state != REQUEST_ARRIVED || other->daemon != refused->daemon)
            continue;
        if (bound == LIMITED_requests)
            count += other->verb != VERB_PING && other->connection == refused->connection;
        else if (bound == LIMITED_waiters)
            count += waits;
        else if (bound == LIMITED_waiters_per_resource)
            count += waits && checker_is_rival(other, refused);
        else if (bound == LIMITED_holds)
            count += lock && other->hold;
        else if (bound == LIMITED_operations)
            count += lock && !waits && checker_is_rival(other, refused);
    }
    return count;
}

/* Does this daemon count no further extension of the token? It counts none by the connection that
 * has the lock with HOLD. */
static bool is_extended_often(struct sim *sim, const struct sim_request *refused)
{
    const struct sim_token *token = checker_token(sim, refused->token);
    bool by_holder = token->held_by == refused->number && !token->lost;
    return refused->verb == VERB_EXTEND && !by_holder &&
           token->extends[refused->daemon] >
               sim->daemons[refused->daemon].engine.rules.max_extensions;
}

/* Would the lock become older than max_hold? The check accepts 1 % less, since clocks run at
 * different rates. */
static bool is_extended_long(struct sim *sim, const struct sim_request *refused)
{
    const struct sim_token *token = checker_token(sim, refused->token);
    int64_t max_hold_ns = sim->daemons[refused->daemon].engine.rules.max_hold_ns;
    return refused->verb == VERB_EXTEND &&
           sim->now_ns + refused->ttl_ms * NS_PER_MS - token->made_ns >=
               max_hold_ns - max_hold_ns / 100;
}

/* A request was answered LIMIT: is the limit that the reply names reached? */
static bool is_reached(struct sim *sim, const struct sim_request *refused, enum limited bound)
{
    const struct engine *engine = &sim->daemons[refused->daemon].engine;
    unsigned others = count_others(sim, refused, bound);
    switch (bound) {
    case LIMITED_requests:
        return others >= LIMIT_CLIENT_REQUESTS;
    case LIMITED_waiters:
        return refused->wait_ms > 0 && others >= engine->rules.waiters;
    case LIMITED_waiters_per_resource:
        return refused->wait_ms > 0 && others >= engine->rules.waiters_per_resource;
    case LIMITED_holds:
        return others + engine->manager.held_count >= LIMIT_HOLDS;
    case LIMITED_breaks:
        return engine->manager.breakings.in_use == engine->manager.breakings.count;
    case LIMITED_slots:
        return engine->manager.semaphores.reserved + refused->slots > LIMIT_SEEKERS;
    case LIMITED_surveys:
        return engine->manager.survey_pool.in_use == engine->manager.survey_pool.count;
    case LIMITED_busy:
        return refused->verb == VERB_LOCK || refused->verb == VERB_STATUS;
    case LIMITED_operations:
        return bounds_leave_no_round(engine) ||
               (refused->verb == VERB_LOCK && refused->wait_ms == 0 &&
                others > manager_impatient_share());
    case LIMITED_extensions:
        return is_extended_often(sim, refused);
    case LIMITED_hold:
        return is_extended_long(sim, refused);
    case LIMITED:
        break;
    }
    return false;
}

void checker_on_limit(struct sim *sim, const struct sim_request *request, const char *word)
{
    enum limited bound = limited_of(word);
    sim->tally->limited[bound]++;
    if (!is_reached(sim, request, bound))
        checker_violation(sim, "client %u was refused for a limit that is not reached: %s",
                          request->client, word);
}
