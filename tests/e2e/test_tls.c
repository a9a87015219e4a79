/*
 * Clients over TLS: who gets in, how a connection ends and what that means to a HOLD, and what
 * those cost who are slow, many, or no TLS at all.
 */
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/certs.h"
#include "tests/dice.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/secure.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

enum { HANDSHAKES = 64 /* LIMIT_HANDSHAKES */, HELLO_MAX = 4096 };

static void make_certificates(const char *dir)
{
    static const char here[] = "DNS:localhost,IP:127.0.0.1";
    static const struct certs_plan plans[] = {
        {.name = "ca"},
        {.name = "stranger"},
        {.name = "daemon", .issuer = "ca", .names = here},
        {.name = "old-daemon", .issuer = "ca", .names = here, .from_s = -7200, .until_s = -60},
        {.name = "client", .issuer = "ca", .common = "worker 7"},
        {.name = "nameless", .issuer = "ca", .common = "", .names = "DNS:w7.example"},
        {.name = "wrong", .issuer = "stranger"},
        {.name = "self"},
        {.name = "expired", .issuer = "ca", .from_s = -7200, .until_s = -60},
        {.name = "early", .issuer = "ca", .from_s = 7200, .until_s = 9000},
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        certs_make(dir, &plans[i]);
}

/* A daemon with a TLS address; `certificate` names its own, `fields` are more in YAML. */
static void open_with(struct stage *stage, const char *test, const char *certificate,
                      const char *ca_and_more)
{
    char fields[512];
    signal(SIGPIPE, SIG_IGN);
    const struct stage_plan masters = {.masters = 3, .over_unix = true};
    stage_open_masters(stage, test, &masters);
    const char *dir = stage->sandbox.dir;
    make_certificates(dir);
    int len = snprintf(fields, sizeof(fields), ", certificate: %s/%s.crt, key: %s/%s.key", dir,
                       certificate, dir, certificate);
    if (ca_and_more != NULL)
        snprintf(fields + len, sizeof(fields) - (size_t)len, ", client_ca: %s/ca.crt%s", dir,
                 ca_and_more);
    const struct daemon_plan plan = {
        .node_timeout_ms = 100, .tcp_host = "127.0.0.1", .tls_fields = fields};
    daemon_prepare(&stage->daemon, &stage->sandbox, stage->masters, stage->master_count, &plan);
    daemon_bootstrap(&stage->daemon);
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, stage->master_count);
    daemon_connect(&stage->daemon, &stage->client);
    client_expect(&stage->client, "PONG", "PING"); /* accepted, for those who count descriptors */
}

static void open_plain(struct stage *stage, const char *test)
{
    open_with(stage, test, "daemon", NULL);
}

static const struct secure_plan anybody = {.ca = "ca", .host = "localhost"};

static void connect_to(struct secure *client, const struct stage *stage)
{
    secure_connect(client, &stage->sandbox, stage->daemon.port, &anybody);
}

static void matches(const char *line, const char *begin)
{
    ck_assert_msg(strncmp(line, begin, strlen(begin)) == 0, "%s, instead of %s", line, begin);
}

/* --- who gets in --- */

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

START_TEST(a_client_is_served_and_told_the_end)
{
    struct stage stage;
    struct secure client;
    struct secure_plan plan = anybody;
    char line[128];
    open_plain(&stage, __func__);
    plan.version = versions[_i];
    secure_connect(&client, &stage.sandbox, stage.daemon.port, &plan);
    ck_assert_int_eq(SSL_version(client.ssl), versions[_i]);
    matches(secure_ask(&client, "LOCK a 10s"), "OK ");
    snprintf(line, sizeof(line), "UNLOCK a %.40s", client.line + 3);
    ck_assert_str_eq(secure_ask(&client, line), "OK");
    ck_assert_str_eq(secure_ask(&client, "QUIT"), "BYE");
    ck_assert(secure_ends_well(&client));
    secure_close(&client);
    stage_close(&stage);
}
END_TEST

