#include "tests/bench/limit.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/must.h"
#include "tests/bench/usage.h"

enum { QUORUM = LIMIT_MASTERS / 2 + 1, BUFFER = 1 << 18, COMMAND = 256, SHA1 = 40, PENDING = 4096 };

/* The paper's. */
static const char release_script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) "
    "else return 0 end";

/* Behind the votes of a pass, as protocol/warden.c writes it. */
static const char guard_commands[] = "*2\r\n$3\r\nGET\r\n$13\r\nredlockd:node\r\n"
                                     "*1\r\n$4\r\nTIME\r\n"
                                     "*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n";
enum { GUARD_COMMANDS = 3, GUARD_SLOT = LIMIT_SLOTS };

struct slot {
    char acquire[COMMAND]; /* as RESP; only the token in them changes */
    char release[COMMAND];
    size_t acquire_len;
    size_t release_len;
    size_t acquire_token; /* where it is */
    size_t release_token;
    bool releasing;
    unsigned round; /* answers to earlier ones, or after QUORUM, are stragglers */
    unsigned yes;
    int64_t since_ns;
};

/* What a master has still to answer, in order. */
struct pending {
    unsigned short slot; /* or GUARD_SLOT */
    unsigned round;
};

struct link {
    int fd;
    char input[BUFFER];
    size_t input_len;
    char output[BUFFER];
    size_t output_len;
    struct pending pending[PENDING];
    unsigned first;
    unsigned count;
};

struct limit {
    const struct limit_plan *plan;
    struct load_result *result;
    struct link links[LIMIT_MASTERS];
    struct slot slots[LIMIT_SLOTS];
    uint64_t tokens;
    bool votes;       /* are asked for in this pass */
    bool ending;      /* what is taken is given back, and no more taken */
    unsigned running; /* slots that have not ended */
};

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void send_to(struct link *link, const char *bytes, size_t len)
{
    must(link->output_len + len <= BUFFER, "what is to be written has room");
    memcpy(link->output + link->output_len, bytes, len);
    link->output_len += len;
}

static void expect(struct link *link, unsigned slot, unsigned round)
{
    must(link->count < PENDING, "what is to be answered has room");
    link->pending[(link->first + link->count++) % PENDING] =
        (struct pending){(unsigned short)slot, round};
}

static void put(struct limit *limit, unsigned index, int64_t now_ns)
{
    static const char digits[] = "0123456789abcdef";
    struct slot *slot = &limit->slots[index];
    const char *command = slot->releasing ? slot->release : slot->acquire;
    size_t len = slot->releasing ? slot->release_len : slot->acquire_len;
    if (!slot->releasing) {
        uint64_t token = ++limit->tokens;
        for (size_t i = 0; i < 16; i++, token >>= 4)
            slot->acquire[slot->acquire_token + i] = digits[token & 15];
        memcpy(slot->release + slot->release_token, slot->acquire + slot->acquire_token, 16);
    }
    slot->round++;
    slot->yes = 0;
    slot->since_ns = now_ns;
    limit->votes = limit->votes || !slot->releasing;
    for (unsigned i = 0; i < LIMIT_MASTERS; i++) {
        send_to(&limit->links[i], command, len);
        expect(&limit->links[i], index, slot->round);
    }
}

static void put_guard(struct limit *limit)
{
    for (unsigned i = 0; i < LIMIT_MASTERS; i++) {
        send_to(&limit->links[i], guard_commands, sizeof(guard_commands) - 1);
        for (unsigned command = 0; command < GUARD_COMMANDS; command++)
            expect(&limit->links[i], GUARD_SLOT, 0);
    }
}

static void on_answer(struct limit *limit, struct link *link, bool yes, int64_t now_ns)
{
    must(link->count > 0, "each answer was asked for");
    struct pending pending = link->pending[link->first];
    link->first = (link->first + 1) % PENDING;
    link->count--;
    if (pending.slot == GUARD_SLOT)
        return;
    must(yes, "nobody else uses these keys");
    struct slot *slot = &limit->slots[pending.slot];
    if (pending.round != slot->round)
        return;
    slot->yes++;
    if (slot->yes != QUORUM)
        return;
    bool taken = !slot->releasing;
    int64_t took_ns = now_ns - slot->since_ns;
    if (!limit->ending && taken) {
        spread_add(&limit->result->acquire, took_ns);
        if (took_ns > limit->result->longest_ns)
            limit->result->longest_ns = took_ns;
    }
    limit->result->pairs += !limit->ending && !taken;
    limit->result->all_pairs += !taken;
    slot->releasing = taken;
    if (taken || !limit->ending)
        put(limit, pending.slot, now_ns);
    else
        limit->running--;
}

/* How long the reply is; 0 if it is not all there. */
static size_t reply_len(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    if (newline == NULL)
        return 0;
    size_t len = (size_t)(newline + 1 - at);
    if (at[0] != '$' && at[0] != '*')
        return len;
    long size = strtol(at + 1, NULL, 10);
    if (at[0] == '$' && size >= 0)
        len += (size_t)size + 2;
    for (long i = 0; at[0] == '*' && i < size; i++) {
        size_t item = reply_len(at + len, end);
        if (item == 0)
            return 0;
        len += item;
    }
    return len <= (size_t)(end - at) ? len : 0;
}

