#include "tests/sim/redis7.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/record.h"
#include "protocol/redis.h"

/* A word of a command; its bytes are in the input of the session. */
struct word {
    const char *at;
    size_t len;
};

/* One command at work. */
struct run {
    struct redis7 *server;
    struct redis7_session *session;
    const struct word *words;
    unsigned count;
    int64_t now_us;
    int64_t now_ms;
    struct bytes *out;
};

static bool is(const struct word *word, const char *text)
{
    size_t len = strlen(text);
    return word->len == len && memcmp(word->at, text, len) == 0;
}

static int64_t number(const struct word *word)
{
    int64_t value = 0;
    bool negative = word->len > 0 && word->at[0] == '-';
    for (size_t i = negative; i < word->len && word->at[i] >= '0' && word->at[i] <= '9'; i++)
        value = 10 * value + (word->at[i] - '0');
    return negative ? -value : value;
}

static int64_t number_of_text(const char *text, size_t len)
{
    return number(&(struct word){text, len});
}

/* --- answers --- */

static void put(struct bytes *out, const char *text)
{
    bytes_add(out, text, strlen(text));
}

static void put_number(struct bytes *out, char kind, int64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    digits[--at] = '\n';
    digits[--at] = '\r';
    do
        digits[--at] = (char)('0' + left % 10);
    while ((left /= 10) != 0);
    if (value < 0)
        digits[--at] = '-';
    digits[--at] = kind;
    bytes_add(out, digits + at, sizeof(digits) - at);
}

static void put_string(struct bytes *out, const char *text, size_t len)
{
    put_number(out, '$', (int64_t)len);
    bytes_add(out, text, len);
    put(out, "\r\n");
}

static void put_nil(struct bytes *out)
{
    put(out, "$-1\r\n");
}

/* --- keys --- */

static uint32_t hash_of(const char *text, size_t len)
{
    uint32_t hash = 2166136261;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619;
    return hash;
}

/* Those that track this key, or all keys where it is NULL, are told once. */
static void invalidate(struct redis7 *server, const char *key, size_t key_len)
{
    for (unsigned i = 0; i < server->tracked_count; i++) {
        struct redis7_tracked *tracked = &server->tracked[i];
        if (strlen(tracked->key) != key_len || memcmp(tracked->key, key, key_len) != 0)
            continue;
        struct redis7_session *who = redis7_session(server, tracked->session);
        struct redis7_session *told = who != NULL ? redis7_session(server, who->redirect) : NULL;
        if (told != NULL && told->subscribed) {
            put(&told->output, "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n");
            put_string(&told->output, key, key_len);
        }
        *tracked = server->tracked[--server->tracked_count];
        i--;
    }
}

static void invalidate_all(struct redis7 *server)
{
    for (unsigned i = 0; i < server->session_end; i++) {
        const struct redis7_session *who = &server->sessions[i];
        struct redis7_session *told =
            who->id != 0 && who->tracking ? redis7_session(server, who->redirect) : NULL;
        if (told != NULL && told->subscribed)
            put(&told->output, "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*-1\r\n");
    }
    server->tracked_count = 0;
}

static void track(struct run *run, const struct word *key)
{
    struct redis7 *server = run->server;
    for (unsigned i = 0; i < server->tracked_count; i++)
        if (server->tracked[i].session == run->session->id && is(key, server->tracked[i].key))
            return;
    assert(server->tracked_count < REDIS7_KEYS && key->len < REDIS7_KEY);
    struct redis7_tracked *tracked = &server->tracked[server->tracked_count++];
    memcpy(tracked->key, key->at, key->len);
    tracked->key[key->len] = '\0';
    tracked->session = run->session->id;
}

static void delete_key(struct redis7 *server, struct redis7_key *key)
{
    char name[REDIS7_KEY];
    size_t len = key->len;
    memcpy(name, key->name, len);
    struct redis7_key *last = &server->data.keys[--server->data.count];
    if (key != last)
        memcpy(key, last, sizeof(*key));
    invalidate(server, name, len);
}

