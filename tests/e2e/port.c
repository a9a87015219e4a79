#include "tests/e2e/port.h"

#include <check.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * These ports are below the ephemeral ports of the kernel. Otherwise an outgoing connection could
 * take the port of a server that is down, and a client that retries could connect to itself.
 */
enum { PORT_MIN = 20000, PORT_MAX = 32000, PORT_TRIES = 100 };

int port_listen(int family, int port)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ipv6.sin6_addr = in6addr_loopback;
    bool is_ipv4 = family == AF_INET;
    const struct sockaddr *where =
        is_ipv4 ? (const struct sockaddr *)&ipv4 : (const struct sockaddr *)&ipv6;
    socklen_t len = is_ipv4 ? sizeof(ipv4) : sizeof(ipv6);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* Connections in TIME_WAIT must not block the port. Servers set this option too. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, where, len) == 0 && listen(fd, 1) == 0)
        return fd;
    close(fd);
    return -1;
}

/*
 * Tests run in parallel, and two of them could choose the same free port. A name in the abstract
 * namespace of unix sockets is unique and vanishes with its process. The name of a port therefore
 * serves as a claim to the port.
 */
static bool claim(int port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "redlockd-test-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    size_t size = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len;
    if (bind(fd, (const struct sockaddr *)&name, (socklen_t)size) == 0)
        return true; /* the open socket is the claim, until this process ends */
    close(fd);
    return false;
}

int port_free(void)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        uint32_t seed;
        ck_assert_int_eq(getentropy(&seed, sizeof(seed)), 0);
        int port = PORT_MIN + (int)(seed % (PORT_MAX - PORT_MIN));
        int fd = port_listen(AF_INET, port);
        if (fd < 0)
            continue;
        close(fd);
        if (claim(port))
            return port;
    }
    ck_abort_msg("no free port in %d tries", PORT_TRIES);
}
