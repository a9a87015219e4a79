/*
 * One request on its way: a round, whose it is, and the resource it is about. What the engine
 * keeps; nobody else looks inside.
 */
#ifndef SERVER_OPERATION_H
#define SERVER_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protocol/limits.h"
#include "protocol/redis.h"
#include "protocol/round.h"
#include "server/pool.h"

struct resource;

/* What the engine keeps with each client connection; inside struct session. */
struct engine_client {
    LIST_HEAD(, operation) operations; /* not answered yet */
    unsigned operation_count;
    bool gone; /* set by the session the moment no answer can reach the client any more */
};

struct operation {
    struct round round;
    struct resource *resource;
    struct engine_client *client; /* NULL once answered, or once the client left */
    LIST_ENTRY(operation) of_client;
    LIST_ENTRY(operation) of_resource;
    TAILQ_ENTRY(operation) waiting; /* while the round is not settled */
    int64_t received_ns;
    int64_t ballot; /* LOCK with FENCE; 0 without */
    char token[LIMIT_TOKEN];
    char tag[LIMIT_TAG];
    size_t tag_len;
    bool tagged;
};

/* All there are. */
struct operations {
    struct pool pool;
    struct pool resources;
    struct resource *by_key;         /* uthash */
    struct resource *sentinel;       /* keeps the hash from ever being empty */
    TAILQ_HEAD(, operation) waiting; /* rounds not settled, by deadline */
};

/* False if there is not enough memory. */
bool operations_init(struct operations *operations);
void operations_deinit(struct operations *operations);

/* A new one, with its round, waiting to be started. NULL if there is no room. */
struct operation *operation_open(struct operations *operations, struct engine_client *client,
                                 const struct round_rules *rules, enum round_kind kind,
                                 int64_t ttl_ns, int64_t received_ns);

/* Exactly once each, before it starts. tag: NULL without one; key: with its prefix. */
void operation_set_tag(struct operation *operation, const char *tag, size_t tag_len);
void operation_set_key(struct operations *operations, struct operation *operation, const char *key,
                       size_t key_len);

/* About the same resource as the other one. */
void operation_set_resource(struct operation *operation, const struct operation *other);

/* It has been answered, or its client has left. */
void operation_leave_client(struct operation *operation);

/* It is over: the client has been left, and no command of its round is under way. */
void operation_free(struct operations *operations, struct operation *operation);

/* The others on its resource, one after the other; NULL at the end. */
struct operation *operation_first_of(const struct operation *operation);

/* What a command of its round is for a master. */
enum redis_command operation_command(const struct operation *operation, enum round_command command);
bool operation_is_release(const struct operation *operation, enum round_command command);

/* Does its answer count only with the guard's behind it? */
bool operation_is_vote(const struct operation *operation, enum round_command command);

/* The key on the masters, and its length. */
const char *operation_key(const struct operation *operation, size_t *key_len);

#endif
