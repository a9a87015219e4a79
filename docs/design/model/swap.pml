/*
 * The hand-over: one script releases the old token and acquires the next one, while another daemon
 * acquires the lock, and a master loses its data.
 *
 * The claims:
 *
 *     no two clients believe at once, in true time, in the lock;
 *     once daemon 0 has finished with a token on a master, no key there ever holds it again.
 *
 *     here                            in the code
 *     begin, decide                   the shared rounds: decide_acquire, undo in engine/round/round.c;
 *                                     hand_over in engine/locks/waits.c
 *     execute_swap                    protocol/swap.lua
 *     quarantine                      the rules of guard.pml
 *
 * Daemon 0 has granted the lock with token OLD by the votes of masters 0 and 1. The holder has sent
 * UNLOCK, so no client believes in OLD any more. Daemon 0 hands the lock over with token NEXT.
 * If that fails, it undoes the hand-over. After a failed hand-over, or after the end of the new
 * lock, it starts one more round, with token AGAIN. Daemon 1 acquires the lock with token THEIRS.
 * To remove a rule, define one of
 *
 *     NO_COMPARE    the script replaces any token
 *     UNGUARDED     the swap of a master that lost its data counts as a vote
 *     KEEP_NEXT     a failed hand-over does not delete the new token
 *     KEEP_OLD      a failed hand-over does not delete the old token on masters that did not
 *                   answer the swap
 *     REUSE_TOKEN   the round after the hand-over has token NEXT instead of AGAIN
 *
 * The SEE_ definitions turn an event into an error, to show that the event occurs. The
 * event of SEE_HANDED_OVER: the hand-over is granted after the swap found no key on some master.
 * The event of SEE_RIVAL: daemon 1 is granted the lock while the hand-over is in flight and has the
 * vote of master 2.
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
#define TTL          2
#define NODE_TIMEOUT 1
#define QUARANTINE   TTL

/* --- the masters, and the connections to them --- */

#define FREE   0
#define OLD    1
#define NEXT   2
#define AGAIN  3
#define THEIRS 4
/* These tokens belong to no client. With KEEP_OLD or KEEP_NEXT, daemon 0 releases one of them in
 * place of OLD or NEXT. When the master executes that release, it has executed all earlier commands
 * of daemon 0. */
#define END_OF_OLD  5
#define END_OF_NEXT 6
#ifdef REUSE_TOKEN
#define token_again NEXT
#else
#define token_again AGAIN
#endif

typedef master_state {
    unsigned key : 3;
    unsigned left : 2 /* ticks until the key expires */
};
master_state node[NODES];

#define FORGETS 0
unsigned quarantine : 2; /* ticks until that master has a vote again */
bit forgot;              /* one loss per run */

/* The master whose connection to daemon 0 is lost, once, before the master executes the swap. */
#define LOSES 1
bit lost;

mtype = { SWAP, SET, RELEASE };

/* Commands that a daemon has written and the master has not executed, each with its token. Redis
 * executes them in order. In one step, the master executes a command and the daemon receives the
 * reply. */
chan wire[2 * NODES] = [6] of { mtype, byte };
#define wire_to(d, n) wire[(d) * NODES + (n)]

/* --- the daemons --- */

#define IDLE   0
#define VOTING 1

/* The reply of a master in the round. */
#define NOTHING  0 /* not asked, or the reply does not count */
#define PENDING  1
#define YES      2
#define ANSWERED 3 /* no vote, although the command was executed; after a SWAP, OLD is gone */

typedef round_state {
    bit phase;
    unsigned number : 2; /* number of rounds begun */
    unsigned token : 3;
    unsigned age : 2;
    unsigned said_0 : 2;
    unsigned said_1 : 2;
    unsigned said_2 : 2
};
round_state round[2];

/* Daemon 0 has finished with OLD, or with NEXT, on the master: all its commands about that token
 * are executed. */
bit done_old[NODES];
bit done_next[NODES];

unsigned ours : 2;   /* true time for which the next client of daemon 0 believes in the lock */
unsigned theirs : 2; /* true time for which the client of daemon 1 believes in the lock */

