#include "tests/fake/master_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/guard/guard.h"
#include "engine/guard/record.h"
#include "protocol/redis.h"
#include "protocol/token.h"
#include "tests/fake/lease.h"

/* Reply {pttl, start of the value}. */
static void out_holder(const struct run *run, const struct fake_key *key)
{
    out_text(run->out, "*2\r\n");
    out_number(run->out, ':', key_pttl(run, key));
    out_string(run->out, key->value, key->value_len < LIMIT_TOKEN ? key->value_len : LIMIT_TOKEN);
}

/* The name of the hint for the lock's key: redlockd:waits:<key> or redlockd:far:<key>. */
static struct word hint_key(const struct run *run, const char *kind, char name[FAKE_KEY])
{
    const struct word *key = &run->words[3];
    int len = snprintf(name, FAKE_KEY, "redlockd:%s:%.*s", kind, (int)key->len, key->at);
    assert(len < FAKE_KEY);
    return (struct word){name, (size_t)len};
}

/* For how many ms the daemon needs the lock to be free, by its contention hint; -1: the hint does
 * not say. */
static int64_t need_of(const char *word, size_t len, size_t digits_max)
{
    size_t digits = len > REDIS_DAEMON ? len - REDIS_DAEMON : 0;
    const struct word number = {word + REDIS_DAEMON, digits};
    for (size_t i = 0; i < digits; i++)
        if (number.at[i] < '0' || number.at[i] > '9')
            return -1;
    return digits > 0 && digits <= digits_max ? word_number(&number) : -1;
}

static void leave_hint(const struct run *run, int64_t pttl_ms, const struct word *max_ttl,
                       const struct word *daemon)
{
    int64_t ms = pttl_ms > 0 ? pttl_ms : 0;
    int64_t need_ms = need_of(daemon->at, daemon->len, SIZE_MAX);
    ms = ms < word_number(max_ttl) ? ms : word_number(max_ttl);
    for (unsigned i = 0; i < (need_ms > 0 ? 2 : 1) && run->server->refusals[FAKE_SETTING] == NULL;
         i++) {
        char text[FAKE_KEY];
        struct word name = hint_key(run, i == 0 ? "waits" : "far", text);
        const struct fake_key *before = key_find(run, &name);
        if (i == 1 && before != NULL &&
            need_of(before->value, before->value_len, SIZE_MAX) > need_ms)
            break;
        if (before == NULL || !key_holds(before, daemon) || key_pttl(run, before) < ms)
            key_set(run, &name, daemon, ms + 1000);
    }
}

/* The longest time in ms for which other daemons need the lock to be free, by their hints (0 if a
 * hint does not say); -1: no hint. */
static int64_t need_of_others(const struct run *run, const struct word *daemon)
{
    int64_t most_ms = -1;
    for (unsigned i = 0; i < 2; i++) {
        char text[FAKE_KEY];
        struct word name = hint_key(run, i == 0 ? "waits" : "far", text);
        const struct fake_key *word = key_find(run, &name);
        if (word == NULL ||
            (word->value_len >= REDIS_DAEMON && memcmp(word->value, daemon->at, REDIS_DAEMON) == 0))
            continue;
        int64_t need_ms = need_of(word->value, word->value_len, 4);
        need_ms = need_ms < 0 ? 0 : need_ms;
        most_ms = need_ms > most_ms ? need_ms : most_ms;
    }
    return most_ms;
}

/* Limit the TTL of a lock to the max_ttl in the guard's record. */
static void trim(const struct run *run, struct fake_key *key)
{
    struct record record;
    const struct word name = {RECORD_KEY, strlen(RECORD_KEY)};
    const struct fake_key *found = key_find(run, &name);
    if (found != NULL && record_parse(found->value, found->value_len, &record) &&
        key_pttl(run, key) > record.max_ttl_ms)
        key_live_until(run, key, run->now_ms + record.max_ttl_ms);
}

/* Does the key hold a frozen form of this token? */
static bool key_freezes(const struct fake_key *key, const struct word *token)
{
    return key->value[0] == '!' && token->at[0] != '!' && key->value_len == LIMIT_TOKEN &&
           token_same_lock(key->value, token->at);
}

/* Reply with the error of Redis for a forbidden command in a script. */
static bool run_may_not_delete(const struct run *run, const struct fake_key *key)
{
    bool kept = key_is_protected(run->server, key);
    if (kept)
        out_text(run->out,
                 "-ERR The user executing the script can't run this command or subcommand\r\n");
    return kept;
}

