#include "tests/e2e/names.h"

#include <check.h>
#include <event2/event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/e2e/namespace.h"
#include "tests/nameserver.h"

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

void names_write_server(const struct names *names, int port, int timeout_s)
{
    char text[64];
    snprintf(text, sizeof(text), "nameserver 127.0.0.1:%d\noptions timeout:%d\n", port, timeout_s);
    sandbox_write(names->servers, text);
}

/* --- nameservers --- */

int names_silent_server(void)
{
    int port;
    nameserver_open(&port);
    return port;
}

int names_serve(pid_t *pid)
{
    int port;
    int fd = nameserver_open(&port);
    *pid = fork();
    if (*pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct event_base *base = event_base_new();
        nameserver_start(base, fd);
        event_base_dispatch(base);
        _exit(1);
    }
    ck_assert_int_gt(*pid, 0);
    close(fd);
    return port;
}