/* TLS 1.1 and older, and who asks to shake hands anew. */
START_TEST(nothing_older_and_no_renegotiation)
{
    struct stage stage;
    struct secure client;
    struct secure_plan plan = anybody;
    open_plain(&stage, __func__);
    secure_open(&client, &stage.sandbox, stage.daemon.port, &anybody);
    SSL_set_security_level(client.ssl, 0);
    SSL_set_min_proto_version(client.ssl, TLS1_VERSION);
    SSL_set_max_proto_version(client.ssl, TLS1_1_VERSION);
    ck_assert_int_ne(SSL_do_handshake(client.ssl), 1);
    daemon_wait_log(&stage.daemon, "tls_failed", "neither TLS 1.2 nor TLS 1.3");
    secure_reset(&client);
    plan.version = TLS1_2_VERSION;
    secure_connect(&client, &stage.sandbox, stage.daemon.port, &plan);
    ck_assert_str_eq(secure_ask(&client, "PING"), "PONG");
    ck_assert_int_eq(SSL_renegotiate(client.ssl), 1);
    ck_assert_int_ne(SSL_do_handshake(client.ssl), 1);
    secure_reset(&client);
    stage_close(&stage);
}
END_TEST

static const struct {
    const char *own;
    const char *why; /* NULL: it gets in */
    const char *name;
} certificates[] = {
    {"client", NULL, ",cn=worker%207 "},
    {"nameless", NULL, ",cn=w7.example "},
    {NULL, "it shows no certificate", NULL},
    {"wrong", "unable to get local issuer certificate", NULL},
    {"self", "self-signed certificate", NULL},
    {"expired", "certificate has expired", NULL},
    {"early", "certificate is not yet valid", NULL},
};

/* With TLS 1.3 a client is through before it hears that it is refused. */
static bool gets_in(struct secure *client, const struct stage *stage, const char *own, int version)
{
    const struct secure_plan plan = {.ca = "ca", .own = own, .version = version};
    char answer[5];
    if (!secure_try(client, &stage->sandbox, stage->daemon.port, &plan))
        return false;
    if (SSL_write(client->ssl, "PING\n", 5) == 5 && SSL_read(client->ssl, answer, 5) == 5)
        return true;
    secure_reset(client);
    return false;
}

START_TEST(a_certificate_is_required_and_verified)
{
    struct stage stage;
    struct secure client;
    open_with(&stage, __func__, "daemon", "");
    for (unsigned v = 0; v < 2; v++)
        for (size_t i = 0; i < sizeof(certificates) / sizeof(certificates[0]); i++) {
            bool in = gets_in(&client, &stage, certificates[i].own, versions[v]);
            ck_assert_msg(in == (certificates[i].why == NULL), "certificate %zu", i);
            if (in) {
                ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", certificates[i].name), 1);
                secure_close(&client);
            } else {
                daemon_wait_log(&stage.daemon, "tls_failed", certificates[i].why);
            }
        }
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}
END_TEST

START_TEST(an_optional_certificate_is_verified_if_there_is_one)
{
    struct stage stage;
    struct secure client;
    open_with(&stage, __func__, "daemon", ", client_certificate: optional");
    ck_assert(gets_in(&client, &stage, NULL, 0));
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", ",cn="), 0);
    secure_close(&client);
    ck_assert(gets_in(&client, &stage, "client", 0));
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", ",cn=worker%207 "), 1);
    secure_close(&client);
    ck_assert(!gets_in(&client, &stage, "wrong", 0));
    stage_close(&stage);
}
END_TEST

/* Who comes back by a ticket is the one who was verified. */
START_TEST(a_resumed_session_keeps_its_certificate)
{
    struct stage stage;
    struct secure client;
    struct secure again;
    const struct secure_plan plan = {.ca = "ca", .own = "client"};
    const struct secure_plan nobody = {.ca = "ca"};
    open_with(&stage, __func__, "daemon", "");
    secure_connect(&client, &stage.sandbox, stage.daemon.port, &plan);
    ck_assert_str_eq(secure_ask(&client, "PING"), "PONG");
    SSL_SESSION *session = SSL_get1_session(client.ssl);
    ck_assert(SSL_SESSION_is_resumable(session));
    secure_open(&again, &stage.sandbox, stage.daemon.port, &nobody);
    ck_assert_int_eq(SSL_set_session(again.ssl, session), 1);
    ck_assert_int_eq(SSL_do_handshake(again.ssl), 1);
    ck_assert_str_eq(secure_ask(&again, "PING"), "PONG");
    ck_assert(SSL_session_reused(again.ssl));
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", ",cn=worker%207 "), 2);
    SSL_SESSION_free(session);
    secure_close(&again);
    secure_close(&client);
    stage_close(&stage);
}
END_TEST

