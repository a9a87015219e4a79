/*
 * Extensions of a lock through two daemons, while the lock is released, a master loses its data or
 * comes back with an old snapshot, and another client wants the lock.
 *
 * The claims:
 *
 *     at no instant of true time do two clients believe that they hold the lock;
 *     no extension is answered GONE while the lock is held;
 *     an extension that begins after a release was answered OK is not answered OK itself, unless an
 *     extension through another daemon was in flight during that release (has crossed it);
 *     once a master has executed the release of daemon 0, daemon 0 does not set that token there
 *     again.
 *
 *     here                            in the code
 *     begin_extend, decide_extend     engine/round/round.c: on_start, decide_token, on_straggler
 *     backfill                        backfill; round->token_releasing
 *     unlock                          the release round of an UNLOCK
 *     begin_acquire, decide_acquire   decide_acquire, undo
 *     execute_extend                  protocol/extend.lua
 *     quarantine                      the rules of guard.pml
 *
 * Token OURS has been granted by the votes of masters 0 and 1; its SET to master 2 was lost, so the
 * key is missing there. Daemon 0 extends it, and may release it. Daemon 1 extends it and knows of no
 * release. Daemon 2 acquires the lock for another client, with the token THEIRS. To remove a rule,
 * define one of
 *
 *     SHORTENS           an extension sets the TTL, also to less than is left
 *     COUNT_UNGUARDED    the yes of a master that has no vote counts
 *     DENY_UNGUARDED     the no of a master that has no vote counts
 *     BACKFILL_FIRST     the key is backfilled before a quorum has said yes
 *     BACKFILL_RELEASED  the key is backfilled although this daemon was asked to release the token
 *     PENDING_GRANTED    the lost SET to master 2 gets a pending release, although its round was
 *                        granted
 *
 * With MAY_CROSS the third claim is made without its exception ("unless"). The claim is false then,
 * which is why a client must not use a token after it has sent UNLOCK. NO_FORGET, NO_SNAPSHOT,
 * NO_SHORT, NO_RELEASE and NO_RIVAL leave out events. With SEE_BACKFILLED, an extension that is
 * granted by the vote of master 2 is an error, to show that a backfilled key counts.
 */

#define NODES   3
#define QUORUM  2
#define DAEMONS 3

#define claim(condition, otherwise) \
    if \
    :: (condition) \
    :: else -> \
        printf(otherwise); \
        assert(false) \
    fi

/* Times are in ticks. */
#define TTL          2
#define SHORT_TTL    1
#define NODE_TIMEOUT 1
#define QUARANTINE   TTL

#ifndef ROUNDS_0
#define ROUNDS_0 2
#endif
#ifndef ROUNDS_1
#define ROUNDS_1 2
#endif
#define rounds_of(d) ((d) == 0 -> ROUNDS_0 : ((d) == 1 -> ROUNDS_1 : 1))

/* --- the masters, and the connections to them --- */

#define FREE   0
#define OURS   1
#define THEIRS 2

typedef master_state {
    unsigned key : 2;
    unsigned left : 2 /* ticks until the key expires */
};
master_state node[NODES];

/* The only master with faults. It loses or resets its data at most once per run. */
#define FORGETS 0
unsigned quarantine : 2; /* ticks until it has a vote again */
unsigned saved : 2;      /* remaining TTL of OURS in its snapshot */
bit has_saved;
bit forgot;

mtype = { SET, EXTEND, BACKFILL, RELEASE };

/* Commands that a daemon has written and the master has not executed, each with its TTL (0 for a
 * RELEASE). Redis executes them in order. In one step, the master executes a command and the daemon
 * receives the reply. */
chan wire[DAEMONS * NODES] = [3] of { mtype, byte };
#define wire_to(d, n) wire[(d) * NODES + (n)]

/* --- the daemons --- */

#define IDLE   0
#define VOTING 1

/* The reply of a master in the round. */
#define NOTHING 0 /* not asked, or the reply does not count */
#define PENDING 1
#define YES     2
#define ABSENT  3
#define HELD    4

typedef round_state {
    bit phase;
    unsigned number : 2; /* number of rounds begun */
    unsigned age : 2;
    unsigned ttl : 2;
    bit granted;         /* a granted extension waits for the remaining replies, to backfill there */
    bit late;            /* the extension began after the release was answered OK */
    unsigned said_0 : 3;
    unsigned said_1 : 3;
    unsigned said_2 : 3
};
round_state round[DAEMONS];

