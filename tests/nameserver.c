#include "tests/nameserver.h"

#include <arpa/inet.h>
#include <check.h>
#include <event2/dns_struct.h>
#include <netinet/in.h>
#include <sys/socket.h>

int nameserver_open(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void answer(struct evdns_server_request *request, void *context)
{
    const struct in_addr here = {.s_addr = htonl(INADDR_LOOPBACK)};
    (void)context;
    for (int i = 0; i < request->nquestions; i++)
        if (request->questions[i]->type == EVDNS_TYPE_A)
            evdns_server_request_add_a_reply(request, request->questions[i]->name, 1, &here, 1);
    evdns_server_request_respond(request, DNS_ERR_NONE);
}

struct evdns_server_port *nameserver_start(struct event_base *base, int fd)
{
    struct evdns_server_port *port = evdns_add_server_port_with_base(base, fd, 0, answer, NULL);
    ck_assert_ptr_nonnull(port);
    return port;
}
