#include "server/node.h"

#include <errno.h>
#include <event2/buffer.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/clock.h"
#include "server/server.h"
#include "server/tls.h"

/* As much as one look into the input shows: libevent keeps it in a few pieces. */
enum { INPUT_PIECES = 8 };

static void feed_input(struct node *node)
{
    struct evbuffer *input = bufferevent_get_input(node->connection);
    struct evbuffer_iovec pieces[INPUT_PIECES];
    while (evbuffer_get_length(input) > 0) {
        int count = evbuffer_peek(input, -1, NULL, pieces, INPUT_PIECES);
        size_t fed = 0;
        for (int i = 0; i < count && i < INPUT_PIECES; i++) {
            resp_feed(&node->resp, pieces[i].iov_base, pieces[i].iov_len);
            fed += pieces[i].iov_len;
        }
        evbuffer_drain(input, fed);
    }
}

/* The connection is of no use any more: reset it, and tell the engine. */
static void fail(struct node *node, enum reason reason)
{
    node_close(node);
    engine_on_closed(&node->server->engine, node->index, node->channel, reason, clock_now_ns());
    server_rearm(node->server);
}

static void node_on_read(struct bufferevent *connection, void *context)
{
    struct node *node = context;
    (void)connection;
    node->heard = true;
    node->tls_reported = REASON_NONE;
    feed_input(node);
    for (;;) {
        enum resp_result result = resp_next(&node->resp);
        if (result == RESP_GARBAGE) {
            fail(node, REASON_GARBAGE);
            return;
        }
        if (result == RESP_MORE)
            break;
        /* Afresh for each: the validity of a lock hangs on it. */
        if (!engine_on_reply(&node->server->engine, node->index, node->channel, &node->resp.reply,
                             clock_now_ns()))
            break;
    }
    server_rearm(node->server);
}

/* In the log, what exactly was wrong: once, until it works or fails in another way. */
static enum reason report_tls(struct node *node, enum reason reason, const char *why)
{
    if (node->tls_reported != reason && node->channel == CHANNEL_COMMANDS)
        log_event(&node->server->log, CONFIG_LOG_WARNING, "node_tls_failed",
                  LOG_FIELDS(log_text("node", node->config->name),
                             log_text("reason", reason_word(reason)), log_text("why", why)));
    node->tls_reported = reason;
    return reason;
}

static enum reason reason_of_tls(struct node *node)
{
    static const enum reason reasons[] = {
        [TLS_ENDED] = REASON_TLS,
        [TLS_FOREIGN] = REASON_TLS,
        [TLS_EXPIRED] = REASON_EXPIRED,
        [TLS_UNTRUSTED] = REASON_UNTRUSTED,
        [TLS_WRONG_NAME] = REASON_WRONGNAME,
        [TLS_CERTIFICATE] = REASON_CERTIFICATE,
        [TLS_UNCERTIFIED] = REASON_UNCERTIFIED,
        [TLS_OTHER] = REASON_TLS,
    };
    const char *why;
    enum tls_failure failure = tls_failure_of(node->connection, &why);
    if (!node->connected)
        return report_tls(node, reasons[failure], why);
    bool refused = failure == TLS_ENDED && !node->heard && tls_was_asked(node->connection);
    if (refused)
        why = "it asked for our certificate, and ended the connection";
    if (refused || failure == TLS_UNCERTIFIED)
        return report_tls(node, REASON_UNCERTIFIED, why);
    return REASON_DISCONNECTED;
}

static enum reason reason_of_failure(struct node *node)
{
    if (node->secured)
        return reason_of_tls(node);
    if (bufferevent_socket_get_dns_error(node->connection) != 0)
        return REASON_UNRESOLVED;
    if (node->connected)
        return REASON_DISCONNECTED;
    /* A unix socket that nobody listens on, or that is not there. */
    if (errno == ECONNREFUSED || errno == ENOENT)
        return REASON_REFUSED;
    return REASON_UNREACHABLE;
}

static void node_on_event(struct bufferevent *connection, short events, void *context);