static struct redis7_key *find(struct redis7 *server, const char *name, size_t len, int64_t now_ms)
{
    uint32_t hash = hash_of(name, len);
    for (unsigned i = 0; i < server->data.count; i++) {
        struct redis7_key *key = &server->data.keys[i];
        if (key->hash != hash || key->len != len || memcmp(key->name, name, len) != 0)
            continue;
        if (now_ms <= key->ends_ms)
            return key;
        delete_key(server, key);
        return NULL;
    }
    return NULL;
}

const struct redis7_key *redis7_find(struct redis7 *server, const char *key, size_t key_len,
                                     int64_t now_us)
{
    return find(server, key, key_len, now_us / 1000);
}

static struct redis7_key *find_word(const struct run *run, const struct word *name)
{
    return find(run->server, name->at, name->len, run->now_ms);
}

/* ttl_ms 0: it lives for ever. */
static void set_text(const struct run *run, const struct word *name, const char *value, size_t len,
                     int64_t ttl_ms)
{
    struct redis7 *server = run->server;
    struct redis7_key *key = find_word(run, name);
    if (key == NULL) {
        assert(server->data.count < REDIS7_KEYS && name->len < REDIS7_KEY);
        key = &server->data.keys[server->data.count++];
        key->hash = hash_of(name->at, name->len);
        key->len = (uint32_t)name->len;
        memcpy(key->name, name->at, name->len);
    }
    assert(len < sizeof(key->value));
    memcpy(key->value, value, len);
    key->value[len] = '\0';
    key->value_len = len;
    key->ends_ms = ttl_ms != 0 ? run->now_ms + ttl_ms : INT64_MAX;
    invalidate(server, name->at, name->len);
    server->on_set(server->watcher, name->at, name->len, value, len, key->ends_ms);
}

static void set_word(const struct run *run, const struct word *name, const struct word *value,
                     int64_t ttl_ms)
{
    set_text(run, name, value->at, value->len, ttl_ms);
}

static void live_until(const struct run *run, struct redis7_key *key, int64_t ends_ms)
{
    key->ends_ms = ends_ms;
    invalidate(run->server, key->name, key->len);
    run->server->on_set(run->server->watcher, key->name, key->len, key->value, key->value_len,
                        ends_ms);
}

static int64_t pttl(const struct run *run, const struct redis7_key *key)
{
    return key->ends_ms == INT64_MAX ? -1 : key->ends_ms - run->now_ms;
}

static bool same(const struct word *one, const struct word *other)
{
    return one->len == other->len && memcmp(one->at, other->at, one->len) == 0;
}

static bool holds(const struct redis7_key *key, const struct word *token)
{
    return key->value_len == token->len && memcmp(key->value, token->at, token->len) == 0;
}

/* {pttl, start of the value} */
static void put_holder(const struct run *run, const struct redis7_key *key)
{
    put(run->out, "*2\r\n");
    put_number(run->out, ':', pttl(run, key));
    put_string(run->out, key->value, key->value_len < LIMIT_TOKEN ? key->value_len : LIMIT_TOKEN);
}

/* DELIFEQ <key> <token> of Valkey, DELEX <key> IFEQ <token> of Redis. */
static void compare_and_delete(const struct run *run, enum redis_form form,
                               const struct word *token)
{
    struct redis7_key *key = find_word(run, &run->words[1]);
    bool ours = key != NULL && holds(key, token);
    run->server->native++;
    if (run->server->release_form != form) {
        put(run->out, "-ERR unknown command\r\n");
        return;
    }
    if (run->server->denied) {
        put(run->out, "-NOPERM User redlockd has no permissions to run this command\r\n");
        return;
    }
    if (ours)
        delete_key(run->server, key);
    put_number(run->out, ':', ours);
}

static void run_delifeq(const struct run *run)
{
    compare_and_delete(run, REDIS_DELIFEQ, &run->words[2]);
}

static void run_delex(const struct run *run)
{
    compare_and_delete(run, REDIS_DELEX, &run->words[3]);
}

