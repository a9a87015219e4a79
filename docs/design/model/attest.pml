/*
 * Clock attestations: which daemon may trust the clock of a master that steps.
 *
 * The claim: if a step of the clock makes a key end early, no daemon counts a vote of the master
 * for another client while the holder of that key still believes in it.
 *
 *     here                            in the code
 *     sample, has_stepped             clock_monitor_take in engine/guard/clock_monitor.c;
 *                                     clock_on_sample in clock_trust.c
 *     start                           guard_on_connected; the first sample: clock_monitor.c
 *     attest, trust                   clock_describe, clock_inherit; protocol/heartbeat.lua
 *     wait == 0, in daemon()          the daemon has monitored the clock for QUARANTINE
 *     grant, rival                    a vote, and the probe after it
 *
 * There is one master. Its clock steps forward, by less than a clock monitor can see or by more,
 * and once steps back by one tick. Daemon 0 has monitored the clock from the beginning, and grants
 * a lock. The other daemons start at any time. When the key has ended, any daemon can count the
 * vote for another client (rival() below). The vote of this master alone makes that client a
 * holder, as if other masters had already voted for it. The floor of a daemon is the lowest offset
 * that the clock may have had, as far as the daemon knows. To remove a rule, define one of
 *
 *     COUNT_UNTRUSTED a daemon counts votes from its first sample on, before it trusts the clock
 *     EARLY_SAMPLE    an attestation counts although its sample is older than the newcomer's own
 *                     first sample
 *     ANY_ATTESTS     a daemon attests a clock that it does not trust yet
 *     FRESH_FLOOR     a newcomer that trusts an attestation keeps the floor of its own first
 *                     sample, as if no step had been hidden from the attesting daemon
 *     RAISE_FLOOR     after a step back, a daemon takes the present offset for its floor, even if
 *                     its floor was lower
 *
 * The SEE_ definitions turn an event into an error, to show that the event occurs. The event of
 * SEE_ATTESTED: a daemon sees a step only because of the floor that it inherited. The event of
 * SEE_CHAIN: a vote counts because of the attestation of a daemon that itself trusts the clock only
 * by an attestation.
 */

#define DAEMONS 3 /* daemon 0 has monitored the clock for long; 1 and 2 are newcomers */

#define claim(condition, otherwise) \
    if \
    :: (condition) \
    :: else -> \
        printf(otherwise); \
        assert(false) \
    fi

/* Times are in ticks. A clock monitor sees no step while the clock is at most SHARE above its
 * floor. Each validity is MARGIN shorter than the TTL. */
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

byte clock;             /* ORIGIN plus the sum of all steps */
unsigned key_left : 3;  /* ticks on the master's clock until daemon 0's key ends; 0: free */
unsigned valid : 3;     /* true time for which the holder of that lock believes in it */
bit granted;

/* The last attestation on the master. */
bit attested;
byte attested_hidden;   /* how far the clock was above the floor of the attesting daemon */
bit attested_after[DAEMONS]; /* its sample is younger than the daemon's first sample */
bit attested_by_newcomer; /* by a daemon that trusts the clock by an attestation */

/* --- the daemons --- */

typedef monitor_state {
    bit begun;
    bit trusted;
    bit by_newcomer; /* inherited, from a daemon that had inherited its trust itself */
    bit inherited;   /* it trusts the clock by an attestation */
    byte floor;      /* the lowest offset that the clock may have had */
    /* Ticks until it has monitored the clock for QUARANTINE since its start or the last step that
     * it saw. */
    unsigned wait : 3;
};
monitor_state monitor[DAEMONS];

byte own_floor[DAEMONS]; /* the floor by the daemon's own samples alone; for SEE_ATTESTED */

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

/* A daemon that sees a step does not trust the clock for QUARANTINE. It also announces the step on
 * the master, which makes earlier attestations void. */
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
    /* Two daemons have no clock in common, so their floors cannot be compared. But this daemon took
     * its first sample before the attestation's sample. So steps that were hidden from the
     * attesting daemon can be hidden from this one as well, and it lowers its floor by them. */
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
 * which the probe sees at least as well as steps before the vote. */
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
    /* The daemon has monitored the clock for QUARANTINE. */
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

/* A real daemon cannot see a step forward that is undone before its next sample, so the model
 * leaves this case out: every daemon samples just before the step back. The loop stands for a
 * sample just after it, which lowers floors. The step makes earlier attestations void. */
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
