/*
 * Clock attestations: which daemon may trust the clock of a master that steps.
 *
 * The claim: no daemon counts a vote that the master gives because a key ended early, while the
 * holder of that key still believes in it.
 *
 *     here                            in the code
 *     sample, has_stepped             clock_monitor_take in engine/guard/clock_monitor.c;
 *                                     clock_on_sample in clock_trust.c
 *     start                           guard_on_connected; the first sample: clock_monitor.c
 *     attest, trust                   clock_describe, clock_inherit; protocol/heartbeat.lua
 *     wait == 0, in daemon()          the daemon has monitored the clock for Q, and trusts it
 *     grant, rival                    a vote, and the probe after it
 *
 * There is one master. Its clock steps forward, by less than a monitor can see or by more. Daemon 0
 * has monitored it all along, and grants a lock. The other daemons start at any time. A rival needs
 * the vote of this master alone, as if another master had already voted for it. To remove a rule,
 * define one of
 *
 *     COUNT_UNTRUSTED a daemon counts votes from its first sample on
 *     EARLY_SAMPLE    an attestation counts although its sample is older than the newcomer's first
 *     ANY_ATTESTS     a daemon attests a clock that it does not trust yet
 *     FRESH_FLOOR     a newcomer that trusts an attestation monitors from its own first sample on, as
 *                     if no step had been hidden before
 *     RAISE_FLOOR     a daemon that sees the clock step back monitors from there on, in the same way
 *
 * The SEE_ definitions turn an event into an error, to show that the event occurs. With SEE_ATTESTED,
 * a daemon refuses a vote because of the floor that it inherited. With SEE_CHAIN, a vote counts by
 * the attestation of a daemon that relied on an attestation itself.
 */

#define DAEMONS 3 /* daemon 0 has monitored the clock for long; 1 and 2 are newcomers */

#define claim(condition, otherwise) \
    if \
    :: (condition) \
    :: else -> \
        printf(otherwise); \
        assert(false) \
    fi

/* Times are in ticks. A monitor misses steps within SHARE; each validity covers MARGIN. */
#define TTL        4
#define MARGIN     2
#define SHARE      2
#define QUARANTINE (TTL + MARGIN)

#ifndef SMALL_STEPS
#define SMALL_STEPS 2
#endif
#define LARGE_STEP TTL

#define ORIGIN (SHARE + 1) /* offset of the clock at the start, so that no floor is negative */

/* --- the master --- */

byte clock;             /* distance that the clock has stepped in all */
unsigned key_left : 3;  /* end of the lock that daemon 0 has granted, on the master's clock; 0: free */
unsigned valid : 3;     /* true time for which its holder believes in it */
bit granted;

/* The last attestation on the master. */
bit attested;
byte attested_hidden;   /* how far the clock was above the floor without any monitor seeing it */
bit attested_after[DAEMONS]; /* its sample is younger than that daemon's first sample */
bit attested_by_newcomer;

/* --- the daemons --- */

typedef monitor_state {
    bit begun;
    bit trusted;
    bit by_newcomer; /* trusted by a newcomer's attestation */
    bit inherited;
    byte floor;      /* the lowest offset that the clock may have had */
    unsigned wait : 3; /* ticks until it has monitored for Q, or until the quarantine ends */
};
monitor_state monitor[DAEMONS];

byte own_floor[DAEMONS]; /* the floor without what it inherited; for SEE_ATTESTED only */

/* Temporary variables of one step, 0 between steps. */
byte i;
bit steady;

#define has_stepped(d) (clock > monitor[d].floor + SHARE)

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

/* A step that the daemon sees costs the master its vote for Q. The daemon announces the step, which
 * makes earlier attestations void. */
inline sample(d)
{
    steady = !has_stepped(d);
    if
    :: !steady ->
        printf("daemon %d: the clock has stepped\n", d);
#ifdef SEE_ATTESTED
        claim(!monitor[d].inherited || clock > own_floor[d] + SHARE, "SEEN\n");
#endif
        monitor[d].trusted = 0;
        monitor[d].by_newcomer = 0;
        monitor[d].inherited = 0;
        monitor[d].floor = clock;
        own_floor[d] = clock;
        monitor[d].wait = QUARANTINE;
        void_attestation()
    :: else
    fi
}

