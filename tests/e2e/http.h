/*
 * A client of the admin listener: one request per connection.
 */
#ifndef TESTS_E2E_HTTP_H
#define TESTS_E2E_HTTP_H

#include <stdbool.h>
#include <stddef.h>

struct http_response {
    int status; /* 0: the connection ended without a response */
    char *text; /* status line, headers and body; owned */
    char *body; /* points into text */
    size_t len; /* length of the body */
};

/* http_open() connects to 127.0.0.1, http_send() sends the text unchanged, and http_read() reads
 * until the connection ends. */
int http_open(int port);
void http_send(int fd, const char *text);
void http_read(int fd, struct http_response *response); /* closes fd */
void http_free(struct http_response *response);

/* True if a response or the end of the connection can be read. Does not wait. */
bool http_has_input(int fd);

/* Sends one request, as a browser does, and reads the response. */
void http_request(int port, const char *method, const char *path, struct http_response *response);

/* Returns the body of a GET, to be freed. The response must have this status. */
char *http_get(int port, const char *path, int status);

/* Returns the value of a header, or "" if the response has no such header. The next call overwrites
 * the buffer. */
const char *http_header(const struct http_response *response, const char *name);

#endif
