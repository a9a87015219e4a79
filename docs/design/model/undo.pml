/*
 * The leftovers of rounds: late commands, undone rounds, a lost connection, pending releases.
 *
 * The claims:
 *
 *     no two daemons hold the lock at once;
 *     no release takes a key away from a lock that is held;
 *     once daemon 0 has finished with a token on master 0, the key there never holds it again.
 *
 *     here                            in the code
 *     begin_round, decide, undo       engine/round/round.c: on_start, decide_acquire, undo, backfill
 *     unlock                          the release round of an UNLOCK
 *     release, send_pending_releases  write_command, write_defer_release in engine/flight/write.c;
 *                                     engine/master/pending_releases.h, link.c
 *     lose, reconnect                 link_on_closed, greet_second, on_greeted in engine/master/link.c;
 *                                     fail_lost in engine/flight/replies.c
 *     SET, RELEASE, KILL              SET NX PX; release.lua; CLIENT KILL ID
 *
 * There is no time here. A message may take for ever. A key may expire at any moment, unless its
 * token is that of a round in flight or of a held lock. A validity may end at any moment. No master
 * loses data; guard.pml covers that. Only the connection of daemon 0 to master 0 has faults: it is
 * lost once, and master 0 refuses one release. To remove a rule, define one of
 *
 *     REUSE_TOKEN        all rounds of a daemon share a token
 *     NO_KILL            a new connection does not kill the old one
 *     NO_UNDO            a failed round releases nothing
 *     UNDO_ELSEWHERE     releases go over another connection, where they can overtake the SET
 *     PENDING_UNDECIDED  a lost SET gets a pending release before its round is decided
 *
 * MAY_REST leaves out the third claim, HOLDERS_ONLY the second and the third. With SEE_DEFERRED,
 * the grant of token 2 is an error if master 0 has token 2, the connection was lost, a release was
 * refused, and master 0 has nevertheless confirmed the release of token 1. This shows that such
 * grants occur.
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

/* The number of rounds of each daemon. */
#ifndef ROUNDS_0
#define ROUNDS_0 2
#endif
#ifndef ROUNDS_1
#define ROUNDS_1 1
#endif
#define rounds_of(d) ((d) == 0 -> ROUNDS_0 : ROUNDS_1)

/* Tokens are numbers from 1, those of daemon 0 first. */
#define TOKENS (ROUNDS_0 + ROUNDS_1)
#define FREE   0
#ifdef REUSE_TOKEN
#define token_of(d, r) (1 + (d) * ROUNDS_0)
#else
#define token_of(d, r) (1 + (d) * ROUNDS_0 + (r))
#endif

/* --- the masters, and the connections to them --- */

byte key[NODES];

mtype = { SET, RELEASE, KILL };

/* Commands that a daemon has written and the master has not executed. Redis executes them in order,
 * each in one step. */
chan wire[2 * NODES] = [5] of { mtype, byte };
#define wire_to(d, n) wire[(d) * NODES + (n)]

/* The state of the faulty connection. `old_connection` is the previous connection, from which the master
 * may still read; `elsewhere` is another connection, for UNDO_ELSEWHERE; `answers` are the replies in
 * flight. The variables after them are what the daemon knows. */
chan old_connection = [5] of { mtype, byte };
chan elsewhere = [2] of { mtype, byte };
chan answers = [5] of { byte, byte };
#define YES      1 /* reply to SET */
#define NO       2
#define RELEASED 3
#define BUSY     4 /* reply to RELEASE: an error, not executed */

#define is_faulty(d, n) ((d) == 0 && (n) == 0)

bit down;
bit lost;    /* one loss per run */
bit refused; /* one refusal per run */
bit releasing[ROUNDS_0 + 1]; /* the release of an undo or UNLOCK is in flight */
bit pending_release[ROUNDS_0 + 1];
bit released_sent[ROUNDS_0 + 1]; /* the pending release is in flight */
bit finished[ROUNDS_0 + 1]; /* the daemon has finished with the token on master 0 */

