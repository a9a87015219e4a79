#include "tests/fake/master_parts.h"

#include <assert.h>
#include <string.h>

/* --- words --- */

bool word_is(const struct word *word, const char *text)
{
    size_t len = strlen(text);
    return word->len == len && memcmp(word->at, text, len) == 0;
}

bool word_same(const struct word *one, const struct word *other)
{
    return one->len == other->len && memcmp(one->at, other->at, one->len) == 0;
}

int64_t word_number(const struct word *word)
{
    int64_t value = 0;
    bool negative = word->len > 0 && word->at[0] == '-';
    for (size_t i = negative; i < word->len && word->at[i] >= '0' && word->at[i] <= '9'; i++)
        value = 10 * value + (word->at[i] - '0');
    return negative ? -value : value;
}

/* --- replies --- */

void out_text(struct bytes *out, const char *text)
{
    bytes_add(out, text, strlen(text));
}

void out_number(struct bytes *out, char kind, int64_t value)
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

void out_string(struct bytes *out, const char *text, size_t len)
{
    out_number(out, '$', (int64_t)len);
    bytes_add(out, text, len);
    out_text(out, "\r\n");
}

void out_nil(struct bytes *out)
{
    out_text(out, "$-1\r\n");
}
/* --- keys --- */

static uint32_t hash_of(const char *text, size_t len)
{
    uint32_t hash = 2166136261;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619;
    return hash;
}

/* Report the change of the key to the clients that track the key, and end this tracking. */
static void invalidate(struct fake_master *server, const char *key, size_t key_len)
{
    for (unsigned i = 0; i < server->tracked_count; i++) {
        struct fake_tracked *tracked = &server->tracked[i];
        if (strlen(tracked->key) != key_len || memcmp(tracked->key, key, key_len) != 0)
            continue;
        struct fake_session *tracker = fake_session(server, tracked->session);
        struct fake_session *receiver =
            tracker != NULL ? fake_session(server, tracker->redirect) : NULL;
        if (receiver != NULL && receiver->subscribed) {
            out_text(&receiver->output,
                     "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n");
            out_string(&receiver->output, key, key_len);
        }
        *tracked = server->tracked[--server->tracked_count];
        i--;
    }
}

void keys_invalidate_all(struct fake_master *server)
{
    for (unsigned i = 0; i < server->session_end; i++) {
        const struct fake_session *tracker = &server->sessions[i];
        struct fake_session *receiver =
            tracker->id != 0 && tracker->tracking ? fake_session(server, tracker->redirect) : NULL;
        if (receiver != NULL && receiver->subscribed)
            out_text(&receiver->output,
                     "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*-1\r\n");
    }
    server->tracked_count = 0;
}

void key_track(const struct run *run, const struct word *key)
{
    struct fake_master *server = run->server;
    for (unsigned i = 0; i < server->tracked_count; i++)
        if (server->tracked[i].session == run->session->id && word_is(key, server->tracked[i].key))
            return;
    assert(server->tracked_count < FAKE_KEYS_MAX && key->len < FAKE_KEY);
    struct fake_tracked *tracked = &server->tracked[server->tracked_count++];
    memcpy(tracked->key, key->at, key->len);
    tracked->key[key->len] = '\0';
    tracked->session = run->session->id;
}

void key_delete(struct fake_master *server, struct fake_key *key)
{
    char name[FAKE_KEY];
    size_t len = key->len;
    memcpy(name, key->name, len);
    struct fake_key *last = &server->data.keys[--server->data.count];
    if (key != last)
        memcpy(key, last, sizeof(*key));
    invalidate(server, name, len);
}

static struct fake_key *find(struct fake_master *server, const char *name, size_t len,
                             int64_t now_ms)
{
    uint32_t hash = hash_of(name, len);
    for (unsigned i = 0; i < server->data.count; i++) {
        struct fake_key *key = &server->data.keys[i];
        if (key->hash != hash || key->len != len || memcmp(key->name, name, len) != 0)
            continue;
        if (now_ms <= key->ends_ms)
            return key;
        key_delete(server, key);
        return NULL;
    }
    return NULL;
}

const struct fake_key *fake_find(struct fake_master *server, const char *key, size_t key_len,
                                 int64_t now_us)
{
    return find(server, key, key_len, now_us / 1000);
}

struct fake_key *key_find(const struct run *run, const struct word *name)
{
    return find(run->server, name->at, name->len, run->now_ms);
}

static void notify_watcher(const struct fake_master *server, const struct fake_key *key)
{
    if (server->on_set != NULL)
        server->on_set(server->watcher, key->name, key->len, key->value, key->value_len,
                       key->ends_ms);
}

void key_set_text(const struct run *run, const struct word *name, const char *value, size_t len,
                  int64_t ttl_ms)
{
    struct fake_master *server = run->server;
    struct fake_key *key = key_find(run, name);
    if (key == NULL) {
        assert(server->data.count < FAKE_KEYS_MAX && name->len < FAKE_KEY);
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
    notify_watcher(server, key);
}

void key_set(const struct run *run, const struct word *name, const struct word *value,
             int64_t ttl_ms)
{
    key_set_text(run, name, value->at, value->len, ttl_ms);
}

void key_live_until(const struct run *run, struct fake_key *key, int64_t ends_ms)
{
    key->ends_ms = ends_ms;
    invalidate(run->server, key->name, key->len);
    notify_watcher(run->server, key);
}

int64_t key_number(const struct fake_key *key)
{
    return word_number(&(struct word){key->value, key->value_len});
}

int64_t key_pttl(const struct run *run, const struct fake_key *key)
{
    return key->ends_ms == INT64_MAX ? -1 : key->ends_ms - run->now_ms;
}

bool key_holds(const struct fake_key *key, const struct word *token)
{
    return key->value_len == token->len && memcmp(key->value, token->at, token->len) == 0;
}

bool run_is_refused(const struct run *run, unsigned refusal)
{
    const char *error = run->server->refusals[refusal];
    if (error == NULL)
        return false;
    out_text(run->out, "-");
    out_text(run->out, error);
    out_text(run->out, "\r\n");
    return true;
}

bool key_is_protected(const struct fake_master *server, const struct fake_key *key)
{
    const char *kept = server->kept_key;
    if (server->refusals[FAKE_DELETING] == NULL)
        return false;
    return kept == NULL || (strlen(kept) == key->len && memcmp(kept, key->name, key->len) == 0);
}
