/* Sockets of the benchmarks. On any error the test fails. */
#ifndef TESTS_BENCH_WIRE_H
#define TESTS_BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>

enum { WIRE_LINES = 65536 };

/* Input that is not yet a whole line. */
struct wire_lines {
    char bytes[WIRE_LINES];
    size_t len;
};

/* Connect by TCP, with TCP_NODELAY; from the local address `from`, unless it is NULL. */
int wire_connect_from(const char *from, const char *host, int port);
int wire_connect(const char *host, int port);

/* Write until the kernel has taken everything. */
void wire_send(int fd, const char *bytes, size_t len);

/* Read the available input and pass on each line, without its end. False: the other side has
 * closed. */
bool wire_read_lines(int fd, struct wire_lines *lines, void (*on_line)(void *arg, char *line),
                     void *arg);

#endif
