#include "tests/unit/world_master.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/unit/world_answer.h"
#include "tests/unit/world_scripts.h"
#include "tests/unit/world_tracking.h"

/* --- what it keeps --- */

int64_t world_clock_ns(const struct world *world, unsigned node)
{
    return world->now_ns + world->masters[node].clock_ns;
}

struct world_key *world_find_key(struct world *world, unsigned node, const char *key)
{
    struct world_master *master = &world->masters[node];
    for (unsigned i = 0; i < WORLD_KEYS; i++) {
        struct world_key *slot = &master->keys[i];
        if (slot->expires_ns <= world_clock_ns(world, node))
            slot->key[0] = '\0';
        if (strcmp(slot->key, key) == 0)
            return slot;
    }
    return NULL;
}

void world_set(struct world *world, unsigned node, const char *key, const char *value,
               int64_t ttl_ms)
{
    struct world_key *slot = world_find_key(world, node, key);
    if (slot == NULL)
        slot = world_find_key(world, node, "");
    ck_assert_ptr_nonnull(slot);
    snprintf(slot->key, sizeof(slot->key), "%s", key);
    snprintf(slot->value, sizeof(slot->value), "%s", value);
    slot->expires_ns = ttl_ms != 0 ? world_clock_ns(world, node) + ttl_ms * NS_PER_MS : INT64_MAX;
}

void world_delete(struct world *world, unsigned node, const char *key)
{
    struct world_key *slot = world_find_key(world, node, key);
    if (slot != NULL)
        slot->key[0] = '\0';
}

const char *world_value(struct world *world, unsigned node, const char *key)
{
    struct world_key *slot = world_find_key(world, node, key);
    return slot != NULL ? slot->value : NULL;
}

unsigned world_count(struct world *world, const char *key)
{
    unsigned count = 0;
    for (unsigned i = 0; i < world->node_count; i++)
        count += world_value(world, i, key) != NULL;
    return count;
}

void world_occupy(struct world *world, const char *resource, int64_t ttl_ms)
{
    for (unsigned i = 0; i < world->node_count; i++)
        world_set(world, i, resource, "foreign", ttl_ms);
}

void world_vacate(struct world *world, const char *resource)
{
    for (unsigned i = 0; i < world->node_count; i++)
        world_delete(world, i, resource);
    world_settle(world);
}

unsigned world_commands(const struct world *world)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < world->node_count; i++)
        sum += world->masters[i].commands;
    return sum;
}

/* --- what it answers --- */

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
        return world_text(RESP_ERROR, master->native_error);
    const char *value = world_value(world, node, words[1]);
    if (value == NULL || strcmp(value, words[delex ? 3 : 2]) != 0)
        return world_number(0);
    world_delete(world, node, words[1]);
    return world_number(1);
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
            return world_text(RESP_ERROR, "NOSCRIPT No matching script");
        return world_run_script(world, node, i, words);
    }
    ck_abort_msg("an unknown script: %s", words[1]);
    return world_number(0);
}

static struct redis_reply run_set(struct world *world, unsigned node, char **words)
{
    bool there = world_find_key(world, node, words[1]) != NULL;
    /* The guard's, of a key that is never there. */
    bool only_there = strcmp(words[3], "XX") == 0;
    ck_assert(!there || !only_there);
    world->masters[node].commands += !only_there;
    if (world->masters[node].full[0] != '\0')
        return world_text(RESP_ERROR, world->masters[node].full);
    if (there || only_there)
        return world_nil();
    world_set(world, node, words[1], words[2], atoll(words[5]));
    return world_text(RESP_STATUS, "OK");
}

static struct redis_reply run_client(struct world *world, unsigned node, struct world_inbox *inbox,
                                     char **words)
{
    struct world_master *master = &world->masters[node];
    if (strcmp(words[1], "ID") == 0)
        return world_number(inbox->client_id);
    if (strcmp(words[1], "TRACKING") == 0) {
        if (master->untracked)
            return world_text(RESP_ERROR, "ERR Unknown subcommand or wrong number of arguments");
        master->redirect = atoll(words[4]);
        return world_text(RESP_STATUS, "OK");
    }
    if (strcmp(words[1], "CACHING") == 0) {
        master->caching = true;
        return world_text(RESP_STATUS, "OK");
    }
    if (strcmp(words[1], "KILL") == 0) {
        bool there = master->zombie.client_id == atoll(words[3]) && master->zombie.len > 0;
        if (there)
            master->zombie.len = 0;
        return world_number(there);
    }
    return world_text(RESP_STATUS, "OK");
}

