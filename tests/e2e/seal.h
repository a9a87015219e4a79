/*
 * Makes TLS 1.2 records that no TLS library would send. With them, a client can send records of any
 * type after its handshake.
 */
#ifndef TESTS_E2E_SEAL_H
#define TESTS_E2E_SEAL_H

#include <openssl/ssl.h>
#include <stddef.h>

/* The client must offer these ciphers and no others, because the records are encrypted with
 * AES-128-GCM. */
#define SEAL_CIPHERS "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256"

enum { SEAL_HANDSHAKE = 22, SEAL_DATA = 23 };

/* Maximum length of a content and of a record. */
enum { SEAL_CONTENT = 64, SEAL_RECORD = SEAL_CONTENT + 5 + 8 + 16 };

struct seal;

/* For a client that has finished its handshake and sent nothing since. */
struct seal *seal_new(SSL *ssl);
void seal_free(struct seal *seal);

/* Writes the next record and returns its length. */
size_t seal_record(struct seal *seal, unsigned char type, const char *content, size_t len,
                   char record[SEAL_RECORD]);

#endif
