#include "tests/unit/world_scripts.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/token.h"
#include "protocol/units.h"
#include "tests/fake/lease.h"
#include "tests/unit/world_answer.h"
#include "tests/unit/world_master.h"

static struct redis_reply holder(struct world *world, unsigned node, const struct world_key *key)
{
    int64_t left_ns = key->expires_ns - world_clock_ns(world, node);
    return world_pair(world_number(left_ns / NS_PER_MS), world_text(RESP_STRING, key->value));
}

/* What mark.lua does. */
static struct redis_reply run_mark(struct world *world, unsigned node, char **words)
{
    static char record[LIMIT_RECORD];
    const char *current = world_value(world, node, words[3]);
    if (strcmp(current != NULL ? current : "", words[4]) != 0)
        return world_text(RESP_STRING, current != NULL ? current : "");
    int64_t join_us = world_clock_ns(world, node) / 1000 + atoll(words[6]);
    if (join_us < atoll(words[8]))
        join_us = atoll(words[8]);
    struct record earlier;
    if (current != NULL && record_parse(current, strlen(current), &earlier) &&
        strcmp(earlier.run_id, words[7]) == 0 && earlier.join_us >= join_us)
        join_us = earlier.join_us + (atoll(words[6]) != 0);
    snprintf(record, sizeof(record), "%s%" PRId64, words[5], join_us);
    world_set(world, node, words[3], record, 0);
    return world_text(RESP_STRING, record);
}

/* What it does with the lease of one name. */
static char run_lease(struct world *world, unsigned node, const char *name, const char *server,
                      char **arguments)
{
    struct world_key *seen = world_find_key(world, node, name);
    int64_t now_ns = world_clock_ns(world, node);
    struct lease lease = {.left_ms = -2};
    if (seen != NULL) {
        snprintf(lease.value, sizeof(lease.value), "%s", seen->value);
        lease.left_ms =
            seen->expires_ns == INT64_MAX ? -1 : (seen->expires_ns - now_ns) / NS_PER_MS;
    }
    char digit = lease_ask(&lease, &(struct lease_wish){.server = server,
                                                        .daemon = arguments[7],
                                                        .now_ms = now_ns / NS_PER_MS,
                                                        .lease_ms = atoll(arguments[4]),
                                                        .fresh_ms = atoll(arguments[5])});
    /* The time to live of a stranger's stays as it is, to the nanosecond, unless it is trimmed. */
    if (digit != '1' || seen->expires_ns - now_ns > lease.left_ms * NS_PER_MS + NS_PER_MS)
        world_set(world, node, name, lease.value, lease.left_ms);
    return digit;
}

/* What beat.lua does. */
static struct redis_reply run_beat(struct world *world, unsigned node, char **words)
{
    static char answer[512];
    unsigned keys = (unsigned)atoi(words[2]);
    char **arguments = words + 3 + keys;
    const char *value = world_value(world, node, words[3]);
    char entry[160];
    char vouch[GUARD_VOUCH_MAX];
    char step[32];
    size_t len = 0;
    snprintf(entry, sizeof(entry), "%.159s", value != NULL ? value : "-");
    value = world_value(world, node, words[4]);
    snprintf(vouch, sizeof(vouch), "%.47s", value != NULL ? value : "-");
    value = world_value(world, node, words[5]);
    snprintf(step, sizeof(step), "%.31s", value != NULL ? value : "-");
    int64_t now_us = world_clock_ns(world, node) / 1000;
    if (atoll(vouch) > now_us) {
        snprintf(vouch, sizeof(vouch), "-");
        world_delete(world, node, words[4]);
    }
    if (strcmp(arguments[0], "-") == 0) {
        char next[32];
        int64_t next_us = atoll(step) + 1000 > now_us ? atoll(step) + 1000 : now_us;
        snprintf(next, sizeof(next), "%" PRId64, next_us);
        world_delete(world, node, words[3]);
        world_delete(world, node, words[4]);
        world_set(world, node, words[5], next, 0);
    } else if (arguments[0][0] != '\0')
        world_set(world, node, words[3], arguments[0], atoll(arguments[1]));
    if (arguments[2][0] != '\0' && strcmp(arguments[6], step) == 0 && atoll(arguments[2]) <= now_us)
        world_set(world, node, words[4], arguments[2], atoll(arguments[3]));
    for (unsigned i = 3; i < keys; i++)
        answer[len++] = run_lease(world, node, words[3 + i], arguments[5 + i], arguments);
    snprintf(answer + len, sizeof(answer) - len, " %s %s %s", vouch, step, entry);
    return world_text(RESP_STRING, answer);
}

