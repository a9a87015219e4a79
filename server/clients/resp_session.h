/*
 * The commands of RESP that are not requests of redlockd: those that Redis clients send by
 * themselves when they connect, are asked for their name, or describe the server.
 */
#ifndef SERVER_CLIENTS_RESP_SESSION_H
#define SERVER_CLIENTS_RESP_SESSION_H

#include <stdbool.h>

#include "protocol/request.h"

struct session;

/* Whether the command is one of those. */
bool resp_session_has(const struct request_words *words);

/* Whether the command changes the connection, so that it has to wait until all earlier commands are
 * answered. */
bool resp_session_is_exclusive(const struct request_words *words);

/* Run the command and write its reply. */
void resp_session_run(struct session *session, const struct request_words *words);

/* --- resp_docs.c: COMMAND and INFO, which describe the server --- */

void resp_docs_command(struct session *session, const struct request_words *words);
void resp_docs_info(struct session *session, const struct request_words *words);

#endif
