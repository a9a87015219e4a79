/*
 * libredlock with a hostile server. Whatever the server sends, the library neither crashes nor
 * hangs. It reports a lock only if the server has granted it, and never with a later deadline than
 * the server's reply allows.
 */
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/c/redlock.h"
#include "protocol/limits.h"
#include "tests/e2e/hostile_server.h"
#include "tests/e2e/library.h"
#include "tests/e2e/process.h"
#include "tests/e2e/sandbox.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

#define MS INT64_C(1000000)

enum { SEEDS = 1500, OPERATIONS = 6, OPEN = 16, TTL_MS = 10000, PATIENT_MS = 60000 };

static struct sandbox sandbox;
static struct hostile_server *server;
static char path[SANDBOX_FILE];
static char url[SANDBOX_FILE + 8];
static regex_t grant_pattern;

static void open_stage(const char *test)
{
    sandbox_open(&sandbox, test);
    server = malloc(sizeof(*server));
    ck_assert_ptr_nonnull(server);
    hostile_start(server, sandbox_path(&sandbox, "hostile.sock", path));
    snprintf(url, sizeof(url), "unix:%s", path);
    ck_assert_int_eq(regcomp(&grant_pattern,
                             "^OK ([0-9a-f]{40}) (0|[1-9][0-9]{0,14}) (0|[1-9][0-9]{0,14})( .*)?$",
                             REG_EXTENDED),
                     0);
}

static void close_stage(void)
{
    hostile_stop(server);
    free(server);
    regfree(&grant_pattern);
    sandbox_close(&sandbox);
}

static struct redlock *new_handle(int64_t timeout_ms)
{
    struct redlock *redlock = redlock_new(url);
    ck_assert_ptr_nonnull(redlock);
    redlock_set_timeout(redlock, timeout_ms);
    return redlock;
}

/* --- is a lock backed by a grant? --- */

struct check {
    const struct redlock_lock *lock;
    int64_t ttl_ms;
    int64_t seen_ns;     /* time when the server had read the request */
    int64_t returned_ns; /* time when the reply had certainly arrived */
    int64_t latest_ns;   /* latest deadline of the replies that grant this token; 0: none */
};

static void check_grant(void *context, const char *text)
{
    struct check *check = context;
    regmatch_t match[4];
    if (regexec(&grant_pattern, text, 4, match, 0) != 0 ||
        strncmp(text + match[1].rm_so, check->lock->token, 40) != 0)
        return;
    int64_t validity_ms = strtoll(text + match[2].rm_so, NULL, 10);
    int64_t elapsed_ms = strtoll(text + match[3].rm_so, NULL, 10);
    int64_t granted_ns = check->returned_ns;
    if (elapsed_ms < 1000000 && check->seen_ns + elapsed_ms * MS < granted_ns)
        granted_ns = check->seen_ns + elapsed_ms * MS;
    if (validity_ms <= check->ttl_ms && granted_ns + validity_ms * MS > check->latest_ns)
        check->latest_ns = granted_ns + validity_ms * MS;
}

/* If a grant is past its deadline on arrival, the library confirms it by an EXTEND. The id of
 * this EXTEND is the id of the LOCK plus a multiple of LIMIT_CLIENT_REQUESTS. */
static void check_confirmations(struct check *check, uint64_t id)
{
    enum { USES = 64 };
    char request[512];
    for (unsigned i = 0; i < USES; i++) {
        id += LIMIT_CLIENT_REQUESTS;
        if (hostile_request(server, id, request, &check->seen_ns) &&
            strncmp(request, "EXTEND ", 7) == 0 && strstr(request, check->lock->token) != NULL)
            hostile_each_reply(server, id, check_grant, check);
    }
}

/* The library has reported this lock for request `id`, a LOCK or an EXTEND. Fails unless the server
 * has sent a reply that grants the lock, and unless the reported deadline is allowed by such a
 * reply or is not after earlier_ns: the deadline before an EXTEND, 0 for a LOCK. */
static void expect_backed_by_grant(uint64_t id, const struct redlock_lock *lock, int64_t earlier_ns)
{
    char request[512];
    struct check check = {
        .lock = lock, .ttl_ms = lock->ttl_ms, .returned_ns = hostile_clock_ns(), .latest_ns = 0};
    ck_assert(hostile_request(server, id, request, &check.seen_ns));
    ck_assert(strstr(request, lock->resource) != NULL);
    if (strncmp(request, "EXTEND ", 7) == 0)
        ck_assert_ptr_nonnull(strstr(request, lock->token));
    hostile_each_reply(server, id, check_grant, &check);
    ck_assert_msg(check.latest_ns != 0, "%s: it was never granted %s", request, lock->token);
    if (strncmp(request, "LOCK ", 5) == 0)
        check_confirmations(&check, id);
    if (earlier_ns > check.latest_ns)
        check.latest_ns = earlier_ns;
    ck_assert_int_le(lock->deadline_ns, check.latest_ns);
}

