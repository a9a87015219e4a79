#include "tests/unit/trial.h"

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
        .node_timeout_ns = TRIAL_TIMEOUT_MS * NS_PER_MS,
        .min_validity_ns = NS_PER_MS,
        .drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS},
    };
}

static void note(struct trial *trial)
{
    if (trial->last.send_to != 0)
        trial->sent[trial->last.send] |= trial->last.send_to;
    trial->answers += trial->last.answer;
    ck_assert_uint_le(trial->answers, 1);
}

/* What takes the quick way is what a step makes of it, which asks for nothing; what does not is as
 * it was. */
static void step_both_ways(struct trial *trial, const struct round_event *event)
{
    struct round before = trial->round;
    struct round quiet = trial->round;
    bool counted = round_add_vote_fast(&quiet, event->node, event->now_ns);
    round_step(&trial->round, event, &trial->last);
    ck_assert_mem_eq(&quiet, counted ? &trial->round : &before, sizeof(quiet));
    trial->quiet += counted;
    if (counted)
        ck_assert(trial->last.send_to == 0 && !trial->last.answer);
}

void trial_step(struct trial *trial, struct round_event event)
{
    event.now_ns = trial->now_ns;
    if (event.type == ROUND_EVENT_ANSWER && event.command == ROUND_VOTE &&
        event.answer->kind == ANSWER_YES)
        step_both_ways(trial, &event);
    else
        round_step(&trial->round, &event, &trial->last);
    note(trial);
}

void trial_begin_with(struct trial *trial, unsigned nodes, enum round_kind kind, uint32_t reachable)
{
    static const enum reason refused[LIMIT_NODES] = {REASON_REFUSED, REASON_REFUSED, REASON_REFUSED,
                                                     REASON_REFUSED, REASON_REFUSED};
    memset(trial, 0, sizeof(*trial));
    trial->rules = rules_for(nodes);
    trial->now_ns = start_ns;
    round_init(&trial->round, &trial->rules, kind, TRIAL_TTL_MS * NS_PER_MS);
    trial_step(trial, (struct round_event){.type = ROUND_EVENT_START,
                                           .reachable = reachable,
                                           .unreachable_because = refused});
}

void trial_begin(struct trial *trial, unsigned nodes, enum round_kind kind)
{
    trial_begin_with(trial, nodes, kind, nodes_all(nodes));
}

const struct answer said_yes = {.kind = ANSWER_YES};
const struct answer said_absent = {.kind = ANSWER_ABSENT};
const struct answer said_oom = {.kind = ANSWER_FAILED, .reason = REASON_OOM};

struct answer said_held(int64_t pttl_ms, uint64_t holder)
{
    return (struct answer){.kind = ANSWER_HELD, .pttl_ms = pttl_ms, .holder = holder};
}

void trial_say(struct trial *trial, unsigned node, enum round_command command, struct answer answer)
{
    trial_step(trial, (struct round_event){.type = ROUND_EVENT_ANSWER,
                                           .node = node,
                                           .command = command,
                                           .answer = &answer});
}

void trial_vote(struct trial *trial, unsigned node, struct answer answer)
{
    trial_say(trial, node, ROUND_VOTE, answer);
}

void trial_reach_deadline(struct trial *trial)
{
    trial->now_ns = round_deadline_ns(&trial->round);
    trial_step(trial, (struct round_event){.type = ROUND_EVENT_DEADLINE});
}

void trial_expect(const struct trial *trial, enum outcome outcome)
{
    ck_assert_int_eq(trial->round.phase, ROUND_SETTLED);
    ck_assert_int_eq(trial->round.outcome, outcome);
    ck_assert_uint_eq(trial->answers, 1);
}
