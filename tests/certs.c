#include "tests/certs.h"

#include <check.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH = 256, HOUR = 3600, DAY = 24 * HOUR };

static FILE *open_file(const char *folder, const char *name, const char *ending, const char *mode)
{
    char path[PATH];
    ck_assert_int_lt(snprintf(path, PATH, "%s/%s.%s", folder, name, ending), PATH);
    FILE *file = fopen(path, mode);
    ck_assert_msg(file != NULL, "cannot open %s", path);
    return file;
}

static EVP_PKEY *read_key(const char *folder, const char *name)
{
    FILE *file = open_file(folder, name, "key", "r");
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(key);
    fclose(file);
    return key;
}

static void extend(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ck_assert_ptr_nonnull(extension);
    ck_assert_int_eq(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void write_certificate(const char *folder, const struct certs_plan *plan, EVP_PKEY *key)
{
    static long serial;
    EVP_PKEY *signing = key;
    X509 *certificate = X509_new();
    X509 *issuer = certificate;
    bool timed = plan->from_s != 0 || plan->until_s != 0;
    const char *common = plan->common != NULL ? plan->common : plan->name;
    if (plan->issuer != NULL) {
        FILE *file = open_file(folder, plan->issuer, "crt", "r");
        issuer = PEM_read_X509(file, NULL, NULL, NULL);
        fclose(file);
        signing = read_key(folder, plan->issuer);
    }
    ck_assert_int_eq(X509_set_version(certificate, X509_VERSION_3), 1);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), timed ? plan->from_s : -HOUR);
    X509_gmtime_adj(X509_getm_notAfter(certificate), timed ? plan->until_s : DAY);
    if (common[0] != '\0')
        X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                   (const unsigned char *)common, -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
    X509_set_pubkey(certificate, key);
    if (plan->issuer == NULL)
        extend(certificate, issuer, NID_basic_constraints, "critical,CA:TRUE");
    if (plan->names != NULL)
        extend(certificate, issuer, NID_subject_alt_name, plan->names);
    ck_assert_int_gt(X509_sign(certificate, signing, EVP_sha256()), 0);
    FILE *file = open_file(folder, plan->name, "crt", "w");
    ck_assert_int_eq(PEM_write_X509(file, certificate), 1);
    fclose(file);
    if (plan->issuer != NULL) {
        X509_free(issuer);
        EVP_PKEY_free(signing);
    }
    X509_free(certificate);
}

static void write_key(const char *folder, const char *name, const char *ending, EVP_PKEY *key,
                      const char *password)
{
    FILE *file = open_file(folder, name, ending, "w");
    ck_assert_int_eq(fchmod(fileno(file), 0600), 0);
    ck_assert_int_eq(PEM_write_PrivateKey(file, key, password != NULL ? EVP_aes_256_cbc() : NULL,
                                          (const unsigned char *)password,
                                          password != NULL ? (int)strlen(password) : 0, NULL, NULL),
                     1);
    fclose(file);
}

void certs_make(const char *folder, const struct certs_plan *plan)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    ck_assert_ptr_nonnull(key);
    write_key(folder, plan->name, "key", key, NULL);
    write_certificate(folder, plan, key);
    EVP_PKEY_free(key);
}

void certs_lock_key(const char *folder, const char *name)
{
    EVP_PKEY *key = read_key(folder, name);
    write_key(folder, name, "locked", key, "hunter2hunter2");
    EVP_PKEY_free(key);
}
