#include "server/net/resolver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const char hosts_file[] = "/etc/hosts";
static const char nameservers_file[] = "/etc/resolv.conf";

/* --- the files --- */

/* Whether the file differs from *seen, its state at the last call. Updates *seen. */
static bool has_changed(const char *path, struct stat *seen)
{
    struct stat now;
    if (stat(path, &now) != 0)
        now = (struct stat){0};
    bool same = now.st_dev == seen->st_dev && now.st_ino == seen->st_ino &&
                now.st_size == seen->st_size && now.st_mtim.tv_sec == seen->st_mtim.tv_sec &&
                now.st_mtim.tv_nsec == seen->st_mtim.tv_nsec;
    *seen = now;
    return !same;
}

static void read_hosts(struct evdns_base *dns)
{
    evdns_base_clear_host_addresses(dns);
    evdns_base_load_hosts(dns, hosts_file);
}

/* Queries in progress are suspended and sent to the new nameservers. evdns keeps an option that the
 * previous file has set and the new file does not mention. So the three options are first reset to
 * their defaults. */
static void read_nameservers(struct evdns_base *dns)
{
    evdns_base_clear_nameservers_and_suspend(dns);
    evdns_base_search_clear(dns);
    evdns_base_set_option(dns, "timeout:", "5");
    evdns_base_set_option(dns, "attempts:", "3");
    evdns_base_set_option(dns, "ndots:", "1");
    evdns_base_resolv_conf_parse(dns, DNS_OPTIONS_ALL & ~DNS_OPTION_HOSTSFILE, nameservers_file);
    evdns_base_resume(dns);
}

static void refresh(struct resolver *resolver)
{
    bool hosts = has_changed(hosts_file, &resolver->hosts);
    bool nameservers = has_changed(nameservers_file, &resolver->nameservers);
    if (hosts)
        read_hosts(resolver->dns);
    if (nameservers)
        read_nameservers(resolver->dns);
    resolver->readings += hosts || nameservers;
}

bool resolver_init(struct resolver *resolver, struct event_base *base)
{
    *resolver = (struct resolver){.dns = evdns_base_new(base, EVDNS_BASE_DISABLE_WHEN_INACTIVE)};
    if (resolver->dns == NULL)
        return false;
    refresh(resolver);
    return true;
}

void resolver_deinit(struct resolver *resolver)
{
    if (resolver->dns != NULL)
        evdns_base_free(resolver->dns, 0);
    resolver->dns = NULL;
}

void resolver_settle(struct event_base *base)
{
    do {
        event_base_loop(base, EVLOOP_NONBLOCK);
    } while (event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE) > 0);
}

/* --- look-ups --- */

void name_lookup_deinit(struct name_lookup *lookup)
{
    if (lookup->query != NULL)
        evdns_getaddrinfo_cancel(lookup->query);
    if (lookup->found != NULL)
        evutil_freeaddrinfo(lookup->found);
    lookup->query = NULL;
    lookup->found = NULL;
}

static void hand_over(struct name_lookup *lookup, struct evutil_addrinfo *found)
{
    lookup->wanted = false;
    lookup->on_found(lookup->context, found);
    if (found != NULL)
        evutil_freeaddrinfo(found);
}

static void name_lookup_on_answer(int failed, struct evutil_addrinfo *found, void *context)
{
    struct name_lookup *lookup = context;
    /* name_lookup_deinit() has cancelled this query. By now `query` may be a newer query, so
     * keep it. */
    if (failed == EVUTIL_EAI_CANCEL)
        return;
    lookup->query = NULL;
    if (lookup->wanted)
        hand_over(lookup, found);
    else
        lookup->found = found;
}

void name_lookup_begin(struct name_lookup *lookup)
{
    const struct evutil_addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP};
    struct resolver *resolver = lookup->resolver;
    char service[8];
    refresh(resolver);
    if (lookup->query_readings != resolver->readings)
        name_lookup_deinit(lookup);
    struct evutil_addrinfo *found = lookup->found;
    lookup->query_readings = resolver->readings;
    lookup->wanted = true;
    lookup->found = NULL;
    snprintf(service, sizeof(service), "%u", lookup->port);
    if (found != NULL)
        hand_over(lookup, found);
    else if (lookup->query == NULL)
        lookup->query = evdns_getaddrinfo(resolver->dns, lookup->host, service, &hints,
                                          name_lookup_on_answer, lookup);
}

void name_lookup_leave(struct name_lookup *lookup)
{
    lookup->wanted = false;
}

bool name_lookup_has_more(const struct name_lookup *lookup)
{
    return lookup->query != NULL || lookup->found != NULL;
}

/* --- choosing an address --- */

unsigned resolver_count(const struct evutil_addrinfo *found)
{
    unsigned count = 0;
    for (; found != NULL; found = found->ai_next)
        count++;
    return count;
}

/* Order by family, then by address. */
static int compare(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family)
        return a->sa_family < b->sa_family ? -1 : 1;
    if (a->sa_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                      &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
                      sizeof(struct in6_addr));
    return memcmp(&((const struct sockaddr_in *)(const void *)a)->sin_addr,
                  &((const struct sockaddr_in *)(const void *)b)->sin_addr, sizeof(struct in_addr));
}

const struct evutil_addrinfo *resolver_choose(const struct evutil_addrinfo *found,
                                              const struct resolved *last, bool failed)
{
    const struct sockaddr *before = (const struct sockaddr *)&last->address;
    const struct evutil_addrinfo *first = found;
    const struct evutil_addrinfo *next = NULL;
    for (const struct evutil_addrinfo *it = found; it != NULL; it = it->ai_next) {
        int order = last->len > 0 ? compare(it->ai_addr, before) : 1;
        if (order == 0 && !failed)
            return it;
        if (compare(it->ai_addr, first->ai_addr) < 0)
            first = it;
        if (order > 0 && (next == NULL || compare(it->ai_addr, next->ai_addr) < 0))
            next = it;
    }
    return next != NULL ? next : first;
}
