/*
 * TLS clients: certificates and handshakes, and the limits for clients that are slow, many, or do
 * not speak TLS. test_tls_sessions.c tests established sessions.
 */
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/certs.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/tls_stage.h"
#include "tests/e2e/waiting.h"
#include "tests/prng.h"
#include "tests/runner.h"

enum { HANDSHAKES = 256 /* LIMIT_HANDSHAKES */, HELLO_MAX = 4096 };

/* --- certificates --- */

static const int tls_versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

TEST_LOOP(a_tls_client_is_served_and_gets_close_notify, 0, 2)
{
    struct stage stage;
    struct tls_client client;
    struct tls_client_plan plan = tls_no_certificate;
    char line[128];
    tls_stage_open(&stage, __func__);
    plan.version = tls_versions[_i];
    tls_client_connect(&client, &stage.sandbox, stage.daemon.port, &plan);
    ck_assert_int_eq(SSL_version(client.ssl), tls_versions[_i]);
    tls_expect(tls_client_ask(&client, "LOCK a 10s"), "OK ");
    snprintf(line, sizeof(line), "UNLOCK a %.40s", client.line + 3);
    ck_assert_str_eq(tls_client_ask(&client, line), "OK");
    ck_assert_str_eq(tls_client_ask(&client, "QUIT"), "BYE");
    ck_assert(tls_client_ends_well(&client));
    tls_client_close(&client);
    stage_close(&stage);
}

TEST(old_tls_versions_and_renegotiation_are_refused)
{
    struct stage stage;
    struct tls_client client;
    struct tls_client_plan plan = tls_no_certificate;
    tls_stage_open(&stage, __func__);
    tls_client_open(&client, &stage.sandbox, stage.daemon.port, &tls_no_certificate);
    SSL_set_security_level(client.ssl, 0);
    SSL_set_min_proto_version(client.ssl, TLS1_VERSION);
    SSL_set_max_proto_version(client.ssl, TLS1_1_VERSION);
    ck_assert_int_ne(SSL_do_handshake(client.ssl), 1);
    daemon_wait_log(&stage.daemon, "tls_failed", "neither TLS 1.2 nor TLS 1.3");
    tls_client_reset(&client);
    plan.version = TLS1_2_VERSION;
    tls_client_connect(&client, &stage.sandbox, stage.daemon.port, &plan);
    ck_assert_str_eq(tls_client_ask(&client, "PING"), "PONG");
    ck_assert_int_eq(SSL_renegotiate(client.ssl), 1);
    ck_assert_int_ne(SSL_do_handshake(client.ssl), 1);
    tls_client_reset(&client);
    stage_close(&stage);
}

static const struct {
    const char *own;
    const char *why; /* NULL: accepted */
    const char *name;
} certificates[] = {
    {"client", NULL, ",cn=worker%207 "},
    {"nameless", NULL, ",cn=w7.example "},
    {NULL, "the client sent no certificate", NULL},
    {"wrong", "unable to get local issuer certificate", NULL},
    {"self", "self-signed certificate", NULL},
    {"expired", "certificate has expired", NULL},
    {"early", "certificate is not yet valid", NULL},
};

/* True if the daemon accepts a client with this certificate and replies to its PING. The PING is
 * needed because with TLS 1.3 the client completes its handshake before it learns of a refusal. */
static bool is_accepted(struct tls_client *client, const struct stage *stage, const char *own,
                        int version)
{
    const struct tls_client_plan plan = {.ca = "ca", .own = own, .version = version};
    char answer[5];
    if (!tls_client_try(client, &stage->sandbox, stage->daemon.port, &plan))
        return false;
    if (SSL_write(client->ssl, "PING\n", 5) == 5 && SSL_read(client->ssl, answer, 5) == 5)
        return true;
    tls_client_reset(client);
    return false;
}