/* It is refused, with this answer, where there is no memory left for what it would set. */
static bool is_too_much(const struct run *run)
{
    if (run->server->full)
        put(run->out, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    return run->server->full;
}

/* --- the scripts, each beside its .lua --- */

/* redlockd:waits:<key> */
static struct word waits_key(const struct run *run, char name[REDIS7_KEY])
{
    const struct word *key = &run->words[3];
    int len = snprintf(name, REDIS7_KEY, "redlockd:waits:%.*s", (int)key->len, key->at);
    assert(len < REDIS7_KEY);
    return (struct word){name, (size_t)len};
}

static void leave_word(const struct run *run, int64_t pttl_ms, const struct word *max_ttl,
                       const struct word *daemon)
{
    char name[REDIS7_KEY];
    struct word waits = waits_key(run, name);
    const struct redis7_key *before = find_word(run, &waits);
    int64_t ms = pttl_ms > 0 ? pttl_ms : 0;
    ms = ms < number(max_ttl) ? ms : number(max_ttl);
    if (run->server->full)
        return;
    if (before == NULL || !holds(before, daemon) || pttl(run, before) < ms)
        set_word(run, &waits, daemon, ms + 1000);
}

/* No lock lives longer than the record says. */
static void trim(const struct run *run, struct redis7_key *key)
{
    struct record record;
    const struct redis7_key *found = find(run->server, RECORD_KEY, strlen(RECORD_KEY), run->now_ms);
    if (found != NULL && record_parse(found->value, found->value_len, &record) &&
        pttl(run, key) > record.max_ttl_ms)
        live_until(run, key, run->now_ms + record.max_ttl_ms);
}

static void run_release(const struct run *run)
{
    struct redis7_key *key = find_word(run, &run->words[3]);
    if (key == NULL) {
        put_number(run->out, ':', -2);
    } else if (holds(key, &run->words[4])) {
        delete_key(run->server, key);
        put_number(run->out, ':', -3);
    } else {
        if (pttl(run, key) > number(&run->words[5]) && key->value_len == LIMIT_TOKEN &&
            strspn(key->value, "0123456789abcdef") == LIMIT_TOKEN)
            trim(run, key);
        put_holder(run, key);
        if (run->count > 6)
            leave_word(run, pttl(run, key), &run->words[5], &run->words[6]);
    }
}

static void run_releases(const struct run *run)
{
    char letters[REDIS7_TOGETHER];
    unsigned count = (unsigned)number(&run->words[2]);
    bool all = true;
    if (run->server->apart) {
        put(run->out,
            "-ERR The user executing the script can't run this command or subcommand\r\n");
        return;
    }
    run->server->together++;
    for (unsigned i = 0; i < count; i++) {
        struct redis7_key *key = find_word(run, &run->words[3 + i]);
        bool ours = key != NULL && holds(key, &run->words[3 + count + i]);
        /* Both would be told that they have deleted it. */
        for (unsigned j = 0; j < i; j++)
            assert(!same(&run->words[3 + j], &run->words[3 + i]));
        letters[i] = ours ? 'd' : key == NULL ? 'a' : 'o';
        all = all && ours;
    }
    for (unsigned i = 0; i < count; i++) {
        struct redis7_key *key = find_word(run, &run->words[3 + i]);
        if (letters[i] == 'd' && key != NULL)
            delete_key(run->server, key);
    }
    if (all)
        put_number(run->out, ':', -3);
    else
        put_string(run->out, letters, count);
}

static void run_extend(const struct run *run)
{
    struct redis7_key *key = find_word(run, &run->words[3]);
    int64_t ttl_ms = number(&run->words[5]);
    if (key == NULL) {
        put_number(run->out, ':', -2);
    } else if (!holds(key, &run->words[4])) {
        put_holder(run, key);
    } else {
        if (pttl(run, key) >= 0 && pttl(run, key) < ttl_ms)
            live_until(run, key, run->now_ms + ttl_ms);
        put_number(run->out, ':', -3);
    }
}

static void run_status(const struct run *run)
{
    const struct redis7_key *key = find_word(run, &run->words[3]);
    if (key == NULL) {
        put_number(run->out, ':', -2);
        return;
    }
    put_holder(run, key);
    if (run->count > 4 && !(run->count > 6 && holds(key, &run->words[6])))
        leave_word(run, pttl(run, key), &run->words[4], &run->words[5]);
}

static void run_fence(const struct run *run)
{
    if (find_word(run, &run->words[3]) != NULL) {
        put_nil(run->out);
        return;
    }
    const struct redis7_key *seen = find_word(run, &run->words[4]);
    if (seen != NULL && number_of_text(seen->value, seen->value_len) >= number(&run->words[7])) {
        put_string(run->out, seen->value, seen->value_len);
        return;
    }
    if (is_too_much(run))
        return;
    set_word(run, &run->words[3], &run->words[5], number(&run->words[6]));
    set_word(run, &run->words[4], &run->words[7], number(&run->words[8]));
    put_number(run->out, ':', -3);
}

static void run_swap(const struct run *run)
{
    char name[REDIS7_KEY];
    bool fenced = number(&run->words[2]) == 2;
    const struct word *arguments = run->words + (fenced ? 5 : 4);
    struct redis7_key *key = find_word(run, &run->words[3]);
    if (key != NULL && !holds(key, &arguments[0])) {
        put_holder(run, key);
        return;
    }
    bool was_there = key != NULL;
    const struct redis7_key *seen = fenced ? find_word(run, &run->words[4]) : NULL;
    if (seen != NULL && number_of_text(seen->value, seen->value_len) >= number(&arguments[4])) {
        put(run->out, "*2\r\n");
        put_number(run->out, ':', was_there ? -3 : -2);
        put_string(run->out, seen->value, seen->value_len);
        if (was_there)
            delete_key(run->server, find_word(run, &run->words[3]));
        return;
    }
    struct word waits = waits_key(run, name);
    const struct redis7_key *word = find_word(run, &waits);
    bool wanted = word != NULL && !holds(word, &arguments[3]);
    if (is_too_much(run))
        return;
    set_word(run, &run->words[3], &arguments[1], number(&arguments[2]));
    if (fenced)
        set_word(run, &run->words[4], &arguments[4], number(&arguments[5]));
    put_number(run->out, ':', (was_there ? -3 : -4) - 2 * wanted);
}

static void run_mark(const struct run *run)
{
    const struct redis7_key *current = find_word(run, &run->words[3]);
    const struct word *expected = &run->words[4];
    const struct word *begin = &run->words[5];
    char record[LIMIT_RECORD];
    if (current != NULL ? !holds(current, expected) : expected->len != 0) {
        put_string(run->out, current != NULL ? current->value : "",
                   current != NULL ? current->value_len : 0);
        return;
    }
    int64_t join_us = run->now_us + number(&run->words[6]);
    if (join_us < number(&run->words[8]))
        join_us = number(&run->words[8]);
    struct record earlier;
    if (current != NULL && record_parse(current->value, current->value_len, &earlier) &&
        is(&run->words[7], earlier.run_id) && earlier.join_us >= join_us)
        join_us = earlier.join_us + (number(&run->words[6]) != 0);
    int len = snprintf(record, sizeof(record), "%.*s%" PRId64, (int)begin->len, begin->at, join_us);
    set_text(run, &run->words[3], record, (size_t)len, 0);
    put_string(run->out, record, (size_t)len);
}

/* The lease of a name: '1' if another server has it. */
static char run_lease(const struct run *run, const struct word *name, const struct word *server,
                      int64_t lease_ms, int64_t fresh_ms)
{
    struct redis7_key *seen = find_word(run, name);
    bool other = seen != NULL && !holds(seen, server);
    bool same_server = other && seen->value_len >= 40 && server->len >= 40 &&
                       memcmp(seen->value, server->at, 40) == 0;
    if (other && !(same_server && lease_ms - pttl(run, seen) > fresh_ms)) {
        if (pttl(run, seen) > lease_ms)
            live_until(run, seen, run->now_ms + lease_ms);
        return '1';
    }
    set_word(run, name, server, lease_ms);
    return '0';
}

static void run_beat(const struct run *run)
{
    unsigned keys = (unsigned)number(&run->words[2]);
    const struct word *names = run->words + 3;
    const struct word *arguments = names + keys;
    char answer[512];
    char entry[160] = "-";
    char vouch[32] = "-";
    char step[32] = "-";
    size_t len = 0;
    struct redis7_key *key = find_word(run, &names[0]);
    if (key != NULL)
        snprintf(entry, sizeof(entry), "%.159s", key->value);
    key = find_word(run, &names[1]);
    bool from_the_future = key != NULL && number_of_text(key->value, key->value_len) > run->now_us;
    bool stepped = is(&arguments[0], "-");
    if (from_the_future)
        delete_key(run->server, key);
    else if (key != NULL)
        snprintf(vouch, sizeof(vouch), "%.31s", key->value);
    /* A script that has written something goes on, however full it is. */
    if (!from_the_future && !stepped && is_too_much(run))
        return;
    key = find_word(run, &names[2]);
    int64_t known_us = key != NULL ? number_of_text(key->value, key->value_len) : 0;
    if (key != NULL)
        snprintf(step, sizeof(step), "%.31s", key->value);
    key = find_word(run, &names[0]);
    if (stepped) {
        char text[32];
        int text_len = snprintf(text, sizeof(text), "%" PRId64,
                                run->now_us > known_us + 1000 ? run->now_us : known_us + 1000);
        if (key != NULL)
            delete_key(run->server, key);
        key = find_word(run, &names[1]);
        if (key != NULL)
            delete_key(run->server, key);
        set_text(run, &names[2], text, (size_t)text_len, 0);
    } else if (arguments[0].len > 0)
        set_word(run, &names[0], &arguments[0], number(&arguments[1]));
    if (arguments[2].len > 0 && is(&arguments[6], step) && number(&arguments[2]) <= run->now_us)
        set_word(run, &names[1], &arguments[2], number(&arguments[3]));
    for (unsigned i = 3; i < keys; i++)
        answer[len++] = run_lease(run, &names[i], &arguments[4 + i], number(&arguments[4]),
                                  number(&arguments[5]));
    len += (size_t)snprintf(answer + len, sizeof(answer) - len, " %s %s %s", vouch, step, entry);
    put_string(run->out, answer, len);
}

/* What other libraries release with: the script of the paper. */
static void run_foreign_release(const struct run *run)
{
    struct redis7_key *key = find_word(run, &run->words[3]);
    bool ours = key != NULL && holds(key, &run->words[4]);
    if (ours)
        delete_key(run->server, key);
    put_number(run->out, ':', ours);
}

static void run_script(const struct run *run, unsigned script)
{
    static void (*const scripts[REDIS_SCRIPT_COUNT])(const struct run *) = {
        [REDIS_SCRIPT_RELEASE] = run_release, [REDIS_SCRIPT_RELEASES] = run_releases,
        [REDIS_SCRIPT_EXTEND] = run_extend,   [REDIS_SCRIPT_STATUS] = run_status,
        [REDIS_SCRIPT_FENCE] = run_fence,     [REDIS_SCRIPT_SWAP] = run_swap,
        [REDIS_SCRIPT_MARK] = run_mark,       [REDIS_SCRIPT_BEAT] = run_beat,
    };
    scripts[script](run);
}

static void run_eval(const struct run *run)
{
    struct redis7 *server = run->server;
    bool in_full = run->words[0].len == 4;
    if (in_full && is(&run->words[1], REDIS7_FOREIGN_RELEASE)) {
        run_foreign_release(run);
        return;
    }
    for (unsigned i = 0; i < REDIS_SCRIPT_COUNT; i++) {
        if (!is(&run->words[1], in_full ? redis_script_text(i) : redis_script_sha1(i)))
            continue;
        if (!in_full && !server->scripts[i])
            break;
        server->scripts[i] = !server->deaf_to_scripts;
        run_script(run, i);
        /* All of them read their first key, and a read is what is tracked. */
        if (run->session->caching && run->session->tracking)
            track((struct run *)run, &run->words[3]);
        return;
    }
    put(run->out, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
}

/* --- commands --- */

static void run_get(const struct run *run)
{
    const struct redis7_key *key = find_word(run, &run->words[1]);
    if (key == NULL)
        put_nil(run->out);
    else
        put_string(run->out, key->value, key->value_len);
    if (run->session->caching && run->session->tracking)
        track((struct run *)run, &run->words[1]);
}

/* SET key value NX PX ttl */
static void run_set(const struct run *run)
{
    if (is_too_much(run))
        return;
    if (find_word(run, &run->words[1]) != NULL) {
        put_nil(run->out);
        return;
    }
    set_word(run, &run->words[1], &run->words[2], number(&run->words[5]));
    put(run->out, "+OK\r\n");
}

/* A number, as a string of digits. */
static void put_digits(struct bytes *out, int64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    put_string(out, digits + at, sizeof(digits) - at);
}

static void run_time(const struct run *run)
{
    put(run->out, "*2\r\n");
    put_digits(run->out, run->now_us / 1000000);
    put_digits(run->out, run->now_us % 1000000);
}

/* Asked for with every probe: so it is put together by hand. */
static size_t write_replication(const struct redis7 *server, char *info)
{
    static const char masters[] = "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";
    static const char slaves[] = "# Replication\r\nrole:slave\r\nconnected_slaves:0\r\n";
    const char *begin = server->replica ? slaves : masters;
    size_t len = strlen(begin);
    memcpy(info, begin, len);
    memcpy(info + len, "master_replid:", 14);
    memcpy(info + len + 14, server->replid, REDIS7_ID);
    len += 14 + REDIS7_ID;
    memcpy(info + len, "\r\nmaster_replid2:", 17);
    memset(info + len + 17, server->was_replica ? 'f' : '0', REDIS7_ID);
    memcpy(info + len + 17 + REDIS7_ID, "\r\n", 2);
    return len + 17 + REDIS7_ID + 2;
}

static const char *version_of(const struct redis7 *server)
{
    if (server->release_form == REDIS_DELIFEQ)
        return "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nserver_mode";
    return server->release_form == REDIS_DELEX ? "redis_version:8.6.3\r\nredis_mode"
                                               : "redis_version:7.0.15\r\nredis_mode";
}

static void run_info(const struct run *run)
{
    const struct redis7 *server = run->server;
    const struct word *section = &run->words[1];
    char info[320];
    size_t len = 0;
    if (is(section, "replication"))
        len = write_replication(server, info);
    else if (is(section, "server"))
        len = (size_t)snprintf(info, sizeof(info), "# Server\r\n%s:standalone\r\nrun_id:%s\r\n",
                               version_of(server), server->run_id);
    else if (is(section, "memory"))
        len = (size_t)snprintf(
            info, sizeof(info), "# Memory\r\nmaxmemory:%d\r\nmaxmemory_policy:%s\r\n",
            server->may_evict ? 1000000 : 0, server->may_evict ? "volatile-lru" : "noeviction");
    else if (is(section, "stats"))
        len = (size_t)snprintf(info, sizeof(info), "# Stats\r\nevicted_keys:%" PRId64 "\r\n",
                               server->evicted);
    put_string(run->out, info, len);
}

/* CONFIG GET, of the three by which it saves. */
static void run_config(const struct run *run)
{
    const struct word *name = &run->words[2];
    const char *value = "no";
    if (is(name, "appendonly"))
        value = run->server->saves ? "yes" : "no";
    else if (is(name, "appendfsync"))
        value = "always";
    put(run->out, "*2\r\n");
    put_string(run->out, name->at, name->len);
    put_string(run->out, value, strlen(value));
}

static void run_script_load(const struct run *run)
{
    for (unsigned i = 0; i < REDIS_SCRIPT_COUNT; i++)
        if (is(&run->words[2], redis_script_text(i))) {
            run->server->scripts[i] = !run->server->deaf_to_scripts;
            put_string(run->out, redis_script_sha1(i), LIMIT_TOKEN);
            return;
        }
    assert(false && "redlockd loads its own scripts only");
}

static void run_client(const struct run *run)
{
    struct redis7_session *session = run->session;
    const struct word *what = &run->words[1];
    if (is(what, "ID")) {
        put_number(run->out, ':', session->id);
        return;
    }
    if (is(what, "KILL")) {
        struct redis7_session *victim = redis7_session(run->server, number(&run->words[3]));
        if (victim != NULL)
            victim->killed = true;
        put_number(run->out, ':', victim != NULL);
        return;
    }
    if (is(what, "TRACKING")) {
        if (run->server->untracked) {
            put(run->out,
                "-ERR Unknown subcommand or wrong number of arguments for 'TRACKING'\r\n");
            return;
        }
        if (redis7_session(run->server, number(&run->words[4])) == NULL) {
            put(run->out, "-ERR The client ID you want redirect to does not exist\r\n");
            return;
        }
        session->tracking = true;
        session->redirect = number(&run->words[4]);
    } else if (is(what, "CACHING")) {
        if (!session->tracking) {
            put(run->out, "-ERR CLIENT CACHING can be called only when the client is in tracking "
                          "mode with OPTIN or OPTOUT mode enabled\r\n");
            return;
        }
        session->caching = true;
    }
    put(run->out, "+OK\r\n");
}

static void run_subscribe(const struct run *run)
{
    run->session->subscribed = true;
    put(run->out, "*3\r\n$9\r\nsubscribe\r\n");
    put_string(run->out, run->words[1].at, run->words[1].len);
    put(run->out, ":1\r\n");
}

static void run_ping(const struct run *run)
{
    put(run->out, run->session->subscribed ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
}

/* What is refused while it loads its data, and what in trouble: both are about keys. */
enum { REFUSED_LOADING = 1, REFUSED_IN_TROUBLE = 2 };

static const struct {
    const char *word;
    void (*run)(const struct run *);
    unsigned refused;
} commands[] = {
    {"GET", run_get, REFUSED_LOADING},
    {"TIME", run_time, 0},
    {"INFO", run_info, 0},
    {"EVALSHA", run_eval, REFUSED_LOADING | REFUSED_IN_TROUBLE},
    {"SET", run_set, REFUSED_LOADING | REFUSED_IN_TROUBLE},
    {"DELIFEQ", run_delifeq, REFUSED_LOADING | REFUSED_IN_TROUBLE},
    {"DELEX", run_delex, REFUSED_LOADING | REFUSED_IN_TROUBLE},
    {"EVAL", run_eval, REFUSED_LOADING | REFUSED_IN_TROUBLE},
    {"CLIENT", run_client, 0},
    {"CONFIG", run_config, 0},
    {"PING", run_ping, REFUSED_LOADING},
    {"SCRIPT", run_script_load, REFUSED_LOADING},
    {"SUBSCRIBE", run_subscribe, 0},
};

static void execute(const struct run *run)
{
    struct redis7 *server = run->server;
    server->commands++;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!is(&run->words[0], commands[i].word))
            continue;
        if (server->loading && (commands[i].refused & REFUSED_LOADING)) {
            put(run->out, "-LOADING Redis is loading the dataset in memory\r\n");
        } else if (server->trouble[0] != '\0' && (commands[i].refused & REFUSED_IN_TROUBLE)) {
            put(run->out, "-");
            put(run->out, server->trouble);
            put(run->out, "\r\n");
        } else {
            /* CACHING is for the one command behind it, whatever comes of that. */
            bool was_caching = run->session->caching;
            commands[i].run(run);
            if (was_caching)
                run->session->caching = false;
            return;
        }
        run->session->caching = false;
        return;
    }
    assert(false && "redlockd sends nothing else");
}

/* The number behind this byte, up to its CR LF; *at is moved behind that. False: not all there. */
static bool take_number(const char **at, const char *end, char kind, size_t *value)
{
    const char *lf = memchr(*at, '\n', (size_t)(end - *at));
    if (lf == NULL)
        return false;
    assert(**at == kind && lf[-1] == '\r');
    *value = (size_t)number_of_text(*at + 1, (size_t)(lf - *at - 2));
    *at = lf + 1;
    return true;
}

/* One command "*2\r\n$3\r\nGET..." at the start of these bytes: how long it is, 0 if it is not all
 * there. */
static size_t parse(const char *bytes, size_t len, struct word *words, unsigned *count)
{
    const char *at = bytes;
    const char *end = bytes + len;
    size_t word_count;
    if (len == 0 || !take_number(&at, end, '*', &word_count))
        return 0;
    assert(word_count > 0 && word_count <= REDIS7_WORDS);
    for (size_t i = 0; i < word_count; i++) {
        if (at == end || !take_number(&at, end, '$', &words[i].len))
            return 0;
        if ((size_t)(end - at) < words[i].len + 2)
            return 0;
        words[i].at = at;
        at += words[i].len + 2;
    }
    *count = (unsigned)word_count;
    return (size_t)(at - bytes);
}

void redis7_serve(struct redis7 *server, struct redis7_session *session, int64_t now_us)
{
    struct word words[REDIS7_WORDS];
    struct run run = {
        .server = server,
        .session = session,
        .words = words,
        .now_us = now_us,
        .now_ms = now_us / 1000,
        .out = &session->output,
    };
    size_t len;
    while (!session->killed && (len = parse(bytes_at(&session->input), bytes_len(&session->input),
                                            words, &run.count)) > 0) {
        execute(&run);
        bytes_take(&session->input, len);
    }
}

/* --- what befalls it --- */

static void make_id(char *id, uint64_t number_of_it)
{
    snprintf(id, REDIS7_ID + 1, "%040" PRIx64, number_of_it);
}

void redis7_start(struct redis7 *server, uint64_t number_of_it)
{
    server->data.count = 0;
    make_id(server->run_id, number_of_it);
    make_id(server->replid, number_of_it + 1);
    server->replica = server->was_replica = false;
    server->evicted = 0;
    server->trouble[0] = '\0';
    memset(server->scripts, 0, sizeof(server->scripts));
    server->last_session = 2;
    server->tracked_count = 0;
}

struct redis7_session *redis7_accept(struct redis7 *server)
{
    for (unsigned i = 0; i < REDIS7_SESSIONS; i++) {
        struct redis7_session *session = &server->sessions[i];
        if (session->id != 0)
            continue;
        if (i >= server->session_end)
            server->session_end = i + 1;
        struct bytes input = session->input;
        struct bytes output = session->output;
        bytes_clear(&input);
        bytes_clear(&output);
        *session =
            (struct redis7_session){.id = ++server->last_session, .input = input, .output = output};
        return session;
    }
    return NULL;
}

struct redis7_session *redis7_session(struct redis7 *server, int64_t id)
{
    for (unsigned i = 0; i < server->session_end; i++)
        if (id != 0 && server->sessions[i].id == id)
            return &server->sessions[i];
    return NULL;
}

void redis7_close(struct redis7 *server, struct redis7_session *session)
{
    for (unsigned i = 0; i < server->tracked_count; i++)
        if (server->tracked[i].session == session->id) {
            server->tracked[i] = server->tracked[--server->tracked_count];
            i--;
        }
    session->id = 0;
}

void redis7_close_all(struct redis7 *server)
{
    for (unsigned i = 0; i < server->session_end; i++)
        server->sessions[i].id = 0;
    server->session_end = 0;
    server->tracked_count = 0;
}

void redis7_cron(struct redis7 *server, int64_t now_us)
{
    for (unsigned i = 0; i < server->data.count; i++)
        if (now_us / 1000 > server->data.keys[i].ends_ms) {
            delete_key(server, &server->data.keys[i]);
            i--;
        }
}

void redis7_flush(struct redis7 *server)
{
    server->data.count = 0;
    invalidate_all(server);
}

bool redis7_evict(struct redis7 *server, unsigned number_of_it)
{
    unsigned volatile_keys = 0;
    for (unsigned i = 0; i < server->data.count; i++)
        volatile_keys += server->data.keys[i].ends_ms != INT64_MAX;
    if (volatile_keys == 0)
        return false;
    unsigned left = number_of_it % volatile_keys;
    for (unsigned i = 0; i < server->data.count; i++)
        if (server->data.keys[i].ends_ms != INT64_MAX && left-- == 0) {
            server->evicted++;
            delete_key(server, &server->data.keys[i]);
            return true;
        }
    return false;
}

void redis7_flush_scripts(struct redis7 *server)
{
    memset(server->scripts, 0, sizeof(server->scripts));
}

void redis7_new_replid(struct redis7 *server, uint64_t number_of_it)
{
    server->was_replica = true;
    make_id(server->replid, number_of_it);
}
