/*
 * Semaphores on real masters: the slots that clients get, through one daemon and through two; what
 * happens to the other slots when a holder or a master ends; and `redlock --slots`.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/command.h"
#include "tests/e2e/library.h"
#include "tests/e2e/monitor.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/e2e/wrapper.h"
#include "tests/runner.h"

static const struct stage_plan five = {.masters = 5, .over_unix = true};

/* A granted slot. */
struct slot {
    char token[41];
    char name[32];
    unsigned number;
};

/* Reads a grant from the reply, which may have a tag. */
static struct slot slot_of(const char *reply)
{
    struct slot slot;
    const char *words = strstr(reply, "OK ");
    ck_assert_msg(words != NULL &&
                      sscanf(words, "OK %40s %*d %*d %*s %31s", slot.token, slot.name) == 2 &&
                      sscanf(strrchr(slot.name, '#'), "#%u", &slot.number) == 1,
                  "no slot: %s", reply);
    return slot;
}

static struct slot lock_slot(struct client *client, const char *options)
{
    return slot_of(client_ask(client, "LOCK s 10s SLOTS 3%s", options));
}

/* --- many clients --- */

enum { EACH = 20, CLIENTS = 2 * EACH, SLOTS = 5, GRANTS = 1000 };

struct contender {
    struct client client;
    struct slot slot;
    bool holds;
    unsigned granted;
};

static struct contender contenders[CLIENTS];
static bool held[SLOTS + 1];
static unsigned granted;

static void on_line(struct contender *contender)
{
    const char *reply = client_read(&contender->client);
    if (strcmp(reply, "OK") == 0) {
        client_send(&contender->client, "LOCK s 10s SLOTS 5 WAIT 60s\n");
        return;
    }
    contender->slot = slot_of(reply);
    ck_assert_uint_ge(contender->slot.number, 1);
    ck_assert_uint_le(contender->slot.number, SLOTS);
    ck_assert_msg(!held[contender->slot.number], "slot %u has two holders", contender->slot.number);
    held[contender->slot.number] = contender->holds = true;
    contender->granted++;
    granted++;
}

static void release(struct contender *contender)
{
    char line[96];
    held[contender->slot.number] = contender->holds = false;
    snprintf(line, sizeof(line), "UNLOCK %s %s\n", contender->slot.name, contender->slot.token);
    client_send(&contender->client, line);
}

static double jain(unsigned first, unsigned count)
{
    double sum = 0, squares = 0;
    for (unsigned i = first; i < first + count; i++) {
        sum += contenders[i].granted;
        squares += (double)contenders[i].granted * contenders[i].granted;
    }
    return sum * sum / (count * squares);
}

/* Forty clients, through two daemons, take five slots over and over. Each keeps its slot until the
 * replies of all others have been read. */
TEST(clients_of_two_daemons_share_the_slots)
{
    struct stage stage;
    struct daemon second;
    struct pollfd ready[CLIENTS];
    stage_open(&stage, __func__, &five);
    stage_start_daemon(&stage, &second, &(struct daemon_plan){.name = "second"});
    memset(contenders, 0, sizeof(contenders));
    for (unsigned i = 0; i < CLIENTS; i++) {
        daemon_connect(i < EACH ? &stage.daemon : &second, &contenders[i].client);
        client_send(&contenders[i].client, "LOCK s 10s SLOTS 5 WAIT 60s\n");
        ready[i] = (struct pollfd){.fd = contenders[i].client.fd, .events = POLLIN};
    }
    granted = 0;
    while (granted < GRANTS) {
        ck_assert_int_gt(poll(ready, CLIENTS, WAITING_DEADLINE_MS), 0);
        for (unsigned i = 0; i < CLIENTS; i++)
            while (granted < GRANTS && client_has_line(&contenders[i].client))
                on_line(&contenders[i]);
        for (unsigned i = 0; i < CLIENTS; i++)
            if (contenders[i].holds)
                release(&contenders[i]);
    }
    printf("Jain: %.3f and %.3f within the daemons, %.3f across both\n", jain(0, EACH),
           jain(EACH, EACH), jain(0, CLIENTS));
    ck_assert_double_ge(jain(0, EACH), 0.9);
    ck_assert_double_ge(jain(EACH, EACH), 0.9);
    for (unsigned i = 0; i < CLIENTS; i++)
        client_close(&contenders[i].client);
    stage_wait_no_keys(&stage);
    daemon_stop(&second);
    stage_close(&stage);
}

