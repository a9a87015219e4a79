/*
 * Users: requests need authentication, users are limited to their resources and verbs, listings
 * show only what a user may see, and clients that guess secrets or never authenticate cannot crowd
 * out others.
 */
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/clients/auth_throttle.h"
#include "tests/e2e/secrets.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"
#define LOCAL "127.0.0.1"

static struct secrets secrets;

/* Opens a stage whose daemon has users; stage.client is `tester`. */
static void open_stage(struct stage *stage, const char *test, const char *more)
{
    secrets_open(&secrets, more);
    stage_open(
        stage, test,
        &(struct stage_plan){.masters = 3, .daemon = {.tcp_host = LOCAL, .yaml = secrets.yaml}});
}

static void close_stage(struct stage *stage)
{
    char *log = sandbox_read(stage->daemon.log);
    ck_assert_ptr_null(strstr(log, "0123456789abcdef0123456789abcdef"));
    ck_assert_ptr_null(strstr(log, "guess-"));
    free(log);
    stage_close(stage);
    secrets_close(&secrets);
}

static void connect_tcp(const struct stage *stage, struct client *client)
{
    client_connect_tcp(client, LOCAL, stage->daemon.port);
}

/* Connects from 127.0.0.HOST. */
static void connect_from(const struct stage *stage, struct client *client, unsigned host)
{
    char from[sizeof("127.0.0.255")];
    snprintf(from, sizeof(from), "127.0.0.%u", host);
    client_connect_from(client, from, LOCAL, stage->daemon.port);
}

static void connect_as(const struct stage *stage, struct client *client, const char *secret)
{
    connect_tcp(stage, client);
    client_expect(client, "OK", "AUTH %s", secret);
}

/* --- before authentication --- */

TEST(requests_before_auth_are_denied)
{
    static const char *const denied[] = {
        "LOCK ci:a 10s",
        "LOCK ci:a 10s WAIT 1s",
        "LOCK ci:a 10s HOLD",
        "LOCK ci:a 10s SLOTS 3",
        "UNLOCK ci:a " TOKEN,
        "EXTEND ci:a " TOKEN " 1s",
        "STATUS ci:a",
        "NAME me",
        "NODES",
        "STATS",
        "LOCKS",
        "LOCKS ci:a",
        "CLIENTS",
        /* An error text with the valid range would reveal the configuration. */
        "LOCK ci:a 99999999",
        "LOCK ci:a soon",
        "LOCK ci:a 10s SLOTS 1001",
        "UNLOCK ci:a x",
    };
    struct stage stage;
    struct client client;
    open_stage(&stage, __func__, "");
    connect_tcp(&stage, &client);
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
        client_expect(&client, "DENIED authenticate first: AUTH <secret>", "%s", denied[i]);
    client_expect(&client, "#7 DENIED authenticate first: AUTH <secret>", "#7 STATUS a");
    client_expect_match(&client, "ERR unknown-verb .*", "FLY");
    client_expect(&client, "PONG", "PING");
    client_expect_match(&client, "VERSION .*", "VERSION");
    ck_assert_uint_eq(client_count(&client, "HELP", "AUTH"), 1);
    client_expect(&client, "#8 OK", "#8 AUTH " SECRET_CI);
    client_lock(&client, "ci:a", "10s");
    client_close(&client);
    close_stage(&stage);
}

TEST(requests_can_be_pipelined_after_auth)
{
    struct stage stage;
    struct client client;
    open_stage(&stage, __func__, "");
    connect_tcp(&stage, &client);
    client_send(&client, "STATUS ci:a\nAUTH " SECRET_CI "\nSTATUS ci:a\n#1 LOCK ci:b 10s\n");
    client_read_match(&client, "DENIED .*");
    client_read_match(&client, "OK");
    client_read_match(&client, "FREE|#1 OK .*");
    client_read_match(&client, "FREE|#1 OK .*");
    client_close(&client);
    close_stage(&stage);
}

