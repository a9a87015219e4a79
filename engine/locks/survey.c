#include "engine/locks/survey.h"

#include <assert.h>
#include <string.h>

/* The rounds of one survey that are under way at the same time, if the daemon is not busy. */
enum { ROUNDS_AT_ONCE = 32 };

struct survey {
    struct pending_request *pending; /* NULL: the client has left */
    LIST_ENTRY(survey) entry;
    struct slot_name name; /* of the semaphore */
    unsigned slots;
    unsigned started; /* slots whose round has started */
    unsigned under_way;
    unsigned held;
    unsigned free;
    int64_t hint_ms; /* the smallest hint of a held slot; -1: none is known */
    /* Why each master had no vote, for a slot that is neither held nor free for certain. */
    enum reason reasons[LIMIT_NODES];
};

bool survey_init(struct lock_manager *manager)
{
    LIST_INIT(&manager->surveys);
    return pool_init(&manager->survey_pool, sizeof(struct survey), LIMIT_SURVEYS);
}

static void end(struct lock_manager *manager, struct survey *survey)
{
    LIST_REMOVE(survey, entry);
    pool_give(&manager->survey_pool, survey);
}

static void answer(struct lock_manager *manager, struct survey *survey, struct reply *reply)
{
    struct pending_request *pending = survey->pending;
    survey->pending = NULL;
    pending->survey = NULL;
    manager_reply(manager, pending, ROUND_STATUS, reply);
}

/* A slot that may be held counts as held. */
static struct reply result(const struct lock_manager *manager, const struct survey *survey)
{
    struct reply reply = {
        .outcome = OUTCOME_FREE,
        .held = (uint16_t)(survey->slots - survey->free),
        .slots = (uint16_t)survey->slots,
    };
    if (survey->free > 0)
        return reply;
    reply.outcome = survey->held == survey->slots ? OUTCOME_HELD : OUTCOME_NOQUORUM;
    reply.hint_ms = survey->hint_ms;
    manager_explain_votes(manager, survey->reasons, &reply);
    return reply;
}

/* Start the rounds for the next slots. Returns false if there is no room for the only one. */
static bool start_rounds(struct lock_manager *manager, struct survey *survey, int64_t now_ns)
{
    struct flights *flights = manager->flights;
    while (survey->started < survey->slots &&
           (survey->under_way == 0 ||
            (survey->under_way < ROUNDS_AT_ONCE && manager->start_queue.length == 0 &&
             flights_has_room(flights)))) {
        struct slot_name name =
            slot_name(survey->name.bytes, survey->name.len, survey->started + 1);
        struct resource *slot = resource_take(&manager->resources, manager->rules,
                                              ++manager->queue_seed, name.bytes, name.len);
        struct flight *flight =
            slot != NULL ? flights_open(flights, &slot->key, ROUND_STATUS, 0) : NULL;
        if (slot != NULL)
            flight_note_idle(&flights->idle_keys, &slot->key);
        if (flight == NULL)
            return survey->under_way > 0;
        flight->survey = survey;
        survey->started++;
        survey->under_way++;
        flights_start(flights, flight, now_ns);
    }
    return true;
}

const char *survey_begin(struct lock_manager *manager, struct engine_client *client,
                         const struct request *request, int64_t now_ns)
{
    struct survey *survey = pool_take(&manager->survey_pool);
    if (survey == NULL)
        return "surveys";
    struct pending_request *pending = pending_open(manager, client, request, now_ns);
    if (pending == NULL) {
        pool_give(&manager->survey_pool, survey);
        return "operations";
    }
    *survey = (struct survey){.pending = pending, .slots = request->slots, .hint_ms = -1};
    survey->name.len = request->resource_len;
    memcpy(survey->name.bytes, request->resource, request->resource_len);
    LIST_INSERT_HEAD(&manager->surveys, survey, entry);
    pending->survey = survey;
    if (start_rounds(manager, survey, now_ns))
        return NULL;
    pending_close(manager, pending);
    end(manager, survey);
    return "operations";
}

static void count(struct survey *survey, const struct round *round, int64_t now_ns)
{
    int64_t hint_ms = round->outcome == OUTCOME_HELD ? round_hint_ms(round, now_ns) : -1;
    if (hint_ms >= 0 && (survey->hint_ms < 0 || hint_ms < survey->hint_ms))
        survey->hint_ms = hint_ms;
    survey->held += round->outcome == OUTCOME_HELD;
    survey->free += round->outcome == OUTCOME_FREE;
    if (round->outcome == OUTCOME_NOQUORUM)
        memcpy(survey->reasons, round->reasons, sizeof(survey->reasons));
}

void survey_on_settled(struct lock_manager *manager, struct flight *flight, int64_t now_ns)
{
    struct survey *survey = flight->survey;
    struct reply no_room = {.outcome = OUTCOME_LIMIT, .limit = "operations"};
    flight->survey = NULL;
    assert(survey->under_way > 0);
    survey->under_way--;
    count(survey, &flight->round, now_ns);
    bool goes_on = survey->pending == NULL || start_rounds(manager, survey, now_ns);
    if (survey->under_way > 0)
        return;
    if (survey->pending != NULL) {
        struct reply reply = result(manager, survey);
        answer(manager, survey, goes_on ? &reply : &no_room);
    }
    end(manager, survey);
}

void survey_abandon(struct lock_manager *manager, struct pending_request *pending)
{
    pending->survey->pending = NULL;
    pending_close(manager, pending);
}

void survey_abandon_all(struct lock_manager *manager)
{
    struct reply reply = {.outcome = OUTCOME_SHUTDOWN};
    struct survey *survey;
    LIST_FOREACH (survey, &manager->surveys, entry)
        if (survey->pending != NULL)
            answer(manager, survey, &reply);
}
