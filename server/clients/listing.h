/*
 * The listings of the line protocol: NODES, STATS, LOCKS, CLIENTS, HELP. One subject a line in
 * key=value words.
 */
#ifndef SERVER_CLIENTS_LISTING_H
#define SERVER_CLIENTS_LISTING_H

struct request;
struct session;

/* The whole answer, END included. One of all locks or all clients takes the session's whole read
 * budget. */
void listing_write(struct session *session, const struct request *request);

#endif
