#include "server/masters/connections.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/clock.h"
#include "server/log.h"
#include "server/net/tls.h"

/* The most bytes that hiredis is fed at once. After each KiB that hiredis has parsed, it moves all
 * bytes that are left in its buffer to the front, which is slow if many are left. */
enum { PIECE = 4096 };

/* Close the failed connection by reset, and report the reason to the engine. */
static void fail(struct node *node, enum reason reason)
{
    node_close(node);
    engine_on_closed(node->connections->engine, node->index, node->channel, reason, clock_now_ns());
    pass_want_end(node->connections->pass);
}

/* Handle the complete replies of a piece. The caller reads the clock anew for each piece: many
 * replies take some time to handle, and the validity of locks depends on the clock. False if the
 * connection has ended. */
static bool take_replies(struct node *node, int64_t now_ns)
{
    enum resp_result result;
    while ((result = resp_next(&node->resp)) == RESP_REPLY) {
        unsigned taken = engine_on_replies(node->connections->engine, node->index, node->channel,
                                           node->resp.reply, node->resp.repeats + 1, now_ns);
        if (taken == 0)
            return false;
        resp_skip(&node->resp, taken - 1);
    }
    if (result == RESP_GARBAGE)
        fail(node, REASON_GARBAGE);
    return result == RESP_MORE;
}

static void node_on_input(void *context)
{
    struct node *node = context;
    size_t len;
    node->received_any = true;
    node->tls_reported = 0;
    do {
        const char *bytes = stream_input(&node->stream, &len);
        size_t piece = len < PIECE ? len : PIECE;
        resp_feed(&node->resp, bytes, piece);
        stream_consume(&node->stream, piece);
        len -= piece;
    } while (take_replies(node, clock_now_ns()) && len > 0 && stream_is_open(&node->stream));
    pass_want_end(node->connections->pass);
}

/* Log the details of a TLS failure, once per reason until a connection works. Returns the reason.
 */
static enum reason report_tls(struct node *node, enum reason reason, const char *why)
{
    uint64_t bit = UINT64_C(1) << reason;
    static_assert(REASON_COUNT <= 64, "one bit per reason");
    if (!(node->tls_reported & bit) && node->channel == CHANNEL_COMMANDS)
        log_event(node->connections->log, CONFIG_LOG_WARNING, "node_tls_failed",
                  LOG_FIELDS(log_text("node", node->config->name),
                             log_text("reason", reason_word(reason)), log_text("why", why)));
    node->tls_reported |= bit;
    return reason;
}

static enum reason reason_of_tls(struct node *node, struct bufferevent *tls)
{
    const char *why;
    enum reason reason = tls_failure(tls, &why);
    bool ended = reason == REASON_DISCONNECTED;
    if (node->opening != NULL)
        return report_tls(node, ended ? REASON_TLS : reason, why);
    bool refused = ended && !node->received_any && tls_certificate_requested(tls);
    if (refused)
        why = "the server requested a client certificate and closed the connection";
    if (refused || reason == REASON_UNCERTIFIED)
        return report_tls(node, REASON_UNCERTIFIED, why);
    return REASON_DISCONNECTED;
}

/* The reason for errno of a failed connect(). */
static enum reason reason_of_errno(void)
{
    /* ENOENT: the unix socket does not exist. */
    bool refused = errno == ECONNREFUSED || errno == ENOENT;
    return refused ? REASON_REFUSED : REASON_UNREACHABLE;
}

/* Any end of a connection counts as a failure. */
static void node_on_lost(void *context)
{
    struct node *node = context;
    fail(node, node->tls_started ? reason_of_tls(node, node->stream.tls) : REASON_DISCONNECTED);
}

static const struct stream_user master = {
    .on_input = node_on_input,
    .on_end = node_on_lost,
    .on_lost = node_on_lost,
    .master = true,
    /* Read all available replies in each pass. With a lower limit, replies would pile up and be
     * handled late whenever many clients make the passes long. */
    .input_max = LIMIT_NODE_IO,
};

static void node_on_event(struct bufferevent *connection, short events, void *context);

/* Take the connected socket out of the bufferevent. The caller then owns it. */
static int take_socket(struct node *node)
{
    int fd = bufferevent_getfd(node->opening);
    bufferevent_setfd(node->opening, -1);
    bufferevent_free(node->opening);
    node->opening = NULL;
    return fd;
}

