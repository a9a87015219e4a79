#include "protocol/foreign.h"

#include <stdbool.h>
#include <string.h>

#include "protocol/limits.h"

/* The first byte of a TLS handshake. No request begins with it. */
enum { TLS_HANDSHAKE = 0x16 };

/* The PROXY header that a load balancer sends before the data of the client, as text or binary. */
static const char proxy_v1[] = "PROXY ";
static const char proxy_v2[] = "\r\n\r\n\0\r\nQUIT\n";

static bool begins_with(const char *bytes, size_t len, const char *start, size_t start_len)
{
    return len >= start_len && memcmp(bytes, start, start_len) == 0;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Whether the word is "HTTP/1.1" or similar ("HTTP/2.0" for HTTP/2), with or without a CR. */
static bool is_http_version(const char *word, size_t len)
{
    static const char http[] = "HTTP/";
    const size_t start = sizeof(http) - 1;
    if (len > 0 && word[len - 1] == '\r')
        len--;
    return len == start + 3 && memcmp(word, http, start) == 0 && is_digit(word[start]) &&
           word[start + 1] == '.' && is_digit(word[start + 2]);
}

/* Whether the line is like "GET / HTTP/1.1": at least three words, the last of them the version. A
 * valid redlockd request that ends with such a word ("STATUS HTTP/1.1") has only two words, or
 * begins with a tag. A web page can choose an HTTP method that looks like a tag, but the path after
 * it is no verb. */
static bool is_http(const char *line, size_t len)
{
    size_t start = len;
    while (start > 0 && line[start - 1] != ' ')
        start--;
    const char *first_space = memchr(line, ' ', len);
    return first_space != NULL && first_space + 1 < line + start &&
           (line[0] != '#' || first_space[1] == '/') && is_http_version(line + start, len - start);
}

/* Whether these bytes can begin a line like "GET /... HTTP/1.1" that is too long for a request. A
 * web page can choose the length. The daemon would otherwise discard that line and take the lines
 * after it as requests, which the page can write. No verb or tag is as long as a line. */
static bool begins_long_http(const char *bytes, size_t len)
{
    const char *space = memchr(bytes, ' ', len);
    size_t word_len = space != NULL ? (size_t)(space - bytes) : len;
    return len >= LIMIT_LINE && (word_len + 1 >= len || bytes[word_len + 1] == '/');
}

const char *foreign_protocol(const char *bytes, size_t len)
{
    const char *end = len > 0 ? memchr(bytes, '\n', len) : NULL;
    if (len > 0 && bytes[0] == TLS_HANDSHAKE)
        return "the client speaks TLS; connect it to a tls:// address";
    if (begins_with(bytes, len, proxy_v1, sizeof(proxy_v1) - 1) ||
        begins_with(bytes, len, proxy_v2, sizeof(proxy_v2) - 1))
        return "the connection begins with a PROXY header, which redlockd does not support; "
               "disable it in the load balancer";
    if (end != NULL ? is_http(bytes, (size_t)(end - bytes)) : begins_long_http(bytes, len))
        return "the client speaks HTTP, but this port serves the redlockd line protocol";
    return NULL;
}