/* --- a holder or a master ends --- */

/* One of three holders ends in one of these ways. The others keep their slots, and the waiter gets
 * the slot: at once after a clean end, and by its deadline after any other. */
static const struct {
    const char *what;
    void (*end)(struct client *client);
    bool clean;
} ends[] = {
    {"closed", client_close, true},
    {"reset", client_reset, false},
};

TEST_ROWS(end_of_a_holder_frees_only_its_slot, ends)
{
    struct stage stage;
    struct client holders[3];
    struct client waiter;
    struct slot slots[3];
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 5, .daemon = {.tcp_host = "127.0.0.1"}});
    for (unsigned i = 0; i < 3; i++) {
        client_connect_tcp(&holders[i], "127.0.0.1", stage.daemon.port);
        slots[i] = slot_of(client_ask(&holders[i], "LOCK s 3s SLOTS 3 HOLD"));
    }
    daemon_connect(&stage.daemon, &waiter);
    client_send(&waiter, "LOCK s 3s SLOTS 3 WAIT 60s\n");
    stage_wait_stats(&stage.client, " waiting=1 ");
    int64_t ended_ms = waiting_clock_ms();
    ends[_i].end(&holders[1]);
    struct slot slot = slot_of(client_read(&waiter));
    ck_assert_str_eq(slot.name, slots[1].name);
    if (!ends[_i].clean)
        ck_assert_int_ge(waiting_clock_ms() - ended_ms, 500);
    client_expect(&waiter, "OK", "UNLOCK %s %s", slot.name, slot.token);
    client_expect(&holders[0], "OK", "UNLOCK %s %s", slots[0].name, slots[0].token);
    client_expect(&holders[2], "OK", "UNLOCK %s %s", slots[2].name, slots[2].token);
    client_close(&holders[0]);
    client_close(&holders[2]);
    client_close(&waiter);
    stage_close(&stage);
}

TEST(masters_that_restart_do_not_affect_the_slots)
{
    struct stage stage;
    struct slot slots[3];
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 5});
    for (unsigned i = 0; i < 3; i++)
        slots[i] = lock_slot(&stage.client, " HOLD");
    master_restart(&stage.masters[0]);
    master_restart(&stage.masters[3]);
    stage_wait_nodes(&stage, "state=up", 5);
    client_expect_match(&stage.client, "HELD (-1|[0-9]+)", "LOCK s 10s SLOTS 3 WAIT 1ms");
    for (unsigned i = 0; i < 3; i++)
        client_expect(&stage.client, "OK", "UNLOCK %s %s", slots[i].name, slots[i].token);
    struct slot slot = lock_slot(&stage.client, " WAIT 10s");
    client_expect(&stage.client, "OK", "UNLOCK %s %s", slot.name, slot.token);
    stage_close(&stage);
}

TEST(waiters_are_listed_under_the_name_of_the_semaphore)
{
    enum { WAITERS = 1000 };
    struct stage stage;
    struct client waiter;
    char line[64];
    stage_open(&stage, __func__, &five);
    for (unsigned i = 0; i < 3; i++)
        lock_slot(&stage.client, " HOLD");
    daemon_connect(&stage.daemon, &waiter);
    for (unsigned i = 0; i < WAITERS; i++) {
        snprintf(line, sizeof(line), "#%u LOCK s 10s SLOTS 3 WAIT 60s\n", i);
        client_send(&waiter, line);
    }
    stage_wait_stats(&stage.client, " waiting=1000 ");
    client_send(&stage.client, "LOCKS s\n");
    client_read_match(&stage.client, "resource=s .* waiters=1000 place=- slots=3/3");
    client_read_match(&stage.client, "END");
    client_expect_match(&stage.client, "HELD [0-9]+ 3/3", "STATUS s SLOTS 3");
    client_close(&waiter);
    stage_close(&stage);
}

/* --- redlock --slots and libredlock --- */

