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
    /* Who has sent too much may have been cut off by now. */
    ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);
    ck_assert(sent == (ssize_t)len || errno == EPIPE || errno == ECONNRESET);
}

bool http_has_input(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) > 0;
}

void http_read(int fd, struct http_answer *answer)
{
    struct waiting waiting = waiting_for("the end of an answer by HTTP");
    struct pollfd one = {.fd = fd, .events = POLLIN};
    size_t size = 1 << 20;
    size_t len = 0;
    ssize_t got;
    *answer = (struct http_answer){.text = malloc(size)};
    ck_assert_ptr_nonnull(answer->text);
    do {
        ck_assert_msg(poll(&one, 1, waiting_left_ms(&waiting)) > 0, "the answer does not end");
        got = recv(fd, answer->text + len, size - 1 - len, 0);
        len += got > 0 ? (size_t)got : 0;
    } while (got > 0);
    close(fd);
    answer->text[len] = '\0';
    sscanf(answer->text, "HTTP/1.%*d %d", &answer->status);
    char *end = strstr(answer->text, "\r\n\r\n");
    answer->body = end != NULL ? end + 4 : answer->text + len;
    answer->len = len - (size_t)(answer->body - answer->text);
}

void http_free(struct http_answer *answer)
{
    free(answer->text);
    answer->text = NULL;
}

void http_ask(int port, const char *method, const char *path, struct http_answer *answer)
{
    char request[512];
    int fd = http_open(port);
    snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", method, path,
             port);
    http_send(fd, request);
    http_read(fd, answer);
}

char *http_get(int port, const char *path, int status)
{
    struct http_answer answer;
    http_ask(port, "GET", path, &answer);
    ck_assert_msg(answer.status == status, "GET %s: %s", path, answer.text);
    char *body = strdup(answer.body);
    http_free(&answer);
    return body;
}

const char *http_header(const struct http_answer *answer, const char *name)
{
    static char value[1024];
    const char *line = answer->text;
    size_t name_len = strlen(name);
    value[0] = '\0';
    while ((line = strstr(line, "\r\n")) != NULL && line + 2 < answer->body) {
        line += 2;
        if (strncasecmp(line, name, name_len) == 0 && line[name_len] == ':')
            snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + name_len + 2, "\r"),
                     line + name_len + 2);
    }
    return value;
}
