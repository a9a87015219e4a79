/*
 * The round and the guard: two daemons, three masters, one that forgets, one whose clock steps.
 *
 * The claim: no two daemons believe at once, in true time, in a valid grant of the same lock.
 *
 *     here                            in the code
 *     begin_round, ask                engine/round/round.c: on_start; engine_flush puts the probe behind
 *     take_vote, checker, grant         take_vote, checker_acquire, granted_or_late; valid_until
 *     may_vote                        engine/guard/guard.c: guard_refuses_vote
 *     take_sample                     take_sample: clock_on_sample, identity_on_sample (adopt)
 *     begin_epoch, counts             step in guard.c; deliver_votes in engine/flight/replies.c
 *     reconnect                       guard_on_connected; fail_lost in engine/flight/replies.c
 *     SET; GET and TIME; WRITE         SET NX PX; the probe of engine/master/guard_io.c; write_record.lua
 *
 * Each daemon runs one round, and nothing is released: README.md says why that is enough for this
 * claim, and what else is left out. To take a rule away, define one of
 *
 *     NO_GUARD         any master is asked, and every vote counts
 *     PROBE_AHEAD      the guard looks before the votes, not behind them
 *     NO_EPOCH         a vote counts though the guard has learnt something since it was asked for
 *     NO_QUARANTINE    a master that forgot votes again as soon as it has a new record
 *     NO_STEP_WATCH    the clocks are not watched
 *     NO_DRIFT         the validity does not pay for what the watch cannot see
 *     NO_ELAPSED       the validity does not pay for the time that the round took
 *
 * To have but a part of the faults, NO_FLUSH, NO_RESTART, NO_STEP, NO_SMALL_STEP, NO_LARGE_STEP.
 * With PROMPT a master without
 * faults is heard in the step in which it answers: README.md. With SEE_RETURN or SEE_SETTLED
 * there is an error once a vote counts of a master that forgot, or stepped, and sat out its
 * quarantine: to see that it happens. With SEE_RIVAL, once the second is one vote short.
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

/* In ticks, as few as tell them apart. A step of the clock by MARGIN is what the watch cannot see
 * (engine/guard/clock_monitor.h, STEADY) and what each validity pays for (engine/round/validity.h). */
#define TTL          3
#define NODE_TIMEOUT 1
#define MARGIN       1

#ifdef NO_DRIFT
#define DRIFT 0
#else
#define DRIFT MARGIN
#endif

#ifdef NO_QUARANTINE
#define QUARANTINE 0
#else
#define QUARANTINE (TTL + MARGIN)
#endif

/* Which master forgets, and whose clock steps. */
#define FORGETS 0
#ifndef STEPS
#define STEPS FORGETS
#endif

/* What can tell nothing is not asked for: the record of a master that does not forget, the time of
 * one whose clock does not step. */
#ifdef NO_GUARD
#define asks_record(n) false
#define asks_time(n)   false
#else
#define asks_record(n) ((n) == FORGETS)
#define asks_time(n)   ((n) == STEPS)
#endif
#define is_guarded(n) (asks_record(n) || asks_time(n))

/* --- the masters --- */

#define FREE 0 /* of a key; else 1 + the daemon whose token it holds */

/* What a record says; the code tells two of them apart byte for byte. */
#define NO_RECORD  0
#define OLD_RECORD 1 /* of the first run of the server */
#define NEW_RECORD 2 /* written after the master forgot */

typedef master_state {
    unsigned key : 2;
    unsigned left : 2;   /* until the key ends */
    unsigned record : 2; /* redlockd:node */
    unsigned join : 3;   /* join_us of the record, less the TIME of this master */
    bit server;          /* run_id: 1 after a restart */
    unsigned clock : 2   /* how far its clock has stepped */
};
master_state node[NODES];

/* --- the connections: one of each daemon to each master --- */

mtype = { SET, GET, TIME, WRITE };

/* The answer to a SET. */
#define NOTHING 0
#define YES     1
#define NO      2

