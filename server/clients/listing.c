#include "server/clients/session.h"

#include <assert.h>
#include <event2/buffer.h>

#include "protocol/units.h"
#include "server/admin/status.h"
#include "server/clients/clients.h"
#include "server/clock.h"

/* A listing that is being written, within one callback. In the line protocol, each row is written
 * as it is made. In RESP the number of rows comes first, so the rows are collected. */
struct listing {
    struct session *session; /* requests the listing; sees only what its user may see */
    const struct request *request;
    struct evbuffer *collected; /* RESP; NULL in the line protocol */
    int64_t now_ns;
    bool limited; /* stops at the limits and ends with the number of rows left out */
    unsigned rows;
    unsigned more;
    struct row row;
};

static size_t room(const struct listing *listing)
{
    size_t left = session_room(listing->session);
    size_t used = listing->collected != NULL ? evbuffer_get_length(listing->collected) : 0;
    return left > used ? left - used : 0;
}

/* A long listing must not drop its client: rows for which there is no room are only counted. The
 * replies to pending RESP commands need room, too: the client cannot read anything before the
 * oldest of these commands is answered. */
static bool has_room(struct listing *listing)
{
    size_t reserved = listing->session->replies.pending * (size_t)LIMIT_RESP_REPLY;
    bool fits = !listing->limited || (listing->more == 0 && listing->rows < LIMIT_LISTING_LINES &&
                                      room(listing) >= 4 * LIMIT_REPLY + reserved);
    listing->more += !fits;
    return fits;
}

/* Collect the text of a row, after its header if it is a map. */
static void collect(struct listing *listing, bool is_map)
{
    char header_buf[16];
    struct text header = {.buf = header_buf, .size = sizeof(header_buf)};
    const struct text *text = &listing->row.text;
    assert(text->len < text->size);
    if (is_map)
        row_header(&listing->row, &header);
    if (evbuffer_add(listing->collected, header.buf, header.len) != 0 ||
        evbuffer_add(listing->collected, text->buf, text->len) != 0)
        session_drop(listing->session, "there is not enough memory for the client's replies");
}

static void end_row(struct listing *listing)
{
    listing->rows++;
    if (listing->collected != NULL)
        collect(listing, true);
    else
        session_write_line(listing->session, listing->request, listing->row.text.buf,
                           listing->row.text.len);
    row_clear(&listing->row);
}

static void write_nodes(struct listing *listing, const struct status *status)
{
    for (unsigned i = 0; i < status->engine.node_count; i++) {
        status_write_node(&status->nodes[i], &listing->row);
        end_row(listing);
    }
}

/* The daemon's counters, then the outcomes of each kind of round. */
static void write_counts(struct listing *listing, const struct status *status)
{
    status_write_daemon(status, &listing->row);
    end_row(listing);
    for (unsigned kind = 0; kind < ROUND_KINDS; kind++) {
        status_write_outcomes(status, kind, &listing->row);
        end_row(listing);
    }
}

/* A user must not see or count resources that it may not use. */
static void write_lock(struct listing *listing, const struct resource *place,
                       const struct resource_view *resource)
{
    struct session *session = listing->session;
    if ((!resource->locked && resource->queued == 0) ||
        !acl_covers(&session->identity.acl, resource->name, resource->name_len) ||
        !has_room(listing))
        return;
    struct status_lock lock = status_lock_of(resource, listing->now_ns);
    lock.place = engine_queue_position(place, &session->client, listing->now_ns);
    status_write_lock(&lock, &listing->row);
    end_row(listing);
}

/* If the request names a resource, look it up without a walk over all resources, because waiting
 * clients send this request repeatedly. */
static void write_locks(struct listing *listing)
{
    const struct engine *engine = listing->session->clients->engine;
    const struct resource *place = NULL;
    struct resource_view resource;
    if (listing->request->resource == NULL)
        while (engine_next_resource(engine, &place, &resource))
            write_lock(listing, place, &resource);
    else if (engine_find_resource(engine, listing->request, &resource, &place))
        write_lock(listing, place, &resource);
}

/* Users see their own connections; users that may use every resource see all. */
static bool may_see(const struct listing *listing, const struct session *client)
{
    const struct auth_identity *identity = &listing->session->identity;
    return acl_covers_all(&identity->acl) ||
           (client->identity.user != NULL && client->identity.user == identity->user);
}

