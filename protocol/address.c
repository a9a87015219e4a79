#include "protocol/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "protocol/limits.h"

enum { PORT_MAX = 65535, DATABASE_MAX = 9999 };

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == ADDRESS_PATH_MAX + 1,
               "the length of a unix socket path");

/* The bytes of host names and of interface names. */
static const char name_bytes[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

/* What an address looks like for one use, and examples for error messages. */
struct form {
    const char *scheme;
    uint16_t default_port; /* 0: the port is required */
    const char *tcp;
    const char *tcp_v6;
    const char *unix_path; /* NULL: unix sockets are not allowed */
    const char *host_advice;
};

static const struct form forms[] = {
    [URL_LISTEN] = {"tcp://", 0, "tcp://127.0.0.1:7335", "tcp://[::1]:7335",
                    "unix:/run/redlockd/redlockd.sock",
                    "127.0.0.1 for this host only, 0.0.0.0 for all interfaces"},
    [URL_NODE] = {"redis://", 6379, "redis://10.0.0.1:6379", "redis://[fd00::1]:6379",
                  "unix:/run/redis/redis.sock", "redis://10.0.0.1:6379"},
    [URL_DAEMON] = {"tcp://", 0, "tcp://127.0.0.1:7335", "tcp://[::1]:7335",
                    "unix:/run/redlockd/redlockd.sock", "tcp://127.0.0.1:7335"},
    [URL_ADMIN] = {"http://", 0, "http://127.0.0.1:7336", "http://[::1]:7336", NULL,
                   "127.0.0.1 for this host only"},
    [URL_METRICS] = {"http://", 0, "http://0.0.0.0:7338", "http://[::]:7338", NULL,
                     "127.0.0.1 for this host only, 0.0.0.0 for all interfaces"},
};

/* The forms of addresses with TLS. */
static const struct form tls_forms[] = {
    [URL_LISTEN] = {"tls://", 0, "tls://127.0.0.1:7337", "tls://[::1]:7337", NULL,
                    "127.0.0.1 for this host only, 0.0.0.0 for all interfaces"},
    [URL_NODE] = {"rediss://", 6379, "rediss://redis-a.example:6379", "rediss://[fd00::1]:6379",
                  NULL, "rediss://redis-a.example:6379"},
    [URL_DAEMON] = {"tls://", 0, NULL, NULL, NULL, NULL},
    [URL_ADMIN] = {NULL, 0, NULL, NULL, NULL, NULL}, /* has no TLS */
    [URL_METRICS] = {NULL, 0, NULL, NULL, NULL, NULL},
};

static bool parse_path(const char *path, const struct form *form, struct address *address,
                       struct error *error)
{
    address->kind = ADDRESS_UNIX;
    if (path[0] != '/' || path[1] == '/')
        return error_set(error, "has no absolute path; write %s", form->unix_path);
    size_t len = strlen(path);
    if (len > ADDRESS_PATH_MAX)
        return error_set(error, "has a path of %zu bytes; the path of a unix socket has at most %d",
                         len, ADDRESS_PATH_MAX);
    /* Listings show the path as a word. */
    if (text_word_len(path, len) < len)
        return error_set(error, "must not contain spaces or control characters in its path");
    memcpy(address->path, path, len + 1);
    return true;
}

/* Parse a text that has only digits, as a number up to `most`. */
static bool take_number(const char *text, unsigned most, unsigned *number)
{
    uint64_t all;
    size_t digits = text_take_number(text, strlen(text), &all);
    *number = (unsigned)all;
    return digits > 0 && text[digits] == '\0' && all <= most;
}

static bool parse_database(const char *text, enum url_use use, unsigned *database,
                           struct error *error)
{
    if (text[0] == '\0')
        return true;
    if (use != URL_NODE)
        return error_set(error, "has text after the port; remove it");
    if (!take_number(text, DATABASE_MAX, database))
        return error_set(error, "must have a database number after the /; write 0 to %d",
                         DATABASE_MAX);
    return true;
}

/* Parse ":7335", or nothing if there is a default port. */
static bool parse_port(const char *text, const struct form *form, uint16_t *port,
                       struct error *error)
{
    unsigned number;
    *port = form->default_port;
    if (text[0] == '\0')
        return *port != 0 || error_set(error, "has no port; write %s", form->tcp);
    if (text[0] != ':')
        return error_set(error, "has text other than a port after the ]; write %s", form->tcp_v6);
    if (!take_number(text + 1, PORT_MAX, &number) || number < 1)
        return error_set(error, "has an invalid port; write 1 to %d", PORT_MAX);
    *port = (uint16_t)number;
    return true;
}

static bool check_name(const char *host, const struct form *form, struct error *error)
{
    struct in_addr v4;
    if (host[0] == '\0')
        return error_set(error, "has no host; write %s", form->host_advice);
    if (strlen(host) > ADDRESS_HOST_MAX || strspn(host, name_bytes) != strlen(host))
        return error_set(error, "has a host that is neither a name nor an address; write %s",
                         form->tcp);
    if (strspn(host, "0123456789.") == strlen(host) && inet_pton(AF_INET, host, &v4) != 1)
        return error_set(error, "has an invalid IPv4 address; write %s", form->tcp);
    return true;
}

/* Parse "::1" or "fe80::1%eth0". A link-local address is valid on one interface, named by the zone.
 */
static bool parse_v6(char *text, const struct form *form, char host[ADDRESS_HOST_MAX + 1],
                     struct error *error)
{
    struct in6_addr v6;
    char *zone = strchr(text, '%');
    if (zone != NULL)
        *zone++ = '\0';
    if (inet_pton(AF_INET6, text, &v6) != 1)
        return error_set(error, "has an invalid IPv6 address in the brackets; write %s",
                         form->tcp_v6);
    if (zone != NULL && !IN6_IS_ADDR_LINKLOCAL(&v6))
        return error_set(error,
                         "has a zone, but only link-local addresses (fe80::) have one; write %s",
                         form->tcp_v6);
    if (zone != NULL && (zone[0] == '\0' || strlen(zone) >= IF_NAMESIZE ||
                         strspn(zone, name_bytes) != strlen(zone)))
        return error_set(error, "has no interface name after the %%; write [fe80::1%%eth0]");
    /* Write the canonical form, so that equal addresses have equal texts. */
    inet_ntop(AF_INET6, &v6, host, INET6_ADDRSTRLEN);
    if (zone != NULL) {
        size_t len = strlen(host);
        host[len] = '%';
        memcpy(host + len + 1, zone, strlen(zone) + 1);
    }
    return true;
}

/* Parse "[::1]:7335" or "host:7335". The text is a copy that this function may change. */
static bool parse_host(char *text, const struct form *form, struct address *address,
                       struct error *error)
{
    bool bracketed = text[0] == '[';
    char *host = bracketed ? text + 1 : text;
    char *end = host + strcspn(host, bracketed ? "]" : ":");
    if (bracketed && *end == '\0')
        return error_set(error, "has no ] after the IPv6 address; write %s", form->tcp_v6);
    if (!bracketed && *end == ':' && strchr(end + 1, ':') != NULL)
        return error_set(error, "has an IPv6 address without brackets; write %s", form->tcp_v6);
    if (!parse_port(bracketed ? end + 1 : end, form, &address->port, error))
        return false;
    *end = '\0';
    if (bracketed)
        return parse_v6(host, form, address->host, error);
    if (!check_name(host, form, error))
        return false;
    memcpy(address->host, host, strlen(host) + 1);
    return true;
}

static bool parse_tcp(const char *text, enum url_use use, const struct form *form,
                      struct address *address, struct error *error)
{
    char copy[LIMIT_URL];
    size_t len = strcspn(text, "/");
    memcpy(copy, text, len);
    copy[len] = '\0';
    address->kind = ADDRESS_TCP;
    return parse_database(text[len] == '/' ? text + len + 1 : "", use, &address->database, error) &&
           parse_host(copy, form, address, error);
}

bool address_parse(const char *text, enum url_use use, struct address *address, struct error *error)
{
    const struct form *form = &forms[use];
    memset(address, 0, sizeof(*address));
    if (strlen(text) >= LIMIT_URL)
        return error_set(error, "is longer than %d bytes; write %s", LIMIT_URL - 1, form->tcp);
    if (form->unix_path == NULL && strncmp(text, form->scheme, strlen(form->scheme)) != 0)
        return error_set(error, "is not a %s address; write %s", form->scheme, form->tcp);
    if (strncmp(text, "unix:///", 8) == 0)
        return parse_path(text + 7, form, address, error);
    if (strncmp(text, "unix:", 5) == 0)
        return parse_path(text + 5, form, address, error);
    if (!address_is_printable(text) && use == URL_NODE)
        return error_set(error, "contains a password; put it into a file and set password_file");
    if (!address_is_printable(text))
        return error_set(error, "contains a user name or a password; write %s", form->tcp);
    if (strncmp(text, form->scheme, strlen(form->scheme)) == 0)
        return parse_tcp(text + strlen(form->scheme), use, form, address, error);
    const struct form *tls = &tls_forms[use];
    if (strncmp(text, tls->scheme, strlen(tls->scheme)) != 0)
        return error_set(error, "is not a %s address; write %s or %s", form->scheme, form->tcp,
                         form->unix_path);
    if (use == URL_DAEMON)
        return error_set(error,
                         "requires TLS, which this library does not support; use a unix socket of "
                         "a redlockd on this host, or the tcp:// address of a TLS proxy on it "
                         "(stunnel)");
    address->tls = true;
    return parse_tcp(text + strlen(tls->scheme), use, tls, address, error);
}

bool address_is_printable(const char *text)
{
    return strncmp(text, "unix:", 5) == 0 || strchr(text, '@') == NULL;
}
