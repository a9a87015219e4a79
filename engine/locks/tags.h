/*
 * The tags of all pending requests. Each request line asks whether its tag is in use, and a client
 * can have a thousand requests pending: a walk through them took half of the daemon's time with
 * 128 connections and twice the capacity offered, and had it serve half as many requests
 * (`make bench-overload`). Pure.
 */
#ifndef ENGINE_LOCKS_TAGS_H
#define ENGINE_LOCKS_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct engine_client;
struct pending_request;

struct tags {
    LIST_HEAD(tag_chain, pending_request) * chains; /* by the hash of client and tag */
    uint64_t seed;                                  /* secret seed of the hash function */
};

/* Returns false if there is not enough memory. */
bool tags_init(struct tags *tags, uint64_t seed);
void tags_deinit(struct tags *tags);

/* The request has a tag, and is pending from now on; or it is no longer pending. */
void tags_add(struct tags *tags, struct pending_request *pending);
void tags_remove(struct pending_request *pending);

/* Does a pending request of this client have this tag? */
bool tags_find(const struct tags *tags, const struct engine_client *client, const char *tag,
               size_t tag_len);

#endif