TEST(a_client_certificate_is_required_and_verified)
{
    struct stage stage;
    struct tls_client client;
    tls_stage_open_with(&stage, __func__, "daemon", "");
    for (unsigned v = 0; v < 2; v++)
        for (size_t i = 0; i < sizeof(certificates) / sizeof(certificates[0]); i++) {
            bool in = is_accepted(&client, &stage, certificates[i].own, tls_versions[v]);
            ck_assert_msg(in == (certificates[i].why == NULL), "certificate %zu", i);
            if (in) {
                ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", certificates[i].name), 1);
                tls_client_close(&client);
            } else {
                /* The log must show this refusal, not that with the earlier version of TLS. */
                struct waiting waiting = waiting_for(certificates[i].why);
                while (daemon_count_log(&stage.daemon, certificates[i].why) <= v)
                    waiting_pause(&waiting);
            }
        }
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}

TEST(an_optional_client_certificate_is_verified)
{
    struct stage stage;
    struct tls_client client;
    tls_stage_open_with(&stage, __func__, "daemon", ", client_certificate: optional");
    ck_assert(is_accepted(&client, &stage, NULL, 0));
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", ",cn="), 0);
    tls_client_close(&client);
    ck_assert(is_accepted(&client, &stage, "client", 0));
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", ",cn=worker%207 "), 1);
    tls_client_close(&client);
    ck_assert(!is_accepted(&client, &stage, "wrong", 0));
    stage_close(&stage);
}

/* Connects with a session of an earlier connection. True if the connection can be used. */
static bool reconnects(struct tls_client *again, const struct stage *stage, const char *own,
                       SSL_SESSION *session)
{
    const struct tls_client_plan plan = {
        .ca = "ca", .own = own, .version = SSL_SESSION_get_protocol_version(session)};
    char answer[5];
    tls_client_open(again, &stage->sandbox, stage->daemon.port, &plan);
    ck_assert_int_eq(SSL_set_session(again->ssl, session), 1);
    return SSL_do_handshake(again->ssl) == 1 && SSL_write(again->ssl, "PING\n", 5) == 5 &&
           SSL_read(again->ssl, answer, 5) == 5;
}

/* If the daemon resumed the session, its ticket and the tickets issued after it would outlive the
 * client's certificate. */
TEST_LOOP(a_client_certificate_is_verified_on_reconnect, 0, 2)
{
    enum { SECONDS = 2 };
    struct stage stage;
    struct tls_client client;
    struct tls_client again;
    const struct certs_plan brief = {
        .name = "brief", .issuer = "ca", .from_s = -60, .until_s = SECONDS};
    const struct tls_client_plan plan = {.ca = "ca", .own = "brief", .version = tls_versions[_i]};
    tls_stage_open_with(&stage, __func__, "daemon", "");
    certs_make(stage.sandbox.dir, &brief);
    time_t end = time(NULL) + SECONDS;
    tls_client_connect(&client, &stage.sandbox, stage.daemon.port, &plan);
    ck_assert_str_eq(tls_client_ask(&client, "PING"), "PONG");
    SSL_SESSION *session = SSL_get1_session(client.ssl);
    struct waiting waiting = waiting_for("the certificate to expire");
    while (time(NULL) <= end)
        waiting_pause(&waiting);
    ck_assert(!reconnects(&again, &stage, "brief", session));
    tls_client_reset(&again);
    ck_assert(reconnects(&again, &stage, "client", session));
    ck_assert(!SSL_session_reused(again.ssl));
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", ",cn=worker%207 "), 1);
    SSL_SESSION_free(session);
    tls_client_close(&again);
    tls_client_close(&client);
    stage_close(&stage);
}

/* Without client certificates, resuming a session is safe and saves time. */
TEST(a_session_is_resumed_without_client_certificates)
{
    struct stage stage;
    struct tls_client client;
    struct tls_client again;
    tls_stage_open(&stage, __func__);
    tls_stage_connect(&client, &stage);
    ck_assert_str_eq(tls_client_ask(&client, "PING"), "PONG");
    SSL_SESSION *session = SSL_get1_session(client.ssl);
    ck_assert(SSL_SESSION_is_resumable(session));
    ck_assert(reconnects(&again, &stage, NULL, session));
    ck_assert(SSL_session_reused(again.ssl));
    SSL_SESSION_free(session);
    tls_client_close(&again);
    tls_client_close(&client);
    stage_close(&stage);
}