/* Daemon 0 releases OURS. */
bit releasing;
unsigned deleted : 2;
#define is_released (deleted >= QUORUM) /* the UNLOCK is answered OK */
bit done[NODES]; /* the master has executed the release of daemon 0 */
bit crossed;     /* daemon 1 had an extension in flight between the UNLOCK and its answer */

bit pending_release; /* PENDING_GRANTED: a release of OURS for master 2, not sent yet */

/* True time for which the holder of the token still believes that it holds the lock. */
unsigned ours : 2;
unsigned theirs : 2;

/* Temporary variables of one step, 0 between steps. */
byte its, it_said, i;

#define said(d, n) ((n) == 0 -> round[d].said_0 : ((n) == 1 -> round[d].said_1 : round[d].said_2))

#define count(d, what) \
    ((round[d].said_0 == (what)) + (round[d].said_1 == (what)) + (round[d].said_2 == (what)))

inline note(d, n, what)
{
    if
    :: n == 0 -> round[d].said_0 = what
    :: n == 1 -> round[d].said_1 = what
    :: else -> round[d].said_2 = what
    fi
}

inline rest(d)
{
    round[d].phase = IDLE;
    round[d].age = 0;
    round[d].ttl = 0;
    round[d].granted = 0;
    round[d].late = 0;
    round[d].said_0 = NOTHING;
    round[d].said_1 = NOTHING;
    round[d].said_2 = NOTHING
}

/* A link on which an earlier EXTEND is unanswered is SUSPECT here: a new round does not use it. */
#define may_ask(d, n) (!(wire_to(d, n)??[EXTEND, _]))

inline ask(d, n, command)
{
    if
    :: may_ask(d, n) ->
        wire_to(d, n)!command, round[d].ttl;
        note(d, n, PENDING)
    :: else
    fi
}

inline begin(d, command)
{
    round[d].phase = VOTING;
    round[d].number++;
    ask(d, 0, command);
    ask(d, 1, command);
    ask(d, 2, command)
}

/* --- extensions --- */

#ifdef BACKFILL_RELEASED
#define may_backfill(d) true
#else
#define may_backfill(d) (!((d) == 0 && releasing))
#endif

/* Write the key where it was absent, with the remaining TTL. */
inline backfill_on(d, n)
{
    if
    :: said(d, n) == ABSENT && may_backfill(d) && round[d].ttl > round[d].age ->
        wire_to(d, n)!BACKFILL, round[d].ttl - round[d].age;
        note(d, n, NOTHING)
    :: else
    fi
}

inline backfill(d)
{
    backfill_on(d, 0);
    backfill_on(d, 1);
    backfill_on(d, 2)
}

/* The client receives OK, and relies on the new validity unless it has sent UNLOCK. */
inline promise(d)
{
    printf("daemon %d: the extension is answered OK, for %d\n", d, round[d].ttl - round[d].age);
#ifdef MAY_CROSS
    claim(!round[d].late, "BACK AFTER ITS RELEASE\n");
#else
    claim(!round[d].late || crossed, "BACK AFTER ITS RELEASE\n");
#endif
#ifdef SEE_BACKFILLED
    claim(round[d].said_2 != YES, "SEEN\n");
#endif
    round[d].granted = 1;
    if
    :: !releasing && ours < round[d].ttl - round[d].age -> ours = round[d].ttl - round[d].age
    :: else
    fi;
    claim(ours == 0 || theirs == 0, "TWO HOLDERS\n")
}

inline decide_extend(d)
{
    if
    :: !round[d].granted && count(d, YES) >= QUORUM && round[d].age < round[d].ttl -> promise(d)
    :: else
    fi;
#ifdef BACKFILL_FIRST
    backfill(d);
#else
    if
    :: round[d].granted -> backfill(d)
    :: else
    fi;
#endif
    if
    :: !round[d].granted && count(d, ABSENT) + count(d, HELD) > NODES - QUORUM ->
        printf("daemon %d: the extension is answered GONE\n", d);
        claim(ours == 0, "GONE WHILE IT IS HELD\n");
        rest(d)
    :: round[d].phase == VOTING && count(d, PENDING) == 0 ->
        rest(d)
    :: else
    fi
}

