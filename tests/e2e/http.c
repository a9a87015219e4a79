#include "tests/e2e/http.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/waiting.h"

int http_open(int port)
{
    const struct sockaddr_in where = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_msg(connect(fd, (const struct sockaddr *)&where, sizeof(where)) == 0,
                  "no connection to port %d: %s", port, strerror(errno));
    return fd;
}

void http_send(int fd, const char *text)
{
    size_t len = strlen(text);
    /* The daemon may have closed the connection of a client that sent too much. */
    ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);
    ck_assert(sent == (ssize_t)len || errno == EPIPE || errno == ECONNRESET);
}

bool http_has_input(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) > 0;
}

void http_read(int fd, struct http_response *response)
{
    struct waiting waiting = waiting_for("the end of an HTTP response");
    struct pollfd one = {.fd = fd, .events = POLLIN};
    size_t size = 1 << 20;
    size_t len = 0;
    ssize_t got;
    *response = (struct http_response){.text = malloc(size)};
    ck_assert_ptr_nonnull(response->text);
    do {
        ck_assert_msg(poll(&one, 1, waiting_left_ms(&waiting)) > 0, "the response does not end");
        got = recv(fd, response->text + len, size - 1 - len, 0);
        len += got > 0 ? (size_t)got : 0;
    } while (got > 0);
    close(fd);
    response->text[len] = '\0';
    sscanf(response->text, "HTTP/1.%*d %d", &response->status);
    char *end = strstr(response->text, "\r\n\r\n");
    response->body = end != NULL ? end + 4 : response->text + len;
    response->len = len - (size_t)(response->body - response->text);
}

void http_free(struct http_response *response)
{
    free(response->text);
    response->text = NULL;
}

void http_request(int port, const char *method, const char *path, struct http_response *response)
{
    char request[512];
    int fd = http_open(port);
    snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", method, path,
             port);
    http_send(fd, request);
    http_read(fd, response);
}

char *http_get(int port, const char *path, int status)
{
    struct http_response response;
    http_request(port, "GET", path, &response);
    ck_assert_msg(response.status == status, "GET %s: %s", path, response.text);
    char *body = strdup(response.body);
    http_free(&response);
    return body;
}

const char *http_header(const struct http_response *response, const char *name)
{
    static char value[1024];
    const char *line = response->text;
    size_t name_len = strlen(name);
    value[0] = '\0';
    while ((line = strstr(line, "\r\n")) != NULL && line + 2 < response->body) {
        line += 2;
        if (strncasecmp(line, name, name_len) == 0 && line[name_len] == ':')
            snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + name_len + 2, "\r"),
                     line + name_len + 2);
    }
    return value;
}
