/*
 * Releases that a node has not confirmed: of tokens whose round failed, or that a client asked to
 * UNLOCK. They are sent first after a reconnect. Pure.
 *
 * Which tokens may be here decides about safety: never a token that was granted and not unlocked,
 * and never one whose round is undecided (docs/algorithm.md, "Replayed releases").
 *
 * A ring, oldest first: some entries have been sent and wait for confirmation, the others are still
 * to be sent. When the ring is full the oldest entry is dropped. An entry that the node has refused
 * for too long is dropped as well. The locks of dropped entries end by their TTL.
 */
#ifndef ENGINE_MASTER_PENDING_RELEASES_H
#define ENGINE_MASTER_PENDING_RELEASES_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct pending_release {
    int64_t refused_ns; /* when the node first refused it by an error; 0: it has not */
    uint16_t key_len;
    char token[LIMIT_TOKEN];
    char key[LIMIT_KEY];
};

/* A position counts all entries ever pushed; its entry is entries[position % size]. */
struct pending_releases {
    struct pending_release *entries; /* `size` entries, owned by the caller */
    size_t size;
    uint64_t first;   /* position of the oldest entry */
    size_t count;     /* entries from there on */
    size_t unsent;    /* the last of them, still to be sent */
    uint64_t dropped; /* entries ever dropped */
};

void pending_releases_push(struct pending_releases *pending_releases, const char *key,
                           size_t key_len, const char *token);

/* The next entry to send, which then counts as sent; NULL if there is none. It is valid until
 * the next pending_releases_push(), and is confirmed by its position. */
const struct pending_release *pending_releases_next(struct pending_releases *pending_releases,
                                                    uint64_t *position);

/* The entry there and all before it are done. Confirming twice is harmless. */
void pending_releases_confirm(struct pending_releases *pending_releases, uint64_t position);

/*
 * The node has refused the entry there. Move it to the end, to be sent again, until the node has
 * refused it for retry_for_ns. The entry is the oldest, because all before it have been answered;
 * or it was dropped meanwhile.
 */
void pending_releases_retry_later(struct pending_releases *pending_releases, uint64_t position,
                                  int64_t retry_for_ns, int64_t now_ns);

/* The connection was lost: send all unconfirmed entries again. */
void pending_releases_rewind(struct pending_releases *pending_releases);

#endif
