#include "tests/e2e/attack.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
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
};

struct attacker {
    struct attack_counts *counts;
    struct sockaddr_in to;
    struct connection *connections;
    unsigned count;
    unsigned pause_ms;
    uint64_t random;
    char block[BLOCK]; /* pipelined requests */
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

static void send_bytes(struct attacker *attacker, struct connection *connection, const void *bytes,
                       size_t len)
{
    ssize_t sent = send(connection->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
        connection->sends++;
        attacker->counts->actions[connection->kind]++;
    } else if (errno != EAGAIN && errno != ENOTCONN) {
        close_connection(attacker, connection);
    }
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
    static const char digits[] = "0123456789abcdef";
    char line[] = "AUTH xxxxxxxxxxxxxxxxxxxxxxxx\n";
    for (unsigned i = 5; i < sizeof(line) - 2; i++)
        line[i] = digits[draw(attacker) % 16];
    send_bytes(attacker, connection, line, sizeof(line) - 1);
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
        send_wrong_secret(attacker, connection);
        break;
    case ATTACK_CHURN:
        reset_connection(attacker, connection);
        return;
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

static void run_attack(struct attacker *attacker)
{
    fill_block(attacker);
    for (;;) {
        for (unsigned i = 0; i < attacker->count; i++)
            do_action(attacker, &attacker->connections[i]);
        attacker->counts->passes++;
        usleep(1000 * attacker->pause_ms);
    }
}

void attack_start(struct attack *attack, int port, const struct attack_plan *plan)
{
    unsigned idle = plan->idle;
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
                                .count = (ATTACK_KINDS - 1) * plan->each + idle,
                                .pause_ms = plan->pause_ms,
                                .random = 42};
    attacker.connections = calloc(attacker.count, sizeof(*attacker.connections));
    for (unsigned i = 0; attacker.connections != NULL && i < attacker.count; i++)
        attacker.connections[i] = (struct connection){
            .fd = -1,
            .kind =
                i < idle ? ATTACK_IDLE : (enum attack_kind)(1 + (i - idle) % (ATTACK_KINDS - 1)),
        };
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
