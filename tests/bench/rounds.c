#include "tests/bench/rounds.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/clock.h"
#include "tests/bench/must.h"
#include "tests/bench/wire.h"

enum {
    QUORUM = ROUNDS_MASTERS / 2 + 1,
    BUFFER = 1 << 18,
    COMMAND = 256,
    SHA1 = 40,
    PENDING = 4096
};

/* The release script of the paper. */
static const char release_script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) "
    "else return 0 end";

/* The release script for a batch. */
static const char releases_script[] =
    "local values, ours = redis.call('MGET', unpack(KEYS)), {} "
    "for i, key in ipairs(KEYS) do if values[i] == ARGV[i] then ours[#ours + 1] = key end end "
    "if #ours > 0 then redis.call('DEL', unpack(ours)) end "
    "return #ours == #KEYS and 1 or 0";
enum { MAX_BATCH = 64, TOKEN_WORD = sizeof("$40\r\n\r\n") - 1 + ROUNDS_TOKEN };

/* The guard's probe, written after the votes of a pass, as engine/master/guard_io.c does. */
static const char guard_commands[] = "*2\r\n$3\r\nGET\r\n$13\r\nredlockd:node\r\n"
                                     "*1\r\n$4\r\nTIME\r\n"
                                     "*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n";
enum { GUARD_COMMANDS = 3, GUARD_SLOT = ROUNDS_SLOTS };

struct slot {
    char acquire[COMMAND]; /* the command as RESP; only the token and NX change */
    char release[COMMAND];
    size_t acquire_len;
    size_t release_len;
    size_t acquire_nx;    /* offset of NX or XX */
    size_t acquire_token; /* offset of the token */
    size_t release_token;
    size_t key_len; /* length of the key as a word of RESP */
    enum rounds_kind kind;
    unsigned
        round; /* number of the round; replies to earlier rounds, or beyond QUORUM, are ignored */
    unsigned yes;
};

/* An outstanding reply of a master. Replies come in the order of the commands. */
struct pending {
    unsigned short slot; /* slot, or GUARD_SLOT */
    bool more;           /* the next entry is answered by the same reply */
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

struct rounds {
    struct rounds_plan plan;
    char release_sha1[SHA1 + 1];
    char releases_sha1[SHA1 + 1];
    struct link links[ROUNDS_MASTERS];
    struct slot slots[ROUNDS_SLOTS];
    uint64_t tokens;
    bool votes;                       /* this pass writes votes */
    unsigned releasing[ROUNDS_SLOTS]; /* slots to release at the end of this pass, if batched */
    unsigned releasing_count;
};

static void send_to(struct link *link, const char *bytes, size_t len)
{
    must(link->output_len + len <= BUFFER, "the output buffer has room");
    memcpy(link->output + link->output_len, bytes, len);
    link->output_len += len;
}

static void expect(struct link *link, unsigned slot, unsigned round, bool more)
{
    must(link->count < PENDING, "the ring of outstanding replies has room");
    link->pending[(link->first + link->count++) % PENDING] =
        (struct pending){.slot = (unsigned short)slot, .more = more, .round = round};
}

static void renew_token(struct rounds *rounds, struct slot *slot)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t token = ++rounds->tokens;
    for (size_t i = 0; i < 16; i++, token >>= 4)
        slot->acquire[slot->acquire_token + i] = digits[token & 15];
    memcpy(slot->release + slot->release_token, slot->acquire + slot->acquire_token, 16);
}

void rounds_put(struct rounds *rounds, unsigned index, enum rounds_kind kind)
{
    struct slot *slot = &rounds->slots[index];
    const char *command = kind == RELEASE ? slot->release : slot->acquire;
    size_t len = kind == RELEASE ? slot->release_len : slot->acquire_len;
    must(len > 0, "a slot has a name");
    slot->kind = kind;
    slot->round++;
    slot->yes = 0;
    if (kind != RELEASE) {
        renew_token(rounds, slot);
        slot->acquire[slot->acquire_nx] = kind == SWAP ? 'X' : 'N';
        rounds->votes = true;
    }
    if (rounds->plan.batched && kind == RELEASE) {
        rounds->releasing[rounds->releasing_count++] = index;
        return;
    }
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++) {
        send_to(&rounds->links[i], command, len);
        expect(&rounds->links[i], index, slot->round, false);
    }
}

