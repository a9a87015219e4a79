#include "tests/fake/master_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/redis.h"

static const char *version_of(const struct fake_master *server)
{
    return server->version != NULL ? server->version : "redis_version:7.0.15";
}

/* DELIFEQ <key> <token> of Valkey, DELEX <key> IFEQ <token> of Redis. */
static void compare_and_delete(const struct run *run, enum redis_form form,
                               const struct word *token)
{
    struct fake_key *key = key_find(run, &run->words[1]);
    bool ours = key != NULL && key_holds(key, token);
    run->server->native++;
    if (redis_release_form(version_of(run->server), strlen(version_of(run->server))) != form) {
        out_text(run->out, "-ERR unknown command\r\n");
        return;
    }
    if (run_is_refused(run, FAKE_NATIVE) ||
        (ours && key_is_protected(run->server, key) && run_is_refused(run, FAKE_DELETING)))
        return;
    if (ours)
        key_delete(run->server, key);
    out_number(run->out, ':', ours);
}

static void run_delifeq(const struct run *run)
{
    compare_and_delete(run, REDIS_DELIFEQ, &run->words[2]);
}

static void run_delex(const struct run *run)
{
    compare_and_delete(run, REDIS_DELEX, &run->words[3]);
}

static void run_get(const struct run *run)
{
    const struct fake_key *key = key_find(run, &run->words[1]);
    if (key == NULL)
        out_nil(run->out);
    else
        out_string(run->out, key->value, key->value_len);
    if (run->session->caching && run->session->tracking)
        key_track(run, &run->words[1]);
}

/* SET <key> <value> [NX | XX] [PX <ttl>] */
static void run_set(const struct run *run)
{
    bool only_missing = run->count > 3 && word_is(&run->words[3], "NX");
    bool only_there = run->count > 3 && word_is(&run->words[3], "XX");
    bool expires = run->count > 4 && word_is(&run->words[run->count - 2], "PX");
    run->server->lock_commands += only_missing;
    if (run_is_refused(run, FAKE_SETTING))
        return;
    if (key_find(run, &run->words[1]) != NULL ? only_missing : only_there) {
        out_nil(run->out);
        return;
    }
    key_set(run, &run->words[1], &run->words[2],
            expires ? word_number(&run->words[run->count - 1]) : 0);
    out_text(run->out, "+OK\r\n");
}

/* Append a number as a bulk string. */
static void out_digits(struct bytes *out, int64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    out_string(out, digits + at, sizeof(digits) - at);
}

static void run_time(const struct run *run)
{
    out_text(run->out, "*2\r\n");
    out_digits(run->out, run->now_us / 1000000);
    out_digits(run->out, run->now_us % 1000000);
}

/* INFO replication, formatted by hand for speed, because each probe of the guard requests it. */
static size_t write_replication(const struct fake_master *server, char *info)
{
    static const char masters[] = "# Replication\r\nrole:master\r\nconnected_slaves:";
    static const char slaves[] = "# Replication\r\nrole:slave\r\nconnected_slaves:";
    const char *begin = server->replica ? slaves : masters;
    size_t len = strlen(begin);
    memcpy(info, begin, len);
    info[len++] = (char)('0' + server->replicas);
    memcpy(info + len, "\r\nmaster_replid:", 16);
    memcpy(info + len + 16, server->replid, FAKE_ID);
    len += 16 + FAKE_ID;
    memcpy(info + len, "\r\nmaster_replid2:", 17);
    memset(info + len + 17, server->was_replica ? 'f' : '0', FAKE_ID);
    memcpy(info + len + 17 + FAKE_ID, "\r\n", 2);
    return len + 17 + FAKE_ID + 2;
}

static void run_info(const struct run *run)
{
    struct fake_master *server = run->server;
    const struct word *section = &run->words[1];
    char info[320];
    size_t len = 0;
    if (word_is(section, "replication"))
        len = write_replication(server, info);
    else if (word_is(section, "server")) {
        if (server->begun_us == 0)
            server->begun_us = run->now_us;
        len = (size_t)snprintf(info, sizeof(info),
                               "# Server\r\n%s\r\n%s:%s\r\nrun_id:%s\r\n"
                               "uptime_in_seconds:%" PRId64 "\r\n",
                               version_of(server),
                               strstr(version_of(server), "valkey") != NULL ? "server_mode"
                                                                            : "redis_mode",
                               server->clustered ? "cluster" : "standalone", server->run_id,
                               (run->now_us - server->begun_us) / 1000000);
    } else if (word_is(section, "memory"))
        len = (size_t)snprintf(
            info, sizeof(info), "# Memory\r\nmaxmemory:%d\r\nmaxmemory_policy:%s\r\n",
            server->may_evict ? 1000000 : 0, server->may_evict ? "volatile-lru" : "noeviction");
    else if (word_is(section, "stats"))
        len = (size_t)snprintf(info, sizeof(info), "# Stats\r\nevicted_keys:%" PRId64 "\r\n",
                               server->evicted);
    out_string(run->out, info, len);
}