TEST(a_wrong_secret_is_denied_and_the_connection_closed)
{
    struct stage stage;
    struct client client;
    open_stage(&stage, __func__, "");
    connect_tcp(&stage, &client);
    client_send(&client, "AUTH guess-1\nLOCK ci:a 10s\nAUTH " SECRET_CI "\n");
    client_read_match(&client, "DENIED wrong secret");
    client_expect_end(&client);
    client_close(&client);
    daemon_wait_log(&stage.daemon, "auth_failed", "peer=127.0.0.1");
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " wrong_secrets=1"), 1);
    ck_assert_uint_eq(client_count(&stage.client, "LOCKS", "resource="), 0);
    close_stage(&stage);
}

/* This allows the operator to give the clients their secrets before the daemon has users. */
TEST(without_users_any_secret_is_accepted)
{
    struct stage stage;
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3});
    client_expect(&stage.client, "OK", "AUTH anything");
    client_expect(&stage.client, "OK", "AUTH anything-else");
    client_expect_match(&stage.client, "FREE", "STATUS a");
    stage_close(&stage);
}

/* --- permissions --- */

TEST(a_user_cannot_use_see_or_count_foreign_resources)
{
    struct stage stage;
    struct client ci;
    struct client ops;
    open_stage(&stage, __func__, "");
    connect_as(&stage, &ci, SECRET_CI);
    connect_as(&stage, &ops, SECRET_OPS);
    struct grant foreign = client_lock(&ops, "prod", "60s");
    client_lock(&ops, "cj:a", "60s");
    client_lock(&ops, "c", "60s");
    struct grant shared = client_lock(&ops, "ci:shared", "60s");
    client_expect_match(&ci, "HELD .*", "LOCK ci:shared 10s");
    client_expect(&ci, "OK", "UNLOCK ci:shared %s", shared.token);
    client_lock(&ci, "ci:mine", "60s");

    /* The daemon denies access even with the right token. */
    static const char denied[] = "DENIED user ci may not use this resource";
    client_expect(&ci, denied, "UNLOCK prod %s", foreign.token);
    client_expect(&ci, denied, "EXTEND prod %s 10s", foreign.token);
    client_expect(&ci, denied, "LOCK prod 10s");
    client_expect(&ci, denied, "LOCK prod 10s WAIT 1s");
    client_expect(&ci, denied, "LOCK ci 10s");
    client_expect(&ci, denied, "LOCK prod 10s SLOTS 3");
    client_expect(&ci, denied, "STATUS prod");
    client_expect(&ci, denied, "STATUS prod SLOTS 3");
    client_expect(&ci, denied, "LOCKS prod");
    client_expect(&ci, denied, "LOCKS nothing");
    client_expect(&ci, "DENIED user ci may not use STATS", "STATS");
    client_expect(&ci, "DENIED user ci may not use NODES", "NODES");
    /* A user that may use a resource may use its slots. */
    client_expect_match(&ci, "OK [0-9a-f]{40} [0-9]+ [0-9]+ - ci:pool#1",
                        "LOCK ci:pool 10s SLOTS 1");
    client_expect(&ci, "OK", "UNLOCK ci:pool#1 %.40s", ci.line + 3);

    ck_assert_uint_eq(client_count(&ci, "LOCKS", ""), 1);
    ck_assert_uint_eq(client_count(&ci, "LOCKS", "resource=ci:mine"), 1);
    ck_assert_uint_eq(client_count(&ci, "CLIENTS", ""), 1);
    ck_assert_uint_eq(client_count(&ci, "CLIENTS", "user=ci"), 1);
    ck_assert_uint_eq(client_count(&ops, "LOCKS", ""), 4);
    ck_assert_uint_eq(client_count(&ops, "CLIENTS", ""), 3);
    ck_assert_uint_eq(client_count(&ops, "CLIENTS", "user=tester"), 1);
    client_expect(&ops, "OK", "UNLOCK prod %s", foreign.token);
    client_close(&ci);
    client_close(&ops);
    close_stage(&stage);
}

/* Of 2,200 locks, the user may see 1,100, and a listing shows at most 1,000. `more=` must count
 * only the other 100 that the user may see. */
