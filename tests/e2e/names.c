#include "tests/e2e/names.h"

#include <arpa/inet.h>
#include <check.h>
#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/namespace.h"

void names_open(struct names *names, const struct sandbox *sandbox)
{
    sandbox_write(sandbox_path(sandbox, "hosts", names->hosts), "127.0.0.1 localhost\n");
    sandbox_write(sandbox_path(sandbox, "resolv.conf", names->servers), "");
    ck_assert(namespace_become_root());
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    ck_assert_int_eq(mount(names->hosts, "/etc/hosts", NULL, MS_BIND, NULL), 0);
    ck_assert_int_eq(mount(names->servers, "/etc/resolv.conf", NULL, MS_BIND, NULL), 0);
}

void names_write_hosts(const struct names *names, const char *text)
{
    sandbox_write(names->hosts, text);
}

void names_write_server(const struct names *names, int port)
{
    char text[64];
    snprintf(text, sizeof(text), "nameserver 127.0.0.1:%d\noptions timeout:1\n", port);
    sandbox_write(names->servers, text);
}

/* --- nameservers --- */

static int open_socket(int *port)
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

int names_silent_server(void)
{
    int port;
    open_socket(&port);
    return port;
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

int names_serve(pid_t *pid)
{
    int port;
    int fd = open_socket(&port);
    *pid = fork();
    if (*pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct event_base *base = event_base_new();
        if (base != NULL && evdns_add_server_port_with_base(base, fd, 0, answer, NULL) != NULL)
            event_base_dispatch(base);
        _exit(1);
    }
    ck_assert_int_gt(*pid, 0);
    close(fd);
    return port;
}