TEST(redlock_runs_a_limited_number_of_commands)
{
    struct stage stage;
    struct command command;
    struct slot slot;
    char url[SANDBOX_FILE + 8];
    char whole[128];
    stage_open(&stage, __func__, &five);
    snprintf(url, sizeof(url), "unix:%s", stage.daemon.socket);
    setenv("REDLOCK_URL", url, 1);
    command_run(
        &command, &stage.sandbox,
        (const char *const[]){wrapper_program(), "lock", "--slots", "2", "--fence", "s", NULL});
    ck_assert_int_eq(sscanf(command.output, "%40s %*d %31s", slot.token, slot.name), 2);
    snprintf(whole, sizeof(whole), "%.*s", (int)strcspn(command.output, "\n"), command.output);
    command_free(&command);
    command_run(&command, &stage.sandbox,
                (const char *const[]){wrapper_program(), "run", "--slots", "2", "s", "--", "sh",
                                      "-c", "echo $REDLOCK_RESOURCE", NULL});
    ck_assert_int_eq(command.status, 0);
    ck_assert_str_eq(command.output, strcmp(slot.name, "s#1") == 0 ? "s#2\n" : "s#1\n");
    command_free(&command);
    command_run(&command, &stage.sandbox,
                (const char *const[]){wrapper_program(), "status", "--slots", "2", "s", NULL});
    ck_assert_str_eq(command.output, "free 1/2\n");
    command_free(&command);
    command_run(&command, &stage.sandbox,
                (const char *const[]){wrapper_program(), "run", "-n", "--slots", "1", "s#1", "--",
                                      "true", NULL});
    ck_assert_int_eq(command.status, 0);
    command_free(&command);
    command_run(&command, &stage.sandbox,
                (const char *const[]){wrapper_program(), "unlock", "s", slot.token, NULL});
    ck_assert_int_eq(command.status, 1);
    command_free(&command);
    /* The whole output of lock names the slot. */
    command_run(&command, &stage.sandbox,
                (const char *const[]){wrapper_program(), "extend", "s", whole, NULL});
    ck_assert_int_eq(command.status, 0);
    command_free(&command);
    command_run(&command, &stage.sandbox,
                (const char *const[]){wrapper_program(), "unlock", "s", whole, NULL});
    ck_assert_int_eq(command.status, 0);
    command_free(&command);
    unsetenv("REDLOCK_URL");
    stage_close(&stage);
}

TEST(libredlock_acquires_slots)
{
    struct stage stage;
    struct redlock_lock locks[3];
    struct redlock_lock refused;
    int64_t hint_ms;
    unsigned count;
    const struct redlock_lock_options options = {.slots = 3};
    stage_open(&stage, __func__, &five);
    struct redlock *redlock = library_open(&stage.daemon);
    for (unsigned i = 0; i < 3; i++)
        library_expect(redlock, redlock_acquire(redlock, "s", 10000, &options, &locks[i], NULL),
                       REDLOCK_OK);
    library_expect(redlock, redlock_acquire(redlock, "s", 10000, &options, &refused, &hint_ms),
                   REDLOCK_HELD);
    ck_assert_int_gt(hint_ms, 0);
    library_expect(redlock, redlock_query_slots(redlock, "s", 3, &count, &hint_ms), REDLOCK_HELD);
    ck_assert_uint_eq(count, 3);
    library_expect(redlock, redlock_query_slots(redlock, "s", 4, &count, NULL), REDLOCK_FREE);
    ck_assert_uint_eq(count, 3);
    for (unsigned i = 0; i < 3; i++) {
        library_expect(redlock, redlock_extend(redlock, &locks[i], 20000), REDLOCK_OK);
        library_expect(redlock, redlock_release(redlock, &locks[i]), REDLOCK_OK);
    }
    library_expect(redlock, redlock_query_slots(redlock, "s", 0, NULL, NULL), REDLOCK_INVALID);
    redlock_free(redlock);
    stage_close(&stage);
}

/* A grant that the caller has given up is released by the name of its slot. */
TEST(libredlock_gives_back_a_slot_that_nobody_wants)
{
    struct stage stage;
    uint64_t id;
    const struct redlock_lock_options options = {.slots = 2, .wait_ms = 10000};
    const struct redlock_lock_options other = {.hold = true};
    struct redlock_lock lock;
    stage_open(&stage, __func__, &five);
    struct redlock *redlock = library_open(&stage.daemon);
    /* The HOLD keeps the connection open when the request is cancelled. */
    library_expect(redlock, redlock_acquire(redlock, "a", 10000, &other, &lock, NULL), REDLOCK_OK);
    library_expect(redlock, redlock_start_acquire(redlock, "s", 60000, &options, &id), REDLOCK_OK);
    redlock_cancel(redlock, id);
    struct waiting waiting = waiting_for("the slot to be released");
    do {
        library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
        client_ask(&stage.client, "STATUS s SLOTS 2");
        waiting_pause(&waiting);
    } while (strcmp(stage.client.line, "FREE 0/2") != 0);
    redlock_free(redlock);
    stage_close(&stage);
}
