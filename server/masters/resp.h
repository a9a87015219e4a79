/*
 * Bytes from a master -> struct redis_reply, with hiredis's reader.
 *
 * hiredis parses the bytes. Its callbacks fill one struct redis_reply that is reused, so a reply
 * costs no allocation. The most frequent replies are five bytes long. This module recognises these
 * itself, without hiredis. It builds with hiredis 0.14 and 1.x.
 */
#ifndef SERVER_MASTERS_RESP_H
#define SERVER_MASTERS_RESP_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/redis.h"

enum { RESP_TEXT_MAX = 8192 };

struct resp {
    struct redisReader *reader;      /* owned */
    const struct redis_reply *reply; /* the current reply */
    struct redis_reply built;        /* built by hiredis from the items below */
    struct resp_item whole;          /* the reply itself */
    struct resp_item nested;         /* the first item of a nested array */
    struct resp_item other;          /* any other item; ignored */
    char text[RESP_TEXT_MAX];        /* the strings of the reply */
    size_t text_len;
    unsigned repeats; /* identical replies that follow this one */
    bool partial; /* hiredis has parsed part of the next reply, so it must also parse the rest */
};

/* False if there is not enough memory. */
bool resp_init(struct resp *resp);
void resp_deinit(struct resp *resp);

/* Prepare for a new connection: discard all unread bytes. False if there is not enough memory. */
bool resp_reset(struct resp *resp);

enum resp_result {
    RESP_REPLY,  /* resp->reply is the next reply; its strings are valid until the next call */
    RESP_MORE,   /* more bytes are needed */
    RESP_GARBAGE /* not Redis protocol, or a reply larger than LIMIT_LINK_REPLY */
};

void resp_feed(struct resp *resp, const char *bytes, size_t len);
enum resp_result resp_next(struct resp *resp);

/* Skip `count` of the resp->repeats identical replies, because the caller has handled them together
 * with resp->reply. */
void resp_skip(struct resp *resp, unsigned count);

#endif