/* Sends a LOCK with redlock_start_acquire(), which returns the id of the request, and waits for the
 * answer. Checks the lock if the answer is a grant. */
static struct redlock_event acquire(struct redlock *redlock, bool hold)
{
    uint64_t id;
    library_expect(redlock,
                   redlock_start_acquire(redlock, "a", TTL_MS,
                                         &(struct redlock_lock_options){.hold = hold}, &id),
                   REDLOCK_OK);
    struct redlock_event event;
    do
        event = library_next(redlock);
    while (event.kind != REDLOCK_EVENT_ANSWER);
    ck_assert_uint_eq(event.id, id);
    if (event.status == REDLOCK_OK)
        expect_backed_by_grant(id, &event.lock, 0);
    return event;
}

/* --- one fault at a time --- */

/* "#1024 OK <40 digits> 10000 0 -\n" */
enum { ANSWER_LEN = 6 + 3 + 41 + 6 + 2 + 2 };

TEST(a_truncated_reply_is_not_a_grant)
{
    open_stage(__func__);
    for (size_t at = 0; at <= ANSWER_LEN; at++) {
        struct redlock *redlock = new_handle(PATIENT_MS);
        hostile_set(server, &(struct hostile_plan){.kind = HOSTILE_CUT, .at = at});
        struct redlock_event event = acquire(redlock, at % 2 == 0);
        library_expect(redlock, event.status, at == ANSWER_LEN ? REDLOCK_OK : REDLOCK_BROKEN);
        redlock_free(redlock);
    }
    close_stage();
}

TEST(a_reply_in_pieces_is_a_grant)
{
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    for (size_t at = 0; at <= ANSWER_LEN; at++) {
        hostile_set(server, &(struct hostile_plan){.kind = HOSTILE_SPLIT, .at = at});
        library_expect(redlock, acquire(redlock, false).status, REDLOCK_OK);
    }
    redlock_free(redlock);
    close_stage();
}

/* The deadline counts from the time before the request is sent, not from the reply. */
TEST(a_delayed_reply_does_not_move_the_deadline)
{
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    int64_t before_ns = hostile_clock_ns();
    hostile_set(server, &(struct hostile_plan){.delay_ms = 30});
    struct redlock_event event = acquire(redlock, false);
    library_expect(redlock, event.status, REDLOCK_OK);
    ck_assert_int_ge(event.sent_ns, before_ns);
    ck_assert_int_eq(event.lock.deadline_ns, event.sent_ns + TTL_MS * MS);
    redlock_free(redlock);
    close_stage();
}

/* The server states a longer elapsed time than has passed on the client's clock. */
TEST(an_elapsed_time_from_the_daemon_is_capped_by_the_clock)
{
    static const int64_t elapsed_ms[] = {100000, 999999999999999, 60000};
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    for (size_t i = 0; i < sizeof(elapsed_ms) / sizeof(elapsed_ms[0]); i++) {
        hostile_set(server, &(struct hostile_plan){.elapsed_ms = elapsed_ms[i]});
        struct redlock_event event = acquire(redlock, false);
        library_expect(redlock, event.status, REDLOCK_OK);
        ck_assert_int_le(event.lock.deadline_ns, hostile_clock_ns() + TTL_MS * MS);
        ck_assert_int_le(redlock_left_ms(&event.lock), TTL_MS);
    }
    redlock_free(redlock);
    close_stage();
}

TEST(a_grant_past_its_deadline_on_arrival_is_released)
{
    struct redlock_lock lock;
    char unlock[512] = "";
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    /* Each reply is delayed beyond the validity that it grants. That also holds for the reply to
     * the EXTEND by which the library tries to confirm the grant. */
    hostile_set(server, &(struct hostile_plan){.delay_ms = 20, .validity_ms = 5});
    library_expect(redlock, redlock_acquire(redlock, "a", TTL_MS, NULL, &lock, NULL), REDLOCK_LATE);
    ck_assert_int_eq(lock.deadline_ns, 0);
    snprintf(unlock, sizeof(unlock), "UNLOCK a %08xabcdef0123456789abcdef0123456789",
             1 * 2654435761u);
    struct waiting waiting = waiting_for("the lock to be given back");
    while (!hostile_received(server, unlock))
        waiting_pause(&waiting);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    redlock_free(redlock);
    close_stage();
}

