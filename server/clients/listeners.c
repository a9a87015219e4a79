#include "server/clients/listener.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "config/url.h"
#include "server/clients/clients.h"
#include "server/clients/sockets.h"

static void log_listener(struct clients *clients, const char *event,
                         const struct listener *listener)
{
    log_event(clients->log, CONFIG_LOG_INFO, event,
              LOG_FIELDS(log_text("address", listener->address)));
}

typedef bool address_relation(const struct config_address *, const struct config_address *);

static struct listener *find(const struct clients *clients, const struct config_listen *config,
                             address_relation *is_related)
{
    for (size_t i = 0; i < clients->listener_count; i++)
        if (is_related(&clients->listeners[i]->config->address, &config->address))
            return clients->listeners[i];
    return NULL;
}

/* With --dev: clients of the usual address reach another program, perhaps another daemon. */
static void warn_of_other_port(struct clients *clients, const struct listener *listener)
{
    const char *usual = listener->config->address.url;
    if (listener->config->any_port && strcmp(listener->address, usual) != 0)
        log_event(clients->log, CONFIG_LOG_WARNING, "port_changed",
                  LOG_FIELDS(log_text("address", listener->address), log_text("usual", usual),
                             log_text("why", "another program uses the usual port, and answers "
                                             "clients there; give clients this address")));
}

static bool add_listener(struct clients *clients, const struct config_listen *config,
                         int inherited_fd, struct error *error)
{
    struct listener *listener = listener_open(clients, config, inherited_fd, error);
    if (listener == NULL)
        return false;
    clients->listeners[clients->listener_count++] = listener;
    log_listener(clients, "listening", listener);
    warn_of_other_port(clients, listener);
    return true;
}

/* Use the sockets of systemd first. A systemd socket that matches no entry can still occupy the
 * address of one. If the daemon opened that entry first, the error would blame an unknown
 * process. */
static bool open_all(struct clients *clients, struct sockets *sockets, struct error *error)
{
    const struct config *config = clients->config;
    assert(config->listen_count <= LISTENS_MAX);
    for (size_t i = 0; i < config->listen_count; i++) {
        int inherited_fd = sockets_take(sockets, &config->listens[i].address);
        if (inherited_fd >= 0 && !add_listener(clients, &config->listens[i], inherited_fd, error))
            return false;
    }
    if (!sockets_all_taken(sockets, error))
        return false;
    for (size_t i = 0; i < config->listen_count; i++) {
        const struct config_listen *listen = &config->listens[i];
        if (find(clients, listen, url_equal) == NULL && !add_listener(clients, listen, -1, error))
            return false;
    }
    return true;
}

bool listeners_start(struct clients *clients)
{
    struct sockets sockets;
    struct error error;
    bool started = sockets_init(&sockets, &error) && open_all(clients, &sockets, &error);
    if (!started)
        log_event(clients->log, CONFIG_LOG_ERROR, "listen_failed",
                  LOG_FIELDS(log_text("why", error.text)));
    sockets_deinit(&sockets);
    return started;
}

void listeners_stop(struct clients *clients)
{
    for (size_t i = 0; i < clients->listener_count; i++)
        listener_close(clients->listeners[i]);
    clients->listener_count = 0;
}

/* --- reload --- */

static bool is_among(const struct listener *listener, struct listener *const *listeners,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (listeners[i] == listener)
            return true;
    return false;
}

/* Open a listener that does not exist yet. The old listeners stay open until all new ones have been
 * opened, so a new one cannot take the address of an old one. */
static struct listener *open_new(struct clients *clients, const struct config_listen *config,
                                 struct error *error)
{
    const struct listener *rival = find(clients, config, url_collides);
    if (rival == NULL)
        return listener_open(clients, config, -1, error);
    error_set(error,
              "%.80s: this daemon already uses that port for %.80s; restart it to replace one with "
              "the other",
              config->address.url, rival->config->address.url);
    return NULL;
}

/* Refuse to drop a socket of systemd: systemd would keep listening, and no daemon would answer. */
static bool check_removed(const struct clients *clients, const struct listeners_change *change,
                          struct error *error)
{
    for (size_t i = 0; i < clients->listener_count; i++) {
        const struct listener *listener = clients->listeners[i];
        if (!listener->from_systemd || is_among(listener, change->wanted, change->count))
            continue;
        return error_set(error,
                         "%.100s: systemd owns this socket; remove it from redlockd.socket and "
                         "restart both units",
                         listener->address);
    }
    return true;
}

