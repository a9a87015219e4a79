#include "tests/unit/world.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct request_limits limits = {
    .ttl_min_ms = 20,
    .ttl_max_ms = 60000,
    .hold_ttl_min_ms = 200,
    .key_prefix = "",
};

/* --- keys --- */

static int64_t clock_of(const struct world *world, unsigned node)
{
    return world->now_ns + world->masters[node].clock_ns;
}

static struct world_key *find_key(struct world *world, unsigned node, const char *key)
{
    struct world_master *master = &world->masters[node];
    for (unsigned i = 0; i < WORLD_KEYS; i++) {
        struct world_key *slot = &master->keys[i];
        if (slot->expires_ns <= clock_of(world, node))
            slot->key[0] = '\0';
        if (strcmp(slot->key, key) == 0)
            return slot;
    }
    return NULL;
}

void world_set(struct world *world, unsigned node, const char *key, const char *value,
               int64_t ttl_ms)
{
    struct world_key *slot = find_key(world, node, key);
    if (slot == NULL)
        slot = find_key(world, node, "");
    ck_assert_ptr_nonnull(slot);
    snprintf(slot->key, sizeof(slot->key), "%s", key);
    snprintf(slot->value, sizeof(slot->value), "%s", value);
    slot->expires_ns = ttl_ms != 0 ? clock_of(world, node) + ttl_ms * NS_PER_MS : INT64_MAX;
}

void world_delete(struct world *world, unsigned node, const char *key)
{
    struct world_key *slot = find_key(world, node, key);
    if (slot != NULL)
        slot->key[0] = '\0';
}

const char *world_value(struct world *world, unsigned node, const char *key)
{
    struct world_key *slot = find_key(world, node, key);
    return slot != NULL ? slot->value : NULL;
}

unsigned world_count(struct world *world, const char *key)
{
    unsigned count = 0;
    for (unsigned i = 0; i < world->node_count; i++)
        count += world_value(world, i, key) != NULL;
    return count;
}

/* --- a master --- */

static void reply(struct world *world, unsigned node, struct world_inbox *inbox,
                  struct redis_reply answer)
{
    const struct world_master *master = &world->masters[node];
    enum channel channel = inbox == &master->tracker ? CHANNEL_TRACKING : CHANNEL_COMMANDS;
    if (!inbox->open || master->mute)
        return;
    if (world->diverted & UINT32_C(1) << node)
        world->divert(world, node, channel, &answer);
    else
        engine_on_reply(&world->engine, node, channel, &answer, world->now_ns);
}

static struct redis_reply integer(int64_t number)
{
    return (struct redis_reply){.kind = RESP_INTEGER, .integer = number};
}

static struct redis_reply text(enum resp_kind kind, const char *words)
{
    return (struct redis_reply){.kind = kind, .str = words, .len = strlen(words)};
}

static struct redis_reply holder(struct world *world, unsigned node, const struct world_key *key)
{
    struct redis_reply answer = {.kind = RESP_ARRAY, .item_count = 2};
    answer.items[0].kind = RESP_INTEGER;
    answer.items[0].integer = (key->expires_ns - clock_of(world, node)) / NS_PER_MS;
    answer.items[1].kind = RESP_STRING;
    answer.items[1].str = key->value;
    answer.items[1].len = strlen(key->value);
    return answer;
}

/* What mark.lua does. */
static struct redis_reply run_mark(struct world *world, unsigned node, char **words)
{
    static char record[LIMIT_RECORD];
    const char *current = world_value(world, node, words[3]);
    if (strcmp(current != NULL ? current : "", words[4]) != 0)
        return text(RESP_STRING, current != NULL ? current : "");
    int64_t join_us = clock_of(world, node) / 1000 + atoll(words[6]);
    if (join_us < atoll(words[8]))
        join_us = atoll(words[8]);
    struct record earlier;
    if (current != NULL && record_parse(current, strlen(current), &earlier) &&
        strcmp(earlier.run_id, words[7]) == 0 && earlier.join_us >= join_us)
        join_us = earlier.join_us + (atoll(words[6]) != 0);
    snprintf(record, sizeof(record), "%s%" PRId64, words[5], join_us);
    world_set(world, node, words[3], record, 0);
    return text(RESP_STRING, record);
}

/* What beat.lua does. */
static struct redis_reply run_beat(struct world *world, unsigned node, char **words)
{
    static char answer[512];
    unsigned keys = (unsigned)atoi(words[2]);
    char **arguments = words + 3 + keys;
    const char *value = world_value(world, node, words[3]);
    char entry[128];
    char vouch[32];
    size_t len = 0;
    snprintf(entry, sizeof(entry), "%.127s", value != NULL ? value : "-");
    value = world_value(world, node, words[4]);
    snprintf(vouch, sizeof(vouch), "%.31s", value != NULL ? value : "-");
    int64_t now_us = clock_of(world, node) / 1000;
    if (atoll(vouch) > now_us)
        snprintf(vouch, sizeof(vouch), "-");
    if (arguments[0][0] != '\0')
        world_set(world, node, words[3], arguments[0], atoll(arguments[1]));
    if (arguments[2][0] != '\0' && atoll(arguments[2]) <= now_us)
        world_set(world, node, words[4], arguments[2], atoll(arguments[3]));
    int64_t lease_ns = atoll(arguments[4]) * NS_PER_MS;
    int64_t fresh_ns = atoll(arguments[5]) * NS_PER_MS;
    for (unsigned i = 2; i < keys; i++) {
        const char *server = arguments[4 + i];
        struct world_key *seen = find_key(world, node, words[3 + i]);
        int64_t left_ns = seen != NULL ? seen->expires_ns - clock_of(world, node) : 0;
        bool other = seen != NULL && strcmp(seen->value, server) != 0 &&
                     (strncmp(seen->value, server, 40) != 0 || lease_ns - left_ns <= fresh_ns);
        answer[len++] = other ? '1' : '0';
        if (!other)
            world_set(world, node, words[3 + i], server, lease_ns / NS_PER_MS);
        else if (left_ns > lease_ns)
            seen->expires_ns = clock_of(world, node) + lease_ns;
    }
    snprintf(answer + len, sizeof(answer) - len, " %s %s", vouch, entry);
    return text(RESP_STRING, answer);
}

