/*
 * The round and the guard: two daemons and three masters. Master FORGETS loses its data. The clock
 * of master STEPS steps. By default both are master 0.
 *
 * The claim: no two daemons believe at once, in true time, in a valid grant of the same lock.
 *
 *     here                            in the code
 *     begin_round, ask                engine/round/round.c: on_start; engine_flush adds the probe
 *     take_vote, decide, grant        take_vote, decide_acquire, granted_or_late; valid_until
 *     may_vote                        engine/guard/guard.c: guard_refuses_vote
 *     take_sample                     take_sample: clock_on_sample, identity_on_sample (adopt)
 *     begin_epoch, counts             begin_epochs in guard.c; deliver_votes in engine/flight/replies.c
 *     reconnect                       guard_on_connected; fail_lost in engine/flight/replies.c
 *     SET; GET and TIME; WRITE        SET NX PX; the probe of engine/master/guard_io.c; write_record.lua
 *
 * Each daemon runs one round, and nothing is released. README.md says why that is enough for this
 * claim, and what else is left out. To remove a rule, define one of
 *
 *     NO_GUARD          every master is asked, and every vote counts
 *     PROBE_AHEAD       no probe follows the votes; the guard only learns from its heartbeats
 *     NO_EPOCH          a vote counts although the guard has learnt of a fault since the request
 *     NO_QUARANTINE     a master that lost its data votes as soon as it has a new record
 *     NO_CLOCK_MONITOR  the clocks are not monitored
 *     NO_DRIFT          the validity does not cover a step that the clock monitor cannot see
 *     NO_ELAPSED        the validity does not subtract the time of the round
 *
 * NO_FLUSH, NO_RESTART, NO_STEP, NO_SMALL_STEP and NO_LARGE_STEP leave out faults. With PROMPT, the
 * daemon receives the reply of a master without faults in the step in which the master sends it
 * (README.md explains why). The SEE_ definitions turn an event into an error, to show that the
 * event occurs:
 *
 *     SEE_RETURN        a vote counts of a master that lost its data and waited out its quarantine
 *     SEE_STEP_RETURN   a vote counts of a master whose clock stepped and that waited out its
 *                       quarantine
 *     SEE_RIVAL         the rival is one vote short while a daemon holds the lock
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

/* Times are in ticks, and as small as the model allows. The clock monitor cannot see a step by
 * MARGIN (engine/guard/clock_monitor.h, STEADY), so each validity covers it
 * (engine/round/validity.h). */
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

/* The master that loses its data, and the master whose clock steps. */
#define FORGETS 0
#ifndef STEPS
#define STEPS FORGETS
#endif

/* A daemon asks for the record only where the master can lose its data, and for the time only where
 * the clock can step. Elsewhere, the probe would not find anything. */
#ifdef NO_GUARD
#define asks_record(n) false
#define asks_time(n)   false
#else
#define asks_record(n) ((n) == FORGETS)
#define asks_time(n)   ((n) == STEPS)
#endif
#define is_guarded(n) (asks_record(n) || asks_time(n))

/* --- the masters --- */

#define FREE 0 /* the key is free; otherwise 1 + the daemon whose token it holds */

/* The states of a record; the code distinguishes records byte for byte. */
#define NO_RECORD  0
#define OLD_RECORD 1 /* written for the first process of the server */
#define NEW_RECORD 2 /* written after the loss of data */

typedef master_state {
    unsigned key : 2;
    unsigned left : 2;   /* ticks until the key expires */
    unsigned record : 2; /* the key redlockd:node */
    unsigned join : 3;   /* ticks until the record's quarantine ends: join_us less TIME */
    bit server;          /* the run_id: 1 after a restart */
    unsigned clock : 2   /* distance that its clock has stepped */
};
master_state node[NODES];

/* --- the connections: one from each daemon to each master --- */

mtype = { SET, GET, TIME, WRITE };

/* The reply to a SET. */
#define NOTHING 0
#define YES     1
#define NO      2

/* Commands that a daemon has written and the master has not executed. Redis executes them in order,
 * each in one step. */
chan wire[2 * NODES] = [4] of { mtype };
#define wire_to(d, n) wire[(d) * NODES + (n)]

typedef link_state {
    bit broken; /* the connection is lost, and the daemon has not noticed yet */

    /* Replies of a batch. The daemon keeps the reply to the SET until it has those to GET and TIME
     * (keep_vote), so all of them arrive in one step, after the whole batch. */
    unsigned said : 2;
    unsigned seen : 2;
    unsigned clock : 2;
    bit answered; /* the replies to the whole batch are there */
    unsigned expected : 2; /* the record that the WRITE in flight may replace */

    /* The master's vote in the round. */
    bit pending;
    bit in_epoch; /* the guard has learnt of no fault since the request */

    /* The guard's knowledge of the master. */
    bit misfit; /* the last sample had no valid record, or this connection has no sample yet */
    unsigned adopted : 2;
    bit server;
    unsigned quarantine : 3; /* ticks until it may vote, as its record says */
    unsigned stepped : 3;    /* ticks until it may vote again after a step of its clock */
    unsigned offset : 2      /* of its clock, by the clock monitor */
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
    unsigned yes : 2;  /* counted votes */
    unsigned valid : 2 /* true time for which the daemon believes in the grant; 0: no grant */
};
round_state round[2];

