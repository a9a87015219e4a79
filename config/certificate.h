/*
 * Loads certificates and keys from PEM files into an OpenSSL context.
 *
 * The check of a configuration loads them into a temporary context exactly as the daemon does, so
 * that `redlockd -t` finds every problem. Errors show the names of files, but never their contents.
 * Buffers that contained a key are wiped.
 */
#ifndef CONFIG_CERTIFICATE_H
#define CONFIG_CERTIFICATE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <time.h>

#include "protocol/text.h"

/* Bytes of a file: several times the size of a file with all public CAs. */
enum { CERTIFICATE_FILE_MAX = 1024 * 1024 };

/*
 * Each function loads one file. On failure it returns false and a message to be put after the name
 * of the file ("cannot be read: No such file or directory"). Load a certificate before its key: if
 * a certificate is loaded, the key must match it. A key file is refused if every user of the host
 * can read or write it, or if the key is encrypted.
 */
bool certificate_load(SSL_CTX *context, const char *path, struct error *error);
bool certificate_load_key(SSL_CTX *context, const char *path, struct error *error);

/* Trust the CAs in this file. */
bool certificate_load_ca(SSL_CTX *context, const char *path, struct error *error);

/* Whether the certificate is not valid yet, has expired or is about to expire: less than 30 days,
 * and less than a third of its validity, are left. The error says which. */
bool certificate_is_stale(const X509 *certificate, time_t now, struct error *error);

#endif
