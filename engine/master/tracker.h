/*
 * A second connection to one master, on which the master reports changes of keys that were read on
 * the first one (client-side caching of Redis 6, in opt-in mode, redirected). Pure, like
 * engine/master/link.h.
 *
 *             open            connected            subscribed
 *     DOWN ---------> OPENING ---------> GREETING ------------> LISTENING
 *      ^                 |                  |                       |
 *      +-----------------+------------------+-----------------------+
 *                        closed, refused, or no answer to a PING
 *
 * On the first connection, `CLIENT TRACKING ON REDIRECT <id of the second> OPTIN` sets the
 * destination of the reports, once. `CLIENT CACHING YES` before a command that reads a key requests
 * one report of its next change, whether the key is deleted, set, extended or expired.
 *
 * Reports decide nothing; they only say when to probe a key. The keys of a master that cannot or
 * will not report are probed at intervals.
 */
#ifndef ENGINE_MASTER_TRACKER_H
#define ENGINE_MASTER_TRACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/master/link.h"
#include "protocol/redis.h"

enum tracker_state { TRACKER_DOWN, TRACKER_OPENING, TRACKER_GREETING, TRACKER_LISTENING };

struct tracker {
    const struct link_io *io;
    struct link_login login;
    unsigned node;
    int64_t silence_timeout_ns; /* how long it may stay without an answer that is due */

    enum tracker_state state;
    unsigned step;       /* GREETING: the step whose answer is next */
    int64_t client_id;   /* of the second connection */
    int64_t deadline_ns; /* when tracker_on_timer() has to run */
    bool ping_due;       /* LISTENING: the answer due is to a PING */
    unsigned attempts;

    /* A serial number, never 0, while reports are set up on the first connection. 0 if one of
     * the connections is lost, or the master refuses. */
    uint32_t tracking;
    uint32_t last_tracking;
};

void tracker_init(struct tracker *tracker, unsigned node, const struct link_io *io,
                  const struct link_login *login, int64_t silence_timeout_ns, int64_t now_ns);

void tracker_on_connected(struct tracker *tracker, int64_t now_ns);
void tracker_on_closed(struct tracker *tracker, int64_t now_ns);

enum tracker_news {
    TRACKER_NOTHING,
    TRACKER_READY,       /* the tracker listens */
    TRACKER_LOST,        /* the reply made the tracker close the connection */
    TRACKER_CHANGED,     /* one key: *key, *key_len, valid as long as the reply */
    TRACKER_ALL_CHANGED, /* any key may have changed */
};

enum tracker_news tracker_on_reply(struct tracker *tracker, const struct redis_reply *reply,
                                   int64_t now_ns, const char **key, size_t *key_len);

/* Returns true if it has given up the connection. */
bool tracker_on_timer(struct tracker *tracker, int64_t now_ns);

/*
 * The first connection is up and the second listens: have reports sent there from now on. The
 * answer belongs to an outstanding command of kind OUTSTANDING_TRACKING.
 */
void tracker_start(struct tracker *tracker, struct link *link, int64_t now_ns);

/* The next command on the first connection reads a key to be tracked. */
void tracker_request_report(struct link *link, int64_t now_ns);

#endif