/* Replaces the certificate and key of the daemon. */
static void renew(const struct stage *stage, const char *certificate, const char *key)
{
    const char *dir = stage->sandbox.dir;
    char from[SANDBOX_FILE], to[SANDBOX_FILE];
    snprintf(from, sizeof(from), "%s/%s.crt", dir, certificate);
    snprintf(to, sizeof(to), "%s/daemon.crt", dir);
    ck_assert_int_eq(rename(from, to), 0);
    snprintf(from, sizeof(from), "%s/%s.key", dir, key);
    snprintf(to, sizeof(to), "%s/daemon.key", dir);
    ck_assert_int_eq(rename(from, to), 0);
}

TEST(a_reload_reads_the_certificates_again)
{
    struct stage stage;
    struct tls_client before;
    struct tls_client after;
    const struct tls_client_plan renewed = {.ca = "ca", .host = "w7.example"};
    tls_stage_open(&stage, __func__);
    tls_stage_connect(&before, &stage);
    /* The key does not match the certificate: nothing changes. */
    renew(&stage, "nameless", "wrong");
    kill(stage.daemon.pid, SIGHUP);
    daemon_wait_log(&stage.daemon, "reload_refused", "in_force");
    tls_stage_connect(&after, &stage);
    ck_assert_str_eq(tls_client_ask(&after, "PING"), "PONG");
    tls_client_close(&after);
    /* With the matching key, new connections get the new certificate, and existing ones
     * continue. */
    const struct certs_plan plan = {.name = "new", .issuer = "ca", .names = "DNS:w7.example"};
    certs_make(stage.sandbox.dir, &plan);
    renew(&stage, "new", "new");
    kill(stage.daemon.pid, SIGHUP);
    daemon_wait_log(&stage.daemon, "certificate_changed", "address=tls://");
    daemon_wait_log(&stage.daemon, " reloaded ", "changed=nothing");
    tls_client_connect(&after, &stage.sandbox, stage.daemon.port, &renewed);
    ck_assert_str_eq(tls_client_ask(&after, "PING"), "PONG");
    ck_assert_str_eq(tls_client_ask(&before, "PING"), "PONG");
    tls_client_close(&after);
    tls_client_close(&before);
    stage_close(&stage);
}

TEST(a_client_that_rejects_our_certificate_is_logged)
{
    struct stage stage;
    struct tls_client client;
    tls_stage_open_with(&stage, __func__, "old-daemon", NULL);
    /* The bootstrap and the daemon have each logged this. */
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "old-daemon.crt has expired"), 2);
    ck_assert(!tls_client_try(&client, &stage.sandbox, stage.daemon.port, &tls_no_certificate));
    daemon_wait_log(&stage.daemon, "tls_failed", "rejected this daemon's certificate as expired");
    ck_assert(!tls_client_try(&client, &stage.sandbox, stage.daemon.port,
                              &(struct tls_client_plan){.ca = "stranger"}));
    daemon_wait_log(&stage.daemon, "tls_failed", "does not trust the CA");
    ck_assert(!tls_client_try(&client, &stage.sandbox, stage.daemon.port,
                              &(struct tls_client_plan){.ca = "ca", .host = "elsewhere"}));
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}

/* Runs the commands of docs/operations/security.md. */
TEST(the_documented_commands_make_certificates)
{
    static const char begin[] = "### Making certificates";
    static const char fence[] = "\n```sh\n";
    struct stage stage;
    struct tls_client client;
    char script[SANDBOX_FILE];
    char command[256];
    tls_stage_open_with(&stage, __func__, "daemon", "");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    char *text = sandbox_read("docs/operations/security.md");
    char *lines = strstr(text, begin);
    ck_assert_ptr_nonnull(lines);
    lines = strstr(lines, fence) + strlen(fence);
    strstr(lines, "```")[0] = '\0';
    sandbox_write(sandbox_path(&stage.sandbox, "make.sh", script), lines);
    /* The new files replace those of the daemon's configuration. */
    snprintf(command, sizeof(command),
             "cd %s && rm -f ca.crt daemon.crt daemon.key && sh -e make.sh 2>make.log",
             stage.sandbox.dir);
    ck_assert_int_eq(system(command), 0);
    /* Certificates are public, keys are secret. */
    snprintf(
        command, sizeof(command),
        "cd %s && test \"$(stat -c %%a ca.crt daemon.crt daemon.key | xargs)\" = '644 644 600'",
        stage.sandbox.dir);
    ck_assert_int_eq(system(command), 0);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    tls_client_connect(
        &client, &stage.sandbox, stage.daemon.port,
        &(struct tls_client_plan){.ca = "ca", .own = "worker-7", .host = "localhost"});
    ck_assert_str_eq(tls_client_ask(&client, "PING"), "PONG");
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", ",cn=worker-7 "), 1);
    tls_client_close(&client);
    free(text);
    stage_close(&stage);
}

