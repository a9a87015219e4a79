/*
 * One master as this daemon sees it: its two connections, what the guard asks of it, what it has
 * refused on this connection, and why it has no vote.
 */
#ifndef ENGINE_MASTER_MASTER_H
#define ENGINE_MASTER_MASTER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/master/link.h"
#include "engine/master/tracker.h"
#include "engine/master/warden.h"
#include "protocol/reason.h"

struct master {
    struct link link;       /* commands; owns what is under way and what is owed */
    struct tracker tracker; /* reports of changes */
    struct warden warden;   /* what the guard asks of it; the guard keeps what it concludes */

    unsigned looks;          /* at keys, under way */
    enum reason vote_reason; /* why it has no vote, as last told; REASON_NONE: it has */

    /* On this connection: */
    bool tracking_refused;    /* it does not report changes */
    uint64_t refused_reasons; /* that have been logged; a bit each */
};

/* Why no vote is asked of it now; REASON_NONE: it votes. The one place that knows: the connection
 * comes before the guard. */
enum reason master_refuses_vote(const struct master *master, int64_t now_ns);

/* Its commands can be written to. */
bool master_is_connected(const struct master *master);

/* The connection for commands is lost, and with it what is known of it. */
void master_on_lost(struct master *master);

/* It has answered an error to a command of this kind. True if that is to be logged: once for each
 * reason and connection. */
bool master_note_refusal(struct master *master, enum reason reason);

/* When its current run began, at the latest; INT64_MIN unknown. */
int64_t master_begun_ns(const struct master *master, const struct drift *drift, int64_t now_ns);

#endif