/* Written by a daemon and not yet executed. Redis executes in order; each command is a step. */
chan wire[2 * NODES] = [4] of { mtype };
#define wire_to(d, n) wire[(d) * NODES + (n)]

typedef link_state {
    bit broken; /* and the daemon has not noticed yet */

    /* What the master has executed of a batch: the daemon keeps the answer to the SET until it has
     * those to GET and TIME (keep_vote), so they arrive in one step, once all is executed. */
    unsigned said : 2;
    unsigned seen : 2;
    unsigned clock : 2;
    bit answered;
    unsigned expected : 2; /* by the WRITE under way: the record it may replace */

    /* The vote of the round. */
    bit pending;
    bit in_epoch; /* the guard has learnt nothing since it was asked for */

    /* What the daemon's guard knows of the master. */
    bit misfit; /* its record, by the last sample; or there is no sample of this connection */
    unsigned adopted : 2;
    bit server;
    unsigned quarantine : 3; /* until it may vote, by the record */
    unsigned stepped : 3;    /* the same, by its clock */
    unsigned offset : 2      /* of its clock, as watched */
};
link_state link[2 * NODES];
#define to(d, n) link[(d) * NODES + (n)]

/* --- the daemons --- */

#define IDLE    0
#define VOTING  1
#define HOLDING 2

typedef round_state {
    unsigned phase : 2;
    unsigned age : 2;
    unsigned yes : 2;  /* votes that count */
    unsigned valid : 2 /* for how long, in true time, the grant is believed in: 0 not at all */
};
round_state round[2];

/* There will be no two holders in this run: a round has failed, or a grant has ended; or daemon 1
 * is the first to be granted, which is the same as daemon 0 with the names changed. */
bit over;

/* For one step, 0 between steps. */
byte it_said, it_saw, it_clock, it_join, i;
bit passed;

/* --- the daemon: its guard --- */

inline send(d, n, command)
{
    if
    :: !to(d, n).broken -> wire_to(d, n)!command
    :: else /* into the void */
    fi
}

inline begin_epoch(d, n)
{
    to(d, n).in_epoch = 0
}

#ifdef NO_STEP_WATCH
#define has_stepped(d, n) false
#else
#define has_stepped(d, n) (it_clock > to(d, n).offset + MARGIN)
#endif

inline look_at_clock(d, n)
{
    if
    :: has_stepped(d, n) ->
        printf("daemon %d: the clock of master %d has stepped\n", d, n);
        to(d, n).stepped = QUARANTINE;
        to(d, n).offset = it_clock;
        begin_epoch(d, n);
        passed = 0
    :: else
    fi
}

/* Everything the master held may be lost. Have a record written that says so. */
inline want_record(d, n)
{
    printf("daemon %d: master %d has lost something\n", d, n);
    passed = 0;
    begin_epoch(d, n);
    to(d, n).misfit = 1;
    if
    :: !to(d, n).broken && !(wire_to(d, n)??[WRITE]) ->
        to(d, n).expected = it_saw;
        send(d, n, WRITE)
    :: else
    fi
}

inline look_at_record(d, n)
{
    if
    :: it_saw == NO_RECORD || (it_saw == OLD_RECORD && to(d, n).server == 1) -> want_record(d, n)
    :: else ->
        if
        :: to(d, n).misfit -> begin_epoch(d, n)
        :: else
        fi;
        to(d, n).misfit = 0;
        if
        :: it_saw != to(d, n).adopted ->
            printf("daemon %d: adopts the record of master %d\n", d, n);
            to(d, n).adopted = it_saw;
            to(d, n).quarantine = it_join;
            begin_epoch(d, n)
        :: else
        fi
    fi
}

/* What can make no more difference gets one value, so that states are one that differ in it alone:
 * a daemon whose round has begun asks for no other vote; and where this vote is over as well, its
 * guard is of use only for writing records. */
inline let_go(d, n)
{
    if
    :: round[d].phase != IDLE ->
        to(d, n).quarantine = 0;
        to(d, n).stepped = 0;
        if
        :: !to(d, n).pending ->
            to(d, n).in_epoch = 0;
            to(d, n).misfit = 0;
            to(d, n).adopted = OLD_RECORD;
            to(d, n).offset = 0;
            to(d, n).said = NOTHING;
            to(d, n).seen = 0;
            to(d, n).clock = 0;
            to(d, n).answered = 0
        :: else
        fi
    :: else
    fi
}

