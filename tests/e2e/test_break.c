/*
 * BREAK on real masters: permissions, the effect on the lock, and the log.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/secrets.h"
#include "tests/e2e/stage.h"
#include "tests/runner.h"

TEST(only_the_owner_of_the_daemon_may_break_a_lock)
{
    struct stage stage;
    struct client tcp;
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3, .daemon = {.tcp_host = "127.0.0.1"}});
    client_connect_tcp(&tcp, "127.0.0.1", stage.daemon.port);
    client_expect(&tcp, "OK", "NAME victim");
    struct grant grant = client_lock(&tcp, "a", "60s");
    client_expect(&tcp,
                  "DENIED BREAK requires a user with that verb; without users, root or the "
                  "daemon's own user on a unix socket",
                  "BREAK a");
    client_expect(&stage.client, "OK", "NAME boss");
    client_expect(&stage.client, "OK", "BREAK a");
    client_expect(&stage.client, "FREE", "BREAK a");
    client_expect(&tcp, "GONE", "EXTEND a %s 10s", grant.token);
    char line[128];
    snprintf(line, sizeof(line), "resource=a token=%.8s user=\"\" peer=uid=%u,pid=", grant.token,
             (unsigned)geteuid());
    daemon_wait_log(&stage.daemon, "warning lock_broken", line);
    daemon_wait_log(&stage.daemon, "name=boss", "of_name=victim");
    stage_wait_no_keys(&stage);
    client_close(&tcp);
    stage_close(&stage);
}

TEST(a_user_needs_the_verb_to_break_a_lock)
{
    struct secrets secrets;
    struct stage stage;
    struct client ci;
    struct client ops;
    secrets_open(&secrets, "");
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3,
                                    .daemon = {.tcp_host = "127.0.0.1", .yaml = secrets.yaml}});
    client_connect_tcp(&ci, "127.0.0.1", stage.daemon.port);
    client_connect_tcp(&ops, "127.0.0.1", stage.daemon.port);
    client_expect(&ci, "DENIED authenticate first: AUTH <secret>", "BREAK ci:a");
    client_expect(&ci, "OK", "AUTH " SECRET_CI);
    client_expect(&ops, "OK", "AUTH " SECRET_OPS);
    client_lock(&ci, "ci:a", "60s");
    client_expect(&ci, "DENIED user ci may not use BREAK", "BREAK ci:a");
    client_expect(&ops, "OK", "BREAK ci:a");
    daemon_wait_log(&stage.daemon, "lock_broken", "user=ops");
    ck_assert_uint_eq(client_count(&ops, "STATS", " broken=1"), 1);
    client_close(&ci);
    client_close(&ops);
    stage_close(&stage);
    secrets_close(&secrets);
}

/* BREAK does not stop a holder without HOLD, so two grants are valid until it sends EXTEND. */
TEST(a_broken_lock_is_granted_before_the_deadline_of_its_holder)
{
    struct stage stage;
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3});
    struct grant broken = client_lock(&stage.client, "a", "60s");
    client_expect(&stage.client, "OK", "BREAK a");
    /* The keys of a minority may be deleted after the reply. */
    client_lock(&stage.client, "a", "60s WAIT 10s");
    client_expect(&stage.client, "GONE", "EXTEND a %s 60s", broken.token);
    stage_close(&stage);
}

/* The daemon of the holder extends the hold, and learns from its next extension that the lock is
 * gone. */
TEST(breaking_a_hold_of_another_daemon_grants_its_waiter)
{
    struct stage stage;
    struct daemon other;
    struct client holder;
    struct client waiter;
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3});
    stage_start_daemon(&stage, &other, &(struct daemon_plan){.name = "other"});
    daemon_connect(&other, &holder);
    daemon_connect(&other, &waiter);
    struct grant grant = client_lock(&holder, "a", "6s HOLD");
    client_send(&waiter, "LOCK a 5s WAIT 60s\n");
    client_wait_count(&holder, "LOCKS", "waiters=1", 1);
    client_expect(&stage.client, "OK", "BREAK a");
    daemon_wait_log(&stage.daemon, "lock_broken", "of_client=0");
    client_read_match(&waiter, "OK .*");
    char lost[128];
    snprintf(lost, sizeof(lost), "! LOST a %s gone", grant.token);
    ck_assert_str_eq(client_read(&holder), lost);
    client_close(&holder);
    client_close(&waiter);
    daemon_stop(&other);
    stage_close(&stage);
}

/* Two of three masters temporarily refuse a command of the daemon that breaks the lock: DEL, which
 * deletes the key, or SET, which freezes it. Meanwhile the holder extends the lock through its own
 * daemon. If the holder got OK, the lock must survive the BREAK that failed. */
static const char *const refused[] = {"del", "set"};

TEST_LOOP(an_extension_answered_ok_outlives_a_failed_break, 0, 2)
{
    struct stage stage;
    struct daemon other;
    struct client breaker;
    char path[SANDBOX_FILE];
    char fields[SANDBOX_FILE + 64];
    char acl[64];
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3});
    masters_run(stage.masters, 3, "ACL SETUSER brk on >xyzzy ~* &* +@all");
    sandbox_path(&stage.sandbox, "password", path);
    sandbox_write(path, "xyzzy\n");
    snprintf(fields, sizeof(fields), ", username: brk, password_file: %s", path);
    stage_start_daemon(&stage, &other,
                       &(struct daemon_plan){.name = "other", .node_fields = fields});
    daemon_connect(&other, &breaker);
    struct grant grant = client_lock(&stage.client, "a", "60s");

    snprintf(acl, sizeof(acl), "ACL SETUSER brk -%s", refused[_i]);
    masters_run(&stage.masters[1], 2, acl);
    client_expect_match(&breaker, "NOQUORUM .*", "BREAK a");
    char line[128];
    snprintf(line, sizeof(line), "EXTEND a %s 60s\n", grant.token);
    client_send(&stage.client, line);
    bool extended = strncmp(client_read(&stage.client), "OK ", 3) == 0;
    snprintf(acl, sizeof(acl), "ACL SETUSER brk +%s", refused[_i]);
    masters_run(&stage.masters[1], 2, acl);

    /* From here on, no release of the failed BREAK can reach a master late. */
    client_wait_count(&breaker, "NODES", " pending_releases=0 ", 3);
    client_expect_match(&stage.client, extended ? "HELD .*" : "OK .*", "LOCK a 1s WAIT 1s");
    client_expect_match(&breaker, extended ? "OK" : "(FREE|OK)", "BREAK a");
    client_close(&breaker);
    daemon_stop(&other);
    stage_close(&stage);
}

/* A key with a value that is not a token of redlockd must not be deleted. */
TEST(foreign_keys_are_not_broken)
{
    static const char *const values[] = {"somebody",
                                         "0123456789abcdef0123456789abcdef01234567-and-more"};
    struct stage stage;
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3});
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        for (unsigned n = 0; n < 3; n++)
            master_text(&stage.masters[n], "SET redlock:a %s PX 60000", values[i]);
        client_expect_match(&stage.client, "HELD [0-9]+", "BREAK a");
        client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    }
    for (unsigned n = 0; n < 3; n++)
        master_integer(&stage.masters[n], "DEL redlock:a");
    stage_close(&stage);
}
