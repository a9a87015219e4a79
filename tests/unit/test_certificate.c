/*
 * TLS in the configuration. The report names each certificate or key file that cannot be used, with
 * the line and column of the setting. It shows none of the file's contents.
 */
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "config/certificate.h"
#include "tests/certs.h"
#include "tests/runner.h"
#include "tests/unit/configs.h"

#define TWO_NODES                                                                                  \
    "nodes:\n"                                                                                     \
    "  - {name: a, url: \"redis://10.0.0.1\"}\n"                                                   \
    "  - {name: b, url: \"redis://10.0.0.2\"}\n"
#define LISTEN(fields)                                                                             \
    "listen:\n  - {url: \"tls://127.0.0.1:7336\"" fields "}\n" TWO_NODES NODE_WITHOUT_TLS
#define TLS_NODE(fields) TWO_NODES "  - {name: c, url: \"rediss://10.0.0.3\"" fields "}\n"
#define NODE_WITHOUT_TLS "  - {name: c, url: \"redis://10.0.0.3\"}\n"
#define OWN_CERT         ", certificate: own.crt, key: own.key"

/* Concatenate two files. */
static void join(const char *first, const char *second, const char *to)
{
    char command[256];
    snprintf(command, sizeof(command), "cat %s %s >%s", first, second, to);
    ck_assert_int_eq(system(command), 0);
}