/* --- the daemons --- */

#define IDLE    0
#define VOTING  1
#define HOLDING 2

typedef round_state {
    unsigned phase : 2;
    unsigned number : 3; /* number of rounds begun */
    unsigned token : 4;
    unsigned yes : 2
};
round_state round[2];

typedef vote_state {
    bit asked;
    bit pending;
    bit held /* the master answered that another token holds the key */
};
vote_state vote[2 * NODES];
#define vote_of(d, n) vote[(d) * NODES + (n)]

/* Temporary variables of one step, 0 between steps. */
byte it_said, its, mine, i;

/* --- the daemon: releases --- */

#if defined(MAY_REST) || defined(HOLDERS_ONLY)
#define is_finished(t) false
#else
#define is_finished(t) ((t) <= ROUNDS_0 && finished[t])
#endif
#ifdef HOLDERS_ONLY
#define is_held(d, t) false
#else
#define is_held(d, t) (round[d].phase == HOLDING && round[d].token == (t))
#endif

inline finish(t)
{
    finished[t] = 1;
    claim(!is_finished(t) || key[0] != t, "LEFT BEHIND\n")
}

inline add_pending_release(t)
{
    pending_release[t] = 1
}

inline send_pending_releases()
{
    for (i : 1 .. ROUNDS_0) {
        if
        :: pending_release[i] && !released_sent[i] ->
            wire_to(0, 0)!RELEASE, i;
            released_sent[i] = 1
        :: else
        fi
    }
    i = 0
}

inline release(d, n, t)
{
    if
    :: is_faulty(d, n) && down -> add_pending_release(t)
#ifdef UNDO_ELSEWHERE
    :: is_faulty(d, n) && !down ->
        elsewhere!RELEASE, t;
        releasing[t] = 1
#else
    :: is_faulty(d, n) && !down ->
        wire_to(d, n)!RELEASE, t;
        releasing[t] = 1
#endif
    :: !is_faulty(d, n) && (len(wire_to(d, n)) > 0 || key[n] == t) -> wire_to(d, n)!RELEASE, t
    :: else /* already sent, and the release will find nothing */
    fi
}

/* --- the daemon: its round --- */

inline forget_vote(d, n)
{
    vote_of(d, n).asked = 0;
    vote_of(d, n).pending = 0;
    vote_of(d, n).held = 0
}

inline undo_on(d, n)
{
    if
    :: vote_of(d, n).asked ->
        mine = round[d].token;
#ifndef NO_UNDO
        release(d, n, mine);
#else
        if
        :: is_faulty(d, n) -> finish(mine)
        :: else
        fi;
#endif
        mine = 0
    :: else
    fi;
    forget_vote(d, n)
}

inline rest(d)
{
    round[d].phase = IDLE;
    round[d].token = 0;
    round[d].yes = 0
}

inline undo(d)
{
    printf("daemon %d: round %d fails\n", d, round[d].number);
    undo_on(d, 0);
    undo_on(d, 1);
    undo_on(d, 2);
    rest(d)
}

/* On a master that answered that another token holds the key, that token may be gone by now. So the
 * daemon writes its key there if the link is up. */
inline backfill_on(d, n)
{
    if
    :: vote_of(d, n).held && !(is_faulty(d, n) && down) -> wire_to(d, n)!SET, round[d].token
    :: else
    fi;
    forget_vote(d, n)
}

inline grant(d)
{
    printf("daemon %d: GRANTED token %d\n", d, round[d].token);
    claim(round[1 - d].phase != HOLDING, "TWO HOLDERS\n");
#ifdef SEE_DEFERRED
    claim(!lost || !refused || !finished[1] || key[0] != 2 || round[d].token != 2, "SEEN\n");
#endif
    round[d].phase = HOLDING;
    round[d].yes = 0;
    backfill_on(d, 0);
    backfill_on(d, 1);
    backfill_on(d, 2)
}

#define still_pending(d) (vote_of(d, 0).pending + vote_of(d, 1).pending + vote_of(d, 2).pending)

