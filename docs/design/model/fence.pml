/*
 * Fencing tokens: two daemons whose wall clocks differ propose ballots to three masters. One of the
 * masters loses its data.
 *
 * The claim: the fencing token of a grant is greater than that of every grant before it.
 *
 *     here                            in the code
 *     begin_round                     engine/round/round.c: on_start; fence_propose in engine/round/fence.c
 *     decide, undo                    decide_acquire, decide_failed_acquire (OUTCOME_OUTBID), undo
 *     execute_set                     protocol/fence.lua
 *     quarantine                      the rules of guard.pml
 *
 * To remove a rule, define one of
 *
 *     NO_COMPARE     the script stores a ballot without a comparison
 *     NO_QUARANTINE  a master that lost its ballots votes at once
 *     WIDE_CLOCKS    the wall clocks differ by more than docs/design/algorithm.md allows
 *
 * FENCE_ENDS replaces the loss of data by fences that expire as early as fence_ttl allows. With
 * SEE_BID_AGAIN, a grant to a second bid is an error, to show that it occurs.
 */

#define NODES  3
#define QUORUM 2

#define claim(condition, otherwise) \
    if \
    :: (condition) \
    :: else -> \
        printf(otherwise); \
        assert(false) \
    fi

/* Times are in ticks. */
#ifdef FENCE_ENDS
#define TTL 3
#else
#define TTL 2
#endif
#define FENCE_TTL    TTL /* the minimum that the configuration allows */
#define NODE_TIMEOUT 1
#ifdef NO_QUARANTINE
#define QUARANTINE 0
#else
#define QUARANTINE TTL
#endif

/* The largest allowed difference of two wall clocks. It must be below max_ttl or, if a fence may
 * expire, below max_ttl minus the length of a round. Here, one tick is allowed in either case. */
#ifdef WIDE_CLOCKS
#define SKEW 2
#else
#define SKEW 1
#endif

/* The number of rounds of each daemon. */
#ifndef ROUNDS_0
#define ROUNDS_0 1
#endif
#ifndef ROUNDS_1
#define ROUNDS_1 2
#endif
#define rounds_of(d) ((d) == 0 -> ROUNDS_0 : ROUNDS_1)

/* Ballots are relative to the present, so that states do not grow with time. NOW is the least that
 * a wall clock may show, and each tick subtracts a GRAIN from all ballots. 0 stands for all ballots
 * that can no longer be granted. If the ballot that outbid a daemon is not below its clock, its
 * second bid is that ballot plus 1. A run has fewer such bids than GRAIN, so they add up to less
 * than one tick. */
#define GRAIN 8
#define NOW   (1 + NODE_TIMEOUT * GRAIN)

/* --- the masters, and the connections to them --- */

#define FREE 0 /* the key is free; otherwise 1 + the daemon whose token it holds */

typedef master_state {
    unsigned key : 2;
    unsigned left : 2; /* ticks until the key expires */
    byte ballot;       /* the key redlockd:fence:<key> */
    unsigned fence_left : 2
};
master_state node[NODES];

/* The master that loses its data, once; and the ticks until it has a vote again. */
#define FORGETS 0
unsigned quarantine : 2;

mtype = { SET, RELEASE };

chan wire[2 * NODES] = [3] of { mtype };
#define wire_to(d, n) wire[(d) * NODES + (n)]

/* The reply to a SET. */
#define YES    1
#define NO     2 /* the key is held, or the master has no vote */
#define OUTBID 3

typedef link_state {
    bit asked;   /* the round of this daemon sent a SET to this master */
    bit pending; /* the reply to that SET is outstanding, and still matters */
    byte ballot  /* ballot of the SET in flight */
};
link_state link[2 * NODES];
#define to(d, n) link[(d) * NODES + (n)]

/* --- the daemons --- */

#define IDLE    0
#define VOTING  1
#define HOLDING 2

typedef round_state {
    unsigned phase : 2;
    unsigned number : 3; /* number of rounds begun */
    bit again;           /* second bid, above the ballot that outbid the first */
    unsigned age : 2;
    unsigned yes : 2;
    unsigned outbid : 2;
    unsigned valid : 2;  /* true time for which the daemon believes in its grant */
    byte ballot;
    byte seen /* the greatest ballot that outbid this one */
};
round_state round[2];

