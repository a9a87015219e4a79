#include "tests/e2e/secure.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/e2e/waiting.h"

static void file_of(const struct sandbox *sandbox, const char *name, const char *ending, char *path)
{
    char file[64];
    snprintf(file, sizeof(file), "%s.%s", name, ending);
    sandbox_path(sandbox, file, path);
}

static int connect_to(int port, bool small_buffers)
{
    struct sockaddr_in where = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval timeout = {.tv_sec = WAITING_DEADLINE_MS / 1000};
    int on = 1;
    int window = 4096;
    int segment = 1000;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (small_buffers) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
        setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
    }
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&where, sizeof(where)), 0);
    return fd;
}

void tls_client_open(struct tls_client *secure, const struct sandbox *sandbox, int port,
                     const struct tls_client_plan *plan)
{
    char path[SANDBOX_FILE];
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    ck_assert_ptr_nonnull(context);
    if (plan->version != 0)
        ck_assert_int_eq(SSL_CTX_set_max_proto_version(context, plan->version), 1);
    if (plan->ca != NULL) {
        file_of(sandbox, plan->ca, "crt", path);
        ck_assert_int_eq(SSL_CTX_load_verify_locations(context, path, NULL), 1);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    }
    if (plan->own != NULL) {
        file_of(sandbox, plan->own, "crt", path);
        ck_assert_int_eq(SSL_CTX_use_certificate_chain_file(context, path), 1);
        file_of(sandbox, plan->own, "key", path);
        ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM), 1);
    }
    secure->context = context;
    secure->ssl = SSL_new(context);
    ck_assert_ptr_nonnull(secure->ssl);
    if (plan->host != NULL)
        ck_assert_int_eq(SSL_set1_host(secure->ssl, plan->host), 1);
    secure->fd = connect_to(port, plan->small_buffers);
    SSL_set_fd(secure->ssl, secure->fd);
    SSL_set_connect_state(secure->ssl);
}

static void end(struct tls_client *secure)
{
    SSL_free(secure->ssl);
    SSL_CTX_free(secure->context);
    close(secure->fd);
    secure->fd = -1;
    ERR_clear_error();
}

bool tls_client_try(struct tls_client *secure, const struct sandbox *sandbox, int port,
                    const struct tls_client_plan *plan)
{
    tls_client_open(secure, sandbox, port, plan);
    if (SSL_do_handshake(secure->ssl) == 1)
        return true;
    end(secure);
    return false;
}

void tls_client_connect(struct tls_client *secure, const struct sandbox *sandbox, int port,
                        const struct tls_client_plan *plan)
{
    ck_assert_msg(tls_client_try(secure, sandbox, port, plan), "the handshake failed");
}

void tls_client_send(struct tls_client *secure, const char *text)
{
    int len = (int)strlen(text);
    ck_assert_msg(SSL_write(secure->ssl, text, len) == len, "cannot send %.60s", text);
}

const char *tls_client_read(struct tls_client *secure)
{
    size_t len = 0;
    do {
        ck_assert_uint_lt(len, SECURE_LINE);
        ck_assert_msg(SSL_read(secure->ssl, secure->line + len, 1) == 1, "no line: %.*s", (int)len,
                      secure->line);
    } while (secure->line[len++] != '\n');
    secure->line[len - 1] = '\0';
    return secure->line;
}

const char *tls_client_ask(struct tls_client *secure, const char *text)
{
    tls_client_send(secure, text);
    tls_client_send(secure, "\n");
    return tls_client_read(secure);
}

bool tls_client_ends_well(struct tls_client *secure)
{
    char byte;
    ERR_clear_error();
    int got = SSL_read(secure->ssl, &byte, 1);
    ck_assert_msg(got <= 0, "the daemon sent %c instead of closing", byte);
    return SSL_get_error(secure->ssl, got) == SSL_ERROR_ZERO_RETURN;
}

void tls_client_half_close(struct tls_client *secure)
{
    ck_assert_int_ge(SSL_shutdown(secure->ssl), 0);
}

void tls_client_close(struct tls_client *secure)
{
    tls_client_half_close(secure);
    end(secure);
}

void tls_client_cut(struct tls_client *secure)
{
    /* Drain the input first: with unread data (such as session tickets) the kernel would send a
     * reset, not a FIN. */
    char byte;
    shutdown(secure->fd, SHUT_WR);
    while (recv(secure->fd, &byte, 1, 0) > 0)
        continue;
    end(secure);
}

void tls_client_reset(struct tls_client *secure)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(secure->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    end(secure);
}