/* Replace a listener whose socket file was removed. If that fails, the rest of the reload still
 * takes effect. */
static struct listener *recreate(struct clients *clients, const struct config_listen *config)
{
    struct error error;
    struct listener *listener = listener_open(clients, config, -1, &error);
    if (listener == NULL)
        log_event(
            clients->log, CONFIG_LOG_WARNING, "listener_unreachable",
            LOG_FIELDS(log_text("address", config->address.url),
                       log_text("why", "the socket file was removed and cannot be created again"),
                       log_text("error", error.text)));
    return listener;
}

/* Only systemd can create its socket file again. */
static void check_inherited(struct clients *clients, const struct listener *listener)
{
    const struct config_address *address = &listener->config->address;
    struct stat file;
    if (!listener->from_systemd || address->kind != ADDRESS_UNIX ||
        lstat(address->path, &file) == 0)
        return;
    log_event(clients->log, CONFIG_LOG_WARNING, "listener_unreachable",
              LOG_FIELDS(log_text("address", address->url),
                         log_text("why", "systemd owns this socket, and its file was removed; "
                                         "restart redlockd.socket and redlockd.service"),
                         log_text("error", strerror(errno))));
}

/* Add one listener to the change: an existing one with reloaded certificates, or a new one. */
static bool prepare_one(struct clients *clients, const struct config_listen *config,
                        struct listeners_change *change, struct error *error)
{
    struct listener *existing = find(clients, config, url_equal);
    struct listener *opened = NULL;
    struct tls *tls = &change->tls[change->count];
    if (existing != NULL && config->address.tls && !tls_init_listen(tls, &config->tls, error))
        return false;
    if (existing != NULL)
        check_inherited(clients, existing);
    if (existing == NULL)
        opened = open_new(clients, config, error);
    else if (!listener_is_reachable(existing))
        opened = recreate(clients, config);
    if (existing == NULL && opened == NULL)
        return false;
    change->wanted[change->count++] = opened != NULL ? opened : existing;
    return true;
}

/* Close the listeners that were opened for this change. */
static void abandon(struct clients *clients, struct listeners_change *change)
{
    for (size_t i = 0; i < change->count; i++) {
        tls_deinit(&change->tls[i]);
        if (!is_among(change->wanted[i], clients->listeners, clients->listener_count))
            listener_close(change->wanted[i]);
    }
    change->count = 0;
}

bool listeners_prepare(struct clients *clients, const struct config *wanted,
                       struct listeners_change *change, struct error *error)
{
    bool prepared = true;
    *change = (struct listeners_change){0};
    for (size_t i = 0; prepared && i < wanted->listen_count; i++)
        prepared = prepare_one(clients, &wanted->listens[i], change, error);
    if (prepared && check_removed(clients, change, error))
        return true;
    abandon(clients, change);
    return false;
}

void listeners_commit(struct clients *clients, struct listeners_change *change)
{
    struct listener *before[LISTENS_MAX];
    size_t before_count = clients->listener_count;
    assert(change->count == clients->config->listen_count);
    for (size_t i = 0; i < before_count; i++)
        before[i] = clients->listeners[i];
    for (size_t i = 0; i < change->count; i++) {
        struct listener *listener = change->wanted[i];
        if (!is_among(listener, before, before_count)) {
            log_listener(clients, "listening", listener);
        } else {
            if (!tls_is_same_certificate(&listener->tls, &change->tls[i]))
                log_listener(clients, "certificate_changed", listener);
            tls_deinit(&listener->tls);
            listener->tls = change->tls[i];
        }
        listener->config = &clients->config->listens[i];
        clients->listeners[i] = listener;
    }
    clients->listener_count = change->count;
    for (size_t i = 0; i < before_count; i++) {
        if (is_among(before[i], change->wanted, change->count))
            continue;
        if (find(clients, before[i]->config, url_equal) == NULL)
            log_listener(clients, "listening_stopped", before[i]);
        listener_close(before[i]);
    }
}