inline decide(d)
{
    if
    :: round[d].phase == VOTING && round[d].yes >= QUORUM -> grant(d)
    :: round[d].phase == VOTING && round[d].yes + still_pending(d) < QUORUM -> undo(d)
    :: else
    fi
}

inline take_vote(d, n, t, what)
{
    if
    :: vote_of(d, n).pending && t == round[d].token ->
        vote_of(d, n).pending = 0;
        if
        :: what == YES -> round[d].yes++
        :: what == NO -> vote_of(d, n).held = 1
        :: else
        fi;
        decide(d)
    :: else /* a late reply, or a backfill */
    fi
}

/* A link with an unexecuted SET is SUSPECT here, and so is the faulty connection if a reply is in
 * flight: a new round does not use them. */
#define may_ask(d, n) \
    (!(is_faulty(d, n) && (down || len(answers) > 0)) && !(wire_to(d, n)??[SET, _]))

inline ask(d, n)
{
    if
    :: may_ask(d, n) ->
        vote_of(d, n).asked = 1;
        vote_of(d, n).pending = 1;
        wire_to(d, n)!SET, round[d].token
    :: else
    fi
}

inline begin_round(d)
{
    round[d].token = token_of(d, round[d].number);
    round[d].number++;
    round[d].phase = VOTING;
    printf("daemon %d: begins round %d, token %d\n", d, round[d].number, round[d].token);
    ask(d, 0);
    ask(d, 1);
    ask(d, 2)
}

inline unlock(d)
{
    printf("daemon %d: UNLOCK\n", d);
    mine = round[d].token;
    release(d, 0, mine);
    release(d, 1, mine);
    release(d, 2, mine);
    mine = 0;
    rest(d)
}

#define has_quorum(d) (may_ask(d, 0) + may_ask(d, 1) + may_ask(d, 2) >= QUORUM)

proctype daemon(byte d)
{
    do
    :: d_step {
        round[d].phase == IDLE && round[d].number < rounds_of(d) && has_quorum(d) -> begin_round(d)
       }
    /* The round times out, or the client is gone. */
    :: d_step { round[d].phase == VOTING -> undo(d) }
    :: d_step { round[d].phase == HOLDING -> unlock(d) }
    /* The validity has ended. */
    :: d_step {
        round[d].phase == HOLDING ->
            printf("daemon %d: its lock has ended\n", d);
            rest(d)
       }
    od
}

/* --- the faulty connection --- */

inline take_answer()
{
    answers?it_said, its;
    if
    :: it_said == RELEASED ->
        releasing[its] = 0;
        pending_release[its] = 0;
        released_sent[its] = 0;
        finish(its)
    :: it_said == BUSY ->
        releasing[its] = 0;
        released_sent[its] = 0;
        add_pending_release(its)
    :: else -> take_vote(0, 0, its, it_said)
    fi;
    it_said = 0;
    its = 0
}

/* The master may still read commands that were written on the lost connection. The daemon receives
 * no more replies over it. */
inline lose()
{
    printf("daemon 0: loses its connection to master 0\n");
    lost = 1;
    down = 1;
    do
    :: len(wire_to(0, 0)) > 0 ->
        if
        :: wire_to(0, 0)?SET, its -> old_connection!SET, its
        :: wire_to(0, 0)?RELEASE, its -> old_connection!RELEASE, its
        fi
    :: else -> break
    od;
    do
    :: len(answers) > 0 -> answers?_, _
    :: else -> break
    od;
    its = 0;
    for (i : 1 .. ROUNDS_0) {
        pending_release[i] = pending_release[i] || releasing[i];
        released_sent[i] = 0;
        releasing[i] = 0
    }
    i = 0;
    if
    :: vote_of(0, 0).pending ->
#ifdef PENDING_UNDECIDED
        pending_release[round[0].token] = 1;
#endif
        vote_of(0, 0).pending = 0;
        decide(0)
    :: else
    fi
}

