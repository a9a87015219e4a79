/*
 * make sim: run schedules, each decided by its seed.
 *
 *     sim [SEED [RUNS]]     the first seed, by default 1; the number of schedules, by default 1000
 *
 * Environment variables:
 *     FAULTS   the faults that may happen: "all" (the default), "none", "restart,cut" for only
 *              these, "-cut,-hang" for all except these
 *     TRACE    1: print a trace of each schedule
 *     COMMIT   the commit of the sources, printed on failure
 */
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/sim.h"

static struct sim sim;

static const char *setting(const char *name, const char *initial)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : initial;
}

static uint64_t fault_bit(const char *name)
{
    for (unsigned i = 0; fault_name(i) != NULL; i++)
        if (strcmp(name, fault_name(i)) == 0)
            return UINT64_C(1) << i;
    fprintf(stderr, "sim: unknown fault \"%s\"; use all, none", name);
    for (unsigned i = 0; fault_name(i) != NULL; i++)
        fprintf(stderr, ", %s", fault_name(i));
    fprintf(stderr, "\n");
    exit(2);
}

static uint64_t parse_faults(const char *text)
{
    char words[1024];
    uint64_t faults = text[0] == '-' ? fault_all() : 0;
    snprintf(words, sizeof(words), "%s", text);
    for (char *word = strtok(words, ", "); word != NULL; word = strtok(NULL, ", ")) {
        if (strcmp(word, "all") == 0)
            faults |= fault_all();
        else if (word[0] == '-')
            faults &= ~fault_bit(word + 1);
        else if (strcmp(word, "none") != 0)
            faults |= fault_bit(word);
    }
    return faults;
}

static void print_tally(const struct sim_tally *tally, uint64_t runs, double seconds)
{
    const uint64_t *counts = tally->counts;
    printf("%" PRIu64 " schedules, %.0f s of virtual time in %.1f s: %.0f a minute\n", runs,
           (double)counts[COUNT_VIRTUAL_MS] / 1e3, seconds, 60 * (double)runs / seconds);
    printf("%" PRIu64 " grants, %" PRIu64 " of them held, %" PRIu64 " of slots, %" PRIu64
           " lost, %" PRIu64 " broken; %" PRIu64 " resets, %" PRIu64 " slow ends; %" PRIu64
           " hand-overs, %" PRIu64 " extensions, %" PRIu64 " batches of releases, %" PRIu64
           " releases by the server's own command; %" PRIu64 " foreign grants, %" PRIu64
           " of them excused\n",
           counts[COUNT_GRANTS], counts[COUNT_HOLDS], counts[COUNT_SLOTS], counts[COUNT_LOST],
           counts[COUNT_BROKEN], counts[COUNT_RESETS], counts[COUNT_SLOW_ENDS],
           counts[COUNT_HANDOVERS], counts[COUNT_EXTENSIONS], counts[COUNT_BATCH],
           counts[COUNT_NATIVE], counts[COUNT_FOREIGN], counts[COUNT_EXCUSED]);
    printf("%" PRIu64 " faults:", counts[COUNT_FAULTS]);
    for (unsigned i = 0; fault_name(i) != NULL; i++)
        printf(" %s %" PRIu64, fault_name(i), tally->faults[i]);
    printf("\n");
    if (bounds_are_in_force())
        printf("passes in which a limit was reached:");
    for (unsigned i = 0; i < BOUNDS && bounds_are_in_force(); i++)
        printf(" %s %" PRIu64, bound_word((enum bound)i), tally->met[i]);
    if (bounds_are_in_force())
        printf("\n");
    printf("LIMIT by:");
    for (unsigned i = 0; i < LIMITED; i++)
        printf(" %s %" PRIu64, limited_word((enum limited)i), tally->limited[i]);
    printf("\n");
    static const char *const words[] = {
#define X(name, word) [name] = word,
        OUTCOME_TABLE(X)
#undef X
    };
    static const enum verb verbs[] = {VERB_LOCK, VERB_UNLOCK, VERB_EXTEND, VERB_STATUS, VERB_BREAK};
    for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        printf("%s:", verb_word(verbs[i]));
        for (unsigned k = 0; k < OUTCOME_COUNT; k++)
            if (tally->outcomes[verbs[i]][k] > 0)
                printf(" %s %" PRIu64, words[k], tally->outcomes[verbs[i]][k]);
        printf("\n");
    }
}

static void print_failure(const char *what)
{
    const char *faults = setting("FAULTS", "all");
    printf("FAILED, commit %s, seed %" PRIu64 ": %s\n"
           "trace: make %s SEED=%" PRIu64 " FAULTS=%s TRACE=1\n",
           setting("COMMIT", "unknown"), sim.seed, what,
           bounds_are_in_force() ? "sim-tight" : "sim", sim.seed, faults);
}

/* Called for a failed assertion, of redlockd or of the simulator, and for an invalid pointer. */
static void on_abort(int number)
{
    print_failure(number == SIGSEGV ? "crashed" : "aborted");
    fflush(stdout);
    _exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    static struct sim_tally tally;
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t runs = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    struct sim_options options = {
        .faults = parse_faults(setting("FAULTS", "all")),
        .trace = strcmp(setting("TRACE", "0"), "0") != 0 ? stdout : NULL,
    };
    signal(SIGABRT, on_abort);
    signal(SIGSEGV, on_abort);
    /* The engine's tables are large and mostly untouched. If they come from mmap, their pages are
     * zero without being written. */
    mallopt(M_MMAP_THRESHOLD, 1 << 16);
    double begun_s = now_s();
    uint64_t done = 0;
    const char *violation = NULL;
    while (done < runs && violation == NULL) {
        violation = sim_run(&sim, seed + done, &options, &tally);
        done++;
    }
    print_tally(&tally, done, now_s() - begun_s);
    if (violation != NULL)
        print_failure(violation);
    sim_free(&sim);
    return violation != NULL;
}