static struct redis_reply run_info(const struct world *world, const struct world_master *master,
                                   const char *section)
{
    static char info[320];
    if (strcmp(section, "server") == 0)
        snprintf(info, sizeof(info),
                 "# Server\r\n%s\r\n%s:%s\r\nrun_id:%s\r\nuptime_in_seconds:%lld\r\n",
                 master->version != NULL ? master->version : "redis_version:7.0.15",
                 master->version != NULL && strstr(master->version, "valkey") != NULL
                     ? "server_mode"
                     : "redis_mode",
                 master->clustered ? "cluster" : "standalone", master->run_id,
                 (world->now_ns - master->begun_ns) / NS_PER_S);
    else if (strcmp(section, "replication") == 0)
        snprintf(info, sizeof(info),
                 "# Replication\r\nrole:%s\r\nconnected_slaves:%d\r\nmaster_replid:%s\r\n"
                 "master_replid2:%040d\r\n",
                 master->replica ? "slave" : "master", master->replicas, master->replid,
                 master->was_replica);
    else if (strcmp(section, "memory") == 0)
        snprintf(info, sizeof(info), "maxmemory:%d\r\nmaxmemory_policy:%s\r\n",
                 master->may_evict ? 1000000 : 0, master->may_evict ? "allkeys-lru" : "noeviction");
    else
        snprintf(info, sizeof(info), "evicted_keys:%" PRId64 "\r\n", master->evicted);
    return world_text(RESP_STRING, info);
}

static struct redis_reply run_config(struct world_master *master, const char *name)
{
    static char setting[32];
    const char *value = strcmp(name, "appendonly") == 0    ? "yes"
                        : strcmp(name, "appendfsync") == 0 ? master->fsync
                                                           : "no";
    snprintf(setting, sizeof(setting), "%s", name);
    return world_pair(world_text(RESP_STRING, setting), world_text(RESP_STRING, value));
}

static struct redis_reply run_time(const struct world *world, unsigned node)
{
    static char seconds[24];
    static char micros[24];
    int64_t time_us = world_clock_ns(world, node) / 1000;
    snprintf(seconds, sizeof(seconds), "%" PRId64, time_us / 1000000);
    snprintf(micros, sizeof(micros), "%" PRId64, time_us % 1000000);
    return world_pair(world_text(RESP_STRING, seconds), world_text(RESP_STRING, micros));
}

struct redis_reply world_run(struct world *world, unsigned node, struct world_inbox *inbox,
                             char **words)
{
    struct world_master *master = &world->masters[node];
    if (master->busy && strcmp(words[0], "CLIENT") != 0)
        return world_text(RESP_ERROR, "BUSY Redis is busy running a script");
    if (strcmp(words[0], "CLIENT") == 0)
        return run_client(world, node, inbox, words);
    if (strcmp(words[0], "INFO") == 0)
        return run_info(world, master, words[1]);
    if (strcmp(words[0], "SCRIPT") == 0) {
        for (unsigned i = 0; i < REDIS_SCRIPT_COUNT; i++)
            if (strcmp(words[2], redis_script_text(i)) == 0)
                return world_text(RESP_STRING, redis_script_sha1(i));
    }
    if (strcmp(words[0], "CONFIG") == 0)
        return run_config(master, words[2]);
    if (strcmp(words[0], "PING") == 0)
        return world_text(RESP_STATUS, "PONG");
    if (strcmp(words[0], "TIME") == 0)
        return run_time(world, node);
    if (strcmp(words[0], "GET") == 0) {
        const char *value = world_value(world, node, words[1]);
        return value != NULL ? world_text(RESP_STRING, value) : world_nil();
    }
    bool of_guard = strncmp(words[0], "EVAL", 4) == 0 && strncmp(words[3], "redlockd:", 9) == 0;
    if (master->error[0] != '\0' && !of_guard)
        return world_text(RESP_ERROR, master->error);
    if (strcmp(words[0], "SET") == 0)
        return run_set(world, node, words);
    if (strcmp(words[0], "DELIFEQ") == 0 || strcmp(words[0], "DELEX") == 0)
        return run_native(world, node, words);
    bool caching = master->caching && inbox == &master->current;
    master->caching = false;
    struct redis_reply answer = run_eval(world, node, words);
    if (caching && answer.kind != RESP_ERROR)
        world_track(world, node, words[3]);
    return answer;
}
