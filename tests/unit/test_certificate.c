/*
 * The TLS of a configuration: every file that cannot be used is named with its place, and nothing
 * that is in one is shown.
 */
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/certificate.h"
#include "config/config.h"
#include "tests/certs.h"
#include "tests/runner.h"

#define NODES                                                                                      \
    "nodes:\n"                                                                                     \
    "  - {name: a, url: \"redis://10.0.0.1\"}\n"                                                   \
    "  - {name: b, url: \"redis://10.0.0.2\"}\n"
#define LISTEN(fields) "listen:\n  - {url: \"tls://127.0.0.1:7336\"" fields "}\n" NODES PLAIN_NODE
#define NODE(fields)   NODES "  - {name: c, url: \"rediss://10.0.0.3\"" fields "}\n"
#define PLAIN_NODE     "  - {name: c, url: \"redis://10.0.0.3\"}\n"
#define OWN            ", certificate: own.crt, key: own.key"

static char printed[16384];
static char start[256];
static char folder[64];

static void write_file(const char *path, const char *bytes, size_t len)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

/* One file behind the other. */
static void join(const char *first, const char *second, const char *to)
{
    char command[256];
    snprintf(command, sizeof(command), "cat %s %s >%s", first, second, to);
    ck_assert_int_eq(system(command), 0);
}