static void run_release(const struct run *run)
{
    struct fake_key *key = key_find(run, &run->words[3]);
    if (key == NULL) {
        out_number(run->out, ':', -2);
    } else if (key_holds(key, &run->words[4]) || key_freezes(key, &run->words[4])) {
        if (run_may_not_delete(run, key))
            return;
        key_delete(run->server, key);
        out_number(run->out, ':', -3);
    } else {
        if (key_pttl(run, key) > word_number(&run->words[5]) && key->value_len == LIMIT_TOKEN &&
            strspn(key->value, "!0123456789abcdef") == LIMIT_TOKEN)
            trim(run, key);
        out_holder(run, key);
        if (run->count > 6)
            leave_hint(run, key_pttl(run, key), &run->words[5], &run->words[6]);
    }
}

static void run_releases(const struct run *run)
{
    char letters[FAKE_BATCH];
    unsigned count = (unsigned)word_number(&run->words[2]);
    bool all = true;
    for (unsigned i = 0; i < count; i++) {
        struct fake_key *key = key_find(run, &run->words[3 + i]);
        bool ours = key != NULL && key_holds(key, &run->words[3 + count + i]);
        /* A batch must not have the same key twice: both releases would be reported as deleted. */
        for (unsigned j = 0; j < i; j++)
            assert(!word_same(&run->words[3 + j], &run->words[3 + i]));
        letters[i] = ours ? 'd' : key == NULL ? 'a' : 'o';
        all = all && ours;
    }
    for (unsigned i = 0; i < count; i++) {
        struct fake_key *key = letters[i] == 'd' ? key_find(run, &run->words[3 + i]) : NULL;
        if (key != NULL && run_may_not_delete(run, key))
            return;
        if (key != NULL)
            key_delete(run->server, key);
    }
    if (all)
        out_number(run->out, ':', -3);
    else
        out_string(run->out, letters, count);
}

static void run_extend(const struct run *run)
{
    struct fake_key *key = key_find(run, &run->words[3]);
    int64_t ttl_ms = word_number(&run->words[5]);
    if (key == NULL) {
        out_number(run->out, ':', -2);
    } else if (!key_holds(key, &run->words[4])) {
        out_holder(run, key);
    } else {
        if (key_pttl(run, key) >= 0 && key_pttl(run, key) < ttl_ms)
            key_live_until(run, key, run->now_ms + ttl_ms);
        out_number(run->out, ':', -3);
    }
}

static void run_freeze(const struct run *run)
{
    struct fake_key *key = key_find(run, &run->words[3]);
    if (key == NULL) {
        out_number(run->out, ':', -2);
    } else if (key->value_len != LIMIT_TOKEN || !token_same_lock(key->value, run->words[4].at)) {
        out_holder(run, key);
    } else if (key->ends_ms != INT64_MAX || !run_is_refused(run, FAKE_SETTING)) {
        int64_t pttl_ms = key_pttl(run, key);
        key_set(run, &run->words[3], &run->words[4], pttl_ms > 0 ? pttl_ms : 1);
        out_number(run->out, ':', -3);
    }
}

static void run_status(const struct run *run)
{
    const struct fake_key *key = key_find(run, &run->words[3]);
    if (key == NULL) {
        out_number(run->out, ':', -2);
        return;
    }
    out_holder(run, key);
    if (run->count > 4 && !(run->count > 6 && key_holds(key, &run->words[6])))
        leave_hint(run, key_pttl(run, key), &run->words[4], &run->words[5]);
}

static void run_fence(const struct run *run)
{
    if (key_find(run, &run->words[3]) != NULL) {
        out_nil(run->out);
        return;
    }
    const struct fake_key *seen = key_find(run, &run->words[4]);
    if (seen != NULL && key_number(seen) >= word_number(&run->words[7])) {
        out_string(run->out, seen->value, seen->value_len);
        return;
    }
    if (run_is_refused(run, FAKE_SETTING))
        return;
    key_set(run, &run->words[3], &run->words[5], word_number(&run->words[6]));
    key_set(run, &run->words[4], &run->words[7], word_number(&run->words[8]));
    out_number(run->out, ':', -3);
}

static void run_swap(const struct run *run)
{
    bool fenced = word_number(&run->words[2]) == 2;
    const struct word *arguments = run->words + (fenced ? 5 : 4);
    struct fake_key *key = key_find(run, &run->words[3]);
    if (key != NULL && !key_holds(key, &arguments[0]) && !key_freezes(key, &arguments[0])) {
        out_holder(run, key);
        return;
    }
    bool was_there = key != NULL;
    const struct fake_key *seen = fenced ? key_find(run, &run->words[4]) : NULL;
    if (seen != NULL && key_number(seen) >= word_number(&arguments[4])) {
        if (was_there && run_may_not_delete(run, key))
            return;
        out_text(run->out, "*2\r\n");
        out_number(run->out, ':', was_there ? -3 : -2);
        out_string(run->out, seen->value, seen->value_len);
        if (was_there)
            key_delete(run->server, key_find(run, &run->words[3]));
        return;
    }
    int64_t need_ms = need_of_others(run, &arguments[3]);
    if (run_is_refused(run, FAKE_SETTING))
        return;
    key_set(run, &run->words[3], &arguments[1], word_number(&arguments[2]));
    if (fenced)
        key_set(run, &run->words[4], &arguments[4], word_number(&arguments[5]));
    out_number(run->out, ':', (was_there ? -3 : -4) - 2 * (need_ms + 1));
}

