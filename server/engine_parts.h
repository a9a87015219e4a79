/*
 * What the parts of the engine are to each other: engine.c has the requests and their rounds,
 * engine_links.c the links, the guard, and the votes that wait for it. For these two files alone.
 */
#ifndef SERVER_ENGINE_PARTS_H
#define SERVER_ENGINE_PARTS_H

#include "server/engine.h"

/* Have an operation's round take one step, and do what it asks for. The operation may be gone
 * afterwards. */
void engine_step(struct engine *engine, struct operation *operation,
                 const struct round_event *event);

/* The room for the votes that wait. False if there is not enough memory. */
bool engine_links_init(struct engine *engine);
void engine_links_deinit(struct engine *engine);

/* Write one of an operation's commands, in this form, into buf (REDIS_COMMAND_MAX bytes); returns
 * its length. */
size_t engine_format(const struct engine *engine, const struct operation *operation,
                     enum round_command command, enum redis_form form, char *buf, int64_t now_ns);

/* Write it to a node. */
void engine_write(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                  const char *bytes, size_t len);

/* The node is owed the release of the operation's token. */
void engine_owe(struct engine *engine, unsigned node, const struct operation *operation,
                int64_t now_ns);

/* Let the links do what is due. */
void engine_links_on_timer(struct engine *engine, int64_t now_ns);

#endif
