/*
 * What a client sends: bytes to lines, lines to requests, and each request to whatever answers it.
 *
 * Untagged requests are answered in order, and one starts only after the one before is answered;
 * the lines that have to wait are kept in pending_input. Tagged ones start as they come.
 */
#ifndef SERVER_CLIENTS_REQUESTS_H
#define SERVER_CLIENTS_REQUESTS_H

struct session;

/* Take all lines that can be taken now, as far as its read budget goes; and read on, or do not. */
void requests_take(struct session *session);

#endif