/* What fence.lua does. */
static struct redis_reply run_fence(struct world *world, unsigned node, char **words)
{
    world->masters[node].commands++;
    if (find_key(world, node, words[3]) != NULL)
        return (struct redis_reply){.kind = RESP_NIL};
    const char *seen = world_value(world, node, words[4]);
    if (seen != NULL && atoll(seen) >= atoll(words[7]))
        return text(RESP_STRING, seen);
    world_set(world, node, words[3], words[5], atoll(words[6]));
    world_set(world, node, words[4], words[7], atoll(words[8]));
    return integer(-3);
}

/* --- tracking --- */

/* The key is told about once, when it is not as it is now any more. */
static void track(struct world *world, unsigned node, const char *key)
{
    struct world_master *master = &world->masters[node];
    const struct world_key *now = find_key(world, node, key);
    struct world_tracked *slot = NULL;
    for (unsigned i = 0; i < WORLD_KEYS; i++)
        if (strcmp(master->tracked[i].key, key) == 0 ||
            (slot == NULL && master->tracked[i].key[0] == '\0'))
            slot = &master->tracked[i];
    ck_assert_ptr_nonnull(slot);
    snprintf(slot->key, sizeof(slot->key), "%s", key);
    snprintf(slot->value, sizeof(slot->value), "%s", now != NULL ? now->value : "");
    slot->expires_ns = now != NULL ? now->expires_ns : 0;
}

static bool has_changed(struct world *world, unsigned node, const struct world_tracked *tracked)
{
    const struct world_key *now = find_key(world, node, tracked->key);
    if (now == NULL)
        return tracked->value[0] != '\0';
    return strcmp(now->value, tracked->value) != 0 || now->expires_ns != tracked->expires_ns;
}

/* Tell of what has changed, whoever did it. */
static bool tell(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    bool told = false;
    for (unsigned i = 0; i < WORLD_KEYS && !master->hung && !master->dead; i++) {
        struct world_tracked *tracked = &master->tracked[i];
        struct redis_reply message = {.kind = RESP_ARRAY, .item_count = 3, .nested_count = 1};
        char key[64];
        if (tracked->key[0] == '\0' || !has_changed(world, node, tracked))
            continue;
        snprintf(key, sizeof(key), "%s", tracked->key);
        tracked->key[0] = '\0';
        message.items[0].kind = message.items[1].kind = RESP_STRING;
        message.items[0].str = "message";
        message.items[0].len = 7;
        message.items[2].kind = RESP_ARRAY;
        message.nested_str = key;
        message.nested_len = strlen(key);
        if (master->redirect == master->tracker.client_id)
            reply(world, node, &master->tracker, message);
        told = true;
    }
    return told;
}

static const char *waits_key(const char *key)
{
    static char name[128];
    snprintf(name, sizeof(name), "redlockd:waits:%s", key);
    return name;
}

/* What swap.lua does. */
static struct redis_reply run_swap(struct world *world, unsigned node, char **words)
{
    bool fenced = atoi(words[2]) == 2;
    char **arguments = words + (fenced ? 5 : 4);
    struct world_key *key = find_key(world, node, words[3]);
    const char *waits = world_value(world, node, waits_key(words[3]));
    bool wanted = waits != NULL && strcmp(waits, arguments[3]) != 0;
    world->masters[node].commands++;
    if (key != NULL && strcmp(key->value, arguments[0]) != 0)
        return holder(world, node, key);
    const char *seen = fenced ? world_value(world, node, words[4]) : NULL;
    if (seen != NULL && atoll(seen) >= atoll(arguments[4])) {
        struct redis_reply answer = {.kind = RESP_ARRAY, .item_count = 2};
        answer.items[0].kind = RESP_INTEGER;
        answer.items[0].integer = key != NULL ? -3 : -2;
        answer.items[1].kind = RESP_STRING;
        answer.items[1].str = seen;
        answer.items[1].len = strlen(seen);
        world_delete(world, node, words[3]);
        return answer;
    }
    world_set(world, node, words[3], arguments[1], atoll(arguments[2]));
    if (fenced)
        world_set(world, node, words[4], arguments[4], atoll(arguments[5]));
    return integer((key != NULL ? -3 : -4) - 2 * wanted);
}