static void run_record_write(const struct run *run)
{
    const struct fake_key *current = key_find(run, &run->words[3]);
    const struct word *expected = &run->words[4];
    const struct word *begin = &run->words[5];
    char record[LIMIT_RECORD];
    if (current != NULL ? !key_holds(current, expected) : expected->len != 0) {
        out_string(run->out, current != NULL ? current->value : "",
                   current != NULL ? current->value_len : 0);
        return;
    }
    int64_t join_us = run->now_us + word_number(&run->words[6]);
    if (join_us < word_number(&run->words[8]))
        join_us = word_number(&run->words[8]);
    struct record earlier;
    if (current != NULL && record_parse(current->value, current->value_len, &earlier) &&
        word_is(&run->words[7], earlier.run_id) && earlier.join_us >= join_us)
        join_us = earlier.join_us + (word_number(&run->words[6]) != 0);
    int len = snprintf(record, sizeof(record), "%.*s%" PRId64, (int)begin->len, begin->at, join_us);
    key_set_text(run, &run->words[3], record, (size_t)len, 0);
    out_string(run->out, record, (size_t)len);
}

static void copy_word(char *to, size_t size, const struct word *word)
{
    snprintf(to, size, "%.*s", (int)word->len, word->at);
}

/* Handle the lease of one name. Returns the name's digit in the reply of the heartbeat. */
static char run_lease(const struct run *run, const struct word *name, const struct word *server,
                      const struct word *arguments)
{
    char wanted[GUARD_SERVER_MAX + 32];
    char daemon[64];
    struct fake_key *seen = key_find(run, name);
    struct lease lease = {.left_ms = seen != NULL ? key_pttl(run, seen) : -2};
    copy_word(wanted, sizeof(wanted), server);
    copy_word(daemon, sizeof(daemon), &arguments[7]);
    if (seen != NULL)
        snprintf(lease.value, sizeof(lease.value), "%.*s", (int)seen->value_len, seen->value);
    char digit = lease_ask(&lease, &(struct lease_options){.server = wanted,
                                                           .daemon = daemon,
                                                           .now_ms = run->now_us / 1000,
                                                           .lease_ms = word_number(&arguments[4]),
                                                           .fresh_ms = word_number(&arguments[5])});
    key_set_text(run, name, lease.value, strlen(lease.value), lease.left_ms);
    return digit;
}

enum { BEATS = 56 };

/* Split beats before their number: "<mark>.<time>.<number>". */
static bool split_beats(const char *text, size_t *head_len, int64_t *number)
{
    const char *dot = strrchr(text, '.');
    *head_len = dot != NULL ? (size_t)(dot - text) : 0;
    return dot != NULL && sscanf(dot + 1, "%" SCNd64, number) == 1;
}

static void run_beats(const struct run *run, const struct word *name, const struct word *record,
                      const struct word *known, char beats[BEATS])
{
    const struct fake_key *node = key_find(run, record);
    const struct fake_key *key = key_find(run, name);
    char mark[17] = "-";
    char head[BEATS], text[BEATS];
    size_t head_len, known_len;
    int64_t number, least;
    if (node != NULL && strstr(node->value, " mark=") != NULL)
        sscanf(strstr(node->value, " mark="), " mark=%16[0-9a-f]", mark);
    copy_word(text, sizeof(text), known);
    if (key == NULL || !split_beats(key->value, &head_len, &number) ||
        strncmp(key->value, mark, strlen(mark)) != 0 ||
        (split_beats(text, &known_len, &least) && known_len == head_len &&
         memcmp(text, key->value, head_len) == 0 && number < least)) {
        snprintf(head, sizeof(head), "%s.%" PRId64, mark, run->now_us);
        number = 0;
    } else {
        snprintf(head, sizeof(head), "%.*s", (int)head_len, key->value);
    }
    int len = snprintf(beats, BEATS, "%.32s.%" PRId64, head, number + 1);
    key_set_text(run, name, beats, (size_t)len, 0);
}