/* CONFIG GET of the three persistence settings. */
static void run_config(const struct run *run)
{
    const struct word *name = &run->words[2];
    const char *value = "no";
    if (word_is(name, "appendonly"))
        value = run->server->fsync != NULL ? "yes" : "no";
    else if (word_is(name, "appendfsync"))
        value = run->server->fsync != NULL ? run->server->fsync : "always";
    out_text(run->out, "*2\r\n");
    out_string(run->out, name->at, name->len);
    out_string(run->out, value, strlen(value));
}

static void run_script_load(const struct run *run)
{
    for (unsigned i = 0; i < REDIS_SCRIPT_COUNT; i++)
        if (word_is(&run->words[2], redis_script_text(i))) {
            run->server->scripts[i] = !run->server->scripts_flushed;
            out_string(run->out, redis_script_sha1(i), LIMIT_TOKEN);
            return;
        }
    assert(false && "redlockd loads its own scripts only");
}

static void run_client(const struct run *run)
{
    struct fake_session *session = run->session;
    const struct word *what = &run->words[1];
    if (word_is(what, "ID")) {
        out_number(run->out, ':', session->id);
        return;
    }
    if (word_is(what, "KILL")) {
        struct fake_session *victim = fake_session(run->server, word_number(&run->words[3]));
        if (victim != NULL)
            victim->killed = true;
        out_number(run->out, ':', victim != NULL);
        return;
    }
    if (word_is(what, "TRACKING")) {
        if (run_is_refused(run, FAKE_TRACKING))
            return;
        if (fake_session(run->server, word_number(&run->words[4])) == NULL) {
            out_text(run->out, "-ERR The client ID you want redirect to does not exist\r\n");
            return;
        }
        session->tracking = true;
        session->redirect = word_number(&run->words[4]);
    } else if (word_is(what, "CACHING")) {
        if (run->server->refusals[FAKE_TRACKING] != NULL) {
            out_text(run->out, "-NOPERM this user has no permissions\r\n");
            return;
        }
        if (!session->tracking) {
            out_text(run->out,
                     "-ERR CLIENT CACHING can be called only when the client is in tracking "
                     "mode with OPTIN or OPTOUT mode enabled\r\n");
            return;
        }
        session->caching = true;
    }
    out_text(run->out, "+OK\r\n");
}

static void run_subscribe(const struct run *run)
{
    run->session->subscribed = true;
    out_text(run->out, "*3\r\n$9\r\nsubscribe\r\n");
    out_string(run->out, run->words[1].at, run->words[1].len);
    out_text(run->out, ":1\r\n");
}

static void run_ping(const struct run *run)
{
    out_text(run->out, run->session->subscribed ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
}

static const struct {
    const char *word;
    void (*run)(const struct run *);
    unsigned refusal; /* the classes from this one to FAKE_LOADING apply; FAKE_REFUSALS: none */
} commands[] = {
    {"GET", run_get, FAKE_LOADING},
    {"TIME", run_time, FAKE_REFUSALS},
    {"INFO", run_info, FAKE_REFUSALS},
    {"EVALSHA", fake_run_eval, FAKE_KEYS},
    {"SET", run_set, FAKE_KEYS},
    {"DELIFEQ", run_delifeq, FAKE_KEYS},
    {"DELEX", run_delex, FAKE_KEYS},
    {"EVAL", fake_run_eval, FAKE_KEYS},
    {"CLIENT", run_client, FAKE_REFUSALS},
    {"CONFIG", run_config, FAKE_REFUSALS},
    {"PING", run_ping, FAKE_LOADING},
    {"SCRIPT", run_script_load, FAKE_LOADING},
    {"SUBSCRIBE", run_subscribe, FAKE_REFUSALS},
};

/* Is the command refused by one of the classes from `first` on? The class FAKE_LOADING comes first,
 * because Redis reports it before all other errors. */
static bool is_refused(const struct run *run, unsigned first)
{
    for (unsigned refusal = FAKE_LOADING; refusal >= first; refusal--)
        if (run_is_refused(run, refusal))
            return true;
    return false;
}

bool fake_execute(const struct run *run)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!word_is(&run->words[0], commands[i].word))
            continue;
        if (run->server->paused && commands[i].refusal == FAKE_KEYS)
            return false;
        /* CLIENT CACHING applies to the next command only, whether or not that command succeeds. */
        bool was_caching = run->session->caching;
        bool refused = is_refused(run, commands[i].refusal);
        if (!refused)
            commands[i].run(run);
        if (refused || was_caching)
            run->session->caching = false;
        return true;
    }
    assert(false && "redlockd sends nothing else");
    return false;
}