inline let_go_of_all(d)
{
    let_go(d, 0);
    let_go(d, 1);
    let_go(d, 2);
    it_said = 0;
    it_saw = 0;
    it_clock = 0;
    it_join = 0;
    passed = 0
}

inline take_sample(d, n)
{
    passed = 1;
    if
    :: asks_time(n) -> look_at_clock(d, n)
    :: else
    fi;
    if
    :: asks_record(n) -> look_at_record(d, n)
    :: else
    fi
}

#ifdef NO_GUARD
#define may_vote(d, n) true
#else
#define may_vote(d, n) (!to(d, n).misfit && to(d, n).quarantine == 0 && to(d, n).stepped == 0)
#endif

#ifdef NO_EPOCH
#define counts(d, n) (passed && !to(d, n).misfit)
#else
#define counts(d, n) (passed && !to(d, n).misfit && to(d, n).in_epoch)
#endif

/* --- the daemon: its round --- */

inline grant(d)
{
#ifdef NO_ELAPSED
    round[d].valid = TTL - DRIFT;
#else
    round[d].valid = TTL - round[d].age - DRIFT;
#endif
    printf("daemon %d: GRANTED, valid for %d\n", d, round[d].valid);
    claim(round[1 - d].valid == 0, "TWO HOLDERS\n");
    round[d].phase = HOLDING;
    round[d].age = 0;
    round[d].yes = 0;
    to(d, 0).pending = 0;
    to(d, 1).pending = 0;
    to(d, 2).pending = 0;
    if
    :: d == 1 -> over = 1
    :: else
    fi
}

#define still_pending(d) (to(d, 0).pending + to(d, 1).pending + to(d, 2).pending)

inline checker(d)
{
    if
    :: round[d].phase == VOTING && round[d].yes >= QUORUM -> grant(d)
    :: round[d].phase == VOTING && round[d].yes + still_pending(d) < QUORUM ->
        printf("daemon %d: no quorum\n", d);
        over = 1
    :: else
    fi
}

inline take_vote(d, n, counted)
{
    if
    :: to(d, n).pending ->
        if
        :: it_said == YES && counted && round[d].age <= NODE_TIMEOUT ->
            round[d].yes++;
#ifdef SEE_RETURN
            claim(to(d, n).adopted != NEW_RECORD, "SEEN\n");
#endif
#ifdef SEE_SETTLED
            claim(to(d, n).offset == 0, "SEEN\n");
#endif
#ifdef SEE_RIVAL
            claim(d == 0 || round[0].phase != HOLDING || node[FORGETS].record != NEW_RECORD, "SEEN\n");
#endif
        :: else
        fi;
        to(d, n).pending = 0;
        checker(d)
    :: else /* a straggler */
    fi
}

/* The votes are kept until the probe behind them is answered; then the guard speaks. */
inline receive(d, n)
{
    it_said = to(d, n).said;
    it_saw = to(d, n).seen;
    it_clock = to(d, n).clock;
    to(d, n).said = NOTHING;
    to(d, n).seen = 0;
    to(d, n).clock = 0;
    to(d, n).answered = 0;
#ifdef PROBE_AHEAD
    passed = 1;
#else
    if
    :: is_guarded(n) -> take_sample(d, n)
    :: else -> passed = 1
    fi;
#endif
    printf("daemon %d: master %d said %d, its guard %d\n", d, n, it_said == YES, counts(d, n));
    take_vote(d, n, counts(d, n));
    let_go_of_all(d)
}

inline ask(d, n)
{
    if
    :: may_vote(d, n) ->
        to(d, n).pending = 1;
        to(d, n).in_epoch = 1;
        send(d, n, SET);
#ifndef PROBE_AHEAD
        if
        :: asks_record(n) -> send(d, n, GET)
        :: else
        fi;
        if
        :: asks_time(n) -> send(d, n, TIME)
        :: else
        fi
#endif
    :: else
    fi
}