static void run_heartbeat(const struct run *run)
{
    unsigned keys = (unsigned)word_number(&run->words[2]);
    const struct word *names = run->words + 3;
    const struct word *arguments = names + keys;
    char answer[512];
    char entry[160] = "-";
    char attestation[GUARD_ATTESTATION_MAX] = "-";
    char step[32] = "-";
    char beats[BEATS];
    size_t len = 0;
    struct fake_key *key = key_find(run, &names[0]);
    if (key != NULL)
        snprintf(entry, sizeof(entry), "%.159s", key->value);
    key = key_find(run, &names[1]);
    bool from_the_future =
        key != NULL && (key_number(key) > run->now_us || strchr(key->value, ':') == NULL);
    bool stepped = word_is(&arguments[0], "-");
    if (from_the_future)
        key_delete(run->server, key);
    else if (key != NULL)
        snprintf(attestation, sizeof(attestation), "%.47s", key->value);
    /* As in Redis, a script that has already written something continues in spite of OOM. */
    if (!from_the_future && !stepped && run_is_refused(run, FAKE_SETTING))
        return;
    key = key_find(run, &names[2]);
    int64_t known_us = key != NULL ? key_number(key) : 0;
    if (key != NULL)
        snprintf(step, sizeof(step), "%.31s", key->value);
    key = key_find(run, &names[0]);
    if (stepped) {
        char text[32];
        int text_len = snprintf(text, sizeof(text), "%" PRId64,
                                run->now_us > known_us + 1000 ? run->now_us : known_us + 1000);
        if (key != NULL)
            key_delete(run->server, key);
        key = key_find(run, &names[1]);
        if (key != NULL)
            key_delete(run->server, key);
        key_set_text(run, &names[2], text, (size_t)text_len, 0);
    } else if (arguments[0].len > 0)
        key_set(run, &names[0], &arguments[0], word_number(&arguments[1]));
    if (arguments[2].len > 0 && word_is(&arguments[6], step) &&
        word_number(&arguments[2]) <= run->now_us)
        key_set(run, &names[1], &arguments[2], word_number(&arguments[3]));
    for (unsigned i = 5; i < keys; i++)
        answer[len++] = run_lease(run, &names[i], &arguments[4 + i], arguments);
    run_beats(run, &names[3], &names[4], &arguments[8], beats);
    len += (size_t)snprintf(answer + len, sizeof(answer) - len, " %s %s %s %s", beats, attestation,
                            step, entry);
    out_string(run->out, answer, len);
}

/* The release script of the paper, which other libraries use. */
static void run_foreign_release(const struct run *run)
{
    struct fake_key *key = key_find(run, &run->words[3]);
    bool ours = key != NULL && key_holds(key, &run->words[4]);
    if (ours)
        key_delete(run->server, key);
    out_number(run->out, ':', ours);
}

static void run_script(const struct run *run, unsigned script)
{
    static void (*const scripts[REDIS_SCRIPT_COUNT])(const struct run *) = {
        [REDIS_SCRIPT_RELEASE] = run_release,     [REDIS_SCRIPT_RELEASES] = run_releases,
        [REDIS_SCRIPT_EXTEND] = run_extend,       [REDIS_SCRIPT_STATUS] = run_status,
        [REDIS_SCRIPT_FENCE] = run_fence,         [REDIS_SCRIPT_SWAP] = run_swap,
        [REDIS_SCRIPT_FREEZE] = run_freeze,       [REDIS_SCRIPT_WRITE_RECORD] = run_record_write,
        [REDIS_SCRIPT_HEARTBEAT] = run_heartbeat,
    };
    scripts[script](run);
}
void fake_run_eval(const struct run *run)
{
    struct fake_master *server = run->server;
    bool in_full = run->words[0].len == 4;
    if (!in_full && run_is_refused(run, FAKE_BY_SHA1))
        return;
    if (in_full && word_is(&run->words[1], FAKE_FOREIGN_RELEASE)) {
        run_foreign_release(run);
        return;
    }
    for (unsigned i = 0; i < REDIS_SCRIPT_COUNT; i++) {
        if (!word_is(&run->words[1], in_full ? redis_script_text(i) : redis_script_sha1(i)))
            continue;
        if (!in_full && (!server->scripts[i] || server->scripts_flushed))
            break;
        server->scripts[i] = !server->scripts_flushed;
        server->runs[i]++;
        if (i != REDIS_SCRIPT_WRITE_RECORD && i != REDIS_SCRIPT_HEARTBEAT)
            server->lock_commands +=
                i == REDIS_SCRIPT_RELEASES ? (unsigned)word_number(&run->words[2]) : 1;
        if (!run_is_refused(run, i))
            run_script(run, i);
        /* Tracking covers the keys that a command reads, and all scripts read their first key. */
        if (run->session->caching && run->session->tracking)
            key_track(run, &run->words[3]);
        return;
    }
    out_text(run->out, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
}
