/*
 * Masters over TLS: the verification of certificates and each way in which it fails, replaced
 * certificates, and links that the daemon abandons or that flood the daemon.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/certs.h"
#include "tests/e2e/command.h"
#include "tests/e2e/flood.h"
#include "tests/e2e/port.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static void make_certificates(const char *dir)
{
    static const struct certs_plan plans[] = {
        {.name = "ca"},
        {.name = "stranger"},
        {.name = "master", .issuer = "ca", .names = "DNS:localhost,IP:127.0.0.1"},
        {.name = "named", .issuer = "ca", .names = "DNS:localhost"},
        {.name = "address", .issuer = "ca", .names = "IP:127.0.0.1"},
        {.name = "other-name", .issuer = "ca", .common = "localhost", .names = "DNS:elsewhere"},
        {.name = "other-address", .issuer = "ca", .common = "127.0.0.1", .names = "IP:127.0.0.2"},
        {.name = "wrong", .issuer = "stranger", .names = "DNS:localhost,IP:127.0.0.1"},
        {.name = "expired", .issuer = "ca", .names = "IP:127.0.0.1", .from_s = -900, .until_s = -9},
        {.name = "early", .issuer = "ca", .names = "IP:127.0.0.1", .from_s = 900, .until_s = 9000},
        {.name = "ending",
         .issuer = "ca",
         .names = "IP:127.0.0.1",
         .from_s = -94608000,
         .until_s = 864000},
        {.name = "client", .issuer = "ca"},
        {.name = "wrong-client", .issuer = "stranger"},
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        certs_make(dir, &plans[i]);
}

/* Formats the TLS fields of a node: the trusted CA and the daemon's own certificate (NULL:
 * none). */
static void write_fields(char *fields, size_t size, const char *dir, const char *ca,
                         const char *client)
{
    int len = snprintf(fields, size, ", ca: %s/%s.crt", dir, ca);
    if (client != NULL)
        snprintf(fields + len, size - (size_t)len, ", certificate: %s/%s.crt, key: %s/%s.key", dir,
                 client, dir, client);
}

static void open_masters(struct stage *stage, const char *test, const struct master_tls *tls)
{
    signal(SIGPIPE, SIG_IGN);
    sandbox_open(&stage->sandbox, test);
    make_certificates(stage->sandbox.dir);
    stage->master_count = 3;
    masters_start(stage->masters, 3, &stage->sandbox, &(struct master_plan){.tls = tls});
}

static void prepare(struct stage *stage, const char *ca, const char *client)
{
    char fields[512];
    write_fields(fields, sizeof(fields), stage->sandbox.dir, ca, client);
    const struct daemon_plan plan = {.node_fields = fields};
    daemon_prepare(&stage->daemon, &stage->sandbox, stage->masters, 3, &plan);
}

static void start(struct stage *stage, unsigned up)
{
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, up);
    daemon_connect(&stage->daemon, &stage->client);
}

/* --- valid certificates --- */

static const struct {
    struct master_tls tls;
    const char *client;
} valid_cases[] = {
    {{.own = "master", .ca = "ca"}, NULL},
    {{.own = "address", .ca = "ca"}, NULL},
    {{.own = "named", .ca = "ca", .host = "localhost"}, NULL},
    {{.own = "master", .ca = "ca", .wants_client = true}, "client"},
};

TEST_ROWS(locks_are_granted_and_freed_over_tls, valid_cases)
{
    struct stage stage;
    struct client second;
    open_masters(&stage, __func__, &valid_cases[_i].tls);
    prepare(&stage, "ca", valid_cases[_i].client);
    daemon_bootstrap(&stage.daemon);
    start(&stage, 3);
    stage_wait_nodes(&stage, "tracking=yes", 3);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    stage_wait_key(&stage, "redlock:a", 3);
    /* After the keys are deleted, the waiter is woken by tracking messages. They arrive over the
     * daemon's second TLS connection to each master. */
    daemon_connect(&stage.daemon, &second);
    client_send(&second, "LOCK a 60s WAIT 50s\n");
    stage_wait_stats(&stage.client, " waiting=1 ");
    masters_run(stage.masters, 3, "DEL redlock:a");
    client_read_match(&second, "OK .*");
    client_expect(&stage.client, "GONE", "UNLOCK a %s", grant.token);
    client_close(&second);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "node_tls_failed"), 0);
    stage_close(&stage);
}