inline begin_round(d)
{
    printf("daemon %d: begins its round\n", d);
    round[d].phase = VOTING;
    ask(d, 0);
    ask(d, 1);
    ask(d, 2);
    let_go_of_all(d)
}

/* Until there is a sample of this connection, the master has no vote. */
inline reconnect(d, n)
{
    printf("daemon %d: connects to master %d again\n", d, n);
    to(d, n).broken = 0;
    to(d, n).server = node[n].server;
    to(d, n).misfit = is_guarded(n);
    begin_epoch(d, n);
    to(d, n).said = NOTHING;
    to(d, n).seen = 0;
    to(d, n).clock = 0;
    to(d, n).answered = 0;
    if
    :: to(d, n).pending ->
        to(d, n).pending = 0;
        checker(d)
    :: else
    fi;
    let_go_of_all(d)
}

/* A heartbeat is one step: README.md. It may overtake nothing, so it comes before the commands of
 * a batch or behind all of them. What it finds is of use to a daemon that has a vote to come, or
 * a record to write. */
#define lost_something(d, n) \
    (node[n].record == NO_RECORD || (node[n].record == OLD_RECORD && to(d, n).server == 1))
#define may_look(d, n) \
    (is_guarded(n) && !to(d, n).broken && to(d, n).said == NOTHING && !(wire_to(d, n)??[WRITE]) && \
     (round[d].phase == IDLE || to(d, n).pending || lost_something(d, n)))

inline look(d, n)
{
    it_saw = node[n].record;
    it_clock = node[n].clock;
    it_join = node[n].join;
    take_sample(d, n);
    let_go_of_all(d)
}

#define has_quorum(d) (may_vote(d, 0) + may_vote(d, 1) + may_vote(d, 2) >= QUORUM)

proctype daemon(byte d) provided (!over)
{
    do
    :: d_step { round[d].phase == IDLE && has_quorum(d) -> begin_round(d) }
    :: d_step { to(d, 0).answered -> receive(d, 0) }
    :: d_step { to(d, 1).answered -> receive(d, 1) }
    :: d_step { to(d, 2).answered -> receive(d, 2) }
    :: d_step { to(d, FORGETS).broken -> reconnect(d, FORGETS) }
    :: d_step { may_look(d, FORGETS) -> look(d, FORGETS) }
#if STEPS != FORGETS
    :: d_step { may_look(d, STEPS) -> look(d, STEPS) }
#endif
    od
}

/* --- a master --- */

#ifdef PROBE_AHEAD
#define awaits_probe(n) false
#else
#define awaits_probe(n) is_guarded(n)
#endif

/* What nobody waits for any more is executed all the same, but its answer is of no use. */
inline execute_set(d, n)
{
    if
    :: node[n].key == FREE ->
        node[n].key = d + 1;
        node[n].left = TTL;
        to(d, n).said = YES
    :: else -> to(d, n).said = NO
    fi;
    printf("    master %d: SET of daemon %d: %d\n", n, d, to(d, n).said == YES);
    if
    :: awaits_probe(n)
    :: else -> to(d, n).answered = 1
    fi;
#ifdef PROMPT
    if
    :: to(d, n).answered && !is_guarded(n) -> receive(d, n)
    :: else
    fi;
#endif
    let_go(d, n)
}

inline execute_get(d, n)
{
    to(d, n).seen = node[n].record;
    to(d, n).answered = !asks_time(n);
    let_go(d, n)
}

inline execute_time(d, n)
{
    to(d, n).clock = node[n].clock;
    to(d, n).answered = 1;
    let_go(d, n)
}

inline execute_mark(d, n)
{
    if
    :: node[n].record == to(d, n).expected ->
        printf("    master %d: daemon %d writes a record\n", n, d);
        node[n].record = NEW_RECORD;
        node[n].join = QUARANTINE
    :: else
    fi;
    to(d, n).expected = 0
}

