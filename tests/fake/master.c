#include "tests/fake/master.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tests/fake/master_parts.h"

/* Parse the number after the byte `kind`, up to its CR LF, and move *at after it. False:
 * incomplete. */
static bool take_number(const char **at, const char *end, char kind, size_t *value)
{
    const char *lf = memchr(*at, '\n', (size_t)(end - *at));
    if (lf == NULL)
        return false;
    assert(**at == kind && lf[-1] == '\r');
    const struct word digits = {*at + 1, (size_t)(lf - *at - 2)};
    *value = (size_t)word_number(&digits);
    *at = lf + 1;
    return true;
}

/* Parse one command such as "*2\r\n$3\r\nGET..." at the start of the bytes. Returns its length, 0
 * if it is incomplete. */
static size_t parse(const char *bytes, size_t len, struct word *words, unsigned *count)
{
    const char *at = bytes;
    const char *end = bytes + len;
    size_t word_count;
    if (len == 0 || !take_number(&at, end, '*', &word_count))
        return 0;
    assert(word_count > 0 && word_count <= FAKE_WORDS);
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

bool fake_serve_one(struct fake_master *server, struct fake_session *session, int64_t now_us)
{
    struct word words[FAKE_WORDS];
    struct run run = {
        .server = server,
        .session = session,
        .words = words,
        .now_us = now_us,
        .now_ms = now_us / 1000,
        .out = &session->output,
    };
    size_t len = session->killed ? 0
                                 : parse(bytes_at(&session->input), bytes_len(&session->input),
                                         words, &run.count);
    if (len == 0 || !fake_execute(&run))
        return false;
    bytes_take(&session->input, len);
    return true;
}

void fake_serve(struct fake_master *server, struct fake_session *session, int64_t now_us)
{
    while (fake_serve_one(server, session, now_us))
        continue;
}

/* --- faults and restarts --- */

static void make_id(char *id, uint64_t number_of_it)
{
    snprintf(id, FAKE_ID + 1, "%040" PRIx64, number_of_it);
}

void fake_start(struct fake_master *server, uint64_t number_of_it)
{
    server->data.count = 0;
    make_id(server->run_id, number_of_it);
    server->begun_us = 0;
    make_id(server->replid, number_of_it + 1);
    server->replica = server->was_replica = false;
    server->evicted = 0;
    server->refusals[FAKE_KEYS] = NULL;
    server->paused = false;
    memset(server->scripts, 0, sizeof(server->scripts));
    server->last_session = 2;
    server->tracked_count = 0;
}

void fake_init(struct fake_master *server, uint64_t number_of_it)
{
    fake_close_all(server);
    memset(server->run_id, 0, sizeof(*server) - offsetof(struct fake_master, run_id));
    fake_start(server, number_of_it);
}

void fake_free(struct fake_master *server)
{
    fake_close_all(server);
    for (unsigned i = 0; i < FAKE_SESSIONS; i++) {
        bytes_free(&server->sessions[i].input);
        bytes_free(&server->sessions[i].output);
    }
}

struct fake_session *fake_accept(struct fake_master *server)
{
    for (unsigned i = 0; i < FAKE_SESSIONS; i++) {
        struct fake_session *session = &server->sessions[i];
        if (session->id != 0)
            continue;
        if (i >= server->session_end)
            server->session_end = i + 1;
        struct bytes input = session->input;
        struct bytes output = session->output;
        bytes_clear(&input);
        bytes_clear(&output);
        *session =
            (struct fake_session){.id = ++server->last_session, .input = input, .output = output};
        return session;
    }
    return NULL;
}

struct fake_session *fake_session(struct fake_master *server, int64_t id)
{
    for (unsigned i = 0; i < server->session_end; i++)
        if (id != 0 && server->sessions[i].id == id)
            return &server->sessions[i];
    return NULL;
}

void fake_close(struct fake_master *server, struct fake_session *session)
{
    for (unsigned i = 0; i < server->tracked_count; i++)
        if (server->tracked[i].session == session->id) {
            server->tracked[i] = server->tracked[--server->tracked_count];
            i--;
        }
    session->id = 0;
}

void fake_close_all(struct fake_master *server)
{
    for (unsigned i = 0; i < server->session_end; i++)
        server->sessions[i].id = 0;
    server->session_end = 0;
    server->tracked_count = 0;
}

void fake_cron(struct fake_master *server, int64_t now_us)
{
    for (unsigned i = 0; i < server->data.count; i++)
        if (now_us / 1000 > server->data.keys[i].ends_ms) {
            key_delete(server, &server->data.keys[i]);
            i--;
        }
}

/* For commands that no client sends. */
static struct run run_at(struct fake_master *server, int64_t now_us)
{
    return (struct run){.server = server, .now_us = now_us, .now_ms = now_us / 1000};
}

void fake_set(struct fake_master *server, const char *key, const char *value, int64_t ttl_ms,
              int64_t now_us)
{
    const struct run run = run_at(server, now_us);
    key_set_text(&run, &(struct word){key, strlen(key)}, value, strlen(value), ttl_ms);
}

void fake_delete(struct fake_master *server, const char *key, int64_t now_us)
{
    const struct run run = run_at(server, now_us);
    struct fake_key *found = key_find(&run, &(struct word){key, strlen(key)});
    if (found != NULL)
        key_delete(server, found);
}

void fake_flush(struct fake_master *server)
{
    server->data.count = 0;
    keys_invalidate_all(server);
}

bool fake_evict(struct fake_master *server, unsigned number_of_it)
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
            key_delete(server, &server->data.keys[i]);
            return true;
        }
    return false;
}

void fake_flush_scripts(struct fake_master *server)
{
    memset(server->scripts, 0, sizeof(server->scripts));
}

void fake_new_replid(struct fake_master *server, uint64_t number_of_it)
{
    server->was_replica = true;
    make_id(server->replid, number_of_it);
}