static void append(char *text, size_t *len, const char *bytes, size_t count)
{
    memcpy(text + *len, bytes, count);
    *len += count;
}

/* Format a batch of releases: EVALSHA, the script, the number of keys, all keys, all tokens. */
static size_t format_releases(const struct rounds *rounds, const unsigned *slots, unsigned count,
                              char *text)
{
    size_t len =
        (size_t)sprintf(text, "*%u\r\n$7\r\nEVALSHA\r\n$%d\r\n%s\r\n$%d\r\n%u\r\n", 3 + 2 * count,
                        SHA1, rounds->releases_sha1, count > 9 ? 2 : 1, count);
    for (unsigned i = 0; i < count; i++) {
        const struct slot *slot = &rounds->slots[slots[i]];
        append(text, &len, slot->release + slot->release_len - TOKEN_WORD - slot->key_len,
               slot->key_len);
    }
    for (unsigned i = 0; i < count; i++) {
        const struct slot *slot = &rounds->slots[slots[i]];
        append(text, &len, slot->release + slot->release_len - TOKEN_WORD, TOKEN_WORD);
    }
    return len;
}

static void put_releases(struct rounds *rounds, const unsigned *slots, unsigned count)
{
    static char text[COMMAND * MAX_BATCH];
    const struct slot *first = &rounds->slots[slots[0]];
    bool alone = count == 1;
    size_t len = alone ? first->release_len : format_releases(rounds, slots, count, text);
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++) {
        send_to(&rounds->links[i], alone ? first->release : text, len);
        for (unsigned j = 0; j < count; j++)
            expect(&rounds->links[i], slots[j], rounds->slots[slots[j]].round, j + 1 < count);
    }
}

static void put_batched(struct rounds *rounds)
{
    unsigned count = rounds->releasing_count;
    for (unsigned i = 0; i < count; i += MAX_BATCH)
        put_releases(rounds, rounds->releasing + i, count - i < MAX_BATCH ? count - i : MAX_BATCH);
    rounds->releasing_count = 0;
}

const char *rounds_token(const struct rounds *rounds, unsigned index)
{
    const struct slot *slot = &rounds->slots[index];
    return slot->acquire + slot->acquire_token;
}

static void put_guard(struct rounds *rounds)
{
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++) {
        send_to(&rounds->links[i], guard_commands, sizeof(guard_commands) - 1);
        for (unsigned command = 0; command < GUARD_COMMANDS; command++)
            expect(&rounds->links[i], GUARD_SLOT, 0, false);
    }
}

static struct pending take_pending(struct link *link)
{
    must(link->count > 0, "each reply belongs to a command");
    struct pending pending = link->pending[link->first];
    link->first = (link->first + 1) % PENDING;
    link->count--;
    return pending;
}

static void on_answer(struct rounds *rounds, struct link *link, bool yes, int64_t now_ns)
{
    struct pending pending;
    do {
        pending = take_pending(link);
        if (pending.slot == GUARD_SLOT)
            return;
        must(yes, "no other client uses these keys");
        struct slot *slot = &rounds->slots[pending.slot];
        if (pending.round == slot->round && ++slot->yes == QUORUM)
            rounds->plan.done(rounds->plan.arg, pending.slot, slot->kind, now_ns);
    } while (pending.more);
}

/* The length of the reply that begins at `at`; 0 if it is incomplete. */
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

