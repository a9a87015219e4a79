/*
 * Puts the replies to RESP commands in the order of the commands.
 *
 * The commands of a connection run at the same time, but their replies have no tags, so each reply
 * waits for those of the earlier commands. Each pending command has a slot, and keeps the replies
 * that come after it:
 *
 *     commands   LOCK a WAIT 1m    STATUS b    PING    LOCK c    STATUS d
 *     slots      pending           -           -       pending   -
 *     keeps      FREE PONG                             FREE
 *
 * When a command that is not the oldest one is answered, its reply and what it keeps move to the
 * command before. So there are never more slots than pending commands. As long as replies become
 * ready in order, nothing is kept and nothing is allocated.
 */
#ifndef SERVER_CLIENTS_REPLY_QUEUE_H
#define SERVER_CLIENTS_REPLY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply_slot;

/* A struct that is all zero is an empty queue. */
struct reply_queue {
    struct reply_slot *slots; /* owned; NULL if no command has been pending */
    uint16_t size;            /* of slots */
    uint16_t free;            /* the first free slot; REPLY_QUEUE_NONE: all are in use */
    uint16_t oldest;
    uint16_t newest;
    unsigned pending; /* slots in use */
    size_t kept;      /* bytes of replies that wait */
};

enum { REPLY_QUEUE_NONE = UINT16_MAX };

/* Writes bytes to the connection. */
typedef void reply_queue_write(void *context, const char *bytes, size_t len);

void reply_queue_deinit(struct reply_queue *queue);

/* A command is pending from now on; at most some thousands may be. Returns its slot, or
 * REPLY_QUEUE_NONE if there is not enough memory. */
uint16_t reply_queue_open(struct reply_queue *queue);

/* A command was answered at once, after all that are pending now. Only if some are. False if there
 * is not enough memory. */
bool reply_queue_keep(struct reply_queue *queue, const char *reply, size_t len);

/* The command of this slot is answered. The slot is free afterwards. Writes all replies whose turn
 * it is. token: LIMIT_TOKEN digits if the reply grants this lock, else NULL. False if there is not
 * enough memory to keep the reply. */
bool reply_queue_settle(struct reply_queue *queue, uint16_t slot, const char *reply, size_t len,
                        const char *token, reply_queue_write *write, void *context);

/* A message about this lock. If the reply that grants the lock is kept, the message is kept to
 * follow it. Otherwise *kept is false, and the caller writes the message. Returns false if there is
 * not enough memory to keep the message. */
bool reply_queue_push(struct reply_queue *queue, const char *token, const char *message, size_t len,
                      bool *kept);

#endif