static const struct {
    const char *instead; /* reply to LOCK and EXTEND */
    enum redlock_status status;
} answers[] = {
    {"OK", REDLOCK_GARBLED},
    {"OK 0123456789abcdef0123456789abcdef01234567 10001 0 -", REDLOCK_GARBLED},
    {"OK 0123456789abcdef0123456789abcdef0123456 9000 0 -", REDLOCK_GARBLED},
    {"OK 0123456789abcdef0123456789abcdef01234567 9000 0", REDLOCK_GARBLED},
    {"PONG", REDLOCK_GARBLED},
    {"FREE", REDLOCK_GARBLED},
    {"ok", REDLOCK_GARBLED},
    {"HELD 5", REDLOCK_HELD},
    {"NOQUORUM 1/3 need=2", REDLOCK_NOQUORUM},
    {"LATE 5", REDLOCK_LATE},
    {"LIMIT waiters", REDLOCK_LIMIT},
    {"SHUTDOWN", REDLOCK_SHUTDOWN},
    {"DENIED you", REDLOCK_DENIED},
    {"ERR ttl-range no", REDLOCK_REFUSED},
};

TEST_ROWS(each_reply_maps_to_its_status, answers)
{
    struct redlock_lock lock;
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    hostile_set(server, &(struct hostile_plan){.instead = answers[_i].instead});
    library_expect(redlock, redlock_acquire(redlock, "a", TTL_MS, NULL, &lock, NULL),
                   answers[_i].status);
    ck_assert_int_eq(lock.deadline_ns, 0);
    ck_assert_str_ne(redlock_error(redlock), "");
    ck_assert_ptr_null(strchr(redlock_error(redlock), '\n'));
    /* After any reply, the next request works. */
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    redlock_free(redlock);
    close_stage();
}

TEST(an_extension_of_another_token_is_rejected)
{
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    struct redlock_lock lock = {
        .resource = "a", .token = "1123456789abcdef0123456789abcdef01234567", .deadline_ns = 77};
    hostile_set(server, &(struct hostile_plan){
                            .instead = "OK 0123456789abcdef0123456789abcdef01234567 9000 0"});
    library_expect(redlock, redlock_extend(redlock, &lock, TTL_MS), REDLOCK_GARBLED);
    ck_assert_int_eq(lock.deadline_ns, 77);
    hostile_set(server, &(struct hostile_plan){.instead = "NOQUORUM 1/3 need=2"});
    library_expect(redlock, redlock_extend(redlock, &lock, TTL_MS), REDLOCK_NOQUORUM);
    ck_assert_int_eq(lock.deadline_ns, 77);
    redlock_free(redlock);
    close_stage();
}

TEST_LOOP(a_server_that_never_answers_costs_the_timeout, 0, 2)
{
    static const struct hostile_plan plans[] = {{.kind = HOSTILE_SILENT}, {.kind = HOSTILE_FLOOD}};
    struct redlock_lock lock;
    open_stage(__func__);
    struct redlock *redlock = new_handle(50);
    hostile_set(server, &plans[_i]);
    int64_t before_ns = hostile_clock_ns();
    library_expect(redlock, redlock_acquire(redlock, "a", TTL_MS, NULL, &lock, NULL),
                   REDLOCK_TIMEOUT);
    ck_assert_int_ge(hostile_clock_ns() - before_ns, 50 * MS);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_TIMEOUT);
    redlock_free(redlock);
    close_stage();
}

/* A connection can be dead without an error, for example because a firewall has lost its state.
 * Only a new connection reaches the daemon. */
TEST(an_abandoned_connection_is_replaced)
{
    struct redlock_lock lock;
    struct redlock_event event;
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    hostile_set(server, &(struct hostile_plan){.kind = HOSTILE_NONE});
    library_expect(redlock, redlock_acquire(redlock, "a", TTL_MS, NULL, &lock, NULL), REDLOCK_OK);
    hostile_set(server, &(struct hostile_plan){.kind = HOSTILE_SILENT});
    library_expect(redlock, redlock_start_extend(redlock, &lock, TTL_MS, NULL), REDLOCK_OK);
    redlock_abandon(redlock);
    hostile_set(server, &(struct hostile_plan){.kind = HOSTILE_NONE});
    ck_assert(redlock_next(redlock, &event));
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_ANSWER);
    library_expect(redlock, event.status, REDLOCK_BROKEN);
    ck_assert(redlock_next(redlock, &event));
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_CLOSED);
    library_expect(redlock, redlock_extend(redlock, &lock, TTL_MS), REDLOCK_OK);
    ck_assert_uint_eq(server->connections, 1);
    redlock_free(redlock);
    close_stage();
}