/* The masters' certificate is valid for three years, and ends in ten days. */
TEST(the_probe_shows_a_certificate_that_ends_soon)
{
    struct stage stage;
    struct command command;
    open_masters(&stage, __func__, &(struct master_tls){.own = "ending", .ca = "ca"});
    prepare(&stage, "ca", NULL);
    /* On a busy machine, a round trip can exceed half of the default. The probe reports such a
     * master as too slow. */
    daemon_edit(&stage.daemon, "clock_drift_margin: 40ms", "clock_drift_margin: 400ms");
    const char *argv[] = {daemon_program(), "-t", "--probe", "-c", stage.daemon.config, NULL};
    command_run(&command, &stage.sandbox, argv);
    ck_assert_msg(command.status == 0, "%s%s", command.output, command.errors);
    ck_assert_ptr_nonnull(strstr(command.output, "; its certificate expires on "));
    command_free(&command);
    stage_close_masters(&stage);
}

TEST(a_lost_tls_master_reconnects)
{
    struct stage stage;
    open_masters(&stage, __func__, &valid_cases[0].tls);
    prepare(&stage, "ca", NULL);
    daemon_bootstrap(&stage.daemon);
    start(&stage, 3);
    master_kill(&stage.masters[0]);
    stage_wait_nodes(&stage, "reason=refused", 1);
    master_restart(&stage.masters[0]);
    stage_wait_nodes(&stage, "state=up", 3);
    stage_wait_nodes(&stage, "reason=restarted", 1);
    stage_close(&stage);
}

/* --- invalid certificates --- */

static const struct {
    struct master_tls tls;
    const char *ca;
    const char *client;
    const char *reason;
    const char *why;
} invalid_cases[] = {
    {{.own = "wrong", .ca = "ca"}, "ca", NULL, "untrusted", "unable to get local issuer"},
    {{.own = "stranger", .ca = "ca"}, "ca", NULL, "untrusted", "self-signed certificate"},
    {{.own = "master", .ca = "ca"}, "stranger", NULL, "untrusted", "self-signed certificate"},
    {{.own = "expired", .ca = "ca"}, "ca", NULL, "expired", "certificate has expired"},
    {{.own = "early", .ca = "ca"}, "ca", NULL, "expired", "certificate is not yet valid"},
    {{.own = "other-name", .ca = "ca", .host = "localhost"}, "ca", NULL, "wrongname", "hostname"},
    {{.own = "named", .ca = "ca"}, "ca", NULL, "wrongname", "IP address mismatch"},
    {{.own = "other-address", .ca = "ca"}, "ca", NULL, "wrongname", "IP address mismatch"},
    {{.own = "address", .ca = "ca", .host = "localhost"}, "ca", NULL, "wrongname", "hostname"},
    {{.own = "master", .ca = "ca", .wants_client = true}, "ca", NULL, "uncertified", "certificate"},
    {{.own = "master", .ca = "ca", .wants_client = true},
     "ca",
     "wrong-client",
     "uncertified",
     "certificate"},
};

TEST_ROWS(the_certificate_of_a_master_is_verified, invalid_cases)
{
    struct stage stage;
    char reason[32];
    char answer[128];
    open_masters(&stage, __func__, &invalid_cases[_i].tls);
    prepare(&stage, invalid_cases[_i].ca, invalid_cases[_i].client);
    start(&stage, 0);
    snprintf(reason, sizeof(reason), "reason=%s ", invalid_cases[_i].reason);
    stage_wait_nodes(&stage, reason, 3);
    daemon_wait_log(&stage.daemon, reason, invalid_cases[_i].why);
    snprintf(answer, sizeof(answer), "NOQUORUM 0/3 need=2 a:%s b:%s c:%s", invalid_cases[_i].reason,
             invalid_cases[_i].reason, invalid_cases[_i].reason);
    client_expect(&stage.client, answer, "LOCK a 10s");
    ck_assert_uint_eq(masters_with(stage.masters, 3, "redlockd:node"), 0);
    /* A further attempt that fails in the same way must not be logged as node_tls_failed again. */
    daemon_wait_log(&stage.daemon, "debug node_state node=a state=down ", invalid_cases[_i].reason);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "node_tls_failed"), 3);
    stage_close(&stage);
}

