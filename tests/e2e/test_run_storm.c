/*
 * Shells repeatedly run a command under the same lock, while the processes of `redlock run`, those
 * of the command, and the daemon are killed at random. Two commands must never run at once, and
 * neither must processes that they started. The same is done with the two slots of a semaphore.
 *
 * A kernel lock on a file, the guard file of each lock or slot, shows overlaps: each command tries
 * to take this lock with flock(1). Every process of a command has the file open, so the kernel lock
 * is free exactly when the last of these processes is gone. Each command also adds a line to the
 * guard file.
 *
 * An overlap is a violation if neither lock had reached its deadline when the second command began.
 * The deadline is the one that the command gets from redlock; an extension can only make it later.
 * The script reads its clock rounded down to 10 ms, so a command seems to begin up to 10 ms too
 * early. This cannot turn a correct grant into a violation: the next grant comes after the TTL, and
 * the deadline is at least DAEMON_MARGIN_MS (40 ms) before the end of the TTL.
 *
 * An overlap after a deadline is only counted. It can happen only on a starved machine, because a
 * command takes about 0.1 s and the TTL is 1 s. It has two possible causes. If both processes of
 * `redlock run` were killed, no process ends the command at the deadline. Otherwise `redlock run`
 * kills the command before the deadline, but the processes of the command may have to wait for a
 * processor before they can end.
 *
 * RUN_STORM is the number of runs (default 150), RUN_STORM_SEED the seed (default 1).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/e2e/wrapper.h"
#include "tests/prng.h"
#include "tests/runner.h"

/* The exit status of flock(1) for a held lock. It differs from that of a killed flock. */
enum { CONFLICT = 99 };

enum { SHELLS = 4, SLOTS = 2, DEFAULT_RUNS = 150, LONGEST_MS = 50, TIME_LIMIT_S = 1200 };

const struct runner_settings runner_settings = {.time_limit_s = TIME_LIMIT_S};

/* What the shells compete for. The guard file of each lock is PATH.NAME. */
static const struct contest {
    unsigned shells;
    bool slots; /* --slots 2 */
    const char *locks[SLOTS];
} contests[] = {
    {2, false, {"a"}},
    {4, true, {"a#1", "a#2"}},
};

/* A command as its script describes it in the guard file; times on CLOCK_BOOTTIME. */
struct command {
    unsigned run;
    long long begun_ms;
    long long deadline_ms; /* of its lock, when it began */
    int locked;            /* exit status of flock: 0, CONFLICT, or that of a killed process */
};

enum victim { NOBODY, PARENT, SUPERVISOR, BOTH, COMMAND, GRANDCHILD, DAEMON, VICTIMS };

static const char *const victim_names[VICTIMS] = {"none",    "parent",     "supervisor", "both",
                                                  "command", "grandchild", "daemon"};
/* Chances in percent. */
static const unsigned victim_chances[VICTIMS] = {35, 15, 10, 10, 14, 14, 2};

struct shell {
    struct wrapper wrapper; /* pid 0: between two runs */
    unsigned run;           /* number of this run, from 1 */
    enum victim victim;     /* victim of this run; NOBODY after it was killed */
    unsigned after_ms;      /* delay of the kill after the command began; see start_run() */
    int64_t kill_ms;        /* time of the kill; INT64_MAX: not known before the command begins */
};

struct storm {
    const struct contest *contest;
    struct stage stage;
    struct prng prng;
    struct shell shells[SHELLS];
    char guard[SANDBOX_FILE]; /* path of the guard files, without the name of the lock */
    int timeline; /* descriptor of the file timeline.err, which is printed after a failure */
    char script[1024];
    unsigned started;
    unsigned ended;
    unsigned killed[VICTIMS];
    unsigned commands; /* in the guard files */
    unsigned late;     /* overlaps after a deadline */
};

static enum victim choose_victim(struct prng *prng)
{
    unsigned left = prng_below(prng, 100);
    enum victim victim = NOBODY;
    while (left >= victim_chances[victim])
        left -= victim_chances[victim++];
    return victim;
}

/* Adds a line to the timeline, which the script writes to as well. Its times are milliseconds of
 * CLOCK_BOOTTIME, the clock of the deadlines of redlock and of /proc/uptime. */
