#include "config/url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/memory.h"
#include "protocol/limits.h"

bool url_parse(const char *text, enum url_use use, struct config_address *address,
               struct error *error)
{
    struct address parsed;
    bool fine = address_parse(text, use, &parsed, error);
    *address = (struct config_address){.kind = parsed.kind};
    if (strlen(text) < LIMIT_URL)
        address->url = memory_copy(text);
    if (!fine)
        return false;
    address->port = parsed.port;
    address->tls = parsed.tls;
    if (parsed.kind == ADDRESS_UNIX)
        address->path = memory_copy(parsed.path);
    else
        address->host = memory_copy(parsed.host);
    address->database = parsed.database;
    return true;
}

bool url_read(const struct yaml_node *value, const char *name, enum url_use use,
              struct config_address *address, struct report *report)
{
    struct error error;
    if (url_parse(value->text, use, address, &error))
        return true;
    if (!address_is_printable(value->text))
        return report_error(report, value->position, "%s: the address %s", name, error.text);
    return report_error(report, value->position, "%s: \"%s\" %s", name, value->text, error.text);
}

void url_free(struct config_address *address)
{
    free(address->url);
    free(address->host);
    free(address->path);
    *address = (struct config_address){0};
}

bool url_is_local(const struct config_address *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (address->kind == ADDRESS_UNIX || strcasecmp(address->host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, address->host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, address->host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool url_equal(const struct config_address *a, const struct config_address *b)
{
    if (a->path != NULL && b->path != NULL)
        return strcmp(a->path, b->path) == 0;
    return a->host != NULL && b->host != NULL && a->port == b->port &&
           strcasecmp(a->host, b->host) == 0;
}

/* Returns AF_INET or AF_INET6, or 0 if the host is a name other than localhost: its family is not
 * known. Sets *every if the host is the wildcard address of the family (0.0.0.0 or ::). */
static int family_of(const struct config_address *address, bool *every)
{
    struct in_addr v4 = {0};
    struct in6_addr v6;
    bool local = strcasecmp(address->host, "localhost") == 0;
    *every = false;
    if (local || inet_pton(AF_INET, address->host, &v4) == 1) {
        *every = !local && v4.s_addr == htonl(INADDR_ANY);
        return AF_INET;
    }
    /* Only IPv6 has zones. */
    if (strchr(address->host, '%') != NULL)
        return AF_INET6;
    if (inet_pton(AF_INET6, address->host, &v6) != 1)
        return 0;
    *every = IN6_IS_ADDR_UNSPECIFIED(&v6);
    return AF_INET6;
}

bool url_collides(const struct config_address *a, const struct config_address *b)
{
    bool every_a;
    bool every_b;
    if (url_equal(a, b))
        return true;
    return a->host != NULL && b->host != NULL && a->port == b->port &&
           family_of(a, &every_a) == family_of(b, &every_b) && (every_a || every_b);
}
