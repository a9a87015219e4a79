/*
 * What the daemon answers -> one line of the protocol. Pure.
 */
#ifndef PROTOCOL_REPLY_H
#define PROTOCOL_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/outcome.h"
#include "protocol/reason.h"

/*
 * A reply to LOCK, UNLOCK, EXTEND or STATUS. Which fields count depends on the outcome; the others
 * are ignored. In this order it has 80 bytes, which are zeroed by a few moves and no loop.
 */
struct reply {
    enum outcome outcome;

    /* NOQUORUM: how many of node_count voted, how many are needed, and why others did not. */
    unsigned voting;
    unsigned quorum;
    unsigned node_count;
    const char *const *node_names;   /* node_count of them */
    const enum reason *node_reasons; /* REASON_NONE for those that voted */

    const char *token;   /* OK to LOCK and EXTEND: LIMIT_TOKEN digits; NULL for a bare OK */
    int64_t validity_ms; /* OK with a token */
    int64_t elapsed_ms;  /* OK with a token, LATE */
    int64_t fence;       /* OK to LOCK, "-" for 0; -1 to EXTEND, which has no such field */
    int64_t hint_ms;     /* HELD: time to live left, or -1 where unknown */
    const char *limit;   /* LIMIT: which bound was met, one word */
};

/*
 * Format a reply with its LF, preceded by "#tag " where tag is not NULL. Returns its length, at
 * most LIMIT_REPLY; buf holds LIMIT_REPLY bytes. No NUL is added.
 */
size_t reply_format(const struct reply *reply, const char *tag, size_t tag_len, char *buf);

/*
 * What a connection is told unasked about a lock that the daemon holds for it. The resource is a
 * view; the reason one word, preceded by "<node>:" where it is about a node.
 */
struct push {
    enum { PUSH_LOST, PUSH_WARN } kind;
    const char *resource;
    size_t resource_len;
    const char *token; /* LIMIT_TOKEN digits */
    const char *node;  /* its name, or NULL */
    const char *reason;
};

/* "! LOST <resource> <token> <reason>", likewise; it never has a tag. */
size_t reply_format_push(const struct push *push, char *buf);

/* "ERR <code> <text>", likewise. */
size_t reply_format_error(const char *code, const char *text, const char *tag, size_t tag_len,
                          char *buf);

/*
 * One line made of words somebody has put together already ("PONG", "END", a line of a listing),
 * likewise; what does not fit is cut.
 */
size_t reply_format_line(const char *text, size_t len, const char *tag, size_t tag_len, char *buf);

#endif