/* Consumes lines more slowly than they arrive, so that there is always input. */
static void read_slowly(void *context, const char *text)
{
    int64_t until_ns = hostile_clock_ns() + MS / 50;
    (void)context;
    ck_assert_str_eq(text, "node=n1 vote=yes");
    while (hostile_clock_ns() < until_ns)
        continue;
}

TEST(a_listing_without_end_costs_the_timeout)
{
    open_stage(__func__);
    struct redlock *redlock = new_handle(50);
    hostile_set(server, &(struct hostile_plan){.kind = HOSTILE_FLOOD});
    library_expect(redlock, redlock_list(redlock, "NODES", read_slowly, NULL), REDLOCK_TIMEOUT);
    redlock_free(redlock);
    close_stage();
}

TEST(a_missing_socket_is_unreachable)
{
    struct redlock_lock lock;
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    hostile_set(server, &(struct hostile_plan){0});
    library_expect(redlock, redlock_acquire(redlock, "a", TTL_MS, NULL, &lock, NULL), REDLOCK_OK);
    redlock_free(redlock);
    redlock = redlock_new("unix:/nonexistent");
    library_expect(redlock, redlock_release(redlock, &lock), REDLOCK_UNREACHABLE);
    ck_assert_int_eq(lock.deadline_ns, 0);
    redlock_free(redlock);
    close_stage();
}

TEST(the_place_in_the_queue_is_read_from_the_listing)
{
    uint64_t id;
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    hostile_set(server, &(struct hostile_plan){0});
    library_expect(redlock, redlock_start_place(redlock, "a", &id), REDLOCK_OK);
    struct redlock_event event = library_next(redlock);
    library_expect(redlock, event.status, REDLOCK_OK);
    ck_assert_uint_eq(event.id, id);
    ck_assert_uint_eq(event.place, 3);
    hostile_set(server, &(struct hostile_plan){.instead = "END"});
    library_expect(redlock, redlock_start_place(redlock, "a", &id), REDLOCK_OK);
    event = library_next(redlock);
    library_expect(redlock, event.status, REDLOCK_OK);
    ck_assert_uint_eq(event.place, 0);
    redlock_free(redlock);
    close_stage();
}

/* --- losses --- */

TEST(a_loss_is_reported_before_the_reply_that_follows_it)
{
    uint64_t id;
    char lost[128];
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    hostile_set(server, &(struct hostile_plan){0});
    struct redlock_event event = acquire(redlock, true);
    library_expect(redlock, event.status, REDLOCK_OK);
    struct redlock_lock lock = event.lock;
    snprintf(lost, sizeof(lost), "! LOST a %s noquorum\n! LOST a %s noquorum\n", lock.token,
             lock.token);
    hostile_set(server, &(struct hostile_plan){.before = lost});
    library_expect(redlock, redlock_start_ping(redlock, &id), REDLOCK_OK);
    event = library_next(redlock);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.lock.token, lock.token);
    event = library_next(redlock);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_ANSWER);
    library_expect(redlock, event.status, REDLOCK_OK);
    ck_assert(!redlock_next(redlock, &event));
    redlock_free(redlock);
    close_stage();
}

/* Closing the unix socket would release the lock, although its holder may still rely on it. The
 * library therefore keeps the socket open. */
TEST(a_garbled_connection_with_a_hold_stays_open)
{
    struct redlock_lock lock;
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    hostile_set(server, &(struct hostile_plan){0});
    library_expect(redlock, acquire(redlock, true).status, REDLOCK_OK);
    unsigned open_files = process_open_files(getpid());
    hostile_set(server, &(struct hostile_plan){.instead = "PONG"});
    library_expect(redlock, redlock_acquire(redlock, "b", TTL_MS, NULL, &lock, NULL),
                   REDLOCK_GARBLED);
    ck_assert_uint_eq(process_open_files(getpid()), open_files);
    redlock_free(redlock);
    close_stage();
}

/* At loop index 0 the grant is followed by garbage, at 1 by an error that ends the connection. */
TEST_LOOP(a_grant_stays_valid_if_its_connection_fails_at_once, 0, 2)
{
    static const char grant[] = "OK aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 10000 0 -";
    static const char *const after[] = {"PONG", "SHUTDOWN"};
    char both[128];
    snprintf(both, sizeof(both), "%s\n%s", grant, after[_i]);
    open_stage(__func__);
    struct redlock *redlock = new_handle(PATIENT_MS);
    hostile_set(server, &(struct hostile_plan){.instead = both});
    ck_assert_int_ge(redlock_fd(redlock), 0);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    unsigned open_files = process_open_files(getpid());
    library_expect(redlock, acquire(redlock, true).status, REDLOCK_OK);
    ck_assert(!redlock_is_connected(redlock));
    ck_assert_uint_eq(process_open_files(getpid()), open_files);
    redlock_free(redlock);
    close_stage();
}

