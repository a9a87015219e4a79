/*
 * A second connection to one master. On it the master reports changes of keys that were read on the
 * first connection (client-side caching of Redis 6, in opt-in mode, redirected). Pure, like
 * engine/master/link.h.
 *
 *             open            connected            subscribed
 *     DOWN ---------> OPENING ---------> GREETING ------------> LISTENING
 *      ^                 |                  |                       |
 *      +-----------------+------------------+-----------------------+
 *         closed, refused, no answer in time, or the first connection is lost
 *
 * The second connection is opened only while the first one is up, and is closed with it. So both
 * lead to the same process: a new process of the master could know the id of an old connection as
 * that of another client, to which it would then send the reports.
 *
 * On the first connection, `CLIENT TRACKING ON REDIRECT <id of the second> OPTIN` is sent once and
 * sets the destination of the reports. `CLIENT CACHING YES` before a command that reads a key
 * requests one report: of the next change of that key, whether the key is deleted, set, extended or
 * expired.
 *
 * Reports decide nothing. They only say when to probe a key. If a master cannot report, or refuses
 * to, the daemon probes its keys at intervals.
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
    const struct link_login *login; /* owned by the caller */
    unsigned node;
    /* How long to wait for an answer before the connection is given up. */
    int64_t silence_timeout_ns;

    enum tracker_state state;
    unsigned step;       /* GREETING: the step whose answer is next */
    int64_t client_id;   /* id of the second connection, assigned by the master */
    int64_t deadline_ns; /* when tracker_on_timer() has to run; INT64_MAX: the link is not up */
    bool ping_due;       /* LISTENING: a PING has been sent and is not answered */
    unsigned attempts;   /* as in struct link */

    /* The serial number of the present setup of reports, never 0. 0 while there is none: one of the
     * connections is lost, or the master has refused. */
    uint32_t tracking;
    uint32_t last_tracking;
};

void tracker_init(struct tracker *tracker, unsigned node, const struct link_io *io,
                  const struct link_login *login, int64_t silence_timeout_ns);

/* The first connection is up, or is lost. */
void tracker_on_link_up(struct tracker *tracker, int64_t now_ns);
void tracker_on_link_lost(struct tracker *tracker);

void tracker_on_connected(struct tracker *tracker, int64_t now_ns);
void tracker_on_closed(struct tracker *tracker, int64_t now_ns);

enum tracker_news {
    TRACKER_NOTHING,
    TRACKER_READY,       /* the connection is subscribed: reports can be set up */
    TRACKER_LOST,        /* the reply made the tracker close the connection */
    TRACKER_CHANGED,     /* one key has changed: *key and *key_len, valid as long as the reply */
    TRACKER_ALL_CHANGED, /* any key may have changed */
};

enum tracker_news tracker_on_reply(struct tracker *tracker, const struct redis_reply *reply,
                                   int64_t now_ns, const char **key, size_t *key_len);

/* Call at tracker->deadline_ns. heard_ns: see engine_on_timer(). Returns true if the connection was
 * given up. */
bool tracker_on_timer(struct tracker *tracker, int64_t heard_ns, int64_t now_ns);

/*
 * The first connection is up and the second one listens: direct the reports to the second one from
 * now on. The answer belongs to an outstanding command of kind OUTSTANDING_TRACKING.
 */
void tracker_start(struct tracker *tracker, struct link *link, int64_t now_ns);

/* Have the key tracked that the next command on the first connection reads. */
void tracker_request_report(struct link *link, int64_t now_ns);

#endif
