/*
 * Records of TLS 1.2 made by hand, for what no TLS library sends: after its handshake, a client's
 * connection can send any type of record.
 */
#ifndef TESTS_E2E_SEAL_H
#define TESTS_E2E_SEAL_H

#include <openssl/ssl.h>
#include <stddef.h>

/* What the client must ask for, so that the records fit. */
#define SEAL_CIPHERS "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256"

enum { SEAL_HANDSHAKE = 22, SEAL_DATA = 23 };

/* The longest content, and the longest record. */
enum { SEAL_CONTENT = 64, SEAL_RECORD = SEAL_CONTENT + 5 + 8 + 16 };

struct seal;

/* For a client that has just finished its handshake, and has sent nothing since. */
struct seal *seal_new(SSL *ssl);
void seal_free(struct seal *seal);

/* The next record; returns its length. */
size_t seal_record(struct seal *seal, unsigned char type, const char *content, size_t len,
                   char record[SEAL_RECORD]);

#endif
