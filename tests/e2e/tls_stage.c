#include "tests/e2e/tls_stage.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/certs.h"

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

void tls_stage_open_with(struct stage *stage, const char *test, const char *certificate,
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
        .node_timeout_ms = 500, .tcp_host = "127.0.0.1", .tls_fields = fields};
    daemon_prepare(&stage->daemon, &stage->sandbox, stage->masters, stage->master_count, &plan);
    daemon_bootstrap(&stage->daemon);
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, stage->master_count);
    daemon_connect(&stage->daemon, &stage->client);
    /* Wait for the PONG, so that the daemon has accepted this connection. Some tests count the
     * daemon's descriptors later. */
    client_expect(&stage->client, "PONG", "PING");
}

void tls_stage_open(struct stage *stage, const char *test)
{
    tls_stage_open_with(stage, test, "daemon", NULL);
}

const struct tls_client_plan tls_no_certificate = {.ca = "ca", .host = "localhost"};

void tls_stage_connect(struct tls_client *client, const struct stage *stage)
{
    tls_client_connect(client, &stage->sandbox, stage->daemon.port, &tls_no_certificate);
}

void tls_expect(const char *line, const char *begin)
{
    ck_assert_msg(strncmp(line, begin, strlen(begin)) == 0, "%s, instead of %s", line, begin);
}