/* --- invalid handshakes --- */

static const char *const texts[] = {"PING\nPING\n", "LOCK a 10s HOLD\n",
                                    "GET / HTTP/1.1\r\nHost: a\r\n\r\n"};

TEST_LOOP(plain_text_is_closed_with_one_line_in_the_log, 0, 3)
{
    struct stage stage;
    struct client client;
    char bytes[64];
    tls_stage_open(&stage, __func__);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_send(&client, texts[_i]);
    ssize_t got;
    while ((got = recv(client.fd, bytes, sizeof(bytes), 0)) > 0)
        ck_assert_ptr_null(memchr(bytes, '\n', (size_t)got));
    client_close(&client);
    daemon_wait_log(&stage.daemon, "tls_failed", "TLS");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "tls_failed"), 1);
    ck_assert_uint_eq(masters_with(stage.masters, 3, "redlock:a"), 0);
    stage_close(&stage);
}

/* Makes a ClientHello. */
static size_t make_hello(unsigned char *hello)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *in = BIO_new(BIO_s_mem());
    BIO *out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    SSL_do_handshake(ssl);
    int len = BIO_read(out, hello, HELLO_MAX);
    ck_assert_int_gt(len, 100);
    SSL_free(ssl);
    SSL_CTX_free(context);
    ERR_clear_error();
    return (size_t)len;
}

/* Waits until all connections are closed, and fails if one of them became a client. */
static void expect_no_connections(struct stage *stage, unsigned open_before)
{
    struct waiting waiting = waiting_for("the connections to be closed");
    while (process_open_files(stage->daemon.pid) != open_before)
        waiting_pause(&waiting);
    ck_assert_uint_eq(client_count(&stage->client, "CLIENTS", "client="), 1);
    ck_assert_uint_eq(daemon_count_log(&stage->daemon, "client_connected"),
                      daemon_count_log(&stage->daemon, "client_connected client=1 ") + 1);
}

TEST(a_handshake_cut_at_any_byte_leaves_no_connection)
{
    struct stage stage;
    unsigned char hello[HELLO_MAX];
    size_t len = make_hello(hello);
    tls_stage_open(&stage, __func__);
    unsigned before = process_open_files(stage.daemon.pid);
    for (size_t cut = 0; cut <= len; cut += 3) {
        struct client client;
        client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
        client_send_bytes(&client, hello, cut);
        if (cut % 2 == 0)
            client_reset(&client);
        else
            client_close(&client);
    }
    expect_no_connections(&stage, before);
    stage_close(&stage);
}

/* Sends a ClientHello with some changed bytes. In every fourth one, most bytes after the first are
 * changed. */
TEST(a_garbled_handshake_is_refused)
{
    enum { TRIES = 200 };
    struct stage stage;
    unsigned char hello[HELLO_MAX];
    unsigned char bytes[HELLO_MAX];
    size_t len = make_hello(hello);
    struct prng prng = {.state = 1};
    tls_stage_open(&stage, __func__);
    unsigned before = process_open_files(stage.daemon.pid);
    for (unsigned i = 0; i < TRIES; i++) {
        struct client client;
        memcpy(bytes, hello, len);
        unsigned changes = i % 4 == 0 ? (unsigned)len : 1 + prng_below(&prng, 8);
        for (unsigned change = 0; change < changes; change++)
            bytes[1 + prng_below(&prng, (unsigned)len - 1)] ^=
                (unsigned char)prng_below(&prng, 256);
        client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
        client_send_bytes(&client, bytes, len);
        client_try_send(&client, "LOCK a 60s\nPING\n");
        shutdown(client.fd, SHUT_WR);
        while (recv(client.fd, bytes, sizeof(bytes), 0) > 0)
            continue;
        client_close(&client);
    }
    expect_no_connections(&stage, before);
    ck_assert_uint_eq(masters_with(stage.masters, 3, "redlock:a"), 0);
    stage_close(&stage);
}