/* What releases.lua does. */
static struct redis_reply run_releases(struct world *world, unsigned node, char **words)
{
    static char letters[LIMIT_TOGETHER + 1];
    unsigned count = (unsigned)atoi(words[2]);
    unsigned deleted = 0;
    ck_assert_uint_le(count, LIMIT_TOGETHER);
    world->masters[node].together++;
    if (world->masters[node].together_error[0] != '\0')
        return text(RESP_ERROR, world->masters[node].together_error);
    world->masters[node].commands += count;
    /* All are looked at before any is deleted. */
    for (unsigned i = 0; i < count; i++) {
        struct world_key *key = find_key(world, node, words[3 + i]);
        bool ours = key != NULL && strcmp(key->value, words[3 + count + i]) == 0;
        letters[i] = ours ? 'd' : key == NULL ? 'a' : 'o';
        deleted += ours;
    }
    letters[count] = '\0';
    for (unsigned i = 0; i < count; i++)
        if (letters[i] == 'd')
            world_delete(world, node, words[3 + i]);
    return deleted == count ? integer(-3) : text(RESP_STRING, letters);
}

/* DELIFEQ <key> <token>, DELEX <key> IFEQ <token>. */
static struct redis_reply run_native(struct world *world, unsigned node, char **words)
{
    struct world_master *master = &world->masters[node];
    bool delex = strcmp(words[0], "DELEX") == 0;
    ck_assert_ptr_nonnull(master->version);
    ck_assert_int_eq(redis_release_form(master->version, strlen(master->version)),
                     delex ? REDIS_DELEX : REDIS_DELIFEQ);
    master->native++;
    if (master->native_error[0] != '\0')
        return text(RESP_ERROR, master->native_error);
    const char *value = world_value(world, node, words[1]);
    if (value == NULL || strcmp(value, words[delex ? 3 : 2]) != 0)
        return integer(0);
    world_delete(world, node, words[1]);
    return integer(1);
}

/* The word that status.lua and release.lua leave, if they are told of whom. */
static void leave_word(struct world *world, unsigned node, const struct world_key *key,
                       const char *max_ttl_ms, const char *daemon)
{
    const char *name = waits_key(key->key);
    struct world_key *before = find_key(world, node, name);
    int64_t left_ms = (key->expires_ns - clock_of(world, node)) / NS_PER_MS;
    if (daemon == NULL)
        return;
    left_ms = left_ms < atoll(max_ttl_ms) ? left_ms : atoll(max_ttl_ms);
    if (before == NULL || strcmp(before->value, daemon) != 0 ||
        before->expires_ns - clock_of(world, node) < left_ms * NS_PER_MS)
        world_set(world, node, name, daemon, left_ms + 1000);
}

/* What our Lua scripts do, in C. */
static struct redis_reply run_script(struct world *world, unsigned node, unsigned script,
                                     char **words)
{
    if (script == REDIS_SCRIPT_MARK) {
        struct world_master *master = &world->masters[node];
        master->marks++;
        return master->mark_error[0] != '\0' ? text(RESP_ERROR, master->mark_error)
                                             : run_mark(world, node, words);
    }
    if (script == REDIS_SCRIPT_BEAT)
        return run_beat(world, node, words);
    if (script == REDIS_SCRIPT_FENCE)
        return run_fence(world, node, words);
    if (script == REDIS_SCRIPT_SWAP)
        return run_swap(world, node, words);
    if (script == REDIS_SCRIPT_RELEASES)
        return run_releases(world, node, words);
    if (script == REDIS_SCRIPT_RELEASE && strcmp(words[3], world->masters[node].refused_key) == 0)
        return text(RESP_ERROR, "NOPERM No permissions to access a key");
    struct world_key *key = find_key(world, node, words[3]);
    world->masters[node].commands++;
    world->masters[node].status_runs += script == REDIS_SCRIPT_STATUS;
    if (key == NULL)
        return integer(-2);
    bool granted_there = script == REDIS_SCRIPT_STATUS && words[4] != NULL && words[6] != NULL &&
                         strcmp(key->value, words[6]) == 0;
    if (script == REDIS_SCRIPT_STATUS && !granted_there)
        leave_word(world, node, key, words[4], words[4] != NULL ? words[5] : NULL);
    bool other = script == REDIS_SCRIPT_STATUS || strcmp(key->value, words[4]) != 0;
    if (other && script == REDIS_SCRIPT_RELEASE && strlen(key->value) == LIMIT_TOKEN) {
        int64_t latest_ns = clock_of(world, node) + atoll(words[5]) * NS_PER_MS;
        if (key->expires_ns > latest_ns)
            key->expires_ns = latest_ns;
    }
    if (other && script == REDIS_SCRIPT_RELEASE)
        leave_word(world, node, key, words[5], words[6]);
    if (other)
        return holder(world, node, key);
    if (script == REDIS_SCRIPT_RELEASE) {
        key->key[0] = '\0';
    } else {
        int64_t expires_ns = clock_of(world, node) + atoll(words[5]) * NS_PER_MS;
        if (key->expires_ns < expires_ns)
            key->expires_ns = expires_ns;
    }
    return integer(-3);
}

