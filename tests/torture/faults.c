#include "tests/torture/faults.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/e2e/waiting.h"

enum {
    STRIKE_EVERY_MS = 140, /* mean interval between two faults */
    PHASE_MS = 2500,       /* longest phase */
    MINORITY = 2,          /* masters that are the usual victims of a phase */
    AMBUSH_MIN_MS = 150,
    AMBUSH_MS = 500,
};

static const struct {
    const char *word;
    unsigned weight;
    bool loses_data;
    faults_action *strike;
} kinds[] = {
#define FAULT_ROW(name, word, weight, loses_data, text) {word, weight, loses_data, NULL},
    FAULTS(FAULT_ROW)
#undef FAULT_ROW
};

static faults_action *const strikes[] = {
    [FAULT_KILL] = strike_kill,       [FAULT_SNAPSHOT] = strike_snapshot,
    [FAULT_FLUSH] = strike_flush,     [FAULT_FAILOVER] = strike_failover,
    [FAULT_EVICT] = strike_evict,     [FAULT_STEP] = strike_step,
    [FAULT_STOP] = strike_stop,       [FAULT_CUT] = strike_cut,
    [FAULT_SCRIPTS] = strike_scripts, [FAULT_FULL] = strike_full,
    [FAULT_PROXY] = strike_proxy,     [FAULT_PARTITION] = strike_partition,
    [FAULT_CRASH] = strike_crash,     [FAULT_PAUSE] = strike_pause,
    [FAULT_TERM] = strike_term,
};

/* --- names --- */

const char *fault_word(enum fault fault)
{
    return kinds[fault].word;
}

static uint32_t bits_of(const char *word)
{
    if (strcmp(word, "all") == 0)
        return (UINT32_C(1) << FAULT_COUNT) - 1;
    for (unsigned i = 0; i < FAULT_COUNT; i++)
        if (strcmp(word, kinds[i].word) == 0)
            return UINT32_C(1) << i;
    return 0;
}

bool faults_parse(const char *words, uint32_t *faults, char wrong[32])
{
    char copy[256];
    char *rest = NULL;
    snprintf(copy, sizeof(copy), "%s", words);
    *faults = copy[0] == '-' ? bits_of("all") : 0;
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        bool without = word[0] == '-';
        uint32_t bits = bits_of(word + without);
        if (bits == 0 && strcmp(word, "none") != 0) {
            snprintf(wrong, 32, "%s", word);
            return false;
        }
        *faults = without ? *faults & ~bits : *faults | bits;
    }
    return true;
}

bool faults_lose_data(uint32_t faults, bool durable)
{
    if (durable)
        faults &= ~(1u << FAULT_KILL);
    for (unsigned i = 0; i < FAULT_COUNT; i++)
        if ((faults >> i & 1) != 0 && kinds[i].loses_data)
            return true;
    return false;
}

/* --- choosing --- */

unsigned faults_below(struct faults *faults, unsigned count)
{
    return prng_below(&faults->prng, count);
}

static unsigned weight(const struct faults *faults, unsigned kind, bool data_loss_only)
{
    bool enabled = (faults->torture->faults >> kind & 1) != 0;
    return enabled && (kinds[kind].loses_data || !data_loss_only) ? kinds[kind].weight : 0;
}

static unsigned choose_victim(struct faults *faults)
{
    if (faults_below(faults, 8) == 0)
        return faults_below(faults, STAGE_MASTERS);
    return (faults->first_victim + faults_below(faults, MINORITY)) % STAGE_MASTERS;
}

/* Choose one of the enabled faults; there is at least one. */
static enum fault choose_kind(struct faults *faults, bool data_loss_only)
{
    unsigned total = 0;
    for (unsigned kind = 0; kind < FAULT_COUNT; kind++)
        total += weight(faults, kind, data_loss_only);
    unsigned at = faults_below(faults, total);
    unsigned kind = 0;
    for (; at >= weight(faults, kind, data_loss_only); kind++)
        at -= weight(faults, kind, data_loss_only);
    return (enum fault)kind;
}

void faults_note(struct faults *faults, enum fault fault, const char *form, ...)
{
    char text[LEDGER_TEXT];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(text, sizeof(text), form, arguments);
    va_end(arguments);
    faults->counts[fault]++;
    ledger_broken(&faults->torture->ledger, kinds[fault].word, "%s: %s", kinds[fault].word, text);
}

