#include "tests/torture/summary.h"

#include "protocol/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *commit(void)
{
    const char *words = getenv("TORTURE_COMMIT");
    return words != NULL && words[0] != '\0' ? words : "unknown";
}

static double seconds(int64_t ns)
{
    return (double)ns / (1000.0 * NS_PER_MS);
}

static void print_grants(const struct torture *torture)
{
    const struct ledger *ledger = &torture->ledger;
    uint64_t sum = 0;
    for (unsigned i = 0; i < TORTURE_DAEMONS; i++)
        sum += ledger->granted_by[i];
    printf("  grants        %" PRIu64 " by redlockd (", sum);
    for (unsigned i = 0; i < TORTURE_DAEMONS; i++)
        printf("%s%" PRIu64, i == 0 ? "" : ", ", ledger->granted_by[i]);
    printf("), %" PRIu64 " to foreign clients; %" PRIu64 " over before they were read\n",
           ledger->foreign_grants, ledger->late);
}

static void print_clients(const struct torture *torture)
{
    const struct tally *tally = &torture->tally;
    unsigned handovers = tally->handovers_before;
    for (unsigned i = 0; i < TORTURE_DAEMONS; i++)
        handovers += tally->handovers[i];
    printf("  hand-overs    %u at least, from a holder to the next waiter\n", handovers);
    printf("  holds         %u; %u kept until released, %u lost, %u confirmed by PONG\n",
           tally->holds, tally->holds_kept, tally->holds_lost, tally->renewed);
    printf("  extensions    %u by clients\n", tally->extensions);
    printf("  slots         %u grants of LOCKs with SLOTS\n", tally->slots);
    printf("  clients       %u connections cut, %u silent phases, %u deaths\n", tally->cut,
           tally->silences, tally->deaths);
}

static void print_faults(const struct torture *torture, const struct faults *faults)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < FAULT_COUNT; i++)
        sum += faults->counts[i];
    printf("  faults        %u:", sum);
    for (unsigned i = 0; i < FAULT_COUNT; i++)
        if (faults->counts[i] > 0)
            printf(" %s %u", fault_word((enum fault)i), faults->counts[i]);
    printf("\n");
    if (torture->net.why_not[0] != '\0')
        printf("                without partitions: %s\n", torture->net.why_not);
}

void summary_print(struct torture *torture, const struct faults *faults)
{
    const struct ledger *ledger = &torture->ledger;
    printf("torture: %.1f s, seed %" PRIu64 ", %s\n", seconds(ledger_now_ns() - ledger->began_ns),
           torture->seed, commit());
    if (torture->packages == NULL) {
        print_grants(torture);
        print_clients(torture);
    }
    print_faults(torture, faults);
    printf("  longest gap   %.3f s without a grant; faults in it: %s\n",
           seconds(ledger->longest_ns), ledger->broken[0] != '\0' ? ledger->broken : "nothing new");
    printf("  excused       %" PRIu64 " foreign grants after masters lost data\n",
           ledger->foreign_excused);
    fflush(stdout);
}

void summary_result(const struct torture *torture)
{
    printf("  verdict       %s\n",
           torture->ledger.violated
               ? torture->ledger.why
               : "no two holders, every fencing token rose, every request got its reply, and "
                 "the cluster recovered");
    fflush(stdout);
}

void summary_violation(struct torture *torture, const char *fault_words)
{
    const struct ledger *ledger = &torture->ledger;
    fprintf(stderr,
            "--- %s\nThe seed repeats the choices but not their times, so the "
            "same seed may not find the violation again.\n"
            "    commit %s\n    make torture%s SECONDS=%" PRId64 " SEED=%" PRIu64 " FAULTS=%s\n",
            ledger->why, commit(), torture->packages != NULL ? "-clients" : "", torture->seconds,
            torture->seed, fault_words);
    fflush(stderr);
}
