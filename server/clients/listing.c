#include "server/clients/listing.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "protocol/outcome.h"
#include "protocol/text.h"
#include "protocol/units.h"
#include "server/clock.h"
#include "server/server.h"

/* Where the lines of one listing go. */
struct listing {
    struct server *server;
    struct session *session;
    const struct request *request;
    int64_t now_ns;
};

__attribute__((format(printf, 2, 3))) static void line(const struct listing *to, const char *form,
                                                       ...)
{
    char text[LIMIT_REPLY];
    va_list arguments;
    va_start(arguments, form);
    int len = vsnprintf(text, sizeof(text), form, arguments);
    va_end(arguments);
    assert(len >= 0);
    size_t kept = (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1;
    session_write_line(to->session, to->request, text, kept);
}

/* For one more line of a long listing, "more=" and END: nobody is dropped for asking. */
static bool has_room(const struct listing *to, unsigned lines)
{
    return lines < LIMIT_LISTING_LINES && session_room(to->session) >= 4 * LIMIT_REPLY;
}

static int64_t ms_since(const struct listing *to, int64_t then_ns)
{
    return (to->now_ns - then_ns) / NS_PER_MS;
}

/* How long a node stays without its vote; -1 if that is not a matter of time. */
static int64_t no_vote_for_ms(const struct listing *to, unsigned node)
{
    const struct engine *engine = &to->server->engine;
    int64_t until_ns = guard_refuses_until_ns(&engine->flights.guard, node, to->now_ns);
    if (link_refuses_vote(&engine->flights.masters[node].link) != REASON_NONE || until_ns == INT64_MAX)
        return -1;
    return (until_ns - to->now_ns + NS_PER_MS - 1) / NS_PER_MS;
}

static void list_nodes(const struct listing *to)
{
    const struct server *server = to->server;
    for (unsigned i = 0; i < server->engine.flights.node_count; i++) {
        const struct engine *engine = &server->engine;
        const struct link *link = &engine->flights.masters[i].link;
        enum reason reason = engine_refuses_vote(engine, i, to->now_ns);
        line(to,
             "node=%s url=%s state=%s vote=%s reason=%s for_ms=%" PRId64 " since_ms=%" PRId64
             " rtt_us=%" PRId64 " unanswered=%u owed=%u tracking=%s",
             server->config->nodes[i].name, server->config->nodes[i].address.url,
             link_state_word(link->state), reason == REASON_NONE ? "yes" : "no",
             reason_word(reason), no_vote_for_ms(to, i), ms_since(to, link->since_ns),
             link->round_trip_ns < 0 ? -1 : link->round_trip_ns / 1000, link_unanswered(link),
             link->owed.count, engine->flights.masters[i].tracker.tracking != 0 ? "yes" : "no");
    }
}

static void list_stats(const struct listing *to)
{
    static const char *const subjects[ROUND_KINDS] = {
        [ROUND_ACQUIRE] = "lock",
        [ROUND_EXTEND] = "extend",
        [ROUND_RELEASE] = "unlock",
        [ROUND_STATUS] = "status",
    };
    static const char *const outcomes[OUTCOME_COUNT] = {
        [OUTCOME_OK] = "ok",       [OUTCOME_GONE] = "gone",         [OUTCOME_HELD] = "held",
        [OUTCOME_FREE] = "free",   [OUTCOME_NOQUORUM] = "noquorum", [OUTCOME_LATE] = "late",
        [OUTCOME_LIMIT] = "limit", [OUTCOME_SHUTDOWN] = "shutdown", [OUTCOME_OUTBID] = "outbid",
    };
    const struct engine *engine = &to->server->engine;
    line(to,
         "subject=daemon version=" REDLOCKD_VERSION " pid=%d uptime_ms=%" PRId64
         " clients=%u operations=%zu undone=%" PRIu64 " planted=%" PRIu64 " owed=%" PRIu64
         " waiting=%zu holding=%zu locks=%zu asked=%" PRIu64 " handovers=%" PRIu64 " looks=%" PRIu64
         " renewals=%" PRIu64 " lost=%" PRIu64 " unauthenticated=%u wrong_secrets=%" PRIu64
         " broken=%" PRIu64,
         (int)getpid(), ms_since(to, to->server->started_ns), to->server->session_count,
         engine->flights.pool.in_use, engine->stats.undone, engine->stats.planted,
         engine->stats.owed, engine->manager.waiting, engine->manager.holding, engine->manager.locks.in_use,
         engine->stats.asked, engine->stats.handovers, engine->stats.looks, engine->stats.renewals,
         engine->stats.lost, to->server->gate.waiting_count, to->server->gate.wrong,
         engine->stats.broken);
    for (unsigned kind = 0; kind < ROUND_KINDS; kind++) {
        char counts[512];
        size_t len = 0;
        for (unsigned outcome = 0; outcome < OUTCOME_COUNT; outcome++)
            len += (size_t)snprintf(counts + len, sizeof(counts) - len, " %s=%" PRIu64,
                                    outcomes[outcome], engine->stats.outcomes[kind][outcome]);
        line(to, "subject=%s%s", subjects[kind], counts);
    }
}

static const char *name_or_dash(const char *label)
{
    return label[0] != '\0' ? label : "-";
}

/* Somebody holds it, or waits for it, as far as this daemon knows. */
static bool is_in_use(const struct resource *resource)
{
    return resource->lock != NULL || resource->queue.length > 0;
}

/* Of what a user may not use he may not know, either; nor count it. */
static bool may_see(const struct listing *to, const struct resource *resource)
{
    return permit_covers(&to->session->permit, resource->name, resource->name_len);
}

/* His own connections, or all to whom no resource is closed. */
static bool may_see_client(const struct listing *to, const struct session *session)
{
    return permit_covers_all(&to->session->permit) ||
           (to->session->user != NULL && session->user == to->session->user);
}

static void list_lock(const struct listing *to, const struct resource *resource)
{
    char place[16] = "-";
    unsigned number = engine_place(resource, &to->session->client);
    int name_len = (int)resource->name_len;
    const struct lock *lock = resource->lock;
    if (number > 0)
        snprintf(place, sizeof(place), "%u", number);
    if (lock == NULL) {
        line(to,
             "resource=%.*s token=- client=- name=- since_ms=-1 left_ms=-1 hold=no waiters=%u "
             "place=%s",
             name_len, resource->name, resource->queue.length, place);
        return;
    }
    int64_t left_ms = (lock->hold.until_ns - to->now_ns) / NS_PER_MS;
    line(to,
         "resource=%.*s token=%.8s client=%" PRIu64 " name=%s since_ms=%" PRId64 " left_ms=%" PRId64
         " hold=%s waiters=%u place=%s",
         name_len, resource->name, lock->token, lock->client_id, name_or_dash(lock->client_label),
         ms_since(to, lock->hold.since_ns), left_ms > 0 ? left_ms : 0,
         lock->client != NULL ? "yes" : "no", resource->queue.length, place);
}

static void list_locks(const struct listing *to)
{
    const struct resource *resource = resource_first(&to->server->engine.manager.resources);
    unsigned lines = 0;
    unsigned more = 0;
    for (; resource != NULL; resource = resource_next(resource)) {
        if (!is_in_use(resource) || !may_see(to, resource))
            continue;
        if (more > 0 || !has_room(to, lines)) {
            more++;
            continue;
        }
        list_lock(to, resource);
        lines++;
    }
    if (more > 0)
        line(to, "more=%u", more);
}

/* What somebody who waits asks time and again: without a walk over all that are known. */
static void list_one_lock(const struct listing *to)
{
    const struct resource *resource = engine_find(&to->server->engine, to->request);
    if (resource != NULL && is_in_use(resource))
        list_lock(to, resource);
}

static void list_clients(const struct listing *to)
{
    unsigned lines = 0;
    unsigned more = 0;
    const struct session *session;
    LIST_FOREACH (session, &to->server->sessions, entry) {
        if (!may_see_client(to, session))
            continue;
        if (more > 0 || !has_room(to, lines)) {
            more++;
            continue;
        }
        lines++;
        line(to,
             "client=%" PRIu64 " name=%s peer=%s age_ms=%" PRId64 " requests=%" PRIu64
             " under_way=%u holds=%u user=%s",
             session->client.id, name_or_dash(session->client.label), session->peer,
             ms_since(to, session->since_ns), session->requests, session->client.call_count,
             session->client.hold_count, session->user != NULL ? session->user->config->name : "-");
    }
    if (more > 0)
        line(to, "more=%u", more);
}

/* Not by printf: whoever may do nothing else may ask for this as often as he likes. */
static void list_help(const struct listing *to)
{
    enum { WIDTH = 53 };
    for (unsigned verb = 0; verb < VERB_COUNT; verb++) {
        char line_text[256];
        struct text text = {.buf = line_text, .size = sizeof(line_text)};
        text_string(&text, verb_word((enum verb)verb));
        text_string(&text, " ");
        text_string(&text, verb_usage((enum verb)verb));
        while (text.len < WIDTH)
            text_byte(&text, ' ');
        text_string(&text, " ");
        text_string(&text, verb_text((enum verb)verb));
        session_write_line(to->session, to->request, line_text, text.len);
    }
}

void listing_write(struct server *server, struct session *session, const struct request *request)
{
    const struct listing to = {server, session, request, clock_now_ns()};
    switch (request->verb) {
    case VERB_NODES:
        list_nodes(&to);
        break;
    case VERB_STATS:
        list_stats(&to);
        break;
    case VERB_LOCKS:
        if (request->resource != NULL)
            list_one_lock(&to);
        else
            list_locks(&to);
        break;
    case VERB_CLIENTS:
        list_clients(&to);
        break;
    default:
        assert(request->verb == VERB_HELP);
        list_help(&to);
        break;
    }
    line(&to, "END");
}