/* A Redis without TLS takes the ClientHello for an incomplete line and waits for the rest. */
TEST(a_master_without_tls_is_reported)
{
    struct stage stage;
    struct master_tls none = {.own = "master", .ca = "ca"};
    char fields[512];
    signal(SIGPIPE, SIG_IGN);
    sandbox_open(&stage.sandbox, __func__);
    make_certificates(stage.sandbox.dir);
    stage.master_count = 3;
    masters_start(stage.masters, 3, &stage.sandbox, &(struct master_plan){.over_tcp = true});
    for (unsigned i = 0; i < 3; i++)
        stage.masters[i].tls = &none;
    write_fields(fields, sizeof(fields), stage.sandbox.dir, "ca", NULL);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3,
                   &(struct daemon_plan){.node_fields = fields});
    start(&stage, 0);
    stage_wait_nodes(&stage, "reason=hung ", 3);
    daemon_wait_log(&stage.daemon, "node_tls_failed", "does this port use TLS?");
    stage_close(&stage);
}

/* --- replaced files --- */

/* Copies FROM.crt and FROM.key over those of TO. */
static void put_in_place(const struct sandbox *sandbox, const char *from, const char *to)
{
    static const char *const kinds[] = {"crt", "key"};
    for (size_t i = 0; i < 2; i++) {
        char name[64];
        char path[SANDBOX_FILE];
        snprintf(name, sizeof(name), "%s.%s", from, kinds[i]);
        char *text = sandbox_read(sandbox_path(sandbox, name, path));
        snprintf(name, sizeof(name), "%s.%s", to, kinds[i]);
        sandbox_write(sandbox_path(sandbox, name, path), text);
        ck_assert_int_eq(chmod(path, 0600), 0);
        free(text);
    }
}

static const struct master_tls strict = {.own = "master", .ca = "ca", .wants_client = true};

/* At loop index 0, the client certificate is outdated; at 1, the CA. */
static const struct {
    const char *trusted;
    const char *client;
    const char *reason;
} outdated[] = {
    {"ca", "wrong-client", "reason=uncertified "},
    {"stranger", "client", "reason=untrusted "},
};

TEST_ROWS(replaced_files_apply_to_the_next_connection, outdated)
{
    struct stage stage;
    open_masters(&stage, __func__, &strict);
    put_in_place(&stage.sandbox, outdated[_i].trusted, "trusted");
    put_in_place(&stage.sandbox, outdated[_i].client, "ours");
    prepare(&stage, "trusted", "ours");
    start(&stage, 0);
    stage_wait_nodes(&stage, outdated[_i].reason, 3);
    put_in_place(&stage.sandbox, "ca", "trusted");
    put_in_place(&stage.sandbox, "client", "ours");
    daemon_reload(&stage.daemon, " reloaded ");
    stage_wait_nodes(&stage, "state=up", 3);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "certificate_changed node="),
                      _i == 0 ? 3 : 0);
    stage_close(&stage);
}

TEST(file_names_can_change_and_a_missing_file_changes_nothing)
{
    struct stage stage;
    open_masters(&stage, __func__, &strict);
    prepare(&stage, "ca", "wrong-client");
    start(&stage, 0);
    stage_wait_nodes(&stage, "reason=uncertified ", 3);
    /* "./././client" is another name of the right certificate, as long as "wrong-client". */
    char *file = sandbox_read(stage.daemon.config);
    for (char *at = file; (at = strstr(at, "wrong-client")) != NULL; at += 12)
        memcpy(at, "./././client", 12);
    char *ca = strstr(file, "/ca.crt");
    ck_assert_ptr_nonnull(ca);
    memcpy(ca, "/no.crt", 7);
    sandbox_write(stage.daemon.config, file);
    daemon_reload(&stage.daemon, "reload_refused");
    stage_wait_nodes(&stage, "reason=uncertified ", 3);
    memcpy(ca, "/ca.crt", 7);
    sandbox_write(stage.daemon.config, file);
    free(file);
    daemon_reload(&stage.daemon, " reloaded ");
    daemon_wait_log(&stage.daemon, " reloaded ", "changed=\"nodes.certificate, nodes.key\"");
    stage_wait_nodes(&stage, "state=up", 3);
    stage_close(&stage);
}

/* --- abandoned links --- */

/* A fake master that completes TLS handshakes but never replies. */
struct silent_master {
    int listening;
    int fd;
    SSL_CTX *context;
    SSL *ssl;
};

static void silent_master_open(struct silent_master *silent_master, const struct sandbox *sandbox,
                               int port)
{
    char path[SANDBOX_FILE];
    silent_master->listening = port_listen(AF_INET, port);
    ck_assert_int_ge(silent_master->listening, 0);
    silent_master->context = SSL_CTX_new(TLS_server_method());
    sandbox_path(sandbox, "master.crt", path);
    ck_assert_int_eq(SSL_CTX_use_certificate_chain_file(silent_master->context, path), 1);
    sandbox_path(sandbox, "master.key", path);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(silent_master->context, path, SSL_FILETYPE_PEM),
                     1);
}