/* Connected: the socket goes to a bufferevent that does TLS over it. */
static bool secure(struct node *node)
{
    struct server *server = node->server;
    /* Before the link gives up, which does not know that there is a handshake. */
    int64_t patience_ns = link_patience_ns(&server->engine.links[node->index]) / 2;
    const struct timeval patience = {.tv_sec = patience_ns / NS_PER_S,
                                     .tv_usec = patience_ns % NS_PER_S / 1000};
    int fd = bufferevent_getfd(node->connection);
    bufferevent_setfd(node->connection, -1);
    bufferevent_free(node->connection);
    node->connection =
        tls_connect(&server->node_tls[node->index], server->base, fd, node->config->address.host);
    if (node->connection == NULL)
        return false;
    node->secured = true;
    node->heard = false;
    bufferevent_setcb(node->connection, node_on_read, NULL, node_on_event, node);
    bufferevent_set_timeouts(node->connection, &patience, NULL);
    bufferevent_enable(node->connection, EV_READ | EV_WRITE);
    return true;
}

static void node_on_event(struct bufferevent *connection, short events, void *context)
{
    struct node *node = context;
    if (events & BEV_EVENT_TIMEOUT) {
        fail(node, report_tls(node, REASON_HUNG,
                              "it does not answer the handshake: does it speak TLS at this port?"));
        return;
    }
    if (!(events & BEV_EVENT_CONNECTED)) {
        fail(node, reason_of_failure(node));
        return;
    }
    if (node->config->address.kind == ADDRESS_TCP && !node->secured) {
        int on = 1;
        setsockopt(bufferevent_getfd(connection), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    if (node->config->address.tls && !node->secured) {
        if (!secure(node))
            fail(node, REASON_TLS);
        return;
    }
    if (node->secured)
        bufferevent_set_timeouts(connection, NULL, NULL);
    node->connected = true;
    engine_on_connected(&node->server->engine, node->index, node->channel, clock_now_ns());
    server_rearm(node->server);
}

static void node_on_failure(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    fail(context, REASON_REFUSED);
}

bool node_init(struct node *node, struct server *server, unsigned index, enum channel channel,
               const struct config_node *config)
{
    *node = (struct node){.server = server, .config = config, .index = index, .channel = channel};
    node->failure = event_new(server->base, -1, 0, node_on_failure, node);
    return resp_init(&node->resp) && node->failure != NULL;
}

void node_deinit(struct node *node)
{
    /* In peace: what has been written, releases above all, still reaches the master. */
    if (node->connection != NULL)
        bufferevent_free(node->connection);
    if (node->failure != NULL)
        event_free(node->failure);
    resp_deinit(&node->resp);
}

static int connect_to(struct node *node)
{
    const struct config_address *address = &node->config->address;
    if (address->kind == ADDRESS_TCP)
        return bufferevent_socket_connect_hostname(node->connection, node->server->dns, AF_UNSPEC,
                                                   address->host, address->port);
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    strncpy(where.sun_path, address->path, sizeof(where.sun_path) - 1);
    return bufferevent_socket_connect(node->connection, (struct sockaddr *)&where, sizeof(where));
}

void node_open(struct node *node)
{
    /* The engine is in the middle of a step: whatever comes of this, it is told after this pass. */
    node->connection = bufferevent_socket_new(node->server->base, -1,
                                              BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (node->connection == NULL || !resp_reset(&node->resp)) {
        event_active(node->failure, 0, 0);
        return;
    }
    /* All that is there in a pass: else, where clients make passes long, answers are always late.
     */
    bufferevent_set_max_single_read(node->connection, LIMIT_NODE_IO);
    bufferevent_set_max_single_write(node->connection, LIMIT_NODE_IO);
    bufferevent_setcb(node->connection, node_on_read, NULL, node_on_event, node);
    bufferevent_enable(node->connection, EV_READ | EV_WRITE);
    if (connect_to(node) != 0)
        event_active(node->failure, 0, 0);
}

void node_close(struct node *node)
{
    event_del(node->failure);
    node->connected = false;
    node->secured = false;
    if (node->connection == NULL)
        return;
    /* Reset, so that what the kernel still has to send is dropped: a SET that we gave up must not
     * reach the master behind our back. */
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    int fd = bufferevent_getfd(node->connection);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    bufferevent_free(node->connection);
    node->connection = NULL;
}

void node_write(struct node *node, const char *bytes, size_t len)
{
    bufferevent_write(node->connection, bytes, len);
}