static __attribute__((format(printf, 3, 4))) void note(const struct storm *storm, unsigned run,
                                                       const char *format, ...)
{
    struct timespec now;
    char text[128];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    clock_gettime(CLOCK_BOOTTIME, &now);
    dprintf(storm->timeline, "%lld run %u: %s\n",
            (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, run, text);
}

/* Returns the first child of the process, or 0. */
static pid_t child_of(pid_t parent)
{
    pid_t child;
    return parent > 0 && process_children(parent, &child, 1) > 0 ? child : 0;
}

static pid_t find(const struct storm *storm, const struct shell *shell)
{
    pid_t supervisor = child_of(shell->wrapper.pid);
    switch (shell->victim) {
    case PARENT:
        return shell->wrapper.pid;
    case SUPERVISOR:
    case BOTH:
        return supervisor;
    case COMMAND:
        return child_of(supervisor);
    case GRANDCHILD:
        return child_of(child_of(supervisor));
    case DAEMON:
        return storm->stage.daemon.pid;
    case NOBODY:
    case VICTIMS:
        break;
    }
    return 0;
}

/* Kills the victim of this run when its time has come. */
static void kill_victim(struct storm *storm, struct shell *shell)
{
    int64_t now_ms = waiting_clock_ms();
    if (shell->kill_ms == INT64_MAX && child_of(child_of(shell->wrapper.pid)) > 0)
        shell->kill_ms = now_ms + shell->after_ms;
    if (shell->victim == NOBODY || now_ms < shell->kill_ms)
        return;
    pid_t pid = find(storm, shell);
    note(storm, shell->run, "kills %s, pid %d", victim_names[shell->victim], (int)pid);
    if (pid > 0) {
        /* The parent is stopped first, so that it cannot react to the death of the supervisor. */
        if (shell->victim == BOTH)
            kill(shell->wrapper.pid, SIGSTOP);
        kill(pid, SIGKILL);
        if (shell->victim == BOTH)
            kill(shell->wrapper.pid, SIGKILL);
        storm->killed[shell->victim]++;
        note(storm, shell->run, "has killed it");
    }
    if (pid > 0 && shell->victim == DAEMON) {
        process_wait(pid, "the daemon");
        daemon_start(&storm->stage.daemon, 0);
    }
    shell->victim = NOBODY;
}

static void start_run(struct storm *storm, unsigned index)
{
    struct shell *shell = &storm->shells[index];
    char name[16];
    char number[16];
    const char *const words[] = {"--slots", "2",  "--ttl",       "1s",   "a", "--",
                                 "sh",      "-c", storm->script, number, NULL};
    shell->run = ++storm->started;
    snprintf(number, sizeof(number), "%u", shell->run);
    snprintf(name, sizeof(name), "shell%u", index);
    wrapper_start(&shell->wrapper, &storm->stage.sandbox, name, storm->stage.daemon.socket,
                  words + (storm->contest->slots ? 0 : 2));
    shell->victim = choose_victim(&storm->prng);
    shell->after_ms = prng_below(&storm->prng, LONGEST_MS);
    shell->kill_ms = INT64_MAX;
    /* The parent and the daemon exist before the command, and a kill must be able to hit them while
     * the run still waits in the queue. So their delay, twice as long, counts from the start of the
     * run. */
    if (shell->victim == PARENT || shell->victim == DAEMON)
        shell->kill_ms = waiting_clock_ms() + 2 * shell->after_ms;
    note(storm, shell->run, "starts in shell %u, pid %d, victim %s after %u ms", index,
         (int)shell->wrapper.pid, victim_names[shell->victim], shell->after_ms);
}

/* Opens the timeline and writes the script of the command. Its first argument is the number of the
 * run. */
static void write_script(struct storm *storm)
{
    const struct sandbox *sandbox = &storm->stage.sandbox;
    char timeline[SANDBOX_FILE];
    sandbox_path(sandbox, "guard", storm->guard);
    sandbox_path(sandbox, "timeline.err", timeline);
    storm->timeline = open(timeline, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(storm->timeline, 0);
    int len =
        snprintf(storm->script, sizeof(storm->script),
                 /* Reads the clock without another process. */
                 "clock() { read up idle </proc/uptime; now=${up%%.*}${up#*.}0; };"
                 "note() { clock; echo $now run $0: $* >>%s; };"
                 "clock; begun=$now;"
                 "guard=%s.$REDLOCK_RESOURCE; exec 9>>$guard; flock -n -E %d 9; locked=$?;"
                 "echo run $0 $begun $REDLOCK_DEADLINE_MS $locked >&9;"
                 "note pid $$ has begun at $begun, flock $locked,"
                 " deadline $REDLOCK_DEADLINE_MS;"
                 "if [ $locked = %d ]; then for p in /proc/[0-9]*; do"
                 "  if [ $p/fd/9 -ef $guard ]; then read -r stat <$p/stat; note overlaps $stat; fi;"
                 " done; fi;"
                 "sleep 0.03 & setsid sleep 0.06 & sleep 0.01; wait; note pid $$ is done",
                 timeline, storm->guard, CONFLICT, CONFLICT);
    ck_assert_int_lt(len, (int)sizeof(storm->script));
}

/* Fails if the guard file of this lock shows a violation. A command with CONFLICT is taken to
 * overlap with the holder: the last command before it whose flock reported success. In fact it may
 * overlap with a command that began after the holder, and whose flock was killed just after it had
 * locked the file. The deadline of that command is not earlier than the holder's. So by using the
 * holder's deadline the check can miss a violation, but it never reports a false one. */
static void check_guard(struct storm *storm, const char *lock)
{
    struct command holder = {0};
    struct command command;
    char *rest = NULL;
    char path[SANDBOX_FILE + 8];
    snprintf(path, sizeof(path), "%s.%s", storm->guard, lock);
    char *text = sandbox_read(path);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        ck_assert_int_eq(sscanf(line, "run %u %lld %lld %d", &command.run, &command.begun_ms,
                                &command.deadline_ms, &command.locked),
                         4);
        storm->commands++;
        if (command.locked == 0)
            holder = command;
        if (command.locked != CONFLICT)
            continue;
        ck_assert_msg(
            command.begun_ms >= holder.deadline_ms || command.begun_ms >= command.deadline_ms,
            "run %u began at %lld, and run %u was not over; deadlines %lld and %lld", command.run,
            command.begun_ms, holder.run, command.deadline_ms, holder.deadline_ms);
        storm->late++;
    }
    free(text);
}

static void check_guards(struct storm *storm)
{
    storm->commands = 0;
    storm->late = 0;
    for (unsigned i = 0; i < SLOTS && storm->contest->locks[i] != NULL; i++)
        check_guard(storm, storm->contest->locks[i]);
}

TEST_ROWS(two_commands_never_hold_valid_locks_at_once, contests)
{
    struct storm storm = {.contest = &contests[_i]};
    unsigned runs = runner_setting("RUN_STORM", DEFAULT_RUNS);
    unsigned seed = runner_setting("RUN_STORM_SEED", 1);
    int status;
    /* LeakSanitizer forks a child at exit. If the test took that child for the supervisor and
     * killed it, the exiting process would wait for ever. */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    storm.prng.state = seed;
    fprintf(stderr, "storm: seed %u\n", seed);
    stage_open(
        &storm.stage, __func__,
        &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.node_timeout_ms = 100}});
    client_close(&storm.stage.client);
    write_script(&storm);
    while (storm.ended < runs) {
        for (unsigned i = 0; i < storm.contest->shells; i++) {
            struct shell *shell = &storm.shells[i];
            if (shell->wrapper.pid == 0 && storm.started < runs)
                start_run(&storm, i);
            if (shell->wrapper.pid == 0)
                continue;
            kill_victim(&storm, shell);
            if (!process_ended(shell->wrapper.pid, &status))
                continue;
            shell->wrapper.pid = 0;
            storm.ended++;
            note(&storm, shell->run, "ends, status %#x", (unsigned)status);
            check_guards(&storm);
        }
        usleep(1000);
    }
    /* In the end, each lock can be acquired. */
    daemon_connect(&storm.stage.daemon, &storm.stage.client);
    for (unsigned i = 0; i < SLOTS && storm.contest->locks[i] != NULL; i++) {
        struct waiting waiting = waiting_for("the lock to be granted again");
        while (strncmp(client_ask(&storm.stage.client, "LOCK %s 1s", storm.contest->locks[i]),
                       "OK ", 3) != 0)
            waiting_pause(&waiting);
    }
    check_guards(&storm);
    fprintf(stderr, "storm: %u runs, %u commands begun, %u overlaps after a deadline; killed", runs,
            storm.commands, storm.late);
    for (unsigned victim = PARENT; victim < VICTIMS; victim++)
        fprintf(stderr, " %s %u", victim_names[victim], storm.killed[victim]);
    fprintf(stderr, "\n");
    ck_assert_uint_gt(storm.commands, runs / 2);
    close(storm.timeline);
    stage_close(&storm.stage);
}