byte newest; /* the greatest fencing token granted so far */

/* Temporary variables of one step, 0 between steps. */
byte it_said, i;

/* --- the daemon --- */

inline forget_vote(d, n)
{
    to(d, n).asked = 0;
    to(d, n).pending = 0;
    if
    :: !(wire_to(d, n)??[SET]) -> to(d, n).ballot = 0
    :: else
    fi
}

inline release(d, n)
{
    if
    :: to(d, n).asked && (len(wire_to(d, n)) > 0 || node[n].key == d + 1) -> wire_to(d, n)!RELEASE
    :: else /* no SET was sent, or its key is gone: a release would find nothing */
    fi;
    forget_vote(d, n)
}

inline release_all(d)
{
    release(d, 0);
    release(d, 1);
    release(d, 2);
    round[d].phase = IDLE;
    round[d].age = 0;
    round[d].yes = 0;
    round[d].outbid = 0;
    round[d].valid = 0;
    round[d].ballot = 0
}

/* A link on which a SET is unanswered is SUSPECT here: a new round does not use it. */
#define may_ask(d, n) \
    (!(wire_to(d, n)??[SET]) && !((n) == FORGETS && quarantine > 0))

inline ask(d, n)
{
    if
    :: may_ask(d, n) ->
        to(d, n).asked = 1;
        to(d, n).pending = 1;
        to(d, n).ballot = round[d].ballot;
        wire_to(d, n)!SET
    :: else
    fi
}

inline begin_round(d, clock)
{
    round[d].number++;
    round[d].phase = VOTING;
    round[d].ballot = (clock > round[d].seen -> clock : round[d].seen + 1);
    round[d].seen = 0;
    printf("daemon %d: begins round %d with ballot %d\n", d, round[d].number, round[d].ballot);
    ask(d, 0);
    ask(d, 1);
    ask(d, 2)
}

inline undo(d)
{
    printf("daemon %d: its round fails\n", d);
    /* There is only one second bid. If that is outbid too, another daemon is bidding right now. */
    round[d].again = (!round[d].again && round[d].yes + round[d].outbid >= QUORUM);
    if
    :: !round[d].again -> round[d].seen = 0
    :: else
    fi;
    release_all(d)
}

inline grant(d)
{
    round[d].valid = TTL - round[d].age;
    printf("daemon %d: GRANTED with fence %d, the newest was %d\n", d, round[d].ballot, newest);
    claim(round[d].ballot > newest, "A FENCE THAT DOES NOT RISE\n");
    claim(round[1 - d].valid == 0, "TWO HOLDERS\n");
#ifdef SEE_BID_AGAIN
    claim(!round[d].again, "SEEN\n");
#endif
    newest = round[d].ballot;
    round[d].phase = HOLDING;
    round[d].age = 0;
    round[d].yes = 0;
    round[d].outbid = 0;
    round[d].ballot = 0;
    round[d].seen = 0;
    round[d].again = 0;
    to(d, 0).pending = 0;
    to(d, 1).pending = 0;
    to(d, 2).pending = 0
}

#define still_pending(d) (to(d, 0).pending + to(d, 1).pending + to(d, 2).pending)

inline decide(d)
{
    if
    :: round[d].phase == VOTING && round[d].yes >= QUORUM -> grant(d)
    :: round[d].phase == VOTING && round[d].yes + still_pending(d) < QUORUM -> undo(d)
    :: else
    fi
}

/* The daemon receives a reply in the step in which the master sends it (README.md explains why). */
inline receive(d, n)
{
    if
    :: to(d, n).pending && round[d].age <= NODE_TIMEOUT ->
        if
        :: it_said == YES -> round[d].yes++
        :: it_said == OUTBID ->
            round[d].outbid++;
            if
            :: node[n].ballot > round[d].seen -> round[d].seen = node[n].ballot
            :: else
            fi
        :: else
        fi
    :: else /* a late reply */
    fi;
    to(d, n).pending = 0;
    decide(d)
}

#define has_quorum(d) (may_ask(d, 0) + may_ask(d, 1) + may_ask(d, 2) >= QUORUM)
#define may_begin(d)  (round[d].phase == IDLE && round[d].number < rounds_of(d) && has_quorum(d))

