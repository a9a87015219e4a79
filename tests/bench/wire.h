/*
 * Sockets as the programs of a benchmark use them: no error is handled, the test fails.
 */
#ifndef TESTS_BENCH_WIRE_H
#define TESTS_BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>

enum { WIRE_LINES = 65536 };

/* What has come and is no whole line yet. */
struct wire_lines {
    char bytes[WIRE_LINES];
    size_t len;
};

/* Connected by TCP, and sending without delay. */
int wire_connect(const char *host, int port);

/* Until the kernel has taken all of it. */
void wire_send(int fd, const char *bytes, size_t len);

/* What there is now, a line at a time and without its end. False: the other side has closed. */
bool wire_read_lines(int fd, struct wire_lines *lines, void (*on_line)(void *arg, char *line),
                     void *arg);

#endif