static struct redis_reply run_eval(struct world *world, unsigned node, char **words)
{
    struct world_master *master = &world->masters[node];
    bool in_full = strcmp(words[0], "EVAL") == 0;
    for (unsigned i = 0; i < REDIS_SCRIPT_COUNT; i++) {
        if (strcmp(words[1], in_full ? redis_script_text(i) : redis_script_sha1(i)) != 0)
            continue;
        bool flushed =
            master->scripts_flushed || (master->fence_flushed && i == REDIS_SCRIPT_FENCE);
        if (!in_full && flushed)
            return text(RESP_ERROR, "NOSCRIPT No matching script");
        return run_script(world, node, i, words);
    }
    ck_abort_msg("an unknown script: %s", words[1]);
    return integer(0);
}

static struct redis_reply run_set(struct world *world, unsigned node, char **words)
{
    world->masters[node].commands++;
    if (find_key(world, node, words[1]) != NULL)
        return (struct redis_reply){.kind = RESP_NIL};
    world_set(world, node, words[1], words[2], atoll(words[5]));
    return text(RESP_STATUS, "OK");
}

static struct redis_reply run_client(struct world *world, unsigned node, struct world_inbox *inbox,
                                     char **words)
{
    struct world_master *master = &world->masters[node];
    if (strcmp(words[1], "ID") == 0)
        return integer(inbox->client_id);
    if (strcmp(words[1], "TRACKING") == 0) {
        if (master->untracked)
            return text(RESP_ERROR, "ERR Unknown subcommand or wrong number of arguments");
        master->redirect = atoll(words[4]);
        return text(RESP_STATUS, "OK");
    }
    if (strcmp(words[1], "CACHING") == 0) {
        master->caching = true;
        return text(RESP_STATUS, "OK");
    }
    if (strcmp(words[1], "KILL") == 0) {
        bool there = master->zombie.client_id == atoll(words[3]) && master->zombie.len > 0;
        if (there)
            master->zombie.len = 0;
        return integer(there);
    }
    return text(RESP_STATUS, "OK");
}

static struct redis_reply run_info(struct world_master *master, const char *section)
{
    static char info[256];
    if (strcmp(section, "server") == 0)
        snprintf(info, sizeof(info), "# Server\r\n%s\r\n%s:%s\r\nrun_id:%s\r\n",
                 master->version != NULL ? master->version : "redis_version:7.0.15",
                 master->version != NULL && strstr(master->version, "valkey") != NULL
                     ? "server_mode"
                     : "redis_mode",
                 master->clustered ? "cluster" : "standalone", master->run_id);
    else if (strcmp(section, "replication") == 0)
        snprintf(info, sizeof(info),
                 "# Replication\r\nrole:%s\r\nconnected_slaves:%d\r\nmaster_replid:%s\r\n",
                 master->replica ? "slave" : "master", master->replicas, master->replid);
    else if (strcmp(section, "memory") == 0)
        snprintf(info, sizeof(info), "maxmemory:%d\r\nmaxmemory_policy:%s\r\n",
                 master->may_evict ? 1000000 : 0, master->may_evict ? "allkeys-lru" : "noeviction");
    else
        snprintf(info, sizeof(info), "evicted_keys:%" PRId64 "\r\n", master->evicted);
    return text(RESP_STRING, info);
}

static struct redis_reply run_config(struct world_master *master, const char *name)
{
    static char setting[32];
    struct redis_reply answer = {.kind = RESP_ARRAY, .item_count = 2};
    const char *value = strcmp(name, "appendonly") == 0    ? "yes"
                        : strcmp(name, "appendfsync") == 0 ? master->fsync
                                                           : "no";
    snprintf(setting, sizeof(setting), "%s", name);
    const char *both[] = {setting, value};
    for (unsigned i = 0; i < 2; i++) {
        answer.items[i].kind = RESP_STRING;
        answer.items[i].str = both[i];
        answer.items[i].len = strlen(both[i]);
    }
    return answer;
}

static struct redis_reply run_time(const struct world *world, unsigned node)
{
    static char seconds[24];
    static char micros[24];
    struct redis_reply answer = {.kind = RESP_ARRAY, .item_count = 2};
    int64_t time_us = clock_of(world, node) / 1000;
    snprintf(seconds, sizeof(seconds), "%" PRId64, time_us / 1000000);
    snprintf(micros, sizeof(micros), "%" PRId64, time_us % 1000000);
    const char *both[] = {seconds, micros};
    for (unsigned i = 0; i < 2; i++) {
        answer.items[i].kind = RESP_STRING;
        answer.items[i].str = both[i];
        answer.items[i].len = strlen(both[i]);
    }
    return answer;
}

