/* Shared by the files of the fake master: a command that is being executed, its words, the keys and
 * the replies. */
#ifndef TESTS_FAKE_MASTER_PARTS_H
#define TESTS_FAKE_MASTER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fake/bytes.h"
#include "tests/fake/master.h"

/* A word of a command; its bytes are in the input of the session. */
struct word {
    const char *at;
    size_t len;
};

/* A command that is being executed. */
struct run {
    struct fake_master *server;
    struct fake_session *session;
    const struct word *words;
    unsigned count;
    int64_t now_us;
    int64_t now_ms;
    struct bytes *out;
};

bool word_is(const struct word *word, const char *text);
bool word_same(const struct word *one, const struct word *other);
int64_t word_number(const struct word *word);

/* Append the text unchanged: RESP with its type byte and CR LF. */
void out_text(struct bytes *out, const char *text);
/* Append a number as RESP; `kind` is the type byte. */
void out_number(struct bytes *out, char kind, int64_t value);
/* Append a bulk string. */
void out_string(struct bytes *out, const char *text, size_t len);
void out_nil(struct bytes *out);

/* Returns NULL if the key does not exist or has expired. Deletes an expired key. */
struct fake_key *key_find(const struct run *run, const struct word *name);
bool key_holds(const struct fake_key *key, const struct word *token);
int64_t key_number(const struct fake_key *key);
/* The remaining TTL in ms; -1: without expiry. */
int64_t key_pttl(const struct run *run, const struct fake_key *key);
/* ttl_ms 0: without expiry. */
void key_set(const struct run *run, const struct word *name, const struct word *value,
             int64_t ttl_ms);
void key_set_text(const struct run *run, const struct word *name, const char *value, size_t len,
                  int64_t ttl_ms);
void key_live_until(const struct run *run, struct fake_key *key, int64_t ends_ms);
void key_delete(struct fake_master *server, struct fake_key *key);

/* Report the next change of the key, and only that one, to the client of this command. */
void key_track(const struct run *run, const struct word *key);
/* Report to all tracking clients that all keys have changed. */
void keys_invalidate_all(struct fake_master *server);

/* Is the command refused? If so, the function has written the error. */
bool run_is_refused(const struct run *run, unsigned refusal);
/* Does FAKE_DELETING forbid to delete this key? */
bool key_is_protected(const struct fake_master *server, const struct fake_key *key);

/* False: the command has to wait, because the master is paused. */
bool fake_execute(const struct run *run);
/* EVAL and EVALSHA. */
void fake_run_eval(const struct run *run);

#endif
