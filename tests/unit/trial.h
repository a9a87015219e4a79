/*
 * A round under test, on virtual time: what it has asked for so far, and what the time is. Each
 * vote of yes is counted both ways, by a step and quietly.
 */
#ifndef TESTS_UNIT_TRIAL_H
#define TESTS_UNIT_TRIAL_H

#include "engine/round/round.h"

enum { TRIAL_TIMEOUT_MS = 50, TRIAL_TTL_MS = 10000 };

struct trial {
    struct round_rules rules;
    struct round round;
    struct round_actions last;
    int64_t now_ns;
    uint32_t sent[ROUND_COMMANDS];
    unsigned answers;
    unsigned quiet; /* votes that the quick way takes */
};

/* Its round has begun, with all nodes reachable, or with these. */
void trial_begin(struct trial *trial, unsigned nodes, enum round_kind kind);
void trial_begin_with(struct trial *trial, unsigned nodes, enum round_kind kind,
                      uint32_t reachable);

/* What comes now, and what of it a node says. */
void trial_step(struct trial *trial, struct round_event event);
void trial_say(struct trial *trial, unsigned node, enum round_command command,
               struct answer answer);
void trial_vote(struct trial *trial, unsigned node, struct answer answer);
void trial_reach_deadline(struct trial *trial);

extern const struct answer said_yes;
extern const struct answer said_absent;
extern const struct answer said_oom;
struct answer said_held(int64_t pttl_ms, uint64_t holder);

/* It is settled, with this outcome, which was told once. */
void trial_expect(const struct trial *trial, enum outcome outcome);

#endif