static struct redis_reply run(struct world *world, unsigned node, struct world_inbox *inbox,
                              char **words)
{
    struct world_master *master = &world->masters[node];
    if (master->busy && strcmp(words[0], "CLIENT") != 0)
        return text(RESP_ERROR, "BUSY Redis is busy running a script");
    if (strcmp(words[0], "CLIENT") == 0)
        return run_client(world, node, inbox, words);
    if (strcmp(words[0], "INFO") == 0)
        return run_info(master, words[1]);
    if (strcmp(words[0], "SCRIPT") == 0) {
        for (unsigned i = 0; i < REDIS_SCRIPT_COUNT; i++)
            if (strcmp(words[2], redis_script_text(i)) == 0)
                return text(RESP_STRING, redis_script_sha1(i));
    }
    if (strcmp(words[0], "CONFIG") == 0)
        return run_config(master, words[2]);
    if (strcmp(words[0], "PING") == 0)
        return text(RESP_STATUS, "PONG");
    if (strcmp(words[0], "TIME") == 0)
        return run_time(world, node);
    if (strcmp(words[0], "GET") == 0) {
        const char *value = world_value(world, node, words[1]);
        return value != NULL ? text(RESP_STRING, value) : (struct redis_reply){.kind = RESP_NIL};
    }
    bool of_guard = strncmp(words[0], "EVAL", 4) == 0 && strncmp(words[3], "redlockd:", 9) == 0;
    if (master->error[0] != '\0' && !of_guard)
        return text(RESP_ERROR, master->error);
    if (strcmp(words[0], "SET") == 0)
        return run_set(world, node, words);
    if (strcmp(words[0], "DELIFEQ") == 0 || strcmp(words[0], "DELEX") == 0)
        return run_native(world, node, words);
    bool caching = master->caching && inbox == &master->current;
    master->caching = false;
    struct redis_reply answer = run_eval(world, node, words);
    if (caching && answer.kind != RESP_ERROR)
        track(world, node, words[3]);
    return answer;
}

/* Take one command, "*2\r\n$3\r\nGET...", off the inbox; words end in a NUL each. */
static unsigned take_command(struct world_inbox *inbox, char *buf, char **words)
{
    char *begin = inbox->bytes + inbox->start;
    char *at = begin;
    if (inbox->len == 0)
        return 0;
    ck_assert_int_eq(*at, '*');
    unsigned count = (unsigned)strtoul(at + 1, &at, 10);
    at += 2;
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(*at, '$');
        size_t len = strtoul(at + 1, &at, 10);
        at += 2;
        memcpy(buf, at, len);
        buf[len] = '\0';
        words[i] = buf;
        buf += len + 1;
        at += len + 2;
    }
    inbox->start += (size_t)(at - begin);
    inbox->len -= (size_t)(at - begin);
    return count;
}

/* Has the next command arrived? */
static bool has_arrived(const struct world *world, struct world_inbox *inbox)
{
    uint64_t taken = inbox->written - inbox->len;
    while (inbox->arrival_count > 0 && inbox->arrivals[inbox->first_arrival].end <= taken) {
        inbox->first_arrival = (inbox->first_arrival + 1) % WORLD_ARRIVALS;
        inbox->arrival_count--;
    }
    return inbox->arrival_count == 0 ||
           inbox->arrivals[inbox->first_arrival].at_ns <= world->now_ns;
}

static void note_arrival(struct world_inbox *inbox, size_t len, int64_t at_ns)
{
    unsigned last = (inbox->first_arrival + inbox->arrival_count) % WORLD_ARRIVALS;
    ck_assert_uint_lt(inbox->arrival_count, WORLD_ARRIVALS);
    inbox->written += len;
    inbox->arrivals[last].end = inbox->written;
    inbox->arrivals[last].at_ns = at_ns;
    inbox->arrival_count++;
}

static struct redis_reply run_subscriber(struct world_inbox *inbox, char **words)
{
    if (strcmp(words[0], "CLIENT") == 0)
        return strcmp(words[1], "ID") == 0 ? integer(inbox->client_id) : text(RESP_STATUS, "OK");
    bool ping = strcmp(words[0], "PING") == 0;
    struct redis_reply answer = {.kind = RESP_ARRAY, .item_count = ping ? 2 : 3};
    answer.items[0].kind = RESP_STRING;
    answer.items[0].str = ping ? "pong" : "subscribe";
    answer.items[0].len = strlen(answer.items[0].str);
    return answer;
}

static bool serve(struct world *world, unsigned node, struct world_inbox *inbox)
{
    char buf[REDIS_RELEASES_MAX];
    char *words[4 + 2 * LIMIT_TOGETHER] = {NULL}; /* one of them ends them */
    if (world->masters[node].hung || world->masters[node].dead)
        return false;
    if (!has_arrived(world, inbox) || take_command(inbox, buf, words) == 0)
        return false;
    reply(world, node, inbox,
          inbox == &world->masters[node].tracker ? run_subscriber(inbox, words)
                                                 : run(world, node, inbox, words));
    return true;
}

/* --- what the engine asks for --- */

static void close_tracker(struct world_master *master)
{
    master->tracker_connecting = false;
    master->tracker.open = false;
    master->tracker.len = 0;
    memset(master->tracked, 0, sizeof(master->tracked));
}

static void io_open(void *context, unsigned node, enum channel channel)
{
    struct world *world = context;
    if (channel == CHANNEL_TRACKING)
        world->masters[node].tracker_connecting = true;
    else
        world->masters[node].connecting = true;
}

static void io_close(void *context, unsigned node, enum channel channel)
{
    struct world *world = context;
    struct world_master *master = &world->masters[node];
    if (channel == CHANNEL_TRACKING) {
        close_tracker(master);
        return;
    }
    master->connecting = false;
    master->current.open = false;
    master->redirect = 0;
    memset(master->tracked, 0, sizeof(master->tracked));
    /* A master that hangs does not see the reset before it goes on. */
    if (master->current.len > 0 && master->hung)
        master->zombie = master->current;
    master->current.len = 0;
}

