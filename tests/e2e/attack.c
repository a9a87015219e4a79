#include "tests/e2e/attack.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 16384 };

struct connection {
    int fd; /* -1: not connected */
    enum attack_kind kind;
    unsigned sends; /* on this connection */
    size_t at;      /* RESP pipelines: what comes next of the block */
};

struct attacker {
    struct attack_counts *counts;
    struct sockaddr_in to;
    struct connection *connections;
    unsigned count;
    unsigned pause_ms;
    uint64_t random;
    char block[BLOCK]; /* pipelined requests */
    char resp_block[BLOCK];
    size_t resp_len;  /* of the block of RESP commands */
    char half[BLOCK]; /* the longest command without its end */
    size_t half_len;
};

const char *attack_name(enum attack_kind kind)
{
    static const char *const names[] = {
#define X(name, word) word,
        ATTACK_TABLE(X)
#undef X
    };
    return names[kind];
}

static uint32_t draw(struct attacker *attacker)
{
    attacker->random = attacker->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(attacker->random >> 33);
}

static void open_connection(struct attacker *attacker, struct connection *connection)
{
    /* Each connection has a random source address: the ports of a single address would run out.
     * 127.0.0.1 is left to honest clients. */
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(0x7f010001 + draw(attacker) % 60000)};
    const int on = 1;
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection->fd < 0)
        return;
    setsockopt(connection->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    /* Both ends are on this machine: small buffers keep the attack from exhausting the kernel's TCP
     * memory. */
    setsockopt(connection->fd, SOL_SOCKET, SO_RCVBUF, &(int){16384}, sizeof(int));
    setsockopt(connection->fd, SOL_SOCKET, SO_SNDBUF, &(int){16384}, sizeof(int));
    bind(connection->fd, (const struct sockaddr *)&from, sizeof(from));
    connection->sends = 0;
    connection->at = 0;
    if (connect(connection->fd, (const struct sockaddr *)&attacker->to, sizeof(attacker->to)) !=
            0 &&
        errno != EINPROGRESS) {
        close(connection->fd);
        connection->fd = -1;
        return;
    }
    attacker->counts->opened++;
}

static void close_connection(struct attacker *attacker, struct connection *connection)
{
    close(connection->fd);
    connection->fd = -1;
    attacker->counts->closed++;
}

/* Returns the number of bytes sent. */
static size_t send_bytes(struct attacker *attacker, struct connection *connection,
                         const void *bytes, size_t len)
{
    ssize_t sent = send(connection->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
        connection->sends++;
        attacker->counts->actions[connection->kind]++;
    } else if (errno != EAGAIN && errno != ENOTCONN) {
        close_connection(attacker, connection);
    }
    return sent > 0 ? (size_t)sent : 0;
}

static void read_replies(struct attacker *attacker, struct connection *connection)
{
    char bytes[BLOCK];
    if (connection->fd < 0)
        return;
    ssize_t got = recv(connection->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN))
        close_connection(attacker, connection);
}

static void send_garbage(struct attacker *attacker, struct connection *connection)
{
    uint32_t bytes[128];
    for (unsigned i = 0; i < 128; i++)
        bytes[i] = draw(attacker);
    send_bytes(attacker, connection, bytes, sizeof(bytes));
}

static void send_wrong_secret(struct attacker *attacker, struct connection *connection)
{
    static const char *const forms[] = {
        "*2\r\n$4\r\nAUTH\r\n$24\r\n%s\r\n",
        "*3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$24\r\n%s\r\n",
        "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$2\r\nci\r\n$24\r\n%s\r\n",
    };
    const char *form =
        connection->kind == ATTACK_RESP_AUTH ? forms[draw(attacker) % 3] : "AUTH %s\n";
    static const char digits[] = "0123456789abcdef";
    char secret[] = "xxxxxxxxxxxxxxxxxxxxxxxx";
    char bytes[128];
    for (unsigned i = 0; i < sizeof(secret) - 1; i++)
        secret[i] = digits[draw(attacker) % 16];
    int len = snprintf(bytes, sizeof(bytes), form, secret);
    send_bytes(attacker, connection, bytes, (size_t)len);
}