/* The timeout of look-ups and TLS handshakes: half of the link's own timeout. The link does not
 * know about look-ups and handshakes. If the link's timeout ended first, the link would report the
 * master as unreachable, which would hide the cause. */
static struct timeval silence_timeout_of(const struct node *node)
{
    return clock_delay(engine_view_master(node->connections->engine, node->index, clock_now_ns())
                           .silence_timeout_ns /
                       2);
}

/* The socket is connected: start the TLS handshake over it. */
static bool start_tls(struct node *node)
{
    struct connections *connections = node->connections;
    const struct timeval timeout = silence_timeout_of(node);
    int fd = take_socket(node);
    node->opening = tls_connect(&connections->tls[node->index], connections->tls_sockets,
                                connections->base, fd, node->config->address.host);
    if (node->opening == NULL)
        return false;
    node->tls_started = true;
    bufferevent_setcb(node->opening, NULL, NULL, node_on_event, node);
    bufferevent_set_timeouts(node->opening, &timeout, NULL);
    bufferevent_enable(node->opening, EV_READ | EV_WRITE);
    return true;
}

/* The connection is ready for its first command. */
static bool begin_stream(struct node *node)
{
    struct bufferevent *tls = node->tls_started ? node->opening : NULL;
    int fd = tls != NULL ? bufferevent_getfd(tls) : take_socket(node);
    node->opening = NULL;
    if (tls != NULL)
        bufferevent_set_timeouts(tls, NULL, NULL);
    return stream_open(&node->stream, node->connections->streams, fd, tls, &master, node);
}