/* --- many and slow handshakes --- */

TEST(a_slow_handshake_times_out)
{
    struct stage stage;
    struct client client;
    unsigned char hello[HELLO_MAX];
    make_hello(hello);
    tls_stage_open(&stage, __func__);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_send_bytes(&client, hello, 60);
    daemon_wait_log(&stage.daemon, "tls_failed", "took too long");
    client_expect_end(&client);
    client_close(&client);
    stage_close(&stage);
}

/* Opens `count` silent connections, more than the HANDSHAKES that the daemon carries out at a time,
 * and waits until HANDSHAKES of them occupy all slots. */
static struct client *occupy_handshakes(const struct stage *stage, unsigned count)
{
    struct client *silent = calloc(count, sizeof(*silent));
    ck_assert_ptr_nonnull(silent);
    unsigned before = process_open_files(stage->daemon.pid);
    for (unsigned i = 0; i < count; i++)
        client_connect_tcp(&silent[i], "127.0.0.1", stage->daemon.port);
    struct waiting waiting = waiting_for("all handshake slots to be taken");
    while (process_open_files(stage->daemon.pid) < before + HANDSHAKES)
        waiting_pause(&waiting);
    ck_assert_uint_eq(process_open_files(stage->daemon.pid), before + HANDSHAKES);
    return silent;
}

static void free_handshakes(struct client *silent, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        client_close(&silent[i]);
    free(silent);
}

TEST(silent_handshakes_do_not_crowd_out_clients)
{
    enum { MANY = 2 * HANDSHAKES };
    struct stage stage;
    struct tls_client client;
    tls_stage_open(&stage, __func__);
    struct client *silent = occupy_handshakes(&stage, MANY);
    /* Other listeners are not affected. */
    client_expect(&stage.client, "PONG", "PING");
    tls_stage_connect(&client, &stage);
    ck_assert_str_eq(tls_client_ask(&client, "PING"), "PONG");
    /* Places became free only by time limits. If new connections displaced handshakes, clients that
     * all connect at once would close each other's. */
    unsigned failed = daemon_count_log(&stage.daemon, " tls_failed peer=");
    ck_assert_uint_gt(failed, 0);
    ck_assert_uint_ge(daemon_count_log(&stage.daemon, "took too long"), failed);
    tls_client_close(&client);
    free_handshakes(silent, MANY);
    stage_close(&stage);
}

enum { CLIENTS = 4 }; /* limits.clients */

/* Limits the clients of the daemon. The stage's client connects anew. */
static void limit_clients(struct stage *stage)
{
    char text[8192];
    client_close(&stage->client);
    daemon_stop(&stage->daemon);
    char *file = sandbox_read(stage->daemon.config);
    snprintf(text, sizeof(text), "%slimits: {clients: %d}\n", file, CLIENTS);
    sandbox_write(stage->daemon.config, text);
    free(file);
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, stage->master_count);
    daemon_connect(&stage->daemon, &stage->client);
    client_expect(&stage->client, "PONG", "PING");
}

static void wait_connections(const struct stage *stage, unsigned files)
{
    struct waiting waiting = waiting_for("the daemon to accept the connections");
    while (process_open_files(stage->daemon.pid) != files)
        waiting_pause(&waiting);
}

/* limits.clients counts handshakes as well, but they must not keep out a client of any listener for
 * more than a second. */
