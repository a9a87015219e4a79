/*
 * What a program asks of the daemon: checked before anything is sent, and put as a line. Pure.
 */
#ifndef CLIENT_C_QUESTION_H
#define CLIENT_C_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/c/redlock.h"
#include "protocol/limits.h"
#include "protocol/text.h"

/* The longest durations that are taken, so that no sum of them overflows; no daemon allows a ttl
 * that is anywhere near. */
#define QUESTION_TTL_MAX_MS     INT64_C(999999999999)
#define QUESTION_TIMEOUT_MAX_MS INT64_C(999999999999)

enum question_kind {
    QUESTION_ACQUIRE,
    QUESTION_EXTEND,
    QUESTION_RELEASE,
    QUESTION_QUERY,
    QUESTION_BREAK,
    QUESTION_PING,
    QUESTION_PLACE,
    QUESTION_LIST,    /* answered by lines, then END */
    QUESTION_VERSION, /* answered by one line */
};

struct question {
    enum question_kind kind;
    char resource[LIMIT_RESOURCE + 1]; /* "" for a listing of all, and where there is none */
    char token[LIMIT_TOKEN + 1];       /* EXTEND, RELEASE */
    const char *listing;               /* LIST: its verb, static */
    int64_t ttl_ms;                    /* ACQUIRE, EXTEND */
    int64_t wait_ms;                   /* ACQUIRE */
    bool fence;
    bool hold;
    bool linger;
    struct redlock_lock earlier; /* EXTEND: as it was */
};

/* They fill a question of their kind; false: the error says what would be right. */
bool question_acquire(struct question *question, const char *resource, int64_t ttl_ms,
                      const struct redlock_lock_options *options, struct error *error);
bool question_extend(struct question *question, const struct redlock_lock *lock, int64_t ttl_ms,
                     struct error *error);
bool question_release(struct question *question, const char *resource, const char *token,
                      struct error *error);
/* QUERY, BREAK or PLACE. */
bool question_about(struct question *question, enum question_kind kind, const char *resource,
                    struct error *error);
/* "NODES", "LOCKS deploy", "VERSION". */
bool question_list(struct question *question, const char *listing, struct error *error);

bool question_label_is_fine(const char *label);
bool question_secret_is_fine(const char *secret);

/* The line, its tag and LF included; no NUL is added. Returns its length. */
enum { QUESTION_LINE = 512 };
size_t question_format(const struct question *question, uint64_t id, char buf[QUESTION_LINE]);

/* The line that names the connection; its tag is QUESTION_NAMING. */
#define QUESTION_NAMING "name"
size_t question_format_name(const char *label, char buf[QUESTION_LINE]);

/* The line that says who we are, likewise. */
#define QUESTION_SECRET "auth"
size_t question_format_secret(const char *secret, char buf[QUESTION_LINE]);

#endif