bit was_free; /* for SEE_HANDED_OVER: a swap found no key */

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
    round[d].token = FREE;
    round[d].age = 0;
    round[d].said_0 = NOTHING;
    round[d].said_1 = NOTHING;
    round[d].said_2 = NOTHING
}

inline ask(d, n, command)
{
    wire_to(d, n)!command, round[d].token;
    note(d, n, PENDING)
}

inline begin(d, command, its_token)
{
    round[d].phase = VOTING;
    round[d].number++;
    round[d].token = its_token;
    ask(d, 0, command);
    ask(d, 1, command);
    ask(d, 2, command)
}

/* --- undo --- */

#ifdef KEEP_NEXT
#define deletes_next false
#else
#define deletes_next true
#endif
#ifdef KEEP_OLD
#define deletes_old false
#else
#define deletes_old true
#endif

#define is_swap(d) ((d) == 0 && round[d].number == 1)

inline release_old(n)
{
    if
    :: deletes_old -> wire_to(0, n)!RELEASE, OLD
    :: else -> wire_to(0, n)!RELEASE, END_OF_OLD
    fi
}

/* Delete the new token wherever it was sent, and the old one wherever the swap was not answered. */
inline undo_on(d, n)
{
    if
    :: !is_swap(d) || deletes_next -> wire_to(d, n)!RELEASE, round[d].token
    :: else -> wire_to(d, n)!RELEASE, END_OF_NEXT
    fi;
    if
    :: is_swap(d) && said(d, n) != YES && said(d, n) != ANSWERED -> release_old(n)
    :: else
    fi
}

inline undo(d)
{
    printf("daemon %d: its round fails\n", d);
    undo_on(d, 0);
    undo_on(d, 1);
    undo_on(d, 2);
    rest(d)
}

/* --- rounds --- */

inline grant(d)
{
    printf("daemon %d: GRANTED token %d\n", d, round[d].token);
    if
    :: d == 0 ->
#ifdef SEE_HANDED_OVER
        claim(!is_swap(d) || !was_free, "SEEN\n");
#endif
        ours = TTL - round[d].age
    :: else ->
#ifdef SEE_RIVAL
        claim(round[0].phase != VOTING || !is_swap(0) || round[0].said_2 != YES, "SEEN\n");
#endif
        theirs = TTL - round[d].age
    fi;
    claim(ours == 0 || theirs == 0, "TWO HOLDERS\n");
    rest(d)
}

inline decide(d)
{
    if
    :: count(d, YES) >= QUORUM -> grant(d)
    :: count(d, YES) + count(d, PENDING) < QUORUM -> undo(d)
    :: else
    fi
}

proctype handing_over()
{
    do
    :: d_step {
        round[0].number == 0 ->
            printf("daemon 0: hands over\n");
            begin(0, SWAP, NEXT)
       }
    :: d_step {
        round[0].number == 1 && round[0].phase == IDLE && ours == 0 ->
            printf("daemon 0: asks again\n");
            begin(0, SET, token_again)
       }
    /* The round times out, or the client is gone. */
    :: d_step { round[0].phase == VOTING -> undo(0) }
    od
}

proctype rival()
{
    do
    :: d_step {
        round[1].number == 0 ->
            printf("daemon 1: begins to acquire\n");
            begin(1, SET, THEIRS)
       }
    :: d_step { round[1].phase == VOTING -> undo(1) }
    od
}

/* --- a master --- */

#define has_vote(n) ((n) != FORGETS || quarantine == 0)
#ifdef UNGUARDED
#define swap_counts(n) true
#else
#define swap_counts(n) has_vote(n)
#endif

inline put(n, its_token)
{
    claim(its_token != NEXT || !done_next[n], "LEFT BEHIND\n");
    node[n].key = its_token;
    node[n].left = TTL
}

#ifdef NO_COMPARE
#define replaces(n) true
#else
#define replaces(n) (node[n].key == OLD || node[n].key == FREE)
#endif

