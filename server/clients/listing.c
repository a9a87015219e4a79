#include "server/clients/listing.h"

#include <assert.h>
#include <inttypes.h>

#include "protocol/units.h"
#include "server/clients/clients.h"

static bool next_node(struct listing *listing, struct text *text)
{
    if (listing->index == listing->status.node_count)
        return false;
    status_write_node(&listing->status.nodes[listing->index++], text);
    return true;
}

/* What the daemon has counted, then the outcomes of each kind of round. */
static bool next_count(struct listing *listing, struct text *text)
{
    unsigned index = listing->index++;
    if (index == 0)
        status_write_daemon(&listing->status, text);
    else if (index <= ROUND_KINDS)
        status_write_outcomes(&listing->status, index - 1, text);
    return index <= ROUND_KINDS;
}

/* A user may neither know nor count what it may not use. */
static bool may_see(const struct listing *listing, const struct status_lock *lock)
{
    return permit_covers(&listing->session->identity.permit, lock->resource, lock->resource_len);
}

static bool next_lock(struct listing *listing, struct text *text)
{
    while (listing->more) {
        const struct resource *place = listing->place;
        struct status_lock lock = status_lock_of(&listing->resource, listing->now_ns);
        /* Without a walk over all of them where one is named, which waiters ask time and again. */
        listing->more = listing->request->resource == NULL &&
                        engine_next_resource(listing->engine, &listing->place, &listing->resource);
        if ((!lock.held && lock.queued == 0) || !may_see(listing, &lock))
            continue;
        if (text != NULL) {
            lock.place = engine_place(place, &listing->session->client);
            status_write_lock(&lock, text);
        }
        return true;
    }
    return false;
}

/* A user's own connections; to a user who may use every resource, all of them. */
static bool may_see_client(const struct listing *listing, const struct session *client)
{
    return permit_covers_all(&listing->session->identity.permit) ||
           (client->identity.user != NULL &&
            client->identity.user == listing->session->identity.user);
}

static bool next_client(struct listing *listing, struct text *text)
{
    const struct session *client = listing->client;
    while (client != NULL && !may_see_client(listing, client))
        client = LIST_NEXT(client, entry);
    if (client == NULL)
        return false;
    int64_t age_ms = (listing->now_ns - client->since_ns) / NS_PER_MS;
    if (text != NULL)
        text_format(text,
                    "client=%" PRIu64 " name=%s peer=%s age_ms=%" PRId64 " requests=%" PRIu64
                    " under_way=%u holds=%u user=%s",
                    engine_client_id(&client->client),
                    engine_client_name(&client->client)[0] != '\0'
                        ? engine_client_name(&client->client)
                        : "-",
                    client->peer, age_ms, client->requests, engine_client_requests(&client->client),
                    engine_client_holds(&client->client), session_user(client, "-"));
    listing->client = LIST_NEXT(client, entry);
    return true;
}

/* Not by printf: a client that may do nothing else may ask for this as often as it likes. */
static bool next_verb(struct listing *listing, struct text *text)
{
    enum { WIDTH = 53 };
    if (listing->index == VERB_COUNT)
        return false;
    enum verb verb = (enum verb)listing->index++;
    text_string(text, verb_word(verb));
    text_string(text, " ");
    text_string(text, verb_usage(verb));
    while (text->len < WIDTH)
        text_byte(text, ' ');
    text_string(text, " ");
    text_string(text, verb_text(verb));
    return true;
}

void listing_begin(struct listing *listing, const struct clients *clients,
                   const struct session *session, const struct request *request, int64_t now_ns)
{
    listing->session = session;
    listing->request = request;
    listing->now_ns = now_ns;
    listing->index = 0;
    listing->engine = clients->engine;
    listing->place = NULL;
    if (request->verb == VERB_NODES || request->verb == VERB_STATS)
        status_take_clients(&listing->status, clients, now_ns);
    else if (request->verb == VERB_LOCKS)
        listing->more =
            request->resource != NULL
                ? engine_find_resource(clients->engine, request, &listing->resource,
                                       &listing->place)
                : engine_next_resource(clients->engine, &listing->place, &listing->resource);
    else
        listing->client = LIST_FIRST(&clients->sessions);
}

bool listing_next(struct listing *listing, struct text *text)
{
    switch (listing->request->verb) {
    case VERB_NODES:
        return next_node(listing, text);
    case VERB_STATS:
        return next_count(listing, text);
    case VERB_LOCKS:
        return next_lock(listing, text);
    case VERB_CLIENTS:
        return next_client(listing, text);
    default:
        assert(listing->request->verb == VERB_HELP);
        return next_verb(listing, text);
    }
}