/* What fence.lua does. */
static struct redis_reply run_fence(struct world *world, unsigned node, char **words)
{
    world->masters[node].commands++;
    if (world_find_key(world, node, words[3]) != NULL)
        return world_nil();
    const char *seen = world_value(world, node, words[4]);
    if (seen != NULL && atoll(seen) >= atoll(words[7]))
        return world_text(RESP_STRING, seen);
    world_set(world, node, words[3], words[5], atoll(words[6]));
    world_set(world, node, words[4], words[7], atoll(words[8]));
    return world_number(-3);
}

/* Is the value a frozen form of this token? */
static bool is_frozen_of(const char *value, const char *token)
{
    return value[0] == '!' && token[0] != '!' && strlen(value) == LIMIT_TOKEN &&
           token_same_lock(value, token);
}

/* What freeze.lua does. */
static struct redis_reply run_freeze(struct world *world, unsigned node, char **words)
{
    struct world_key *key = world_find_key(world, node, words[3]);
    world->masters[node].commands++;
    if (key == NULL)
        return world_number(-2);
    if (strlen(key->value) != LIMIT_TOKEN || !token_same_lock(key->value, words[4]))
        return holder(world, node, key);
    memcpy(key->value, words[4], LIMIT_TOKEN);
    return world_number(-3);
}

static const char *hint_key(const char *kind, const char *key)
{
    static char name[128];
    snprintf(name, sizeof(name), "redlockd:%s:%s", kind, key);
    return name;
}

/* What the others need of whom there is word; -1: there is none. */
static int need_of_others(struct world *world, unsigned node, const char *key, const char *daemon)
{
    static const char *const kinds[] = {"waits", "far"};
    int most_ms = -1;
    for (unsigned i = 0; i < 2; i++) {
        const char *word = world_value(world, node, hint_key(kinds[i], key));
        if (word == NULL || strncmp(word, daemon, REDIS_DAEMON) == 0)
            continue;
        int need_ms = atoi(word + REDIS_DAEMON);
        most_ms = need_ms > most_ms ? need_ms : most_ms;
    }
    return most_ms;
}

/* What swap.lua does. */
static struct redis_reply run_swap(struct world *world, unsigned node, char **words)
{
    bool fenced = atoi(words[2]) == 2;
    char **arguments = words + (fenced ? 5 : 4);
    struct world_key *key = world_find_key(world, node, words[3]);
    int need_ms = need_of_others(world, node, words[3], arguments[3]);
    world->masters[node].commands++;
    if (key != NULL && strcmp(key->value, arguments[0]) != 0 &&
        !is_frozen_of(key->value, arguments[0]))
        return holder(world, node, key);
    const char *seen = fenced ? world_value(world, node, words[4]) : NULL;
    if (seen != NULL && atoll(seen) >= atoll(arguments[4])) {
        world_delete(world, node, words[3]);
        return world_pair(world_number(key != NULL ? -3 : -2), world_text(RESP_STRING, seen));
    }
    world_set(world, node, words[3], arguments[1], atoll(arguments[2]));
    if (fenced)
        world_set(world, node, words[4], arguments[4], atoll(arguments[5]));
    return world_number((key != NULL ? -3 : -4) - 2 * (need_ms + 1));
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
        return world_text(RESP_ERROR, world->masters[node].together_error);
    world->masters[node].commands += count;
    /* All are looked at before any is deleted. */
    for (unsigned i = 0; i < count; i++) {
        struct world_key *key = world_find_key(world, node, words[3 + i]);
        bool ours = key != NULL && strcmp(key->value, words[3 + count + i]) == 0;
        letters[i] = ours ? 'd' : key == NULL ? 'a' : 'o';
        deleted += ours;
    }
    letters[count] = '\0';
    for (unsigned i = 0; i < count; i++)
        if (letters[i] == 'd')
            world_delete(world, node, words[3 + i]);
    return deleted == count ? world_number(-3) : world_text(RESP_STRING, letters);
}

