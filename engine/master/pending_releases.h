/*
 * The releases that a node is pending_releases: tokens of failed rounds, or that a client asked to
 * UNLOCK, whose release the node has not confirmed. They are sent first thing after a reconnect.
 * Pure.
 *
 * What may stand here decides about safety: never a token that was granted and not unlocked, never
 * one whose round is undecided (docs/algorithm.md, "Replayed releases").
 *
 * A ring, oldest first: some have been sent and wait for their confirmation, the others are still
 * to be sent. When the ring is full the oldest is forgotten, and so is what was refused for too
 * long: those locks end by their time to live.
 */
#ifndef ENGINE_MASTER_PENDING_RELEASES_H
#define ENGINE_MASTER_PENDING_RELEASES_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct pending_release {
    int64_t refused_ns; /* when the node first answered it by an error; 0: it has not */
    uint16_t key_len;
    char token[LIMIT_TOKEN];
    char key[LIMIT_KEY];
};

/* Positions count all entries ever pushed; one lies in entries[position % size]. */
struct pending_releases {
    struct pending_release *entries; /* `size` of them, of the caller */
    size_t size;
    uint64_t first;   /* the position of the oldest */
    size_t count;     /* from there on ... */
    size_t unsent;    /* ... of which the last are to be sent */
    uint64_t dropped; /* entries ever forgotten */
};

void pending_releases_push(struct pending_releases *pending_releases, const char *key,
                           size_t key_len, const char *token);

/* The next entry to send, which then counts as sent, valid until the next pending_releases_push();
 * NULL if there is none. It is confirmed by its position. */
const struct pending_release *pending_releases_next(struct pending_releases *pending_releases,
                                                    uint64_t *position);

/* The entry there, and all before it, are done. Confirming twice does no harm. */
void pending_releases_confirm(struct pending_releases *pending_releases, uint64_t position);

/* The entry there has been refused: it goes behind all others, to be sent again, until it has been
 * refused for as long as retry_for_ns. It is the oldest, since all before it have been answered; or
 * has been forgotten meanwhile. */
void pending_releases_put_off(struct pending_releases *pending_releases, uint64_t position,
                              int64_t retry_for_ns, int64_t now_ns);

/* The connection was lost: what was not confirmed is to be sent again. */
void pending_releases_rewind(struct pending_releases *pending_releases);

#endif
