/*
 * A test's client of the daemon. A function that fails aborts the test, unless its comment says
 * that it returns false. The message shows the last request and the reply, if there are any.
 */
#ifndef TESTS_E2E_CLIENT_H
#define TESTS_E2E_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLIENT_LINE = 4096, CLIENT_INPUT = 65536, CLIENT_TIMEOUT_MS = 100 };

struct client {
    int fd;
    char sent[CLIENT_LINE]; /* last bytes sent, for failure messages */
    char line[CLIENT_LINE]; /* last line read */
    char input[CLIENT_INPUT];
    size_t input_len;
};

/* The fields of a grant. */
struct grant {
    char token[41];
    int64_t validity_ms;
    int64_t elapsed_ms;
};

/* False if the connection is refused or not accepted within CLIENT_TIMEOUT_MS. */
bool client_try_unix(struct client *client, const char *path);
bool client_try_tcp(struct client *client, const char *host, int port);
void client_connect_unix(struct client *client, const char *path);
/* The host is an IPv4 or IPv6 address. */
void client_connect_tcp(struct client *client, const char *host, int port);
/* Connects from the local address `from`. Both addresses are IPv4. */
void client_connect_from(struct client *client, const char *from, const char *host, int port);

void client_close(struct client *client);
/* Closes with a TCP reset. */
void client_reset(struct client *client);
/* Half-closes the connection: the client can still read. */
void client_half_close(struct client *client);

void client_send(struct client *client, const char *text);
void client_send_bytes(struct client *client, const void *bytes, size_t len);

/* Sends as much as fits without blocking. False if the connection is gone. */
bool client_try_send(struct client *client, const char *text);

/* Waits for the next line and returns it without its LF. The line is valid until the next call. */
const char *client_read(struct client *client);

/* Returns the maximum segment size of the TCP connection, in bytes. */
int client_segment(const struct client *client);

/* True if the socket has unread input, or the connection has ended. Lines that the client has
 * already read into its buffer do not count. */
bool client_has_input(const struct client *client);

/* True if a whole line can be read without waiting. */
bool client_has_line(struct client *client);

/* Waits for a line, which client_read() then returns. False if the connection ends first. */
bool client_wait_line(struct client *client);

/* Fails unless the daemon closes the connection before it sends another line. */
void client_expect_end(struct client *client);

/* Sends a line (an LF is added) and returns the next line. */
const char *client_ask(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sends a line. The next line must equal `reply`. */
void client_expect(struct client *client, const char *reply, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sends a line. The whole next line must match the extended regular expression `pattern`. */
void client_expect_match(struct client *client, const char *pattern, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads the next line, which must match the pattern. */
void client_read_match(struct client *client, const char *pattern);

/* Sends LOCK, which must be granted. `ttl` is text as in the protocol, and options of LOCK can
 * follow it: "10s", "10s HOLD". */
struct grant client_lock(struct client *client, const char *resource, const char *ttl);

/* Whether the reply to LOCK or STATUS, as a line or in RESP, says that a master did not answer in
 * time. On a busy machine, healthy masters can be too slow for a quorum, and the test can repeat
 * the request. */
bool client_masters_were_slow(const char *reply);

/* Requests a listing and returns the number of its lines that contain the text. */
unsigned client_count(struct client *client, const char *listing, const char *text);

/* Requests the listing until exactly `count` of its lines contain the text. */
void client_wait_count(struct client *client, const char *listing, const char *text,
                       unsigned count);

#endif