static void silent_master_accept(struct silent_master *silent_master)
{
    struct timeval timeout = {.tv_sec = WAITING_DEADLINE_MS / 1000};
    silent_master->fd = accept(silent_master->listening, NULL, NULL);
    ck_assert_int_ge(silent_master->fd, 0);
    setsockopt(silent_master->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    silent_master->ssl = SSL_new(silent_master->context);
    SSL_set_fd(silent_master->ssl, silent_master->fd);
}

/* Reads to the end of the connection. Returns 0 for a FIN, otherwise errno. */
static int silent_master_wait_end(struct silent_master *silent_master)
{
    char bytes[4096];
    ssize_t got;
    while ((got = recv(silent_master->fd, bytes, sizeof(bytes), 0)) > 0)
        continue;
    return got < 0 ? errno : 0;
}

static void silent_master_close(struct silent_master *silent_master)
{
    SSL_free(silent_master->ssl);
    close(silent_master->fd);
    close(silent_master->listening);
    SSL_CTX_free(silent_master->context);
}

/* The daemon resets an abandoned link, so that the master does not execute its commands later. The
 * daemon abandons the link during the handshake (loop index 0), or when the master has left
 * commands unanswered (1). */
TEST_LOOP(an_abandoned_link_is_reset, 0, 2)
{
    struct stage stage;
    struct silent_master silent_master;
    char byte;
    open_masters(&stage, __func__, &valid_cases[0].tls);
    master_kill(&stage.masters[2]);
    silent_master_open(&silent_master, &stage.sandbox, stage.masters[2].port);
    prepare(&stage, "ca", NULL);
    daemon_start(&stage.daemon, 0);
    silent_master_accept(&silent_master);
    if (_i == 1) {
        ck_assert_int_eq(SSL_accept(silent_master.ssl), 1);
        ck_assert_int_eq(SSL_read(silent_master.ssl, &byte, 1), 1);
    }
    ck_assert_int_eq(silent_master_wait_end(&silent_master), ECONNRESET);
    silent_master_close(&silent_master);
    daemon_wait_listening(&stage.daemon);
    daemon_connect(&stage.daemon, &stage.client);
    stage_close(&stage);
}

/* A master floods the daemon, as the clients of test_tls_flood.c do. */
TEST(a_key_update_flood_of_a_master_does_not_delay_clients)
{
    enum { TURNS = 100 };
    struct stage stage;
    struct silent_master silent_master;
    struct flood flood;
    unsigned turns = 0;
    char fields[512];
    char byte;
    open_masters(&stage, __func__, &valid_cases[0].tls);
    master_kill(&stage.masters[2]);
    silent_master_open(&silent_master, &stage.sandbox, stage.masters[2].port);
    write_fields(fields, sizeof(fields), stage.sandbox.dir, "ca", NULL);
    /* A long node_timeout: the link must stay open while the flood is prepared. */
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3,
                   &(struct daemon_plan){.node_timeout_ms = 2000, .node_fields = fields});
    daemon_start(&stage.daemon, 0);
    silent_master_accept(&silent_master);
    ck_assert_int_eq(SSL_accept(silent_master.ssl), 1);
    ck_assert_int_eq(SSL_read(silent_master.ssl, &byte, 1), 1);
    daemon_wait_listening(&stage.daemon);
    daemon_connect(&stage.daemon, &stage.client);
    flood_start_over(&flood, silent_master.ssl, silent_master.fd);
    while (!flood.over) {
        client_expect(&stage.client, "PONG", "PING");
        turns += !flood.over;
    }
    flood_stop(&flood);
    ck_assert_msg(turns >= TURNS, "only %u replies before the flood was over", turns);
    silent_master_close(&silent_master);
    stage_close(&stage);
}

TEST(commands_left_on_a_hung_master_leave_no_keys)
{
    struct stage stage;
    open_masters(&stage, __func__, &valid_cases[0].tls);
    prepare(&stage, "ca", NULL);
    daemon_bootstrap(&stage.daemon);
    start(&stage, 3);
    master_stop(&stage.masters[2]);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_wait_nodes(&stage, "reason=hung", 1);
    master_continue(&stage.masters[2]);
    stage_wait_nodes(&stage, "vote=yes", 3);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}
