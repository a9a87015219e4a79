/*
 * Many connections to a daemon in one thread. Output is buffered and written once in a pass; input
 * is passed on by lines. On any error the test fails, and also if the daemon closes a connection.
 *
 *     client_pool_put(pool, 0, "PING\n");
 *     client_pool_flush(pool);
 *     now_ns = client_pool_wait(pool, NS_PER_S);
 *     client_pool_read(pool);                        calls plan.on_line(arg, 0, "PONG")
 */
#ifndef TESTS_BENCH_CLIENT_POOL_H
#define TESTS_BENCH_CLIENT_POOL_H

#include <stddef.h>
#include <stdint.h>

enum { CLIENT_POOL_PORTS = 4, CLIENT_POOL_LINE = 160 };

struct client_pool_plan {
    const char *host;
    int ports[CLIENT_POOL_PORTS]; /* ports of the daemons, used in turns by the connections; 0 ends
                               the list */
    const char *path;             /* a unix socket in place of the ports; NULL: none */
    unsigned connections;
    unsigned depth; /* lines usually put for a connection in a pass; sets the size of the buffers */
    void (*on_line)(void *arg, unsigned connection, char *line); /* the line is without its LF */
    void *arg;
};

struct client_pool;

/* Open all connections. An address has too few ports for all of them, so each 8192 connections use
 * a local address of their own. */
struct client_pool *client_pool_open(const struct client_pool_plan *plan);

/* Close all connections in a row. */
void client_pool_close(struct client_pool *pool);

/* Put one line of fewer than CLIENT_POOL_LINE bytes, including its LF. */
void client_pool_put(struct client_pool *pool, unsigned connection, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Write what was put, in the order of the connections. Waits until the kernel has taken it. */
void client_pool_flush(struct client_pool *pool);

/* Wait at most this long until input can be read. Returns the time of the end of the wait. */
int64_t client_pool_wait(struct client_pool *pool, int64_t wait_ns);

/* Read the input that the last client_pool_wait() has found. The callback may put lines. */
void client_pool_read(struct client_pool *pool);

/* Write and read until *count, which the callback increments, has reached `wanted`, but no longer
 * than until_ns. */
void client_pool_read_until(struct client_pool *pool, const uint64_t *count, uint64_t wanted,
                            int64_t until_ns);

/* A descriptor that is readable while any connection has input. */
int client_pool_fd(const struct client_pool *pool);

#endif
