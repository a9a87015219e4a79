/*
 * The torture: real masters, three daemons, many clients, two foreign clients, and faults of all
 * kinds. No two clients may ever believe at once that they hold the same lock, except foreign
 * clients after a loss of data (ledger.h). Fencing tokens rise, every request is answered once, and
 * after the last fault the cluster recovers.
 *
 *     TORTURE_SECONDS    duration in seconds; by default 12
 *     TORTURE_SEED       seed of the random choices; their effect depends on the machine
 *     TORTURE_FAULTS     which faults: "all" (the default), "kill,step", "-partition", "none"
 *     TORTURE_PACKAGES   if set, guests play in place of the clients: see guests.h
 *     TORTURE_OVERCLAIM  the name of a guest whose claims are 3 s too long
 *     TORTURE_HISTORY    a file for the history; by default, a failure prints its end
 *
 * `make torture` and `make torture-clients` have shorter names for these, and run the optimized
 * build.
 *
 * node-redlock, one of the guests, has no guard against a loss of data (ledger.h). So the masters
 * of the guests are durable, unless a fault other than kill makes them lose data: then no overlap
 * at all is excused.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/torture/cluster.h"
#include "tests/torture/faults.h"
#include "tests/torture/foreign.h"
#include "tests/torture/guests.h"
#include "tests/torture/players.h"
#include "tests/torture/summary.h"

enum {
    SECONDS = 12,
    /* With fewer grants the run proves nothing. On a busy machine the run lasts until it has
     * them. */
    GRANTS_MIN = 40,
    TIMEOUT_S = 120,
    TIME_LIMIT_S = 400000,
};

static const char *setting(const char *name, const char *initial)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : initial;
}

static void configure(struct torture *torture, const char *fault_words)
{
    char wrong[32];
    torture->seed = strtoull(setting("TORTURE_SEED", "1"), NULL, 10);
    torture->seconds = strtoll(setting("TORTURE_SECONDS", "0"), NULL, 10);
    if (torture->seconds == 0)
        torture->seconds = SECONDS;
    ck_assert_msg(faults_parse(fault_words, &torture->faults, wrong), "unknown fault \"%s\"",
                  wrong);
    torture->packages = getenv("TORTURE_PACKAGES");
    torture->durable = torture->packages != NULL && !faults_lose_data(torture->faults, true);
}

static bool is_enough(struct torture *torture, int64_t now_ns)
{
    struct ledger *ledger = &torture->ledger;
    int64_t passed_s = (now_ns - ledger->began_ns) / NS_PER_MS / 1000;
    if (ledger->violated)
        return true;
    ck_assert_msg(passed_s < torture->seconds + TIMEOUT_S, "only %" PRIu64 " grants",
                  ledger->history.grants);
    return passed_s >= torture->seconds && ledger->history.grants >= GRANTS_MIN;
}

static void play_guests(struct torture *torture, struct faults *faults)
{
    struct guests *guests =
        guests_start(torture, torture->packages, setting("TORTURE_OVERCLAIM", ""));
    while (!is_enough(torture, ledger_now_ns())) {
        faults_update(faults);
        guests_update(guests);
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
    }
    faults_end(faults);
    ledger_close_gap(&torture->ledger);
    guests_end(guests);
    summary_print(torture, faults);
    guests_print(guests);
    free(guests);
}

static void play(struct torture *torture, struct faults *faults)
{
    struct foreign foreign[LEDGER_FOREIGN];
    struct players *players = players_start(torture);
    for (unsigned i = 0; i < LEDGER_FOREIGN; i++)
        foreign_start(&foreign[i], torture, i);
    while (!is_enough(torture, ledger_now_ns())) {
        faults_update(faults);
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
    }
    faults_end(faults);
    ledger_close_gap(&torture->ledger);
    torture->ending = true;
    players_end(players);
    for (unsigned i = 0; i < LEDGER_FOREIGN; i++)
        foreign_end(&foreign[i]);
    summary_print(torture, faults);
}

const struct runner_settings runner_settings = {.time_limit_s = TIME_LIMIT_S};

TEST(no_two_clients_hold_a_lock_at_once_whatever_breaks)
{
    const char *fault_words = setting("TORTURE_FAULTS", "all");
    struct torture *torture = calloc(1, sizeof(*torture));
    struct faults faults;
    char history[SANDBOX_FILE];
    ck_assert_ptr_nonnull(torture);
    configure(torture, fault_words);
    cluster_open(torture, __func__);
    ledger_init(
        &torture->ledger, faults_lose_data(torture->faults, torture->durable),
        setting("TORTURE_HISTORY", sandbox_path(&torture->stage.sandbox, "history.log", history)));
    faults_init(&faults, torture);
    if (torture->packages != NULL)
        play_guests(torture, &faults);
    else
        play(torture, &faults);
    if (torture->ledger.violated) {
        summary_result(torture);
        summary_violation(torture, fault_words);
        ck_abort_msg("%s", torture->ledger.why);
    }
    cluster_check(torture);
    cluster_close(torture);
    summary_result(torture);
    ledger_free(&torture->ledger);
    free(torture);
}