/* The rest of this run cannot show two holders: a round has failed, a grant has ended, or daemon 1
 * was granted the lock. (Runs in which daemon 1 is first are like those in which daemon 0 is.) */
bit over;

/* Temporary variables of one step, 0 between steps. */
byte it_said, it_saw, it_clock, it_join, i;
bit passed;

/* --- the daemon: its guard --- */

inline send(d, n, command)
{
    if
    :: !to(d, n).broken -> wire_to(d, n)!command
    :: else /* lost */
    fi
}

inline begin_epoch(d, n)
{
    to(d, n).in_epoch = 0
}

#ifdef NO_CLOCK_MONITOR
#define has_stepped(d, n) false
#else
#define has_stepped(d, n) (it_clock > to(d, n).offset + MARGIN)
#endif

inline check_clock(d, n)
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

/* The master may have lost all its data: request a record that says so. */
inline request_record(d, n)
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

inline check_record(d, n)
{
    if
    :: it_saw == NO_RECORD || (it_saw == OLD_RECORD && to(d, n).server == 1) -> request_record(d, n)
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

/* Reset variables that no longer matter, so that states which differ only in them become one. A
 * daemon whose round has begun asks for no other vote, so quarantines no longer matter to it. Once
 * the vote of this master is counted or lost, the guard of the daemon only writes records. */
inline normalize(d, n)
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

inline normalize_all(d)
{
    normalize(d, 0);
    normalize(d, 1);
    normalize(d, 2);
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
    :: asks_time(n) -> check_clock(d, n)
    :: else
    fi;
    if
    :: asks_record(n) -> check_record(d, n)
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

inline decide(d)
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
#ifdef SEE_STEP_RETURN
            claim(to(d, n).offset == 0, "SEEN\n");
#endif
#ifdef SEE_RIVAL
            claim(d == 0 || round[0].phase != HOLDING || node[FORGETS].record != NEW_RECORD, "SEEN\n");
#endif
        :: else
        fi;
        to(d, n).pending = 0;
        decide(d)
    :: else /* a late reply */
    fi
}

/* The votes are kept until the probe after them is answered; then the guard decides. */
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
    normalize_all(d)
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
    normalize_all(d)
}

/* The master has no vote until the guard has a sample from the new connection. */
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
        decide(d)
    :: else
    fi;
    normalize_all(d)
}

/* A heartbeat is one step (README.md explains why). It overtakes no command, so it comes before the
 * commands of a batch or after all of them. It can change something only before the round, while
 * the vote of this master is outstanding, or if a record must be written. */
#define lost_something(d, n) \
    (node[n].record == NO_RECORD || (node[n].record == OLD_RECORD && to(d, n).server == 1))
#define may_heartbeat(d, n) \
    (is_guarded(n) && !to(d, n).broken && to(d, n).said == NOTHING && !(wire_to(d, n)??[WRITE]) && \
     (round[d].phase == IDLE || to(d, n).pending || lost_something(d, n)))

inline heartbeat(d, n)
{
    it_saw = node[n].record;
    it_clock = node[n].clock;
    it_join = node[n].join;
    take_sample(d, n);
    normalize_all(d)
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
    :: d_step { may_heartbeat(d, FORGETS) -> heartbeat(d, FORGETS) }
#if STEPS != FORGETS
    :: d_step { may_heartbeat(d, STEPS) -> heartbeat(d, STEPS) }
#endif
    od
}

/* --- a master --- */

#ifdef PROBE_AHEAD
#define awaits_probe(n) false
#else
#define awaits_probe(n) is_guarded(n)
#endif

/* A command that arrives after the round is executed all the same, but its reply has no effect. */
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
    normalize(d, n)
}

inline execute_get(d, n)
{
    to(d, n).seen = node[n].record;
    to(d, n).answered = !asks_time(n);
    normalize(d, n)
}

inline execute_time(d, n)
{
    to(d, n).clock = node[n].clock;
    to(d, n).answered = 1;
    normalize(d, n)
}

inline execute_write(d, n)
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
    :: d_step { wire_to(d, n)?WRITE -> execute_write(d, n) }

proctype master(byte n) provided (!over)
{
    do
    COMMANDS_OF(0)
    COMMANDS_OF(1)
    od
}

/* --- time and faults --- */

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

/* A tick can come at any moment, and no step has to wait for one: any message may take any time. */
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

/* The key and the record are lost. (A restart from a snapshot then puts back an old record.) */
inline forget(n)
{
    node[n].key = FREE;
    node[n].left = 0;
    node[n].record = NO_RECORD;
    node[n].join = 0
}

/* If the master has answered a whole batch, the daemon may still receive the replies. All other
 * replies, and commands that the master has not executed, are lost. */
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
    /* A flush also stands for a failover to a replica and back. After that, the record is not valid
     * either, because the replication id of the server has changed. */
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
