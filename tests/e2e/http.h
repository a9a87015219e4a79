/*
 * A client of the admin listener: one request a connection, and the whole answer.
 */
#ifndef TESTS_E2E_HTTP_H
#define TESTS_E2E_HTTP_H

#include <stdbool.h>
#include <stddef.h>

struct http_answer {
    int status; /* 0: the connection ended without an answer */
    char *text; /* all of it */
    char *body; /* within the text */
    size_t len; /* of the body */
};

/* A connection to 127.0.0.1; send bytes as they are; read to the end of the connection. */
int http_open(int port);
void http_send(int fd, const char *text);
void http_read(int fd, struct http_answer *answer); /* closes it */
void http_free(struct http_answer *answer);

/* Has the other side ended the connection, or answered? Waits for neither. */
bool http_has_input(int fd);

/* One request, as of a browser. */
void http_ask(int port, const char *method, const char *path, struct http_answer *answer);

/* GET: the body, to be freed; its status has to be this. */
char *http_get(int port, const char *path, int status);

/* The value of a header, in a buffer that the next call overwrites; "" without it. */
const char *http_header(const struct http_answer *answer, const char *name);

#endif