/* Put another certificate, and its key, where the daemon's is. */
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

START_TEST(a_reload_brings_the_certificates_as_they_are_now)
{
    struct stage stage;
    struct secure before;
    struct secure after;
    const struct secure_plan renewed = {.ca = "ca", .host = "w7.example"};
    open_plain(&stage, __func__);
    connect_to(&before, &stage);
    /* A key that does not belong to it: nothing changes. */
    renew(&stage, "nameless", "wrong");
    kill(stage.daemon.pid, SIGHUP);
    daemon_wait_log(&stage.daemon, "reload_refused", "in_force");
    connect_to(&after, &stage);
    ck_assert_str_eq(secure_ask(&after, "PING"), "PONG");
    secure_close(&after);
    /* The right one: whoever connects from now on sees it, and who is there goes on. */
    const struct certs_plan plan = {.name = "new", .issuer = "ca", .names = "DNS:w7.example"};
    certs_make(stage.sandbox.dir, &plan);
    renew(&stage, "new", "new");
    kill(stage.daemon.pid, SIGHUP);
    daemon_wait_log(&stage.daemon, "certificate_changed", "address=tls://");
    daemon_wait_log(&stage.daemon, " reloaded ", "changed=nothing");
    secure_connect(&after, &stage.sandbox, stage.daemon.port, &renewed);
    ck_assert_str_eq(secure_ask(&after, "PING"), "PONG");
    ck_assert_str_eq(secure_ask(&before, "PING"), "PONG");
    secure_close(&after);
    secure_close(&before);
    stage_close(&stage);
}
END_TEST

START_TEST(a_client_that_refuses_us_is_told_of)
{
    struct stage stage;
    struct secure client;
    open_with(&stage, __func__, "old-daemon", NULL);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "old-daemon.crt has expired"), 2);
    ck_assert(!secure_try(&client, &stage.sandbox, stage.daemon.port, &anybody));
    daemon_wait_log(&stage.daemon, "tls_failed", "our certificate has expired");
    ck_assert(!secure_try(&client, &stage.sandbox, stage.daemon.port,
                          &(struct secure_plan){.ca = "stranger"}));
    daemon_wait_log(&stage.daemon, "tls_failed", "does not know the CA");
    ck_assert(!secure_try(&client, &stage.sandbox, stage.daemon.port,
                          &(struct secure_plan){.ca = "ca", .host = "elsewhere"}));
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}
END_TEST

/* The lines of docs/operations.md, as they stand there. */
START_TEST(the_manual_makes_certificates)
{
    static const char begin[] = "### Making certificates";
    static const char fence[] = "\n```sh\n";
    struct stage stage;
    struct secure client;
    char script[SANDBOX_FILE];
    char command[256];
    open_with(&stage, __func__, "daemon", "");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    char *text = sandbox_read("docs/operations.md");
    char *lines = strstr(text, begin);
    ck_assert_ptr_nonnull(lines);
    lines = strstr(lines, fence) + strlen(fence);
    strstr(lines, "```")[0] = '\0';
    sandbox_write(sandbox_path(&stage.sandbox, "make.sh", script), lines);
    /* Over those that the daemon is configured with. */
    snprintf(command, sizeof(command), "cd %s && sh -e make.sh 2>make.log", stage.sandbox.dir);
    ck_assert_int_eq(system(command), 0);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    secure_connect(&client, &stage.sandbox, stage.daemon.port,
                   &(struct secure_plan){.ca = "ca", .own = "worker-7", .host = "localhost"});
    ck_assert_str_eq(secure_ask(&client, "PING"), "PONG");
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", ",cn=worker-7 "), 1);
    secure_close(&client);
    free(text);
    stage_close(&stage);
}
END_TEST