/* First the old connection is killed, then pending releases are sent, then anything else. */
inline reconnect()
{
    printf("daemon 0: connects to master 0 again\n");
    down = 0;
#ifndef NO_KILL
    wire_to(0, 0)!KILL, 0;
#endif
    send_pending_releases()
}

#define is_unsent_release(t) (pending_release[t] && !released_sent[t])
#if ROUNDS_0 == 2
#define any_unsent_release (is_unsent_release(1) || is_unsent_release(2))
#else
#define any_unsent_release (is_unsent_release(1) || is_unsent_release(2) || is_unsent_release(3))
#endif

proctype faulty_link()
{
    do
    :: d_step { len(answers) > 0 -> take_answer() }
    :: d_step { !lost -> lose() }
    :: d_step { down -> reconnect() }
    :: d_step { !down && any_unsent_release -> send_pending_releases() }
    od
}

/* --- a master --- */

inline execute_set(d, n, t)
{
    if
    :: key[n] == FREE ->
        claim(!is_faulty(d, n) || !is_finished(t), "LEFT BEHIND\n");
        key[n] = t;
        it_said = YES
    :: else -> it_said = NO
    fi;
    printf("    master %d: SET token %d: %d\n", n, t, it_said == YES)
}

inline execute_release(n, t)
{
    if
    :: key[n] == t ->
        printf("    master %d: releases token %d\n", n, t);
        claim(!is_held(0, t) && !is_held(1, t), "TAKEN FROM A HOLDER\n");
        key[n] = FREE
    :: else
    fi
}

#define COMMANDS_OF(d) \
    :: d_step { \
        wire_to(d, n)?SET, its -> \
            execute_set(d, n, its); \
            if \
            :: is_faulty(d, n) -> answers!it_said, its \
            :: else -> take_vote(d, n, its, it_said) \
            fi; \
            it_said = 0; \
            its = 0 \
       } \
    :: d_step { \
        wire_to(d, n)?RELEASE, its -> \
            execute_release(n, its); \
            if \
            :: is_faulty(d, n) -> answers!RELEASED, its \
            :: else \
            fi; \
            its = 0 \
       }

proctype master(byte n)
{
    do
    COMMANDS_OF(0)
    COMMANDS_OF(1)
    od
}

/* The other actions of master 0 for the faulty connection. */
proctype faulty_master()
{
    do
    :: d_step {
        wire_to(0, 0)?KILL, _ ->
            printf("    master 0: kills the connection before\n");
            do
            :: len(old_connection) > 0 -> old_connection?_, _
            :: else -> break
            od
       }
    :: d_step {
        old_connection?SET, its ->
            printf("    master 0: reads from the connection before\n");
            execute_set(0, 0, its);
            it_said = 0;
            its = 0
       }
    :: d_step {
        old_connection?RELEASE, its ->
            printf("    master 0: reads from the connection before\n");
            execute_release(0, its);
            its = 0
       }
    :: d_step {
        elsewhere?RELEASE, its ->
            execute_release(0, its);
            answers!RELEASED, its;
            its = 0
       }
    :: d_step {
        !refused && wire_to(0, 0)?[RELEASE, _] ->
            wire_to(0, 0)?RELEASE, its;
            printf("    master 0: busy, does not release token %d\n", its);
            refused = 1;
            answers!BUSY, its;
            its = 0
       }
    od
}

/* --- expiry of keys --- */

#define is_relied_on(t) \
    ((round[0].phase != IDLE && round[0].token == (t)) || \
     (round[1].phase != IDLE && round[1].token == (t)))

#define may_end(n) (key[n] != FREE && !is_relied_on(key[n]))

proctype time_to_live()
{
    do
    :: d_step { may_end(0) -> key[0] = FREE }
    :: d_step { may_end(1) -> key[1] = FREE }
    :: d_step { may_end(2) -> key[2] = FREE }
    od
}

init
{
    atomic {
        run daemon(0);
        run daemon(1);
        run faulty_link();
        run master(0);
        run master(1);
        run master(2);
        run faulty_master();
        run time_to_live()
    }
}