/* The replies "+OK" and ":1" mean yes; all others mean no. */
void rounds_read(struct rounds *rounds, unsigned master, int64_t now_ns)
{
    struct link *link = &rounds->links[master];
    ssize_t len =
        recv(link->fd, link->input + link->input_len, BUFFER - link->input_len, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    must(len > 0, "a master keeps its connection");
    char *at = link->input;
    char *end = at + link->input_len + (size_t)len;
    size_t reply;
    while ((reply = reply_len(at, end)) > 0) {
        on_answer(rounds, link, at[0] == '+' || (at[0] == ':' && at[1] == '1'), now_ns);
        at += reply;
    }
    link->input_len = (size_t)(end - at);
    memmove(link->input, at, link->input_len);
}

static void write_all(struct rounds *rounds)
{
    put_batched(rounds);
    if (rounds->plan.guarded && rounds->votes)
        put_guard(rounds);
    rounds->votes = false;
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++) {
        struct link *link = &rounds->links[i];
        wire_send(link->fd, link->output, link->output_len);
        link->output_len = 0;
    }
}

/* Has the master so many outstanding replies that another pass might not have room? */
static bool is_behind(const struct link *link)
{
    return link->count > PENDING - ROUNDS_SLOTS - GUARD_COMMANDS;
}

void rounds_flush(struct rounds *rounds)
{
    write_all(rounds);
    /* The replies of one master can start new rounds, by which another master may fall behind. So
     * the loop begins again after each read. */
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++)
        for (; is_behind(&rounds->links[i]); i = 0) {
            poll(&(struct pollfd){.fd = rounds->links[i].fd, .events = POLLIN}, 1, 1000);
            rounds_read(rounds, i, clock_ns());
            write_all(rounds);
        }
}

static const char dummy[ROUNDS_TOKEN + 1] = "0000000000000000000000000000000000000000";

/* Format a command once, and remember the offset of its dummy token. */
static size_t format(char *to, size_t *token, unsigned count, const char *const *words)
{
    size_t len = (size_t)sprintf(to, "*%u\r\n", count);
    for (unsigned i = 0; i < count; i++) {
        len += (size_t)sprintf(to + len, "$%zu\r\n", strlen(words[i]));
        if (words[i] == dummy)
            *token = len;
        len += (size_t)sprintf(to + len, "%s\r\n", words[i]);
    }
    must(len < COMMAND, "a command has room");
    return len;
}

void rounds_name(struct rounds *rounds, unsigned index, const char *key)
{
    struct slot *slot = &rounds->slots[index];
    const char *const set[] = {"SET", key, dummy, "PX", "2000", "NX"};
    const char *const evalsha[] = {"EVALSHA", rounds->release_sha1, "1", key, dummy};
    slot->acquire_len = format(slot->acquire, &slot->acquire_token, 6, set);
    slot->acquire_nx = slot->acquire_len - sizeof("NX\r\n") + 1;
    slot->release_len = format(slot->release, &slot->release_token, 5, evalsha);
    slot->key_len = (size_t)snprintf(NULL, 0, "$%zu\r\n%s\r\n", strlen(key), key);
}

static void load_script(struct master *master, const char *script, char sha1[SHA1 + 1])
{
    snprintf(sha1, SHA1 + 1, "%s", master_text(master, "SCRIPT LOAD %s", script));
}

struct rounds *rounds_open(const struct rounds_plan *plan)
{
    struct rounds *rounds = calloc(1, sizeof(*rounds));
    ck_assert_ptr_nonnull(rounds);
    rounds->plan = *plan;
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++) {
        struct master *master = &plan->masters[i];
        load_script(master, release_script, rounds->release_sha1);
        load_script(master, releases_script, rounds->releases_sha1);
        rounds->links[i].fd = wire_connect(master->host, master->port);
    }
    return rounds;
}

void rounds_close(struct rounds *rounds)
{
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++)
        close(rounds->links[i].fd);
    free(rounds);
}

int rounds_fd(const struct rounds *rounds, unsigned master)
{
    return rounds->links[master].fd;
}

bool rounds_pending(const struct rounds *rounds)
{
    for (unsigned i = 0; i < ROUNDS_MASTERS; i++)
        if (rounds->links[i].count > 0)
            return true;
    return false;
}
