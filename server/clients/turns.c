#include "server/clients/turns.h"

#include "engine/engine.h"
#include "protocol/limits.h"
#include "server/net/pass.h"

void turns_init(struct turns *turns, struct pass *pass, struct engine *engine)
{
    *turns = (struct turns){.pass = pass, .engine = engine, .budget = LIMIT_READ_BUDGET};
    TAILQ_INIT(&turns->queue);
}

static bool has_time(struct turns *turns, int64_t now_ns)
{
    return pass_has_time(turns->pass, now_ns) && engine_takes_requests(turns->engine);
}

/* --- one session --- */

bool turns_may_read(struct turns *turns, struct turn *turn)
{
    bool after_others = turn->slow && (turns->slow_served || !TAILQ_EMPTY(&turns->queue));
    if (turns->crowded || after_others)
        turns_wait(turns, turn);
    return !turn->waits;
}

void turns_begin(struct turns *turns, struct turn *turn, int64_t now_ns)
{
    bool in_time = has_time(turns, now_ns);
    bool has_turn = in_time && !(turn->slow && turns->slow_served);
    turns->served++;
    if (!in_time)
        turns->crowded = true;
    if (has_turn)
        turn->slow = false;
    turn->lines_left = has_turn ? turns->budget : 0;
}

bool turns_may_be_slow(struct turns *turns, struct turn *turn)
{
    if (!turns->slow_served)
        return true;
    turns_end_slow(turns, turn);
    return false;
}

void turns_end_slow(struct turns *turns, struct turn *turn)
{
    turn->slow = turns->slow_served = true;
    turn->lines_left = 0;
}

void turns_wait(struct turns *turns, struct turn *turn)
{
    if (turn->waits)
        return;
    turn->waits = true;
    TAILQ_INSERT_TAIL(&turns->queue, turn, entry);
    pass_want_end(turns->pass);
}

void turns_leave(struct turns *turns, struct turn *turn)
{
    if (turn->waits)
        TAILQ_REMOVE(&turns->queue, turn, entry);
    turn->waits = false;
}

/* --- all sessions --- */

bool turns_end_pass(struct turns *turns)
{
    /* One client alone can have as many rounds sent together as several clients have. */
    if (turns->served > 0)
        turns->budget = turns->served == 1 ? LIMIT_READ_BUDGET_ALONE : LIMIT_READ_BUDGET;
    turns->served = 0;
    turns->slow_served = false;
    /* While the engine takes no requests, sessions wait until the end of a pass in which rounds
     * have settled. */
    return !TAILQ_EMPTY(&turns->queue) && engine_takes_requests(turns->engine);
}

/* One slow session of the queue has its turn, also if one has had it outside the queue. */
void turns_start(struct turns *turns)
{
    turns->slow_served = false;
    turns->next = TAILQ_FIRST(&turns->queue);
    turns->last = TAILQ_LAST(&turns->queue, turn_queue);
}

/* Sessions that queue up meanwhile come after `last`: their turn is in the next pass. The slow
 * sessions that are passed over keep their places. */
struct turn *turns_next(struct turns *turns, int64_t now_ns)
{
    struct turn *turn;
    do {
        turn = turns->next;
        if (turn == NULL || !has_time(turns, now_ns)) {
            turns->crowded = turn != NULL;
            return NULL;
        }
        turns->next = turn != turns->last ? TAILQ_NEXT(turn, entry) : NULL;
    } while (turn->slow && turns->slow_served);
    turns_leave(turns, turn);
    return turn;
}
