#include "engine/master/tracker.h"

#include <assert.h>
#include <stdio.h>

#include "engine/round/node_set.h"
#include "protocol/units.h"

static const char channel[] = "__redis__:invalidate";

/* Interval of PINGs. Without them, the daemon would not notice that the connection was lost
 * silently. */
#define PING_EVERY_NS (5 * NS_PER_S)

/* After this time the daemon tries again to get reports from a master that could not or would not
 * send them. */
#define REFUSED_RETRY_NS (60 * NS_PER_S)

enum step { STEP_AUTH, STEP_NAME, STEP_ID, STEP_SUBSCRIBE };

void tracker_init(struct tracker *tracker, unsigned node, const struct link_io *io,
                  const struct link_login *login, int64_t silence_timeout_ns)
{
    *tracker = (struct tracker){
        .io = io,
        .login = login,
        .node = node,
        .silence_timeout_ns = silence_timeout_ns,
        .state = TRACKER_DOWN,
        .deadline_ns = INT64_MAX,
    };
}

static void write_words(struct tracker *tracker, const char *const *words)
{
    char buf[LINK_COMMAND_MAX];
    size_t len = link_format(words, buf);
    tracker->io->write(tracker->io->context, nodes_only(tracker->node), CHANNEL_TRACKING, buf, len);
}

/* --- the connection --- */

static void wait_for_answer(struct tracker *tracker, int64_t now_ns)
{
    tracker->deadline_ns = now_ns + tracker->silence_timeout_ns;
}

void tracker_on_connected(struct tracker *tracker, int64_t now_ns)
{
    const struct link_login *login = tracker->login;
    assert(tracker->state == TRACKER_OPENING);
    tracker->state = TRACKER_GREETING;
    tracker->step = login->password != NULL ? STEP_AUTH : STEP_NAME;
    if (login->password != NULL)
        write_words(tracker,
                    (const char *[]){"AUTH",
                                     login->username != NULL ? login->username : login->password,
                                     login->username != NULL ? login->password : NULL, NULL});
    write_words(tracker, (const char *[]){"CLIENT", "SETNAME", "redlockd-tracking", NULL});
    write_words(tracker, (const char *[]){"CLIENT", "ID", NULL});
    write_words(tracker, (const char *[]){"SUBSCRIBE", channel, NULL});
    wait_for_answer(tracker, now_ns);
}

void tracker_on_closed(struct tracker *tracker, int64_t now_ns)
{
    assert(tracker->state != TRACKER_DOWN);
    tracker->tracking = 0;
    tracker->state = TRACKER_DOWN;
    tracker->deadline_ns = now_ns + link_retry_ns(tracker->attempts, link_random(tracker->io));
    tracker->attempts++;
}

void tracker_on_link_up(struct tracker *tracker, int64_t now_ns)
{
    assert(tracker->state == TRACKER_DOWN);
    tracker->attempts = 0;
    tracker->deadline_ns = now_ns;
}

void tracker_on_link_lost(struct tracker *tracker)
{
    if (tracker->state != TRACKER_DOWN)
        tracker->io->close(tracker->io->context, tracker->node, CHANNEL_TRACKING);
    tracker->state = TRACKER_DOWN;
    tracker->tracking = 0;
    tracker->deadline_ns = INT64_MAX;
}

static enum tracker_news give_up_tracker(struct tracker *tracker, int64_t now_ns)
{
    tracker->io->close(tracker->io->context, tracker->node, CHANNEL_TRACKING);
    tracker_on_closed(tracker, now_ns);
    return TRACKER_LOST;
}

static enum tracker_news on_refused(struct tracker *tracker, int64_t now_ns)
{
    give_up_tracker(tracker, now_ns);
    tracker->deadline_ns = now_ns + REFUSED_RETRY_NS;
    return TRACKER_LOST;
}

