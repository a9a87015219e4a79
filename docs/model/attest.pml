/*
 * Clock attestations: which daemon may trust the clock of a master that steps.
 *
 * The claim: no daemon counts a vote that the master gives because a key ended early, while the
 * holder of that key still believes in it.
 *
 *     here                            in the code
 *     sample, has_stepped             engine/guard/clock_monitor.c: clock_monitor_take; clock_trust.c: clock_on_sample
 *     start                           guard_on_connected; the first sample: begin in clock_monitor.c
 *     attest, trust                   the attestation: clock_describe, clock_inherit; protocol/heartbeat.lua
 *     settle                          a daemon has watched for Q
 *     grant, rival                    a vote, and the probe behind it
 *
 * One master is looked at. Its clock steps forward, by what a watch cannot see or by more. Daemon 0
 * has watched it all along, and grants a lock. The other daemons start at any time. A rival lock
 * needs the vote of this master alone, as if another master had given its own. To take a rule away,
 * define one of
 *
 *     NO_SETTLING     a daemon counts votes from its first sample on
 *     EARLY_SAMPLE    an attestation counts also if its sample is older than the first of the newcomer
 *     ANY_ATTESTS     a daemon attests that is not settled itself
 *     FRESH_FLOOR     a newcomer settled by an attestation watches from its own first sample on, as
 *                     if nothing had been hidden before it
 *     RAISE_FLOOR     a daemon that sees the clock step back watches from there on, in the same way
 *
 * With SEE_ATTESTED there is an error once a daemon refuses a vote by what it inherited: to see that
 * it happens. With SEE_CHAIN, once a daemon counts a vote that was settled by one that was settled
 * so itself.
 */

#define DAEMONS 3 /* 0 has watched for long; 1 and 2 are newcomers */

#define claim(condition, otherwise) \
    if \
    :: (condition) \
    :: else -> \
        printf(otherwise); \
        assert(false) \
    fi

/* In ticks. A watch does not see what is hidden within SHARE; each validity pays MARGIN. */
#define TTL        4
#define MARGIN     2
#define SHARE      2
#define QUARANTINE (TTL + MARGIN)

#ifndef SMALL_STEPS
#define SMALL_STEPS 2
#endif
#define LARGE_STEP TTL

#define ORIGIN (SHARE + 1) /* of the clock, so that no floor is negative */

/* --- the master --- */

byte clock;             /* how far it has stepped in all */
unsigned key_left : 3;  /* of the lock that daemon 0 has granted, on the master's clock; 0: it is free */
unsigned valid : 3;     /* for how long, in true time, its holder believes in it */
bit granted;

/* What the last attestation says, as it is left on the master. */
bit attested;
byte attested_hidden;   /* how far the clock was above the floor, and no watch could see it */
bit attested_after[DAEMONS]; /* its sample is younger than the first one of that daemon */
bit attested_by_newcomer;

/* --- the daemons --- */

typedef watch_state {
    bit begun;
    bit settled;
    bit by_newcomer; /* settled by a newcomer's attestation */
    bit inherited;
    byte floor;      /* the lowest offset that the clock may have had */
    unsigned wait : 3; /* until it has watched for Q; after a step, until the quarantine is over */
};
watch_state watch[DAEMONS];

byte own_floor[DAEMONS]; /* that of its own samples; for SEE_ATTESTED alone */

/* For one step, 0 between steps. */
byte i;
bit steady;

#define has_stepped(d) (clock > watch[d].floor + SHARE)

inline void_attestation()
{
    attested = 0;
    attested_hidden = 0;
    attested_by_newcomer = 0;
    for (i : 0 .. DAEMONS - 1) {
        attested_after[i] = 0
    }
    i = 0
}

/* A step that is seen costs the vote for Q, and is told: what was attested before it is void. */
inline sample(d)
{
    steady = !has_stepped(d);
    if
    :: !steady ->
        printf("daemon %d: the clock has stepped\n", d);
#ifdef SEE_ATTESTED
        claim(!watch[d].inherited || clock > own_floor[d] + SHARE, "SEEN\n");
#endif
        watch[d].settled = 0;
        watch[d].by_newcomer = 0;
        watch[d].inherited = 0;
        watch[d].floor = clock;
        own_floor[d] = clock;
        watch[d].wait = QUARANTINE;
        void_attestation()
    :: else
    fi
}

inline start(d)
{
    printf("daemon %d: starts, with the clock at %d\n", d, clock);
    watch[d].begun = 1;
    watch[d].floor = clock;
    own_floor[d] = clock;
    watch[d].wait = QUARANTINE;
    attested_after[d] = 0
}

#ifdef ANY_ATTESTS
#define may_attest(d) watch[d].begun
#else
#define may_attest(d) (watch[d].begun && watch[d].settled)
#endif