inline begin_extend(d, time_to_live)
{
    printf("daemon %d: extends, by %d\n", d, time_to_live);
    round[d].ttl = time_to_live;
    round[d].late = is_released;
    crossed = crossed || (releasing && !is_released);
    begin(d, EXTEND)
}

/* Daemon 1 has a round in flight, or a command to master n that is not executed yet. */
#define is_under_way(n) (round[1].phase == VOTING || len(wire_to(1, n)) > 0)

inline unlock()
{
    printf("daemon 0: UNLOCK\n");
    releasing = 1;
    ours = 0;
    crossed = is_under_way(0) || is_under_way(1) || is_under_way(2);
    wire_to(0, 0)!RELEASE, 0;
    wire_to(0, 1)!RELEASE, 0;
    wire_to(0, 2)!RELEASE, 0
}

#define may_begin(d) (round[d].phase == IDLE && round[d].number < rounds_of(d))

proctype extender(byte d)
{
    do
    :: d_step { may_begin(d) && !(d == 0 && releasing) -> begin_extend(d, TTL) }
#ifndef NO_SHORT
    :: d_step { may_begin(d) && !(d == 0 && releasing) -> begin_extend(d, SHORT_TTL) }
#endif
#ifndef NO_RELEASE
    :: d_step { d == 0 && !releasing -> unlock() }
#endif
    /* The round times out. */
    :: d_step { round[d].phase == VOTING -> rest(d) }
    od
}

/* --- another client --- */

inline undo_on(d, n)
{
    if
    :: said(d, n) != NOTHING -> wire_to(d, n)!RELEASE, 0
    :: else
    fi
}

inline undo(d)
{
    undo_on(d, 0);
    undo_on(d, 1);
    undo_on(d, 2);
    rest(d)
}

inline decide_acquire(d)
{
    if
    :: count(d, YES) >= QUORUM ->
        theirs = TTL - round[d].age;
        printf("daemon %d: GRANTED to another client, for %d\n", d, theirs);
        claim(ours == 0, "TWO HOLDERS\n");
        rest(d)
    :: count(d, YES) + count(d, PENDING) < QUORUM -> undo(d)
    :: else
    fi
}

inline begin_acquire(d)
{
    printf("daemon %d: begins to acquire\n", d);
    round[d].ttl = TTL;
    begin(d, SET)
}

#ifndef NO_RIVAL
proctype rival()
{
    do
    :: d_step { may_begin(2) -> begin_acquire(2) }
    :: d_step { round[2].phase == VOTING -> undo(2) }
    od
}
#endif

/* --- a master --- */

#define has_vote(n) ((n) != FORGETS || quarantine == 0)

#ifdef COUNT_UNGUARDED
#define counts_yes(n) true
#else
#define counts_yes(n) has_vote(n)
#endif
#ifdef DENY_UNGUARDED
#define counts_denial(n) true
#else
#define counts_denial(n) has_vote(n)
#endif

inline put(n, token, time_to_live)
{
    node[n].key = token;
    node[n].left = time_to_live
}

inline execute_extend(d, n, time_to_live)
{
    if
    :: node[n].key == OURS ->
#ifdef SHORTENS
        node[n].left = time_to_live;
#else
        if
        :: node[n].left < time_to_live -> node[n].left = time_to_live
        :: else
        fi;
#endif
        it_said = (counts_yes(n) -> YES : NOTHING)
    :: node[n].key == FREE -> it_said = (counts_denial(n) -> ABSENT : NOTHING)
    :: else -> it_said = (counts_denial(n) -> HELD : NOTHING)
    fi;
    printf("    master %d: EXTEND of daemon %d: %d\n", n, d, it_said);
    if
    :: said(d, n) == PENDING ->
        note(d, n, it_said);
        decide_extend(d)
    :: else
    fi
}

inline execute_set(d, n)
{
    if
    :: node[n].key == FREE ->
        put(n, THEIRS, TTL);
        it_said = (has_vote(n) -> YES : NOTHING)
    :: else -> it_said = (has_vote(n) -> HELD : NOTHING)
    fi;
    printf("    master %d: SET of daemon %d: %d\n", n, d, it_said);
    if
    :: said(d, n) == PENDING ->
        note(d, n, it_said);
        decide_acquire(d)
    :: else
    fi
}