inline take_vote(d, n, its_token)
{
    if
    :: said(d, n) == PENDING && round[d].token == its_token ->
        note(d, n, it_said);
        decide(d)
    :: else /* a late reply */
    fi
}

/* After the script, the master does not hold OLD, whether or not it votes for the new token. */
inline execute_swap(d, n, its_token)
{
    done_old[n] = 1;
    if
    :: replaces(n) ->
        was_free = was_free || node[n].key == FREE;
        put(n, its_token);
        it_said = (swap_counts(n) -> YES : ANSWERED)
    :: else -> it_said = ANSWERED
    fi;
    printf("    master %d: SWAP: %d\n", n, it_said == YES);
    take_vote(d, n, its_token)
}

inline execute_set(d, n, its_token)
{
    if
    :: node[n].key == FREE ->
        put(n, its_token);
        it_said = (has_vote(n) -> YES : ANSWERED)
    :: else -> it_said = ANSWERED
    fi;
    printf("    master %d: SET token %d: %d\n", n, its_token, it_said == YES);
    take_vote(d, n, its_token)
}

inline clear(n)
{
    node[n].key = FREE;
    node[n].left = 0
}

inline execute_release(d, n, its_token)
{
    if
    :: node[n].key == its_token ->
        printf("    master %d: releases token %d\n", n, its_token);
        clear(n)
    :: else
    fi;
    if
    :: its_token == OLD || its_token == END_OF_OLD -> done_old[n] = 1
#ifndef REUSE_TOKEN
    :: its_token == NEXT || its_token == END_OF_NEXT -> done_next[n] = 1
#endif
    :: else
    fi
}

#define COMMANDS_OF(d) \
    :: d_step { \
        wire_to(d, n)?SET, its -> \
            execute_set(d, n, its); \
            it_said = 0; \
            its = 0 \
       } \
    :: d_step { \
        wire_to(d, n)?RELEASE, its -> \
            execute_release(d, n, its); \
            its = 0; \
            check_finished(n) \
       }

/* A token with which daemon 0 has finished on this master must not be the value of the key. */
inline check_finished(n)
{
    claim(!done_old[n] || node[n].key != OLD, "LEFT BEHIND\n");
    claim(!done_next[n] || node[n].key != NEXT, "LEFT BEHIND\n")
}

proctype master(byte n)
{
    do
    :: d_step {
        wire_to(0, n)?SWAP, its ->
            execute_swap(0, n, its);
            it_said = 0;
            its = 0;
            check_finished(n)
       }
    COMMANDS_OF(0)
    COMMANDS_OF(1)
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
    :: else -> undo(d)
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
        less(ours);
        less(theirs);
        grow_old(0);
        grow_old(1)
       }
    od
}

/* The swap is lost with its connection, and will not be executed. If the hand-over fails, the undo
 * releases OLD here, over the next connection. If the other masters have granted it, OLD still
 * has to be released here. */
inline lose()
{
    printf("    master %d: the swap is lost\n", LOSES);
    wire_to(0, LOSES)?SWAP, _;
    lost = 1;
    if
    :: round[0].phase == VOTING && is_swap(0) ->
        note(0, LOSES, NOTHING);
        decide(0)
    :: else ->
        if
        :: !(wire_to(0, LOSES)??[RELEASE, OLD]) && !(wire_to(0, LOSES)??[RELEASE, END_OF_OLD]) ->
            release_old(LOSES)
        :: else
        fi
    fi
}

proctype fault()
{
    do
    :: d_step {
        !forgot ->
            printf("    master %d: flushed\n", FORGETS);
            forgot = 1;
            quarantine = QUARANTINE;
            clear(FORGETS)
       }
    :: d_step { !lost && wire_to(0, LOSES)?[SWAP, _] -> lose() }
    od
}

init
{
    d_step {
        node[0].key = OLD;
        node[0].left = TTL;
        node[1].key = OLD;
        node[1].left = TTL
    }
    atomic {
        run handing_over();
        run rival();
        run master(0);
        run master(1);
        run master(2);
        run time();
        run fault()
    }
}
