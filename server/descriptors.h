/*
 * How many clients there may be, so that the connections to the masters always find a descriptor:
 * when all are taken, the one that a lost master's connection frees would go to the next client in
 * the queue.
 */
#ifndef SERVER_DESCRIPTORS_H
#define SERVER_DESCRIPTORS_H

struct config;
struct log;

/* limits.clients, or fewer where descriptors do not allow as many; then the log says so. Raises the
 * limit of open files of this process as far as it may. */
unsigned descriptors_clients(const struct config *config, const struct log *log);

#endif