TEST(a_truncated_listing_counts_only_permitted_resources)
{
    enum { EACH = 1100 };
    struct stage stage;
    struct client ci;
    open_stage(&stage, __func__, "");
    connect_as(&stage, &ci, SECRET_CI);
    for (int i = 0; i < EACH; i++) {
        client_expect_match(&stage.client, "OK .*", "LOCK ci:%d 60s", i);
        client_expect_match(&stage.client, "OK .*", "LOCK x:%d 60s", i);
    }
    ck_assert_uint_eq(client_count(&ci, "LOCKS", "resource=ci:"), LIMIT_LISTING_LINES);
    ck_assert_uint_eq(client_count(&ci, "LOCKS", "resource=x:"), 0);
    ck_assert_uint_eq(client_count(&ci, "LOCKS", "more=100"), 1);
    client_close(&ci);
    close_stage(&stage);
}

TEST(client_ids_do_not_reveal_how_many_clients_connect)
{
    struct stage stage;
    struct client ci;
    struct client other;
    uint64_t first = 0;
    uint64_t second = 0;
    open_stage(&stage, __func__, "");
    connect_as(&stage, &ci, SECRET_CI);
    client_send(&ci, "CLIENTS\n");
    ck_assert_int_eq(sscanf(client_read(&ci), "client=%lu", &first), 1);
    client_read_match(&ci, "END");
    client_close(&ci);
    connect_tcp(&stage, &other);
    connect_as(&stage, &ci, SECRET_CI);
    client_send(&ci, "CLIENTS\n");
    ck_assert_int_eq(sscanf(client_read(&ci), "client=%lu", &second), 1);
    ck_assert_msg(second - first > 100 && first - second > 100, "%lu %lu", first, second);
    client_close(&ci);
    client_close(&other);
    close_stage(&stage);
}

TEST(a_connection_can_authenticate_only_once)
{
    struct stage stage;
    struct client client;
    static const char once[] = "DENIED this connection has already authenticated; open another one";
    open_stage(&stage, __func__, "");
    connect_as(&stage, &client, SECRET_CI);
    client_expect(&client, once, "AUTH " SECRET_OPS);
    client_expect(&client, once, "AUTH " SECRET_CI);
    client_expect(&client, once, "AUTH guess-2");
    client_expect_match(&client, "DENIED .*", "STATUS prod");
    client_expect(&client, "FREE", "STATUS ci:a");
    client_close(&client);
    close_stage(&stage);
}

/* --- secrets in memory --- */

/* is_in_memory() leaves out mappings of this size or more: they belong to a sanitizer and are
 * mostly empty. */
enum { LARGE_MAPPING = 1 << 28 };

static bool is_in_mapping(int memory, off_t from, size_t len, const char *text)
{
    char *bytes = malloc(len);
    ssize_t got = pread(memory, bytes, len, from);
    bool found = got > 0 && memmem(bytes, (size_t)got, text, strlen(text)) != NULL;
    free(bytes);
    return found;
}

/* True if the text is in the writable memory of the daemon. */
static bool is_in_memory(const struct daemon *daemon, const char *text)
{
    char path[32];
    char line[512];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)daemon->pid);
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(memory, 0);
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)daemon->pid);
    FILE *maps = fopen(path, "re");
    ck_assert_ptr_nonnull(maps);
    while (!found && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long from;
        unsigned long to;
        if (sscanf(line, "%lx-%lx rw", &from, &to) == 2 && to - from < LARGE_MAPPING)
            found = is_in_mapping(memory, (off_t)from, to - from, text);
    }
    fclose(maps);
    close(memory);
    return found;
}

