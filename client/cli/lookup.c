#include "client/cli/lookup.h"

#include <assert.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* --- the order --- */

void places_set(struct places *places, const char (*urls)[PLACES_URL], unsigned count)
{
    struct places set = {.count = count};
    assert(count <= PLACES_MAX);
    for (unsigned i = 0; i < count; i++) {
        memcpy(set.url[i], urls[i], PLACES_URL);
        if (places->count > 0 && strcmp(urls[i], places->url[places->last]) == 0) {
            set.last = i;
            set.next = (i + 1) % count;
        }
    }
    *places = set;
}

const char *places_next(struct places *places)
{
    if (places->count == 0)
        return NULL;
    places->last = places->next;
    places->next = (places->next + 1) % places->count;
    return places->url[places->last];
}

void places_good(struct places *places)
{
    places->next = places->last;
}

/* --- finding them --- */

static bool print_url(const struct sockaddr *where, socklen_t len, char url[PLACES_URL])
{
    char host[64], port[8];
    memset(url, 0, PLACES_URL);
    if (getnameinfo(where, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    int printed =
        snprintf(url, PLACES_URL, where->sa_family == AF_INET6 ? "tcp://[%s]:%s" : "tcp://%s:%s",
                 host, port);
    return printed > 0 && printed < PLACES_URL;
}

static bool is_number(const char *host)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
    struct addrinfo *found;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    freeaddrinfo(found);
    return true;
}

void lookup_init(struct lookup *lookup, const char *url, int connection)
{
    struct error error;
    struct sockaddr_storage where;
    socklen_t len = sizeof(where);
    char known[1][PLACES_URL];
    *lookup = (struct lookup){.needed = false};
    if (!address_parse(url, URL_DAEMON, &lookup->address, &error) ||
        lookup->address.kind != ADDRESS_TCP || is_number(lookup->address.host))
        return;
    lookup->needed = true;
    if (getpeername(connection, (struct sockaddr *)&where, &len) == 0 &&
        print_url((const struct sockaddr *)&where, len, known[0]))
        places_set(&lookup->places, known, 1);
}

const char *lookup_next(struct lookup *lookup)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct gaicb *request = &lookup->request;
    if (!lookup->asking) {
        snprintf(lookup->port, sizeof(lookup->port), "%u", lookup->address.port);
        *request = (struct gaicb){
            .ar_name = lookup->address.host, .ar_service = lookup->port, .ar_request = &hints};
        lookup->asking = getaddrinfo_a(GAI_NOWAIT, &request, 1, NULL) == 0;
    }
    return places_next(&lookup->places);
}

void lookup_read(struct lookup *lookup)
{
    char urls[PLACES_MAX][PLACES_URL];
    unsigned count = 0;
    if (!lookup->asking || gai_error(&lookup->request) == EAI_INPROGRESS)
        return;
    lookup->asking = false;
    if (gai_error(&lookup->request) != 0)
        return;
    for (const struct addrinfo *it = lookup->request.ar_result; it != NULL && count < PLACES_MAX;
         it = it->ai_next)
        count += print_url(it->ai_addr, it->ai_addrlen, urls[count]);
    freeaddrinfo(lookup->request.ar_result);
    /* Where nothing was found, what is known may still be good. */
    if (count > 0)
        places_set(&lookup->places, (const char(*)[PLACES_URL])urls, count);
}