static void make_certificates(void)
{
    configs_open();
    certs_make(".", &(struct certs_plan){.name = "ca"});
    certs_make(".", &(struct certs_plan){.name = "own", .issuer = "ca"});
    certs_make(".", &(struct certs_plan){.name = "other", .issuer = "ca"});
    certs_make(".", &(struct certs_plan){
                        .name = "expired", .issuer = "ca", .from_s = -7200, .until_s = -3600});
    certs_make(".", &(struct certs_plan){
                        .name = "early", .issuer = "ca", .from_s = 3600, .until_s = 7200});
    certs_lock_key(".", "own");
    configs_write("empty", "");
    configs_write("half", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
    join("own.crt", "ca.crt", "chain");
    join("own.crt", "half", "broken");
    ck_assert_int_eq(system("cp own.key shown.key && chmod 644 shown.key empty"), 0);
    ck_assert_int_eq(system("head -c 1048577 /dev/zero >long"), 0);
}

const struct runner_settings runner_settings = {.setup = make_certificates,
                                                .teardown = configs_close};

static const struct {
    const char *text;
    const char *report;
} mistakes[] = {
    {LISTEN(""), "f:2:5: listen.certificate: missing; tls://127.0.0.1:7336 needs one, and its "
                 "key\n"},
    {"listen: [\"tls://127.0.0.1:7336\"]\n" TWO_NODES NODE_WITHOUT_TLS,
     "f:1:10: listen.certificate: missing; tls://127.0.0.1:7336 needs one, and its key\n"},
    {LISTEN(", certificate: own.crt"),
     "f:2:35: listen.key: missing; a certificate needs its key\n"},
    {LISTEN(", key: own.key"),
     "f:2:5: listen.certificate: missing; tls://127.0.0.1:7336 needs one, and its key\n"
     "f:2:35: listen.key: needs a certificate\n"},
    {LISTEN(", certificate: none, key: own.key"),
     "f:2:48: listen.certificate: none cannot be read: No such file or directory\n"},
    {LISTEN(", certificate: empty, key: own.key"),
     "f:2:48: listen.certificate: empty contains no PEM certificate (-----BEGIN "
     "CERTIFICATE-----)\n"},
    {LISTEN(", certificate: /dev/null, key: own.key"),
     "f:2:48: listen.certificate: /dev/null is not a regular file\n"},
    {LISTEN(", certificate: long, key: own.key"),
     "f:2:48: listen.certificate: long is longer than 1048576 bytes\n"},
    {LISTEN(", certificate: own.crt, key: other.key"),
     "f:2:62: listen.key: other.key does not match the certificate\n"},
    {LISTEN(", certificate: own.crt, key: empty"),
     "f:2:62: listen.key: empty is readable or writable by every user; chmod 640 or 600\n"},
    {LISTEN(", certificate: own.crt, key: none"),
     "f:2:62: listen.key: none cannot be read: No such file or directory\n"},
    {LISTEN(", certificate: own.crt, key: shown.key"),
     "f:2:62: listen.key: shown.key is readable or writable by every user; chmod 640 or 600\n"},
    {LISTEN(", certificate: own.crt, key: own.locked"),
     "f:2:62: listen.key: own.locked is encrypted with a password, which redlockd does not "
     "support; decrypt it (openssl pkey -in OLD -out NEW) and make it readable only by redlockd\n"},
    {LISTEN(OWN_CERT ", client_ca: own.key"),
     "f:2:82: listen.client_ca: own.key contains no PEM certificate (-----BEGIN "
     "CERTIFICATE-----)\n"},
    {LISTEN(OWN_CERT ", client_ca: none, client_certificate: always"),
     "f:2:82: listen.client_ca: none cannot be read: No such file or directory\n"
     "f:2:108: listen.client_certificate: \"always\" is not one of optional, required\n"},
    {LISTEN(OWN_CERT ", client_certificate: required"),
     "f:2:71: listen.client_certificate: needs client_ca, the file with the CA of the clients\n"},
    {"listen:\n  - {url: \"tcp://127.0.0.1:7335\", key: own.key}\n" TWO_NODES NODE_WITHOUT_TLS,
     "f:2:35: listen.key: is for tls:// addresses; leave it out of tcp://127.0.0.1:7335\n"},
    {"listen:\n  - {url: \"tls://0.0.0.0:7336\"" OWN_CERT "}\n" TWO_NODES NODE_WITHOUT_TLS,
     "f:2:5: listen: other hosts can reach tls://0.0.0.0:7336 and release locks there; list users "
     "(auth), require certificates (tls:// with client_ca), listen "
     "on 127.0.0.1 or a unix socket, or set insecure: true\n"},
    {"listen:\n  - {url: \"tls://0.0.0.0:7336\"" OWN_CERT
     ", client_ca: ca.crt, client_certificate: optional}\n" TWO_NODES NODE_WITHOUT_TLS,
     "f:2:5: listen: other hosts can reach tls://0.0.0.0:7336 and release locks there; list users "
     "(auth), require certificates (client_certificate: required), "
     "listen on 127.0.0.1 or a unix socket, or set insecure: true\n"},
    {TLS_NODE(", ca: none"), "f:4:45: nodes.ca: none cannot be read: No such file or directory\n"},
    {TLS_NODE(", ca: empty"),
     "f:4:45: nodes.ca: empty contains no PEM certificate (-----BEGIN CERTIFICATE-----)\n"},
    {TLS_NODE(", certificate: own.crt"),
     "f:4:41: nodes.key: missing; a certificate needs its key\n"},
    {TLS_NODE(", key: own.key"), "f:4:41: nodes.key: needs a certificate\n"},
    {TLS_NODE(", client_ca: ca.crt"), "f:4:41: nodes.client_ca: unknown key\n"},
    {TWO_NODES "  - {name: c, url: \"redis://10.0.0.3\", ca: ca.crt}\n",
     "f:4:40: nodes.ca: is for rediss:// addresses; leave it out of redis://10.0.0.3\n"},
    {TWO_NODES "  - {name: c, url: \"redis://c\", ca: x, key: x, certificate: x}\n",
     "f:4:33: nodes.ca: is for rediss:// addresses; leave it out of redis://c\n"
     "f:4:40: nodes.key: is for rediss:// addresses; leave it out of redis://c\n"
     "f:4:48: nodes.certificate: is for rediss:// addresses; leave it out of redis://c\n"},
    {TWO_NODES "  - {name: c, url: \"unix:/run/c\", ca: ca.crt}\n",
     "f:4:35: nodes.ca: is for rediss:// addresses; leave it out of unix:/run/c\n"},
};

TEST_ROWS(each_mistake_is_reported_with_its_place_and_advice, mistakes)
{
    struct config *config = configs_read(mistakes[_i].text);
    ck_assert_str_eq(configs_report(), mistakes[_i].report);
    ck_assert_ptr_null(config);
}

/* OpenSSL's reason follows the message, without any of the file's contents. */
TEST(damaged_certificate_is_refused)
{
    ck_assert_ptr_null(configs_read(LISTEN(", certificate: broken, key: own.key")));
    ck_assert_ptr_nonnull(
        strstr(configs_report(),
               "f:2:48: listen.certificate: broken contains a damaged certificate after"));
    ck_assert_ptr_null(configs_read(LISTEN(OWN_CERT ", client_ca: broken")));
    ck_assert_ptr_nonnull(strstr(
        configs_report(), "f:2:82: listen.client_ca: broken contains a damaged certificate: "));
}

static const struct {
    const char *text;
    const char *report;
} warnings[] = {
    {LISTEN(", certificate: expired.crt, key: expired.key"),
     "f:2:48: warning: listen.certificate: expired.crt has expired, so peers will reject it\n"},
    {LISTEN(", certificate: early.crt, key: early.key"),
     "f:2:48: warning: listen.certificate: early.crt is not valid yet, so peers will reject it; is "
     "the clock right?\n"},
    {TLS_NODE(", certificate: expired.crt, key: expired.key"),
     "f:4:54: warning: nodes.certificate: expired.crt has expired, so peers will reject it\n"},
};

TEST_ROWS(certificate_outside_its_validity_is_a_warning, warnings)
{
    struct config *config = configs_read(warnings[_i].text);
    ck_assert_str_eq(configs_report(), warnings[_i].report);
    ck_assert_ptr_nonnull(config);
    config_free(config);
}

static const struct {
    const char *name;
    int days_before_end;
    bool stale;
} validities[] = {
    {"year.crt", 31, false}, {"year.crt", 29, true}, {"days.crt", 4, false}, {"days.crt", 2, true}};

TEST_LOOP(a_certificate_that_ends_soon_is_stale, 0, 4)
{
    const time_t now = time(NULL);
    const time_t end = now + (_i < 2 ? 365 : 10) * 86400;
    const time_t then = end - validities[_i].days_before_end * 86400;
    char expected[64];
    struct error error;
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    certs_make(".", &(struct certs_plan){.name = "year", .issuer = "ca", .until_s = 365 * 86400});
    certs_make(".", &(struct certs_plan){.name = "days", .issuer = "ca", .until_s = 10 * 86400});
    ck_assert(certificate_load(context, validities[_i].name, &error));
    ck_assert(certificate_is_stale(SSL_CTX_get0_certificate(context), then, &error) ==
              validities[_i].stale);
    if (validities[_i].stale) {
        strftime(expected, sizeof(expected), "expires on %Y-%m-%d, renew it before that",
                 gmtime(&end));
        ck_assert_str_eq(error.text, expected);
    }
    SSL_CTX_free(context);
}

TEST(valid_tls_settings_are_kept)
{
    struct config *config =
        configs_read("listen:\n  - {url: \"tls://[::]:7336\", certificate: chain, "
                     "key: own.key, client_ca: ca.crt}\n" TLS_NODE(
                         ", ca: ca.crt, certificate: own.crt, key: own.key"));
    ck_assert_str_eq(configs_report(), "");
    ck_assert_ptr_nonnull(config);
    ck_assert(config->listens[0].address.tls);
    ck_assert_str_eq(config->listens[0].tls.certificate, "chain");
    ck_assert_str_eq(config->listens[0].tls.key, "own.key");
    ck_assert_str_eq(config->listens[0].tls.ca, "ca.crt");
    ck_assert_int_eq(config->listens[0].tls.client_certificate, CONFIG_CERTIFICATE_REQUIRED);
    ck_assert(!config->nodes[0].address.tls);
    ck_assert(config->nodes[2].address.tls);
    ck_assert_uint_eq(config->nodes[2].address.port, 6379);
    ck_assert_str_eq(config->nodes[2].tls.ca, "ca.crt");
    ck_assert_str_eq(config->nodes[2].tls.certificate, "own.crt");
    config_free(config);
}

TEST(optional_client_certificates_are_kept)
{
    struct config *config =
        configs_read(LISTEN(OWN_CERT ", client_ca: ca.crt, client_certificate: optional"));
    ck_assert_str_eq(configs_report(), "");
    ck_assert_int_eq(config->listens[0].tls.client_certificate, CONFIG_CERTIFICATE_OPTIONAL);
    config_free(config);
}

TEST(node_without_a_ca_uses_the_trust_store_of_the_system)
{
    struct config *config = configs_read(TLS_NODE(""));
    ck_assert_str_eq(configs_report(), "");
    ck_assert_ptr_null(config->nodes[2].tls.ca);
    config_free(config);
}