/* --- random faults --- */

struct run {
    struct redlock *redlock;
    struct prng prng;
    struct {
        uint64_t id;
        int64_t earlier_ns;
    } open[OPEN];
    unsigned open_count;
    struct redlock_lock lock; /* last granted lock */
};

static void forget(struct run *run, unsigned at)
{
    run->open[at] = run->open[--run->open_count];
}

static void on_event(struct run *run, const struct redlock_event *event)
{
    if (event->kind != REDLOCK_EVENT_ANSWER)
        return;
    unsigned at = 0;
    while (at < run->open_count && run->open[at].id != event->id)
        at++;
    ck_assert_msg(at < run->open_count, "no request has the id %" PRIu64, event->id);
    if (event->status == REDLOCK_OK && event->lock.token[0] != '\0') {
        expect_backed_by_grant(event->id, &event->lock, run->open[at].earlier_ns);
        run->lock = event->lock;
    } else {
        ck_assert_int_eq(event->lock.deadline_ns, 0);
    }
    if (event->status != REDLOCK_OK)
        ck_assert_str_ne(redlock_error(run->redlock), "");
    forget(run, at);
}

static void operate(struct run *run)
{
    struct redlock *redlock = run->redlock;
    enum redlock_status status = REDLOCK_OK;
    const struct redlock_lock_options options = {.wait_ms = prng_below(&run->prng, 2) * 5,
                                                 .fence = prng_below(&run->prng, 2) != 0,
                                                 .hold = prng_below(&run->prng, 2) != 0};
    struct redlock_lock lock;
    int64_t earlier_ns = 0;
    uint64_t id = 0;
    switch (prng_below(&run->prng, 10)) {
    case 0:
        if (run->lock.token[0] == '\0')
            return;
        earlier_ns = run->lock.deadline_ns;
        status = redlock_start_extend(redlock, &run->lock, TTL_MS, &id);
        break;
    case 1:
        if (run->lock.token[0] == '\0')
            return;
        status = redlock_start_release(redlock, &run->lock, &id);
        break;
    case 2:
        status = redlock_start_query(redlock, "a", &id);
        break;
    case 3:
        status = redlock_start_ping(redlock, &id);
        break;
    case 4:
        status = redlock_start_place(redlock, "a", &id);
        break;
    case 5:
        if (run->open_count == 0)
            return;
        unsigned at = prng_below(&run->prng, run->open_count);
        redlock_cancel(redlock, run->open[at].id);
        forget(run, at);
        return;
    case 6:
        status = redlock_acquire(redlock, "a", TTL_MS, &options, &lock, NULL);
        ck_assert(status == REDLOCK_OK || lock.deadline_ns == 0);
        return;
    default:
        status = redlock_start_acquire(redlock, "a", TTL_MS, &options, &id);
        break;
    }
    library_expect(redlock, status, REDLOCK_OK);
    run->open[run->open_count].earlier_ns = earlier_ns;
    run->open[run->open_count++].id = id;
}

static void run_seed(uint64_t seed)
{
    struct run run = {.redlock = new_handle(10), .prng = {seed}};
    struct redlock_event event;
    hostile_set(server,
                &(struct hostile_plan){.kind = HOSTILE_RANDOM, .seed = prng_draw(&run.prng)});
    for (unsigned i = 0; i < OPERATIONS; i++) {
        operate(&run);
        while (prng_below(&run.prng, 2) == 0 && redlock_next(run.redlock, &event))
            on_event(&run, &event);
    }
    while (run.open_count > 0) {
        event = library_next(run.redlock);
        on_event(&run, &event);
    }
    redlock_free(run.redlock);
}

/* Reads a number from the environment: HOSTILE_SEED is the first seed, HOSTILE_RUNS the number of
 * runs. */
TEST(a_hostile_server_cannot_fake_a_lock)
{
    open_stage(__func__);
    unsigned first = runner_setting("HOSTILE_SEED", 1);
    unsigned count = runner_setting("HOSTILE_RUNS", SEEDS);
    for (unsigned seed = first; seed < first + count; seed++) {
        mark_point();
        run_seed(seed);
        /* The server may still have requests of this run to read. A new server cannot record them
         * as requests of the next run. */
        hostile_stop(server);
        hostile_start(server, path);
    }
    close_stage();
}
