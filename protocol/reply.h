/*
 * Formats replies and pushed messages, in the line protocol and in RESP. Pure.
 *
 * Each function writes to buf, which must hold LIMIT_REPLY bytes, and returns the length. No NUL is
 * added. A line that would be longer than LIMIT_REPLY is cut; it still ends with its LF. A line of
 * the line protocol begins with "#tag " unless tag is NULL. RESP has no tags.
 */
#ifndef PROTOCOL_REPLY_H
#define PROTOCOL_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/outcome.h"
#include "protocol/reason.h"
#include "protocol/resp_text.h"

/*
 * A reply to LOCK, UNLOCK, EXTEND, STATUS or BREAK. The outcome decides which fields are used. In
 * this order the struct has 96 bytes, which the compiler zeroes with a few moves and no loop.
 */
struct reply {
    enum outcome outcome;

    /* NOQUORUM: the masters that could vote, the number needed, and why the others could not. */
    unsigned voting;
    unsigned quorum;
    unsigned node_count;
    const char *const *node_names;   /* node_count entries */
    const enum reason *node_reasons; /* node_count entries; REASON_NONE for a voting master */

    const char *token;   /* OK to LOCK and EXTEND: LIMIT_TOKEN digits; NULL for OK alone */
    int64_t validity_ms; /* OK with token */
    int64_t elapsed_ms;  /* OK with token, LATE */
    int64_t fence;       /* OK with token: 0 is written as "-"; -1 (EXTEND) omits the field */
    int64_t hint_ms;     /* HELD: time before which no quorum can be free; -1 if unknown */
    const char *limit;   /* LIMIT: name of the limit, one word */

    const char *slot; /* OK to LOCK with SLOTS: the name of the granted slot; NULL omits it */
    uint16_t slot_len;
    uint16_t held;  /* FREE and HELD to STATUS with SLOTS: how many slots are held, of `slots` */
    uint16_t slots; /* 0 omits both */
};

size_t reply_format(const struct reply *reply, const char *tag, size_t tag_len, char *buf);

/*
 * The reply in RESP2 or RESP3. NOQUORUM, LATE, LIMIT and SHUTDOWN become errors with the same text
 * as the line. An outcome without fields becomes a simple string, and any other one an array of the
 * outcome and its fields: numbers become integers, and a missing fence becomes null.
 */
size_t reply_format_resp(const struct reply *reply, enum dialect dialect, char *buf);

/* A line that the daemon pushes to a connection about one of its HOLDs. */
struct push {
    enum { PUSH_LOST, PUSH_WARN } kind;
    const char *resource;
    size_t resource_len;
    const char *token;  /* LIMIT_TOKEN digits */
    const char *node;   /* name of the master that the reason is about, or NULL */
    const char *reason; /* one word */
};

/* Format "! LOST <resource> <token> <reason>", or WARN with "<node>:<reason>". A pushed line has no
 * tag. */
size_t reply_format_push(const struct push *push, char *buf);

/* The same words as a push message of RESP3. */
size_t reply_format_push_resp(const struct push *push, char *buf);

/* Format "ERR <code> <text>". */
size_t reply_format_error(const char *code, const char *text, const char *tag, size_t tag_len,
                          char *buf);

/* Format a line from its complete text: "PONG", "END", a line of a listing. */
size_t reply_format_line(const char *text, size_t len, const char *tag, size_t tag_len, char *buf);

/* Format a RESP error, "-<word> [<code>] <text>", or a simple string, "+<text>". code may be NULL.
 * The texts must not contain CR or LF. */
size_t reply_format_resp_error(const char *word, const char *code, const char *text, char *buf);
size_t reply_format_resp_simple(const char *text, size_t len, char *buf);

#endif
