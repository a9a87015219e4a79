/*
 * Certificates and keys: files in PEM -> what OpenSSL needs of them for a connection.
 *
 * The check of a configuration loads them exactly as the daemon does, into a context that is thrown
 * away, so that `redlockd -t` finds whatever would go wrong later. The names of files are shown in
 * errors; what is in them never is, and a key is wiped from memory where we had it.
 */
#ifndef CONFIG_CERTIFICATE_H
#define CONFIG_CERTIFICATE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <time.h>

#include "protocol/text.h"

/* Bytes of a file: several times what a system with all public CAs has. */
enum { CERTIFICATE_FILE_MAX = 1024 * 1024 };

/*
 * Each loads one file, and fails with an error to be put behind its name ("cannot be read: No such
 * file or directory"). The key comes after the certificate that it has to belong to, if there is
 * one; it must not be readable by everybody, nor need a password.
 */
bool certificate_load(SSL_CTX *context, const char *path, struct error *error);
bool certificate_load_key(SSL_CTX *context, const char *path, struct error *error);

/* Those whose certificates are believed from now on. */
bool certificate_load_ca(SSL_CTX *context, const char *path, struct error *error);

/* Is the certificate that was loaded out of its time now? Then the error says how. */
bool certificate_is_stale(const SSL_CTX *context, time_t now, struct error *error);

#endif