/* --- what is no handshake --- */

static const char *const texts[] = {"PING\nPING\n", "LOCK a 10s HOLD\n",
                                    "GET / HTTP/1.1\r\nHost: a\r\n\r\n"};

START_TEST(plain_text_is_closed_with_one_line_in_the_log)
{
    struct stage stage;
    struct client client;
    char bytes[64];
    open_plain(&stage, __func__);
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
END_TEST

/* What a client says first. */
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

/* All of them have left again, and nobody is in. */
static void nobody_is_left(struct stage *stage, unsigned open_before)
{
    struct waiting waiting = waiting_for("the connections to be closed");
    while (process_open_files(stage->daemon.pid) != open_before)
        waiting_pause(&waiting);
    ck_assert_uint_eq(client_count(&stage->client, "CLIENTS", "client="), 1);
    ck_assert_uint_eq(daemon_count_log(&stage->daemon, "client_connected"),
                      daemon_count_log(&stage->daemon, "client_connected client=1 ") + 1);
}

START_TEST(a_handshake_that_is_cut_anywhere_leaves_nothing)
{
    struct stage stage;
    unsigned char hello[HELLO_MAX];
    size_t len = make_hello(hello);
    open_plain(&stage, __func__);
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
    nobody_is_left(&stage, before);
    stage_close(&stage);
}
END_TEST

/* A hello with some bytes changed, or any bytes behind the first of a hello. */
START_TEST(garbage_lets_nobody_in)
{
    enum { TRIES = 200 };
    struct stage stage;
    unsigned char hello[HELLO_MAX];
    unsigned char bytes[HELLO_MAX];
    size_t len = make_hello(hello);
    struct dice dice = {.state = 1};
    open_plain(&stage, __func__);
    unsigned before = process_open_files(stage.daemon.pid);
    for (unsigned i = 0; i < TRIES; i++) {
        struct client client;
        memcpy(bytes, hello, len);
        unsigned changes = i % 4 == 0 ? (unsigned)len : 1 + dice_below(&dice, 8);
        for (unsigned change = 0; change < changes; change++)
            bytes[1 + dice_below(&dice, (unsigned)len - 1)] ^=
                (unsigned char)dice_below(&dice, 256);
        client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
        client_send_bytes(&client, bytes, len);
        client_try_send(&client, "LOCK a 60s\nPING\n");
        shutdown(client.fd, SHUT_WR);
        while (recv(client.fd, bytes, sizeof(bytes), 0) > 0)
            continue;
        client_close(&client);
    }
    nobody_is_left(&stage, before);
    ck_assert_uint_eq(masters_with(stage.masters, 3, "redlock:a"), 0);
    stage_close(&stage);
}
END_TEST

/* --- many, and slow --- */

START_TEST(a_slow_handshake_ends)
{
    struct stage stage;
    struct client client;
    unsigned char hello[HELLO_MAX];
    make_hello(hello);
    open_plain(&stage, __func__);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_send_bytes(&client, hello, 60);
    daemon_wait_log(&stage.daemon, "tls_failed", "took too long");
    client_expect_end(&client);
    client_close(&client);
    stage_close(&stage);
}
END_TEST

/* They say nothing, and are more than there are places. */
static struct client *take_places(const struct stage *stage, unsigned count)
{
    struct client *silent = calloc(count, sizeof(*silent));
    ck_assert_ptr_nonnull(silent);
    unsigned before = process_open_files(stage->daemon.pid);
    for (unsigned i = 0; i < count; i++)
        client_connect_tcp(&silent[i], "127.0.0.1", stage->daemon.port);
    struct waiting waiting = waiting_for("all places to be taken");
    while (process_open_files(stage->daemon.pid) < before + HANDSHAKES)
        waiting_pause(&waiting);
    ck_assert_uint_eq(process_open_files(stage->daemon.pid), before + HANDSHAKES);
    return silent;
}

static void leave_places(struct client *silent, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        client_close(&silent[i]);
    free(silent);
}

START_TEST(those_who_only_take_places_do_not_keep_others_out)
{
    enum { MANY = 2 * HANDSHAKES };
    struct stage stage;
    struct secure client;
    open_plain(&stage, __func__);
    struct client *silent = take_places(&stage, MANY);
    /* Other addresses do not mind. */
    client_expect(&stage.client, "PONG", "PING");
    connect_to(&client, &stage);
    ck_assert_str_eq(secure_ask(&client, "PING"), "PONG");
    secure_close(&client);
    leave_places(silent, MANY);
    stage_close(&stage);
}
END_TEST

/* Another address that speaks TLS, like the one there is. Returns its port. */
static int add_address(const struct stage *stage)
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

/* The places are those of all addresses. */
START_TEST(an_address_that_comes_while_places_are_taken_waits_for_one)
{
    enum { MANY = HANDSHAKES + 4 };
    struct stage stage;
    struct secure client;
    open_plain(&stage, __func__);
    int port = add_address(&stage);
    struct client *silent = take_places(&stage, MANY);
    kill(stage.daemon.pid, SIGHUP);
    daemon_wait_log(&stage.daemon, " reloaded ", "changed=listen");
    secure_connect(&client, &stage.sandbox, port, &anybody);
    ck_assert_str_eq(secure_ask(&client, "PING"), "PONG");
    secure_close(&client);
    leave_places(silent, MANY);
    stage_close(&stage);
}
END_TEST

/* All of them side by side, as so many programs would. */
static void shake_hands(struct secure *clients, unsigned count)
{
    struct waiting waiting = waiting_for("all handshakes");
    for (unsigned done = 0; done < count;) {
        done = 0;
        for (unsigned i = 0; i < count; i++) {
            int result = SSL_do_handshake(clients[i].ssl);
            ck_assert_msg(result == 1 ||
                              SSL_get_error(clients[i].ssl, result) == SSL_ERROR_WANT_READ,
                          "handshake %u", i);
            done += result == 1;
        }
        waiting_pause(&waiting);
    }
}

START_TEST(many_handshakes_at_once_all_come_to_an_end)
{
    enum { MANY = 200 };
    struct stage stage;
    struct secure *clients = calloc(MANY, sizeof(*clients));
    ck_assert_ptr_nonnull(clients);
    open_plain(&stage, __func__);
    kill(stage.daemon.pid, SIGSTOP);
    for (unsigned i = 0; i < MANY; i++) {
        secure_open(&clients[i], &stage.sandbox, stage.daemon.port, &anybody);
        fcntl(clients[i].fd, F_SETFL, O_NONBLOCK);
        ck_assert_int_ne(SSL_do_handshake(clients[i].ssl), 1);
    }
    kill(stage.daemon.pid, SIGCONT);
    shake_hands(clients, MANY);
    for (unsigned i = 0; i < MANY; i++)
        fcntl(clients[i].fd, F_SETFL, 0);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_str_eq(secure_ask(&clients[i], "PING"), "PONG");
    for (unsigned i = 0; i < MANY; i++)
        secure_close(&clients[i]);
    stage_wait_clients(&stage, 1);
    free(clients);
    stage_close(&stage);
}
END_TEST

/* --- how it ends --- */

struct held {
    struct secure client;
    int64_t until_ms;
};

static void hold(struct held *held, const struct stage *stage, const char *ttl)
{
    char line[64];
    long validity_ms;
    long elapsed_ms;
    connect_to(&held->client, stage);
    int64_t sent_ms = waiting_clock_ms();
    snprintf(line, sizeof(line), "LOCK a %s HOLD", ttl);
    ck_assert_int_eq(
        sscanf(secure_ask(&held->client, line), "OK %*s %ld %ld", &validity_ms, &elapsed_ms), 2);
    held->until_ms = sent_ms + validity_ms + elapsed_ms;
}

static void quit(struct secure *client)
{
    ck_assert_str_eq(secure_ask(client, "QUIT"), "BYE");
    ck_assert(secure_ends_well(client));
    secure_cut(client);
}

/* close_notify, and it still reads; the connection itself stays. */
static void half_close(struct secure *client)
{
    secure_send(client, "#1 STATUS a\n#2 PING\n");
    secure_half_close(client);
    ck_assert_ptr_nonnull(strstr(secure_read(client), "PONG"));
    matches(secure_read(client), "#1 ");
    ck_assert(secure_ends_well(client));
    secure_cut(client);
}

static void (*const orderly[])(struct secure *) = {secure_close, quit, half_close};

START_TEST(an_end_in_order_releases_a_hold_at_once)
{
    struct stage stage;
    struct held held;
    open_plain(&stage, __func__);
    hold(&held, &stage, "60s");
    orderly[_i](&held.client);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}
END_TEST

/* A FIN alone can be made by anybody on the way, and so can a reset. */
static void (*const disorderly[])(struct secure *) = {secure_cut, secure_reset};

START_TEST(any_other_end_releases_nothing_before_the_deadline)
{
    struct stage stage;
    struct held held;
    open_plain(&stage, __func__);
    hold(&held, &stage, "2s");
    disorderly[_i](&held.client);
    stage_wait_clients(&stage, 1);
    stage_wait_key(&stage, "redlock:a", 3);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
    stage_close(&stage);
}
END_TEST

/* A process of its own: its kernel sends a FIN, and nobody is there to say close_notify. */
START_TEST(a_killed_client_keeps_its_hold_until_the_deadline)
{
    struct stage stage;
    struct held held;
    int told[2];
    int64_t until_ms;
    open_plain(&stage, __func__);
    ck_assert_int_eq(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        hold(&held, &stage, "2s");
        if (write(told[1], &held.until_ms, sizeof(held.until_ms)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(told[0], &until_ms, sizeof(until_ms)), sizeof(until_ms));
    process_kill(child);
    daemon_wait_log(&stage.daemon, "client_dropped", "");
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), until_ms);
    close(told[0]);
    close(told[1]);
    stage_close(&stage);
}
END_TEST

/* Short connections of clients that just close would fill the log. */
START_TEST(a_plain_close_is_worth_a_line_only_where_it_costs_a_lock)
{
    struct stage stage;
    struct secure client;
    struct held held;
    open_plain(&stage, __func__);
    connect_to(&client, &stage);
    matches(secure_ask(&client, "LOCK b 2s"), "OK ");
    secure_cut(&client);
    hold(&held, &stage, "2s");
    secure_cut(&held.client);
    stage_wait_clients(&stage, 1);
    daemon_wait_log(&stage.daemon, "debug client_dropped", "without a close_notify");
    daemon_wait_log(&stage.daemon, "info client_dropped", "without a close_notify");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "info client_dropped"), 1);
    stage_close(&stage);
}
END_TEST

