#include "tests/e2e/flood.h"

#include <check.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/e2e/seal.h"
#include "tests/e2e/tls_stage.h"

/* OpenSSL accepts at most 32 empty records in a row and a ClientHello of at most 131,396 bytes. */
enum { KEY_UPDATES = 50000, CHUNK = 2000, EMPTY_IN_A_ROW = 30, FRAGMENTS = 100000 };

/* The thread blocks at most this long in a send before it checks `stop`. */
enum { SEND_MS = 200 };

static void put(struct flood *flood, const void *bytes, size_t len)
{
    if (flood->len + len > flood->size) {
        flood->size = 2 * (flood->len + len);
        flood->bytes = realloc(flood->bytes, flood->size);
        ck_assert_ptr_nonnull(flood->bytes);
    }
    memcpy(flood->bytes + flood->len, bytes, len);
    flood->len += len;
}

/* False if the daemon has closed the connection, or the flood is being stopped. */
static bool send_all(struct flood *flood)
{
    char answer[4096];
    size_t sent = 0;
    while (sent < flood->len && !flood->stop) {
        ssize_t taken = send(flood->fd, flood->bytes + sent, flood->len - sent, MSG_NOSIGNAL);
        if (taken < 0 && errno != EAGAIN)
            return false;
        sent += taken > 0 ? (size_t)taken : 0;
        /* Drain the alerts of the daemon: unread alerts would slow the flood down. */
        while (recv(flood->fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
            continue;
    }
    return !flood->stop;
}

/* --- output --- */

static void put_sealed(struct flood *flood, unsigned char type, const char *content, size_t len)
{
    char record[SEAL_RECORD];
    put(flood, record, seal_record(flood->seal, type, content, len, record));
}

/* Fills the buffer with the next TLS 1.2 records. Each has its own sequence number, so records
 * cannot be sent twice. */
static void put_next(struct flood *flood)
{
    flood->len = 0;
    for (unsigned i = 0; i < CHUNK; i++) {
        if (flood->kind == FLOOD_CLIENT_HELLOS)
            put_sealed(flood, SEAL_HANDSHAKE, "\x01\0\0", 4);
        else if (i % EMPTY_IN_A_ROW == 0)
            put_sealed(flood, SEAL_DATA, "\n", 1);
        else
            put_sealed(flood, SEAL_DATA, "", 0);
    }
}

static void put_fragments(struct flood *flood)
{
    static const char header[] = {
        1, FRAGMENTS >> 16, (char)(FRAGMENTS >> 8 & 255), (char)(FRAGMENTS & 255), 3, 3};
    char record[] = "\x16\x03\x01\0\x01x";
    for (size_t i = 0; i < FRAGMENTS; i++) {
        record[5] = i < sizeof(header) ? header[i] : 'x';
        put(flood, record, 6);
    }
}

static void put_key_updates(struct flood *flood, SSL *ssl, unsigned count)
{
    BIO *written = BIO_new(BIO_s_mem());
    char *bytes;
    SSL_set0_wbio(ssl, written);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        ck_assert_int_eq(SSL_do_handshake(ssl), 1);
    }
    long len = BIO_get_mem_data(written, &bytes);
    put(flood, bytes, (size_t)len);
}

/* --- the thread --- */

static void *run(void *context)
{
    struct flood *flood = context;
    bool endless = flood->seal != NULL;
    do {
        if (endless)
            put_next(flood);
        if (!send_all(flood))
            break;
        flood->records += endless ? CHUNK : 0;
    } while (endless);
    flood->over = !flood->stop;
    return NULL;
}

static void prepare(struct flood *flood, const struct stage *stage)
{
    struct tls_client_plan plan = tls_no_certificate;
    bool old = flood->kind == FLOOD_CLIENT_HELLOS || flood->kind == FLOOD_EMPTY;
    plan.version = old ? TLS1_2_VERSION : TLS1_3_VERSION;
    tls_client_open(flood->client, &stage->sandbox, stage->daemon.port, &plan);
    if (flood->kind == FLOOD_FRAGMENTS) {
        put_fragments(flood);
        return;
    }
    SSL *ssl = flood->client->ssl;
    if (old)
        ck_assert_int_eq(SSL_set_cipher_list(ssl, SEAL_CIPHERS), 1);
    ck_assert_int_eq(SSL_do_handshake(ssl), 1);
    if (old)
        flood->seal = seal_new(ssl);
    else
        put_key_updates(flood, ssl, KEY_UPDATES);
}

static void begin(struct flood *flood, int fd)
{
    struct timeval timeout = {.tv_usec = SEND_MS * 1000};
    flood->fd = fd;
    /* With a small send buffer, the daemon has read nearly everything that send() has accepted. */
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){16384}, sizeof(int));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    ck_assert_int_eq(pthread_create(&flood->thread, NULL, run, flood), 0);
}

void flood_start(struct flood *flood, const struct stage *stage, enum flood_kind kind)
{
    memset(flood, 0, sizeof(*flood));
    flood->kind = kind;
    flood->client = malloc(sizeof(*flood->client));
    ck_assert_ptr_nonnull(flood->client);
    prepare(flood, stage);
    begin(flood, flood->client->fd);
}

void flood_start_over(struct flood *flood, SSL *ssl, int fd)
{
    memset(flood, 0, sizeof(*flood));
    flood->kind = FLOOD_KEY_UPDATES;
    put_key_updates(flood, ssl, KEY_UPDATES / 5);
    begin(flood, fd);
}

void flood_stop(struct flood *flood)
{
    flood->stop = true;
    ck_assert_int_eq(pthread_join(flood->thread, NULL), 0);
    if (flood->client != NULL)
        tls_client_reset(flood->client);
    free(flood->client);
    free(flood->bytes);
    seal_free(flood->seal);
}
