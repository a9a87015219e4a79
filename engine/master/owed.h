/*
 * The releases that a node is owed: tokens of failed rounds, or that a client asked to UNLOCK,
 * whose release the node has not confirmed. They are sent first thing after a reconnect. Pure.
 *
 * What may stand here decides about safety: never a token that was granted and not unlocked, never
 * one whose round is undecided (docs/algorithm.md, "Replayed releases").
 *
 * A ring of bytes, oldest first:
 *
 *     memory   | key2 tok2 |......free......| key0 tok0 | key1 tok1 | skip |
 *                          ^ tail             ^ head      ^ cursor
 *
 * head..cursor has been sent and waits for its confirmation, cursor..tail is still to be sent. When
 * the ring is full the oldest entries are forgotten, and so is what was refused for too long: those
 * locks end by their time to live.
 */
#ifndef ENGINE_MASTER_OWED_H
#define ENGINE_MASTER_OWED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

/* Room for the longest entry, wherever in memory the one before it ends. */
enum { OWED_SIZE_MIN = 2 * (sizeof(uint16_t) + sizeof(int64_t) + LIMIT_TOKEN + LIMIT_KEY) };

/* Positions count all bytes ever used; where they lie in memory is position % size. */
struct owed {
    char *memory; /* of the caller */
    size_t size;
    uint64_t head;
    uint64_t cursor;
    uint64_t tail;
    unsigned count;   /* entries in head..tail */
    unsigned unsent;  /* entries in cursor..tail */
    uint64_t dropped; /* entries ever forgotten */
};

/* A view into the ring, valid until the next owed_push(). */
struct owed_entry {
    const char *key;
    size_t key_len;
    const char *token; /* LIMIT_TOKEN bytes */
    uint64_t end;      /* confirm with this */
};

/* size is at least OWED_SIZE_MIN and at most 4 GiB. */
void owed_init(struct owed *owed, char *memory, size_t size);

void owed_push(struct owed *owed, const char *key, size_t key_len, const char *token);

/* The next entry to send, which then counts as sent; false if there is none. */
bool owed_next(struct owed *owed, struct owed_entry *entry);

/* The entry that ends there, and all before it, are done. Confirming twice does no harm. */
void owed_confirm(struct owed *owed, uint64_t end);

/* The entry that ends there has been refused: it goes behind all others, to be sent again, until it
 * has been refused for as long as patience_ns. It is the oldest, since all before it have been
 * answered; or has been forgotten meanwhile. */
void owed_put_off(struct owed *owed, uint64_t end, int64_t patience_ns, int64_t now_ns);

/* The connection was lost: what was not confirmed is to be sent again. */
void owed_rewind(struct owed *owed);

#endif
