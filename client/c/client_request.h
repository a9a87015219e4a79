/*
 * What a program asks of the daemon: checked before anything is sent, and put as a line. Pure.
 */
#ifndef CLIENT_C_CLIENT_QUESTION_H
#define CLIENT_C_CLIENT_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/c/redlock.h"
#include "protocol/limits.h"
#include "protocol/text.h"

/* The longest durations that are taken, so that no sum of them overflows; no daemon allows a ttl
 * that is anywhere near. */
#define CLIENT_REQUEST_TTL_MAX_MS     INT64_C(999999999999)
#define CLIENT_REQUEST_TIMEOUT_MAX_MS INT64_C(999999999999)

enum client_request_kind {
    CLIENT_REQUEST_ACQUIRE,
    CLIENT_REQUEST_EXTEND,
    CLIENT_REQUEST_RELEASE,
    CLIENT_REQUEST_QUERY,
    CLIENT_REQUEST_BREAK,
    CLIENT_REQUEST_PING,
    CLIENT_REQUEST_PLACE,
    CLIENT_REQUEST_LIST,    /* answered by lines, then END */
    CLIENT_REQUEST_VERSION, /* answered by one line */
};

struct client_request {
    enum client_request_kind kind;
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

/* They fill a request of their kind; false: the error says what would be right. */
bool client_request_acquire(struct client_request *request, const char *resource, int64_t ttl_ms,
                            const struct redlock_lock_options *options, struct error *error);
bool client_request_extend(struct client_request *request, const struct redlock_lock *lock,
                           int64_t ttl_ms, struct error *error);
bool client_request_release(struct client_request *request, const char *resource, const char *token,
                            struct error *error);
/* QUERY, BREAK or PLACE. */
bool client_request_about(struct client_request *request, enum client_request_kind kind,
                          const char *resource, struct error *error);
/* "NODES", "LOCKS deploy", "VERSION". */
bool client_request_list(struct client_request *request, const char *listing, struct error *error);

bool client_request_label_is_fine(const char *label);
bool client_request_secret_is_fine(const char *secret);

/* The line, its tag and LF included; no NUL is added. Returns its length. */
enum { CLIENT_REQUEST_LINE = 512 };
size_t client_request_format(const struct client_request *request, uint64_t id,
                             char buf[CLIENT_REQUEST_LINE]);

/* The line that names the connection; its tag is CLIENT_REQUEST_NAMING. */
#define CLIENT_REQUEST_NAMING "name"
size_t client_request_format_name(const char *label, char buf[CLIENT_REQUEST_LINE]);

/* The line that says who we are, likewise. */
#define CLIENT_REQUEST_SECRET "auth"
size_t client_request_format_secret(const char *secret, char buf[CLIENT_REQUEST_LINE]);

#endif
