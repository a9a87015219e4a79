#include "config/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/file.h"

/* The TLS handshake names at most this many of the trusted CAs. The names help a client to choose
 * its certificate. */
enum { ADVERTISED_CAS = 16 };

/* A certificate should be renewed when fewer days are left. */
enum { RENEWAL_DAYS = 30, DAY_S = 24 * 60 * 60 };

/* The static text of the last OpenSSL error. It contains nothing from the file. */
static const char *why(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : "OpenSSL does not say why";
}

/* --- files --- */

/* Read a file and pass its contents to `take`. A private file must not be accessible to every user.
 */
static bool load(SSL_CTX *context, const char *path, bool private,
                 bool (*take)(SSL_CTX *context, BIO *bio, struct error *error), struct error *error)
{
    struct file file;
    bool taken;
    if (!file_read(&file, path, CERTIFICATE_FILE_MAX + 1, error))
        return false;
    BIO *bio = BIO_new_mem_buf(file.bytes, (int)file.len);
    if (file.len > CERTIFICATE_FILE_MAX)
        taken = error_set(error, "is longer than %d bytes", CERTIFICATE_FILE_MAX);
    else if (bio == NULL)
        taken = error_set(error, "cannot be read: out of memory");
    else if (private && file.exposed)
        taken = error_set(error, "is readable or writable by every user; chmod 640 or 600");
    else
        taken = take(context, bio, error);
    BIO_free(bio);
    file_free(&file);
    ERR_clear_error();
    return taken;
}

/* Whether a loop over certificates ended at the end of the file, not at an invalid certificate. */
static bool ended_at_eof(void)
{
    unsigned long last = ERR_peek_last_error();
    return ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
}

/* --- certificates --- */

static bool take_certificates(SSL_CTX *context, BIO *bio, struct error *error)
{
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    if (certificate == NULL)
        return error_set(error, "contains no PEM certificate (-----BEGIN CERTIFICATE-----)");
    int used = SSL_CTX_use_certificate(context, certificate);
    X509_free(certificate);
    if (used != 1)
        return error_set(error, "contains a certificate that OpenSSL rejects: %s", why());
    while ((certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
        if (SSL_CTX_add0_chain_cert(context, certificate) != 1) {
            X509_free(certificate);
            return error_set(error, "contains a chain that OpenSSL rejects: %s", why());
        }
    return ended_at_eof() ||
           error_set(error, "contains a damaged certificate after the first: %s", why());
}

bool certificate_load(SSL_CTX *context, const char *path, struct error *error)
{
    return load(context, path, false, take_certificates, error);
}

static bool take_cas(SSL_CTX *context, BIO *bio, struct error *error)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    X509 *certificate;
    unsigned count = 0;
    while ((certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        bool added = X509_STORE_add_cert(store, certificate) == 1 &&
                     (count >= ADVERTISED_CAS || SSL_CTX_add_client_CA(context, certificate) == 1);
        X509_free(certificate);
        if (!added)
            return error_set(error, "contains a certificate that OpenSSL rejects: %s", why());
        count++;
    }
    if (count == 0)
        return error_set(error, "contains no PEM certificate (-----BEGIN CERTIFICATE-----)");
    return ended_at_eof() || error_set(error, "contains a damaged certificate: %s", why());
}

bool certificate_load_ca(SSL_CTX *context, const char *path, struct error *error)
{
    return load(context, path, false, take_cas, error);
}

/* --- keys --- */

/* The password callback: fails, since OpenSSL would otherwise ask on the terminal. */
static int no_password(char *buf, int size, int writing, void *context)
{
    bool *asked = context;
    (void)buf;
    (void)size;
    (void)writing;
    *asked = true;
    return -1;
}

static bool take_key(SSL_CTX *context, BIO *bio, struct error *error)
{
    bool asked = false;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, &asked);
    if (key == NULL && asked)
        return error_set(
            error, "is encrypted with a password, which redlockd does not support; decrypt it "
                   "(openssl pkey -in OLD -out NEW) and make it readable only by redlockd");
    if (key == NULL)
        return error_set(error, "contains no PEM private key (-----BEGIN PRIVATE KEY-----)");
    X509 *certificate = SSL_CTX_get0_certificate(context);
    bool fits = certificate == NULL || X509_check_private_key(certificate, key) == 1;
    bool used = fits && SSL_CTX_use_PrivateKey(context, key) == 1;
    EVP_PKEY_free(key);
    if (!fits)
        return error_set(error, "does not match the certificate");
    return used || error_set(error, "contains a key that OpenSSL rejects: %s", why());
}

bool certificate_load_key(SSL_CTX *context, const char *path, struct error *error)
{
    return load(context, path, true, take_key, error);
}

/* --- time --- */

/* The seconds between two times; INT64_MAX: they are not known. */
static int64_t seconds_between(const ASN1_TIME *from, const ASN1_TIME *to)
{
    int days, seconds;
    return from != NULL && ASN1_TIME_diff(&days, &seconds, from, to) == 1
               ? (int64_t)days * DAY_S + seconds
               : INT64_MAX;
}

/* Whether it is time to renew a certificate that is valid now. */
static bool is_ending(const X509 *certificate, time_t now)
{
    const ASN1_TIME *end = X509_get0_notAfter(certificate);
    ASN1_TIME *present = ASN1_TIME_set(NULL, now);
    int64_t left_s = seconds_between(present, end);
    ASN1_TIME_free(present);
    return left_s < RENEWAL_DAYS * DAY_S &&
           left_s * 3 < seconds_between(X509_get0_notBefore(certificate), end);
}

bool certificate_is_stale(const X509 *certificate, time_t now, struct error *error)
{
    struct tm end;
    if (X509_cmp_time(X509_get0_notBefore(certificate), &now) > 0)
        return !error_set(error, "is not valid yet, so peers will reject it; is the clock right?");
    if (X509_cmp_time(X509_get0_notAfter(certificate), &now) < 0)
        return !error_set(error, "has expired, so peers will reject it");
    if (!is_ending(certificate, now) || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1)
        return false;
    return !error_set(error, "expires on %d-%02d-%02d, renew it before that", end.tm_year + 1900,
                      end.tm_mon + 1, end.tm_mday);
}
