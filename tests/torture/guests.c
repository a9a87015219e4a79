#include "tests/torture/guests.h"

#include "protocol/units.h"

#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/process.h"

/* Name, program, its arguments. PACKAGES stands for the folder of the compiled programs. */
#define GUESTS(X)                                                                                  \
    X("python", "/usr/bin/python3", "tests/torture/guests/guest.py", "threads")                    \
    X("asyncio", "/usr/bin/python3", "tests/torture/guests/guest.py", "asyncio")                   \
    X("node", "node", "tests/torture/guests/guest.mjs", NULL)                                      \
    X("go", "PACKAGES/guest-go", NULL, NULL)                                                       \
    X("c", "PACKAGES/guest-c", NULL, NULL)                                                         \
    X("node-redlock", "node", "tests/torture/guests/node_redlock.mjs", NULL)

static const struct kind {
    const char *name;
    const char *argv[4];
} kinds[] = {
#define GUEST_ROW(name, program, first, second) {name, {program, first, second, NULL}},
    GUESTS(GUEST_ROW)
#undef GUEST_ROW
};

enum {
    GUEST_COUNT = sizeof(kinds) / sizeof(kinds[0]),
    NODE_REDLOCK = GUEST_COUNT - 1,
    STOP_EVERY_MS = 1000, /* mean interval */
    STOP_MS = 1500,
    INPUT = 65536,
    ADDRESSES = 1024,
};

struct guest {
    pid_t pid;
    int64_t stopped_until_ns; /* 0: runs */
    uint64_t grants;
    uint64_t late;     /* grants that were over when the guest knew of them */
    uint64_t extended; /* lines "more" */
    int64_t left_ns;   /* sum of the times that the grants were valid for */
};

struct guests {
    struct torture *torture;
    struct prng prng;
    struct guest each[GUEST_COUNT];
    int64_t stop_ns; /* time of the next stop of a guest */
    unsigned stops;
    char finish[SANDBOX_FILE]; /* the guests end when this file exists */

    /* The reader of the pipe. */
    int fd;
    pthread_t thread;
    atomic_bool over;
    char input[INPUT];
    size_t input_len;
    int64_t to_boottime_ns; /* added to CLOCK_MONOTONIC */
    int64_t told_ns;        /* the latest NOW_NS */
};

/* --- the lines of the guests --- */

/* A guest can be stopped between NOW_NS and its write. But its work only begins after the write, so
 * that all earlier lines of the pipe are in the past then. */
static int64_t told(struct guests *guests, int64_t now_ns)
{
    if (now_ns > guests->told_ns)
        guests->told_ns = now_ns;
    return guests->told_ns;
}

static void on_claim(struct guests *guests, unsigned index, bool grant, struct claim *claim)
{
    struct guest *guest = &guests->each[index];
    struct ledger *ledger = &guests->torture->ledger;
    bool foreign = index == NODE_REDLOCK;
    if (!grant) {
        guest->extended++;
        /* After a loss of data, the lock that it extends may be one that was excused. */
        if (!foreign || !ledger->masters_lose_data)
            ledger_prolonged(ledger, claim);
        return;
    }
    guest->grants++;
    guest->late += claim->until_ns <= claim->told_ns;
    guest->left_ns += claim->until_ns - claim->told_ns;
    if (foreign)
        ledger_foreign_granted(ledger, 0, claim);
    else
        ledger_granted(ledger, 0, claim);
}

static void on_line(struct guests *guests, const char *line)
{
    struct ledger *ledger = &guests->torture->ledger;
    char name[16];
    char verb[8];
    char token[HISTORY_TOKEN + 1];
    int64_t ttl_ms;
    int64_t now_ns;
    struct claim claim = {.token = token};
    ledger_note(ledger, "%s", line);
    int words =
        sscanf(line, "%15s %7s r#%u %64s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, name, verb,
               &claim.resource, token, &claim.fence, &ttl_ms, &now_ns, &claim.until_ns);
    unsigned index = 0;
    while (index < GUEST_COUNT && (words < 1 || strcmp(name, kinds[index].name) != 0))
        index++;
    bool frees = words == 4 && strcmp(verb, "free") == 0;
    bool claims = words == 8 && (strcmp(verb, "held") == 0 || strcmp(verb, "more") == 0);
    if (index == GUEST_COUNT || !(frees || claims) || claim.resource >= TORTURE_RESOURCES) {
        ledger_violated(ledger, "a guest wrote: %s", line);
        return;
    }
    if (frees) {
        ledger_ended(ledger, claim.resource, token);
        return;
    }
    claim.told_ns = told(guests, now_ns + guests->to_boottime_ns);
    claim.until_ns += guests->to_boottime_ns;
    claim.begun_ns = claim.until_ns - ttl_ms * NS_PER_MS;
    on_claim(guests, index, verb[0] == 'h', &claim);
}

static void read_lines(struct guests *guests)
{
    for (;;) {
        ssize_t len = read(guests->fd, guests->input + guests->input_len,
                           sizeof(guests->input) - 1 - guests->input_len);
        if (len <= 0)
            return;
        guests->input_len += (size_t)len;
        guests->input[guests->input_len] = '\0';
        char *line = guests->input;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            on_line(guests, line);
        }
        guests->input_len -= (size_t)(line - guests->input);
        memmove(guests->input, line, guests->input_len);
    }
}

static void *read_all(void *context)
{
    struct guests *guests = context;
    while (!guests->over) {
        read_lines(guests);
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
    }
    read_lines(guests);
    return NULL;
}

/* --- start --- */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

static void open_pipe(struct guests *guests, const char *path)
{
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    guests->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(guests->fd, 0);
    guests->to_boottime_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
    ck_assert_int_eq(pthread_create(&guests->thread, NULL, read_all, guests), 0);
}