static void io_write(void *context, unsigned node, enum channel channel, const char *bytes,
                     size_t len)
{
    struct world *world = context;
    struct world_inbox *inbox =
        channel == CHANNEL_TRACKING ? &world->masters[node].tracker : &world->masters[node].current;
    ck_assert(inbox->open);
    if (inbox->len == 0)
        inbox->start = 0;
    if (inbox->start + inbox->len + len > sizeof(inbox->bytes)) {
        memmove(inbox->bytes, inbox->bytes + inbox->start, inbox->len);
        inbox->start = 0;
    }
    ck_assert_uint_le(inbox->start + inbox->len + len, sizeof(inbox->bytes));
    memcpy(inbox->bytes + inbox->start + inbox->len, bytes, len);
    inbox->len += len;
    note_arrival(inbox, len, world->now_ns + world->masters[node].delay_ns);
}

static void io_reply(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                     const struct reply *answer)
{
    struct world *world = context;
    char line[LIMIT_REPLY];
    size_t len = reply_format(answer, tag, tag_len, line);
    ck_assert(!client->gone);
    client->gone = world->deaf;
    if (world->deaf)
        return;
    ck_assert_uint_lt(world->reply_count, WORLD_REPLIES);
    snprintf(world->replies[world->reply_count++], sizeof(world->replies[0]), "%.*s",
             (int)(len - 1), line);
}

static void io_undone(void *context, struct engine_client *client, const char *tag, size_t tag_len)
{
    struct world *world = context;
    (void)client;
    snprintf(world->replies[world->reply_count++], sizeof(world->replies[0]), "undone %.*s",
             (int)tag_len, tag != NULL ? tag : "");
}

static void io_push(void *context, struct engine_client *client, const struct push *push)
{
    struct world *world = context;
    char line[LIMIT_REPLY];
    size_t len = reply_format_push(push, line);
    ck_assert(!client->gone);
    ck_assert_uint_lt(world->reply_count, WORLD_REPLIES);
    snprintf(world->replies[world->reply_count++], sizeof(world->replies[0]), "%.*s",
             (int)(len - 1), line);
}

/* As if it was a push: "broken <resource> of <client>". */
static void io_breaking(void *context, const struct engine_client *by,
                        const struct engine_broken *broken)
{
    struct world *world = context;
    ck_assert_uint_ne(by->id, 0);
    ck_assert_uint_lt(world->reply_count, WORLD_REPLIES);
    snprintf(world->replies[world->reply_count++], sizeof(world->replies[0]), "broken %.*s of %d",
             (int)broken->resource_len, broken->resource, (int)broken->owner_id);
}

static void io_link_changed(void *context, unsigned node, enum link_state before)
{
    struct world *world = context;
    ck_assert_int_ne(world->engine.links[node].state, before);
    world->link_changes++;
}

static void io_vote_changed(void *context, unsigned node, enum reason before, enum reason reason,
                            int64_t now_ns)
{
    const struct world *world = context;
    ck_assert_int_ne(before, reason);
    ck_assert_int_eq(engine_refuses_vote(&world->engine, node, now_ns), reason);
}

static void io_command_refused(void *context, unsigned node, enum reason reason, bool release)
{
    struct world *world = context;
    (void)node;
    (void)reason;
    world->refused_commands++;
    world->refused_releases += release;
}

static void io_tried(void *context, unsigned node, const char *what, enum reason refused)
{
    struct world *world = context;
    (void)node;
    ck_assert_ptr_nonnull(what);
    ck_assert_uint_lt(world->trials, ENGINE_TRIALS);
    world->trial_refused[world->trials++] = refused;
}

static void io_releases_refused(void *context, unsigned node, enum redis_form form)
{
    struct world *world = context;
    const struct world_master *master = &world->masters[node];
    bool native = form != REDIS_BY_SHA1;
    ck_assert_str_ne(native ? master->native_error : master->together_error, "");
    world->refusals += !native;
    world->native_refusals += native;
}

static int64_t io_wall_us(void *context)
{
    const struct world *world = context;
    return (world->now_ns + world->wall_ns) / 1000;
}

static void io_entropy(void *context, void *bytes, size_t len)
{
    struct world *world = context;
    for (size_t i = 0; i < len; i++) {
        world->random = world->random * 6364136223846793005 + 1442695040888963407;
        ((unsigned char *)bytes)[i] = (unsigned char)(world->random >> 56);
    }
}

/* --- the world --- */

static void clear_inbox(struct world_inbox *inbox)
{
    inbox->start = inbox->len = 0;
    inbox->open = false;
    inbox->written = 0;
    inbox->first_arrival = inbox->arrival_count = 0;
}

static void connect_node(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    master->connecting = false;
    if (master->dead) {
        engine_on_closed(&world->engine, node, CHANNEL_COMMANDS, REASON_REFUSED, world->now_ns);
        return;
    }
    master->current.len = 0;
    master->current.open = true;
    master->current.client_id = ++master->next_client_id;
    engine_on_connected(&world->engine, node, CHANNEL_COMMANDS, world->now_ns);
}

static void connect_tracker(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    master->tracker_connecting = false;
    if (master->dead) {
        engine_on_closed(&world->engine, node, CHANNEL_TRACKING, REASON_REFUSED, world->now_ns);
        return;
    }
    clear_inbox(&master->tracker);
    master->tracker.open = true;
    master->tracker.client_id = 1000000 + ++master->tracker_ids;
    engine_on_connected(&world->engine, node, CHANNEL_TRACKING, world->now_ns);
}