static enum tracker_news on_tracker_greeting(struct tracker *tracker,
                                             const struct redis_reply *reply, int64_t now_ns)
{
    switch ((enum step)tracker->step++) {
    case STEP_AUTH:
        return reply->kind == RESP_ERROR ? on_refused(tracker, now_ns) : TRACKER_NOTHING;
    case STEP_NAME:
        return TRACKER_NOTHING; /* optional */
    case STEP_ID:
        if (reply->kind != RESP_INTEGER)
            return on_refused(tracker, now_ns);
        tracker->client_id = reply->integer;
        return TRACKER_NOTHING;
    case STEP_SUBSCRIBE:
        break;
    }
    if (!redis_item_is(reply, 0, "subscribe"))
        return on_refused(tracker, now_ns);
    tracker->state = TRACKER_LISTENING;
    tracker->ping_due = false;
    tracker->deadline_ns = now_ns + PING_EVERY_NS;
    return TRACKER_READY;
}

enum tracker_news tracker_on_reply(struct tracker *tracker, const struct redis_reply *reply,
                                   int64_t now_ns, const char **key, size_t *key_len)
{
    assert(tracker->state == TRACKER_GREETING || tracker->state == TRACKER_LISTENING);
    if (tracker->state == TRACKER_GREETING)
        return on_tracker_greeting(tracker, reply, now_ns);
    if (redis_item_is(reply, 0, "pong")) {
        /* The connection has lasted for a PING interval. If it is lost later, the first attempts to
         * reconnect follow quickly. */
        tracker->attempts = 0;
        tracker->ping_due = false;
        tracker->deadline_ns = now_ns + PING_EVERY_NS;
        return TRACKER_NOTHING;
    }
    if (reply->item_count != 3 || !redis_item_is(reply, 0, "message"))
        return give_up_tracker(tracker, now_ns);
    /* After FLUSHALL the master reports nil instead of a key. */
    if (reply->items[2].kind != RESP_ARRAY || reply->nested_count != 1 || reply->nested_str == NULL)
        return TRACKER_ALL_CHANGED;
    *key = reply->nested_str;
    *key_len = reply->nested_len;
    return TRACKER_CHANGED;
}

/* --- time --- */

bool tracker_on_timer(struct tracker *tracker, int64_t heard_ns, int64_t now_ns)
{
    if (heard_ns < tracker->deadline_ns)
        return false;
    switch (tracker->state) {
    case TRACKER_DOWN:
        tracker->state = TRACKER_OPENING;
        wait_for_answer(tracker, now_ns);
        tracker->io->open(tracker->io->context, tracker->node, CHANNEL_TRACKING);
        return false;
    case TRACKER_LISTENING:
        if (!tracker->ping_due) {
            tracker->ping_due = true;
            wait_for_answer(tracker, now_ns);
            write_words(tracker, (const char *[]){"PING", NULL});
            return false;
        }
        break;
    case TRACKER_OPENING:
    case TRACKER_GREETING:
        break;
    }
    give_up_tracker(tracker, now_ns);
    return true;
}

/* --- the first connection --- */

static void send_tracking_command(struct link *link, const char *const *words, int64_t now_ns)
{
    link_send_words(link, &(struct outstanding){.kind = OUTSTANDING_TRACKING, .sent_ns = now_ns},
                    words);
}

void tracker_start(struct tracker *tracker, struct link *link, int64_t now_ns)
{
    char id[24];
    assert(tracker->state == TRACKER_LISTENING);
    snprintf(id, sizeof(id), "%lld", (long long)tracker->client_id);
    send_tracking_command(
        link, (const char *[]){"CLIENT", "TRACKING", "ON", "REDIRECT", id, "OPTIN", NULL}, now_ns);
    tracker->last_tracking += tracker->last_tracking == UINT32_MAX ? 2 : 1;
    tracker->tracking = tracker->last_tracking;
}

void tracker_request_report(struct link *link, int64_t now_ns)
{
    send_tracking_command(link, (const char *[]){"CLIENT", "CACHING", "YES", NULL}, now_ns);
}
