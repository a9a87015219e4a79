/*
 * Releases that a node has not confirmed. Each is the release of a token whose round failed, or of
 * a token that is to be released, for example by UNLOCK. They are sent first after a reconnect.
 * Pure.
 *
 * Safety depends on which tokens are in this list: never a token that was granted and is not being
 * released, and never one whose round is undecided (docs/design/algorithm.md, "Replayed releases").
 *
 * The list is a ring with the oldest entry first. The entries at its start have been sent and wait
 * for a confirmation; the others are still to be sent. When the ring is full, the oldest entry is
 * dropped. An entry that the node has refused for too long is dropped as well. The locks of dropped
 * entries end by their TTL.
 */
#ifndef ENGINE_MASTER_PENDING_RELEASES_H
#define ENGINE_MASTER_PENDING_RELEASES_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct pending_release {
    int64_t refused_ns; /* when the node first refused it by an error; 0: never */
    uint16_t key_len;
    char token[LIMIT_TOKEN];
    char key[LIMIT_KEY];
};

/* Each entry has a position, which rises from entry to entry. The entry is at entries[position %
 * size]. */
struct pending_releases {
    struct pending_release *entries; /* `size` entries, owned by the caller */
    size_t size;
    uint64_t first;   /* position of the oldest entry */
    size_t count;     /* number of entries */
    size_t unsent;    /* number of entries at the end that are still to be sent */
    uint64_t dropped; /* number of entries ever dropped */
};

/* Add a release, to be sent. If the ring is full, the oldest entry is dropped. */
void pending_releases_push(struct pending_releases *pending_releases, const char *key,
                           size_t key_len, const char *token);

/* The next entry to send; it counts as sent from then on. NULL if there is none. *position
 * identifies the entry when it is confirmed. The entry is valid until the next
 * pending_releases_push(). */
const struct pending_release *pending_releases_next(struct pending_releases *pending_releases,
                                                    uint64_t *position);

/* The node has confirmed the entry at this position, and with it all entries before. Confirming
 * twice is harmless. */
void pending_releases_confirm(struct pending_releases *pending_releases, uint64_t position);

/*
 * The node has refused the entry at this position. Move it to the end, to be sent again, unless the
 * node has refused it for retry_for_ns already; then drop it. All entries before it have been
 * answered, so the entry is the oldest one, or it was dropped meanwhile and nothing is done.
 */
void pending_releases_retry_later(struct pending_releases *pending_releases, uint64_t position,
                                  int64_t retry_for_ns, int64_t now_ns);

/* The connection was lost: send all unconfirmed entries again. */
void pending_releases_rewind(struct pending_releases *pending_releases);

#endif