inline attest(d)
{
    sample(d);
    if
    :: steady ->
        printf("daemon %d: attests the clock at %d, floor %d\n", d, clock, watch[d].floor);
        attested = 1;
        attested_hidden = clock - watch[d].floor;
        attested_by_newcomer = watch[d].inherited;
        for (i : 0 .. DAEMONS - 1) {
            attested_after[i] = watch[i].begun
        }
        i = 0
    :: else
    fi;
    steady = 0
}

#ifdef EARLY_SAMPLE
#define may_trust(d) (attested && watch[d].begun && !watch[d].settled)
#else
#define may_trust(d) (attested && attested_after[d] && watch[d].begun && !watch[d].settled)
#endif

inline trust(d)
{
    printf("daemon %d: is settled by an attestation\n", d);
    watch[d].settled = 1;
    watch[d].inherited = 1;
    watch[d].by_newcomer = attested_by_newcomer;
    watch[d].wait = 0;
#ifndef FRESH_FLOOR
    /* Two daemons have no clock in common, so their floors cannot be compared; but what was hidden
     * from one when it took its sample is hidden from the other, that began before. */
    watch[d].floor = watch[d].floor - attested_hidden
#endif
}

/* --- two locks --- */

inline grant()
{
    printf("daemon 0: GRANTED, with the clock at %d\n", clock);
    granted = 1;
    key_left = TTL;
    valid = TTL - MARGIN
}

#ifdef NO_SETTLING
#define may_count(d) watch[d].begun
#else
#define may_count(d) (watch[d].begun && watch[d].settled)
#endif

/* The vote, and the probe behind it, in one step: a step of the clock in between is seen rather. */
inline rival(d)
{
    sample(d);
    if
    :: steady ->
        printf("daemon %d: counts the vote, the clock at %d, floor %d\n", d, clock, watch[d].floor);
        claim(valid == 0, "TWO HOLDERS\n");
#ifdef SEE_CHAIN
        claim(!watch[d].by_newcomer, "SEEN\n")
#endif
    :: else
    fi;
    steady = 0
}

proctype daemon(byte d)
{
    do
    :: d_step { !watch[d].begun -> start(d) }
    :: d_step { may_attest(d) -> attest(d) }
    :: d_step { may_trust(d) -> trust(d) }
    /* It has watched for Q. */
    :: d_step { watch[d].begun && !watch[d].settled && watch[d].wait == 0 -> watch[d].settled = 1 }
    :: d_step { d == 0 && !granted && watch[0].settled -> grant() }
    :: d_step { granted && key_left == 0 && may_count(d) -> rival(d) }
    od
}

/* --- time, and what goes wrong --- */

inline less(what, ticks)
{
    what = (what > ticks -> what - ticks : 0)
}

proctype time()
{
    do
    :: d_step {
        printf("-- tick\n");
        less(key_left, 1);
        less(valid, 1);
        for (i : 0 .. DAEMONS - 1) {
            less(watch[i].wait, 1)
        }
        i = 0
       }
    od
}

inline step_clock(ticks)
{
    printf("    the clock steps by %d\n", ticks);
    clock = clock + ticks;
    less(key_left, ticks)
}

inline look(d)
{
    if
    :: watch[d].begun -> sample(d)
    :: else
    fi
}

/* Every daemon looks just before it and just after: forward and back between two looks is what no
 * guard sees. What was attested before it is void. */
inline step_back()
{
    look(0);
    look(1);
    look(2);
    steady = 0;
    printf("    the clock steps back by 1\n");
    clock--;
    if
    :: key_left > 0 -> key_left++
    :: else
    fi;
    for (i : 0 .. DAEMONS - 1) {
#ifdef RAISE_FLOOR
        if
        :: watch[i].begun -> watch[i].floor = clock
        :: else
        fi
#else
        if
        :: watch[i].begun && clock < watch[i].floor -> watch[i].floor = clock
        :: else
        fi
#endif
    }
    void_attestation()
}

proctype clock_fault()
{
    byte small;
    bit large;
    bit back;
    do
    :: d_step { !back && clock > ORIGIN - 1 -> back = 1; step_back() }
    :: d_step { small < SMALL_STEPS -> small++; step_clock(SHARE) }
    :: d_step { !large -> large = 1; step_clock(LARGE_STEP) }
    od
}

init
{
    d_step {
        clock = ORIGIN;
        watch[0].begun = 1;
        watch[0].settled = 1;
        watch[0].floor = ORIGIN;
        own_floor[0] = ORIGIN
    }
    atomic {
        run daemon(0);
        run daemon(1);
        run daemon(2);
        run time();
        run clock_fault()
    }
}
