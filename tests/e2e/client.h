/*
 * A client of the daemon: sends bytes, reads lines, and fails the test with what it sent and got.
 */
#ifndef TESTS_E2E_CLIENT_H
#define TESTS_E2E_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLIENT_LINE = 4096, CLIENT_INPUT = 65536, CLIENT_TIMEOUT_MS = 100 };

struct client {
    int fd;
    char sent[CLIENT_LINE]; /* the last that was sent, for messages */
    char line[CLIENT_LINE]; /* the last that was read */
    char input[CLIENT_INPUT];
    size_t input_len;
};

/* A lock that was granted. */
struct grant {
    char token[41];
    int64_t validity_ms;
    int64_t elapsed_ms;
};

/* False if nobody listens there, or accepts within the time that CLIENT_TIMEOUT_MS says. */
bool client_try_unix(struct client *client, const char *path);
bool client_try_tcp(struct client *client, const char *host, int port);
void client_connect_unix(struct client *client, const char *path);
/* host: an IPv4 or IPv6 address. */
void client_connect_tcp(struct client *client, const char *host, int port);
/* From this address of the host. Both are IPv4. */
void client_connect_from(struct client *client, const char *from, const char *host, int port);

void client_close(struct client *client);
/* Close so that the daemon sees a reset (TCP only). */
void client_reset(struct client *client);
/* Send no more, but read on. */
void client_end(struct client *client);

void client_send(struct client *client, const char *text);
void client_send_bytes(struct client *client, const void *bytes, size_t len);

/* Send what can be sent at once; false if the connection is gone. */
bool client_try_send(struct client *client, const char *text);

/* The next line, without its LF; it lives until the next call. */
const char *client_read(struct client *client);

/* What the kernel sends at once over TCP, in bytes. */
int client_segment(const struct client *client);

/* Has anything arrived that was not read? */
bool client_has_input(const struct client *client);

/* Is a whole line there, or does one come at once? */
bool client_has_line(struct client *client);

/* Wait for a line, which client_read() then returns; false if the connection ends first. */
bool client_wait_line(struct client *client);

/* The daemon must close the connection now, without another line. */
void client_expect_end(struct client *client);

/* Send a line (an LF is added), and read one. */
const char *client_ask(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, and the answer must be this, or match this extended regular expression as a whole. */
void client_expect(struct client *client, const char *reply, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void client_expect_match(struct client *client, const char *pattern, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The next line must match this. */
void client_read_match(struct client *client, const char *pattern);

/* LOCK, which must be granted; ttl as the protocol has it, "10s", and options may follow. */
struct grant client_lock(struct client *client, const char *resource, const char *ttl);

/* Ask for a listing: how many of its lines contain this text? */
unsigned client_count(struct client *client, const char *listing, const char *text);

#endif
