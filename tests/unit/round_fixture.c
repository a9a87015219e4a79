#include "tests/unit/round_fixture.h"

#include <check.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/units.h"

static const int64_t start_ns = 1000 * NS_PER_S;

static struct round_rules rules_for(unsigned node_count)
{
    return (struct round_rules){
        .node_count = node_count,
        .quorum = node_count / 2 + 1,
        .node_timeout_ns = FIXTURE_TIMEOUT_MS * NS_PER_MS,
        .min_validity_ns = NS_PER_MS,
        .drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS},
    };
}

static void note(struct round_fixture *fixture)
{
    if (fixture->last.send_to != 0)
        fixture->sent[fixture->last.send] |= fixture->last.send_to;
    fixture->answers += fixture->last.answer;
    ck_assert_uint_le(fixture->answers, 1);
}

/* If round_add_vote_fast() counts a vote, it must change the round exactly as round_step() does,
 * and the vote must need no action. If it does not count the vote, it must leave the round
 * unchanged. */
static void step_and_compare(struct round_fixture *fixture, const struct round_event *event)
{
    struct round before = fixture->round;
    struct round fast = fixture->round;
    bool counted = round_add_vote_fast(&fast, event->node, event->now_ns);
    round_step(&fixture->round, event, &fixture->last);
    ck_assert_mem_eq(&fast, counted ? &fixture->round : &before, sizeof(fast));
    fixture->fast_votes += counted;
    if (counted)
        ck_assert(fixture->last.send_to == 0 && !fixture->last.answer);
}

void fixture_step(struct round_fixture *fixture, struct round_event event)
{
    event.now_ns = fixture->now_ns;
    if (event.type == ROUND_EVENT_ANSWER && event.command == ROUND_VOTE &&
        event.answer->kind == ANSWER_YES)
        step_and_compare(fixture, &event);
    else
        round_step(&fixture->round, &event, &fixture->last);
    note(fixture);
}

void fixture_begin_with(struct round_fixture *fixture, unsigned nodes, enum round_kind kind,
                        uint32_t reachable)
{
    static const enum reason refused[LIMIT_NODES] = {REASON_REFUSED, REASON_REFUSED, REASON_REFUSED,
                                                     REASON_REFUSED, REASON_REFUSED};
    memset(fixture, 0, sizeof(*fixture));
    fixture->rules = rules_for(nodes);
    fixture->now_ns = start_ns;
    round_init(&fixture->round, &fixture->rules, kind, FIXTURE_TTL_MS * NS_PER_MS);
    fixture_step(fixture, (struct round_event){.type = ROUND_EVENT_START,
                                               .reachable = reachable,
                                               .unreachable_because = refused});
}

void fixture_begin(struct round_fixture *fixture, unsigned nodes, enum round_kind kind)
{
    fixture_begin_with(fixture, nodes, kind, nodes_all(nodes));
}

const struct answer answer_yes = {.kind = ANSWER_YES};
const struct answer answer_absent = {.kind = ANSWER_ABSENT};
const struct answer answer_oom = {.kind = ANSWER_FAILED, .reason = REASON_OOM};

struct answer answer_held(int64_t pttl_ms, uint64_t holder)
{
    return (struct answer){.kind = ANSWER_HELD, .pttl_ms = pttl_ms, .holder = holder};
}

void fixture_answer(struct round_fixture *fixture, unsigned node, enum round_command command,
                    struct answer answer)
{
    fixture_step(fixture, (struct round_event){.type = ROUND_EVENT_ANSWER,
                                               .node = node,
                                               .command = command,
                                               .answer = &answer});
}

void fixture_vote(struct round_fixture *fixture, unsigned node, struct answer answer)
{
    fixture_answer(fixture, node, ROUND_VOTE, answer);
}

void fixture_reach_deadline(struct round_fixture *fixture)
{
    fixture->now_ns = round_deadline_ns(&fixture->round);
    fixture_step(fixture, (struct round_event){.type = ROUND_EVENT_DEADLINE});
}

void fixture_expect(const struct round_fixture *fixture, enum outcome outcome)
{
    ck_assert_int_eq(fixture->round.phase, ROUND_SETTLED);
    ck_assert_int_eq(fixture->round.outcome, outcome);
    ck_assert_uint_eq(fixture->answers, 1);
}
