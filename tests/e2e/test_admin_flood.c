/*
 * A flood of connections to an HTTP listener, `admin` or `metrics`: clients get their replies
 * meanwhile, the other HTTP listener answers, and enough descriptors remain for clients.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "tests/e2e/http.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/runner.h"

/* The flood lasts until the client has had TURNS replies and CONNECTIONS connections were opened.
 * While the client waits for one reply, at most AT_ONCE connections may be opened. */
enum { THREADS = 4, CONNECTIONS = 20000, TURNS = 100, AT_ONCE = 5000 };

struct flood {
    int port;
    pthread_t threads[THREADS];
    atomic_ulong connections;
    atomic_bool stop;
};

/* Opens connections and resets them: a reset leaves no port in TIME-WAIT. */
static void *run(void *context)
{
    struct flood *flood = context;
    const struct linger now = {.l_onoff = 1};
    const struct sockaddr_in where = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)flood->port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    while (!flood->stop) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        flood->connections += connect(fd, (const struct sockaddr *)&where, sizeof(where)) == 0;
        close(fd);
    }
    return NULL;
}

/* The flood is on `admin` (0) or `metrics` (1). */
TEST_LOOP(a_connection_flood_on_an_http_listener_delays_no_one_else, 0, 2)
{
    static struct flood flood;
    const int ports[] = {port_free(), port_free()};
    struct stage stage;
    char yaml[128];
    unsigned turns = 0;
    unsigned long most = 0;
    unsigned files_most = 0;
    flood.port = ports[_i];
    snprintf(yaml, sizeof(yaml), "admin: http://127.0.0.1:%d\nmetrics: http://0.0.0.0:%d\n",
             ports[0], ports[1]);
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.yaml = yaml}});
    unsigned files_before = process_open_files(stage.daemon.pid);
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&flood.threads[i], NULL, run, &flood), 0);
    while (turns < TURNS || flood.connections < CONNECTIONS) {
        unsigned long before = flood.connections;
        client_expect(&stage.client, "PONG", "PING");
        if (turns % 10 == 0)
            free(http_get(ports[1 - _i], "/healthz", 200));
        unsigned long came = flood.connections - before;
        unsigned files = turns % 10 == 0 ? process_open_files(stage.daemon.pid) : 0;
        most = came > most ? came : most;
        files_most = files > files_most ? files : files_most;
        turns++;
    }
    flood.stop = true;
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(flood.threads[i], NULL), 0);
    if (getenv("FLOOD_REPORT") != NULL)
        printf("%u turns; at most %lu connections came in one; at most %u descriptors, %u before\n",
               turns, most, files_most, files_before);
    ck_assert_uint_le(most, AT_ONCE);
    ck_assert_uint_le(files_most, files_before + 3 * LIMIT_HTTP_CONNECTIONS);
    stage_close(&stage);
}