static void open_folder(void)
{
    ck_assert_ptr_nonnull(getcwd(start, sizeof(start)));
    strcpy(folder, "/tmp/redlockd-certificate.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    certs_make(".", &(struct certs_plan){.name = "ca"});
    certs_make(".", &(struct certs_plan){.name = "own", .issuer = "ca"});
    certs_make(".", &(struct certs_plan){.name = "other", .issuer = "ca"});
    certs_make(".", &(struct certs_plan){
                        .name = "expired", .issuer = "ca", .from_s = -7200, .until_s = -3600});
    certs_make(".", &(struct certs_plan){
                        .name = "early", .issuer = "ca", .from_s = 3600, .until_s = 7200});
    certs_lock_key(".", "own");
    write_file("empty", "", 0);
    write_file("half", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", 58);
    join("own.crt", "ca.crt", "chain");
    join("own.crt", "half", "broken");
    ck_assert_int_eq(system("cp own.key shown.key && chmod 644 shown.key"), 0);
    ck_assert_int_eq(system("head -c 1048577 /dev/zero >long"), 0);
}

static void close_folder(void)
{
    char command[128];
    ck_assert_int_eq(chdir(start), 0);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static struct config *load(const char *text)
{
    write_file("f", text, strlen(text));
    FILE *out = fmemopen(printed, sizeof(printed), "w");
    ck_assert_ptr_nonnull(out);
    printed[0] = '\0';
    struct config *config = config_load("f", CONFIG_NORMAL, out);
    fclose(out);
    return config;
}

static const struct {
    const char *text;
    const char *report;
} mistakes[] = {
    {LISTEN(""), "f:2:5: listen.certificate: missing; tls://127.0.0.1:7336 needs one, and its "
                 "key\n"},
    {"listen: [\"tls://127.0.0.1:7336\"]\n" NODES PLAIN_NODE,
     "f:1:10: listen.certificate: missing; tls://127.0.0.1:7336 needs one, and its key\n"},
    {LISTEN(", certificate: own.crt"),
     "f:2:35: listen.key: missing; a certificate needs its key\n"},
    {LISTEN(", key: own.key"),
     "f:2:5: listen.certificate: missing; tls://127.0.0.1:7336 needs one, and its key\n"
     "f:2:35: listen.key: needs a certificate\n"},
    {LISTEN(", certificate: none, key: own.key"),
     "f:2:48: listen.certificate: none cannot be read: No such file or directory\n"},
    {LISTEN(", certificate: empty, key: own.key"),
     "f:2:48: listen.certificate: empty holds no certificate in PEM (-----BEGIN "
     "CERTIFICATE-----)\n"},
    {LISTEN(", certificate: /dev/null, key: own.key"),
     "f:2:48: listen.certificate: /dev/null is no regular file\n"},
    {LISTEN(", certificate: long, key: own.key"),
     "f:2:48: listen.certificate: long is longer than 1048576 bytes\n"},
    {LISTEN(", certificate: own.crt, key: other.key"),
     "f:2:62: listen.key: other.key does not belong to the certificate\n"},
    {LISTEN(", certificate: own.crt, key: empty"),
     "f:2:62: listen.key: empty can be read or written by everybody; chmod 640 or 600\n"},
    {LISTEN(", certificate: own.crt, key: none"),
     "f:2:62: listen.key: none cannot be read: No such file or directory\n"},
    {LISTEN(", certificate: own.crt, key: shown.key"),
     "f:2:62: listen.key: shown.key can be read or written by everybody; chmod 640 or 600\n"},
    {LISTEN(", certificate: own.crt, key: own.locked"),
     "f:2:62: listen.key: own.locked needs a password, which redlockd does not support; write it "
     "without one (openssl pkey -in OLD -out NEW) and let only redlockd read it\n"},
    {LISTEN(OWN ", client_ca: own.key"),
     "f:2:82: listen.client_ca: own.key holds no certificate in PEM (-----BEGIN "
     "CERTIFICATE-----)\n"},
    {LISTEN(OWN ", client_ca: none, client_certificate: always"),
     "f:2:82: listen.client_ca: none cannot be read: No such file or directory\n"
     "f:2:108: listen.client_certificate: \"always\" is none of optional, required\n"},
    {LISTEN(OWN ", client_certificate: required"),
     "f:2:71: listen.client_certificate: needs client_ca, the file with the CA of the clients\n"},
    {"listen:\n  - {url: \"tcp://127.0.0.1:7335\", key: own.key}\n" NODES PLAIN_NODE,
     "f:2:35: listen.key: is for tls:// addresses; leave it out of tcp://127.0.0.1:7335\n"},
    {"listen:\n  - {url: \"tls://0.0.0.0:7336\"" OWN "}\n" NODES PLAIN_NODE,
     "f:2:5: listen: tls://0.0.0.0:7336 can be reached from other hosts, and anybody who reaches "
     "it "
     "can release locks; list users (auth), require certificates (tls:// with client_ca), listen "
     "on 127.0.0.1 or a unix socket, or set insecure: true\n"},
    {"listen:\n  - {url: \"tls://0.0.0.0:7336\"" OWN
     ", client_ca: ca.crt, client_certificate: optional}\n" NODES PLAIN_NODE,
     "f:2:5: listen: tls://0.0.0.0:7336 can be reached from other hosts, and anybody who reaches "
     "it "
     "can release locks; list users (auth), require certificates (tls:// with client_ca), listen "
     "on 127.0.0.1 or a unix socket, or set insecure: true\n"},
    {NODE(", ca: none"), "f:4:45: nodes.ca: none cannot be read: No such file or directory\n"},
    {NODE(", ca: empty"),
     "f:4:45: nodes.ca: empty holds no certificate in PEM (-----BEGIN CERTIFICATE-----)\n"},
    {NODE(", certificate: own.crt"), "f:4:41: nodes.key: missing; a certificate needs its key\n"},
    {NODE(", key: own.key"), "f:4:41: nodes.key: needs a certificate\n"},
    {NODE(", client_ca: ca.crt"), "f:4:41: nodes.client_ca: there is no such key\n"},
    {NODES "  - {name: c, url: \"redis://10.0.0.3\", ca: ca.crt}\n",
     "f:4:40: nodes.ca: is for rediss:// addresses; leave it out of redis://10.0.0.3\n"},
    {NODES "  - {name: c, url: \"unix:/run/c\", ca: ca.crt}\n",
     "f:4:35: nodes.ca: is for rediss:// addresses; leave it out of unix:/run/c\n"},
};

START_TEST(each_mistake_has_its_place_and_advice)
{
    struct config *config = load(mistakes[_i].text);
    ck_assert_str_eq(printed, mistakes[_i].report);
    ck_assert_ptr_null(config);
}
END_TEST

/* What OpenSSL has to say of it stands behind our words, and is none of the file's. */
START_TEST(a_damaged_certificate_is_refused)
{
    ck_assert_ptr_null(load(LISTEN(", certificate: broken, key: own.key")));
    ck_assert_ptr_nonnull(
        strstr(printed, "f:2:48: listen.certificate: broken holds a damaged certificate behind"));
    ck_assert_ptr_null(load(LISTEN(OWN ", client_ca: broken")));
    ck_assert_ptr_nonnull(
        strstr(printed, "f:2:82: listen.client_ca: broken holds a damaged certificate: "));
}
END_TEST

static const struct {
    const char *text;
    const char *report;
} warnings[] = {
    {LISTEN(", certificate: expired.crt, key: expired.key"),
     "f:2:48: warning: listen.certificate: expired.crt has expired: who verifies it will refuse "
     "it\n"},
    {LISTEN(", certificate: early.crt, key: early.key"),
     "f:2:48: warning: listen.certificate: early.crt is not valid yet: who verifies it will refuse "
     "it; is the clock right?\n"},
    {NODE(", certificate: expired.crt, key: expired.key"),
     "f:4:54: warning: nodes.certificate: expired.crt has expired: who verifies it will refuse "
     "it\n"},
};

START_TEST(a_certificate_out_of_its_time_is_a_warning)
{
    struct config *config = load(warnings[_i].text);
    ck_assert_str_eq(printed, warnings[_i].report);
    ck_assert_ptr_nonnull(config);
    config_free(config);
}
END_TEST

START_TEST(what_is_right_is_kept)
{
    struct config *config = load("listen:\n  - {url: \"tls://[::]:7336\", certificate: chain, "
                                 "key: own.key, client_ca: ca.crt}\n" NODE(
                                     ", ca: ca.crt, certificate: own.crt, key: own.key"));
    ck_assert_str_eq(printed, "");
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
END_TEST

START_TEST(optional_is_kept)
{
    struct config *config = load(LISTEN(OWN ", client_ca: ca.crt, client_certificate: optional"));
    ck_assert_str_eq(printed, "");
    ck_assert_int_eq(config->listens[0].tls.client_certificate, CONFIG_CERTIFICATE_OPTIONAL);
    config_free(config);
}
END_TEST

START_TEST(the_system_is_believed_where_a_node_names_no_ca)
{
    struct config *config = load(NODE(""));
    ck_assert_str_eq(printed, "");
    ck_assert_ptr_null(config->nodes[2].tls.ca);
    config_free(config);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("certificate");
    TCase *tests = tcase_create("certificate");
    tcase_add_checked_fixture(tests, open_folder, close_folder);
    tcase_add_loop_test(tests, each_mistake_has_its_place_and_advice, 0,
                        sizeof(mistakes) / sizeof(mistakes[0]));
    tcase_add_test(tests, a_damaged_certificate_is_refused);
    tcase_add_loop_test(tests, a_certificate_out_of_its_time_is_a_warning, 0,
                        sizeof(warnings) / sizeof(warnings[0]));
    tcase_add_test(tests, what_is_right_is_kept);
    tcase_add_test(tests, optional_is_kept);
    tcase_add_test(tests, the_system_is_believed_where_a_node_names_no_ca);
    suite_add_tcase(suite, tests);
    return suite;
}