void world_settle(struct world *world)
{
    bool busy = true;
    while (busy) {
        busy = false;
        for (unsigned i = 0; i < world->node_count; i++) {
            struct world_master *master = &world->masters[i];
            if (master->connecting) {
                connect_node(world, i);
                busy = true;
            }
            if (master->tracker_connecting) {
                connect_tracker(world, i);
                busy = true;
            }
            busy = serve(world, i, &master->current) || busy;
            busy = serve(world, i, &master->tracker) || busy;
            busy = tell(world, i) || busy;
        }
        if (engine_wants_flush(&world->engine) && !(world->lazy && busy)) {
            engine_flush(&world->engine, world->now_ns);
            busy = true;
        }
    }
    for (unsigned i = 0; i < world->node_count && !world->zombies_wait; i++)
        while (serve(world, i, &world->masters[i].zombie))
            continue;
}

/* The engine's next deadline, or the next arrival. */
static int64_t next_event_ns(const struct world *world)
{
    int64_t next_ns = engine_deadline_ns(&world->engine);
    for (unsigned i = 0; i < world->node_count; i++) {
        const struct world_master *master = &world->masters[i];
        const struct world_inbox *inbox = &master->current;
        if (master->hung || master->dead || inbox->len == 0 || inbox->arrival_count == 0)
            continue;
        int64_t at_ns = inbox->arrivals[inbox->first_arrival].at_ns;
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    return next_ns;
}

void world_pass_ms(struct world *world, int64_t ms)
{
    int64_t until_ns = world->now_ns + ms * NS_PER_MS;
    world_settle(world);
    for (;;) {
        int64_t next_ns = next_event_ns(world);
        if (next_ns > until_ns)
            break;
        world->now_ns = next_ns > world->now_ns ? next_ns : world->now_ns;
        engine_on_timer(&world->engine, world->now_ns);
        world_settle(world);
    }
    world->now_ns = until_ns;
}

static void start_engine(struct world *world, const char *clock_id, bool bootstrap)
{
    struct engine_rules rules = {
        .round = {.node_count = world->node_count,
                  .quorum = world->node_count / 2 + 1,
                  .node_timeout_ns = 50 * NS_PER_MS,
                  .min_validity_ns = NS_PER_MS,
                  .drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS}},
        .key_prefix = "",
        .cluster = "world",
        .max_ttl_ns = 60 * NS_PER_S,
        .fence_ttl_ns = 3600 * NS_PER_S,
        .max_hold_ns = 300 * NS_PER_S,
        .max_extensions = 5,
        .backoff_min_ns = 5 * NS_PER_MS,
        .backoff_max_ns = 250 * NS_PER_MS,
        .waiters = 10000,
        .waiters_per_resource = 1000,
        .bootstrap = bootstrap,
        .durable = world->durable,
        .looks_on = world->looks_on,
        .clock_id = clock_id,
    };
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    const struct engine_io io = {
        .context = world,
        .open = io_open,
        .close = io_close,
        .write = io_write,
        .reply = io_reply,
        .undone = io_undone,
        .push = io_push,
        .breaking = io_breaking,
        .link_changed = io_link_changed,
        .vote_changed = io_vote_changed,
        .command_refused = io_command_refused,
        .releases_refused = io_releases_refused,
        .tried = io_tried,
        .wall_us = io_wall_us,
        .entropy = io_entropy,
    };
    memcpy(rules.node_names, names, sizeof(names));
    ck_assert(engine_init(&world->engine, &rules, &io, world->now_ns));
    engine_client_init(&world->client, 1);
    for (unsigned i = 0; i < WORLD_CLIENTS; i++)
        engine_client_init(&world->others[i], 2 + i);
    world_pass_ms(world, 1);
}

/* All but the bytes of the inboxes, of which there are many. */
static void clear(struct world *world)
{
    memset(&world->engine, 0, sizeof(world->engine));
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        struct world_master *master = &world->masters[i];
        memset(master, 0, offsetof(struct world_master, connecting));
        memset((char *)master + offsetof(struct world_master, connecting), 0,
               offsetof(struct world_master, tracker) - offsetof(struct world_master, connecting));
        clear_inbox(&master->tracker);
        clear_inbox(&master->current);
        clear_inbox(&master->zombie);
    }
    size_t rest = offsetof(struct world, node_count);
    memset((char *)world + rest, 0, sizeof(*world) - rest);
}

static void init_masters(struct world *world, unsigned node_count)
{
    clear(world);
    world->node_count = node_count;
    world->now_ns = 1000 * NS_PER_S;
    world->random = 1;
    world->wall_ns = 1000000000 * NS_PER_S;
    for (unsigned i = 0; i < node_count; i++) {
        snprintf(world->masters[i].run_id, sizeof(world->masters[i].run_id), "%040u", i);
        snprintf(world->masters[i].replid, sizeof(world->masters[i].replid), "%040u", 10 + i);
        world->masters[i].clock_ns = 1000000000 * NS_PER_S;
    }
}

void world_share(struct world *world, const struct world *other)
{
    world->now_ns = other->now_ns;
    for (unsigned i = 0; i < world->node_count; i++)
        memcpy(&world->masters[i], &other->masters[i], offsetof(struct world_master, connecting));
}

