#include "server/clients/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/clients/clients.h"
#include "server/clock.h"
#include "server/net/pass.h"
#include "server/net/tcp.h"

/* A peer that vanishes silently is detected after a minute. */
enum { KEEPALIVE_IDLE_S = 30, KEEPALIVE_INTERVAL_S = 10, KEEPALIVE_PROBES = 3 };

/* Connections that a listener accepts in a pass even if the time for clients is over: less than 1
 * ms of work, and more than a thousand connections a second. */
enum { ACCEPTS_IN_ANY_CASE = 16 };

/* --- accepting --- */

static void set_tcp_options(int fd)
{
    const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
        /* The same time limit while output is unacknowledged. The kernel sends no keepalive probes
         * then. */
        {IPPROTO_TCP, TCP_USER_TIMEOUT,
         1000 * (KEEPALIVE_IDLE_S + KEEPALIVE_PROBES * KEEPALIVE_INTERVAL_S)},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static void refuse_client(struct listener *listener, int fd, const char *peer,
                          enum listener_refusal refusal)
{
    static const char answer[] = "LIMIT clients\n";
    /* Over TLS no reply is sent, because it would require a handshake. */
    if (listener->tls.context == NULL)
        /* If the reply cannot be sent, the client sees only the close. */
        (void)!send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* First end the output. Closing a socket with unread input resets the connection, and the reply
     * could be lost. */
    shutdown(fd, SHUT_WR);
    evutil_closesocket(fd);
    clients_log_refusal(listener->clients, peer, refusal);
}

/* During the start, and while all places for handshakes are taken, clients wait in the listen
 * queue. */
static bool must_pause(const struct listener *listener)
{
    const struct clients *clients = listener->clients;
    return clients->starting ||
           (listener->tls.context != NULL && handshakes_full(&clients->handshakes));
}

static void pause_accepting(struct listener *listener)
{
    evconnlistener_disable(listener->accepting);
    listener->paused = true;
}

static void pause_if_full(struct clients *clients)
{
    for (size_t i = 0; i < clients->listener_count; i++)
        if (must_pause(clients->listeners[i]))
            pause_accepting(clients->listeners[i]);
}

static void accept_client(struct listener *listener, int fd, const struct sockaddr *address,
                          socklen_t len)
{
    struct clients *clients = listener->clients;
    unsigned per_address = (unsigned)clients->config->limits.clients_per_address;
    struct peer peer;
    peer_find(&peer, fd, address, len);
    /* Check the limit per address first: a client that exceeds it must not displace another one. */
    enum address_count counted =
        address_counts_enter(&clients->address_counts, &peer.client_address, per_address);
    if (counted != ADDRESS_COUNTED) {
        refuse_client(listener, fd, peer.name,
                      counted == ADDRESS_FULL ? REFUSED_PER_ADDRESS : REFUSED_MEMORY);
        return;
    }
    if (clients->session_count + clients->handshakes.count >= clients->limit &&
        !sessions_make_room(clients, "limits.clients is reached; the oldest unauthenticated "
                                     "connections are closed") &&
        !handshakes_make_room(&clients->handshakes)) {
        address_counts_leave(&clients->address_counts, &peer.client_address);
        refuse_client(listener, fd, peer.name, REFUSED_CLIENTS);
        return;
    }
    if (peer.kind == PEER_TCP)
        set_tcp_options(fd);
    if (listener->tls.context != NULL) {
        handshake_start(&clients->handshakes, &listener->tls, fd, &peer);
        pause_if_full(clients);
        return;
    }
    if (!sessions_add(clients, fd, NULL, &peer))
        address_counts_leave(&clients->address_counts, &peer.client_address);
}

/* How many connections may be accepted in one pass. The number is limited so that an accepted
 * client is served before newer clients can displace it. */
static unsigned accepts_at_once(const struct listener *listener)
{
    const struct clients *clients = listener->clients;
    int64_t most = clients->config->limits.unauthenticated / 4;
    unsigned budget = listener->tls.context != NULL ? LIMIT_HANDSHAKES_A_PASS : LIMIT_ACCEPT_BUDGET;
    if (clients->auth.open || most > budget)
        return budget;
    return most > 1 ? (unsigned)most : 1;
}

static void listener_on_accept(struct evconnlistener *accepting, evutil_socket_t fd,
                               struct sockaddr *address, int len, void *context)
{
    struct listener *listener = context;
    accept_client(listener, fd, address, (socklen_t)len);
    if (listener->accepted++ == 0)
        pass_run_in_next(listener->pass);
    bool enough = listener->accepted >= ACCEPTS_IN_ANY_CASE &&
                  !pass_has_time(listener->clients->pass, clock_now_ns());
    if (enough || listener->accepted >= accepts_at_once(listener))
        evconnlistener_disable(accepting);
}

static void listener_on_pass(evutil_socket_t fd, short events, void *context)
{
    struct listener *listener = context;
    (void)fd;
    (void)events;
    listener->accepted = 0;
    if (!listener->paused)
        evconnlistener_enable(listener->accepting);
}

/* Descriptors or memory ran out. The listener is level-triggered: without a pause, libevent would
 * call this function again immediately. */
static void listener_on_error(struct evconnlistener *accepting, void *context)
{
    struct listener *listener = context;
    const struct timeval again = {.tv_sec = 1};
    (void)accepting;
    client_log(
        &listener->clients->client_log, CLIENT_LOG_ACCEPT_PAUSED,
        LOG_FIELDS(log_text("address", listener->address), log_text("why", strerror(errno)),
                   log_text("advice", "raise the limit of open files (LimitNOFILE=, ulimit -n)")));
    pause_accepting(listener);
    event_add(listener->retry, &again);
}

static void resume(struct listener *listener)
{
    if (!listener->paused || must_pause(listener))
        return;
    listener->paused = false;
    event_del(listener->retry);
    evconnlistener_enable(listener->accepting);
}

static void listener_on_retry(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    resume(context);
}

void listener_resume(struct clients *clients)
{
    for (size_t i = 0; i < clients->listener_count; i++)
        resume(clients->listeners[i]);
}

/* --- binding --- */

static int fail(struct error *error, int fd, const char *what, const char *url)
{
    error_set(error, "%.100s: %s: %s", url, what, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool is_file(const char *path, const struct stat *file)
{
    struct stat found;
    return lstat(path, &found) == 0 && found.st_dev == file->st_dev && found.st_ino == file->st_ino;
}

const struct config_address *listener_rival(const struct clients *clients,
                                            const struct config_address *address)
{
    bool local = address->kind == ADDRESS_UNIX;
    struct stat file;
    if (local && lstat(address->path, &file) != 0)
        return NULL;
    for (size_t i = 0; i < clients->listener_count; i++) {
        const struct listener *listener = clients->listeners[i];
        const struct config_address *other = &listener->config->address;
        if (other->kind == address->kind &&
            /* Compare unix sockets by file, because several paths can lead to one file. A file that
             * has replaced the listener's own file does not count. */
            (local ? listener_is_reachable(listener) && is_file(other->path, &file)
                   : other->port == address->port))
            return other;
    }
    return NULL;
}

/* Remove the file if it is a socket on which no process listens: a killed daemon has left it
 * behind. A socket on which a process listens is in use, and a file of another type does not belong
 * to redlockd. Otherwise errno says why not. */
static bool remove_stale(const struct sockaddr_un *where)
{
    struct stat found;
    int why = EADDRINUSE;
    if (lstat(where->sun_path, &found) == 0 && S_ISSOCK(found.st_mode)) {
        /* Non-blocking, because connect() to a listener with a full queue would block. */
        int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (probe >= 0 && connect(probe, (const struct sockaddr *)where, sizeof(*where)) != 0)
            why = errno;
        if (probe >= 0)
            close(probe);
    }
    if (why == ECONNREFUSED)
        return unlink(where->sun_path) == 0;
    errno = why == EACCES ? EACCES : EADDRINUSE;
    return false;
}

/* Whether this daemon created the file of a unix socket. */
static bool created_file(const struct listener *listener)
{
    return listener->config->address.kind == ADDRESS_UNIX && !listener->from_systemd;
}

bool listener_is_reachable(const struct listener *listener)
{
    return !created_file(listener) || is_file(listener->config->address.path, &listener->file);
}

/* Set the error for a failed bind(), whose reason is in errno. If another listener of this daemon
 * uses the file, the error names that listener's address. */
static int fail_to_bind(const struct listener *listener, int fd, struct error *error)
{
    const struct config_address *address = &listener->config->address;
    if (errno != EADDRINUSE)
        return fail(error, fd, "cannot create the socket file, or replace one that was left there",
                    address->url);
    const struct config_address *other = listener_rival(listener->clients, address);
    errno = EADDRINUSE;
    if (other == NULL)
        return fail(error, fd, "another daemon listens there, or the file is not a socket",
                    address->url);
    error_set(error, "%.80s: %s; this daemon already uses that file for %.80s", address->url,
              strerror(errno), other->url);
    close(fd);
    return -1;
}

static int bind_unix(struct listener *listener, struct error *error)
{
    const struct config_listen *config = listener->config;
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    strncpy(where.sun_path, config->address.path, sizeof(where.sun_path) - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(error, fd, "cannot create a socket", config->address.url);

    /* With this umask, no client can connect before mode and group are set. */
    mode_t saved = umask(0777);
    int failed = bind(fd, (struct sockaddr *)&where, sizeof(where));
    if (failed != 0 && errno == EADDRINUSE && remove_stale(&where))
        failed = bind(fd, (struct sockaddr *)&where, sizeof(where));
    umask(saved);
    if (failed != 0)
        return fail_to_bind(listener, fd, error);
    const char *cannot = NULL;
    if (config->group != (gid_t)-1 && chown(where.sun_path, (uid_t)-1, config->group) != 0)
        cannot = "cannot set the group of the socket file";
    else if (chmod(where.sun_path, config->mode) != 0)
        cannot = "cannot set the mode of the socket file";
    else if (listen(fd, LISTEN_BACKLOG) != 0 || lstat(where.sun_path, &listener->file) != 0)
        cannot = "cannot listen";
    if (cannot == NULL)
        return fd;
    fd = fail(error, fd, cannot, config->address.url);
    unlink(where.sun_path);
    return fd;
}

/* Name the listener by the bound address, with the port that the kernel chose. */
static void name_listener(struct listener *listener, int fd)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    char name[SOCKADDR_TEXT];
    if (listener->config->address.kind == ADDRESS_UNIX ||
        getsockname(fd, (struct sockaddr *)&bound, &len) != 0) {
        snprintf(listener->address, sizeof(listener->address), "%s", listener->config->address.url);
        return;
    }
    sockaddr_text((struct sockaddr *)&bound, len, name);
    snprintf(listener->address, sizeof(listener->address), "%s://%s",
             listener->config->address.tls ? "tls" : "tcp", name);
}

static bool accept_on(struct listener *listener, int fd, struct error *error)
{
    struct clients *clients = listener->clients;
    name_listener(listener, fd);
    listener->retry = event_new(clients->base, -1, 0, listener_on_retry, listener);
    listener->pass = event_new(clients->base, -1, 0, listener_on_pass, listener);
    listener->accepting = evconnlistener_new(clients->base, listener_on_accept, listener,
                                             LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (listener->retry == NULL || listener->pass == NULL || listener->accepting == NULL) {
        errno = ENOMEM;
        fail(error, listener->accepting == NULL ? fd : -1, "cannot accept",
             listener->config->address.url);
        return false;
    }
    evconnlistener_set_error_cb(listener->accepting, listener_on_error);
    if (must_pause(listener))
        pause_accepting(listener);
    return true;
}

struct listener *listener_open(struct clients *clients, const struct config_listen *config,
                               int inherited_fd, struct error *error)
{
    const struct config_address *address = &config->address;
    struct listener *listener = calloc(1, sizeof(*listener));
    int fd = inherited_fd;
    if (listener == NULL) {
        error_set(error, "not enough memory for a listener");
        return NULL;
    }
    *listener =
        (struct listener){.clients = clients, .config = config, .from_systemd = inherited_fd >= 0};
    if (address->tls && !tls_init_listen(&listener->tls, &config->tls, error)) {
        free(listener);
        return NULL;
    }
    if (inherited_fd >= 0 && address->kind == ADDRESS_TCP)
        tcp_limit_buffers(inherited_fd);
    else if (inherited_fd < 0 && address->kind == ADDRESS_TCP)
        fd = tcp_listen(address, config->any_port, listener_rival(clients, address), error);
    else if (inherited_fd < 0)
        fd = bind_unix(listener, error);
    if (fd >= 0 && accept_on(listener, fd, error))
        return listener;
    listener_close(listener);
    return NULL;
}

void listener_close(struct listener *listener)
{
    if (listener->accepting != NULL) {
        /* Unlink before closing: while the socket is open, its inode number cannot be reused by
         * another file. */
        if (created_file(listener) && listener_is_reachable(listener))
            unlink(listener->config->address.path);
        evconnlistener_free(listener->accepting);
    }
    if (listener->retry != NULL)
        event_free(listener->retry);
    if (listener->pass != NULL)
        event_free(listener->pass);
    tls_deinit(&listener->tls);
    free(listener);
}