static void leave_one(struct world *world, unsigned node, const char *name, const char *daemon,
                      int64_t left_ms)
{
    const struct world_key *before = world_find_key(world, node, name);
    if (before == NULL || strcmp(before->value, daemon) != 0 ||
        before->expires_ns - world_clock_ns(world, node) < left_ms * NS_PER_MS)
        world_set(world, node, name, daemon, left_ms + 1000);
}

/* The word that status.lua and release.lua leave, if they are told of whom. */
static void leave_word(struct world *world, unsigned node, const struct world_key *key,
                       const char *max_ttl_ms, const char *daemon)
{
    int64_t left_ms = (key->expires_ns - world_clock_ns(world, node)) / NS_PER_MS;
    if (daemon == NULL)
        return;
    left_ms = left_ms < atoll(max_ttl_ms) ? left_ms : atoll(max_ttl_ms);
    leave_one(world, node, hint_key("waits", key->key), daemon, left_ms);
    const char *far = world_value(world, node, hint_key("far", key->key));
    int need_ms = atoi(daemon + REDIS_DAEMON);
    if (need_ms > 0 && (far == NULL || atoi(far + REDIS_DAEMON) <= need_ms))
        leave_one(world, node, hint_key("far", key->key), daemon, left_ms);
}

struct redis_reply world_run_script(struct world *world, unsigned node, unsigned script,
                                    char **words)
{
    if (script == REDIS_SCRIPT_MARK) {
        struct world_master *master = &world->masters[node];
        master->marks++;
        return master->mark_error[0] != '\0' ? world_text(RESP_ERROR, master->mark_error)
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
    if (script == REDIS_SCRIPT_FREEZE)
        return run_freeze(world, node, words);
    if (script == REDIS_SCRIPT_RELEASE && strcmp(words[3], world->masters[node].refused_key) == 0)
        return world_text(RESP_ERROR, "NOPERM No permissions to access a key");
    struct world_key *key = world_find_key(world, node, words[3]);
    world->masters[node].commands++;
    world->masters[node].status_runs += script == REDIS_SCRIPT_STATUS;
    if (key == NULL)
        return world_number(-2);
    bool granted_there = script == REDIS_SCRIPT_STATUS && words[4] != NULL && words[6] != NULL &&
                         strcmp(key->value, words[6]) == 0;
    if (script == REDIS_SCRIPT_STATUS && !granted_there)
        leave_word(world, node, key, words[4], words[4] != NULL ? words[5] : NULL);
    bool ours = strcmp(key->value, words[4] != NULL ? words[4] : "") == 0 ||
                (script == REDIS_SCRIPT_RELEASE && is_frozen_of(key->value, words[4]));
    bool other = script == REDIS_SCRIPT_STATUS || !ours;
    if (other && script == REDIS_SCRIPT_RELEASE && strlen(key->value) == LIMIT_TOKEN) {
        int64_t latest_ns = world_clock_ns(world, node) + atoll(words[5]) * NS_PER_MS;
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
        int64_t expires_ns = world_clock_ns(world, node) + atoll(words[5]) * NS_PER_MS;
        if (key->expires_ns < expires_ns)
            key->expires_ns = expires_ns;
    }
    return world_number(-3);
}
