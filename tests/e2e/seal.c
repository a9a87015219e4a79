#include "tests/e2e/seal.h"

#include <check.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 16, SALT = 4, NONCE = 8, TAG = 16, HEADER = 5, RANDOM = 32, MASTER = 48 };

struct seal {
    EVP_CIPHER_CTX *cipher;
    unsigned char iv[SALT + NONCE];
    uint64_t number; /* sequence number of the next record; the Finished message was 0 */
};

/* Computes the key block of RFC 5246, section 6.3: the key of the client and that of the server,
 * then the salt of the client and that of the server. */
static void derive(SSL *ssl, unsigned char block[2 * (KEY + SALT)])
{
    static const char label[] = "key expansion";
    enum { LABEL = sizeof(label) - 1 };
    unsigned char master[MASTER];
    unsigned char seed[LABEL + 2 * RANDOM];
    char digest[] = "SHA256";
    size_t len = SSL_SESSION_get_master_key(SSL_get_session(ssl), master, sizeof(master));
    memcpy(seed, label, LABEL);
    SSL_get_server_random(ssl, seed + LABEL, RANDOM);
    SSL_get_client_random(ssl, seed + LABEL + RANDOM, RANDOM);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, master, len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof(seed)),
        OSSL_PARAM_END,
    };
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS1-PRF", NULL);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
    ck_assert_int_eq(EVP_KDF_derive(context, block, 2 * (KEY + SALT), params), 1);
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
}

struct seal *seal_new(SSL *ssl)
{
    unsigned char block[2 * (KEY + SALT)];
    struct seal *seal = calloc(1, sizeof(*seal));
    ck_assert_ptr_nonnull(seal);
    derive(ssl, block);
    seal->number = 1;
    seal->cipher = EVP_CIPHER_CTX_new();
    memcpy(seal->iv, block + 2 * KEY, SALT);
    ck_assert_int_eq(EVP_EncryptInit_ex(seal->cipher, EVP_aes_128_gcm(), NULL, block, NULL), 1);
    return seal;
}

void seal_free(struct seal *seal)
{
    if (seal == NULL)
        return;
    EVP_CIPHER_CTX_free(seal->cipher);
    free(seal);
}

static void put_number(uint64_t number, unsigned char *to)
{
    for (unsigned i = 0; i < NONCE; i++)
        to[i] = (unsigned char)(number >> (8 * (NONCE - 1 - i)));
}

size_t seal_record(struct seal *seal, unsigned char type, const char *content, size_t len,
                   char record[SEAL_RECORD])
{
    size_t sealed = NONCE + len + TAG;
    unsigned char header[HEADER] = {type, 3, 3, 0, (unsigned char)sealed};
    unsigned char more[NONCE + HEADER] = {0};
    unsigned char *at = (unsigned char *)record + HEADER;
    int done;
    ck_assert_uint_le(len, SEAL_CONTENT);
    put_number(seal->number, more);
    memcpy(more + NONCE, header, HEADER);
    more[NONCE + HEADER - 1] = (unsigned char)len;
    put_number(seal->number++, seal->iv + SALT);
    memcpy(record, header, HEADER);
    memcpy(at, seal->iv + SALT, NONCE);
    at += NONCE;
    EVP_EncryptInit_ex(seal->cipher, NULL, NULL, NULL, seal->iv);
    EVP_EncryptUpdate(seal->cipher, NULL, &done, more, sizeof(more));
    if (len > 0)
        EVP_EncryptUpdate(seal->cipher, at, &done, (const unsigned char *)content, (int)len);
    EVP_EncryptFinal_ex(seal->cipher, at + len, &done);
    ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_AEAD_GET_TAG, TAG, at + len), 1);
    return HEADER + sealed;
}