/* --- RESP --- */

static void send_resp_garbage(struct attacker *attacker, struct connection *connection)
{
    char bytes[256] = "*1\r\n$";
    /* After one, four or six bytes that are right. */
    static const size_t right[] = {1, 4, 6};
    for (size_t i = right[draw(attacker) % 3]; i < sizeof(bytes); i++)
        bytes[i] = (char)draw(attacker);
    send_bytes(attacker, connection, bytes, sizeof(bytes));
}

static void send_lie(struct attacker *attacker, struct connection *connection)
{
    static const char *const lies[] = {
        "*1\r\n$3\r\nPING\r\n",
        "*1\r\n$400\r\nPING\r\n",
        "*2\r\n$4\r\nPING\r\n",
        "*1\r\n$9223372036854775807\r\nPING\r\n",
        "*2147483647\r\n$4\r\nPING\r\n",
        "*1\r\n$-2\r\nPING\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n$4\r\nPING\r\n",
    };
    const char *lie = lies[draw(attacker) % (sizeof(lies) / sizeof(lies[0]))];
    send_bytes(attacker, connection, lie, strlen(lie));
}

/* Continues where the last send has stopped: part of a command would be garbage. */
static void send_resp_block(struct attacker *attacker, struct connection *connection)
{
    connection->at += send_bytes(attacker, connection, attacker->resp_block + connection->at,
                                 attacker->resp_len - connection->at);
    connection->at %= attacker->resp_len;
}

static void send_half(struct attacker *attacker, struct connection *connection)
{
    if (connection->sends == 0)
        send_bytes(attacker, connection, attacker->half, attacker->half_len);
}

static void reset_connection(struct attacker *attacker, struct connection *connection)
{
    const struct linger now = {.l_onoff = 1};
    setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(connection->fd);
    connection->fd = -1;
    attacker->counts->actions[connection->kind]++;
}

static void do_action(struct attacker *attacker, struct connection *connection)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: locks\r\n\r\n";
    static const char tls[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    static const char slow[] = "LOCK slow:1 10s\n";
    if (connection->fd < 0) {
        open_connection(attacker, connection);
        return;
    }
    switch (connection->kind) {
    case ATTACK_IDLE:
        break;
    case ATTACK_BYTES:
        send_bytes(attacker, connection, &slow[connection->sends % (sizeof(slow) - 1)], 1);
        break;
    case ATTACK_UNREAD:
        send_bytes(attacker, connection, attacker->block, BLOCK);
        return; /* no read_replies: this kind never reads */
    case ATTACK_PIPELINE:
        send_bytes(attacker, connection, attacker->block, BLOCK);
        break;
    case ATTACK_GARBAGE:
        send_garbage(attacker, connection);
        break;
    case ATTACK_HTTP:
        send_bytes(attacker, connection, http, sizeof(http) - 1);
        break;
    case ATTACK_TLS:
        send_bytes(attacker, connection, tls, sizeof(tls) - 1);
        break;
    case ATTACK_LONG:
        send_bytes(attacker, connection,
                   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 64);
        break;
    case ATTACK_AUTH:
    case ATTACK_RESP_AUTH:
        send_wrong_secret(attacker, connection);
        break;
    case ATTACK_CHURN:
        reset_connection(attacker, connection);
        return;
    case ATTACK_RESP_HALF:
        send_half(attacker, connection);
        break;
    case ATTACK_RESP_GARBAGE:
        send_resp_garbage(attacker, connection);
        break;
    case ATTACK_RESP_LIES:
        send_lie(attacker, connection);
        break;
    case ATTACK_RESP_UNREAD:
        send_resp_block(attacker, connection);
        return; /* no read_replies: this kind never reads */
    case ATTACK_RESP_PIPELINE:
        send_resp_block(attacker, connection);
        break;
    case ATTACK_KINDS:
        break;
    }
    read_replies(attacker, connection);
}

