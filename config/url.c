#include "config/url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "config/value.h"

static bool fail(struct error *error, const char *what)
{
    snprintf(error->text, sizeof(error->text), "%s", what);
    return false;
}

static bool parse_unix(const char *path, struct config_address *address, struct error *error)
{
    address->kind = ADDRESS_UNIX;
    if (path[0] != '/')
        return fail(error, "a socket's path begins with /: write unix:/run/redlockd/redlockd.sock");
    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        snprintf(error->text, sizeof(error->text),
                 "the path has %zu bytes; a unix socket's has at most %zu", strlen(path),
                 sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
        return false;
    }
    address->path = strdup(path);
    return address->path != NULL || fail(error, "not enough memory");
}

static bool parse_port(const char *text, uint16_t *port, struct error *error)
{
    int64_t number;
    if (value_integer(text, &number) != NULL || number < 1 || number > 65535) {
        snprintf(error->text, sizeof(error->text), "\"%.20s\" is no port: they go from 1 to 65535",
                 text);
        return false;
    }
    *port = (uint16_t)number;
    return true;
}

/* "host", "host:port", "[v6]:port": splits in place. Returns the port's text, or NULL. */
static char *split_host(char *text, char **host)
{
    char *colon;
    *host = text;
    if (text[0] == '[') {
        char *close = strchr(text, ']');
        if (close == NULL)
            return NULL;
        *host = text + 1;
        *close = '\0';
        colon = close[1] == ':' ? close + 1 : NULL;
    } else {
        colon = strchr(text, ':');
    }
    if (colon == NULL)
        return NULL;
    *colon = '\0';
    return colon + 1;
}

static bool parse_host(char *text, uint16_t default_port, struct config_address *address,
                       struct error *error)
{
    char *host;
    struct in6_addr v6;
    bool bracketed = text[0] == '[';
    if (strchr(text, '@') != NULL)
        return fail(error, "no user or password in an address: put the password into a file and "
                           "name it by password_file, the user by username");
    if (bracketed && strchr(text, ']') == NULL)
        return fail(error, "the ] behind the IPv6 address is missing");
    const char *port = split_host(text, &host);
    if (!bracketed && port != NULL && strchr(port, ':') != NULL)
        return fail(error, "an IPv6 address stands in brackets: [::1]:6379");
    if (bracketed && inet_pton(AF_INET6, host, &v6) != 1)
        return fail(error, "what stands in the brackets is no IPv6 address");
    if (host[0] == '\0')
        return fail(error, "the host is missing: write 127.0.0.1 for this host, 0.0.0.0 for all "
                           "its addresses");
    if (strlen(host) > 253 || strpbrk(host, " \t?#%") != NULL)
        return fail(error, "the host is neither a name nor an address");
    if (port == NULL && default_port == 0)
        return fail(error, "the port is missing: write tcp://127.0.0.1:7335");
    address->port = default_port;
    if (port != NULL && !parse_port(port, &address->port, error))
        return false;
    address->host = strdup(host);
    return address->host != NULL || fail(error, "not enough memory");
}

static bool parse_tcp(const char *text, uint16_t default_port, struct config_address *address,
                      unsigned *database, struct error *error)
{
    char *copy = strdup(text);
    if (copy == NULL)
        return fail(error, "not enough memory");
    address->kind = ADDRESS_TCP;
    bool fine = true;
    char *slash = strchr(copy, '/');
    if (slash != NULL) {
        int64_t number = 0;
        *slash = '\0';
        if (slash[1] != '\0' && database == NULL)
            fine = fail(error, "nothing may stand behind the port");
        else if (slash[1] != '\0' && (value_integer(slash + 1, &number) != NULL || number > 9999))
            fine = fail(error, "behind the / stands the number of a database, 0 to 9999");
        else if (database != NULL)
            *database = (unsigned)number;
    }
    fine = fine && parse_host(copy, default_port, address, error);
    free(copy);
    return fine;
}

bool url_parse(const char *text, const char *scheme, uint16_t default_port,
               struct config_address *address, unsigned *database, struct error *error)
{
    size_t scheme_len = strlen(scheme);
    memset(address, 0, sizeof(*address));
    if (strlen(text) >= LIMIT_URL)
        return fail(error, "longer than 511 bytes: no address");
    address->url = strdup(text);
    if (address->url == NULL)
        return fail(error, "not enough memory");
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(strncmp(text, "unix://", 7) == 0 ? text + 7 : text + 5, address, error);
    if (strncmp(text, scheme, scheme_len) == 0 && strncmp(text + scheme_len, "://", 3) == 0)
        return parse_tcp(text + scheme_len + 3, default_port, address, database, error);
    snprintf(error->text, sizeof(error->text), "write %s://HOST:PORT or unix:/PATH", scheme);
    return false;
}

void url_free(struct config_address *address)
{
    free(address->url);
    free(address->host);
    free(address->path);
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
    if (a->kind != b->kind)
        return false;
    if (a->kind == ADDRESS_UNIX)
        return strcmp(a->path, b->path) == 0;
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}