/* The record that ends it is changed on its way. */
START_TEST(a_forged_end_releases_nothing)
{
    static const unsigned char alert[] = {0x15, 3, 3, 0, 2, 1, 0};
    struct stage stage;
    struct held held;
    open_plain(&stage, __func__);
    hold(&held, &stage, "2s");
    ck_assert_int_eq(send(held.client.fd, alert, sizeof(alert), 0), sizeof(alert));
    secure_cut(&held.client);
    stage_wait_clients(&stage, 1);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
    stage_close(&stage);
}
END_TEST

START_TEST(what_was_said_before_the_end_is_done)
{
    struct stage stage;
    struct secure client;
    char line[128];
    open_plain(&stage, __func__);
    connect_to(&client, &stage);
    matches(secure_ask(&client, "LOCK a 60s"), "OK ");
    snprintf(line, sizeof(line), "PING\nUNLOCK a %.40s\n", client.line + 3);
    kill(stage.daemon.pid, SIGSTOP); /* it finds the request and the end at once */
    secure_send(&client, line);
    secure_half_close(&client);
    kill(stage.daemon.pid, SIGCONT);
    ck_assert_str_eq(secure_read(&client), "PONG");
    ck_assert_str_eq(secure_read(&client), "OK");
    ck_assert(secure_ends_well(&client));
    secure_cut(&client);
    stage_close(&stage);
}
END_TEST

