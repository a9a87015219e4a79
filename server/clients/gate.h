/*
 * Where a connection says who it is. Until then it may do next to nothing, and not for long:
 *
 *     connected -> gate_enter --- known by its unix socket ---> allowed what that user is
 *                      |
 *                  at the gate -- AUTH, a right secret -------> allowed what that user is
 *                      |
 *                      +--------- a wrong one, or auth_timeout, or others come and there is no
 *                                 room left: the one that has waited longest is closed
 *
 * That the oldest has to go, and not the newest, is why a flood does not shut out whoever has a
 * secret: he needs one round trip, the flood has to fill the whole place in that time.
 *
 * Where the configuration has no users there is no gate, and everybody may do everything but BREAK.
 */
#ifndef SERVER_CLIENTS_GATE_H
#define SERVER_CLIENTS_GATE_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "server/clients/guesses.h"
#include "server/clients/users.h"

struct clients;
struct session;

TAILQ_HEAD(session_queue, session);

struct gate {
    bool open; /* nobody has to say who he is */
    struct users users;
    struct session_queue waiting; /* at the gate, the one that came first first */
    unsigned waiting_count;
    bool crowded;        /* the log knows: no news until half of the room is empty again */
    struct event *timer; /* the deadline of the first of them */
    struct guesses *guesses;
    uint64_t wrong;     /* secrets, since the start */
    uint64_t late;      /* were closed because they did not authenticate in time */
    uint64_t displaced; /* ... because others came */
};

/* By clients->config. False if there is not enough memory. */
bool gate_init(struct clients *clients);
void gate_deinit(struct clients *clients);

/*
 * Other users in place of those there are, once clients->config has them; the old ones are released
 * by the caller, afterwards. Connections go on as the user of the same name, or the one their unix
 * socket says now. Those whose user is gone are closed, and so are those that hold or wait for what
 * they may not lock any more. False if there is not enough memory: then nothing has changed.
 */
bool gate_renew(struct clients *clients);

/* limits.auth_timeout may have changed. */
void gate_retune(struct clients *clients);

/* A new session; and one that is over. */
void gate_enter(struct session *session);
void gate_leave(struct session *session);

/* AUTH. The answer is for the client, in a static text. *closes: it is to be the last one. */
const char *gate_auth(struct session *session, const char *secret, size_t len, bool *closes);

/* There is no room for another connection: the one that has waited longest at the gate makes some.
 * False if nobody is there. */
bool gate_make_room(struct clients *clients);

#endif
