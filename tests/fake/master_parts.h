/*
 * What the files of the fake master share: a command at work, its words, the keys and the answers.
 */
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

/* One command at work. */
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

/* As they are: what is no string of Redis has its mark and its line end in it. */
void out_text(struct bytes *out, const char *text);
void out_number(struct bytes *out, char kind, int64_t value);
void out_string(struct bytes *out, const char *text, size_t len);
void out_nil(struct bytes *out);

/* NULL: there is none, or it has just expired. */
struct fake_key *key_find(const struct run *run, const struct word *name);
bool key_holds(const struct fake_key *key, const struct word *token);
int64_t key_number(const struct fake_key *key);
/* -1: it lives for ever. */
int64_t key_pttl(const struct run *run, const struct fake_key *key);
/* ttl_ms 0: it lives for ever. */
void key_set(const struct run *run, const struct word *name, const struct word *value,
             int64_t ttl_ms);
void key_set_text(const struct run *run, const struct word *name, const char *value, size_t len,
                  int64_t ttl_ms);
void key_live_until(const struct run *run, struct fake_key *key, int64_t ends_ms);
void key_delete(struct fake_master *server, struct fake_key *key);

/* Whoever tracks a key hears of each change once. */
void key_track(const struct run *run, const struct word *key);
void keys_invalidate_all(struct fake_master *server);

/* Is this refused? Then the error has been answered. */
bool run_is_refused(const struct run *run, unsigned refusal);
/* Must it not be deleted? */
bool key_is_kept(const struct fake_master *server, const struct fake_key *key);

void fake_execute(const struct run *run);
/* EVAL and EVALSHA. */
void fake_run_eval(const struct run *run);

#endif