/* The addresses of the daemons and of the masters, separated by spaces. */
static void list_addresses(const struct torture *torture, char *daemons, char *masters)
{
    daemons[0] = masters[0] = '\0';
    for (unsigned i = 0; i < TORTURE_DAEMONS; i++) {
        const struct daemon *daemon = &torture->daemons[i];
        size_t len = strlen(daemons);
        snprintf(daemons + len, ADDRESSES - len, "%stcp://%s:%d unix:%s", i > 0 ? " " : "",
                 i == DAEMON_ROUTED ? torture->daemon_host : "127.0.0.1", daemon->port,
                 daemon->socket);
    }
    for (unsigned i = 0; i < STAGE_MASTERS; i++) {
        size_t len = strlen(masters);
        snprintf(masters + len, ADDRESSES - len, "%s%s:%d", i > 0 ? " " : "",
                 torture->stage.masters[i].host, torture->stage.masters[i].port);
    }
}

struct guests *guests_start(struct torture *torture, const char *packages, const char *overclaimer)
{
    struct guests *guests = calloc(1, sizeof(*guests));
    ck_assert_ptr_nonnull(guests);
    guests->torture = torture;
    guests->prng.state = torture->seed * 4 + 1;
    const struct sandbox *sandbox = &torture->stage.sandbox;
    char path[SANDBOX_FILE];
    char log[SANDBOX_FILE];
    char program[256];
    char number[24];
    char daemons[ADDRESSES];
    char masters[ADDRESSES];
    list_addresses(torture, daemons, masters);
    sandbox_path(sandbox, "finish", guests->finish);
    open_pipe(guests, sandbox_path(sandbox, "guests", path));
    for (unsigned i = 0; i < GUEST_COUNT; i++) {
        const struct kind *kind = &kinds[i];
        const char *argv[] = {kind->argv[0], kind->argv[1], kind->argv[2], NULL};
        snprintf(program, sizeof(program), "%s%s", packages, strchr(argv[0], '/'));
        if (strncmp(argv[0], "PACKAGES/", 9) == 0)
            argv[0] = program;
        snprintf(number, sizeof(number), "%" PRIu64, torture->seed * 100 + i);
        const char *environment[] = {
            "GUEST_NAME",
            kind->name,
            "GUEST_SEED",
            number,
            "GUEST_DAEMONS",
            daemons,
            "GUEST_MASTERS",
            masters,
            "GUEST_PACKAGES",
            packages,
            "GUEST_FINISH",
            guests->finish,
            "GUEST_OVERCLAIM_MS",
            strcmp(overclaimer, kind->name) == 0 ? "3000" : "0",
            NULL,
        };
        snprintf(log, sizeof(log), "%s/%s.log", sandbox->dir, kind->name);
        guests->each[i].pid = process_start(&(struct process_plan){
            .argv = argv, .output = path, .errors = log, .environment = environment});
    }
    return guests;
}

/* --- faults --- */

static void resume(struct guests *guests, unsigned index)
{
    guests->each[index].stopped_until_ns = 0;
    ledger_note(&guests->torture->ledger, "%s continues", kinds[index].name);
    kill(guests->each[index].pid, SIGCONT);
}

void guests_update(struct guests *guests)
{
    int64_t now_ns = ledger_now_ns();
    for (unsigned i = 0; i < GUEST_COUNT; i++)
        if (guests->each[i].stopped_until_ns != 0 && now_ns >= guests->each[i].stopped_until_ns)
            resume(guests, i);
    if (now_ns < guests->stop_ns)
        return;
    guests->stop_ns = now_ns + prng_below(&guests->prng, 2 * STOP_EVERY_MS) * NS_PER_MS;
    unsigned index = prng_below(&guests->prng, GUEST_COUNT);
    struct guest *guest = &guests->each[index];
    if (guest->stopped_until_ns != 0)
        return;
    ledger_note(&guests->torture->ledger, "%s is stopped", kinds[index].name);
    kill(guest->pid, SIGSTOP);
    guests->stops++;
    guest->stopped_until_ns = now_ns + prng_below(&guests->prng, STOP_MS) * NS_PER_MS;
}

/* --- the end --- */

void guests_end(struct guests *guests)
{
    struct ledger *ledger = &guests->torture->ledger;
    for (unsigned i = 0; i < GUEST_COUNT; i++)
        if (guests->each[i].stopped_until_ns != 0)
            resume(guests, i);
    sandbox_write(guests->finish, "");
    for (unsigned i = 0; i < GUEST_COUNT; i++) {
        int status = process_wait(guests->each[i].pid, kinds[i].name);
        if (status != 0)
            ledger_violated(ledger, "the guest %s has ended with status %d", kinds[i].name, status);
        if (guests->each[i].grants == 0)
            ledger_violated(ledger, "the guest %s was granted nothing", kinds[i].name);
    }
    guests->over = true;
    pthread_join(guests->thread, NULL);
    close(guests->fd);
}

static void print_guest(const struct guest *guest, const char *name)
{
    int64_t grants = (int64_t)(guest->grants > 0 ? guest->grants : 1);
    printf("  %-13s %" PRIu64 " grants, %.3f s left on average, %" PRIu64
           " over before they were read, %" PRIu64 " extensions\n",
           name, guest->grants, (double)(guest->left_ns / grants) / (1000.0 * NS_PER_MS),
           guest->late, guest->extended);
}

void guests_print(const struct guests *guests)
{
    for (unsigned i = 0; i < GUEST_COUNT; i++)
        print_guest(&guests->each[i], kinds[i].name);
    printf("  guests        stopped %u times\n", guests->stops);
    fflush(stdout);
}
