/*
 * The listings of the line protocol: NODES, STATS, LOCKS, CLIENTS, HELP. One subject a line in
 * key=value words, then END; at most LIMIT_LISTING_LINES lines.
 */
#ifndef SERVER_CLIENTS_LISTING_H
#define SERVER_CLIENTS_LISTING_H

#include "protocol/request.h"

struct server;
struct session;

/* Answer a request for a listing. */
void listing_write(struct server *server, struct session *session, const struct request *request);

#endif