TEST(silent_handshakes_do_not_use_up_the_limit_of_clients)
{
    struct stage stage;
    struct client silent[CLIENTS - 1];
    struct client other;
    tls_stage_open(&stage, __func__);
    limit_clients(&stage);
    unsigned before = process_open_files(stage.daemon.pid);
    for (unsigned i = 0; i < CLIENTS - 1; i++)
        client_connect_tcp(&silent[i], "127.0.0.1", stage.daemon.port);
    wait_connections(&stage, before + CLIENTS - 1);
    int64_t began_ms = waiting_clock_ms();
    struct waiting waiting = waiting_for("the handshakes to be old");
    while (waiting_clock_ms() - began_ms <= 1000)
        waiting_pause(&waiting);
    daemon_connect(&stage.daemon, &other);
    client_expect(&other, "PONG", "PING");
    client_expect(&stage.client, "PONG", "PING");
    client_close(&other);
    for (unsigned i = 0; i < CLIENTS - 1; i++)
        client_close(&silent[i]);
    stage_close(&stage);
}

/* Otherwise, while many clients try to connect, none would complete its handshake. */
TEST(new_clients_displace_no_young_handshake)
{
    struct stage stage;
    int64_t took_ms;
    tls_stage_open(&stage, __func__);
    limit_clients(&stage);
    unsigned before = process_open_files(stage.daemon.pid);
    /* Repeat what a busy machine has made too slow. */
    do {
        struct tls_client young[CLIENTS - 1];
        struct client refused;
        int64_t began_ms = waiting_clock_ms();
        for (unsigned i = 0; i < CLIENTS - 1; i++)
            tls_client_open(&young[i], &stage.sandbox, stage.daemon.port, &tls_no_certificate);
        wait_connections(&stage, before + CLIENTS - 1);
        daemon_connect(&stage.daemon, &refused);
        client_try_send(&refused, "PING\n");
        const char *reply = client_read(&refused);
        took_ms = waiting_clock_ms() - began_ms;
        if (took_ms < 1000)
            ck_assert_str_eq(reply, "LIMIT clients");
        client_close(&refused);
        for (unsigned i = 0; i < CLIENTS - 1; i++) {
            if (took_ms < 1000)
                ck_assert_str_eq(tls_client_ask(&young[i], "PING"), "PONG");
            tls_client_cut(&young[i]);
        }
        wait_connections(&stage, before);
    } while (took_ms >= 1000);
    stage_close(&stage);
}

/* Connections of a plain listener displace handshakes, which are closed only after the pass. The
 * daemon has descriptors for that. */
TEST(displaced_handshakes_use_up_no_descriptor)
{
    enum { OPEN_FILES = 500, SILENT = 200, MORE = 150 };
    struct stage stage;
    struct client *silent = calloc(SILENT, sizeof(*silent));
    struct client *idle = calloc(OPEN_FILES, sizeof(*idle));
    struct client *more = calloc(MORE, sizeof(*more));
    unsigned count = 0;
    ck_assert(silent != NULL && idle != NULL && more != NULL);
    tls_stage_open(&stage, __func__);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, OPEN_FILES);
    daemon_wait_up(&stage.daemon, stage.master_count);
    unsigned before = process_open_files(stage.daemon.pid);
    /* Use up the limit of clients. The last one is refused. */
    do {
        ck_assert_uint_lt(count, OPEN_FILES);
        daemon_connect(&stage.daemon, &idle[count]);
        client_try_send(&idle[count], "PING\n");
    } while (strcmp(client_read(&idle[count++]), "PONG") == 0);
    client_close(&idle[--count]);
    ck_assert_uint_gt(count, SILENT);
    for (unsigned i = 0; i < SILENT; i++)
        client_close(&idle[--count]);
    wait_connections(&stage, before + count);
    for (unsigned i = 0; i < SILENT; i++)
        client_connect_tcp(&silent[i], "127.0.0.1", stage.daemon.port);
    wait_connections(&stage, before + count + SILENT);
    int64_t began_ms = waiting_clock_ms();
    struct waiting waiting = waiting_for("the handshakes to be old");
    while (waiting_clock_ms() - began_ms <= 1000)
        waiting_pause(&waiting);
    kill(stage.daemon.pid, SIGSTOP);
    for (unsigned i = 0; i < MORE; i++)
        daemon_connect(&stage.daemon, &more[i]);
    kill(stage.daemon.pid, SIGCONT);
    for (unsigned i = 0; i < MORE; i++)
        client_expect(&more[i], "PONG", "PING");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "accept_paused"), 0);
    for (unsigned i = 0; i < MORE; i++)
        client_close(&more[i]);
    for (unsigned i = 0; i < count; i++)
        client_close(&idle[i]);
    free(more);
    free(idle);
    free_handshakes(silent, SILENT);
    daemon_connect(&stage.daemon, &stage.client);
    stage_close(&stage);
}

