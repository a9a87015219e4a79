/*
 * Bytes from a master -> struct redis_reply, by the reader of hiredis.
 *
 * hiredis parses; the objects it wants to build are one struct redis_reply that is used again and
 * again, so a reply costs no allocation. The few replies that nearly all are, and that are nothing
 * but five bytes, are known by these bytes, and hiredis does not see them. Builds with hiredis 0.14
 * and 1.x.
 */
#ifndef SERVER_MASTERS_RESP_H
#define SERVER_MASTERS_RESP_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/redis.h"

enum { RESP_TEXT_MAX = 8192 };

struct resp {
    struct redisReader *reader;      /* owned */
    const struct redis_reply *reply; /* the one that has come */
    struct redis_reply built;        /* what hiredis makes, of these and its items: */
    struct resp_item whole;          /* the reply itself */
    struct resp_item nested;         /* the first item of a nested array */
    struct resp_item other;          /* any other item: nobody asks */
    char text[RESP_TEXT_MAX];        /* where the strings of the reply are */
    size_t text_len;
    unsigned again; /* so many times more the reply comes right behind */
    bool begun;     /* hiredis has seen a part of the next reply, and so gets the rest */
};

/* False if there is not enough memory. */
bool resp_init(struct resp *resp);
void resp_deinit(struct resp *resp);

/* Forget what was half read: for a new connection. */
bool resp_reset(struct resp *resp);

enum resp_result {
    RESP_REPLY,  /* resp->reply is the next one; its strings live until the next call */
    RESP_MORE,   /* more bytes are needed */
    RESP_GARBAGE /* not Redis protocol, or a reply larger than LIMIT_LINK_REPLY */
};

void resp_feed(struct resp *resp, const char *bytes, size_t len);
enum resp_result resp_next(struct resp *resp);

/* So many of resp->again have been dealt with, too. */
void resp_skip(struct resp *resp, unsigned count);

#endif
