#include "tests/bench/client_pool.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/units.h"
#include "tests/bench/clock.h"
#include "tests/bench/must.h"
#include "tests/bench/wire.h"

enum { EVENTS = 1024, OUTPUT_MAX = 65536, REST = 2048, PER_ADDRESS = 8192 };

struct member {
    int fd;
    unsigned index;
    char rest[REST]; /* input that is not yet a whole line */
    size_t rest_len;
    char *output;
    size_t output_len;
};

struct client_pool {
    struct client_pool_plan plan;
    struct member *members;
    bool *dirty; /* which members have output; an array of its own, since each pass searches it */
    char *outputs;
    size_t output_size; /* of each member */
    int epoll;
    struct epoll_event events[EVENTS];
    unsigned event_count;
    unsigned reading;        /* the member whose input is being passed on */
    struct wire_lines input; /* of that member */
};

static int connect_unix(const char *path)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    snprintf(where.sun_path, sizeof(where.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&where, sizeof(where)), 0);
    return fd;
}

static void connect_one(struct client_pool *pool, unsigned index, int port)
{
    const struct client_pool_plan *plan = &pool->plan;
    struct member *member = &pool->members[index];
    char from[32];
    snprintf(from, sizeof(from), "127.0.0.%u", 1 + index / PER_ADDRESS);
    member->index = index;
    member->fd =
        plan->path != NULL ? connect_unix(plan->path) : wire_connect_from(from, plan->host, port);
    member->output = pool->outputs + index * pool->output_size;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = member};
    epoll_ctl(pool->epoll, EPOLL_CTL_ADD, member->fd, &event);
}

static void *allocate(size_t count, size_t size)
{
    void *room = calloc(count, size);
    ck_assert_ptr_nonnull(room);
    return room;
}

struct client_pool *client_pool_open(const struct client_pool_plan *plan)
{
    struct client_pool *pool = allocate(1, sizeof(*pool));
    unsigned ports = 1;
    while (ports < CLIENT_POOL_PORTS && plan->ports[ports] != 0)
        ports++;
    pool->plan = *plan;
    pool->output_size = (size_t)plan->depth * CLIENT_POOL_LINE;
    if (pool->output_size > OUTPUT_MAX)
        pool->output_size = OUTPUT_MAX;
    pool->members = allocate(plan->connections, sizeof(*pool->members));
    pool->dirty = allocate(plan->connections, sizeof(*pool->dirty));
    pool->outputs = allocate(plan->connections, pool->output_size);
    pool->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < plan->connections; i++)
        connect_one(pool, i, plan->ports[i % ports]);
    return pool;
}

void client_pool_close(struct client_pool *pool)
{
    for (unsigned i = 0; i < pool->plan.connections; i++)
        close(pool->members[i].fd);
    close(pool->epoll);
    free(pool->outputs);
    free(pool->dirty);
    free(pool->members);
    free(pool);
}

static void write_out(struct client_pool *pool, unsigned index)
{
    struct member *member = &pool->members[index];
    wire_send(member->fd, member->output, member->output_len);
    member->output_len = 0;
    pool->dirty[index] = false;
}

void client_pool_put(struct client_pool *pool, unsigned connection, const char *format, ...)
{
    struct member *member = &pool->members[connection];
    va_list arguments;
    if (member->output_len + CLIENT_POOL_LINE > pool->output_size)
        write_out(pool, connection);
    va_start(arguments, format);
    int len = vsnprintf(member->output + member->output_len, CLIENT_POOL_LINE, format, arguments);
    va_end(arguments);
    must(len > 0 && len < CLIENT_POOL_LINE, "a line fits");
    member->output_len += (size_t)len;
    pool->dirty[connection] = true;
}

void client_pool_flush(struct client_pool *pool)
{
    const bool *end = pool->dirty + pool->plan.connections;
    const bool *next = pool->dirty;
    while ((next = memchr(next, true, (size_t)(end - next))) != NULL)
        write_out(pool, (unsigned)(next - pool->dirty));
}

int64_t client_pool_wait(struct client_pool *pool, int64_t wait_ns)
{
    const struct timespec wait = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
    int count = epoll_pwait2(pool->epoll, pool->events, EVENTS, &wait, NULL);
    pool->event_count = count > 0 ? (unsigned)count : 0;
    return clock_ns();
}

static void on_line(void *arg, char *line)
{
    struct client_pool *pool = arg;
    pool->plan.on_line(pool->plan.arg, pool->reading, line);
}

void client_pool_read(struct client_pool *pool)
{
    struct wire_lines *input = &pool->input;
    for (unsigned i = 0; i < pool->event_count; i++) {
        struct member *member = pool->events[i].data.ptr;
        pool->reading = member->index;
        memcpy(input->bytes, member->rest, member->rest_len);
        input->len = member->rest_len;
        must(wire_read_lines(member->fd, input, on_line, pool), "the daemon keeps its connections");
        must(input->len <= REST, "a line of the daemon fits");
        memcpy(member->rest, input->bytes, input->len);
        member->rest_len = input->len;
    }
    pool->event_count = 0;
}

void client_pool_read_until(struct client_pool *pool, const uint64_t *count, uint64_t wanted,
                            int64_t until_ns)
{
    client_pool_flush(pool);
    for (int64_t now_ns = clock_ns(); *count < wanted && now_ns < until_ns;) {
        now_ns = client_pool_wait(pool, until_ns - now_ns);
        client_pool_read(pool);
        client_pool_flush(pool);
    }
}

int client_pool_fd(const struct client_pool *pool)
{
    return pool->epoll;
}
