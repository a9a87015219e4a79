#include "server/clients/reply_queue.h"

#include <assert.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"

enum { SLOTS_FIRST = 8 };

/* A lock that a kept reply grants. */
struct kept_grant {
    struct kept_grant *next;
    char token[LIMIT_TOKEN];
};

struct reply_slot {
    uint16_t newer; /* the next pending command; of a free slot: the next free one */
    uint16_t older;
    bool used;
    struct evbuffer *kept;     /* owned; replies that follow this command's own; NULL: none */
    struct kept_grant *grants; /* owned; those among the replies in `kept` */
};

static void free_grants(struct kept_grant *grant)
{
    while (grant != NULL) {
        struct kept_grant *next = grant->next;
        free(grant);
        grant = next;
    }
}

void reply_queue_deinit(struct reply_queue *queue)
{
    for (unsigned i = 0; i < queue->size; i++) {
        free_grants(queue->slots[i].grants);
        if (queue->slots[i].kept != NULL)
            evbuffer_free(queue->slots[i].kept);
    }
    free(queue->slots);
    memset(queue, 0, sizeof(*queue));
}

/* Make room for more slots, which are then free. */
static bool grow(struct reply_queue *queue)
{
    unsigned size = queue->size == 0 ? SLOTS_FIRST : 2u * queue->size;
    assert(size <= REPLY_QUEUE_NONE);
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

/* Unlink the slot and free it. Its kept replies and grants are the caller's. */
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

/* A small reply is copied. Moving it would move its whole segment, of at least 512 bytes. */
static bool move_kept(struct evbuffer *to, struct evbuffer *from)
{
    char bytes[512];
    size_t len = evbuffer_get_length(from);
    if (len > sizeof(bytes))
        return evbuffer_add_buffer(to, from) == 0;
    return evbuffer_remove(from, bytes, len) >= 0 && evbuffer_add(to, bytes, len) == 0;
}

static bool keep_grant(struct reply_slot *slot, const char *token)
{
    struct kept_grant *grant = malloc(sizeof(*grant));
    if (grant == NULL)
        return false;
    memcpy(grant->token, token, LIMIT_TOKEN);
    grant->next = slot->grants;
    slot->grants = grant;
    return true;
}

static void move_grants(struct reply_slot *to, struct kept_grant *grants)
{
    struct kept_grant *last = grants;
    if (grants == NULL)
        return;
    while (last->next != NULL)
        last = last->next;
    last->next = to->grants;
    to->grants = grants;
}

bool reply_queue_settle(struct reply_queue *queue, uint16_t slot, const char *reply, size_t len,
                        const char *token, reply_queue_write *write, void *context)
{
    assert(slot < queue->size);
    assert(queue->slots[slot].used);
    uint16_t older = queue->slots[slot].older;
    struct evbuffer *kept = queue->slots[slot].kept;
    struct kept_grant *grants = queue->slots[slot].grants;
    release(queue, slot);
    if (older == REPLY_QUEUE_NONE) {
        write(context, reply, len);
        if (kept != NULL)
            write_kept(queue, kept, write, context);
        free_grants(grants);
        return true;
    }
    struct reply_slot *to = &queue->slots[older];
    move_grants(to, grants);
    bool enough = keep_at(queue, older, reply, len) && (token == NULL || keep_grant(to, token));
    if (kept != NULL) {
        enough = enough && move_kept(to->kept, kept);
        evbuffer_free(kept);
    }
    return enough;
}

static bool grants_token(const struct reply_slot *slot, const char *token)
{
    for (const struct kept_grant *grant = slot->grants; grant != NULL; grant = grant->next)
        if (memcmp(grant->token, token, LIMIT_TOKEN) == 0)
            return true;
    return false;
}

bool reply_queue_push(struct reply_queue *queue, const char *token, const char *message, size_t len,
                      bool *kept)
{
    uint16_t slot = queue->pending > 0 ? queue->oldest : (uint16_t)REPLY_QUEUE_NONE;
    while (slot != REPLY_QUEUE_NONE && !grants_token(&queue->slots[slot], token))
        slot = queue->slots[slot].newer;
    *kept = slot != REPLY_QUEUE_NONE;
    return !*kept || keep_at(queue, slot, message, len);
}