/* --- actions --- */

void faults_later(struct faults *faults, unsigned in_ms, faults_action *action, unsigned victim)
{
    ck_assert_uint_lt(faults->later_count, FAULTS_LATER);
    faults->later[faults->later_count].at_ns = ledger_now_ns() + in_ms * NS_PER_MS;
    faults->later[faults->later_count].action = action;
    faults->later[faults->later_count].victim = victim;
    faults->later_count++;
}

static void run_due_actions(struct faults *faults, bool all)
{
    for (unsigned i = 0; i < faults->later_count;) {
        if (!all && faults->later[i].at_ns > ledger_now_ns()) {
            i++;
            continue;
        }
        faults_action *action = faults->later[i].action;
        unsigned victim = faults->later[i].victim;
        faults->later[i] = faults->later[--faults->later_count];
        action(faults, victim);
    }
}

static void lose_data(struct faults *faults, unsigned index)
{
    if (!faults->ending)
        strikes[choose_kind(faults, true)](faults, index);
}

/* An ambush: a minority of the masters hangs while the others can grant locks. At about the time
 * when the minority continues, a master loses its data: as a rule one of the others. No other fault
 * is drawn in this phase. */
static void begin_ambush(struct faults *faults, int64_t now_ns)
{
    unsigned ms = AMBUSH_MIN_MS + faults_below(faults, AMBUSH_MS);
    for (unsigned i = 0; i < MINORITY; i++)
        stop_for(faults, (faults->first_victim + i) % STAGE_MASTERS, ms);
    unsigned loser =
        (faults->first_victim + MINORITY + faults_below(faults, STAGE_MASTERS - MINORITY)) %
        STAGE_MASTERS;
    /* If the spare master has an old copy of some master, one ambush in three picks that master,
     * even if it is in the minority. A failover to the copy loses the recent locks but keeps the
     * guard's record, so no other loss of data is as hard to notice. */
    if (faults->spare_copy >= 0 && faults_below(faults, 3) == 0)
        loser = (unsigned)faults->spare_copy;
    faults_later(faults, ms - AMBUSH_MIN_MS + faults_below(faults, 2 * AMBUSH_MIN_MS), lose_data,
                 loser);
    faults->calm = true;
    faults->phase_until_ns = now_ns + (ms + AMBUSH_MS) * NS_PER_MS;
}

static void begin_phase(struct faults *faults, int64_t now_ns)
{
    uint32_t enabled = faults->torture->faults;
    faults->phase_until_ns = now_ns + faults_below(faults, PHASE_MS) * NS_PER_MS;
    faults->first_victim = faults_below(faults, STAGE_MASTERS);
    faults->calm = faults_below(faults, 6) == 0;
    if ((enabled >> FAULT_STOP & 1) != 0 && faults_lose_data(enabled, false) &&
        faults_below(faults, 2) == 0)
        begin_ambush(faults, now_ns);
}

void faults_init(struct faults *faults, struct torture *torture)
{
    memset(faults, 0, sizeof(*faults));
    faults->torture = torture;
    faults->prng.state = torture->seed * 4;
    faults->spare_copy = -1;
    for (unsigned i = 0; i < STAGE_MASTERS; i++)
        faults->masters[i].back = faults_below(faults, 2) == 0;
}

void faults_update(struct faults *faults)
{
    int64_t now_ns = ledger_now_ns();
    run_due_actions(faults, false);
    daemons_update(faults);
    if (now_ns >= faults->phase_until_ns)
        begin_phase(faults, now_ns);
    if (now_ns < faults->strike_ns || faults->torture->faults == 0)
        return;
    faults->strike_ns = now_ns + faults_below(faults, 2 * STRIKE_EVERY_MS) * NS_PER_MS;
    if (!faults->calm)
        strikes[choose_kind(faults, false)](faults, choose_victim(faults));
}

void faults_end(struct faults *faults)
{
    faults->ending = true;
    struct waiting waiting = waiting_for("the daemons to run again");
    while (faults->later_count > 0 || !daemons_run(faults)) {
        run_due_actions(faults, true);
        daemons_update(faults);
        waiting_pause(&waiting);
    }
    ledger_note(&faults->torture->ledger, "all faults have ended");
}