inline start(d)
{
    printf("daemon %d: starts, with the clock at %d\n", d, clock);
    monitor[d].begun = 1;
    monitor[d].floor = clock;
    own_floor[d] = clock;
    monitor[d].wait = QUARANTINE;
    attested_after[d] = 0
}

#ifdef ANY_ATTESTS
#define may_attest(d) monitor[d].begun
#else
#define may_attest(d) (monitor[d].begun && monitor[d].trusted)
#endif

inline attest(d)
{
    sample(d);
    if
    :: steady ->
        printf("daemon %d: attests the clock at %d, floor %d\n", d, clock, monitor[d].floor);
        attested = 1;
        attested_hidden = clock - monitor[d].floor;
        attested_by_newcomer = monitor[d].inherited;
        for (i : 0 .. DAEMONS - 1) {
            attested_after[i] = monitor[i].begun
        }
        i = 0
    :: else
    fi;
    steady = 0
}

#ifdef EARLY_SAMPLE
#define may_trust(d) (attested && monitor[d].begun && !monitor[d].trusted)
#else
#define may_trust(d) (attested && attested_after[d] && monitor[d].begun && !monitor[d].trusted)
#endif

inline trust(d)
{
    printf("daemon %d: trusts the clock by an attestation\n", d);
    monitor[d].trusted = 1;
    monitor[d].inherited = 1;
    monitor[d].by_newcomer = attested_by_newcomer;
    monitor[d].wait = 0;
#ifndef FRESH_FLOOR
    /* Two daemons have no clock in common, so their floors cannot be compared. But this daemon
     * began before that sample, so a step that was hidden from the other daemon may be hidden from this
     * one as well. */
    monitor[d].floor = monitor[d].floor - attested_hidden
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

#ifdef COUNT_UNTRUSTED
#define may_count(d) monitor[d].begun
#else
#define may_count(d) (monitor[d].begun && monitor[d].trusted)
#endif

/* The vote and the probe after it are one step. This leaves out only clock steps between the two,
 * which the probe can only see better than earlier ones. */
inline rival(d)
{
    sample(d);
    if
    :: steady ->
        printf("daemon %d: counts the vote, the clock at %d, floor %d\n", d, clock, monitor[d].floor);
        claim(valid == 0, "TWO HOLDERS\n");
#ifdef SEE_CHAIN
        claim(!monitor[d].by_newcomer, "SEEN\n")
#endif
    :: else
    fi;
    steady = 0
}

proctype daemon(byte d)
{
    do
    :: d_step { !monitor[d].begun -> start(d) }
    :: d_step { may_attest(d) -> attest(d) }
    :: d_step { may_trust(d) -> trust(d) }
    /* The daemon has monitored the clock for Q. */
    :: d_step { monitor[d].begun && !monitor[d].trusted && monitor[d].wait == 0 -> monitor[d].trusted = 1 }
    :: d_step { d == 0 && !granted && monitor[0].trusted -> grant() }
    :: d_step { granted && key_left == 0 && may_count(d) -> rival(d) }
    od
}

/* --- time and faults --- */

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
            less(monitor[i].wait, 1)
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

inline sample_if_begun(d)
{
    if
    :: monitor[d].begun -> sample(d)
    :: else
    fi
}

/* Every daemon samples just before the step and just after it: no guard can see a step forward and
 * back between two samples. Earlier attestations are void. */
inline step_back()
{
    sample_if_begun(0);
    sample_if_begun(1);
    sample_if_begun(2);
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
        :: monitor[i].begun -> monitor[i].floor = clock
        :: else
        fi
#else
        if
        :: monitor[i].begun && clock < monitor[i].floor -> monitor[i].floor = clock
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
        monitor[0].begun = 1;
        monitor[0].trusted = 1;
        monitor[0].floor = ORIGIN;
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
