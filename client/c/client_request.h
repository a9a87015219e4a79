/*
 * Requests to the daemon: checks their arguments and formats them as lines. Pure.
 */
#ifndef CLIENT_C_CLIENT_REQUEST_H
#define CLIENT_C_CLIENT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/c/redlock.h"
#include "protocol/limits.h"
#include "protocol/text.h"

/* Limits of the arguments, so that no sum of durations overflows. They are far above any TTL that a
 * daemon allows. */
#define CLIENT_REQUEST_TTL_MAX_MS     INT64_C(999999999999)
#define CLIENT_REQUEST_TIMEOUT_MAX_MS INT64_C(999999999999)

enum client_request_kind {
    CLIENT_REQUEST_ACQUIRE,
    CLIENT_REQUEST_EXTEND,
    CLIENT_REQUEST_RELEASE,
    CLIENT_REQUEST_QUERY,
    CLIENT_REQUEST_BREAK,
    CLIENT_REQUEST_PING,
    CLIENT_REQUEST_PLACE,   /* LOCKS <resource>, for the place in the queue */
    CLIENT_REQUEST_LIST,    /* the answer is a list of lines, then END */
    CLIENT_REQUEST_VERSION, /* the answer is one line */
};

struct client_request {
    enum client_request_kind kind;
    char resource[LIMIT_RESOURCE + 1]; /* "" if the request names none */
    char token[LIMIT_TOKEN + 1];       /* EXTEND, RELEASE */
    const char *listing;               /* LIST: the verb, a static string */
    int64_t ttl_ms;                    /* ACQUIRE, EXTEND */
    int64_t wait_ms;                   /* ACQUIRE */
    unsigned slots;                    /* ACQUIRE, QUERY; 0: without SLOTS */
    bool fence;
    bool hold;
    bool linger;
    struct redlock_lock earlier; /* EXTEND: the lock before the extension */
};

/* Each function fills *request. False: an argument is invalid, and the error says what is
 * allowed. */
bool client_request_acquire(struct client_request *request, const char *resource, int64_t ttl_ms,
                            const struct redlock_lock_options *options, struct error *error);
bool client_request_extend(struct client_request *request, const struct redlock_lock *lock,
                           int64_t ttl_ms, struct error *error);
bool client_request_release(struct client_request *request, const char *resource, const char *token,
                            struct error *error);
bool client_request_query_slots(struct client_request *request, const char *resource,
                                unsigned slots, struct error *error);
/* kind: QUERY, BREAK or PLACE. */
bool client_request_about(struct client_request *request, enum client_request_kind kind,
                          const char *resource, struct error *error);
/* listing: such as "NODES", "LOCKS deploy" or "VERSION". */
bool client_request_list(struct client_request *request, const char *listing, struct error *error);

bool client_request_label_is_fine(const char *label);
bool client_request_secret_is_fine(const char *secret);

/* Formats the line with tag and LF, without a NUL. Returns its length. */
enum { CLIENT_REQUEST_LINE = 512 };
size_t client_request_format(const struct client_request *request, uint64_t id,
                             char buf[CLIENT_REQUEST_LINE]);

/* Formats the NAME line; its tag is CLIENT_REQUEST_NAMING. */
#define CLIENT_REQUEST_NAMING "name"
size_t client_request_format_name(const char *label, char buf[CLIENT_REQUEST_LINE]);

/* Formats the AUTH line; its tag is CLIENT_REQUEST_SECRET. */
#define CLIENT_REQUEST_SECRET "auth"
size_t client_request_format_secret(const char *secret, char buf[CLIENT_REQUEST_LINE]);

#endif