/* A LOCK and the end behind it, at once: nobody is there for the answer. */
START_TEST(a_lock_in_front_of_the_end_is_undone)
{
    struct stage stage;
    struct secure client;
    open_plain(&stage, __func__);
    connect_to(&client, &stage);
    kill(stage.daemon.pid, SIGSTOP);
    secure_send(&client, "LOCK a 60s HOLD\n");
    secure_half_close(&client);
    kill(stage.daemon.pid, SIGCONT);
    matches(secure_read(&client), "ERR bad-arguments ");
    stage_wait_key(&stage, "redlock:a", 0);
    secure_cut(&client);
    stage_close(&stage);
}
END_TEST

/* At once: in small packets, the kernel takes less, and an end behind them might not get through.
 */
static void send_lines(struct secure *client, const char *line, unsigned count)
{
    size_t len = strlen(line);
    char *lines = calloc(count, len + 1);
    ck_assert_ptr_nonnull(lines);
    for (unsigned i = 0; i < count; i++)
        memcpy(lines + i * len, line, len);
    secure_send(client, lines);
    free(lines);
}

/* So many lines behind one that waits that the daemon does not read on, and then the end: with a
 * close_notify that it cannot see yet, or without one. */
START_TEST(an_end_that_is_not_read_yet_undoes_a_lock_that_waits)
{
    /* More than the daemon reads, but not more than its kernel takes. */
    enum { LINES = 560 };
    struct stage stage;
    struct held held;
    struct grant other;
    bool in_order = _i == 0;
    open_plain(&stage, __func__);
    other = client_lock(&stage.client, "b", "60s");
    hold(&held, &stage, in_order ? "60s" : "4s");
    secure_send(&held.client, "LOCK b 60s WAIT 1h\n");
    send_lines(&held.client, "STATUS cccccccccccccccccccccccccccccccccccccccccccccccccc\n", LINES);
    stage_wait_stats(&stage.client, " waiting=1 ");
    if (in_order) {
        secure_half_close(&held.client);
        shutdown(held.client.fd, SHUT_WR);
        matches(secure_read(&held.client), "ERR bad-arguments ");
        for (unsigned i = 0; i < LINES; i++)
            ck_assert_str_eq(secure_read(&held.client), "FREE");
        ck_assert(secure_ends_well(&held.client));
        stage_wait_key(&stage, "redlock:a", 0);
        secure_cut(&held.client);
    } else {
        secure_cut(&held.client);
        stage_wait_stats(&stage.client, " waiting=0 ");
        stage_wait_clients(&stage, 1);
        stage_wait_key(&stage, "redlock:a", 0);
        ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
    }
    client_expect(&stage.client, "OK", "UNLOCK b %s", other.token);
    stage_close(&stage);
}
END_TEST

