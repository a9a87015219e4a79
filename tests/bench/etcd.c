#include "tests/bench/etcd.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/waiting.h"

enum { URL_TEXT = 32, MEMBER_TEXT = 48 };

static bool accepts(int port)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, "127.0.0.1", &where.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    bool accepted = connect(fd, (struct sockaddr *)&where, sizeof(where)) == 0;
    close(fd);
    return accepted;
}

void etcd_start(struct etcd *etcd, const struct sandbox *sandbox)
{
    char data[SANDBOX_FILE], log[SANDBOX_FILE];
    char clients[URL_TEXT], members[URL_TEXT], cluster[MEMBER_TEXT];
    int status;
    etcd->port = port_free();
    snprintf(clients, sizeof(clients), "http://127.0.0.1:%d", etcd->port);
    snprintf(members, sizeof(members), "http://127.0.0.1:%d", port_free());
    snprintf(cluster, sizeof(cluster), "bench=%s", members);
    sandbox_path(sandbox, "etcd", data);
    sandbox_path(sandbox, "etcd.log", log);
    const char *argv[] = {"etcd",
                          "--name=bench",
                          "--log-level=error",
                          "--logger=zap",
                          "--data-dir",
                          data,
                          "--listen-client-urls",
                          clients,
                          "--advertise-client-urls",
                          clients,
                          "--listen-peer-urls",
                          members,
                          "--initial-advertise-peer-urls",
                          members,
                          "--initial-cluster",
                          cluster,
                          NULL};
    etcd->pid = process_start(&(struct process_plan){.argv = argv, .errors = log});
    struct waiting waiting = waiting_for("etcd to accept connections");
    while (!accepts(etcd->port)) {
        ck_assert_msg(!process_ended(etcd->pid, &status), "etcd ended with status %d", status);
        waiting_pause(&waiting);
    }
}

void etcd_stop(struct etcd *etcd)
{
    process_kill(etcd->pid);
    etcd->pid = 0;
}