/* Adds a second TLS listener with the same settings. Returns its port. */
static int add_listener(const struct stage *stage)
{
    char text[8192];
    char *file = sandbox_read(stage->daemon.config);
    char *line = strstr(file, "  - {url: \"tls://127.0.0.1:");
    ck_assert_ptr_nonnull(line);
    const char *fields = strchr(line + strlen("  - {url: \""), '"');
    ck_assert_ptr_nonnull(fields);
    int port = port_free();
    snprintf(text, sizeof(text), "%.*s  - {url: \"tls://127.0.0.1:%d%.*s\n%s", (int)(line - file),
             file, port, (int)strcspn(fields, "\n"), fields, line);
    sandbox_write(stage->daemon.config, text);
    free(file);
    return port;
}

/* All listeners share one limit of handshakes, which silent connections to the first listener use
 * up. */
TEST(a_listener_added_while_handshakes_are_full_is_served)
{
    enum { MANY = HANDSHAKES + 4 };
    struct stage stage;
    struct tls_client client;
    tls_stage_open(&stage, __func__);
    int port = add_listener(&stage);
    struct client *silent = occupy_handshakes(&stage, MANY);
    kill(stage.daemon.pid, SIGHUP);
    daemon_wait_log(&stage.daemon, " reloaded ", "changed=listen");
    tls_client_connect(&client, &stage.sandbox, port, &tls_no_certificate);
    ck_assert_str_eq(tls_client_ask(&client, "PING"), "PONG");
    tls_client_close(&client);
    free_handshakes(silent, MANY);
    stage_close(&stage);
}

enum { CONCURRENT = 100 }; /* more than LIMIT_HANDSHAKES_A_PASS */

static void begin_handshake(const struct stage *stage, struct tls_client *client)
{
    tls_client_open(client, &stage->sandbox, stage->daemon.port, &tls_no_certificate);
    fcntl(client->fd, F_SETFL, O_NONBLOCK);
    SSL_do_handshake(client->ssl);
}

/* Completes all handshakes in parallel. */
static void complete_handshakes(struct tls_client *clients)
{
    struct waiting waiting = waiting_for("all handshakes");
    for (unsigned done = 0; done < CONCURRENT;) {
        done = 0;
        for (unsigned i = 0; i < CONCURRENT; i++) {
            int result = SSL_do_handshake(clients[i].ssl);
            done += result == 1;
            if (result != 1)
                ck_assert_int_eq(SSL_get_error(clients[i].ssl, result), SSL_ERROR_WANT_READ);
        }
        waiting_pause(&waiting);
    }
}

TEST(concurrent_handshakes_all_complete)
{
    struct stage stage;
    struct tls_client *clients = calloc(CONCURRENT, sizeof(*clients));
    ck_assert_ptr_nonnull(clients);
    tls_stage_open(&stage, __func__);
    kill(stage.daemon.pid, SIGSTOP);
    for (unsigned i = 0; i < CONCURRENT; i++)
        begin_handshake(&stage, &clients[i]);
    kill(stage.daemon.pid, SIGCONT);
    complete_handshakes(clients);
    for (unsigned i = 0; i < CONCURRENT; i++) {
        fcntl(clients[i].fd, F_SETFL, 0);
        ck_assert_str_eq(tls_client_ask(&clients[i], "PING"), "PONG");
    }
    for (unsigned i = 0; i < CONCURRENT; i++)
        tls_client_close(&clients[i]);
    stage_wait_clients(&stage, 1);
    free(clients);
    stage_close(&stage);
}