/* It ended in order, and then cannot be written to: the session must not wait for that for ever. */
START_TEST(who_cannot_be_answered_behind_its_end_is_forgotten)
{
    /* Their answers, of 1.2 KB, are more than the kernels take, and less than one may leave unread.
     */
    enum { REQUESTS = 190 };
    struct stage stage;
    struct secure client;
    struct secure_plan narrow = anybody;
    bool all_answered = _i == 1;
    open_plain(&stage, __func__);
    narrow.narrow = true;
    secure_connect(&client, &stage.sandbox, stage.daemon.port, &narrow);
    send_lines(&client, "HELP\n", REQUESTS);
    secure_half_close(&client);
    struct waiting waiting = waiting_for("all to be answered, and the client to be there still");
    while (all_answered && client_count(&stage.client, "CLIENTS", " requests=190 ") != 1)
        waiting_pause(&waiting);
    secure_reset(&client);
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}
END_TEST

/* --- bounds --- */

/* So many that there is no room for all of them at once, in records of the largest size. */
START_TEST(many_requests_at_once_are_all_answered)
{
    enum { REQUESTS = 20000 };
    struct stage stage;
    struct secure client;
    open_plain(&stage, __func__);
    connect_to(&client, &stage);
    char *lines = malloc(REQUESTS * 5 + 1);
    ck_assert_ptr_nonnull(lines);
    for (unsigned i = 0; i < REQUESTS; i++)
        memcpy(lines + i * 5, "PING\n", 6);
    secure_send(&client, lines);
    for (unsigned i = 0; i < REQUESTS; i++)
        ck_assert_str_eq(secure_read(&client), "PONG");
    free(lines);
    secure_close(&client);
    stage_close(&stage);
}
END_TEST

