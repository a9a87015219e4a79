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

struct foe {
    int fd; /* -1: to be opened */
    enum attack_kind kind;
    unsigned said; /* since it was opened */
};

struct army {
    struct attack_counts *counts;
    struct sockaddr_in to;
    struct foe *foes;
    unsigned count;
    unsigned pause_ms;
    uint64_t random;
    char block[BLOCK]; /* of lines */
};

const char *attack_word(enum attack_kind kind)
{
    static const char *const words[] = {
#define X(name, word) word,
        ATTACK_TABLE(X)
#undef X
    };
    return words[kind];
}

static uint32_t draw(struct army *army)
{
    army->random = army->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(army->random >> 33);
}

static void open_foe(struct army *army, struct foe *foe)
{
    /* From many addresses, so that ports do not run out; 127.0.0.1 is that of honest clients. */
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(0x7f010001 + draw(army) % 60000)};
    const int on = 1;
    foe->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (foe->fd < 0)
        return;
    setsockopt(foe->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    /* Ours are on the same machine, and must not eat up what its kernel has for TCP. */
    setsockopt(foe->fd, SOL_SOCKET, SO_RCVBUF, &(int){16384}, sizeof(int));
    setsockopt(foe->fd, SOL_SOCKET, SO_SNDBUF, &(int){16384}, sizeof(int));
    bind(foe->fd, (const struct sockaddr *)&from, sizeof(from));
    foe->said = 0;
    if (connect(foe->fd, (const struct sockaddr *)&army->to, sizeof(army->to)) != 0 &&
        errno != EINPROGRESS) {
        close(foe->fd);
        foe->fd = -1;
        return;
    }
    army->counts->opened++;
}

static void close_foe(struct army *army, struct foe *foe)
{
    close(foe->fd);
    foe->fd = -1;
    army->counts->closed++;
}

static void say(struct army *army, struct foe *foe, const void *bytes, size_t len)
{
    ssize_t sent = send(foe->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
        foe->said++;
        army->counts->acts[foe->kind]++;
    } else if (errno != EAGAIN && errno != ENOTCONN) {
        close_foe(army, foe);
    }
}

static void hear(struct army *army, struct foe *foe)
{
    char bytes[BLOCK];
    if (foe->fd < 0)
        return;
    ssize_t got = recv(foe->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN))
        close_foe(army, foe);
}

static void say_garbage(struct army *army, struct foe *foe)
{
    uint32_t bytes[128];
    for (unsigned i = 0; i < 128; i++)
        bytes[i] = draw(army);
    say(army, foe, bytes, sizeof(bytes));
}

static void say_secret(struct army *army, struct foe *foe)
{
    static const char digits[] = "0123456789abcdef";
    char line[] = "AUTH xxxxxxxxxxxxxxxxxxxxxxxx\n";
    for (unsigned i = 5; i < sizeof(line) - 2; i++)
        line[i] = digits[draw(army) % 16];
    say(army, foe, line, sizeof(line) - 1);
}

static void reset_foe(struct army *army, struct foe *foe)
{
    const struct linger now = {.l_onoff = 1};
    setsockopt(foe->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(foe->fd);
    foe->fd = -1;
    army->counts->acts[foe->kind]++;
}

static void act(struct army *army, struct foe *foe)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: locks\r\n\r\n";
    static const char tls[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    static const char slow[] = "LOCK slow:1 10s\n";
    if (foe->fd < 0) {
        open_foe(army, foe);
        return;
    }
    switch (foe->kind) {
    case ATTACK_IDLE:
        break;
    case ATTACK_BYTES:
        say(army, foe, &slow[foe->said % (sizeof(slow) - 1)], 1);
        break;
    case ATTACK_UNREAD:
        say(army, foe, army->block, BLOCK);
        return; /* it does not read */
    case ATTACK_PIPELINE:
        say(army, foe, army->block, BLOCK);
        break;
    case ATTACK_GARBAGE:
        say_garbage(army, foe);
        break;
    case ATTACK_HTTP:
        say(army, foe, http, sizeof(http) - 1);
        break;
    case ATTACK_TLS:
        say(army, foe, tls, sizeof(tls) - 1);
        break;
    case ATTACK_LONG:
        say(army, foe, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 64);
        break;
    case ATTACK_AUTH:
        say_secret(army, foe);
        break;
    case ATTACK_CHURN:
        reset_foe(army, foe);
        return;
    case ATTACK_KINDS:
        break;
    }
    hear(army, foe);
}

/* Mostly what costs the daemon alone, and now and then a round. */
static void fill_block(struct army *army)
{
    static const char *const lines[] = {"PING\n", "VERSION\n", "HELP\n", "LOCKS none\n"};
    size_t len = 0;
    memset(army->block, ' ', BLOCK);
    for (unsigned i = 0; len + 32 < BLOCK; i++) {
        const char *line = i % 500 == 499 ? "STATUS pipe:1\n" : lines[i % 4];
        memcpy(army->block + len, line, strlen(line));
        len += strlen(line);
    }
    army->block[BLOCK - 1] = '\n';
}

static void fight(struct army *army)
{
    fill_block(army);
    for (;;) {
        for (unsigned i = 0; i < army->count; i++)
            act(army, &army->foes[i]);
        army->counts->passes++;
        usleep(1000 * army->pause_ms);
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
    struct army army = {.counts = attack->counts,
                        .to = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                        .count = (ATTACK_KINDS - 1) * plan->each + idle,
                        .pause_ms = plan->pause_ms,
                        .random = 42};
    army.foes = calloc(army.count, sizeof(*army.foes));
    for (unsigned i = 0; army.foes != NULL && i < army.count; i++)
        army.foes[i] = (struct foe){
            .fd = -1,
            .kind =
                i < idle ? ATTACK_IDLE : (enum attack_kind)(1 + (i - idle) % (ATTACK_KINDS - 1)),
        };
    if (army.foes != NULL)
        fight(&army);
    _exit(1);
}

void attack_stop(struct attack *attack)
{
    int status;
    ck_assert_int_eq(kill(attack->pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(attack->pid, &status, 0), attack->pid);
    ck_assert_msg(WIFSIGNALED(status), "the attack has ended by itself: status %d", status);
    munmap(attack->counts, sizeof(*attack->counts));
}