static void write_client(struct listing *listing, const struct session *client)
{
    struct row *row = &listing->row;
    row_number(row, "client", (int64_t)engine_client_id(&client->client));
    row_optional(row, "name", engine_client_name(&client->client));
    row_string(row, "peer", client->peer);
    row_number(row, "age_ms", (listing->now_ns - client->since_ns) / NS_PER_MS);
    row_number(row, "requests", (int64_t)client->requests);
    row_number(row, "under_way", engine_client_requests(&client->client));
    row_number(row, "holds", engine_client_holds(&client->client));
    row_optional(row, "user", session_user(client, ""));
    end_row(listing);
}

static void write_clients(struct listing *listing)
{
    const struct session *client;
    LIST_FOREACH (client, &listing->session->clients->sessions, entry)
        if (may_see(listing, client) && has_room(listing))
            write_client(listing, client);
}

/* Written without printf to be cheap: even a client without any rights may request this listing as
 * often as it likes. In RESP it is an array of texts. */
static void write_help(struct listing *listing)
{
    enum { WIDTH = 72 };
    char buf[LIMIT_REPLY];
    struct text *row = &listing->row.text;
    for (enum verb verb = 0; verb < VERB_COUNT; verb++) {
        struct text line = {.buf = buf, .size = sizeof(buf)};
        text_string(&line, verb_word(verb));
        text_string(&line, " ");
        text_string(&line, verb_usage(verb));
        while (line.len < WIDTH)
            text_byte(&line, ' ');
        text_string(&line, " ");
        text_string(&line, verb_text(verb));
        if (listing->collected == NULL) {
            session_write_line(listing->session, listing->request, line.buf, line.len);
            continue;
        }
        resp_bulk(row, line.buf, line.len);
        collect(listing, false);
        row_clear(&listing->row);
        listing->rows++;
    }
}

static void write_status(struct listing *listing)
{
    struct status status;
    status_take_clients(&status, listing->session->clients, listing->now_ns);
    if (listing->request->verb == VERB_NODES)
        write_nodes(listing, &status);
    else
        write_counts(listing, &status);
}

bool listing_is_limited(const struct request *request)
{
    return request->verb == VERB_CLIENTS ||
           (request->verb == VERB_LOCKS && request->resource == NULL);
}

/* Write the collected rows as an array. */
static void write_collected(struct listing *listing)
{
    struct evbuffer_iovec piece;
    char header_buf[16];
    struct text header = {.buf = header_buf, .size = sizeof(header_buf)};
    resp_array(&header, listing->rows);
    session_write_bytes(listing->session, header.buf, header.len);
    while (evbuffer_peek(listing->collected, -1, NULL, &piece, 1) > 0) {
        session_write_bytes(listing->session, piece.iov_base, piece.iov_len);
        evbuffer_drain(listing->collected, piece.iov_len);
    }
    evbuffer_free(listing->collected);
}

static void write_rows(struct listing *listing)
{
    switch (listing->request->verb) {
    case VERB_HELP:
        write_help(listing);
        break;
    case VERB_LOCKS:
        write_locks(listing);
        break;
    case VERB_CLIENTS:
        write_clients(listing);
        break;
    default:
        write_status(listing);
        break;
    }
    if (listing->more > 0) {
        row_number(&listing->row, "more", listing->more);
        end_row(listing);
    }
}

void listing_write(struct session *session, const struct request *request)
{
    char buf[LIMIT_REPLY];
    struct listing listing = {
        .session = session,
        .request = request,
        .now_ns = clock_now_ns(),
        .limited = listing_is_limited(request),
        .row = {.text = {.buf = buf, .size = sizeof(buf)}, .dialect = session->dialect},
    };
    if (session->dialect == DIALECT_LINE) {
        write_rows(&listing);
        session_write_text(session, request, "END");
    } else if ((listing.collected = evbuffer_new()) != NULL) {
        write_rows(&listing);
        write_collected(&listing);
    } else {
        session_drop(session, "there is not enough memory for the client's replies");
    }
    /* A limited listing walks over all locks or clients. Measured with its output on 2026-11-24:
     * 5.5 ms for 65,536 locks, 1.2 ms for 10,000 clients. So one listing fits in a pass and needs
     * no splitting, but several may not. Other lines are too cheap to read the clock for each.
     * LOCKS with a resource walks the client's pending requests. */
    if (listing.limited || clock_now_ns() - session->lines_ns > TURN_SLOW_NS)
        turns_end_slow(&session->clients->turns, &session->turn);
}
