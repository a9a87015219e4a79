/*
 * A connection by TCP, made at once, that sends without delay. Fails the running test if it cannot
 * be made.
 */
#ifndef TESTS_BENCH_CONNECT_H
#define TESTS_BENCH_CONNECT_H

int connect_tcp(const char *host, int port);

#endif