proctype daemon(byte d)
{
    do
    /* For each round, the wall clock is at one or at the other end of its allowed range. */
    :: d_step { may_begin(d) -> begin_round(d, NOW) }
    :: d_step { may_begin(d) -> begin_round(d, NOW + SKEW * GRAIN) }
    :: d_step { round[d].phase == VOTING && round[d].age > NODE_TIMEOUT -> undo(d) }
    :: d_step {
        round[d].phase == HOLDING ->
            printf("daemon %d: UNLOCK\n", d);
            release_all(d)
       }
    od
}

/* --- a master --- */

#ifdef NO_COMPARE
#define is_outbid(d, n) false
#else
#define is_outbid(d, n) (node[n].ballot >= to(d, n).ballot)
#endif

inline execute_set(d, n)
{
    if
    :: node[n].key != FREE -> it_said = NO
    :: node[n].key == FREE && is_outbid(d, n) -> it_said = OUTBID
    :: else ->
        node[n].key = d + 1;
        node[n].left = TTL;
        node[n].ballot = to(d, n).ballot;
#ifdef FENCE_ENDS
        node[n].fence_left = FENCE_TTL;
#endif
        it_said = YES
    fi;
    printf("    master %d: SET of daemon %d: %d\n", n, d, it_said == YES);
    to(d, n).ballot = 0;
    /* The guard's decision. */
    if
    :: n == FORGETS && quarantine > 0 -> it_said = NO
    :: else
    fi;
    receive(d, n);
    it_said = 0
}

inline execute_release(d, n)
{
    if
    :: node[n].key == d + 1 ->
        node[n].key = FREE;
        node[n].left = 0
    :: else
    fi
}

#define COMMANDS_OF(d) \
    :: d_step { wire_to(d, n)?SET -> execute_set(d, n) } \
    :: d_step { wire_to(d, n)?RELEASE -> execute_release(d, n) }

proctype master(byte n)
{
    do
    COMMANDS_OF(0)
    COMMANDS_OF(1)
    od
}

#ifndef FENCE_ENDS
proctype memory_fault()
{
    d_step {
        printf("    master %d: forgets\n", FORGETS);
        node[FORGETS].key = FREE;
        node[FORGETS].left = 0;
        node[FORGETS].ballot = 0;
        quarantine = QUARANTINE
    }
}
#endif

/* --- time --- */

inline less(what, by)
{
    what = (what > by -> what - by : 0)
}

inline pass_time_on(n)
{
    less(node[n].left, 1);
#ifdef FENCE_ENDS
    less(node[n].fence_left, 1);
#endif
    less(node[n].ballot, GRAIN);
    if
    :: node[n].left == 0 -> node[n].key = FREE
    :: else
    fi;
#ifdef FENCE_ENDS
    if
    :: node[n].fence_left == 0 -> node[n].ballot = 0
    :: else
    fi
#endif
}

inline pass_time_of(d)
{
    less(round[d].ballot, GRAIN);
    less(round[d].seen, GRAIN);
    if
    :: round[d].phase == VOTING && round[d].age <= NODE_TIMEOUT -> round[d].age++
    :: round[d].phase == HOLDING ->
        round[d].valid--;
        if
        :: round[d].valid == 0 ->
            printf("daemon %d: its lock has ended\n", d);
            round[d].phase = IDLE;
            forget_vote(d, 0);
            forget_vote(d, 1);
            forget_vote(d, 2)
        :: else
        fi
    :: else
    fi
}

/* A tick can come at any moment, and no step has to wait for one: any message may take any time. */
proctype time()
{
    do
    :: d_step {
        printf("-- tick\n");
        for (i : 0 .. NODES - 1) {
            pass_time_on(i)
        }
        i = 0;
        for (i : 0 .. 2 * NODES - 1) {
            less(link[i].ballot, GRAIN)
        }
        i = 0;
        less(newest, GRAIN);
        less(quarantine, 1);
        pass_time_of(0);
        pass_time_of(1)
       }
    od
}

init
{
    atomic {
        run daemon(0);
        run daemon(1);
        run master(0);
        run master(1);
        run master(2);
#ifndef FENCE_ENDS
        run memory_fault();
#endif
        run time()
    }
}