/* Fills the block with requests that the daemon can answer without the masters, except that every
 * 500th line is a STATUS, which starts a round. */
static void fill_block(struct attacker *attacker)
{
    static const char *const lines[] = {"PING\n", "VERSION\n", "HELP\n", "LOCKS none\n"};
    size_t len = 0;
    memset(attacker->block, ' ', BLOCK);
    for (unsigned i = 0; len + 32 < BLOCK; i++) {
        const char *line = i % 500 == 499 ? "STATUS pipe:1\n" : lines[i % 4];
        memcpy(attacker->block + len, line, strlen(line));
        len += strlen(line);
    }
    attacker->block[BLOCK - 1] = '\n';
}

/* The same as RESP commands: whole ones, and one that lacks its last bytes. */
static void fill_resp_blocks(struct attacker *attacker)
{
    static const char *const commands[] = {
        "*1\r\n$4\r\nPING\r\n",
        "*1\r\n$7\r\nVERSION\r\n",
        "*1\r\n$4\r\nHELP\r\n",
        "*2\r\n$5\r\nLOCKS\r\n$4\r\nnone\r\n",
        "*2\r\n$4\r\nECHO\r\n$3\r\nyes\r\n",
    };
    static const char status[] = "*2\r\n$6\r\nSTATUS\r\n$6\r\npipe:1\r\n";
    for (unsigned i = 0; attacker->resp_len + 64 < BLOCK; i++) {
        const char *command = i % 500 == 499 ? status : commands[i % 5];
        memcpy(attacker->resp_block + attacker->resp_len, command, strlen(command));
        attacker->resp_len += strlen(command);
    }
    memset(attacker->half, 'x', BLOCK);
    memcpy(attacker->half, "*2\r\n$8000\r\n", 11);
    attacker->half_len = 8000;
}

static void run_attack(struct attacker *attacker)
{
    fill_block(attacker);
    fill_resp_blocks(attacker);
    for (;;) {
        for (unsigned i = 0; i < attacker->count; i++)
            do_action(attacker, &attacker->connections[i]);
        attacker->counts->passes++;
        usleep(1000 * attacker->pause_ms);
    }
}

static enum attack_kind kind_of(const struct attack_plan *plan, unsigned index)
{
    if (index < plan->idle)
        return ATTACK_IDLE;
    if (index < plan->idle + plan->halves)
        return ATTACK_RESP_HALF;
    return (enum attack_kind)(1 + (index - plan->idle - plan->halves) % (ATTACK_KINDS - 1));
}

unsigned attack_connections(const struct attack_plan *plan)
{
    return (ATTACK_KINDS - 1) * plan->each + plan->idle + plan->halves;
}

void attack_start(struct attack *attack, int port, const struct attack_plan *plan)
{
    attack->counts = mmap(NULL, sizeof(*attack->counts), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(attack->counts, MAP_FAILED);
    pid_t parent = getpid();
    attack->pid = fork();
    ck_assert_int_ge(attack->pid, 0);
    if (attack->pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    struct attacker attacker = {.counts = attack->counts,
                                .to = {.sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)port),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                                .count = attack_connections(plan),
                                .pause_ms = plan->pause_ms,
                                .random = 42};
    attacker.connections = calloc(attacker.count, sizeof(*attacker.connections));
    for (unsigned i = 0; attacker.connections != NULL && i < attacker.count; i++)
        attacker.connections[i] = (struct connection){.fd = -1, .kind = kind_of(plan, i)};
    if (attacker.connections != NULL)
        run_attack(&attacker);
    _exit(1);
}

void attack_stop(struct attack *attack)
{
    int status;
    ck_assert_int_eq(kill(attack->pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(attack->pid, &status, 0), attack->pid);
    ck_assert_msg(WIFSIGNALED(status), "the attacker exited with status %d", status);
    munmap(attack->counts, sizeof(*attack->counts));
}