void world_join(struct world *world, const struct world *other, const char *clock_id)
{
    init_masters(world, other->node_count);
    world->random = other->random + 1;
    world_share(world, other);
    start_engine(world, clock_id, false);
}

void world_init(struct world *world, unsigned node_count)
{
    init_masters(world, node_count);
    start_engine(world, "here", true);
    for (unsigned i = 0; i < node_count; i++)
        ck_assert_str_eq(world_vote(world, i), "-");
}

void world_init_unknown(struct world *world, unsigned node_count)
{
    init_masters(world, node_count);
    start_engine(world, "here", false);
}

void world_restart_engine(struct world *world, const char *clock_id)
{
    engine_deinit(&world->engine);
    for (unsigned i = 0; i < world->node_count; i++) {
        world->masters[i].current.open = false;
        world->masters[i].current.len = 0;
        world->masters[i].connecting = false;
        world->masters[i].redirect = 0;
        close_tracker(&world->masters[i]);
    }
    start_engine(world, clock_id, false);
}

const char *world_vote(const struct world *world, unsigned node)
{
    return reason_word(engine_refuses_vote(&world->engine, node, world->now_ns));
}

void world_deinit(struct world *world)
{
    engine_deinit(&world->engine);
}

static void send_list(struct world *world, struct engine_client *client, const char *form,
                      va_list arguments)
{
    char line[LIMIT_LINE];
    struct request request;
    struct error error;
    int len = vsnprintf(line, sizeof(line), form, arguments);
    ck_assert_int_lt(len, LIMIT_LINE);
    ck_assert_int_eq(request_parse(line, (size_t)len, &limits, &request, &error), REQUEST_FINE);
    engine_submit(&world->engine, client, &request, world->now_ns);
}

void world_send_as(struct world *world, struct engine_client *client, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    send_list(world, client, form, arguments);
    va_end(arguments);
}

void world_send(struct world *world, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    send_list(world, &world->client, form, arguments);
    va_end(arguments);
}

void world_say(struct world *world, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    send_list(world, &world->client, form, arguments);
    va_end(arguments);
    world_settle(world);
}

const char *world_ask(struct world *world, const char *form, ...)
{
    unsigned before = world->reply_count;
    va_list arguments;
    va_start(arguments, form);
    send_list(world, &world->client, form, arguments);
    va_end(arguments);
    world_settle(world);
    if (world->reply_count == before)
        world_pass_ms(world, 50);
    ck_assert_uint_eq(world->reply_count, before + 1);
    return world->replies[before];
}

const char *world_next_reply(struct world *world)
{
    return world->replies_read < world->reply_count ? world->replies[world->replies_read++] : NULL;
}

const char *world_heard(struct world *world)
{
    const char *reply = world_next_reply(world);
    return reply != NULL ? reply : "(nothing)";
}

void world_expect(struct world *world, const char *form, ...)
{
    char reply[LIMIT_REPLY];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(reply, sizeof(reply), form, arguments);
    va_end(arguments);
    ck_assert_str_eq(world_heard(world), reply);
}

void world_hang(struct world *world, unsigned count, bool hung)
{
    for (unsigned i = 0; i < count; i++)
        world->masters[i].hung = hung;
}

void world_end_client(struct world *world, struct engine_client *client)
{
    engine_client_half_closed(&world->engine, client, world->now_ns);
    world_lose_client(world, client);
}

void world_lose_client(struct world *world, struct engine_client *client)
{
    client->gone = true;
    engine_client_gone(&world->engine, client, world->now_ns);
    engine_client_init(client, client->id);
}

const char *world_token(const char *line)
{
    static char token[LIMIT_TOKEN + 1];
    ck_assert_msg(strncmp(line, "OK ", 3) == 0, "not granted: %s", line);
    memcpy(token, line + 3, LIMIT_TOKEN);
    return token;
}

void world_cut(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    master->zombie = master->current;
    master->zombie.open = false;
    master->current.open = false;
    master->current.len = 0;
    master->redirect = 0;
    memset(master->tracked, 0, sizeof(master->tracked));
    engine_on_closed(&world->engine, node, CHANNEL_COMMANDS, REASON_DISCONNECTED, world->now_ns);
}

void world_cut_tracker(struct world *world, unsigned node)
{
    if (!world->masters[node].tracker.open)
        return;
    close_tracker(&world->masters[node]);
    engine_on_closed(&world->engine, node, CHANNEL_TRACKING, REASON_DISCONNECTED, world->now_ns);
}

void world_kill(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    master->dead = true;
    master->hung = false;
    master->zombie.len = 0;
    master->current.len = 0;
    memset(master->keys, 0, sizeof(master->keys));
    world_cut_tracker(world, node);
    if (master->current.open) {
        master->current.open = false;
        master->redirect = 0;
        engine_on_closed(&world->engine, node, CHANNEL_COMMANDS, REASON_DISCONNECTED,
                         world->now_ns);
    }
}

void world_restart(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    master->dead = false;
    master->next_client_id = 0;
    master->run_id[0]++;
    master->replid[0]++;
}

void world_flush(struct world *world, unsigned node)
{
    memset(world->masters[node].keys, 0, sizeof(world->masters[node].keys));
}
