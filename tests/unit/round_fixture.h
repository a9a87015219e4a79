/*
 * A round under test on virtual time, with the actions it has asked for. Each yes vote is counted
 * twice, by round_step() and by round_add_vote_fast(), and the results are compared.
 */
#ifndef TESTS_UNIT_ROUND_FIXTURE_H
#define TESTS_UNIT_ROUND_FIXTURE_H

#include "engine/round/round.h"

enum { FIXTURE_TIMEOUT_MS = 50, FIXTURE_TTL_MS = 10000 };

struct round_fixture {
    struct round_rules rules;
    struct round round;
    struct round_actions last;
    int64_t now_ns;
    uint32_t sent[ROUND_COMMANDS];
    unsigned answers;
    unsigned fast_votes; /* votes that round_add_vote_fast() counted */
};

/* Begin a round with all nodes reachable, or with only the nodes of this set. */
void fixture_begin(struct round_fixture *fixture, unsigned nodes, enum round_kind kind);
void fixture_begin_with(struct round_fixture *fixture, unsigned nodes, enum round_kind kind,
                        uint32_t reachable);

/* Feed an event to the round: any event, the answer of a node to a command, or its answer to the
 * vote. */
void fixture_step(struct round_fixture *fixture, struct round_event event);
void fixture_answer(struct round_fixture *fixture, unsigned node, enum round_command command,
                    struct answer answer);
void fixture_vote(struct round_fixture *fixture, unsigned node, struct answer answer);
void fixture_reach_deadline(struct round_fixture *fixture);

extern const struct answer answer_yes;
extern const struct answer answer_absent;
extern const struct answer answer_oom;
struct answer answer_held(int64_t pttl_ms, uint64_t holder);

/* Assert that the round is settled with this outcome, and has asked exactly once for the reply to
 * its client. */
void fixture_expect(const struct round_fixture *fixture, enum outcome outcome);

#endif