static void node_on_event(struct bufferevent *connection, short events, void *context)
{
    struct node *node = context;
    const struct config_address *address = &node->config->address;
    if (events & BEV_EVENT_TIMEOUT) {
        fail(node,
             report_tls(node, REASON_HUNG,
                        "the server does not answer the TLS handshake; does this port use TLS?"));
        return;
    }
    if (!(events & BEV_EVENT_CONNECTED)) {
        fail(node, node->tls_started ? reason_of_tls(node, node->opening) : reason_of_errno());
        return;
    }
    if (address->kind == ADDRESS_TCP && !node->tls_started) {
        int on = 1;
        setsockopt(bufferevent_getfd(connection), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    if (address->tls && !node->tls_started) {
        if (!start_tls(node))
            fail(node, REASON_TLS);
        return;
    }
    if (!begin_stream(node)) {
        fail(node, REASON_UNREACHABLE);
        return;
    }
    engine_on_connected(node->connections->engine, node->index, node->channel, clock_now_ns());
    pass_want_end(node->connections->pass);
}

static void node_on_failure(evutil_socket_t fd, short events, void *context)
{
    struct node *node = context;
    (void)fd;
    (void)events;
    fail(node, node->failure_reason);
}

/* Report the failure to the engine later, from the event loop: now the engine may be the caller,
 * and it must not be called from inside one of its own functions. */
static void fail_later(struct node *node, enum reason why)
{
    node->failure_reason = why;
    event_active(node->failure, 0, 0);
}

static void connect_to_address(struct node *node)
{
    const struct sockaddr *where = (const struct sockaddr *)&node->address.address;
    node->opening = bufferevent_socket_new(node->connections->base, -1,
                                           BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (node->opening == NULL) {
        fail_later(node, REASON_UNREACHABLE);
        return;
    }
    bufferevent_setcb(node->opening, NULL, NULL, node_on_event, node);
    if (bufferevent_socket_connect(node->opening, where, (int)node->address.len) != 0)
        fail_later(node, reason_of_errno());
}

/* The look-up has finished: connect, or fail if the name does not resolve. */
static void node_on_found(void *context, const struct evutil_addrinfo *found)
{
    struct node *node = context;
    event_del(node->failure);
    if (found == NULL) {
        fail_later(node, REASON_UNRESOLVED);
        return;
    }
    const struct evutil_addrinfo *chosen =
        resolver_choose(found, &node->address, node->attempts > 0);
    node->address.len = (socklen_t)chosen->ai_addrlen;
    memcpy(&node->address.address, chosen->ai_addr, chosen->ai_addrlen);
    node->addresses = resolver_count(found);
    node->attempts++;
    connect_to_address(node);
}

/* Start a look-up. If it takes longer than the timeout, the reason is `unresolved`. */
static void look_up(struct node *node)
{
    const struct timeval timeout = silence_timeout_of(node);
    node->failure_reason = REASON_UNRESOLVED;
    event_add(node->failure, &timeout);
    name_lookup_begin(&node->lookup);
}

/* For the tracking connection: use the address that the commands connection used last, so that both
 * use the same server. False if there is no such address, or if `node` is the commands
 * connection. */
static bool follow(struct node *node)
{
    const struct node *leader = &node->connections->nodes[node->index][CHANNEL_COMMANDS];
    if (node == leader || leader->address.len == 0)
        return false;
    node->address = leader->address;
    return true;
}

void node_open(struct node *node)
{
    node->received_any = false;
    if (!resp_reset(&node->resp))
        fail_later(node, REASON_UNREACHABLE);
    else if (node->config->address.kind == ADDRESS_UNIX || follow(node))
        connect_to_address(node);
    else
        look_up(node);
}

bool node_init(struct node *node, struct connections *connections, unsigned index,
               enum channel channel)
{
    const struct config_node *config = &connections->config->nodes[index];
    *node = (struct node){.connections = connections,
                          .config = config,
                          .index = index,
                          .channel = channel,
                          .lookup = {.resolver = connections->resolver,
                                     .host = config->address.host,
                                     .port = config->address.port,
                                     .on_found = node_on_found,
                                     .context = node}};
    if (config->address.kind == ADDRESS_UNIX) {
        struct sockaddr_un *where = (struct sockaddr_un *)&node->address.address;
        *where = (struct sockaddr_un){.sun_family = AF_UNIX};
        strncpy(where->sun_path, config->address.path, sizeof(where->sun_path) - 1);
        node->address.len = sizeof(*where);
    }
    node->failure = event_new(connections->base, -1, 0, node_on_failure, node);
    return resp_init(&node->resp) && node->failure != NULL;
}

void node_deinit(struct node *node)
{
    /* Close in order and not by reset, so that commands already sent, mainly releases, still reach
     * the master. */
    stream_close(&node->stream);
    name_lookup_deinit(&node->lookup);
    if (node->opening != NULL)
        bufferevent_free(node->opening);
    if (node->failure != NULL)
        event_free(node->failure);
    resp_deinit(&node->resp);
}

bool node_has_more(const struct node *node)
{
    return name_lookup_has_more(&node->lookup) || node->attempts < node->addresses;
}

void node_on_up(struct node *node)
{
    struct node *follower = &node->connections->nodes[node->index][CHANNEL_TRACKING];
    bool elsewhere =
        follower->address.len != node->address.len ||
        memcmp(&follower->address.address, &node->address.address, node->address.len) != 0;
    node->attempts = 0;
    if (elsewhere && (follower->opening != NULL || stream_is_open(&follower->stream)))
        fail_later(follower, REASON_DISCONNECTED);
}

void node_address(const struct node *node, char text[SOCKADDR_TEXT])
{
    const struct config_address *config = &node->config->address;
    const struct sockaddr *address = (const struct sockaddr *)&node->address.address;
    char given[LIMIT_URL];
    text[0] = '\0';
    if (config->kind == ADDRESS_UNIX || node->address.len == 0)
        return;
    sockaddr_text(address, node->address.len, text);
    snprintf(given, sizeof(given), address->sa_family == AF_INET6 ? "[%s]:%u" : "%s:%u",
             config->host, config->port);
    if (strcmp(text, given) == 0)
        text[0] = '\0';
}

/* Make the coming close of this socket a reset. A reset discards the bytes that the kernel still
 * has to send: a SET that the daemon has given up must not reach the master later. */
static void reset_on_close(int fd)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

void node_close(struct node *node)
{
    event_del(node->failure);
    node->tls_started = false;
    name_lookup_leave(&node->lookup);
    if (stream_is_open(&node->stream)) {
        if (node->channel == CHANNEL_COMMANDS)
            broadcast_drop(&node->connections->broadcast, node->index);
        reset_on_close(node->stream.fd);
        stream_close(&node->stream);
    }
    if (node->opening != NULL) {
        reset_on_close(bufferevent_getfd(node->opening));
        bufferevent_free(node->opening);
        node->opening = NULL;
    }
}