TEST(a_secret_does_not_stay_in_memory)
{
    struct stage stage;
    struct client client;
    /* With lazy binding, the dynamic linker could save the vector registers to memory, and with
     * them the bytes that were copied last. */
    ck_assert_int_eq(setenv("LD_BIND_NOW", "1", 1), 0);
    open_stage(&stage, __func__, "");
    /* Shows that the search works: the daemon has the path of its socket in memory. */
    ck_assert(is_in_memory(&stage.daemon, stage.daemon.socket));
    connect_tcp(&stage, &client);
    client_expect(&client, "DENIED wrong secret", "AUTH guess-of-one-piece");
    client_close(&client);
    ck_assert(!is_in_memory(&stage.daemon, "of-one-piece"));
    connect_tcp(&stage, &client);
    client_send(&client, "AUTH gu");
    stage_wait_clients(&stage, 2);
    client_expect(&client, "DENIED wrong secret", "ess-of-two-pieces");
    client_close(&client);
    ck_assert(!is_in_memory(&stage.daemon, "of-two-pieces"));
    /* The AUTH line is pending input after a LOCK that waits. */
    connect_as(&stage, &client, SECRET_CI);
    client_lock(&client, "ci:a", "60s");
    client_send(&stage.client, "LOCK ci:a 10s WAIT 50ms\nAUTH guess-held-back\n");
    client_read_match(&stage.client, "HELD .*");
    client_read_match(&stage.client, "DENIED wrong secret");
    ck_assert(!is_in_memory(&stage.daemon, "held-back"));
    client_close(&client);
    close_stage(&stage);
}

/* --- unix sockets --- */

TEST(a_secret_overrides_the_user_of_a_unix_socket)
{
    struct stage stage;
    open_stage(&stage, __func__, "");
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", "user=tester"), 1);
    client_expect(&stage.client, "DENIED wrong secret", "AUTH guess-3");
    client_expect(&stage.client, "FREE", "STATUS prod");
    /* The other user could not release this HOLD. */
    client_expect_match(&stage.client, "OK .*", "LOCK prod 60s HOLD");
    client_expect_match(&stage.client, "DENIED the user may not change .*", "AUTH " SECRET_CI);
    client_half_close(&stage.client);
    client_expect_end(&stage.client);
    client_close(&stage.client);
    daemon_connect(&stage.daemon, &stage.client);
    client_expect(&stage.client, "OK", "AUTH " SECRET_CI);
    client_expect_match(&stage.client, "DENIED .*", "STATUS prod");
    client_expect(&stage.client, "FREE", "STATUS ci:a");
    close_stage(&stage);
}

/* Connects with this uid and gid as peer credentials. */
static void connect_as_uid(const struct stage *stage, struct client *client, uid_t uid, gid_t gid)
{
    ck_assert_int_eq(setegid(gid), 0);
    ck_assert_int_eq(seteuid(uid), 0);
    daemon_connect(&stage->daemon, client);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(setegid(0), 0);
}

TEST(unix_peers_are_authenticated_by_uid_or_gid)
{
    struct stage stage;
    struct client client;
    if (geteuid() != 0)
        return; /* only root can change its uid */
    secrets_open(&secrets, "  - {name: web, uids: [4001], gids: [4002], resources: [\"w:\"]}\n");
    stage_open(
        &stage, __func__,
        &(struct stage_plan){
            .masters = 3, .daemon = {.listen_fields = ", mode: \"0666\"", .yaml = secrets.yaml}});
    char above[SANDBOX_FILE];
    snprintf(above, sizeof(above), "%s/..", stage.sandbox.dir);
    ck_assert_int_eq(chmod(stage.sandbox.dir, 0711), 0);
    ck_assert_int_eq(chmod(above, 0711), 0);
    connect_as_uid(&stage, &client, 4001, 1);
    client_expect(&client, "FREE", "STATUS w:a");
    client_expect(&client, "DENIED user web may not use this resource", "STATUS ci:a");
    client_close(&client);
    connect_as_uid(&stage, &client, 4009, 4002);
    client_expect(&client, "FREE", "STATUS w:a");
    client_close(&client);
    /* Some directory services put users into very many groups. */
    gid_t many[1000];
    for (gid_t i = 0; i < 1000; i++)
        many[i] = 5000 + i;
    many[999] = 4002;
    ck_assert_int_eq(setgroups(1000, many), 0);
    connect_as_uid(&stage, &client, 4009, 4009);
    client_expect(&client, "FREE", "STATUS w:a");
    client_close(&client);
    ck_assert_int_eq(setgroups(0, NULL), 0);
    connect_as_uid(&stage, &client, 4009, 4009);
    client_expect_match(&client, "DENIED authenticate first.*", "STATUS w:a");
    client_expect(&client, "OK", "AUTH " SECRET_OPS);
    client_expect(&client, "FREE", "STATUS w:a");
    client_close(&client);
    close_stage(&stage);
}

