#include "tests/bench/wire.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/bench/must.h"

int wire_connect_from(const char *from, const char *host, int port)
{
    const int on = 1;
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in here = {.sin_family = AF_INET};
    inet_pton(AF_INET, host, &where.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (from != NULL) {
        inet_pton(AF_INET, from, &here.sin_addr);
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
    }
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&where, sizeof(where)), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

int wire_connect(const char *host, int port)
{
    return wire_connect_from(NULL, host, port);
}

void wire_send(int fd, const char *bytes, size_t len)
{
    size_t sent = 0;
    while (sent < len) {
        ssize_t taken = send(fd, bytes + sent, len - sent, MSG_NOSIGNAL);
        if (taken < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        must(taken > 0, "the other side keeps its connection");
        sent += (size_t)taken;
    }
}

bool wire_read_lines(int fd, struct wire_lines *lines, void (*on_line)(void *arg, char *line),
                     void *arg)
{
    ssize_t len = recv(fd, lines->bytes + lines->len, WIRE_LINES - lines->len, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    must(len >= 0, "a connection ends in order");
    char *at = lines->bytes;
    char *end = at + lines->len + (size_t)len;
    char *newline;
    while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        *newline = '\0';
        on_line(arg, at);
        at = newline + 1;
    }
    lines->len = (size_t)(end - at);
    memmove(lines->bytes, at, lines->len);
    return len > 0;
}
