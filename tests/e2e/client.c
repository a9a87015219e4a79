#include "tests/e2e/client.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/e2e/waiting.h"

/* --- the connection --- */

static void open_socket(struct client *client, int family)
{
    client->input_len = 0;
    client->sent[0] = '\0';
    client->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(client->fd, 0);
    struct timeval timeout = {.tv_usec = CLIENT_TIMEOUT_MS * 1000};
    setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

static bool connect_to(struct client *client, const struct sockaddr *where, socklen_t len)
{
    open_socket(client, where->sa_family);
    if (connect(client->fd, where, len) == 0)
        return true;
    client_close(client);
    return false;
}

bool client_try_unix(struct client *client, const char *path)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    ck_assert_uint_lt(strlen(path), sizeof(where.sun_path));
    memcpy(where.sun_path, path, strlen(path));
    return connect_to(client, (struct sockaddr *)&where, sizeof(where));
}

void client_connect_unix(struct client *client, const char *path)
{
    ck_assert_msg(client_try_unix(client, path), "cannot connect to %s", path);
}

bool client_try_tcp(struct client *client, const char *host, int port)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    bool connected;
    if (inet_pton(AF_INET, host, &ipv4.sin_addr) == 1)
        connected = connect_to(client, (struct sockaddr *)&ipv4, sizeof(ipv4));
    else if (inet_pton(AF_INET6, host, &ipv6.sin6_addr) == 1)
        connected = connect_to(client, (struct sockaddr *)&ipv6, sizeof(ipv6));
    else
        ck_abort_msg("%s is not an address", host);
    /* Without Nagle's algorithm, tests decide what arrives in one segment. */
    int on = 1;
    if (connected)
        setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return connected;
}

void client_connect_tcp(struct client *client, const char *host, int port)
{
    ck_assert_msg(client_try_tcp(client, host, port), "cannot connect to %s port %d", host, port);
}

void client_connect_from(struct client *client, const char *from, const char *host, int port)
{
    struct sockaddr_in here = {.sin_family = AF_INET};
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    open_socket(client, AF_INET);
    ck_assert_int_eq(inet_pton(AF_INET, from, &here.sin_addr), 1);
    ck_assert_int_eq(inet_pton(AF_INET, host, &there.sin_addr), 1);
    ck_assert_int_eq(bind(client->fd, (struct sockaddr *)&here, sizeof(here)), 0);
    ck_assert_int_eq(connect(client->fd, (struct sockaddr *)&there, sizeof(there)), 0);
}

void client_close(struct client *client)
{
    close(client->fd);
    client->fd = -1;
}

void client_reset(struct client *client)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    client_close(client);
}

void client_half_close(struct client *client)
{
    ck_assert_int_eq(shutdown(client->fd, SHUT_WR), 0);
}

/* --- sending --- */

static void remember_sent(struct client *client, const char *bytes, size_t len)
{
    size_t kept = len < sizeof(client->sent) ? len : sizeof(client->sent) - 1;
    memcpy(client->sent, bytes, kept);
    client->sent[kept] = '\0';
}

void client_send_bytes(struct client *client, const void *bytes, size_t len)
{
    struct waiting waiting = waiting_for("the daemon to read");
    remember_sent(client, bytes, len);
    for (size_t done = 0; done < len;) {
        struct pollfd ready = {.fd = client->fd, .events = POLLOUT};
        if (poll(&ready, 1, waiting_left_ms(&waiting)) == 0)
            ck_abort_msg("sent only %zu of %zu bytes of: %s", done, len, client->sent);
        ssize_t sent =
            send(client->fd, (const char *)bytes + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN)
            ck_abort_msg("cannot send: %s (%s)", client->sent, strerror(errno));
        done += sent > 0 ? (size_t)sent : 0;
    }
}

void client_send(struct client *client, const char *text)
{
    client_send_bytes(client, text, strlen(text));
}