/* --- unauthenticated connections --- */

TEST(connections_that_miss_the_auth_timeout_are_closed)
{
    struct stage stage;
    struct client idle;
    struct client busy;
    open_stage(&stage, __func__, "limits: {auth_timeout: 1s}\n");
    connect_tcp(&stage, &idle);
    connect_tcp(&stage, &busy);
    client_send(&busy, "AUT"); /* input does not extend the timeout */
    client_read_match(&idle, "DENIED not authenticated in time");
    client_expect_end(&idle);
    client_read_match(&busy, "DENIED not authenticated in time");
    client_expect_end(&busy);
    client_close(&idle);
    client_close(&busy);
    /* Authenticated connections stay. */
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", ""), 1);
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " unauthenticated=0 "), 1);
    close_stage(&stage);
}

TEST(idle_unauthenticated_connections_cannot_crowd_out_clients)
{
    enum { ROOM = 5, SILENT = 40 };
    struct stage stage;
    struct client *silent = calloc(SILENT, sizeof(*silent));
    struct client honest;
    ck_assert_ptr_nonnull(silent);
    open_stage(&stage, __func__, "limits: {unauthenticated: 5, auth_timeout: 1m, clients: 10}\n");
    for (int i = 0; i < SILENT; i++) {
        connect_tcp(&stage, &silent[i]);
        client_expect(&silent[i], "PONG", "PING");
    }
    /* The daemon has closed the oldest silent connections. The honest client displaces one more. */
    client_read_match(&silent[0], "LIMIT unauthenticated");
    client_expect_end(&silent[0]);
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " unauthenticated=5 "), 1);
    connect_as(&stage, &honest, SECRET_CI);
    client_lock(&honest, "ci:a", "10s");
    daemon_wait_log(&stage.daemon, "unauthenticated_limited", "127.0.0.1");
    daemon_wait_log(&stage.daemon, "unauthenticated_limited", "limits.unauthenticated is reached");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "unauthenticated_limited"), 1);
    for (int i = 0; i < SILENT; i++)
        client_close(&silent[i]);
    client_close(&honest);
    free(silent);
    close_stage(&stage);
}

/* At the limit of clients, the daemon closes an unauthenticated connection to make room for a new
 * one. All connections come from one address (loop index 0), or each from an address of its own
 * (1). */
TEST_LOOP(a_client_displaces_an_unauthenticated_one_at_the_limit, 0, 2)
{
    struct stage stage;
    struct client in[3];
    struct client waiting;
    struct client late;
    bool from_elsewhere = _i == 1;
    open_stage(&stage, __func__, "limits: {clients: 4, auth_timeout: 1m}\n");
    for (unsigned i = 0; i < 2; i++) {
        connect_from(&stage, &in[i], from_elsewhere ? 2 + i : 1);
        client_expect(&in[i], "OK", "AUTH " SECRET_CI);
    }
    connect_from(&stage, &waiting, from_elsewhere ? 4 : 1);
    client_expect(&waiting, "PONG", "PING");
    connect_from(&stage, &in[2], from_elsewhere ? 5 : 1);
    client_expect(&in[2], "OK", "AUTH " SECRET_CI);
    client_read_match(&waiting, "LIMIT unauthenticated");
    client_expect_end(&waiting);
    /* All other connections are authenticated, so the daemon refuses the new one. */
    connect_from(&stage, &late, from_elsewhere ? 6 : 1);
    client_read_match(&late, "LIMIT clients");
    client_expect_end(&late);
    for (int i = 0; i < 3; i++)
        client_expect(&in[i], "FREE", "STATUS ci:a");
    for (int i = 0; i < 3; i++)
        client_close(&in[i]);
    client_close(&waiting);
    client_close(&late);
    close_stage(&stage);
}