#define COMMANDS_OF(d) \
    :: d_step { wire_to(d, n)?SET -> execute_set(d, n) } \
    :: d_step { wire_to(d, n)?GET -> execute_get(d, n) } \
    :: d_step { wire_to(d, n)?TIME -> execute_time(d, n) } \
    :: d_step { wire_to(d, n)?WRITE -> execute_mark(d, n) }

proctype master(byte n) provided (!over)
{
    do
    COMMANDS_OF(0)
    COMMANDS_OF(1)
    od
}

/* --- time, and what may go wrong --- */

inline less(what, ticks)
{
    what = (what > ticks -> what - ticks : 0)
}

inline pass_time(n, ticks)
{
    less(node[n].left, ticks);
    less(node[n].join, ticks);
    if
    :: node[n].left == 0 -> node[n].key = FREE
    :: else
    fi
}

/* Nothing waits for a tick, and no tick for anything: all that is under way may take any time. */
proctype time() provided (!over)
{
    do
    :: d_step {
        printf("-- tick\n");
        for (i : 0 .. NODES - 1) {
            pass_time(i, 1)
        }
        for (i : 0 .. 2 * NODES - 1) {
            less(link[i].quarantine, 1);
            less(link[i].stepped, 1)
        }
        for (i : 0 .. 1) {
            if
            :: round[i].phase == VOTING ->
                round[i].age++;
                over = over || round[i].age > NODE_TIMEOUT
            :: round[i].phase == HOLDING ->
                round[i].valid--;
                over = over || round[i].valid == 0
            :: else
            fi
        }
        i = 0
       }
    od
}

/* The key is gone; and the record as well, or it is one of before. */
inline forget(n)
{
    node[n].key = FREE;
    node[n].left = 0;
    node[n].record = NO_RECORD;
    node[n].join = 0
}

/* What the master had answered may still arrive; what it had not executed will not be. */
inline cut(d, n)
{
    to(d, n).broken = 1;
    do
    :: len(wire_to(d, n)) > 0 -> wire_to(d, n)?_
    :: else -> break
    od;
    if
    :: !to(d, n).answered ->
        to(d, n).said = NOTHING;
        to(d, n).seen = 0
    :: else
    fi;
    to(d, n).expected = 0
}

inline restart(n)
{
    node[n].server = 1;
    cut(0, n);
    cut(1, n)
}

proctype memory_fault() provided (!over)
{
    if
#ifndef NO_FLUSH
    /* It stands for a failover and back as well: a record with another replid fits no better. */
    :: d_step {
        printf("    master %d: flushed\n", FORGETS);
        forget(FORGETS)
       }
#endif
#ifndef NO_RESTART
    :: d_step {
        printf("    master %d: restarted empty\n", FORGETS);
        forget(FORGETS);
        restart(FORGETS)
       }
    :: d_step {
        printf("    master %d: restarted from an old snapshot\n", FORGETS);
        forget(FORGETS);
        node[FORGETS].record = OLD_RECORD;
        restart(FORGETS)
       }
#endif
    :: false
    fi
}

proctype clock_fault() provided (!over)
{
    if
#if !defined(NO_STEP) && !defined(NO_SMALL_STEP)
    :: d_step {
        printf("    master %d: its clock steps by %d\n", STEPS, MARGIN);
        node[STEPS].clock = MARGIN;
        pass_time(STEPS, MARGIN)
       }
#endif
#if !defined(NO_STEP) && !defined(NO_LARGE_STEP)
    :: d_step {
        printf("    master %d: its clock steps by %d\n", STEPS, TTL);
        node[STEPS].clock = TTL;
        pass_time(STEPS, TTL)
       }
#endif
    :: false
    fi
}

init
{
    d_step {
        for (i : 0 .. NODES - 1) {
            node[i].record = OLD_RECORD
        }
        for (i : 0 .. 2 * NODES - 1) {
            link[i].adopted = OLD_RECORD
        }
        i = 0
    }
    atomic {
        run daemon(0);
        run daemon(1);
        run master(0);
        run master(1);
        run master(2);
        run time();
        run memory_fault();
        run clock_fault()
    }
}