/* Many of them: what one may leave unread is bounded, whatever TLS keeps besides. */
START_TEST(who_does_not_read_is_dropped_within_bounds)
{
    enum { CLIENTS = 50, ANSWERS_KIB = 256 };
    struct stage stage;
    struct secure clients[CLIENTS];
    char request[1000];
    open_plain(&stage, __func__);
    long before_kib = process_memory_kib(stage.daemon.pid);
    for (unsigned i = 0; i < sizeof(request) - 5; i += 5)
        memcpy(request + i, "HELP\n", 6);
    for (unsigned i = 0; i < CLIENTS; i++) {
        connect_to(&clients[i], &stage);
        struct timeval moment = {.tv_usec = 50000};
        setsockopt(clients[i].fd, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof(moment));
        while (SSL_write(clients[i].ssl, request, (int)strlen(request)) > 0)
            continue;
        ERR_clear_error();
    }
    /* All of them are dropped; how many lines that is worth has a bound. */
    stage_wait_clients(&stage, 1);
    ck_assert_uint_gt(daemon_count_log(&stage.daemon, "it does not read its answers"), 0);
    if (!process_is_sanitized) /* it keeps what was freed */
        ck_assert_int_lt(process_memory_kib(stage.daemon.pid) - before_kib,
                         CLIENTS * (ANSWERS_KIB + 64));
    for (unsigned i = 0; i < CLIENTS; i++)
        secure_reset(&clients[i]);
    stage_close(&stage);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("tls");
    TCase *tests = sandbox_case("tls");
    tcase_add_loop_test(tests, a_client_is_served_and_told_the_end, 0, 2);
    tcase_add_test(tests, nothing_older_and_no_renegotiation);
    tcase_add_test(tests, a_certificate_is_required_and_verified);
    tcase_add_test(tests, an_optional_certificate_is_verified_if_there_is_one);
    tcase_add_test(tests, a_resumed_session_keeps_its_certificate);
    tcase_add_test(tests, a_reload_brings_the_certificates_as_they_are_now);
    tcase_add_test(tests, a_client_that_refuses_us_is_told_of);
    tcase_add_test(tests, the_manual_makes_certificates);
    tcase_add_loop_test(tests, plain_text_is_closed_with_one_line_in_the_log, 0, 3);
    tcase_add_test(tests, a_handshake_that_is_cut_anywhere_leaves_nothing);
    tcase_add_test(tests, garbage_lets_nobody_in);
    tcase_add_test(tests, a_slow_handshake_ends);
    tcase_add_test(tests, those_who_only_take_places_do_not_keep_others_out);
    tcase_add_test(tests, an_address_that_comes_while_places_are_taken_waits_for_one);
    tcase_add_test(tests, many_handshakes_at_once_all_come_to_an_end);
    tcase_add_loop_test(tests, an_end_in_order_releases_a_hold_at_once, 0, 3);
    tcase_add_loop_test(tests, any_other_end_releases_nothing_before_the_deadline, 0, 2);
    tcase_add_test(tests, a_killed_client_keeps_its_hold_until_the_deadline);
    tcase_add_test(tests, a_plain_close_is_worth_a_line_only_where_it_costs_a_lock);
    tcase_add_test(tests, a_forged_end_releases_nothing);
    tcase_add_test(tests, what_was_said_before_the_end_is_done);
    tcase_add_test(tests, a_lock_in_front_of_the_end_is_undone);
    tcase_add_loop_test(tests, an_end_that_is_not_read_yet_undoes_a_lock_that_waits, 0, 2);
    tcase_add_loop_test(tests, who_cannot_be_answered_behind_its_end_is_forgotten, 0, 2);
    tcase_add_test(tests, many_requests_at_once_are_all_answered);
    tcase_add_test(tests, who_does_not_read_is_dropped_within_bounds);
    suite_add_tcase(suite, tests);
    return suite;
}