inline execute_backfill(d, n, time_to_live)
{
    if
    :: node[n].key == FREE ->
        printf("    master %d: daemon %d backfills the key\n", n, d);
        claim(d != 0 || !done[n], "LEFT BEHIND\n");
        put(n, OURS, time_to_live)
    :: else
    fi
}

inline execute_release(d, n)
{
    if
    :: d == 0 -> done[n] = 1
    :: else
    fi;
    if
    :: node[n].key == (d == 0 -> OURS : THEIRS) ->
        printf("    master %d: releases the token of daemon %d\n", n, d);
        put(n, FREE, 0);
        if
        :: d == 0 -> deleted++
        :: else
        fi
    :: else
    fi
}

#define COMMANDS_OF(d) \
    :: d_step { \
        wire_to(d, n)?EXTEND, its -> \
            execute_extend(d, n, its); \
            it_said = 0; \
            its = 0 \
       } \
    :: d_step { \
        wire_to(d, n)?BACKFILL, its -> \
            execute_backfill(d, n, its); \
            its = 0 \
       } \
    :: d_step { wire_to(d, n)?RELEASE, _ -> execute_release(d, n) }

proctype master(byte n)
{
    do
    COMMANDS_OF(0)
    COMMANDS_OF(1)
    :: d_step {
        wire_to(2, n)?SET, _ ->
            execute_set(2, n);
            it_said = 0
       }
    :: d_step { wire_to(2, n)?RELEASE, _ -> execute_release(2, n) }
    od
}

/* --- time and faults --- */

inline less(what)
{
    what = (what > 0 -> what - 1 : 0)
}

inline grow_old(d)
{
    if
    :: round[d].phase == IDLE
    :: round[d].phase == VOTING && round[d].age < NODE_TIMEOUT -> round[d].age++
    :: else ->
        if
        :: d == 2 -> undo(d)
        :: else -> rest(d)
        fi
    fi
}

proctype time()
{
    do
    :: d_step {
        printf("-- tick\n");
        for (i : 0 .. NODES - 1) {
            less(node[i].left);
            if
            :: node[i].left == 0 -> node[i].key = FREE
            :: else
            fi
        }
        i = 0;
        less(quarantine);
        less(saved);
        less(ours);
        less(theirs);
        grow_old(0);
        grow_old(1);
        grow_old(2)
       }
    od
}

/* Commands that the master has not executed are lost with its connections. */
inline cut(d)
{
    do
    :: len(wire_to(d, FORGETS)) > 0 -> wire_to(d, FORGETS)?_, _
    :: else -> break
    od;
    if
    :: said(d, FORGETS) == PENDING -> note(d, FORGETS, NOTHING)
    :: else
    fi
}

proctype fault()
{
    do
#ifndef NO_FORGET
    :: d_step {
        !forgot ->
            printf("    master %d: flushed\n", FORGETS);
            forgot = 1;
            saved = 0;
            quarantine = QUARANTINE;
            put(FORGETS, FREE, 0)
       }
#endif
#ifndef NO_SNAPSHOT
    :: d_step {
        !forgot && !has_saved && node[FORGETS].key == OURS ->
            has_saved = 1;
            saved = node[FORGETS].left
       }
    :: d_step {
        !forgot && has_saved ->
            printf("    master %d: restarted from its snapshot\n", FORGETS);
            forgot = 1;
            quarantine = QUARANTINE;
            put(FORGETS, (saved > 0 -> OURS : FREE), saved);
            saved = 0;
            cut(0);
            cut(1);
            cut(2)
       }
#endif
#ifdef PENDING_GRANTED
    :: d_step {
        pending_release ->
            pending_release = 0;
            if
            :: node[2].key == OURS ->
                printf("    master 2: a pending release\n");
                put(2, FREE, 0)
            :: else
            fi
       }
#endif
    :: false
    od
}

init
{
    d_step {
        put(0, OURS, TTL);
        put(1, OURS, TTL);
        ours = TTL;
        pending_release = 1
    }
    atomic {
        run extender(0);
        run extender(1);
#ifndef NO_RIVAL
        run rival();
#endif
        run master(0);
        run master(1);
        run master(2);
        run time();
        run fault()
    }
}
