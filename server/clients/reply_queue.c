#include "server/clients/reply_queue.h"

#include <assert.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"

/* The engine refuses more pending requests. One more slot is in use while it does so. */
enum { SLOTS_FIRST = 8, SLOTS_MAX = LIMIT_CLIENT_REQUESTS + 1 };

struct reply_slot {
    uint16_t newer; /* the next pending command; of a free slot: the next free one */
    uint16_t older;
    bool used;
    struct evbuffer *kept; /* owned; replies that follow this command's own; NULL: none */
};

void reply_queue_deinit(struct reply_queue *queue)
{
    for (unsigned i = 0; i < queue->size; i++)
        if (queue->slots[i].kept != NULL)
            evbuffer_free(queue->slots[i].kept);
    free(queue->slots);
    memset(queue, 0, sizeof(*queue));
}

/* Make room for more slots, which are then free. */
static bool grow(struct reply_queue *queue)
{
    unsigned size = queue->size == 0 ? SLOTS_FIRST : 2u * queue->size;
    if (size > SLOTS_MAX)
        size = SLOTS_MAX;
    assert(size > queue->size);
    struct reply_slot *slots = realloc(queue->slots, size * sizeof(*slots));
    if (slots == NULL)
        return false;
    for (unsigned i = queue->size; i < size; i++)
        slots[i] = (struct reply_slot){.newer = i + 1 < size ? (uint16_t)(i + 1)
                                                             : (uint16_t)REPLY_QUEUE_NONE};
    queue->slots = slots;
    queue->free = queue->size;
    queue->size = (uint16_t)size;
    return true;
}

uint16_t reply_queue_open(struct reply_queue *queue)
{
    bool full = queue->size == 0 || queue->free == REPLY_QUEUE_NONE;
    if (full && !grow(queue))
        return REPLY_QUEUE_NONE;
    uint16_t slot = queue->free;
    struct reply_slot *entry = &queue->slots[slot];
    queue->free = entry->newer;
    *entry =
        (struct reply_slot){.newer = REPLY_QUEUE_NONE, .older = REPLY_QUEUE_NONE, .used = true};
    if (queue->pending == 0) {
        queue->oldest = slot;
    } else {
        entry->older = queue->newest;
        queue->slots[queue->newest].newer = slot;
    }
    queue->newest = slot;
    queue->pending++;
    return slot;
}

/* Unlink the slot and free it. Its kept replies are the caller's. */
static void release(struct reply_queue *queue, uint16_t slot)
{
    struct reply_slot *entry = &queue->slots[slot];
    if (entry->older != REPLY_QUEUE_NONE)
        queue->slots[entry->older].newer = entry->newer;
    else
        queue->oldest = entry->newer;
    if (entry->newer != REPLY_QUEUE_NONE)
        queue->slots[entry->newer].older = entry->older;
    else
        queue->newest = entry->older;
    *entry = (struct reply_slot){.newer = queue->free};
    queue->free = slot;
    queue->pending--;
}

static bool keep_at(struct reply_queue *queue, uint16_t slot, const char *bytes, size_t len)
{
    struct reply_slot *entry = &queue->slots[slot];
    if (entry->kept == NULL)
        entry->kept = evbuffer_new();
    if (entry->kept == NULL || evbuffer_add(entry->kept, bytes, len) != 0)
        return false;
    queue->kept += len;
    return true;
}

bool reply_queue_keep(struct reply_queue *queue, const char *reply, size_t len)
{
    assert(queue->pending > 0);
    return keep_at(queue, queue->newest, reply, len);
}

static void write_kept(struct reply_queue *queue, struct evbuffer *kept, reply_queue_write *write,
                       void *context)
{
    struct evbuffer_iovec piece;
    while (evbuffer_peek(kept, -1, NULL, &piece, 1) > 0) {
        write(context, piece.iov_base, piece.iov_len);
        queue->kept -= piece.iov_len;
        evbuffer_drain(kept, piece.iov_len);
    }
    evbuffer_free(kept);
}

bool reply_queue_settle(struct reply_queue *queue, uint16_t slot, const char *reply, size_t len,
                        reply_queue_write *write, void *context)
{
    assert(slot < queue->size);
    assert(queue->slots[slot].used);
    uint16_t older = queue->slots[slot].older;
    struct evbuffer *kept = queue->slots[slot].kept;
    release(queue, slot);
    if (older == REPLY_QUEUE_NONE) {
        write(context, reply, len);
        if (kept != NULL)
            write_kept(queue, kept, write, context);
        return true;
    }
    bool enough = keep_at(queue, older, reply, len);
    if (kept != NULL) {
        enough = enough && evbuffer_add_buffer(queue->slots[older].kept, kept) == 0;
        evbuffer_free(kept);
    }
    return enough;
}

bool reply_queue_find(const struct reply_queue *queue, const char *bytes, size_t len,
                      uint16_t *slot)
{
    *slot = queue->kept > 0 ? queue->oldest : REPLY_QUEUE_NONE;
    for (; *slot != REPLY_QUEUE_NONE; *slot = queue->slots[*slot].newer) {
        struct evbuffer *kept = queue->slots[*slot].kept;
        if (kept != NULL && evbuffer_search(kept, bytes, len, NULL).pos >= 0)
            return true;
    }
    return false;
}

bool reply_queue_keep_after(struct reply_queue *queue, uint16_t slot, const char *bytes, size_t len)
{
    return keep_at(queue, slot, bytes, len);
}