static const char *send_wrong_secret(const struct stage *stage, int number)
{
    static char answer[128];
    struct client client;
    connect_tcp(stage, &client);
    snprintf(answer, sizeof(answer), "%s", client_ask(&client, "AUTH guess-%d", number));
    client_expect_end(&client);
    client_close(&client);
    return answer;
}

TEST(guessing_secrets_throttles_the_address)
{
    struct stage stage;
    struct client client;
    open_stage(&stage, __func__, "");
    connect_as(&stage, &client, SECRET_CI);
    /* The throttle allows one more attempt each second while the test guesses. */
    struct waiting waiting = waiting_for("the throttle to refuse");
    for (int i = 0; strcmp(send_wrong_secret(&stage, i), "LIMIT secrets") != 0; i++)
        if (i > AUTH_THROTTLE_BURST)
            waiting_pause(&waiting);
    /* The throttle applies to new attempts from this address. It affects neither a connection that
     * has authenticated already nor an attempt over the unix socket. */
    client_expect(&client, "FREE", "STATUS ci:a");
    client_expect(&stage.client, "OK", "AUTH " SECRET_OPS);
    client_close(&client);
    waiting = waiting_for("the throttle to allow an attempt");
    connect_tcp(&stage, &client);
    while (strcmp(client_ask(&client, "AUTH " SECRET_CI), "OK") != 0) {
        client_expect_end(&client);
        client_close(&client);
        waiting_pause(&waiting);
        connect_tcp(&stage, &client);
    }
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "warning auth_limited"), 1);
    client_close(&client);
    close_stage(&stage);
}

TEST(repeating_one_wrong_secret_does_not_throttle_the_address)
{
    struct stage stage;
    struct client client;
    open_stage(&stage, __func__, "");
    for (int i = 0; i < 3 * AUTH_THROTTLE_BURST; i++)
        ck_assert_str_eq(send_wrong_secret(&stage, 0), "DENIED wrong secret");
    connect_as(&stage, &client, SECRET_CI);
    client_close(&client);
    close_stage(&stage);
}

/* --- addresses --- */

TEST(connections_per_address_are_limited)
{
    struct stage stage;
    struct client clients[3];
    struct client more;
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3,
                                    .daemon = {.tcp_host = LOCAL,
                                               .yaml = "limits: {clients_per_address: 3}\n"
                                                       "log: {level: debug}\n"}});
    for (int i = 0; i < 3; i++) {
        connect_tcp(&stage, &clients[i]);
        client_expect(&clients[i], "PONG", "PING");
    }
    connect_tcp(&stage, &more);
    client_read_match(&more, "LIMIT clients");
    client_expect_end(&more);
    client_close(&more);
    daemon_wait_log(&stage.daemon, "client_refused", "limit=clients_per_address");
    /* A unix socket does not count for the TCP address, and a closed connection no longer
     * counts. */
    struct client local;
    daemon_connect(&stage.daemon, &local);
    client_expect(&local, "PONG", "PING");
    client_close(&local);
    client_close(&clients[0]);
    stage_wait_clients(&stage, 3);
    connect_tcp(&stage, &more);
    client_expect(&more, "PONG", "PING");
    client_close(&more);
    client_close(&clients[1]);
    client_close(&clients[2]);
    stage_close(&stage);
}

/* With users, a public listener does not need `insecure: true`. */
TEST(with_users_a_public_listener_is_allowed)
{
    struct stage stage;
    struct client client;
    secrets_open(&secrets, "");
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3,
                                    .daemon = {.tcp_host = "0.0.0.0", .yaml = secrets.yaml}});
    connect_as(&stage, &client, SECRET_OPS);
    client_close(&client);
    close_stage(&stage);
}
