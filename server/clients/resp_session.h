/*
 * The commands of RESP that are not requests of redlockd: those that Redis clients send by
 * themselves when they connect, are asked for their name, or describe the server.
 */
#ifndef SERVER_CLIENTS_RESP_SESSION_H
#define SERVER_CLIENTS_RESP_SESSION_H

#include <stdbool.h>

#include "protocol/request.h"

struct session;

/* The number of words includes the name of the command. */
struct resp_command {
    const char *name;
    unsigned least;
    unsigned most;
    bool exclusive; /* waits for earlier commands to be answered, because it changes the connection
                     */
    bool without_auth;
    void (*run)(struct session *session, const struct request_words *words);
    const char *usage;
};

/* NULL: the command is not one of those. */
const struct resp_command *resp_session_find(const struct request_words *words);

/* Run the command and write its reply. */
void resp_session_run(struct session *session, const struct resp_command *command,
                      const struct request_words *words);

/* --- resp_docs.c: COMMAND and INFO, which describe the server --- */

void resp_docs_command(struct session *session, const struct request_words *words);
void resp_docs_info(struct session *session, const struct request_words *words);

#endif