bool client_try_send(struct client *client, const char *text)
{
    ssize_t sent = send(client->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent >= 0 || errno == EAGAIN;
}

/* --- reading --- */

/* Returns the number of bytes read within timeout_ms, 0 at the end of the connection, -1 if nothing
 * came. */
static ssize_t read_some(struct client *client, int timeout_ms)
{
    struct pollfd ready = {.fd = client->fd, .events = POLLIN};
    if (poll(&ready, 1, timeout_ms) == 0)
        return -1;
    ck_assert_uint_lt(client->input_len, sizeof(client->input));
    ssize_t got = recv(client->fd, client->input + client->input_len,
                       sizeof(client->input) - client->input_len, 0);
    /* A reset counts as an end. */
    if (got <= 0)
        return 0;
    client->input_len += (size_t)got;
    return got;
}

/* Moves the first whole line from the input to client->line. False if there is none. */
static bool take_line(struct client *client)
{
    char *end = memchr(client->input, '\n', client->input_len);
    if (end == NULL)
        return false;
    size_t len = (size_t)(end - client->input);
    ck_assert_uint_lt(len, sizeof(client->line));
    memcpy(client->line, client->input, len);
    client->line[len] = '\0';
    client->input_len -= len + 1;
    memmove(client->input, end + 1, client->input_len);
    return true;
}

const char *client_read(struct client *client)
{
    struct waiting waiting = waiting_for("a line");
    while (!take_line(client)) {
        ssize_t got = read_some(client, waiting_left_ms(&waiting));
        if (got < 0)
            ck_abort_msg("no reply to: %s", client->sent);
        if (got == 0)
            ck_abort_msg("closed instead of a reply to: %s", client->sent);
    }
    return client->line;
}

int client_segment(const struct client *client)
{
    int segment = 0;
    socklen_t len = sizeof(segment);
    ck_assert_int_eq(getsockopt(client->fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &len), 0);
    return segment;
}

bool client_has_input(const struct client *client)
{
    struct pollfd ready = {.fd = client->fd, .events = POLLIN};
    return poll(&ready, 1, 0) == 1;
}

bool client_has_line(struct client *client)
{
    while (memchr(client->input, '\n', client->input_len) == NULL)
        if (read_some(client, 0) <= 0)
            return false;
    return true;
}

bool client_wait_line(struct client *client)
{
    struct waiting waiting = waiting_for("a line");
    ssize_t got = 1;
    while (got > 0 && memchr(client->input, '\n', client->input_len) == NULL) {
        got = read_some(client, waiting_left_ms(&waiting));
        if (got < 0)
            ck_abort_msg("no reply to: %s", client->sent);
    }
    return got > 0;
}

void client_expect_end(struct client *client)
{
    struct waiting waiting = waiting_for("the end of a connection");
    ssize_t got;
    do
        got = client->input_len > 0 ? 1 : read_some(client, waiting_left_ms(&waiting));
    while (got > 0 && !take_line(client));
    if (got > 0)
        ck_abort_msg("not closed after: %s, but replied: %s", client->sent, client->line);
    if (got < 0)
        ck_abort_msg("not closed after: %s", client->sent);
}

/* --- requests --- */

static const char *ask(struct client *client, const char *format, va_list arguments)
{
    char line[CLIENT_LINE];
    int len = vsnprintf(line, sizeof(line) - 1, format, arguments);
    ck_assert_int_lt(len, (int)sizeof(line) - 1);
    line[len] = '\n';
    client_send_bytes(client, line, (size_t)len + 1);
    return client_read(client);
}

const char *client_ask(struct client *client, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *reply = ask(client, format, arguments);
    va_end(arguments);
    return reply;
}

void client_expect(struct client *client, const char *reply, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *got = ask(client, format, arguments);
    va_end(arguments);
    if (strcmp(got, reply) != 0)
        ck_abort_msg("sent: %sgot: %s\nexpected: %s", client->sent, got, reply);
}

static void must_match(const struct client *client, const char *pattern)
{
    char whole[CLIENT_LINE];
    regex_t regex;
    snprintf(whole, sizeof(whole), "^(%s)$", pattern);
    ck_assert_int_eq(regcomp(&regex, whole, REG_EXTENDED | REG_NOSUB), 0);
    bool matches = regexec(&regex, client->line, 0, NULL, 0) == 0;
    regfree(&regex);
    if (!matches)
        ck_abort_msg("sent: %sgot: %s\nexpected: %s", client->sent, client->line, pattern);
}

void client_expect_match(struct client *client, const char *pattern, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ask(client, format, arguments);
    va_end(arguments);
    must_match(client, pattern);
}

void client_read_match(struct client *client, const char *pattern)
{
    client_read(client);
    must_match(client, pattern);
}

struct grant client_lock(struct client *client, const char *resource, const char *ttl)
{
    struct grant grant;
    client_expect_match(client, "OK [0-9a-f]{40} [0-9]+ [0-9]+ (-|[0-9]+)", "LOCK %s %s", resource,
                        ttl);
    int got = sscanf(client->line, "OK %40s %" SCNd64 " %" SCNd64, grant.token, &grant.validity_ms,
                     &grant.elapsed_ms);
    ck_assert_int_eq(got, 3);
    return grant;
}

bool client_masters_were_slow(const char *reply)
{
    bool is_error = reply[0] == '-';
    return strncmp(reply + is_error, "NOQUORUM ", 9) == 0 && strstr(reply, ":timeout") != NULL;
}

unsigned client_count(struct client *client, const char *listing, const char *text)
{
    unsigned count = 0;
    const char *line = client_ask(client, "%s", listing);
    while (strcmp(line, "END") != 0) {
        count += strstr(line, text) != NULL;
        line = client_read(client);
    }
    return count;
}

void client_wait_count(struct client *client, const char *listing, const char *text, unsigned count)
{
    struct waiting waiting = waiting_for(text);
    while (client_count(client, listing, text) != count)
        waiting_pause(&waiting);
}
