/*
 * A test's client of the daemon that speaks RESP, over TCP, the unix socket or TLS.
 *
 * A reply is compared as text: its bytes, with one space in place of each CR LF between two parts.
 * So "*2\r\n$4\r\nHELD\r\n:5\r\n" is "*2 $4 HELD :5". A function that fails aborts the test, and
 * its message shows the last command and the reply.
 */
#ifndef TESTS_E2E_RESP_CLIENT_H
#define TESTS_E2E_RESP_CLIENT_H

#include <stdbool.h>

#include "tests/e2e/client.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/tls_stage.h"

enum { RESP_COMMAND = 4096, RESP_TEXT = 65536 };

struct resp_client {
    struct client client;     /* unless over TLS */
    struct tls_client secure; /* over TLS */
    bool over_tls;
    char sent[RESP_COMMAND]; /* last command, for failure messages */
    char text[RESP_TEXT];    /* last reply */
    size_t text_len;
};

void resp_connect_unix(struct resp_client *resp, const struct stage *stage);
/* To the TCP port of the daemon at 127.0.0.1. */
void resp_connect_tcp(struct resp_client *resp, const struct stage *stage);
/* To the TLS port of a tls_stage. */
void resp_connect_tls(struct resp_client *resp, const struct stage *stage);
void resp_close(struct resp_client *resp);

/* Sends a command. Its words are separated by single spaces. */
void resp_send(struct resp_client *resp, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sends these bytes. */
void resp_send_raw(struct resp_client *resp, const char *bytes);

/* Waits for the next reply or push message and returns it as text, valid until the next call. */
const char *resp_read(struct resp_client *resp);

/* Reads the next reply, which must be equal to the text, match the pattern as a whole (an extended
 * regular expression), or begin with the text. */
void resp_read_equal(struct resp_client *resp, const char *reply);
void resp_read_match(struct resp_client *resp, const char *pattern);
void resp_read_prefix(struct resp_client *resp, const char *prefix);

/* Sends a command, whose reply must be equal to `reply`, or match the pattern. */
void resp_expect(struct resp_client *resp, const char *reply, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void resp_expect_match(struct resp_client *resp, const char *pattern, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sends HELLO 3, which must succeed. */
void resp_hello(struct resp_client *resp);

/* The grant in the last reply; resp_lock() sends LOCK, which must be granted, and may be followed
 * by options: "10s HOLD". */
struct grant resp_grant(const struct resp_client *resp);
struct grant resp_lock(struct resp_client *resp, const char *resource, const char *ttl);

/* Fails unless the daemon closes the connection before it sends anything else. */
void resp_expect_end(struct resp_client *resp);

/* The reply to a granted LOCK, without a fencing token, in RESP2 and RESP3. */
#define RESP_GRANT_2 "\\*5 \\$2 OK \\$40 [0-9a-f]{40} :[0-9]+ :[0-9]+ \\$-1"
#define RESP_GRANT_3 "\\*5 \\$2 OK \\$40 [0-9a-f]{40} :[0-9]+ :[0-9]+ _"

#endif