/* "+OK", ":1", or anything else, which is no. */
static void read_in(struct limit *limit, struct link *link, int64_t now_ns)
{
    ssize_t len =
        recv(link->fd, link->input + link->input_len, BUFFER - link->input_len, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    must(len > 0, "a master keeps its connection");
    char *at = link->input;
    char *end = at + link->input_len + (size_t)len;
    size_t reply;
    while ((reply = reply_len(at, end)) > 0) {
        on_answer(limit, link, at[0] == '+' || (at[0] == ':' && at[1] == '1'), now_ns);
        at += reply;
    }
    link->input_len = (size_t)(end - at);
    memmove(link->input, at, link->input_len);
}

static void write_out(struct link *link)
{
    size_t sent = 0;
    while (sent < link->output_len) {
        ssize_t len = send(link->fd, link->output + sent, link->output_len - sent, MSG_NOSIGNAL);
        if (len < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        must(len > 0, "a master keeps its connection");
        sent += (size_t)len;
    }
    link->output_len = 0;
}

/* The end of a pass. */
static void write_all(struct limit *limit)
{
    if (limit->plan->guarded && limit->votes)
        put_guard(limit);
    limit->votes = false;
    for (unsigned i = 0; i < LIMIT_MASTERS; i++)
        write_out(&limit->links[i]);
}

/* A quorum of quick masters must not run away from a slow one: what one pass may add has room. */
static bool lags(const struct link *link)
{
    return link->count > PENDING - LIMIT_SLOTS - GUARD_COMMANDS;
}

static void pass(struct limit *limit)
{
    struct pollfd fds[LIMIT_MASTERS];
    bool any_lags = false;
    for (unsigned i = 0; i < LIMIT_MASTERS; i++)
        any_lags = any_lags || lags(&limit->links[i]);
    for (unsigned i = 0; i < LIMIT_MASTERS; i++) {
        bool wanted = !any_lags || lags(&limit->links[i]);
        fds[i] = (struct pollfd){.fd = limit->links[i].fd, .events = wanted ? POLLIN : 0};
    }
    poll(fds, LIMIT_MASTERS, 1000);
    int64_t now_ns = clock_ns();
    for (unsigned i = 0; i < LIMIT_MASTERS; i++)
        if (fds[i].revents != 0)
            read_in(limit, &limit->links[i], now_ns);
    write_all(limit);
}

/* Format one command once; the token is a dummy of 40 digits, whose place is remembered. */
static size_t format(char *to, size_t *token, unsigned count, const char *const *words)
{
    size_t len = (size_t)sprintf(to, "*%u\r\n", count);
    for (unsigned i = 0; i < count; i++) {
        len += (size_t)sprintf(to + len, "$%zu\r\n", strlen(words[i]));
        if (words[i][0] == 'T')
            *token = len;
        len += (size_t)sprintf(to + len, "%s\r\n", words[i]);
    }
    ck_assert_uint_lt(len, COMMAND);
    return len;
}

static void prepare_slot(struct slot *slot, unsigned index, const char *sha1)
{
    static const char token[] = "T000000000000000000000000000000000000000";
    char key[32];
    snprintf(key, sizeof(key), "limit-%u", index);
    const char *const set[] = {"SET", key, token, "NX", "PX", "2000"};
    const char *const evalsha[] = {"EVALSHA", sha1, "1", key, token};
    slot->acquire_len = format(slot->acquire, &slot->acquire_token, 6, set);
    slot->release_len = format(slot->release, &slot->release_token, 5, evalsha);
    slot->releasing = false;
}

static int connect_one(const struct master *master)
{
    const int on = 1;
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)master->port)};
    inet_pton(AF_INET, master->host, &where.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&where, sizeof(where)), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static bool is_under_way(const struct limit *limit)
{
    bool any = limit->running > 0;
    for (unsigned i = 0; i < LIMIT_MASTERS; i++)
        any = any || limit->links[i].count > 0;
    return any;
}

static void open_all(struct limit *limit)
{
    char sha1[SHA1 + 1];
    for (unsigned i = 0; i < LIMIT_MASTERS; i++) {
        struct master *master = &limit->plan->masters[i];
        snprintf(sha1, sizeof(sha1), "%s", master_text(master, "SCRIPT LOAD %s", release_script));
        limit->links[i].fd = connect_one(master);
    }
    limit->running = limit->plan->in_flight;
    for (unsigned i = 0; i < limit->running; i++)
        prepare_slot(&limit->slots[i], i, sha1);
}

void limit_run(const struct limit_plan *plan, struct load_result *result)
{
    struct limit *limit = calloc(1, sizeof(*limit));
    ck_assert_ptr_nonnull(limit);
    ck_assert_uint_le(plan->in_flight, LIMIT_SLOTS);
    memset(result, 0, sizeof(*result));
    limit->plan = plan;
    limit->result = result;
    open_all(limit);
    int64_t cpu_ns = usage_cpu_ns(getpid());
    int64_t started_ns = clock_ns();
    for (unsigned i = 0; i < plan->in_flight; i++)
        put(limit, i, started_ns);
    write_all(limit);
    while (is_under_way(limit)) {
        pass(limit);
        if (!limit->ending && clock_ns() >= started_ns + plan->for_ns) {
            limit->ending = true;
            result->seconds = (double)(clock_ns() - started_ns) / 1e9;
            result->client_ns = usage_cpu_ns(getpid()) - cpu_ns;
        }
    }
    for (unsigned i = 0; i < LIMIT_MASTERS; i++)
        close(limit->links[i].fd);
    free(limit);
}
